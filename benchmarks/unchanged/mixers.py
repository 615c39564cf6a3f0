"""Every mixer at drawn weights: outputs of all its forms, states and gradients."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import TYPE_CHECKING

from unchanged.pieces import Piece, demand_all, lines, packed

if TYPE_CHECKING:
    from torch import Tensor

    from separatrix.mixers import Mixer

WIDTH = 6
BATCH = 2

LENGTHS = (1, 37, 64, 130)
"""Tokens: one, part of a chunk of the parallel forms, one chunk, and a little more than two."""

HALF_LENGTH = 37

MIXERS = lines("""
    full @ head_dim=3, heads=2, value_dim=5
    full @ head_dim=3, heads=4, kv_heads=2, value_dim=2
    full @ head_dim=1, heads=1
    full @ conv=3, head_dim=4, heads=2, rope=true, sink=true, value_dim=5
    window @ head_dim=3, heads=2, size=1, value_dim=5
    window @ head_dim=3, heads=2, size=5, value_dim=5
    window @ head_dim=3, heads=2, size=70, value_dim=5
    window @ head_dim=3, heads=2, kv_heads=1, size=32, value_dim=5
    window @ head_dim=4, heads=2, kv_heads=1, rope=true, sink=true, size=9, value_dim=5
    chunked @ head_dim=3, heads=2, size=1, value_dim=5
    chunked @ head_dim=3, heads=2, size=2000, value_dim=5
    chunked @ head_dim=3, heads=4, kv_heads=2, size=32, value_dim=5
    chunked @ conv=3, head_dim=4, heads=2, rope=true, size=70, value_dim=5
    mla @ conv=3, head_dim=3, heads=2, latent=7, rope_dim=4, value_dim=5
    mla @ head_dim=3, heads=2, latent=3, value_dim=5
    linear @ feature=elu, head_dim=3, heads=2, value_dim=5
    linear @ feature=relu, head_dim=3, heads=2, value_dim=5
    linear @ feature=identity, head_dim=3, heads=2, value_dim=5
    linear @ feature=taylor, head_dim=3, heads=2, value_dim=5
    linear @ feature=elu, head_dim=3, heads=2, normaliser=false, value_dim=5
    linear @ feature=relu, head_dim=3, heads=2, normaliser=false, value_dim=5
    linear @ feature=identity, head_dim=3, heads=2, normaliser=false, value_dim=5
    linear @ feature=taylor, head_dim=3, heads=2, normaliser=false, value_dim=5
    linear @ head_dim=3, heads=2, key_heads=1, value_dim=5
    linear @ conv=4, gate=silu, head_dim=3, heads=2, value_dim=5
    loglinear @ feature=identity, head_dim=3, heads=2, value_dim=5
    loglinear @ feature=elu, head_dim=3, heads=2, value_dim=5
    loglinear @ feature=relu, head_dim=3, heads=2, value_dim=5
    loglinear @ head_dim=3, heads=2, key_heads=1, value_dim=5
    loglinear @ base=gdn, conv=2, head_dim=3, heads=2, key_heads=1, value_dim=5
    deltanet @ head_dim=3, heads=2, key_heads=1, value_dim=5
    deltanet @ conv=3, gate=norm, head_dim=3, heads=2, negative=true, value_dim=5
    gdn @ head_dim=3, heads=2, value_dim=5
    gdn @ head_dim=3, heads=4, key_heads=2, value_dim=5
    gdn @ head_dim=1, heads=1
    gdn @ conv=4, gate=silu, head_dim=3, heads=2, negative=true, value_dim=5
    deltaproduct @ conv=2, head_dim=3, heads=2, householders=3, key_heads=1, value_dim=5
    deltaproduct @ head_dim=3, heads=2, householders=1, negative=false, value_dim=5
    kda @ head_dim=3, heads=2, value_dim=5
    kda @ conv=3, gate=sigmoid, head_dim=3, heads=2, value_dim=5
    gla @ gate=silu, head_dim=3, heads=2, key_heads=1, value_dim=5
    hgrn2 @ conv=3, head_dim=3, heads=2, value_dim=5
    retnet @ gate=silu, head_dim=4, heads=2, value_dim=5
    lightning @ conv=2, head_dim=3, heads=2, value_dim=5
    mamba2 @ conv=4, groups=2, head_dim=3, heads=4, state=5
    mlstm @ conv=4, head_dim=3, heads=2, value_dim=5
    rwkv @ head_dim=3, heads=2, value_dim=5, width=6
    rwkv @ conv=2, gate=norm, head_dim=3, heads=2, key_heads=1, value_dim=5, width=6
    rglru @ width=5
    rglru @ conv=4, width=5
    shortconv @ width=5, conv=3
    sparse @ block=4, head_dim=3, heads=2, topk=2, value_dim=5
    sparse @ block=1, head_dim=3, heads=2, topk=3, value_dim=5
    sparse @ block=16, head_dim=3, heads=4, kv_heads=2, topk=1, value_dim=5
    sparse @ block=32, head_dim=3, heads=2, topk=9, value_dim=5
    sparse @ block=8, head_dim=3, heads=4, kv_heads=2, topk=2, value_dim=5, window=11
    sparse @ block=8, gates=true, head_dim=4, heads=2, rope=true, topk=2, value_dim=5
    sparse @ block=5, conv=3, gates=true, head_dim=3, heads=2, kv_heads=1, topk=3, window=70
    moba @ block=4, head_dim=3, heads=4, kv_heads=2, topk=2, value_dim=5
    moba @ block=1, head_dim=3, heads=2, topk=3, value_dim=5
    moba @ block=16, conv=3, head_dim=4, heads=2, rope=true, topk=1, value_dim=5
    moba @ block=32, head_dim=3, heads=2, topk=9, value_dim=5
    indexed @ head_dim=3, heads=4, index_dim=2, index_heads=3, kv_heads=2, topk=8, value_dim=5
    indexed @ head_dim=3, heads=2, index_dim=1, topk=2, value_dim=5
    indexed @ conv=3, head_dim=4, heads=2, index_dim=5, index_heads=2, rope=true, topk=40
    indexed @ head_dim=3, heads=2, index_dim=4, topk=300, value_dim=5
""")
"""Every mixer, as a stack of one layer: sizes that change what is computed, at several values."""


def mixers() -> Iterator[Piece]:
    """Every mixer at drawn weights: all its forms, the state that it leaves, and gradients."""
    known, _ = mixer_table()
    demand_all("mixers", known, (spec.partition(" @ ")[0] for spec in MIXERS))
    for spec in MIXERS:
        yield from of_mixer(spec)
        yield from of_half_mixer(f"{spec}, bf16")


def mixer_table() -> tuple[Iterable[str], Callable[..., Mixer]]:
    """The names of all mixers, and the function that makes one. Their package is no public name."""
    from separatrix import mixers as package

    return package.MIXERS, package.mixer


def drawn_mixer(spec: str) -> Mixer:
    """The mixer of a stack of one layer, in float64 and drawn from a seed."""
    import torch

    import separatrix as sx

    _, make = mixer_table()
    mixer = make(sx.Architecture.parse(spec).layers[0][0], width=WIDTH).double()
    generator = torch.Generator().manual_seed(0)
    mixer.reset(generator)
    with torch.no_grad():
        for _, parameter in sorted(mixer.named_parameters()):
            # moved a little, so that none stays at a special value such as 0
            noise = torch.randn(parameter.shape, generator=generator, dtype=torch.float64)
            parameter.add_(0.1 * noise)
    return mixer


def normal(*shape: int, seed: int) -> Tensor:
    """Normal numbers in float64."""
    import torch

    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)


def of_mixer(spec: str) -> Iterator[Piece]:
    """One mixer in float64 at every length."""
    import torch

    mixer = drawn_mixer(spec)
    yield f"{spec}/parameters", packed(dict(mixer.named_parameters()))
    for tokens in LENGTHS:
        x = normal(BATCH, tokens, WIDTH, seed=tokens)
        yield from forms(f"{spec}/{tokens}", mixer, x)
        inputs = {"input": x.requires_grad_(), **dict(mixer.named_parameters())}
        weights = normal(BATCH, tokens, WIDTH, seed=1000 + tokens)
        scalar = (mixer(x) * weights).sum()
        gradients = torch.autograd.grad(
            scalar, list(inputs.values()), allow_unused=True, materialize_grads=True
        )
        named = dict(zip(inputs, gradients, strict=True))
        yield f"{spec}/{tokens}/gradients", packed(named)


def of_half_mixer(spec: str) -> Iterator[Piece]:
    """One mixer in bfloat16: sums over tokens are wider, states are stored as declared."""
    import torch

    mixer = drawn_mixer(spec).to(torch.bfloat16)
    x = normal(BATCH, HALF_LENGTH, WIDTH, seed=HALF_LENGTH).to(torch.bfloat16)
    yield from forms(f"{spec}/{HALF_LENGTH}", mixer, x)


def forms(name: str, mixer: Mixer, x: Tensor) -> list[Piece]:
    """The outputs of all forms of a mixer on x, and the state after the last token."""
    import torch

    outputs = []
    state = mixer.init_state(len(x))
    with torch.no_grad():
        for t in range(x.shape[1]):
            y, state = mixer.step(x[:, t], state, t)
            outputs.append(y)
        return [
            (f"{name}/forward", packed({"y": mixer(x)})),
            (f"{name}/last", packed({"y": mixer.last(x)})),
            (f"{name}/step", packed({"y": torch.stack(outputs, 1)})),
            (f"{name}/state", packed(state)),
        ]
