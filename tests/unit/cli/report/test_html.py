"""The HTML report and the terminal table, on a made-up bundle of real records."""

from __future__ import annotations

import copy
import re
import sys
from collections import Counter
from dataclasses import replace
from html.parser import HTMLParser
from importlib.resources import files
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.each import each
from support.report_bundle import fake_bundle

from separatrix import __version__
from separatrix.cards.table.models import DEFAULT_MODELS
from separatrix.cli.report import notation, prompts
from separatrix.cli.report.charts import share_text
from separatrix.cli.report.facts import budget_words
from separatrix.cli.report.html import command, render_html, write_report
from separatrix.cli.report.side_by_side import side_by_side
from separatrix.cli.report.statuses import theorem_name
from separatrix.cli.report.terminal import results_document
from separatrix.cli.report.view import layer_squares, view
from separatrix.core.errors import EvidenceError, MissingExtraError, OutputError
from separatrix.core.evidence.records import Measurement, Verdict, from_envelope
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
    return body | {"models": []}


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
    written = Counter(re.findall(r'<span class="top"><svg.*?</svg>(\w+)<', html))
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
    assert cell[0].count('class="mark present"') == 3
    hollow = re.search(r'<a class="cell open" href="#cell-eva-sparse">.*?</a>', html, re.S)
    assert hollow is not None
    assert "(not proved, not witnessed, measured)" in hollow[0]
    assert hollow[0].count('class="mark present"') == 1


def test_the_table_comes_before_everything_else(html: str) -> None:
    assert (
        html.index('id="table"')
        < html.index('class="panel')
        < html.index('id="models"')
        < html.index('id="check"')
    )


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


def test_the_file_stays_small(html: str) -> None:
    assert len(html.encode()) < 4 << 20


def test_every_chart_is_drawn(html: str) -> None:
    assert html.count("<figure>") == 15 + 8
    assert html.count('<svg xmlns="http://www.w3.org/2000/svg"') == 15 + 8


@pytest.mark.slow
def test_equal_bundles_give_equal_pages() -> None:
    assert render_html(one_cell()) == render_html(copy.deepcopy(one_cell()))


def test_hostile_text_is_escaped_everywhere() -> None:
    body = one_cell()
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
    cell["bound"] |= {"x": HOSTILE, "have_title": HOSTILE, "need_title": HOSTILE}
    cell |= {"stack": HOSTILE, "reach": HOSTILE}
    body |= {"title": HOSTILE, "settings": {HOSTILE: HOSTILE, "models": [{"spec": HOSTILE}]}}
    body["columns"][0] |= {"size_class": HOSTILE, "training": HOSTILE}
    body["rows"][0]["title"] = body["columns"][0]["title"] = HOSTILE
    line = {
        "question": HOSTILE,
        "status": "OPEN",
        "n": HOSTILE,
        "text": HOSTILE,
        "theorem": HOSTILE,
        "record": None,
    }
    model = {
        "name": HOSTILE,
        "spec": HOSTILE,
        "pattern": HOSTILE,
        "context": 8,
        "memory": [[HOSTILE, HOSTILE]],
        "lines": [line],
    }
    body["models"] = [model | {"assumptions": [HOSTILE]}]
    page = Page(render_html(body))
    assert not page.values("src")
    assert not page.values("onerror")
    assert len(page.raw["script"]) == len(honest.raw["script"]) == 1


def test_a_missing_extra_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "jinja2", None)
    with pytest.raises(MissingExtraError, match="'report'"):
        render_html(one_cell())


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
    (lambda body: body["cells"].clear(), "no cell linear x eva"),
    (lambda body: body["cells"].append(body["cells"][0]), "twice"),
    (lambda body: body["cells"][0].update(status="MAYBE"), "MAYBE"),
    (lambda body: body["cells"][0]["records"].append("0" * 64), "000000000000, which is missing"),
    (lambda body: body.pop("settings"), "settings"),
    (lambda body: body["cells"][0].pop("story"), "story"),
    (lambda body: body["cells"][0]["bound"]["need"].pop(), "equally many"),
    (lambda body: body["cells"][0]["bound"]["need"].__setitem__(0, "many"), "no number"),
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
    "text, html",
    [
        ("n >= 58", "n ≥ 58"),
        ("Omega(n log n)", "Ω(n log n)"),
        ("n^Omega(1) with L", "n<sup>Ω(1)</sup> with L"),
        ("n^(2^(-4L-2))", "n<sup>2<sup>-4L-2</sup></sup>"),
        ("(Hdp)^(2^54)", "(Hdp)<sup>2<sup>54</sup></sup>"),
        ("2^16384, 10^12.", "2<sup>16384</sup>, 10<sup>12</sup>."),
        ("N_1^(n_1 r)", "N<sub>1</sub><sup>n<sub>1</sub> r</sup>"),
        ("sigma_0 + n_1 h", "σ<sub>0</sub> + n<sub>1</sub> h"),
        ("n log2 V", "n log<sub>2</sub> V"),
        ("head_dim=4", "head_dim=4"),
        ("1,024 x 16 bits", "1,024 × 16 bits"),
        ("a^ b ^", "a^ b ^"),
        ("x^(open", "x^(open"),
        ("a < b & c", "a &lt; b &amp; c"),
        (
            "arXiv 2602.01763, Lemma 2.2",
            '<a href="https://arxiv.org/abs/2602.01763">arXiv 2602.01763</a>, Lemma 2.2',
        ),
        ("a\x1b[31mb\x07", "a [31mb "),
    ],
)
def test_formulas_are_set(text: str, html: str) -> None:
    assert str(notation.maths(text)) == html


@given(st.text())
def test_any_text_becomes_safe_html(text: str) -> None:
    html = str(notation.maths(text))
    assert not re.search(
        r"<(?!/?(?:sup|sub)>|a href=\"https://arxiv\.org/abs/\d{4}\.\d{4,5}\">|/a>)", html
    )


def test_enclosures_read_as_powers_of_ten() -> None:
    assert (
        str(notation.enclosure("[9.53e-7 +/- 4e-13]"))
        == "9.53 × 10<sup>-7</sup> ± 4 × 10<sup>-13</sup>"
    )
    assert str(notation.enclosure("0.4999981")) == "0.4999981"
    assert str(notation.enclosure("1.5e+08")) == "1.5 × 10<sup>8</sup>"


def test_bounds_are_shortened_with_all_digits_at_hand() -> None:
    assert (
        str(notation.bound("0.00000197049131661"))
        == '<span title="0.00000197049131661">1.970 × 10<sup>-6</sup></span>'
    )
    assert (
        str(notation.bound("[22.1807097779 +/- 3e-11]"))
        == '<span title="[22.1807097779 +/- 3e-11]">22.18</span>'
    )
    assert str(notation.bound("0.5")) == "0.5"
    assert str(notation.bound("i_1")) == "i<sub>1</sub>"


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
    places = prompts.align([[5, 6, 7], [5, 9, 7]])
    assert places == [prompts.Place(0, (5, 5)), prompts.Place(1, (6, 9)), prompts.Place(2, (7, 7))]
    assert [isinstance(p, prompts.Place) and p.differs for p in places] == [False, True, False]
    assert prompts.align([[1], [1, 2]])[1] == prompts.Place(1, (None, 2))
    assert prompts.align([]) == []


def test_long_prompts_keep_their_ends_and_differences() -> None:
    first = [0] * 4096
    second = [0] * 4096
    second[2000] = 1
    shown = prompts.align([first, second])
    kept = [p.position for p in shown if isinstance(p, prompts.Place)]
    assert kept == [*range(6), *range(1997, 2004), *range(4092, 4096)]
    assert [p for p in shown if isinstance(p, prompts.Fold)] == [
        prompts.Fold(1991, 0),
        prompts.Fold(2088, 0),
    ]


@given(st.integers(1, 500), st.sets(st.integers(0, 499)))
def test_no_token_and_no_difference_is_lost(length: int, places: set[int]) -> None:
    first = [0] * length
    second = [int(i in places) for i in range(length)]
    shown = prompts.align([first, second])
    assert sum(p.positions if isinstance(p, prompts.Fold) else 1 for p in shown) == length
    differing = sum(p.differing if isinstance(p, prompts.Fold) else p.differs for p in shown)
    assert (
        differing == prompts.differences([first, second]) == len({i for i in places if i < length})
    )


def test_every_chart_is_told_in_words(page: Page, html: str) -> None:
    drawn = [attrs for tag, attrs in page.tags if tag == "div" and attrs.get("class") == "drawn"]
    assert len(drawn) == html.count("<figure>")
    for attrs in drawn:
        words = attrs["aria-label"] or ""
        assert attrs["role"] == "img"
        assert words.startswith(("Accuracy after training: at n = ", "Bits against "))
    told = [attrs["aria-label"] or "" for attrs in drawn]
    assert any("the size at which failure is proved, n = 58" in words for words in told)
    assert any("Theorem A draws no line here" in words for words in told)
    assert any("(Theorem A)" in words for words in told)


def test_stacks_of_one_size_stand_side_by_side() -> None:
    sides = {side.column["key"]: side for side in side_by_side(view(fake_bundle()))}
    assert list(sides) == ["eva", "twosum", "seqcomp"]
    for side in sides.values():
        assert [cell.row["key"] for cell, _ in side.lines] == [
            *("full", "linear", "loglinear", "sparse", "hybrid")
        ]
        assert all(len(reached) == len(side.sizes) for _, reached in side.lines)
    # of 2,048 answers all are right, or all but one
    assert (share_text(1.0), share_text(2047 / 2048), share_text(0.31249)) == (
        "100.0 %",
        "99.9 %",
        "31.2 %",
    )


def test_the_footer_has_version_and_command(html: str) -> None:
    foot = html[html.index("<footer>") :]
    said = (
        f"Separatrix {__version__} with <code>separatrix reproduce --quick --config qwen3-next-80b"
    )
    assert said in foot
    usual = fake_bundle()
    usual["settings"] = {
        "kind": "full",
        "seed": 7,
        "models": [source.plain() for source in DEFAULT_MODELS],
    }
    assert command(view(usual)) == "separatrix reproduce --seed 7"
    usual["settings"]["models"] = [{"spec": "gdn*3 + full"}, {"config": "{}"}]
    assert command(view(usual)) == (
        "separatrix reproduce --seed 7 --config 'gdn*3 + full' --config config.json"
    )


def test_closed_cells_are_not_printed() -> None:
    style = (files("separatrix.cli.report") / "style.css").read_text(encoding="utf-8")
    printed = style[style.index("@media print") :]
    assert ".panel:target {" in printed
    assert ".panel { display: block" not in printed


def test_budget_in_words() -> None:
    assert (
        budget_words({"steps": 2000, "steps_done": [800, 2000], "batch": 64, "parameters": 52480})
        == "800, 2,000 of at most 2,000 steps; batch 64; 52,480 parameters"
    )
    assert budget_words({}) == ""
    assert (
        budget_words({"optimiser": "muon", "learning_rate": 0.003, "curriculum": ["n=4@100"]})
        == "Muon at 0.003; first n=4@100"
    )


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
    assert page.count("<b>diverged</b>") == 1
    assert "the same on longer prompts than trained" in page
    assert "eva:n=99,V=64, chance 1/64" in page
    # 1,900 of 2,000 with its interval: 95 %, from 0.9396 to 0.9588
    low, high = (float(end) * 100 for end in wilson(1900, 2000))
    assert f'<b>95.00&nbsp;%</b> <span class="quiet">({low:.2f}&nbsp;% – {high:.2f}&nbsp;%)' in page
    assert "eva has few prompts &amp; training drew them" in page
    (cell,) = view(body).cells.values()
    assert "(1 diverged)" in cell.training
    # records without them have no such column
    assert "on longer prompts" not in html


# Real models and the terminal


def test_patterns_are_drawn_by_kind(html: str) -> None:
    squares = layer_squares(["g", "f", "w", "-", "f|g", "Z"])
    assert [s.kind for s in squares] == ["recurrent", "full", "window", "mlp", "mixed", "other"]
    assert squares[4].title == "full attention beside Gated DeltaNet"
    assert "36 Gated DeltaNet" in html
    assert "12 full attention" in html
    assert html.count('<li class="square full"') == 12


def printed(body: dict[str, Any], *, width: int = 100, ascii_only: bool = False) -> str:
    return results_document(body, ascii_only=ascii_only).text(width)


def test_the_terminal_shows_the_same_table() -> None:
    text = printed(fake_bundle(), width=100)
    assert max(map(len, text.splitlines())) <= 100
    for found in (
        "✗ FAILS  ■ ◆ ●",
        "✓ SOLVABLE  ■ ◇ ●",
        "? OPEN  □ ◇ ●",
        "n ≥ 58",
        "n ≥ 3,052",
        "Ω(n log n)",
        "hybrid",
        "L-SeqComp",
    ):
        assert found in text, found
    assert text.count("FAILS") == 8


def test_a_terminal_without_unicode_gets_ascii() -> None:
    text = printed(fake_bundle(), ascii_only=True)
    assert text.isascii()
    for found in ("x FAILS  P W M", "+ SOLVABLE  P . M", "n >= 58"):
        assert found in text, found


def test_a_narrow_terminal_is_not_overrun() -> None:
    assert max(map(len, printed(fake_bundle(), width=72).splitlines())) <= 72


def test_terminal_text_is_not_markup() -> None:
    body = one_cell()
    body["cells"][0]["number"] = "[bold]x[/bold] \x1b[2J"
    text = printed(body)
    assert "[bold]x[/bold]" in text
    assert "\x1b[2J" not in text
