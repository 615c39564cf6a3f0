"""No card answers what has no room at its context, at either end of contexts."""

from __future__ import annotations

import pytest

from separatrix.cards import card_facts
from separatrix.cards.facts import rows_of
from separatrix.cli.main import run
from separatrix.core.numbers.amounts import LONGEST_CONTEXT
from separatrix.stacks.architecture.resolve import resolve
from separatrix.tasks import parse_task


@pytest.mark.parametrize("stack", ["full", "full*12", "gdn*2", "mlp*3", "window(size=1)*2 + full"])
@pytest.mark.parametrize("context", [1, 2, 3, 4, 5, 6, 11, 12, 20, 64])
def test_what_is_asked_fits_in_the_context(stack: str, context: int) -> None:
    """What is asked and what is said to fail; of Eva, whose question may be the next token, too."""
    model = resolve(stack)
    for row in card_facts(model, context).table:
        for line in row.lines:
            if line.status == "OPEN":
                continue
            assert line.verdict is not None, row.asks
            assert parse_task(line.verdict.task).length <= context, (row.asks, line.verdict.task)


def test_a_token_has_room_for_nothing(capsys: pytest.CaptureFixture[str]) -> None:
    assert card_facts(resolve("full*2"), 1).table == rows_of(resolve("full*2"), [])
    assert run(["analyze", "full*2", "--context", "1"]) == 0
    assert "room in 1 token." in capsys.readouterr().out
    assert run(["compare", "full*2", "gdn", "--context", "1"]) == 0
    assert run(["analyze", "full*2", "--context", "1", "--why", "recall"]) == 2


@pytest.mark.parametrize("stack", ["full", "gdn*2", "qwen3-next-80b"])
def test_the_longest_context_is_asked_about_as_long_prompts(stack: str) -> None:
    """No modulus goes beyond 10^12, where 1,024 n would."""
    for line in card_facts(resolve(stack), LONGEST_CONTEXT).lines:
        if line.key in ("2sum", "pairs") and line.status == "SOLVABLE":
            assert line.verdict is not None
            assert parse_task(line.verdict.task).length == LONGEST_CONTEXT


def test_what_is_missing_is_named() -> None:
    for stack, context in (("qwen3-next-80b", 10**12), ("full @ positions=alibi", 64)):
        rows = {row.key: row for row in card_facts(resolve(stack), context).table}
        assert rows["recall"].status == "OPEN"
        assert "no bound" not in rows["recall"].decides
    sparse = {row.key: row for row in card_facts(resolve("sparse"), 4096).table}
    assert len(sparse["recall"].said) <= 80
