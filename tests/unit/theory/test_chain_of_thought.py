"""Composition with a chain of thought by one full layer: how much room its head needs, by hand."""

from __future__ import annotations

import pytest

from separatrix.architecture import Architecture
from separatrix.tasks import parse_task
from separatrix.theory.solves.chain_of_thought import Thought

TASKS = [
    ("seqcomp:L=2,m=4,n_1=2", 3 + 2 + 1, 3),
    ("seqcomp:L=3,m=4,n_1=2,n_2=2", 4 + 3 + 1, 4),
    ("seqcomp:L=2,m=5,n_1=1", 3 + 2 + 1, 3),
]
"""Task, key dimensions (bits of N_{L-1} values, L tags and one more) and value dimensions."""


@pytest.mark.parametrize(("task", "keys", "values"), TASKS)
def test_the_room_it_takes(task: str, keys: int, values: int) -> None:
    def solved(head_dim: int, value_dim: int) -> bool:
        stack = Architecture.parse(f"full @ heads=1, head_dim={head_dim}, value_dim={value_dim}")
        return Thought().judge(stack, parse_task(task)) is not None

    assert solved(keys, values)
    assert not solved(keys - 1, values)
    assert not solved(keys, values - 1)
