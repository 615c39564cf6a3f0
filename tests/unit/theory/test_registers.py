"""Hops and few facts by recurrences: which of them overwrite one place of many, in real layers, and
how many layers that takes of a stack.
"""

from __future__ import annotations

import numpy as np
import pytest
import torch
from torch import Tensor

from separatrix.mixers import Mixer, mixer
from separatrix.stacks.architecture import Architecture
from separatrix.stacks.architecture.resolve import preset
from separatrix.stacks.mechanisms import MECHANISMS
from separatrix.tasks import KHop, parse_task
from separatrix.theory import judge, recheck

V, N = 4, 4
"""Letters, and numbers of a place: two bits of a letter, whether it is known, and whether not."""
BEFORE, OWN, NUMBERS, ONE = slice(0, V), slice(V, 2 * V), slice(2 * V, 2 * V + N), 2 * V + N
WIDTH = ONE + 1 + V * N


def _delta(layer: Mixer) -> None:
    """A key dimension for each letter, the values in the first head; b = 1 for the first update."""
    weights = dict(layer.named_parameters())
    for letter in range(V):
        weights["k.weight"][letter, BEFORE.start + letter] = 64.0
        weights["q.weight"][letter, OWN.start + letter] = 64.0
    for number in range(N):
        weights["v.weight"][number, NUMBERS.start + number] = 64.0
        weights["o.weight"][number, number] = 1.0
    weights["b.weight"][:, ONE] = 0.0 if getattr(layer.mechanism, "negative", False) else 128.0
    for name in ("a.bias", "a.up.bias"):
        if name in weights:
            weights[name].fill_(-128.0)
    if "gate.weight" in weights:
        weights["gate.weight"][:, ONE] = 64.0


def _mamba2(layer: Mixer) -> None:
    """A head for each letter, with a step of 128 where it is written, else softplus(-128) = 0."""
    size = layer.get_parameter("v.weight").shape[0] // V
    for name in ("q.weight", "k.weight"):
        layer.get_parameter(name)[0, ONE] = 64.0
    for letter in range(V):
        layer.get_parameter("dt.weight")[letter, BEFORE.start + letter] = 256.0
        for number in range(N):
            channel = letter * size + number
            layer.get_parameter("v.weight")[channel, NUMBERS.start + number] = 64.0
            layer.get_parameter("o.weight")[letter * N + number, channel] = 1.0
    layer.get_parameter("dt.bias").fill_(-128.0)


def _channels(layer: Mixer) -> list[tuple[int, int, list[int]]]:
    """For each letter a channel that says it, and those of its numbers."""
    for letter in range(V):
        flag = letter * (N + 1) + N
        layer.get_parameter("v.weight")[flag, BEFORE.start + letter] = 64.0
        for number in range(N):
            channel = letter * (N + 1) + number
            layer.get_parameter("v.weight")[channel, NUMBERS.start + number] = 64.0
            layer.get_parameter("o.weight")[letter * N + number, channel] = 1.0
    return [(a, a * (N + 1) + N, [a * (N + 1) + j for j in range(N)]) for a in range(V)]


def _mamba(layer: Mixer) -> None:
    """Steps of 128 or 0 from a code of two digits, and a third that says that one is written."""
    one = V * (N + 1)
    layer.get_parameter("v.weight")[one, ONE] = 64.0
    for name in ("b.weight", "c.weight"):
        layer.get_parameter(name)[0, one] = 1.0
    # a norm makes 1 of what is 64
    scale = 128.0 if "read" in dict(layer.named_parameters()) else 2.0
    for letter, flag, channels in _channels(layer):
        code = torch.tensor([2.0 * (letter & 1) - 1, 2.0 * (letter >> 1) - 1, 1.0])
        layer.get_parameter("dt.down.weight")[:, flag] = code
        layer.get_parameter("dt.up.weight")[channels] = code * scale
    layer.get_parameter("dt.up.bias").fill_(-2 * 128.0)


def _rglru(layer: Mixer) -> None:
    """r and g are 1 where a flag says so, else 0."""
    layer.get_parameter("rate").fill_(64.0)
    for _, flag, channels in _channels(layer):
        for name in ("r", "g"):
            layer.get_parameter(f"{name}.weight")[channels, flag] = 4.0
    for name in ("r", "g"):
        layer.get_parameter(f"{name}.bias").fill_(-128.0)


LAYERS = {
    "deltanet(heads=1, head_dim=4)": _delta,
    "gdn(heads=2, head_dim=4, conv=4, gate=silu)": _delta,
    "gdn(heads=1, head_dim=4, negative=true, gate=norm)": _delta,
    "kda(heads=1, head_dim=4, conv=4, gate=sigmoid)": _delta,
    "deltaproduct(heads=1, head_dim=4, conv=4, gate=norm, negative=false)": _delta,
    "mamba2(heads=4, head_dim=4, state=2, conv=4)": _mamba2,
    "mamba(width=21, state=2, rank=3, conv=4)": _mamba,
    "mamba(width=21, state=2, rank=3, norms=true)": _mamba,
    "rglru(width=40, conv=4)": _rglru,
}


class Kept:
    """A real layer with weights that keep numbers in places."""

    def __init__(self, spec: str, dtype: torch.dtype) -> None:
        mechanism = Architecture.parse(spec).only
        assert mechanism is not None
        assert mechanism.registers(N) >= V
        assert mechanism.latched >= N
        layer = mixer(mechanism, width=WIDTH).requires_grad_(False)
        for name, parameter in layer.named_parameters():
            if name not in ("norm", "read"):
                parameter.zero_()
            if name == "conv.weight":
                parameter[:, -1] = 1.0
        LAYERS[spec](layer)
        self.layer = layer.to(dtype)
        self.gathers = LAYERS[spec] is not _delta
        self.dtype = dtype

    def read(self, writes: Tensor, place: Tensor, own: Tensor, numbers: Tensor) -> Tensor:
        """The numbers of each token's own place, where some tokens overwrite a place by theirs."""
        x = torch.zeros(*own.shape, WIDTH)
        x[..., BEFORE] = torch.eye(V)[place] * writes[..., None]
        x[..., OWN] = torch.eye(V)[own]
        x[..., NUMBERS], x[..., ONE] = numbers.float(), 1.0
        read = self.layer(x.to(self.dtype)).float()
        if self.gathers:
            every = read[..., : V * N].unflatten(-1, (V, N))
            read = every.gather(-2, own[..., None, None].expand(*own.shape, 1, N))[..., 0, :]
        return (read[..., :N] > 0.25).long()


@torch.no_grad()
@pytest.mark.parametrize("spec", LAYERS)
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_recurrences_hop_for_prompts_of_every_length(spec: str, dtype: torch.dtype) -> None:
    layer = Kept(spec, dtype)
    k = 5
    for n in (2, 7, 40, 600):
        task = KHop(n=n, V=V, k=k, shift="random")
        drawn = task.draw(20, np.random.default_rng(n))
        ids = torch.from_numpy(drawn.tokens)
        writes = torch.ones_like(ids)
        writes[:, 0] = 0
        known = torch.stack([ids & 1, ids >> 1, torch.ones_like(ids), torch.zeros_like(ids)], -1)
        for _ in range(k):
            known = layer.read(writes, ids.roll(1, 1), ids, known)
            # what was never written says nothing at all
            known[..., 3] = 1 - known[..., 2]
            known[..., :2] *= known[..., 2:3]
        found = known[:, -1, 0] + 2 * known[:, -1, 1]
        answers = torch.where(known[:, -1, 2] > 0, found, V)
        assert (answers.numpy() == drawn.targets).all()


@torch.no_grad()
@pytest.mark.parametrize("spec", LAYERS)
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
@pytest.mark.parametrize("text", ["noisy-recall:n=3,noise=200,K=4,V=2,N=3", "recall:n=3,K=4,V=2"])
def test_few_facts_are_kept_one_behind_the_other(spec: str, dtype: torch.dtype, text: str) -> None:
    """Two bits of a key, one of a value, and whether there is a fact."""
    layer = Kept(spec, dtype)
    task = parse_task(text)
    drawn = task.sample(20, np.random.default_rng(1))
    ids = torch.from_numpy(drawn.tokens)
    values, keys = ids < 2, (ids >= 2) & (ids < 6)
    key, none = (ids - 2).clamp(0, 3), torch.zeros_like(ids)
    asked = torch.stack([key & 1, key >> 1, none, torch.ones_like(ids)], -1)
    latest = layer.read(keys.long(), none, none, asked)
    fact = torch.stack([latest[..., 0], latest[..., 1], ids.clamp(0, 1), latest[..., 3]], -1)
    held: list[Tensor] = []
    for _ in range(3):
        fact = layer.read(values.long(), none, none, fact)
        held.append(fact[:, -1])
        fact = layer.read(keys.long(), none, none, fact)
    answers = torch.full((len(ids),), -1)
    for one in reversed(held):
        alike = (one[:, :2] == asked[:, -1, :2]).all(-1) & (one[:, 3] > 0)
        answers = torch.where(alike, one[:, 2], answers)
    assert (answers.numpy() == drawn.targets).all()
    # the facts themselves, the latest first
    order = [ids[row][keys[row]][:3].flip(0) - 2 for row in range(len(ids))]
    found = torch.stack([one[:, 0] + 2 * one[:, 1] for one in held], 1)
    assert (found == torch.stack(order)).all()


@pytest.mark.parametrize(
    ("spec", "solved"),
    [
        # six bits of a key, two of a value, and a number more, in twice three layers
        ("gdn(heads=1, head_dim=9)*6", True),
        ("gdn(heads=1, head_dim=9)*5", False),
        ("gdn(heads=1, head_dim=8)*6", False),
        ("mamba2(heads=3, head_dim=3)*6", True),
        ("gdn*5 + gla + gdn", True),
        ("gla*6", False),
        ("rwkv*6", False),
    ],
)
def test_a_stack_takes_two_layers_for_each_fact(spec: str, *, solved: bool) -> None:
    task = parse_task("noisy-recall:n=3,noise=1000,K=64,V=4")
    verdict = judge(Architecture.parse(f"{spec}"), task)[0]
    assert (verdict.status, verdict.theorem == "queue") == (
        "SOLVABLE" if solved else "OPEN",
        solved,
    )
    recheck(verdict)


def test_every_mechanism_with_places_is_tried_above() -> None:
    every = {name for name, kind in MECHANISMS.items() if kind().registers(1)}
    tried = {spec.partition("(")[0] for spec in LAYERS}
    assert every == tried


@pytest.mark.parametrize(
    ("spec", "layers"),
    [
        # a layer that brings the letter before, and one for each of 5 hops
        ("gdn(head_dim=8, conv=4)*6", 6),
        ("gdn(head_dim=8, conv=4)*5", None),
        # one key dimension is missing; then two layers keep eight letters together
        ("gdn(head_dim=7, conv=4)*6", None),
        ("gdn(head_dim=7, conv=4)*11", 11),
        ("gdn(head_dim=7, conv=4)*10", None),
        # five numbers of a letter, and a head for each
        ("mamba2(heads=8, head_dim=5, conv=4)*6", 6),
        ("mamba2(heads=16, head_dim=4, conv=4)*6", 6),
        ("mamba2(heads=15, head_dim=4, conv=4)*6", None),
        # a channel is 1, and six are a place; a code of three digits, and one number
        ("mamba(width=49, rank=4, conv=4)*6", 6),
        ("mamba(width=48, rank=4, conv=4)*6", None),
        ("mamba(width=49, rank=3, conv=4)*6", None),
        ("rglru(width=96, conv=4)*6", 6),
        ("rglru(width=95, conv=4)*6", None),
        # what sees the token before may stand beside, or be attention
        ("deltanet(head_dim=8)*6", None),
        ("shortconv(width=64, conv=2) + deltanet(head_dim=8)*5", 6),
        ("deltanet(head_dim=8)*5 + shortconv(width=64, conv=2)", None),
        ("window(size=64, rope=true, head_dim=64, positions=none) + deltanet(head_dim=8)*5", 6),
        # a convolution behind them takes nothing away
        ("full + deltanet(head_dim=8)*5", 6),
        ("full + deltanet(head_dim=8)*5 + shortconv(conv=4, width=64)", 6),
        # what adds up all tokens, or has scores of its own, hands on no letter
        ("linear(heads=1, head_dim=1, value_dim=8, conv=2) + deltanet(head_dim=8)*5", None),
        ("window(size=64, conv=2, positions=alibi) + deltanet(head_dim=8)*5", None),
        # side by side they keep letters together
        ("gdn(head_dim=8, conv=4) + (gdn(head_dim=4)|deltanet(head_dim=4))*5", 6),
        ("retnet(conv=4)*9", None),
        ("gla(conv=4)*9", None),
        ("gdn(head_dim=8, conv=4)*6 @ fp8", None),
    ],
)
def test_a_stack_takes_a_layer_that_brings_and_places_for_all_letters(
    spec: str, layers: int | None
) -> None:
    stack = Architecture.parse(spec)
    task = KHop(n=60_000, V=8, k=5, shift="random")
    found = next((v for v in judge(stack, task) if v.theorem == "hops-kept"), None)
    assert (None if found is None else found.numbers["layers"]) == layers
    if found is not None:
        recheck(found)
        started = any("start token" in said for said in found.assumptions)
        assert started == spec.startswith(("window", "full"))


def test_half_of_the_letters_in_each_of_two_layers() -> None:
    """48 heads keep 64 letters in two layers: 8 hops take 17 of its 36 recurrences."""
    verdict = judge(preset("granite-4.0-h-tiny"), KHop(n=131072, V=64, k=8))[0]
    assert (verdict.status, verdict.numbers["layers"]) == ("SOLVABLE", 17)
