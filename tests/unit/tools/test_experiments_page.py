"""tools/experiments.py: docs/experiments.md is what the recorded results give."""

from __future__ import annotations

import re
from dataclasses import replace
from types import ModuleType

import pytest
from support.console import ROOT
from support.practice_tables import row, table, trial
from support.tools import loaded

from separatrix.cards.measured.table import read
from separatrix.core.errors import SpecError
from separatrix.findings import ASKED
from separatrix.findings.results import checked_lines

SCRIPT = ROOT / "tools" / "experiments.py"
PAGE = ROOT / "docs" / "experiments.md"
IMAGE = re.compile(r"!\[(?P<said>[^\]]{40,})\]\(images/(?P<file>[^)]+)\)")
LARGEST = 400_000
pytestmark = pytest.mark.skipif(not SCRIPT.exists(), reason="belongs to a checkout")


@pytest.fixture(scope="module")
def tool() -> ModuleType:
    return loaded("experiments")


@pytest.mark.slow
def test_the_page_is_what_the_results_give(tool: ModuleType) -> None:
    """Of the study, what the lines give that it names: later ones may be there."""
    text = PAGE.read_text(encoding="utf-8")
    assert tool.page(text) == text, "run `make experiments`"


def test_what_was_not_trained_to_the_end_is_named_and_dated() -> None:
    text = PAGE.read_text(encoding="utf-8")
    for name in ASKED:
        table = read(name)
        assert table is not None
        made = table.provenance
        (row,) = [line for line in text.splitlines() if line.startswith(f"| {name} |")]
        assert f"{made.date}, commit {made.commit[:10]}" in row


def test_every_figure_is_there_and_told_in_words() -> None:
    shown = [match["file"] for match in IMAGE.finditer(PAGE.read_text(encoding="utf-8"))]
    folder = ROOT / "docs" / "images"
    assert sorted(shown) == sorted(path.name for path in folder.glob("experiment-*.svg"))
    for file in shown:
        picture = folder / file
        assert picture.read_text(encoding="utf-8").startswith("<svg")
        assert picture.stat().st_size < LARGEST


def test_what_nobody_could_make_again_is_not_recorded(tool: ModuleType) -> None:
    kept = table("toy", row({"n": 1}, {1e-3: [trial(0, 500)]}))
    tool.check_recordable(kept, 1)
    with pytest.raises(SpecError, match="3 of 4 runs failed"):
        tool.check_recordable(kept, 4)
    other = replace(kept, provenance=replace(kept.provenance, commit="unknown"))
    with pytest.raises(SpecError, match="other code trained"):
        tool.check_recordable(other, 1)


def test_a_page_without_its_mark_is_refused(tool: ModuleType) -> None:
    with pytest.raises(SystemExit, match="lacks the line"):
        tool.page("# Experiments\n")


def test_a_cell_is_left_out_until_its_last_seed_is_there(tool: ModuleType) -> None:
    """Those that end first are the quick ones: nine of ten would tell too good a story."""
    name = "recall-gdn-8-1-end-cheap"
    rows = [*checked_lines(tool.ROWS)]
    own = [row for row in rows if row["cell"] == name]
    assert len(own) == 10
    kept = tool.ended(rows)
    assert [row for row in kept if row["cell"] == name] == own
    fewer = [row for row in rows if row is not own[3]]
    assert tool.ended(fewer) == [row for row in kept if row["cell"] != name]
