"""Every preset's card at one of four contexts: what it says is what `judge` says, there and at
other sizes, and comparison, JSON and terminal say the same.
"""

from __future__ import annotations

import pytest

from separatrix.cards import CardFacts, CardLine, card_facts
from separatrix.cli.report.card import card_document, card_json, why_document
from separatrix.cli.report.compare import aligned
from separatrix.stacks.architecture.released import PRESETS
from separatrix.stacks.architecture.resolve import preset
from separatrix.tasks import parse_task
from separatrix.theory import THEOREMS, judge, recheck

pytestmark = pytest.mark.slow

CONTEXTS = (1000, 8192, 10**6, 10**9)


def text(facts: CardFacts) -> str:
    both = card_document(facts) + why_document(facts, "all")
    return " ".join(both.text(100_000).split())


def later_sizes_fail(facts: CardFacts, line: CardLine, name: str) -> None:
    """A theorem that says "from" says FAILS at larger sizes of the same family."""
    record = line.record
    assert record is not None
    if not THEOREMS[line.theorem].larger_fail_too:
        assert line.where.startswith("at ")
        return
    task = parse_task(record.task)
    family = task.family()
    n = task.sizes()[family.grows]
    for larger in (n + 2, 2 * n, 10 * n):
        if larger <= family.largest:
            assert judge(preset(name), family.at(larger))[0].status == "FAILS", (line, larger)


@pytest.mark.parametrize(
    ("name", "context"), [(name, CONTEXTS[i % 4]) for i, name in enumerate(PRESETS)]
)
def test_a_card_says_what_judge_says(name: str, context: int) -> None:
    facts = card_facts(preset(name), context)
    shown = text(facts)
    cells = [row.cells[0] for row in aligned([facts])]
    for line, data in zip(facts.lines, card_json(facts)["verdicts"], strict=True):
        assert line.explain.endswith(".")
        assert data["status"] == line.status
        assert ("bound" in data) == (line.bound is not None)
        assert any(cell.startswith(line.status) for cell in cells)
        assert f"{line.question}: {line.status}" in shown
        if line.verdict is not None:
            assert line.verdict.status == line.status
            assert parse_task(line.verdict.task).length <= context
            recheck(line.verdict)
        if line.status == "FAILS":
            later_sizes_fail(facts, line, name)
        if line.bound is not None and line.bound.verdict is not None:
            assert line.bound.n is not None
            assert line.bound.n > line.bound.asked
            assert parse_task(line.bound.verdict.task).length > context
            recheck(line.bound.verdict)
            later_sizes_fail(facts, line, name)
