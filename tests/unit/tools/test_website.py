"""The site: documents become pages, links follow, and what is wrong with a built page is said."""

from __future__ import annotations

import json
import re
from base64 import b64decode
from pathlib import Path
from types import ModuleType

import pytest
from support.console import ROOT
from support.named import links
from support.report_bundle import fake_bundle
from support.tools import loaded

from separatrix.core.evidence.bundles import bundle_envelope
from separatrix.core.evidence.canonical import canonical

TEXT = """\
# Book

Begins: [two](#two-the-second), [file](../src/a.py), [else](https://example.org/#x).

## one: the first

```text
## no heading [no](#link)
```

### Theorem I': small (`I'`)

After a paragraph
- an item

### Remarks

Of chapter one.

## two: the second

[back](#one-the-first)
"""


@pytest.fixture(scope="module")
def site() -> ModuleType:
    return loaded("website")


def test_a_document_becomes_pages(site: ModuleType) -> None:
    pages = site.divided("docs/book.md", TEXT, 3)
    assert [page.path for page in pages] == [
        "book/index.md",
        "book/one.md",
        "book/i-prime.md",
        "book/two.md",
    ]
    assert [page.title for page in pages] == ["Book", "one", "Theorem I': small", "two"]
    assert "### Remarks" in pages[1].lines
    whole = site.divided("docs/book.md", TEXT, 1)
    assert [page.path for page in whole] == ["book.md"]
    assert "\n".join(whole[0].lines) + "\n" == TEXT


def test_links_follow_and_others_are_text(site: ModuleType) -> None:
    found = site.Site()
    found.add(site.divided("docs/book.md", TEXT, 3))
    first, one, theorem, two = map(found.text, found.pages)
    assert "[two](../book/two.md#two-the-second)" in first
    assert "file, [else](https://example.org/#x)" in first
    assert "# one: the first {#one-the-first}" in one
    assert "## no heading [no](#link)" in one
    assert "# Theorem I': small (`I'`) {#theorem-i-small-i}" in theorem
    assert "After a paragraph\n\n- an item" in theorem
    assert "[back](../book/one.md#one-the-first)" in two
    found.add([site.Page("tail.md", "", "docs/tail.md", ["[docs/book.md](book.md), [b](book.md)"])])
    assert "[Book](book/index.md), [b](book/index.md)" in found.text(found.pages[-1])


def test_report_and_site_link_to_each_other(site: ModuleType, tmp_path: Path) -> None:
    """Each address is a page of the site, or a cell of the report."""
    bundle = tmp_path / "evidence.json"
    bundle.write_text(canonical(bundle_envelope(fake_bundle())), encoding="utf-8")
    found = site.gathered(evidence=bundle)
    paths = {page.path for page in found.pages}
    page = site.Anchors(found.report)
    out = {link for link in page.links if not link.startswith(("#", "https:"))}
    assert {f"{link.removeprefix('../').removesuffix('.html')}.md" for link in out} <= paths
    hybrid = "../theory/1-the-model-and-the-two-numbers-that-describe-a.html"
    assert {"../tasks/eva.html", "../mechanisms/full.html", "../theory/i.html", hybrid} < out
    assert "../constructions/retrieval.html" in out
    theorem = next(found.text(page) for page in found.pages if page.path == "theory/i.md")
    cells = re.findall(r"\]\(\.\./report/index\.html#([^)]*)\)", theorem)
    assert "cell-eva-linear" in cells
    assert set(cells) <= page.names
    assert '<td>by</td><td><a href="../theory/retrieval.html">' in found.report  # of a model


def test_a_report_that_cannot_be_read_is_told(
    site: ModuleType, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    bundle = tmp_path / "evidence.json"
    bundle.write_text("{}", encoding="utf-8")
    found = site.gathered(evidence=bundle)
    told = next("\n".join(page.lines) for page in found.pages if page.path == "report.md")
    assert found.report == ""
    assert "could not be shown" in told
    assert "evidence.json" in capsys.readouterr().err


def test_lists_of_pages_are_links(site: ModuleType) -> None:
    found = site.gathered(evidence=Path("none.json"))
    paths = {page.path for page in found.pages}
    for folder, name in (("theory", "all"), ("tasks", "index"), ("mechanisms", "index")):
        page = next(page for page in found.pages if page.path == f"{folder}/{name}.md")
        linked = set(re.findall(rf"\]\(\.\./({folder}/[^)#]*)", found.text(page)))
        assert len(linked) > 25
        assert linked <= paths
    told = next(found.text(page) for page in found.pages if page.path == "report.md")
    assert "make reproduce" in told
    assert "](" not in told


def test_commands_and_sections_lead_to_their_pages(site: ModuleType) -> None:
    found = site.gathered(evidence=Path("none.json"))
    pages = {page.path: found.text(page) for page in found.pages}
    told = pages["constructions/match2.md"]
    assert "[`separatrix list theorems match2`](../theory/match2.md)" in told
    assert "[theory.md, section 2](../theory/2-tasks.md)" in pages["tasks/seqcomp.md"]
    assert "](../theory/match2.md)" not in pages["theory/match2.md"]  # no page leads to itself


def test_the_explorer_and_pictures_are_links(site: ModuleType) -> None:
    found = site.Site()
    text = "# A\n\n`separatrix explore`\n\n![B](images/b.svg)\n\n    separatrix explore\n"
    found.add(site.divided("docs/a.md", text, 1))
    told = found.text(found.pages[0])
    assert "[`separatrix explore`](explore/index.html)" in told
    assert "    separatrix explore\n" in told
    assert "[![B](images/b.svg)](images/b.svg)" in told


@pytest.mark.parametrize(
    ("body", "said"),
    [
        ('<a href="b.html">', "no such file"),
        ('<a href="a.html#x">', "no such heading"),
        ('<a href="#x">', "no such heading"),
        ('<script src="https://example.org/x.js">', "loads"),
        ('<link rel="stylesheet" href="//example.org/x.css">', "loads"),
        ('<img src="x.png">', "no such file"),
        ('<a href="https://example.org">', ""),
        ('<p id="x"><a href="a.html#x">', ""),
    ],
)
def test_what_is_wrong_with_a_page(site: ModuleType, tmp_path: Path, body: str, said: str) -> None:
    (tmp_path / "a.html").write_text(body)
    found = list(site.checked(tmp_path))
    assert len(found) == bool(said)
    assert all(said in one for one in found)


def test_every_theorem_and_construction_has_a_page(site: ModuleType) -> None:
    from separatrix.constructions import CONSTRUCTIONS
    from separatrix.stacks.mechanisms import MECHANISMS
    from separatrix.tasks import TASKS
    from separatrix.theory import THEOREMS

    pages = site.gathered()
    paths = [page.path for page in pages.pages]
    assert len(paths) == len(set(paths))
    for folder, names in (
        ("tasks", TASKS),
        ("mechanisms", MECHANISMS),
        ("constructions", CONSTRUCTIONS),
    ):
        assert {
            f"{folder}/{'index-2' if name == 'index' else name}.md"
            for name in names
            if name != "indexed"
        } <= set(paths)
    listed = "\n".join(next(page.lines for page in pages.pages if page.path == "theory/all.md"))
    assert all(f"`{key}`" in listed for key in THEOREMS if key != "none")
    sizes = {page.path: len(pages.text(page).encode()) for page in pages.pages}
    assert {path: size for path, size in sizes.items() if size > site.LARGEST} == {}


def test_a_long_list_becomes_pages_of_whole_items(site: ModuleType) -> None:
    items = [f"- item {number}\n  of two lines" for number in range(9)]
    text = "# Changelog\n\n## 1.0\n\n" + "\n".join(items) + "\n"
    pages = site.parted("CHANGELOG.md", text, most=90)
    assert len(pages) > 2
    assert [page.path for page in pages][:2] == ["changes/index.md", "changes/2.md"]
    assert all(page.lines[0].startswith("# Changelog, part") for page in pages[1:])
    told = "\n".join(line for page in pages for line in page.lines)
    assert [item in told for item in items] == [True] * 9
    assert all(page.lines[2].startswith("- ") for page in pages[1:])


SCRIPT = """\
# %% [markdown]
# # Title
#
# Words.

# %%
x = 2
print(x)

# %%
class Drawn:
    def _repr_html_(self):
        return f"<b>{x}</b>"


Drawn()
"""


def test_a_lesson_shows_what_it_prints_and_draws(site: ModuleType) -> None:
    page = site.run(SCRIPT)
    assert page.startswith(
        "# Title\n\nWords.\n\n```python\nx = 2\nprint(x)\n```\n\n```text\n2\n```"
    )
    assert page.endswith("Drawn()\n```\n\n<b>2</b>\n")


def test_an_example_that_is_linked_has_a_page(site: ModuleType) -> None:
    found = site.gathered()
    pages = {page.path: page for page in found.pages}
    code = (ROOT / "examples/my_mixer.py").read_text(encoding="utf-8")
    assert f"```python\n{code}```\n" in found.text(pages["examples/my_mixer.md"])
    link = "[examples/my_mixer.py]({}examples/my_mixer.md)"
    assert link.format("../") in found.text(pages["tutorials/mixer.md"])
    assert link.format("") in found.text(pages["own-mixer.md"])


def test_a_lesson_that_fails_is_no_page(site: ModuleType) -> None:
    with pytest.raises(ZeroDivisionError):
        site.run("# %%\n1 / 0\n")


def test_the_notebook_has_the_same_cells(site: ModuleType) -> None:
    book = json.loads(site.notebook(SCRIPT))
    assert [cell["cell_type"] for cell in book["cells"]] == ["markdown", "code", "code"]
    assert book["cells"][0]["source"] == "# Title\n\nWords."


def test_the_notebook_is_whole_without_the_site(site: ModuleType) -> None:
    """Every picture is inside, byte for byte, and no link is relative."""
    book = json.loads(site.notebook((ROOT / site.LESSON).read_text(encoding="utf-8")))
    told = "".join(cell["source"] for cell in book["cells"] if cell["cell_type"] == "markdown")
    assert [target for _, target in links(told) if not re.match("[a-z]+:", target)] == []
    pictures = [
        b64decode(data) for data in re.findall(r'src="data:image/svg\+xml;base64,(\S+)"', told)
    ]
    names = ("bounded", "depth")
    assert pictures == [(ROOT / f"docs/images/{name}.svg").read_bytes() for name in names]
    assert "[" not in re.sub(r"\$[^$]*\$", "", told)
    assert "the theorems (docs/theory.md)" in told


@pytest.mark.slow
def test_the_lesson_runs(site: ModuleType) -> None:
    """What it claims it asserts."""
    page = site.run((ROOT / site.LESSON).read_text(encoding="utf-8"))
    assert page.count("```text") > 6
    assert page.count('<div class="separatrix">') > 2  # verdicts are tables
    assert page.count("data:image/svg+xml") == 5
    told = (
        *("right answer 1", "right answer 3", "two linear: 576 bytes at 8", "too small at 296"),
        # two layers of 8 x 8 + 8 numbers of 4 bytes; B: 2 entries of 2 bits; 32 x 4,095 tokens
        *("1 to 2: state 1 bit", "all of B: 4 bits", "131,040 tokens", "12 at 6.0 GiB"),
    )
    assert [words for words in told if words not in page] == []
