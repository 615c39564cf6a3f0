"""What the card says that `construct` writes down is written down, in drawn stacks with the options
that heads have; what is shown to be solvable and is not written is listed with its reason.

As a script it prints the list, and the counts of each theorem: `PYTHONPATH=src:tests python
tests/contract/test_solvable_is_built.py 2000`.
"""

from __future__ import annotations

import sys

import pytest
from support.solvable_stacks import Walked, shares, walk

from separatrix.constructions import construct
from separatrix.core.errors import SizeError
from separatrix.stacks.architecture import Architecture
from separatrix.tasks import parse_task
from separatrix.theory import judge
from separatrix.theory.written import ROUNDED, TOKEN_SHIFT, built_by

OPEN = {TOKEN_SHIFT, ROUNDED}
"""What only building tells."""
BUILT_AT_LEAST = 0.45
"""Of the pairs of drawn stacks and tasks that are shown to be solvable, the share that is built:
permutations and groups, which few drawn stacks have room for, are among them.
"""


def _check(walked: list[Walked]) -> None:
    broken = [str(one) for one in walked if one.promised and one.refused]
    assert not broken, "the card says that construct builds it:\n" + "\n".join(broken)
    for one in walked:
        if one.refused and not one.promised:
            # said once: the card's reason is that of `construct`
            assert all(why in one.refused for why in one.why if why not in OPEN), str(one)
    modest = [
        f"{one.task} in {one.stack}"
        for one in walked
        if not (one.promised or one.refused or not OPEN.isdisjoint(one.why))
    ]
    # a card that does not promise what is built is a loss, and no lie
    assert len(modest) <= len(walked) // 50 + 1, "\n".join(modest)


def test_what_the_card_promises_in_drawn_stacks() -> None:
    walked = list(walk(40, seed=20))
    assert len(walked) >= 4
    _check(walked)


@pytest.mark.parametrize("between", ["gdn", "gla", "shortconv", "window(size=8)"])
@pytest.mark.parametrize("options", ["", " @ rope=true", " @ rope=true, rope_dim=2"])
def test_a_layer_between_two_full_ones_is_promised_where_it_is_written(
    between: str, options: str
) -> None:
    """Where the first full layer finds places by rotations alone, it has no address to ask with."""
    stack = Architecture.parse(f"full + {between} + full{options}")
    task = parse_task("seqcomp:L=2,m=31,n_1=1")
    (verdict, *_) = judge(stack, task)
    promised = built_by(verdict) == ("carried",)
    assert promised == (options != " @ rope=true")
    if promised:
        assert construct(task, stack, "carried").record.name == "carried"
    else:
        with pytest.raises(SizeError, match="cannot hold"):
            construct(task, stack, "carried")


@pytest.mark.slow
def test_most_of_what_is_solvable_is_built() -> None:
    walked = list(walk(400, seed=3))
    _check(walked)
    assert sum(not one.refused for one in walked) >= BUILT_AT_LEAST * len(walked)


def main(number: int) -> None:
    walked = list(walk(number, seed=1))
    _check(walked)
    for one in walked:
        if one.refused:
            print(one)
    print(f"{sum(not one.refused for one in walked)} of {len(walked)} that are SOLVABLE are built")
    for (theorem, built), count in sorted(shares(walked).items()):
        print(f"{theorem}: {count} {'built' if built else 'not built'}")


if __name__ == "__main__":
    main(int(sys.argv[1]))
