"""The forms that read chosen blocks and tokens: every law on the tiled ones too, what they read
under ties and NaN, and memory."""

from __future__ import annotations

import copy
import json
import subprocess
import sys
from typing import Any

import jaxtyping
import pytest
import torch
from support.memory import PEAK
from support.mixers import made
from torch.func import functional_call, grad, stack_module_state, vmap

from separatrix.mixers.laws import LAWS, bounds, close, drawn, forms, gradients, inputs, stream
from separatrix.mixers.laws.tools import all_close
from separatrix.mixers.ops import blockwise, softmax
from separatrix.mixers.ops.blockwise import largest, placed, tile_size

CASES: dict[str, tuple[str, dict[str, Any]]] = {
    "sparse 4,2 GQA": ("sparse", {"block": 4, "topk": 2, "heads": 4, "kv_heads": 2}),
    "sparse 16,1 rope conv": (
        "sparse",
        {"block": 16, "topk": 1, "rope": True, "head_dim": 4, "conv": 3},
    ),
    "sparse 1,3": ("sparse", {"block": 1, "topk": 3}),
    "sparse 32,9": ("sparse", {"block": 32, "topk": 9}),
    "sparse 7,2 window gates": ("sparse", {"block": 7, "topk": 2, "window": 9, "gates": True}),
    "moba 4,2 GQA": ("moba", {"block": 4, "topk": 2, "heads": 4, "kv_heads": 2}),
    "moba 16,1": ("moba", {"block": 16, "topk": 1}),
    "moba 1,3": ("moba", {"block": 1, "topk": 3, "kv_heads": 1}),
    "moba 300,2": ("moba", {"block": 300, "topk": 2}),
}


FORMS = ("step=forward", "chunks", "at", "causal", "stacks", "finite", "NaN")
"""The laws that see the parallel form."""


FAST = ("sparse 7,2 window gates", "moba 4,2 GQA")
"""On these the fast tests run the laws of equal outputs and of causality; on the other cases they
compare the tiled form with the masked one. The slow tests run every law on these and on two of
the smallest and the largest blocks.
"""


PROGRAM = f"""{PEAK}
import json, sys, torch
from separatrix.stacks.mechanisms import mechanism
from separatrix.mixers import mixer
torch.set_num_threads(1)
name, sizes, tokens = json.loads(sys.argv[1])
m = mixer(mechanism(name, heads=4, head_dim=16, **sizes), width=64)
m.reset(torch.Generator().manual_seed(0))
small = torch.randn(1, 600, 64).requires_grad_()
m(small).sum().backward()
before = peak()
m(torch.randn(1, tokens, 64).requires_grad_()).sum().backward()
print(peak() - before)
"""


@pytest.mark.usefixtures("tiled")
@pytest.mark.parametrize("law", [pytest.param("step=forward", marks=pytest.mark.slow), "at"])
@pytest.mark.parametrize("case", FAST)
def test_law_on_the_tiled_form(case: str, law: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(forms, "ROWS", ((2, (1, 64, 75)),))
    monkeypatch.setattr(forms, "PLACED", (1, 64, 75))
    monkeypatch.setattr(bounds, "SIZES", (0.0, 1e4))
    name, sizes = CASES[case]
    LAWS[law](made(name, **sizes))


@pytest.mark.slow
@pytest.mark.usefixtures("tiled")
@pytest.mark.parametrize("law", FORMS)
@pytest.mark.parametrize("case", [*FAST, "sparse 1,3", "moba 300,2"])
def test_law_on_the_tiled_form_at_its_own_sizes(
    case: str, law: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    if law == "step=forward":  # hundreds of steps; shapes are checked under the other laws
        monkeypatch.setattr(jaxtyping.config, "jaxtyping_disable", True)
    name, sizes = CASES[case]
    LAWS[law](made(name, **sizes))


@pytest.mark.slow
@pytest.mark.parametrize("case", CASES)
def test_tiled_form_equals_the_masked_one(case: str, monkeypatch: pytest.MonkeyPatch) -> None:
    name, sizes = CASES[case]
    m = made(name, **sizes)
    x = inputs(m, 2, 700 if case == "moba 300,2" else 330).requires_grad_()
    monkeypatch.setattr(blockwise, "SHORT", 1000)
    masked = m(x)
    wanted = gradients(m, x, [masked])
    monkeypatch.setattr(blockwise, "SHORT", 0)
    monkeypatch.setattr(blockwise, "DENSE", 0)
    for room in (1 << 9, 1 << 14, 1 << 22):
        for module in (blockwise, softmax):
            monkeypatch.setattr(module, "ROOM", room)
        tiled = m(x)
        close(tiled, masked, f"room for {room} scores")
        all_close(wanted, gradients(m, x, [tiled]), f"room for {room} scores")


def test_largest_takes_the_earlier_of_equal_ones() -> None:
    generator = torch.Generator().manual_seed(0)
    for k in (1, 2, 5, 11, 12, 20):
        scores = torch.randint(-2, 3, (300, 12), generator=generator).double()
        scores[::7, ::3] = -float("inf")
        wanted = [
            sorted(sorted(range(12), key=lambda m, row=row: (-row[m], m))[:k])
            for row in scores.tolist()
        ]
        assert largest(scores, k).sort().values.tolist() == wanted


def test_largest_counts_nan_as_infinity() -> None:
    scores = torch.tensor([1.0, float("nan"), 5.0, float("nan"), -float("inf")])
    assert sorted(largest(scores, 3).tolist()) == [1, 2, 3]


def test_every_mark_gets_a_slot_of_its_own_in_a_tile_of_its_block() -> None:
    generator = torch.Generator().manual_seed(0)
    for blocks, queries, picks in ((5, 40, 4), (1, 9, 1), (7, 30, 2), (3, 24, 3)):
        chosen = torch.rand(3, queries, blocks, generator=generator).argsort(-1)[..., :picks]
        chosen[2] = torch.arange(picks)  # all in one
        marks = torch.zeros(3, queries, blocks, dtype=torch.bool).scatter(2, chosen, True)
        slot, query, block = placed(marks, picks)
        size = query.shape[2]
        for group in range(3):
            assert slot[group].unique().numel() == queries * picks
            assert int((query[group] < queries).sum()) == queries * picks
            for i in range(queries):
                assert (query[group].flatten()[slot[group, i]] == i).all()
                assert block[group, slot[group, i] // size].tolist() == sorted(
                    chosen[group, i].tolist()
                )


def test_a_query_that_marked_more_than_it_may_gets_the_first() -> None:
    """NaN counts as largest, so that a query may mark more."""
    few, many = torch.zeros(1, 9, 6, dtype=torch.bool), torch.ones(1, 9, 6, dtype=torch.bool)
    few[..., :2] = True
    for one, other in zip(placed(few, 2), placed(many, 2), strict=True):
        assert torch.equal(one, other)


def test_tiles_hold_a_power_of_two_from_8_to_128() -> None:
    assert [
        tile_size(pairs, blocks) for pairs, blocks in ((1, 1), (96, 4), (768, 8), (10**6, 1))
    ] == [8, 16, 64, 128]


@pytest.mark.usefixtures("tiled")
@pytest.mark.parametrize("name", ["sparse", "moba", "indexed"])
def test_gradients_under_vmap_of_grad(name: str) -> None:
    """torch.func.grad inside vmap: a gradient per model."""
    sizes = {"topk": 2, "block": 4} if name != "indexed" else {"topk": 5, "index_dim": 3}
    models = [drawn(copy.deepcopy(made(name, **sizes)), seed) for seed in range(2)]
    x = torch.stack([inputs(models[0], 2, 30, seed) for seed in range(2)])
    stacked, _ = stack_module_state(models)  # type: ignore[arg-type]
    found = vmap(grad(lambda p, x: functional_call(models[0], p, (x,)).square().sum()))(stacked, x)
    for i, m in enumerate(models):
        wanted = torch.autograd.grad(
            m(x[i]).square().sum(), list(m.parameters()), allow_unused=True, materialize_grads=True
        )
        for (key, _), one in zip(m.named_parameters(), wanted, strict=True):
            close(found[key][i], one, key, scale=1.0)


@pytest.mark.usefixtures("tiled")
def test_tiled_form_is_deterministic() -> None:
    m = made("sparse", block=4, topk=2).float()
    x = inputs(m, 2, 300).float().requires_grad_()
    one = m(x)
    other = m(x)
    assert torch.equal(one, other)
    for a, b in zip(
        gradients(m, x, [one]).values(), gradients(m, x, [other]).values(), strict=True
    ):
        assert torch.equal(a, b)


@pytest.mark.parametrize("short", [0, 1000])
@pytest.mark.parametrize("name", ["sparse", "moba"])
@torch.no_grad()
def test_nan_is_seen_by_all_who_read_it(
    name: str, short: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A block with NaN in it scores NaN, which counts as largest: every later token reads it.
    The tokens of its own block after it do too.
    """
    monkeypatch.setattr(blockwise, "SHORT", short)
    monkeypatch.setattr(blockwise, "DENSE", 0)
    m = made(name, block=4, topk=1)
    x = torch.randn(1, 40, 6, dtype=torch.float64)
    x[0, 9] = float("nan")
    for y in (m(x), stream(m, x)[0]):
        assert y[0, 9:].isnan().all()
    assert (
        stream(m, x)[0][0, :9].isfinite().all()
    )  # under a mask a weight of 0 times NaN is NaN, for earlier tokens too


@pytest.mark.parametrize(
    ("name", "sizes"),
    [("moba", {"topk": 99}), ("indexed", {"topk": 99}), ("chunked", {"size": 50})],
)
@torch.no_grad()
def test_what_reads_everything_is_full_attention(name: str, sizes: dict[str, int]) -> None:
    x = inputs(made("full"), 2, 50)
    full = made("full")
    other = made(name, **sizes)
    other.load_state_dict(other.state_dict() | full.state_dict())
    close(other(x), full(x), name)


@pytest.mark.parametrize("name", ["sparse", "moba", "indexed", "chunked", "mla"])
@torch.no_grad()
def test_one_token_reads_itself(name: str) -> None:
    m = made(name, **({"latent": 4} if name == "mla" else {}))
    x = inputs(m, 1, 1)
    (y, _), weights = stream(m, x), {n: p.detach() for n, p in m.named_parameters()}
    close(y, m(x), "forms")
    value = x
    if name == "mla":
        value = value @ weights["c.weight"].T
        value = value * (value.square().mean(-1, keepdim=True) + 1e-6).rsqrt()
    value = value @ weights["v.weight"].T
    if (
        name == "sparse"
    ):  # no block is complete: the compressed branch is 0, and the other has the share 1 - lambda
        value = value * (1 - weights["mix"].sigmoid()).repeat_interleave(5)
    close(y, value @ weights["o.weight"].T, name)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "sizes"),
    [
        ("sparse", {"block": 32, "topk": 4}),
        ("sparse", {"block": 64, "topk": 4, "window": 128, "gates": True}),
        ("moba", {"block": 64, "topk": 8}),
        ("indexed", {"topk": 16, "index_dim": 16}),
        ("chunked", {"size": 512}),
        ("mla", {"latent": 64, "rope_dim": 16}),
    ],
)
def test_no_quadratic_memory(name: str, sizes: dict[str, Any]) -> None:
    """One (T, T) matrix of float32 for the 4 heads would take 4 GiB at 16,384 tokens."""
    argument = json.dumps([name, sizes, 16384])
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM, argument], capture_output=True, text=True, check=True
    )
    assert int(done.stdout) < 1 << 20  # KiB


def test_another_default_format_changes_nothing() -> None:
    """Beyond 512 tokens, where tiles are taken: constants follow the scores, not the default."""
    m = made("sparse", block=8, topk=2).float()
    x = inputs(m, 1, 520).float()
    wanted = m(x)
    before = torch.get_default_dtype()
    torch.set_default_dtype(torch.float64)
    try:
        assert torch.equal(m(x), wanted)
    finally:
        torch.set_default_dtype(before)
