"""What no construction can hold is refused in one line that says what is needed."""

from __future__ import annotations

import pytest
from support.each import each

from separatrix.constructions import construct
from separatrix.core.errors import SizeError
from separatrix.stacks.architecture import Architecture
from separatrix.tasks import TwoSum, parse_task


@each(
    "text, stack, needs",
    [
        ("twosum:n=8,M=5755", "full @ heads=1, head_dim=4", "at most M = 5,754"),
        ("twosum:n=8,M=5755", "full @ heads=1, head_dim=4", "head_dim >= 14"),
        ("twosum:n=8,M=16,form=decision", "full + gdn", "full layer"),
        ("twosum:n=8,M=16,form=decision", "full(head_dim=4) + full", "head_dim >= 5"),
        ("equality:n=8", "full + linear*3", "full layer"),
        ("equality:n=8", "full*2 @ positions=none", "positions=embedded"),
        ("twosum:n=8,M=16", "linear*3", "full layer"),
        ("twosum:n=8,M=16", "full @ head_dim=3, positions=none", "positions=embedded"),
        ("eva:n=8,V=4", "full @ positions=none", "positions=embedded"),
        ("twosum:n=8,M=16", "full @ heads=1, head_dim=4, fp8", "at least 32 bits"),
        ("eva:n=64,V=64", "gdn*3 + window", "full layer"),
        ("eva:n=64,V=64", "full @ heads=8, head_dim=6", "head_dim >= 7"),
        ("eva:n=64,V=64", "linear*3 + full @ heads=1, head_dim=16, fp8", "at least 32 bits"),
        ("seqcomp:L=3,m=4,n_1=2,n_2=2", "full*2 @ heads=1, head_dim=16", "full layer"),
        ("seqcomp:L=2,m=8,n_1=2", "full*3 @ heads=1, head_dim=4", "head_dim >= 5"),
        ("seqcomp:L=2,m=8,n_1=2", "full*2 + linear @ heads=1, head_dim=8", "full layer"),
        ("seqcomp:L=2,m=8,n_1=2", "linear*9", "full layer"),
    ],
)
def test_a_stack_or_size_that_cannot_hold_it(text: str, stack: str | None, needs: str) -> None:
    with pytest.raises(SizeError) as caught:
        construct(parse_task(text), None if stack is None else Architecture.parse(stack))
    message = str(caught.value)
    assert needs in message
    assert "\n" not in message


@pytest.mark.slow
def test_the_largest_modulus_is_the_one_of_the_theory() -> None:
    """theory.md, section 6: 5,754 for float32, so M = 5,754 is built and 5,755 is not."""
    assert construct(parse_task("twosum:n=2,M=5754")).record.sizes["M"] == 5754


@pytest.mark.parametrize("n", [1 << 22, 1 << 24])
def test_a_length_beyond_float32_is_refused(n: int) -> None:
    with pytest.raises(SizeError, match="smaller n"):
        construct(TwoSum(n=n, M=64), kind="match2")
