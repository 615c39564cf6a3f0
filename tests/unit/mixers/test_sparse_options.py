"""Sparse attention's options and MoBA in the theory: declared sizes by hand, Theorem II with a
window, and what takes plain heads only.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch

from separatrix.architecture import Architecture, mechanism
from separatrix.caches import Grid, exact, selection_gap
from separatrix.checks.certificate import verify_certificate
from separatrix.constructions.sparse_retrieval import sparse_retrieval
from separatrix.errors import EvidenceError, SizeError
from separatrix.mechanisms import MoBA
from separatrix.model import build
from separatrix.searches import NotFound, refute, swap_blocks
from separatrix.searches.record import certificate
from separatrix.tasks import Eva, TwoSum
from separatrix.theory import judge
from separatrix.theory.fails.ii_block_messages import BlockSizes, TheoremII
from separatrix.theory.solves.block_retrieval import BlockRetrieval

TASK = TwoSum(n=64, M=128)
"""64 tokens, and the query."""
OPTIONS = ["window=5", "gates=true", "rope=true", "conv=3"]


def test_sizes_of_sparse_with_a_window() -> None:
    """Two key-value heads of 3 + 5 numbers of 8 bits are 128 bits per token."""
    sizes: dict[str, Any] = {
        "heads": 4,
        "kv_heads": 2,
        "head_dim": 3,
        "value_dim": 5,
        "block": 8,
        "topk": 2,
        "format": "p8",
    }
    plain, near, far = (mechanism("sparse", **sizes, window=window) for window in (0, 5, 20))
    assert plain.cache_bits(100) == near.cache_bits(100) == (100 + 12) * 128
    assert plain.read_bits() == near.read_bits() == 4 * (6 + 2 * 7) * 8
    assert [m.open_bits(100) for m in (plain, near, far)] == [
        7 * 128,
        7 * 128,
        20 * 128,
    ]  # a window of 5 lies in the 7 of an open block
    assert [m.open_bits(4) for m in (plain, near, far)] == [4 * 128] * 3
    assert near.flops(100) - plain.flops(100) == 5 * 2 * 4 * (3 + 5)
    assert far.flops(4) - plain.flops(4) == 4 * 2 * 4 * (3 + 5)
    assert [
        mechanism("sparse", window=1).plain,
        mechanism("sparse", gates=True).plain,
        plain.plain,
    ] == [False, False, True]


def test_sizes_of_moba() -> None:
    m = mechanism(
        "moba",
        heads=4,
        kv_heads=2,
        head_dim=3,
        value_dim=5,
        block=8,
        topk=2,
        format="p8",
        accumulator="p16",
    )
    assert isinstance(m, MoBA)
    assert m.cache_bits(100) == (100 * 2 * 8 + 12 * 2 * 3) * 8
    assert m.read_bits() == 4 * 2 * (5 + 2) * 16  # score, 5 numerators, denominator
    assert (
        mechanism("moba", heads=4, head_dim=3, topk=2, running_max=True, format="p8").read_bits()
        == 4 * 2 * 6 * 8
    )
    assert [m.open_bits(t) for t in (0, 3, 100)] == [0, 3 * 128, 7 * 128]
    assert m.message_bits() == 2 * 3 * 8
    assert m.flops(100) == 2 * 4 * 3 * 12 + 24 * 2 * 4 * (3 + 5)


@pytest.mark.parametrize(
    ("window", "n", "blocks"),
    [
        (0, 64, 4),
        (1, 64, 3),
        (16, 64, 3),
        (17, 64, 2),
        (48, 64, 1),
        (49, 64, None),
        (0, 79, 4),
        (16, 79, 3),
    ],
)
def test_theorem_ii_does_not_count_blocks_that_a_window_sees(
    window: int, n: int, blocks: int | None
) -> None:
    """A window of s tokens takes ceil(s/16) blocks out of floor(n/16)."""
    spec = Architecture.parse(f"sparse @ heads=1, head_dim=1, block=16, topk=1, window={window}")
    assert TheoremII().sizes(spec, TwoSum(n=n, M=128)) == (
        None if blocks is None else BlockSizes(T=blocks, B=16, k=1, c=64, N=128)
    )


@pytest.mark.parametrize(("window", "M", "values"), [(0, 3, 1), (5, 3, None), (5, 5, 2)])
def test_theorem_ii_needs_a_filler_for_blocks_a_window_sees(
    window: int, M: int, values: int | None
) -> None:
    """As a decision, 64 tokens before the last fill 4 blocks exactly; what fills the seen one is
    a value beside the one asked for.
    """
    spec = Architecture.parse(f"sparse @ heads=1, head_dim=1, block=16, topk=1, window={window}")
    wanted = None if values is None else BlockSizes(T=4 - (window > 0), B=16, k=1, c=64, N=values)
    assert TheoremII().sizes(spec, TwoSum(n=65, M=M, form="decision")) == wanted


@pytest.mark.parametrize("option", ["gates=true", "rope=true"])
def test_theorem_ii_takes_gates_and_rotation_but_no_convolution(option: str) -> None:
    plain = Architecture.parse("sparse @ heads=2, head_dim=2, block=16, topk=1")
    wanted = TheoremII().sizes(plain, TASK)
    assert wanted == BlockSizes(T=4, B=16, k=2, c=256, N=128)
    assert TheoremII().sizes(Architecture.parse(f"{plain.spec}, {option}"), TASK) == wanted
    assert TheoremII().sizes(Architecture.parse(f"{plain.spec}, conv=3"), TASK) is None


def test_theorem_ii_on_moba() -> None:
    """Messages are mean keys: 2 key-value heads of 3 numbers of 4 bits; 4 heads open 2 blocks
    each.
    """
    spec = Architecture.parse("moba @ heads=4, kv_heads=2, head_dim=3, block=4, topk=2, p4")
    assert TheoremII().sizes(spec, TASK) == BlockSizes(T=16, B=4, k=8, c=24, N=128)
    small = Architecture.parse("moba @ heads=1, head_dim=1, block=8, topk=1, p8")
    verdict = TheoremII().judge(small, TASK)
    # u1 = 128 * 7/8 = 112 values leave 1 + sum_{j<=8} binomial(112, j) > 2^8 traces
    assert verdict is not None
    assert verdict.status == "FAILS"


@pytest.mark.parametrize("option", OPTIONS)
def test_constructions_take_plain_sparse_heads_only(option: str) -> None:
    spec = Architecture.parse(f"sparse(block=4, {option}) @ heads=1, head_dim=64")
    task = Eva(n=8, V=4)
    assert (
        BlockRetrieval().judge(Architecture.parse("sparse(block=4) @ heads=1, head_dim=64"), task)
        is not None
    )
    assert BlockRetrieval().judge(spec, task) is None
    with pytest.raises(SizeError, match="no conv, rope, window or gates"):
        sparse_retrieval(task, spec)


@pytest.mark.parametrize(
    "option",
    [pytest.param(o, marks=[pytest.mark.slow] if i > 1 else []) for i, o in enumerate(OPTIONS)],
)
def test_block_swaps_take_plain_sparse_heads_only(option: str) -> None:
    spec = Architecture.parse(f"sparse(block=4, topk=1, {option}) @ heads=1, head_dim=2, p3")
    task = TwoSum(n=12, M=32)
    model = build(spec, task)
    with pytest.raises(
        SizeError, match="without conv, rope, window and gates; search a wrong answer"
    ):
        swap_blocks(model, task, grid=Grid(3, -1))
    with pytest.raises(
        SizeError, match="without conv, rope, window and gates; search a wrong answer"
    ):
        refute(spec, task, method="block_swap")
    found = refute(spec, task, budget=5, tries=64)
    assert (
        isinstance(found, NotFound) or found.form == "wrong_answer"
    )  # what is searched without being told
    copy = exact(model)
    with pytest.raises(SizeError, match="only plain ones can be judged"):
        selection_gap(copy, 1, copy.init_cache(1), 12)


@pytest.mark.parametrize("option", OPTIONS)
def test_a_certificate_of_a_block_swap_is_about_plain_heads(option: str) -> None:
    spec = Architecture.parse(f"sparse(block=4, topk=1, {option}) @ heads=1, head_dim=2, p3")
    task = TwoSum(n=12, M=32)
    prompts = np.full((2, 13), 1)
    prompts[0, 0] = prompts[0, 12] = 16
    prompts[1, 12] = 16
    record = certificate(
        "block_swap",
        build(spec, task),
        task,
        grid=Grid(3, -1),
        inputs=list(prompts),
        answers=task.answer(prompts).tolist(),
        output=0,
        details={},
    )
    with pytest.raises(EvidenceError, match="a block swap is about plain ones"):
        verify_certificate(record)


@torch.no_grad()
def test_a_window_may_be_longer_than_the_prompt() -> None:
    task = TwoSum(n=12, M=32)
    model = build(
        Architecture.parse("sparse(block=4, window=1000, gates=true) @ heads=2, head_dim=4"), task
    )
    tokens = torch.from_numpy(task.sample(3, np.random.default_rng(0)).tokens)
    assert model(tokens).isfinite().all()


def test_a_window_over_everything_is_not_excluded_where_full_attention_solves() -> None:
    """The window branch contains a full layer: where that is SOLVABLE, nothing may FAIL."""
    task = TwoSum(n=2048, M=1000, form="query")
    statuses = {
        spec: {verdict.status for verdict in judge(Architecture.parse(spec), task)}
        for spec in (
            "full(heads=1, head_dim=4)",
            "sparse(heads=1, head_dim=4, block=64, topk=1, window=4200)",
        )
    }
    assert "SOLVABLE" in statuses["full(heads=1, head_dim=4)"]
    assert all("FAILS" not in found for found in statuses.values())


@pytest.mark.parametrize("spec", ["full", "indexed(index_dim=64)"])
def test_rotated_heads_are_not_taken_for_the_constructions(spec: str) -> None:
    plain = Architecture.parse(spec)
    rotated = Architecture.parse(f"{spec} @ rope=true")
    assert "SOLVABLE" in {verdict.status for verdict in judge(plain, Eva(n=64, V=64))}
    assert "SOLVABLE" not in {verdict.status for verdict in judge(rotated, Eva(n=64, V=64))}
