"""How much of a construction is run: everything where inputs are few, otherwise as many random ones
as the work allows.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from separatrix.checks.verify import verify
from separatrix.constructions import construct
from separatrix.stacks.architecture import Architecture
from separatrix.tasks import parse_task


@pytest.mark.parametrize(
    ("task", "stack", "run"),
    [
        ("eva:n=3,V=4", None, "all 192 inputs"),  # 4^3 * 3
        ("eva:n=4,V=5", None, "all 2,500 inputs"),
        ("eva:n=4,V=6", None, "64 random inputs"),  # 6^4 * 4 = 5,184 inputs are too many
        # one layer, the last: next to no work
        ("eva:n=300,V=2", None, "64 random inputs"),
        # before the last layer 8 heads, each for all pairs of 1,001 tokens: 2^28 // (8 * 1,001^2)
        ("eva:n=1000,V=2", "full(heads=8, head_dim=11) + full(heads=3, head_dim=11)", "33 random"),
        # every token is paired with 512 at least: 2^28 // ((64 + 64) * 101 * 512)
        ("eva:n=100,V=2", "linear(heads=64)|full(heads=64) + full @ head_dim=8", "40 random"),
    ],
)
def test_as_many_inputs_are_run_as_the_work_allows(
    task: str, stack: str | None, run: str, tmp_path: Path
) -> None:
    built = construct(parse_task(task), None if stack is None else Architecture.parse(stack))
    built.save_weights(tmp_path)
    checked = verify(built.record, folder=tmp_path)
    assert f"run in float32 on {run}" in checked.checks[-1]
