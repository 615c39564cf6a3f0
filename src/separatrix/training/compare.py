"""Which stacks are compared, and what differs between their trainings beside the stack: whoever
compares two reads that first. Needs no torch.
"""

from __future__ import annotations

from typing import Any

from separatrix.training.flops import training_flops
from separatrix.training.run import Run

APART = 0.03
"""Parameters and operations of two stacks may differ by this share of the larger and count as
equal: sizes are whole numbers.
"""


BESIDE = ("architecture", "hidden", "seed", "learning_rate", "weight_decay", "formats")
"""Fields in which two stacks may differ and be compared at equal budgets: the stack, the hidden
units that even its parameters out, what is chosen for each stack anew, and further tests.
"""


def unequal(one: Run, parameters: int, other: Run, others: int) -> list[str]:
    """In what two trainings of models of so many parameters differ that a comparison of their
    stacks takes to be equal, in words: "steps 1,000 and 2,000"; empty where nothing does. Raises
    SizeError for fewer parameters than a model has.
    """
    found: list[str] = []
    if _apart(parameters, others):
        found.append(f"parameters {parameters:,} and {others:,}")
    flops = training_flops(one, parameters), training_flops(other, others)
    if _apart(*flops):
        found.append(f"FLOPs {flops[0]:.3g} and {flops[1]:.3g}")
    # of all prompts that a training may take, whether or not it ends early
    tokens = [
        run.batch * sum(count * task.length for task, count in run.stretches)
        for run in (one, other)
    ]
    if tokens[0] != tokens[1]:
        found.append(f"tokens {tokens[0]:,} and {tokens[1]:,}")
    first = one.canonical().to_json()
    second = other.canonical().to_json()
    return found + [
        f"{name} {_said(first[name])} and {_said(second[name])}"
        for name in first
        if name not in BESIDE and first[name] != second[name]
    ]


def _apart(one: int, other: int) -> bool:
    return abs(one - other) > APART * max(one, other)


def _said(value: Any) -> str:
    if isinstance(value, list):
        return " ".join(value) or "none"
    return f"{value:,}" if type(value) in (int, float) else str(value)
