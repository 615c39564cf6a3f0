"""What the comparisons with other implementations share: finding the peers, drawing weights,
comparing in float32.

Shapes: b batch, t tokens, w model width, h heads, d key dimension, e value dimension.
"""

from __future__ import annotations

import ast
import importlib
import importlib.util
from collections.abc import Callable, Iterator
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from separatrix.mixers import Mixer, mixer
from separatrix.mixers.laws import drawn, stream
from separatrix.stacks.mechanisms import mechanism

LENGTHS = (1, 5, 64, 130)
PREFILL = 70
STEPS = 6
RELATIVE = 1e-5
"""Of the largest number of the compared tensor."""


def naive(operator: str, *, file: str = "naive", **instead: Any) -> SimpleNamespace:
    """The functions of an operator's pure-torch reference in flash-linear-attention, loaded by its
    path: importing the package needs triton. Imports from the package are left out, so a function
    that uses them ends in a NameError, unless another stands in `instead`. Skips where fla-core is
    absent.
    """
    found = importlib.util.find_spec("fla")
    if found is None or not found.submodule_search_locations:
        pytest.skip("fla-core is not installed (extra `peers`)")
    path = Path(found.submodule_search_locations[0]) / "ops" / operator / f"{file}.py"
    parsed = ast.parse(path.read_text(encoding="utf-8"))
    names = dict(instead)
    parsed.body = [
        node
        for node in parsed.body
        if isinstance(node, ast.FunctionDef | ast.ClassDef | ast.Import) or _outside(node)
    ]
    exec(compile(parsed, str(path), "exec"), names)
    return SimpleNamespace(**names)


def _outside(node: ast.stmt) -> bool:
    return (
        isinstance(node, ast.ImportFrom)
        and node.level == 0
        and node.module is not None
        and not node.module.startswith("fla")
    )


def released(model: str) -> tuple[ModuleType, ModuleType]:
    """transformers' modeling and configuration files of a model type. Skips the test where
    transformers is absent.
    """
    if importlib.util.find_spec("transformers") is None:
        pytest.skip("transformers is not installed (extra `peers`)")
    folder = f"transformers.models.{model}"
    return importlib.import_module(f"{folder}.modeling_{model}"), importlib.import_module(
        f"{folder}.configuration_{model}"
    )


def ours(name: str, sizes: dict[str, Any], *, width: int) -> Mixer:
    """Our mixer in float32 at drawn weights, none of them at a special value."""
    return drawn(mixer(mechanism(name, **sizes), width=width)).float()


@torch.no_grad()
def draw(module: nn.Module) -> nn.Module:
    """The peer's module in float32 at drawn weights: matrices of standard deviation
    1/sqrt(fan-in), vectors of 1/2.
    """
    generator = torch.Generator().manual_seed(0)
    for parameter in module.parameters():
        scale = parameter[0].numel() ** -0.5 if parameter.dim() >= 2 else 0.5
        parameter.copy_(scale * torch.randn(parameter.shape, generator=generator))
    return module.float().eval()


@torch.no_grad()
def filled(name: str, sizes: dict[str, Any], *, width: int, **weights: Tensor) -> Mixer:
    """Our mixer in float32 with these weights; every parameter must be given. `a__b` stands for
    `a.b`.
    """
    ours = mixer(mechanism(name, **sizes), width=width)
    given = {name.replace("__", "."): weight for name, weight in weights.items()}
    parameters = dict(ours.named_parameters())
    assert given.keys() == parameters.keys(), (
        f"given {sorted(given)}, the mixer has {sorted(parameters)}"
    )
    for name, parameter in parameters.items():
        assert parameter.shape == given[name].shape, (
            f"{name}: {tuple(given[name].shape)}, the mixer has {tuple(parameter.shape)}"
        )
        parameter.copy_(given[name])
    return ours.float()


def tokens(width: int, seed: int = 1) -> Tensor:
    """Inputs (2, the longest length, w)."""
    return torch.randn(2, max(LENGTHS), width, generator=torch.Generator().manual_seed(seed))


def gap(a: Tensor, b: Tensor) -> float:
    """The largest difference, of the largest number."""
    assert a.shape == b.shape, f"shapes {tuple(a.shape)} and {tuple(b.shape)}"
    assert a.dtype == b.dtype == torch.float32
    return ((a - b).abs().max() / b.abs().max()).item()


def same(a: Tensor, b: Tensor, what: str) -> None:
    assert gap(a, b) <= RELATIVE, (
        f"{what}: ours and the peer's differ by {gap(a, b):.2g} of the largest number"
    )


@torch.no_grad()
def agree(mixer: Mixer, peer: Callable[[Tensor], Tensor]) -> None:
    """`forward` and the peer give the same outputs for sequences of every length."""
    x = tokens(mixer.width)
    for length in LENGTHS:
        same(mixer(x[:, :length]), peer(x[:, :length]), f"T={length}")


@torch.no_grad()
def agree_in_steps(mixer: Mixer, peer: Callable[[Tensor, Any, int], Tensor], cache: Any) -> None:
    """Our `step` and the peer's cached form give the same outputs: a prompt, then token by
    token. peer(x, cache, start).
    """
    x = tokens(mixer.width)[:, : PREFILL + STEPS]
    parts = [peer(x[:, :PREFILL], cache, 0)] + [
        peer(x[:, t : t + 1], cache, t) for t in range(PREFILL, PREFILL + STEPS)
    ]
    same(stream(mixer, x)[0], torch.cat(parts, 1), "with a cache")


@torch.no_grad()
def differ_when_perturbed(
    mixer: Mixer, peer: Callable[[Tensor], Tensor], *, length: int = 64
) -> None:
    """A change of any one parameter by 1e-3 of its size is seen: the comparison reaches them
    all.
    """
    x = tokens(mixer.width)[:, :length]
    wanted = peer(x)
    # what was drawn before by other tests decides nothing: choices of indices are near misses
    generator = torch.Generator().manual_seed(0)
    for name, parameter in mixer.named_parameters():
        before = parameter.clone()
        noise = torch.rand(parameter.shape, generator=generator, dtype=parameter.dtype)
        parameter.add_(1e-3 * (parameter.abs().max() + 1e-3) * (1 + noise))
        assert gap(mixer(x), wanted) > RELATIVE, (
            f"a change of {name} by 1e-3 is not seen: {gap(mixer(x), wanted):.2g}"
        )
        parameter.copy_(before)


def split(x: Tensor, heads: int, copies: int = 1) -> Tensor:
    """(b, t, h d) -> (b, t, h, d), every head `copies` times: the layout of
    flash-linear-attention.
    """
    return x.unflatten(-1, (heads, -1)).repeat_interleave(copies, 2)


def qkv(mixer: Any, x: Tensor) -> Iterator[Tensor]:
    """Queries, keys and values of our mixer's weights without a convolution, (b, t, h, d): q, k
    at the heads they have, v at its own.
    """
    sizes = mixer.mechanism.sizes()
    q_heads = sizes["heads"]
    kv_heads = sizes.get("kv_heads")
    shared = sizes.get("key_heads") or q_heads
    counts = (q_heads, kv_heads, kv_heads) if kv_heads else (shared, shared, q_heads)
    yield from (
        split(x @ m.weight.T, h) for m, h in zip((mixer.q, mixer.k, mixer.v), counts, strict=True)
    )


def out(mixer: Any, y: Tensor) -> Tensor:
    """Our output map of heads (b, t, h, e)."""
    return y.flatten(2) @ mixer.o.weight.T
