"""Block-sparse attention: its definition token by token, values by hand, and edge cases."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch
from support.each import each
from support.mixers import (
    TOKENS,
    TWO_SUM,
    Array,
    Heads,
    both_forms,
    chosen_blocks,
    made,
    one_head,
    rotated,
    sigmoid,
    softmax,
    tokens_of,
    with_weights,
)

from separatrix.checks.refute import NotFound, Search, refute, swap_blocks
from separatrix.checks.refute.record import certificate
from separatrix.checks.verify.certificate import verify_certificate
from separatrix.constructions.retrieval import sparse_retrieval
from separatrix.core.errors import EvidenceError, SizeError
from separatrix.mixers import mixer
from separatrix.mixers.laws import close, drawn, inputs
from separatrix.models.caches import Grid, exact, selection_gap
from separatrix.models.model import build
from separatrix.stacks.architecture import Architecture
from separatrix.stacks.mechanisms import mechanism
from separatrix.tasks import Eva, TwoSum
from separatrix.theory import THEOREMS, judge
from separatrix.theory.fails.ii_block_messages import BlockSizes, TheoremII

SPARSE_OPTIONS = ["window=5", "gates=true", "rope=true", "conv=3"]


@pytest.mark.parametrize(
    ("block", "topk", "kv_heads"),
    [(1, 1, 4), (4, 2, 2), (5, 1, 1), (4, 50, 4), (23, 1, 4), (40, 3, 2)],
)
def test_sparse(block: int, topk: int, kv_heads: int) -> None:
    heads = Heads("sparse", {"block": block, "topk": topk, "kv_heads": kv_heads})
    alpha = heads.weights["pool_k"]
    beta = heads.weights["pool_v"]
    share = sigmoid(heads.weights["mix"])

    def head(h: int, q: Array, k: Array, v: Array) -> Array:
        outputs = []
        for i in range(TOKENS):
            blocks = [range(m * block, (m + 1) * block) for m in range(i // block)]
            tokens = list(range(i // block * block, i + 1))
            compressed = np.zeros(2)
            if blocks:
                scores = np.array(
                    [sum(a * k[j] for a, j in zip(alpha, b, strict=True)) @ q[i] for b in blocks]
                )
                compressed = softmax(scores) @ np.array(
                    [sum(a * v[j] for a, j in zip(beta, b, strict=True)) for b in blocks]
                )
                for m in np.argsort(-scores)[:topk]:
                    tokens += blocks[m]
            selected = softmax(k[tokens] @ q[i]) @ v[tokens]
            outputs.append(share[h] * compressed + (1 - share[h]) * selected)
        return np.stack(outputs)

    heads.check(head)


@each("rope", [False, True])
@each("gates", [False, True])
@each("window", [0, 1, 6, 100])
def test_sparse_window_and_gates(window: int, gates: bool, rope: bool) -> None:
    sizes: dict[str, Any] = {
        "block": 4,
        "topk": 2,
        "kv_heads": 2,
        "window": window,
        "gates": gates,
        "rope": rope,
    }
    heads = Heads("sparse", sizes | ({"head_dim": 4} if rope else {}))
    alpha = heads.weights["pool_k"]
    beta = heads.weights["pool_v"]
    branches = 3 if window else 2
    if gates:
        shares = sigmoid(heads.project("g.weight")).reshape(TOKENS, branches, 4)
    else:
        logits = [heads.weights["mix"], np.zeros(4)] + (
            [heads.weights["mix_window"]] if window else []
        )
        shares = np.exp(logits) / np.exp(logits).sum(0) * np.ones((TOKENS, 1, 1))

    def head(h: int, q: Array, k: Array, v: Array) -> Array:
        q, k = (rotated(q), rotated(k)) if rope else (q, k)
        outputs = []
        for i in range(TOKENS):
            blocks = [range(m * 4, (m + 1) * 4) for m in range(i // 4)]
            tokens = list(range(i // 4 * 4, i + 1))
            parts = [np.zeros(2)]
            if blocks:
                scores = np.array([alpha @ k[list(b)] @ q[i] for b in blocks])
                parts = [softmax(scores) @ np.array([beta @ v[list(b)] for b in blocks])]
                for m in chosen_blocks(scores, 2):
                    tokens += blocks[m]
            parts += [softmax(k[tokens] @ q[i]) @ v[tokens]]
            near = slice(max(0, i + 1 - window), i + 1)
            parts += [softmax(k[near] @ q[i]) @ v[near]] if window else []
            outputs.append(
                sum(share * part for share, part in zip(shares[i, :, h], parts, strict=True))
            )
        return np.stack(outputs)

    heads.check(head)


@torch.no_grad()
def test_sparse_that_opens_every_block_is_full_attention() -> None:
    x = inputs(drawn(mixer(mechanism("full", heads=2, head_dim=3), width=6)), 2, 50)
    full, sparse = (
        drawn(mixer(mechanism(name, heads=2, head_dim=3), width=6)) for name in ("full", "sparse")
    )
    sparse.load_state_dict(
        full.state_dict()
        | {
            "pool_k": sparse.pool_k,
            "pool_v": sparse.pool_v,
            "mix": torch.full((2,), -100.0),
        }
    )
    close(sparse(x), full(x), "50 tokens in at most 4 blocks of 32")


def test_sparse_takes_the_earlier_of_equal_blocks() -> None:
    # blocks of one token, all keys 0, so all scores are equal: tokens read = block 0 and the token
    # itself, averaged
    m = with_weights(one_head("sparse", block=1, topk=1), pool_k=[1], pool_v=[1], mix=[-1000])
    assert both_forms(m, tokens_of((0, 2), (0, 100), (0, 4), (0, 8))) == [2, 51, 3, 5]


def test_sparse_block_is_open_to_its_last_token_and_compressed_after() -> None:
    # keys 0 make every softmax a mean; lambda = 1: only compressed values; a block of 2 has pooled
    # value 3 v_0 + v_1
    m = with_weights(one_head("sparse", block=2, topk=1), pool_k=[1, 1], pool_v=[3, 1], mix=[1000])
    assert both_forms(m, tokens_of((0, 1), (0, 10), (0, 5), (0, 7), (0, 9))) == [
        0,
        0,
        13,
        13,
        (13 + 22) / 2,
    ]


def test_sparse_reads_the_best_block() -> None:
    # pooled keys 1, 3, 2 against queries of 1; k = 1 opens the second block; scores inside it are 0
    # and 60: its second value wins
    m = with_weights(
        one_head("sparse", block=2, topk=1), pool_k=[0.5, 0.05], pool_v=[0.5, 0.5], mix=[-1000]
    )
    x = tokens_of((2, 1), (0, 2), (0, 3), (60, 4), (4, 5), (0, 6), (1, 7))
    with torch.no_grad():
        assert m(x)[0, -1, 1].item() == pytest.approx(4, abs=1e-12)
    assert len(both_forms(m, x)) == 7


def test_sparse_window_is_a_third_equal_share() -> None:
    # keys 0 make every softmax a mean; pooled value 3 v_0 + v_1 = 13; shares 1/3 each; the window
    # holds two tokens
    m = with_weights(
        one_head("sparse", block=2, topk=1, window=2),
        pool_k=[1, 1],
        pool_v=[3, 1],
        mix=[0],
        mix_window=[0],
    )
    wanted = [(0 + 1 + 1) / 3, (0 + 5.5 + 5.5) / 3, (13 + 16 / 3 + 7.5) / 3, (13 + 23 / 4 + 6) / 3]
    assert both_forms(m, tokens_of((0, 1), (0, 10), (0, 5), (0, 7))) == pytest.approx(wanted)


def test_sparse_gates_need_not_add_up_to_one() -> None:
    # the gates of both branches are sigmoid(1000 v) = 1: their outputs are added up
    m = with_weights(
        one_head("sparse", block=2, topk=1, gates=True),
        pool_k=[1, 1],
        pool_v=[3, 1],
        g__weight=[[0, 1000], [0, 1000]],
    )
    assert both_forms(m, tokens_of((0, 1), (0, 10), (0, 5))) == pytest.approx([1, 5.5, 13 + 16 / 3])


@pytest.mark.parametrize("window", [20, 5000])
@torch.no_grad()
def test_sparse_with_a_window_over_everything_is_full_attention(window: int) -> None:
    x = inputs(made("full"), 2, 20)
    full = made("full")
    sparse = made("sparse", window=window)
    shares = {
        "mix": torch.full((2,), -100.0),
        "mix_window": torch.full((2,), 100.0),
        "pool_k": torch.ones(32),
        "pool_v": torch.ones(32),
    }
    sparse.load_state_dict(full.state_dict() | shares)
    close(sparse(x), full(x), "a share of 1 for the window")


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
    assert plain.read_bits() == near.read_bits() == 4 * (7 + 2 * 8) * 32
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


@each(
    "window, n, blocks",
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
    wanted = TheoremII().sizes(plain, TWO_SUM)
    assert wanted == BlockSizes(T=4, B=16, k=2, c=256, N=128)
    assert TheoremII().sizes(Architecture.parse(f"{plain.spec}, {option}"), TWO_SUM) == wanted
    assert TheoremII().sizes(Architecture.parse(f"{plain.spec}, conv=3"), TWO_SUM) is None


@each("option", SPARSE_OPTIONS)
def test_constructions_take_plain_sparse_heads_only(option: str) -> None:
    spec = Architecture.parse(f"sparse(block=4, {option}) @ heads=1, head_dim=64")
    task = Eva(n=8, V=4)
    plain = Architecture.parse("sparse(block=4) @ heads=1, head_dim=64")
    theorem = THEOREMS["block-retrieval"]
    assert theorem.judge(plain, task) is not None
    assert theorem.judge(spec, task) is None
    with pytest.raises(SizeError, match="no option"):
        sparse_retrieval.build(task, spec)


@pytest.mark.parametrize(
    "option",
    [pytest.param(o, marks=[pytest.mark.slow] if i else []) for i, o in enumerate(SPARSE_OPTIONS)],
)
def test_block_swaps_take_plain_sparse_heads_only(option: str) -> None:
    spec = Architecture.parse(f"sparse(block=4, topk=1, {option}) @ heads=1, head_dim=2, p3")
    task = TwoSum(n=12, M=32)
    model = build(spec, task)
    with pytest.raises(SizeError, match="window or gates"):
        swap_blocks(model, task, Grid(3, -1), Search())
    with pytest.raises(SizeError, match="window or gates"):
        refute(spec, task, method="block_swap")
    found = refute(spec, task, budget=5, tries=64)
    assert (
        isinstance(found, NotFound) or found.form == "wrong_answer"
    )  # what is searched without being told
    copy = exact(model)
    with pytest.raises(SizeError, match="only plain ones"):
        selection_gap(copy, 1, copy.init_cache(1), 12)


@each("option", SPARSE_OPTIONS)
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
        inputs=prompts,
        output=0,
        details={},
    )
    with pytest.raises(EvidenceError, match="plain ones"):
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
