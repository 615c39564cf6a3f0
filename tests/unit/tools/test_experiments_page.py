"""tools/experiments.py: docs/experiments.md is what the recorded results give."""

from __future__ import annotations

import re
from types import ModuleType

import pytest
from support.console import ROOT
from support.tools import loaded

from separatrix.experiments import EXPERIMENTS
from separatrix.experiments.writing import figure_name
from separatrix.practice.table import names, read
from separatrix.report.markdown import plain

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
    text = PAGE.read_text(encoding="utf-8")
    assert tool.page(text) == text, "run `make experiments`"


def test_every_experiment_has_its_section_and_its_findings() -> None:
    """A quick look at what the slow test compares as a whole."""
    text = PAGE.read_text(encoding="utf-8")
    for name, one in EXPERIMENTS.items():
        assert f"\n## `{name}`: {one.title}\n" in text
        table = read(name)
        if table is not None:
            assert table.provenance.commit[:10] in text
            assert plain(one.question) in plain(text)


def test_every_figure_is_there_and_told_in_words() -> None:
    shown = [match["file"] for match in IMAGE.finditer(PAGE.read_text(encoding="utf-8"))]
    folder = ROOT / "docs" / "images"
    assert sorted(shown) == sorted(path.name for path in folder.glob("experiment-*.svg"))
    for file in shown:
        picture = folder / file
        assert picture.read_text(encoding="utf-8").startswith("<svg")
        assert picture.stat().st_size < LARGEST
    for name in names():
        assert any(file.startswith(figure_name(name, "")) for file in shown), name


def test_a_page_without_its_mark_is_refused(tool: ModuleType) -> None:
    with pytest.raises(SystemExit, match="lacks the line"):
        tool.page("# Experiments\n")
