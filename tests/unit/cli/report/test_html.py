"""The HTML report and the terminal table, on a made-up bundle of real records."""

from __future__ import annotations

import copy
import json
import re
from collections import Counter
from dataclasses import replace
from fractions import Fraction
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.each import each
from support.hf_configs import QWEN
from support.report_bundle import fake_bundle

from separatrix.cli.commands.reproduce import results_document
from separatrix.cli.report import notation
from separatrix.cli.report.evidence import aligned, budget_words, said
from separatrix.cli.report.html import render_html, write_report
from separatrix.cli.report.notation import theorem_name
from separatrix.cli.report.view import view
from separatrix.core.document import Document, Line
from separatrix.core.errors import EvidenceError, OutputError
from separatrix.core.evidence.records import Measurement, Verdict, from_envelope
from separatrix.core.numbers.amounts import format_share
from separatrix.core.numbers.wilson import wilson

HOSTILE = "</script><script>alert(1)</script><img src=x onerror=alert(1)> & [bold]x[/bold]"


class Page(HTMLParser):
    """Every start tag with its attributes, ids, and the text of script and style elements."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.raw: dict[str, list[str]] = {"script": [], "style": []}
        self._inside: str | None = None
        self.feed(html)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))
        if tag in self.raw:
            self._inside = tag
            self.raw[tag].append("")

    def handle_endtag(self, tag: str) -> None:
        self._inside = None

    def handle_data(self, data: str) -> None:
        if self._inside:
            self.raw[self._inside][-1] += data

    def values(self, name: str) -> list[str]:
        return [attrs[name] or "" for _, attrs in self.tags if name in attrs]


def one_cell(row: str = "linear", column: str = "eva") -> dict[str, Any]:
    """The bundle with a single cell and no models."""
    body = fake_bundle()
    body["rows"] = [r for r in body["rows"] if r["key"] == row]
    body["columns"] = [c for c in body["columns"] if c["key"] == column]
    body["cells"] = [c for c in body["cells"] if (c["row"], c["column"]) == (row, column)]
    body["records"] = {digest: body["records"][digest] for digest in body["cells"][0]["records"]}
    return body | {"settings": body["settings"] | {"models": []}}


@pytest.fixture(scope="module")
def html() -> str:
    return render_html(fake_bundle())


@pytest.fixture(scope="module")
def page(html: str) -> Page:
    return Page(html)


def test_every_cell_stands_in_the_table_and_opens_its_evidence(html: str, page: Page) -> None:
    for row in ("full", "linear", "loglinear", "sparse", "hybrid"):
        for column in ("eva", "twosum", "seqcomp"):
            assert f'href="#cell-{column}-{row}"' in html
            assert f'id="cell-{column}-{row}"' in html
    words = Counter(re.findall(r'<a class="cell (\w+)"', html))
    assert words == {"solves": 5, "fails": 8, "open": 2}
    written = Counter(re.findall(r'<span class="top">. (\w+)<', html))
    assert written == {"SOLVABLE": 5, "FAILS": 8, "OPEN": 2}
    ids = page.values("id")
    assert not [name for name, times in Counter(ids).items() if times > 1]
    assert {href[1:] for href in page.values("href") if href.startswith("#")} <= set(ids)


def test_a_cell_shows_number_paper_entry_and_marks(html: str) -> None:
    cell = re.search(r'<a class="cell fails" href="#cell-eva-linear">.*?</a>', html, re.S)
    assert cell is not None
    assert "n ≥ 58" in cell[0]
    assert "Ω(n log n)" in cell[0]
    assert "(proved, witnessed, measured)" in cell[0]
    assert "■ ◆ ●" in cell[0]
    hollow = re.search(r'<a class="cell open" href="#cell-eva-sparse">.*?</a>', html, re.S)
    assert hollow is not None
    assert "not witnessed, measured)" in hollow[0]
    assert "□ ◇ ●" in hollow[0]


def test_nothing_is_loaded_from_a_network(html: str, page: Page) -> None:
    policy = next(
        attrs["content"]
        for tag, attrs in page.tags
        if tag == "meta" and attrs.get("http-equiv") == "Content-Security-Policy"
    )
    assert policy is not None
    assert "default-src 'none'" in policy
    assert not re.search(r"https?:|connect-src|\*", policy)
    assert not page.values("src")
    for tag, attrs in page.tags:
        target = attrs.get("href") or attrs.get("xlink:href") or "#"
        allowed = ("#", "https://arxiv.org/abs/") if tag == "a" else ("#", "data:")
        assert target.startswith(allowed), (tag, target)
    style = "".join(page.raw["style"])
    assert "@import" not in style
    assert "url(" not in style
    assert not {tag for tag, _ in page.tags} & {
        "iframe",
        "object",
        "embed",
        "img",
        "video",
        "audio",
        "form",
        "base",
    }


@pytest.mark.slow
def test_equal_bundles_give_equal_pages() -> None:
    assert render_html(one_cell()) == render_html(copy.deepcopy(one_cell()))


def test_hostile_text_is_escaped_everywhere() -> None:
    # of a row whose bound is not worked out: a stack that is none is refused there
    body = one_cell("sparse", "twosum")
    honest = Page(render_html(body))
    bad = Verdict(
        architecture=HOSTILE,
        task="eva:n=4,V=4",
        status="FAILS",
        theorem=HOSTILE,
        statement=HOSTILE,
        assumptions=(HOSTILE,),
        source=HOSTILE,
    )
    body["records"][bad.digest] = bad.envelope()
    cell = body["cells"][0]
    cell["records"].append(bad.digest)
    cell |= {"headline": HOSTILE, "story": HOSTILE, "number": HOSTILE, "paper": HOSTILE}
    cell |= {"stack": HOSTILE, "reach": HOSTILE}
    hostile = json.dumps(QWEN | {"_name_or_path": HOSTILE, "architectures": [HOSTILE]})
    body |= {"title": HOSTILE, "settings": {HOSTILE: HOSTILE, "models": [hostile]}}
    body["columns"][0] |= {"size_class": HOSTILE, "training": HOSTILE}
    body["rows"][0]["title"] = body["columns"][0]["title"] = HOSTILE
    page = Page(render_html(body))
    assert not page.values("src")
    assert not page.values("onerror")
    assert len(page.raw["script"]) == len(honest.raw["script"]) == 1


@pytest.mark.slow
def test_a_report_is_written_whole_or_not_at_all(tmp_path: Path) -> None:
    target = tmp_path / "new" / "report.html"
    write_report(one_cell(), target)
    before = target.read_text(encoding="utf-8")
    assert before.startswith("<!doctype html>")
    page, stamp = before.split("</html>\n")
    assert page
    assert stamp.startswith("<!-- ")
    assert stamp.endswith(" -->\n")
    with pytest.raises(EvidenceError):
        write_report(one_cell() | {"cells": []}, target)
    assert target.read_text(encoding="utf-8") == before
    with pytest.raises(OutputError, match="cannot be written"):
        write_report(one_cell(), target / "below-a-file.html")
    assert [path.name for path in target.parent.iterdir()] == ["report.html"]


def _edit_record(body: dict[str, Any]) -> None:
    next(iter(body["records"].values()))["body"]["task"] = "eva:n=65,V=64"


DAMAGES = [
    (_edit_record, "content hash"),
    (lambda body: body["cells"].clear(), "0 cells for a table of 1"),
    (lambda body: body["cells"].append(body["cells"][0]), "2 cells"),
    (lambda body: body["cells"][0].update(status="MAYBE"), "MAYBE"),
    (lambda body: body["cells"][0]["records"].append("0" * 64), "000000000000, which is missing"),
    (lambda body: body.pop("settings"), "settings"),
    (lambda body: body["cells"][0].pop("story"), "story"),
    (lambda body: body["cells"].__setitem__(0, None), "damaged"),
]


@pytest.mark.parametrize(("damage", "message"), DAMAGES)
def test_a_damaged_bundle_is_refused_in_one_line(damage: Any, message: str) -> None:
    body = one_cell()
    damage(body)
    with pytest.raises(EvidenceError, match=message) as caught:
        render_html(body)
    assert "\n" not in str(caught.value)


def test_the_deciding_verdict_comes_first() -> None:
    body = fake_bundle()
    cell = view(body).cells["linear", "eva"]
    assert [v.status for v in cell.verdicts] == ["FAILS", "OPEN"]
    body["cells"][0]["records"].reverse()
    first = view(body).cells["full", "eva"].verdicts[0]
    assert first.statement == body["cells"][0]["headline"]


def test_an_open_verdict_alone_proves_nothing() -> None:
    cell = view(fake_bundle()).cells["sparse", "eva"]
    assert cell.marks == {"proved": False, "witnessed": False, "measured": True}


# Notation


@each(
    "text, said",
    [
        ("n >= 58", "n ≥ 58"),
        ("Omega(n log n)", "Ω(n log n)"),
        ("n^Omega(1) with L", "n^Ω(1) with L"),
        ("sigma_0 + n_1 h, head_dim=4", "σ_0 + n_1 h, head_dim=4"),
        ("a\x1b[31mb\x07", "a [31mb "),
    ],
)
def test_formulas_are_set(text: str, said: str) -> None:
    assert notation.formula(text) == said


@given(st.text())
def test_any_text_becomes_safe_html(text: str) -> None:
    html = Document(Line(text)).html(notation.formula)
    inside = html.removeprefix("<p").partition(">")[2].removesuffix("</p>")
    allowed = (
        r'/?(?:b|code)>|b class="\w+">|br>|a href="https://arxiv\.org/abs/\d{4}\.\d{4,5}">|/a>'
    )
    assert not re.search(rf"<(?!{allowed})", inside)


def test_sources_are_links() -> None:
    assert (
        Document(Line("arXiv 2602.01763, Lemma 2.2")).html()
        == '<p><a href="https://arxiv.org/abs/2602.01763">arXiv 2602.01763</a>, Lemma 2.2</p>'
    )


@each(
    "value, text",
    [
        ("0.00000197049131661", "1.97e-06"),
        ("[22.1807097779 +/- 3e-11]", "22.2"),
        ("0.5", "0.5"),
        ("5f" * 32, "5f" * 8),
        ([1, 2], "1, 2"),
        ([1] * 13, "13 entries"),
        (True, "yes"),
    ],
)
def test_values_of_records_are_short(value: object, text: str) -> None:
    assert said(value) == text


def test_numbers_are_written_out_up_to_24_digits() -> None:
    assert notation.number(59_695_580_808) == "59,695,580,808"
    assert notation.number(10**23 + 7) == f"{10**23 + 7:,}"
    assert notation.number(64_415 * 10**21) == "about 6.4415 x 10^25"
    assert notation.number(2**20_000) == "about 2^20,000"
    assert [notation.number(x) for x in (True, False, None, "x", -1200)] == [
        "yes",
        "no",
        "-",
        "x",
        "-1,200",
    ]


def test_names_for_people() -> None:
    keys = ("III", "I'", "Ye26-1.1", "retrieval", "none", "")
    names = ["Theorem III", "Theorem I'", "[Ye26, Theorem 1.1]", "construction: retrieval", "", ""]
    assert [theorem_name(key) for key in keys] == names
    labels = {
        "cache_bits": "cache bits",
        "n_1": "n_1",
        "sigma_0": "sigma_0",
        "from_sigma_1": "from sigma_1",
        "from_n_1": "from n_1",
        "off_target_mass": "off target mass",
    }
    assert {key: notation.label(key) for key in labels} == labels


# Prompts


def test_short_prompts_are_shown_whole() -> None:
    table = aligned([[5, 6, 7], [5, 9]], ["first", "second"])
    assert table.columns == ["place", "1", "2", "3"]
    assert table.rows == [["first", "5", "[6]", "[7]"], ["second", "5", "[9]", "[-]"]]
    assert aligned([], []).rows == []


def test_long_prompts_keep_their_ends_and_differences() -> None:
    second = [0] * 4096
    second[2000] = 1
    table = aligned([[0] * 4096, second], ["first", "second"])
    kept = [
        *range(1, 7),
        "1,991 left out",
        *range(1998, 2005),
        "2,088 left out",
        *range(4093, 4097),
    ]
    assert table.columns == ["place", *(k if isinstance(k, str) else f"{k:,}" for k in kept)]


@given(st.integers(1, 500), st.sets(st.integers(0, 499)))
def test_no_token_and_no_difference_is_lost(length: int, places: set[int]) -> None:
    first = [0] * length
    second = [int(i in places) for i in range(length)]
    table = aligned([first, second], ["first", "second"])
    folds = [re.findall(r"\d+", name) for name in table.columns if "left out" in name]
    shown = len(table.columns) - 1 - len(folds)
    assert shown + sum(int(fold[0]) for fold in folds) == length
    marked = sum(cell.startswith("[") for cell in table.cells[0])
    hidden = sum(int(fold[1]) for fold in folds if len(fold) > 1)
    assert marked + hidden == len({i for i in places if i < length})


def test_every_chart_is_told_in_words(page: Page, html: str) -> None:
    drawn = [attrs for tag, attrs in page.tags if tag == "div" and attrs.get("role") == "img"]
    assert len(drawn) == html.count("<figure>")
    for attrs in drawn:
        words = attrs["aria-label"] or ""
        assert attrs["role"] == "img"
        assert words.startswith(("accuracy over n. ", "memory over "))
    told = [attrs["aria-label"] or "" for attrs in drawn]
    assert any("from n = 58 on" in words for words in told)
    assert all("median " in words or "needed: " in words for words in told)


def test_stacks_are_compared_at_one_n(html: str) -> None:
    """The largest at which all of a column were trained."""
    body = fake_bundle()
    seen = view(body)
    assert seen.shared == {"eva": 256, "twosum": 256, "seqcomp": 258}
    cell = seen.cells["sparse", "eva"]
    largest = cell.trained_at(256)
    assert largest is not None
    (raw,) = [c for c in body["cells"] if (c["row"], c["column"]) == ("sparse", "eva")]
    raw["records"].remove(largest.digest)
    assert view(body).shared["eva"] == 64
    assert html.count('<th scope="col">n = 256</th>') == 2
    # of 2,048 answers all are right, or all but one
    assert tuple(
        map(format_share, (Fraction(1), Fraction(2047, 2048), Fraction(31249, 100_000)))
    ) == (
        "100.0 %",
        "99.9 %",
        "31.2 %",
    )


def test_budget_in_words() -> None:
    words = budget_words(
        {"steps": 2000, "steps_done": [800, 2000], "batch": 64, "parameters": 52480}
    )
    assert re.findall(r"[\d,]*\d", words) == ["2,000", "800", "2,000", "64", "52,480"]
    assert budget_words({}) == ""
    asked = {"optimiser": "muon", "learning_rate": 0.003, "curriculum": ["n=4@100"], "longer": []}
    assert [one.split()[-1] for one in budget_words(asked).split("; ")] == [
        "muon",
        "0.003",
        "n=4@100",
    ]


def with_ends() -> dict[str, Any]:
    """A bundle of one cell, whose second seed diverged and whose others read longer prompts."""
    body = one_cell()
    (cell,) = body["cells"]
    digest = next(d for d in cell["records"] if body["records"][d]["kind"] == "measurement")
    record = from_envelope(body["records"].pop(digest))
    assert isinstance(record, Measurement)
    counts = [1900, 0, 31]
    told = replace(
        record,
        correct=(record.correct[0], 0, record.correct[2]),
        budget=record.budget | {"stopped": ["solved", "diverged", "steps"]},
        longer=(
            {
                "task": "eva:n=99,V=64",
                "chance": "1/64",
                "correct": counts,
                "intervals": [list(wilson(count, 2000)) for count in counts],
            },
        ),
        repeats="eva has few prompts & training drew them",
    )
    body["records"][told.digest] = told.envelope()
    cell["records"] = [told.digest if one == digest else one for one in cell["records"]]
    cell["trained"][0]["diverged"] = 1
    return body


def test_seeds_that_diverged_and_longer_prompts_are_shown(html: str) -> None:
    body = with_ends()
    page = render_html(body)
    assert len(re.findall(r"0\.00 % \([^)]*\) diverged", page)) == 1
    assert "eva:n=99,V=64, longer than trained" in page
    # 1,900 of 2,000 with its interval: from 0.9396 to 0.9588, rounded outward
    assert "95.00 % (93.9 to 95.9)" in page
    assert "few prompts &amp; training" in page
    (cell,) = view(body).cells.values()
    assert "(1 diverged)" in cell.training
    # records without them have no such column
    assert "longer than trained" not in html


# Real models and the terminal


def printed(body: dict[str, Any], *, width: int = 100) -> str:
    return results_document(body).text(width)


def test_the_terminal_shows_the_same_table() -> None:
    text = printed(fake_bundle(), width=100)
    assert max(map(len, text.splitlines())) <= 100
    for found in (
        "FAILS  P W M",
        "SOLVABLE  P . M",
        "OPEN  . . M",
        "n >= 58",
        "n >= 3,052",
        "Omega(n log n)",
        "hybrid",
        "L-SeqComp",
    ):
        assert found in text, found
    assert text.count("FAILS") == 8
    assert text.isascii()


def test_a_narrow_terminal_is_not_overrun() -> None:
    assert max(map(len, printed(fake_bundle(), width=72).splitlines())) <= 72


def test_terminal_text_is_not_markup() -> None:
    body = one_cell()
    body["cells"][0]["number"] = "[bold]x[/bold] \x1b[2J"
    text = printed(body)
    assert "[bold]x[/bold]" in text
    assert "\x1b[2J" not in text


def test_a_stack_is_not_said_to_fail_by_a_verdict_on_another() -> None:
    body = fake_bundle()
    cell = view(body).cells["sparse", "eva"]
    assert cell.failing is None
    other = replace(cell.verdicts[0], architecture="full", status="FAILS", n=5)
    body["records"][other.digest] = other.envelope()
    (raw,) = [c for c in body["cells"] if (c["row"], c["column"]) == ("sparse", "eva")]
    raw["records"].append(other.digest)
    assert view(body).cells["sparse", "eva"].failing is None
    own = view(body).cells["linear", "eva"].failing
    assert own is not None
    assert own.n == 58
