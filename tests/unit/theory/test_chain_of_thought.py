"""Composition with a chain of thought by one full layer: how much room its head needs, by hand."""

from __future__ import annotations

import pytest
from support.each import each

from separatrix.stacks.architecture import Architecture
from separatrix.tasks import parse_task
from separatrix.theory.solves.steps import Thought

TASKS = [
    ("seqcomp:L=1,m=5", 0 + 3 + 1, 3),
    ("seqcomp:L=2,m=4,n_1=2", 1 + 2 + 2, 3),
    ("seqcomp:L=3,m=4,n_1=2,n_2=2", 2 + 3 + 2, 4),
    ("seqcomp:L=2,m=5,n_1=1", 0 + 3 + 2, 3),
    ("seqcomp:L=4,m=2,n_1=3,n_2=1,n_3=5", 2 + 0 + 3 + 3 + 3, 5),
]
"""Task, key dimensions (bits of every part of w, of N_{L-2} values and of L+1 levels) and value
dimensions.
"""


@each("task, keys, values", TASKS)
def test_the_room_it_takes(task: str, keys: int, values: int) -> None:
    def solved(head_dim: int, value_dim: int) -> bool:
        stack = Architecture.parse(f"full @ heads=1, head_dim={head_dim}, value_dim={value_dim}")
        return Thought().judge(stack, parse_task(task)) is not None

    assert solved(keys, values)
    assert not solved(keys - 1, values)
    assert not solved(keys, values - 1)


ROTATED = "rope=true, positions=none, head_dim=16"


@pytest.mark.parametrize(
    ("steps", "heads"),
    # the entry of each step, and a look back by 1, ..., L - 1 tokens
    [(1, 1), (2, 3), (3, 5)],
)
def test_by_rotations_alone_a_written_token_must_find_its_step(steps: int, heads: int) -> None:
    """(w, 3) is the same token whether 3 is z_0 or i_1, and the offsets to their entries differ."""
    tables = ", ".join(["m=4"] + [f"n_{step}=1" for step in range(1, steps)])
    task = parse_task(f"seqcomp:L={steps}, {tables}")

    def solved(sizes: str) -> bool:
        return Thought().judge(Architecture.parse(f"full @ {ROTATED}, {sizes}"), task) is not None

    assert solved(f"heads={heads}, kv_heads=1")
    # two bits of an entry, and whether the token was written
    assert solved(f"heads={heads}, value_dim={2 + (steps > 1)}")
    if steps > 1:
        assert not solved(f"heads={heads - 1}")
        assert not solved(f"heads={heads}, value_dim=2")
