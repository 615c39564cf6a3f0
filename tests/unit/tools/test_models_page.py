"""tools/models.py: docs/models.md is what the cards of all presets say."""

from __future__ import annotations

from types import ModuleType

import pytest
from support.console import ROOT
from support.tools import loaded

from separatrix.cards.facts import ASKED
from separatrix.stacks.architecture.released import PRESETS

PAGE = (ROOT / "docs" / "models.md").read_text(encoding="utf-8")


@pytest.fixture(scope="module")
def tool() -> ModuleType:
    return loaded("models")


def row_of(name: str) -> list[str]:
    (line,) = [line for line in PAGE.splitlines() if line.startswith(f"| {name} |")]
    return [cell.strip() for cell in line.strip("|").split("|")]


def test_every_preset_has_a_row_and_a_pattern() -> None:
    patterns = [row_of(name)[-1] for name in PRESETS]
    for letter in set(patterns):
        assert int(row_of(letter)[1]) == patterns.count(letter)
        assert len(row_of(letter)) == 2 + len(ASKED)


@pytest.mark.parametrize("name", ["qwen3-next-80b", "recurrentgemma-2b", "deepseek-v3.2"])
def test_a_row_is_what_the_card_says(tool: ModuleType, name: str) -> None:
    (facts,) = tool.cards([name]).values()
    cells = row_of(name)
    headings = row_of("model")
    for heading, cell in zip(headings[1:-1], cells[1:-1], strict=True):
        assert cell == tool.FACTS[heading](facts)
    assert tuple(row_of(cells[-1])[2:]) == tool.statuses(facts)


def test_a_fact_tells_apart_by_its_entropy(tool: ModuleType) -> None:
    assert tool.bits("aaaa") == 0
    assert tool.bits("abcd") == 2
    assert tool.bits("aabb") == 1


@pytest.mark.slow
def test_the_page_is_written_anew_the_same(tool: ModuleType) -> None:
    assert tool.page(tool.cards(list(PRESETS))) == PAGE
