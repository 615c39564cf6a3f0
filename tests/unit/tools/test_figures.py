"""tools/figures.py: the figures of docs/theory.md and README, drawn from verdicts."""

from __future__ import annotations

import re
from types import ModuleType

import pytest
from support.console import ROOT
from support.tools import loaded

SCRIPT = ROOT / "tools" / "figures.py"
LARGEST = 150_000
pytestmark = pytest.mark.skipif(not SCRIPT.exists(), reason="belongs to a checkout")


@pytest.fixture(scope="module")
def figures() -> ModuleType:
    return loaded("figures")


def test_the_page_shows_every_figure(figures: ModuleType) -> None:
    names = ("docs/theory.md", "docs/models.md", "README.md")
    pages = [(ROOT / name).read_text(encoding="utf-8") for name in names]
    shown = re.findall(r"!\[[^\]]{40,}\]\((?:docs/)?images/(\w+)\.svg\)", "".join(pages))
    assert sorted(shown) == sorted(figures.FIGURES)
    for name in shown:
        picture = ROOT / "docs" / "images" / f"{name}.svg"
        assert picture.read_text(encoding="utf-8").startswith("<svg")
        assert picture.stat().st_size < LARGEST


def test_points_are_verdicts(figures: ModuleType) -> None:
    """By hand: 64 bits of state fail equality from 65 bits on; a bf16 state fails parity from 2
    * 2^16 + 1 on.
    """
    assert figures.first_failure("linear @ heads=1, head_dim=1", "equality:n=2", "I") == 65
    alone = "gla @ heads=1, head_dim=16, p16, positions=none"
    assert figures.first_failure(alone, "parity:n=2", "P") == 131_073
    assert figures.first_failure("full @ heads=1, head_dim=16", "eva:n=2", "I'") is None


def test_borders_are_those_of_theorems(figures: ModuleType) -> None:
    """By hand: 1,474,560 bits of RecurrentGemma's states and what its windows reach over fail from
    98,507 facts of one token on.
    """
    known, never = figures.borders(figures.preset("recurrentgemma-2b"), 256_000)
    assert (never, known < never) == (98_507, True)


@pytest.mark.slow
def test_lines_are_drawn_with_their_labels(figures: ModuleType) -> None:
    line = figures.Line("a line", figures.curve([(1, 10), (10, None), (100, 1000)]), "#123456")
    assert line.points == [(1, 10.0), (100, 1000.0)]
    axes = figures.Axes("bits", "n", 10, 1e4)
    drawing = figures.chart("Title", ["below"], axes, [line], levels=[(100.0, "here")])
    assert any(getattr(mark, "points", None) == line.points for mark in drawing.marks)
    for said in ("a line", "#123456", "Title", "below", "here", "bits"):
        assert said in drawing.svg


def test_an_unknown_figure_is_named(figures: ModuleType) -> None:
    with pytest.raises(SystemExit, match="'dept'"):
        figures.main(["dept"])
