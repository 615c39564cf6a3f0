"""Pages: their head, their table, their contrasts, their text."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from fractions import Fraction
from pathlib import Path

import pytest
from support.toy_experiment import PAGE, WORDS, ended, table, toy

from separatrix.core.errors import CheckFailed, SeparatrixError
from separatrix.findings import experiment
from separatrix.findings.base import Contrast, Picture
from separatrix.findings.page import contrasts, markdown, section, text
from separatrix.findings.picture import write_pictures
from separatrix.findings.results import Cell, Results, checked_lines, of_lines, of_table

SOONER = tuple(range(100, 180, 10))
LATER = tuple(range(500, 580, 10))


def test_a_grid_and_an_axis_are_cells(tmp_path: Path) -> None:
    found = toy(tmp_path).cells()
    assert [one.labels["cell"] for one in found] == [
        "full, eva:n=2,V=4",
        "full, eva:n=4,V=4",
        "linear, eva:n=2,V=4",
        "linear, eva:n=4,V=4",
    ]
    assert all(len(one.runs) == 2 for one in found)
    assert {one.runs[0].weight_decay for one in found[2:]} == {0.0}
    assert {one.runs[0].steps for one in found} == {3}


@pytest.mark.parametrize(
    ("old", "new", "told"),
    [
        ("---\ntitle", "title", "a page begins with"),
        ("title: F", "titel: F", "Did you mean 'title'?"),
        ("question: H", "lines: true\nquestion: H", "unknown key 'lines'"),
        ("question: How many facts does a small state keep?", "", "title and question"),
        ("contrasts:\n", "contrasts: [[full, linear, stepps]]\n", "of one of"),
    ],
)
def test_a_wrong_head_is_told(old: str, new: str, told: str, tmp_path: Path) -> None:
    page = PAGE.replace("seeds: 1\n", "seeds: 1\ncontrasts:\n")
    assert old in page
    with pytest.raises(SeparatrixError, match=told):
        toy(tmp_path, page.replace(old, new, 1))


def test_a_wrong_field_of_the_grid_is_told(tmp_path: Path) -> None:
    with pytest.raises(SeparatrixError, match="'steps'"):
        toy(tmp_path, PAGE.replace("steps: 3", "stepz: 3")).cells()


def test_the_table_has_every_seed_and_grey_is_grey() -> None:
    found = markdown(of_table(table({"a": (100, 120, None), "b": (90, 95, 100)})))
    first, second = found.splitlines()[2:]
    assert "| a | 2 of 3 seeds (9 to 100 %) | 120 (from 100 on) |" in first
    assert "100, 120, not in 4,000" in first
    assert "| b | 3 of 3 seeds (29 to 100 %) | 95 (90 to 100) |" in second
    grey = markdown(of_table(table({"a": (100, None)}, steps=399))).splitlines()[2]
    assert "<i>" in grey
    assert "in 399 steps (1 of 2)" in grey


def test_contrasts_are_paired_and_adjusted() -> None:
    """8 of 8 in one direction: 1/128, and twice that of two that are named."""
    results = of_table(table({"one": LATER, "two": SOONER, "three": (*SOONER[:-1], 105)}))
    first, second = contrasts([Contrast("one", "two"), Contrast("two", "three")], results)
    assert first.p == Fraction(2, 128)
    assert first.said.endswith("two is ahead (p = 0.016)")
    assert (first.ahead, second.said.startswith("no difference shown (p = ")) == ("two", True)
    (one,) = contrasts([Contrast("one", "two", "solved")], results)
    assert one.p == 1


def test_holm_is_over_the_contrasts_of_one_question(tmp_path: Path) -> None:
    asked = "contrasts:\n  First: [[one, two]]\n  Second: [[two, three, steps]]\n"
    page = toy(tmp_path, PAGE.replace("seeds: 1\n", f"seeds: 1\n{asked}"))
    assert [one.question for one in page.contrasts] == ["First", "Second"]
    results = of_table(table({"one": LATER, "two": SOONER, "three": (*SOONER[:-1], 105)}))
    first, second = contrasts(page.contrasts, results)
    assert first.p == Fraction(1, 128)
    assert second.told.startswith("two against three: ")
    words = "{{contrasts Second}}\n\n{{table * !t*}}"
    said = text(replace(page, text=words), results, {}).splitlines()
    assert (said[0], len(said)) == (f"- {second.told}", 5)
    assert said[-1].startswith("| one |")


def test_longer_prompts_are_compared_where_both_were_solved() -> None:
    """Eight seeds in one direction: 1/128. A ninth that solved one of the two alone counts not."""
    results = of_table(table({"one": (*SOONER, None), "two": (*LATER, 580)}))

    def longer(name: str, right: Sequence[int]) -> Cell:
        cell = results.cells[name]
        seeds = [
            replace(seed, longer=(n,), longer_right=(n,), longer_due=(1000,))
            for seed, n in zip(cell.seeds, right, strict=True)
        ]
        return replace(cell, seeds=tuple(seeds))

    first, second = longer("one", range(300, 309)), longer("two", [*range(250, 258), 999])
    assert first.at_longest == {n: Fraction(300 + n, 1000) for n in range(8)}
    (found,) = contrasts([Contrast("two", "one", "longer")], Results.of([first, second]))
    assert (found.p, found.ahead) == (Fraction(1, 128), "one")
    assert "25.4 % at the longest size" in markdown(Results.of([second]))
    lost = replace(first, seeds=(ended(0, None), *first.seeds[1:]))
    (found,) = contrasts([Contrast("two", "one", "longer")], Results.of([lost, second]))
    assert found.said == "open: 7 seeds solved both"


def test_parameters_that_differ_are_said_beside_what_is_shown() -> None:
    """12,345 of one, and 2 % more of the other, or hardly."""
    for more, told in ((246, "(p = 0.008)"), (247, "(p = 0.008; 12,592 and 12,345 parameters)")):
        kept = table({"one": LATER, "two": SOONER})
        first, rate = kept.rows[0], kept.rows[0].rates[0]
        trials = tuple(replace(x, parameters=x.parameters + more) for x in rate.trials)
        larger = replace(first, rates=(replace(rate, trials=trials),))
        results = of_table(replace(kept, rows=(larger, kept.rows[1])))
        (found,) = contrasts([Contrast("one", "two")], results)
        assert found.said.endswith(told)


def test_a_sentence_fails_where_the_other_cell_is_ahead() -> None:
    """As strongly shown as before, the other way round."""
    page = replace(
        experiment("study"),
        contrasts=(Contrast("one", "two"),),
        text='- One is ahead. {{p("one", "two") <= 0.05}}',
    )
    assert text(page, of_table(table({"one": SOONER, "two": LATER})), {}) == "- One is ahead."
    with pytest.raises(CheckFailed, match="do not bear"):
        text(page, of_table(table({"one": LATER, "two": SOONER})), {})


def test_ahead_is_who_the_test_says_and_not_who_solved_more_seeds() -> None:
    """Nine of ten sooner by more than the tenth is later: 2 of 1,024 ways have a sum as far from 0,
    that of no pair exchanged and that of all, and two more where the tenth alone is.
    """
    sooner = (*range(200, 290, 10), None)
    later = tuple(range(500, 600, 10))
    (found,) = contrasts([Contrast("one", "two")], of_table(table({"one": sooner, "two": later})))
    assert found.p == Fraction(4, 1024)
    assert found.said.startswith("shown: one is ahead")
    solved = {"one": SOONER, "two": (None,) * 8}
    (found,) = contrasts([Contrast("two", "one", "solved")], of_table(table(solved)))
    assert found.said.startswith("shown: one is ahead")


@pytest.mark.parametrize(
    ("cells", "told"),
    [
        ({"one": LATER}, "open: two is not trained yet"),
        ({"one": LATER[:7], "two": SOONER}, "open: fewer than 8 seeds"),
        ({"one": (None,) * 8, "two": (*LATER[:7], 1200)}, "open: one: 4,000 steps are less"),
    ],
)
def test_what_is_open_is_said(cells: dict[str, tuple[int | None, ...]], told: str) -> None:
    (found,) = contrasts([Contrast("one", "two")], of_table(table(cells)))
    assert found.p is None
    assert found.said.startswith(told)


def test_settings_and_seeds_that_differ_leave_a_contrast_open() -> None:
    one, two = (table({name: SOONER}, task=f"eva:n={n},V=4") for name, n in (("a", 4), ("b", 5)))
    results = of_table(one.__class__(**{**vars(one), "rows": (*one.rows, *two.rows)}))
    (found,) = contrasts([Contrast("a", "b")], results)
    assert found.said.startswith("open: ")
    assert "different settings" in found.said


def test_the_page_stands_on_its_rows(tmp_path: Path) -> None:
    page = toy(tmp_path, WORDS)
    said = text(page, of_table(table()), {})
    assert said.startswith("Full attention keeps all.\n\n- It solved it with 8 of 8 seeds, in 135")
    assert "full is ahead (p = 0.008)" in said
    whole = section(page, of_table(table()), "From a test.", folder="a/", heading="##")
    for part in ("## `toy`: Facts", "| full |", "(a/experiment-toy-steps.svg)", "- From a test."):
        assert part in whole
    with pytest.raises(CheckFailed, match=r"toy\.md:12: .*the rows do not bear"):
        text(page, of_table(table({"full": (None, 900) * 4, "linear": SOONER})), {})


@pytest.mark.slow
def test_the_studys_page_stands_on_its_rows() -> None:
    """Whatever is trained so far: its claims hold, and its contrasts name four questions."""
    rows = Path(__file__).resolve().parents[3] / "research" / "study" / "rows.jsonl"
    if not rows.exists():
        pytest.skip("belongs to a checkout")
    study = experiment("study")
    results = of_lines(checked_lines(rows))
    assert text(study, results, {})
    found = contrasts(study.contrasts, results)
    assert [*Counter(x.contrast.question for x in found).values()] == [9, 4, 3, 2]


def test_a_page_names_its_pictures(tmp_path: Path) -> None:
    named = "seeds: 1\npictures:\n  one: {title: Both, curves: [full, linear]}\n"
    page = toy(tmp_path, PAGE.replace("seeds: 1\n", named))
    assert page.pictures == {"one": Picture("Both", ("full", "linear"), curves=True)}
    (file,) = write_pictures(page, of_table(table()), tmp_path)
    assert file.name == "experiment-toy-one.svg"
    assert "dashed: linear" in file.read_text(encoding="utf-8")
