"""Models whose carried numbers are rounded to p bits, so that a cache is one of finitely many
things: what Theorem I counts.

A grid of p bits has the 2^p levels k * step, k = -2^(p-1), ..., 2^(p-1) - 1 (two's complement fixed
point), step a power of two. After each token every carried number goes to the nearest level, or to
the outermost one if it lies beyond. Everything else is computed in float64. Places of tokens are
free and exact. `border` says how far every number stayed from the border between two levels before
it was rounded: while it is much larger than float64's rounding error, every machine reaches the
same levels.
"""

from __future__ import annotations

import copy
import math
import re
from collections import deque
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import NamedTuple

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from separatrix.core.errors import SizeError, SpecError
from separatrix.core.evidence.canonical import canonical, sha256
from separatrix.core.numbers.formats import FORMATS, NumberFormat
from separatrix.models.model import Cache, Model
from separatrix.stacks.architecture import Architecture, Mechanism
from separatrix.stacks.mechanisms.base import OpenedBlocks

LEAST_BORDER = 1e-9
"""A run that comes closer to a border than this is no evidence: another machine might round the
other way.
"""
LEAST_MARGIN = 1e-6
"""Likewise for the gap between the two largest logits, and between the scores of the last block
opened and the first left closed.
"""
MESSAGES = frozenset({"compressed_keys", "compressed_values"})
"""Names of the tensors a sparse layer's complete blocks are compressed to."""
LEAST_FLOAT32_MARGIN = 1e-4
"""Likewise for the gap between the two largest logits where the model also runs in float32."""
LEAST_ALIKE = 1e-2
"""Likewise where two prompts are said to be answered alike, by a model whose states are rounded:
a rounding more or less of bf16 moves logits of about 1 by less.
"""
_MOST_BITS = 32
_MOST_EXPONENT = 64


@dataclass(frozen=True)
class Grid:
    """2^bits levels, spaced 2^exponent. Raises SizeError outside 1 to 32 bits or steps outside
    2^-64 to 2^64.
    """

    bits: int
    exponent: int

    def __post_init__(self) -> None:
        if not 1 <= self.bits <= _MOST_BITS or abs(self.exponent) > _MOST_EXPONENT:
            raise SizeError(
                f"a grid of {self.bits} bits and step 2^{self.exponent}; it has 1 to 32 bits and a"
                " step from 2^-64 to 2^64"
            )

    @classmethod
    def parse(cls, text: str) -> Grid:
        """The grid of a text such as 'p3:step=2^-1'. Raises SpecError for any other form,
        SizeError for sizes out of range.
        """
        match = re.fullmatch(r"p([1-9][0-9]?):step=2\^(0|-?[1-9][0-9]?)", text, re.ASCII)
        if match is None:
            raise SpecError(f"'{text}' is no grid: write pN:step=2^E, for example p3:step=2^-1")
        return cls(int(match[1]), int(match[2]))

    def __str__(self) -> str:
        return f"p{self.bits}:step=2^{self.exponent}"

    @property
    def step(self) -> float:
        return math.ldexp(1.0, self.exponent)

    def codes(self, x: Float[Tensor, "*b"]) -> Int[Tensor, "*b"]:
        """The number k of each value's level."""
        # a power of two divides exactly, so the only rounding is the one to a level
        return (x / self.step).round().clamp(-(1 << self.bits - 1), (1 << self.bits - 1) - 1).long()

    def round(self, x: Float[Tensor, "*b"]) -> Float[Tensor, "*b"]:
        """The nearest levels; what is not finite stays so."""
        # NaN has no integer to become: it goes around `codes`
        return torch.where(x.isfinite(), self.codes(x.nan_to_num()) * self.step, x)

    def border_distance(self, x: Float[Tensor, "*b"]) -> Float[Tensor, "*b"]:
        """How far each value is from the nearest border (k + 1/2) * step between two levels; 0
        where it is not finite.
        """
        low = -(1 << self.bits - 1)
        high = (1 << self.bits - 1) - 1
        # beyond the outermost levels the nearest border is the last one between two of them
        border = (x / self.step).floor().clamp(low, high - 1) + 0.5
        return torch.where(x.isfinite(), (x - border * self.step).abs(), 0.0)


def carried_bits(architecture: Architecture) -> set[int | None]:
    """N for every pN in which a layer declares what it carries; None for another format."""
    carrying = [part for layer in architecture for part in layer if part.cache(1)]
    names = {part.sizes().get("state_format") or part.format for part in carrying}
    # floating-point formats have no uniform levels
    return {None if name in FORMATS else NumberFormat(name).bits for name in names}


def declared_bits(architecture: Architecture) -> int | None:
    """N where every layer that carries something declares its carried numbers as pN, so that grids
    of N bits are what the stack declares; None where one declares another format.
    """
    bits = carried_bits(architecture)
    return bits.pop() if len(bits) == 1 else None


def declaring(model: Model, bits: int) -> Model:
    """The model with the same weights as a stack that declares its carried numbers as p`bits`;
    itself where it does already.
    """
    if declared_bits(model.architecture) == bits:
        return model
    layers = [tuple(_declaring(part, bits) for part in layer) for layer in model.architecture]
    spec = Architecture(tuple(layers)).spec
    narrow = Model(replace(model.config, architecture=spec)).to(model.head.weight.dtype)
    narrow.load_state_dict(model.state_dict())
    return narrow.train(model.training)


def _declaring(part: Mechanism, bits: int) -> Mechanism:
    sizes = part.sizes()
    if not part.cache(1):
        return part
    return replace(part, **{"state_format" if "state_format" in sizes else "format": f"p{bits}"})


class RoundedRun(NamedTuple):
    """What a batch of prompts left behind: logits after the last token, the rounded cache, the
    smallest border distance of each prompt.
    """

    logits: Float[Tensor, "b answers"]
    cache: Cache
    border: Float[Tensor, " b"]


def exact(model: Model) -> Model:
    """A copy of the model in float64 on the CPU, in which runs are made."""
    return copy.deepcopy(model).to(device="cpu", dtype=torch.float64).eval()


def quantise_cache(cache: Cache, grid: Grid, *, names: frozenset[str] | None = None) -> Cache:
    """The cache with every number rounded; with `names`, those tensors only."""
    return [
        [
            {n: grid.round(x) if _rounded(n, names) else x for n, x in state.items()}
            for state in states
        ]
        for states in cache
    ]


def border_distance(
    cache: Cache, grid: Grid, *, names: frozenset[str] | None = None
) -> Float[Tensor, " b"]:
    """The smallest border distance over all the numbers that each sequence carries; infinite if
    it carries none.
    """
    smallest = torch.full((_batch(cache),), math.inf, dtype=torch.float64)
    for _, x in carried(cache, names):
        # amin refuses an axis of no numbers
        if x[0].numel():
            smallest = torch.minimum(smallest, grid.border_distance(x).flatten(1).amin(1))
    return smallest


@torch.no_grad()
def run(
    model: Model,
    tokens: Int[Tensor, "b t"],
    grid: Grid,
    *,
    names: frozenset[str] | None = None,
    after: RoundedRun | None = None,
    seen: int = 0,
    check: Callable[[], None] = lambda: None,
) -> RoundedRun:
    """Streams t >= 1 tokens through the model, rounding after each, the start token included.

    `after` is a run over the `seen` tokens before; `check` is called after each token. Raises
    SizeError unless the model computes in float64 (`exact` makes such a copy), and what `check`
    raises.
    """
    if model.head.weight.dtype != torch.float64 or tokens.shape[1] < 1:
        raise SizeError(
            "a quantised run needs a model in float64 and at least one token; `caches.exact`"
            " makes a float64 copy"
        )
    if after is None:
        start = model.init_cache(tokens.shape[0])
        after = RoundedRun(
            torch.zeros(tokens.shape[0], 0),
            quantise_cache(start, grid, names=names),
            border_distance(start, grid, names=names),
        )
    for place in range(tokens.shape[1]):
        logits, cache = model.step(tokens[:, place], after.cache, seen + place)
        # of the cache before it is rounded: afterwards every number sits on its level
        border = torch.minimum(after.border, border_distance(cache, grid, names=names))
        after = RoundedRun(logits, quantise_cache(cache, grid, names=names), border)
        check()
    return after


@torch.no_grad()
def steps(
    model: Model, tokens: Int[Tensor, "b t"], check: Callable[[], None] = lambda: None
) -> Iterator[tuple[Float[Tensor, "b answers"], Cache]]:
    """Logits after each token, and what the tokens so far leave behind, in the model's own
    formats; `check` is called after each. Raises what `check` raises.
    """
    cache = model.init_cache(len(tokens))
    for place, token in enumerate(tokens.unbind(1)):
        logits, cache = model.step(token, cache, place)
        check()
        yield logits, cache


def decoded(
    model: Model, tokens: Int[Tensor, "b t"], check: Callable[[], None] = lambda: None
) -> tuple[Float[Tensor, "b answers"], Cache]:
    """What `steps` has after the last of t >= 1 tokens."""
    return deque(steps(model, tokens, check), maxlen=1).pop()


def same_states(cache: Cache, other: Cache) -> Bool[Tensor, " b"]:
    """Which sequences of two caches carry the same numbers, bit for bit but for the sign of 0."""
    same = torch.ones(_batch(cache), dtype=torch.bool)
    for (_, x), (_, y) in zip(carried(cache, None), carried(other, None), strict=True):
        same &= (x == y).flatten(1).all(1) if x[0].numel() else True
    return same


def cache_codes(
    cache: Cache, grid: Grid, *, names: frozenset[str] | None = None
) -> Int[Tensor, "b numbers"]:
    """A rounded cache as the numbers of its levels, in the order layer, kind of heads, name,
    index.
    """
    # cat refuses an empty list, and a cache may hold no tensor
    empty = torch.zeros(_batch(cache), 0, dtype=torch.int64)
    return torch.cat([empty, *(grid.codes(x).flatten(1) for _, x in carried(cache, names))], 1)


def cache_digest(cache: Cache, grid: Grid, *, names: frozenset[str] | None = None) -> str:
    """sha256 of the first sequence's rounded cache: its shape and, in order, every level as a
    signed 64-bit little-endian integer.
    """
    # with the shapes, caches of the same levels in other tensors have other digests
    shape = canonical([[where, list(x.shape[1:])] for where, x in carried(cache, names)])
    codes = cache_codes(cache, grid, names=names)[0].numpy().astype("<i8")
    return sha256(shape.encode() + b"\n" + codes.tobytes())


def margin(logits: Float[Tensor, " answers"]) -> float:
    """The gap between the two largest logits; 0 if one is not finite, infinite if there is only
    one answer.
    """
    if not bool(logits.isfinite().all()):
        return 0.0
    if len(logits) < 2:
        return math.inf
    first, second = logits.topk(2).values.tolist()
    return first - second


def sparse_blocks(model: Model) -> OpenedBlocks:
    """The blocks of a one-layer sparse model, in which contents may be swapped. Raises SizeError
    for any other architecture.
    """
    part = model.architecture.only
    if part is None or not part.compresses_blocks:
        raise SizeError(f"'{model.architecture.spec}' is not exactly one layer of sparse heads")
    if not part.plain or part.opened_blocks is None:
        raise SizeError(
            f"'{model.architecture.spec}': its sparse heads have conv, rope, window or gates; only"
            " plain ones can be judged"
        )
    return part.opened_blocks


@torch.no_grad()
def selection_gap(model: Model, token: int, cache: Cache, t: int) -> float:
    """How far a one-layer sparse model is from opening other blocks for this token: the gap between
    the k-th and the next score, per head.

    t counts the prompt tokens before it. Infinite if every block is opened. Raises SizeError for a
    model of another shape.
    """
    k = sparse_blocks(model).topk
    block = model._blocks()[0]
    keys = cache[0][0]["compressed_keys"][0]  # g m d
    if keys.shape[1] <= k:
        return math.inf
    # the only layer reads the embedding itself, so no mixer has to run first
    x = block.norm1(model.embed.weight[token] + model.position.weight[t + model.config.bos])
    queries = block.mixers[0].get_submodule("q")(x).view(keys.shape[0], -1, keys.shape[2])  # g r d
    # g r m
    scores = (queries @ keys.transpose(1, 2)).sort(-1, descending=True).values
    return float((scores[..., k - 1] - scores[..., k]).min())


def carried(cache: Cache, names: frozenset[str] | None) -> Iterator[tuple[str, Tensor]]:
    """The tensors of a cache, in order, each with its place; with `names`, those only."""
    for layer, states in enumerate(cache):
        for part, state in enumerate(states):
            for name in sorted(state):
                if _rounded(name, names):
                    yield f"{layer}.{part}.{name}", state[name]


def _batch(cache: Cache) -> int:
    """Sequences in a cache; 1 if it holds no tensor."""
    return next((x.shape[0] for _, x in carried(cache, None)), 1)


def _rounded(name: str, names: frozenset[str] | None) -> bool:
    return names is None or name in names
