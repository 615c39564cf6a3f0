"""Block swaps in a sparse layer: one message, two sets."""

from __future__ import annotations

from functools import cache

import pytest

from separatrix.checks.refute import NotFound, Search, refute, swap_blocks
from separatrix.checks.verify.certificate import verify_certificate
from separatrix.core.errors import SizeError
from separatrix.core.evidence.records import Certificate
from separatrix.models.caches import Grid
from separatrix.models.model import build
from separatrix.stacks.architecture import Architecture
from separatrix.tasks import Eva, TwoSum

SIZES = [
    # heads, block, topk, n, M, bits: a tail behind the last block or none, one or two blocks
    # opened, one head or two
    (1, 4, 1, 12, 32, 3),
    *(
        pytest.param(*sizes, marks=pytest.mark.slow)
        for sizes in [
            (1, 4, 2, 16, 32, 2),
            (2, 4, 1, 12, 32, 3),
            (1, 8, 1, 23, 16, 3),
            (2, 4, 2, 16, 32, 2),
            (1, 8, 1, 32, 64, 4),
            (2, 8, 1, 32, 64, 4),
            (2, 8, 1, 23, 16, 3),
        ]
    ),
]


def _sparse(block: int, topk: int, bits: int, heads: int = 1) -> Architecture:
    return Architecture.parse(
        f"sparse(block={block}, topk={topk}) @ heads={heads}, head_dim=2, p{bits}"
    )


@cache
def _found(
    block: int, topk: int, n: int, M: int, bits: int, heads: int = 1, seed: int = 1
) -> Certificate:
    found = refute(_sparse(block, topk, bits, heads), TwoSum(n=n, M=M), budget=600, seed=seed)
    assert isinstance(found, Certificate), str(found)
    return found


@pytest.mark.parametrize(("heads", "block", "topk", "n", "M", "bits"), SIZES)
def test_two_blocks_with_one_message(
    block: int, topk: int, n: int, M: int, bits: int, heads: int
) -> None:
    found = _found(block, topk, n, M, bits, heads)
    assert found.form == "block_swap"
    assert any("send one message" in sentence for sentence in verify_certificate(found))
    first, second = found.inputs
    differing = [place for place in range(n) if first[place] != second[place]]
    assert {(place + 1) // block for place in differing} == {
        found.details["block"]
    }  # a start token stands before the prompt
    wanted = -first[-1] % M
    assert [wanted in first[:-1], wanted in second[:-1]] == [
        bool(answer) for answer in found.answers
    ]
    assert sum(found.answers) == 1
    assert (
        found.details["message_bits"] == heads * 4 * bits
    )  # a key and a value of two numbers per head: c of Theorem II


@pytest.mark.slow
def test_one_seed_gives_one_certificate() -> None:
    first = _found(4, 1, 12, 32, 3, 1)
    again = _found.__wrapped__(4, 1, 12, 32, 3, 1)
    other = _found(4, 1, 12, 32, 3, 1, seed=5)
    assert first.digest == again.digest != other.digest


def test_nothing_found() -> None:
    found = refute(_sparse(4, 1, 24), TwoSum(n=12, M=64), budget=600, tries=64)
    assert isinstance(found, NotFound)
    assert found.tried == 64
    assert "64^4 blocks" in str(found)


def test_a_start_token_counts_to_the_blocks() -> None:
    """Seven tokens and one before them fill two blocks of four; six and one fill one."""
    most = refute(_sparse(4, 1, 24), TwoSum(n=7, M=64), budget=600, tries=1)
    assert isinstance(most, NotFound)
    with pytest.raises(SizeError, match="fills 1 blocks of 4"):
        refute(_sparse(4, 1, 24), TwoSum(n=6, M=64), method="block_swap", tries=1)


@pytest.mark.slow
def test_where_a_swap_makes_no_sense() -> None:
    task = TwoSum(n=12, M=32)
    with pytest.raises(SizeError, match="opens them all"):
        refute(_sparse(4, 3, 3), task)
    with pytest.raises(SizeError, match="needs 2-Sum per query"):
        refute(_sparse(4, 1, 3), TwoSum(n=12, M=32, form="decision"), method="block_swap")
    with pytest.raises(SizeError, match="needs 2-Sum per query"):
        refute(_sparse(4, 1, 3), Eva(n=12, V=12), method="block_swap")
    for spec in ("gdn", "sparse(block=4)*2", "sparse(block=4)|full"):
        model = build(Architecture.parse(f"{spec} @ heads=1, head_dim=2"), task)
        with pytest.raises(SizeError, match="one layer of sparse"):
            swap_blocks(model, task, Grid(3, 0), Search())
