"""What differs between two trainings whose stacks are compared."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from support.each import each

from separatrix.training.compare import APART, unequal
from separatrix.training.run import Run

FULL = Run(
    architecture="full*2 @ heads=1, head_dim=16",
    task="parity:n=16",
    seed=0,
    steps=100,
    batch=8,
    width=16,
    hidden=32,
)
LINEAR = replace(FULL, architecture="linear*2 @ heads=1, head_dim=16", seed=5, learning_rate=0.01)
PARAMETERS = (3 + 17) * 16 + 2 * (4 * 16 * 16 + 2 * 16 * 32 + 48) + 5 * 16 + 2 * 17
"""By hand: embeddings of 3 tokens and 17 places, two layers of four maps and an MLP, five norms, a
head of 2 answers.
"""


def test_equal_budgets() -> None:
    other = replace(FULL, seed=5, learning_rate=0.01, weight_decay=0.0)
    assert unequal(FULL, PARAMETERS, other, PARAMETERS) == []
    # a few parameters more or less are taken for equal
    near = int(PARAMETERS * (1 + APART / 2))
    assert unequal(FULL, PARAMETERS, other, near) == []
    # a mechanism may mix tokens with more operations or fewer, and that is told
    (said,) = unequal(FULL, PARAMETERS, LINEAR, PARAMETERS)
    assert said.startswith("FLOPs ")


@each(
    "change, said",
    [
        ({"steps": 200}, {"steps 100 and 200", "tokens 12,800 and 25,600"}),
        ({"batch": 16}, {"batch 8 and 16", "tokens 12,800 and 25,600"}),
        ({"optimiser": "adamw"}, {"muon and adamw"}),
        ({"seconds": 5.0}, {"seconds 0.0 and 5.0"}),
        ({"curriculum": ("n=8@50",)}, {"curriculum none and n=8@50", "tokens 12,800 and 9,600"}),
        ({"longer": ("n=32",)}, {"longer none and n=32"}),
        ({"task": "parity:n=17"}, {"task parity:n=16 and parity:n=17", "tokens 12,800 and 13,600"}),
    ],
)
def test_each_difference_is_told(change: dict[str, Any], said: set[str]) -> None:
    found = unequal(FULL, PARAMETERS, replace(LINEAR, **change), PARAMETERS)
    told = [one for one in found if not one.startswith("FLOPs")]
    assert len(told) == len(said)
    assert all(any(part in one for one in told) for part in said)


def test_more_parameters_take_more_operations() -> None:
    more = 2 * PARAMETERS
    found = unequal(FULL, PARAMETERS, replace(LINEAR, hidden=100), more)
    assert found[0] == f"parameters {PARAMETERS:,} and {more:,}"
    assert found[1].startswith("FLOPs ")
    assert len(found) == 2
