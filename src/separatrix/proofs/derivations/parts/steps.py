"""What may stand between the maps of a softmax head and its scores, and between its average and the
output map: short convolution, QK-norm, rotation, sink, output gate. One small evaluator per option.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from separatrix.core.errors import CheckFailed
from separatrix.core.numbers.rotary import Rotation
from separatrix.mixers.base.softmax import HeadNorm, SoftmaxMixer
from separatrix.mixers.full import FoxMixer
from separatrix.proofs.circle import MOST_PLACES, trig_off, turned
from separatrix.proofs.derivations.parts.gates import (
    no_longer,
    reciprocal_root,
    sigmoid,
    squares,
)
from separatrix.proofs.machine import (
    Array,
    Enclosure,
    limited,
    linear,
    roundings,
    slack,
    times,
)

Kind = Literal["q", "k", "v"]
ROOTS = "reciprocal roots within 8 u of sums"
OPEN = 1024.0
"""From here on the logarithm of a sigmoid is 0 in every format: e^-1024 is below their numbers."""


Where = NDArray[np.int64] | Literal["apart"] | None
"""The places of rows; None: any; "apart": any, and rows as they are before they are turned, since
of a query and a key only what is between them counts (turning.py).
"""


class Step:
    """One option of a head. What it does not touch it leaves as it is."""

    assumes: str = ""
    """What is assumed of the arithmetic beyond what every proof says."""

    def mapped(self, kind: Kind, x: Enclosure, places: Where, what: str) -> Enclosure:
        """Queries, keys or values behind it, of tokens at these places."""
        return x

    @property
    def rival(self) -> float | None:
        """The score of one more key, of a value of 0."""
        return None

    def given(self, y: Enclosure, x: Enclosure, what: str) -> Enclosure:
        """Outputs y of tokens x (one row) behind it."""
        return y


@dataclass(frozen=True)
class Convolved(Step):
    """A short convolution whose kernels are 0 but for the newest token."""

    taps: dict[Kind, Array]
    """Of the newest token, channel by channel."""

    @classmethod
    def of(cls, mixer: SoftmaxMixer, head: int) -> Convolved | None:
        if mixer.conv is None:
            return None
        kernel = mixer.conv.weight.detach().double().numpy()
        if kernel[:, :-1].any():
            raise CheckFailed("its convolution mixes tokens, and nothing is proved of that")
        taps: dict[Kind, Array] = {}
        blocks = np.split(kernel[:, -1], np.cumsum(mixer.channels)[:-1])
        for kind, block in zip(("q", "k", "v"), blocks, strict=True):
            heads = mixer.heads if kind == "q" else mixer.kv
            taps[kind] = own_group(block.reshape(heads, -1), head, mixer.heads, "its convolution")
        return cls(taps)

    def mapped(self, kind: Kind, x: Enclosure, places: Where, what: str) -> Enclosure:
        taps = self.taps[kind]
        # products with 0 and 1, and sums with 0, are exact
        if np.isin(taps, (0.0, 1.0)).all():
            return x.like(x.mid * taps, x.rad * taps)
        return _stored_product(x, Enclosure.point(taps[None], x.arithmetic), what)


@dataclass(frozen=True)
class Normed(Step):
    """RMS norms of queries and keys, `count` numbers under one root."""

    weights: dict[Kind, Array]
    count: dict[Kind, int]
    assumes = ROOTS

    @classmethod
    def of(cls, mixer: SoftmaxMixer, head: int) -> Normed | None:
        if mixer.q_norm is None or mixer.k_norm is None:
            return None
        weights: dict[Kind, Array] = {}
        count: dict[Kind, int] = {}
        norms: tuple[tuple[Kind, HeadNorm, int], ...] = (
            ("q", mixer.q_norm, mixer.heads),
            ("k", mixer.k_norm, mixer.kv),
        )
        for kind, norm, heads in norms:
            table = norm.weight.detach().double().numpy()
            if table.ndim == 2:
                table = own_group(table, head, mixer.heads, "its norm")
            weights[kind] = table
            count[kind] = mixer.head_dim * (heads if norm.whole else 1)
        return cls(weights, count)

    def mapped(self, kind: Kind, x: Enclosure, places: Where, what: str) -> Enclosure:
        if kind == "v":
            return x
        factor = reciprocal_root(squares(x), self.count[kind], what)
        weight = Enclosure.point(self.weights[kind][None], factor.arithmetic)
        scaled = _stored_product(no_longer(x, factor, self.count[kind]), factor, what)
        return _stored_product(scaled, weight, what)


@dataclass(frozen=True)
class Rotated(Step):
    """Rotation of queries and keys by their places."""

    rotation: Rotation
    assumes = "sine and cosine within 8 u of sums"

    @classmethod
    def of(cls, mixer: SoftmaxMixer, head: int) -> Rotated | None:
        return None if mixer.rotation is None else cls(mixer.rotation)

    def mapped(self, kind: Kind, x: Enclosure, places: Where, what: str) -> Enclosure:
        arithmetic = x.arithmetic
        half = self.rotation.dims // 2
        turning = np.arange(x.mid.shape[1]) < 2 * half
        if kind == "v" or not x.used[turning].any():
            return x
        first, second = (x.columns(np.arange(start, start + half)) for start in (0, half))
        size = (first.size + second.size) * (1 + slack(4))
        limited(size, what, arithmetic)
        # two products and a sum
        units = 4 * float(arithmetic.summed) + slack(4)
        known = isinstance(places, np.ndarray)
        off = trig_off(arithmetic, int(places.max()) if known else MOST_PLACES)
        loose = (units + off) * size + 8 * arithmetic.summed_tiny + arithmetic.tiny
        # whatever the angle: no number is longer than both together
        reach = np.where(size == 0, 0.0, (size + loose) * (1 + 2.0**-40))
        if isinstance(places, str):
            sums = float(roundings(x.mid.shape[1], x.summed().arithmetic)) if kind == "q" else 0.0
            found = _unturned(first, second, loose, sums)
        elif places is None:
            found = [(np.zeros_like(reach), reach)] * 2
        else:
            cos, sin = turned(self.rotation, places, arithmetic)
            found = [
                (
                    left.mid * a + right.mid * b,
                    np.where(
                        size == 0,
                        0.0,
                        (left.rad * np.abs(a) + right.rad * np.abs(b) + loose) * (1 + 2.0**-40),
                    ),
                )
                for left, right, a, b in ((first, second, cos, -sin), (second, first, cos, sin))
            ]
        mids, rads = zip(*found, strict=True)
        pairs = x.like(np.concatenate(mids, 1), np.concatenate(rads, 1))
        pairs = pairs if isinstance(places, str) else pairs.stored()
        return x.like(
            np.concatenate([pairs.mid, x.mid[:, 2 * half :]], 1),
            np.concatenate([pairs.rad, x.rad[:, 2 * half :]], 1),
        )


def _unturned(
    first: Enclosure, second: Enclosure, loose: Array, sums: float
) -> list[tuple[Array, Array]]:
    """Pairs before they are turned, with all that is rounded after it, which is as long in one
    frame as in another. `loose`: how far a number may be from its turned one; `sums`: what a score
    loses where it is added up, as a share of |q| |k|, the most that products of a pair add up to.
    """
    arithmetic = first.arithmetic
    long = np.sqrt(first.size**2 + second.size**2) * (1 + 2.0**-40)
    error = 2 * loose + first.rad + second.rad + (sums + 2.0**-44 * bool(sums)) * long
    if arithmetic.narrowed:
        error = error + float(arithmetic.stored) * (long + 2 * loose) + 2 * arithmetic.tiny
    none = long == 0
    error = np.where(none, 0.0, error * (1 + 2.0**-40))
    return [(x.mid, error) for x in (first, second)]


@dataclass(frozen=True)
class Sunk(Step):
    """A sink: one score more in every softmax."""

    score: float

    @classmethod
    def of(cls, mixer: SoftmaxMixer, head: int) -> Sunk | None:
        if mixer.sink is None:
            return None
        sinks = mixer.sink.detach().double().numpy()
        return cls(float(own_group(sinks[:, None], head, mixer.heads, "its sinks")[0]))

    @property
    def rival(self) -> float | None:
        return self.score


@dataclass(frozen=True)
class Gated(Step):
    """An output gate: the sigmoid of a map of x."""

    weight: Array
    """(1 or value_dim, width)"""

    @classmethod
    def of(cls, mixer: SoftmaxMixer, head: int) -> Gated | None:
        if mixer.gate is None:
            return None
        table = mixer.gate.weight.detach().double().numpy()
        rows = table.reshape(mixer.heads, -1, table.shape[1])
        return cls(own_group(rows, head, mixer.heads, "its gate"))

    def given(self, y: Enclosure, x: Enclosure, what: str) -> Enclosure:
        rows = linear(x, self.weight, what=f"{what}, gate")
        shares = sigmoid(rows.summed(), f"{what}, gate").stored_in(x.arithmetic)
        return times(y, shares, f"{what}, gate")


@dataclass(frozen=True)
class Remembering(Step):
    """A forget gate that is 1 at every token: it takes nothing from any score."""

    @classmethod
    def of(cls, mixer: SoftmaxMixer, head: int) -> Remembering | None:
        if not isinstance(mixer, FoxMixer):
            return None
        weight, bias = (
            tensor.detach().double().numpy() for tensor in (mixer.f.weight, mixer.f.bias)
        )
        if weight.any() or bias[head] < OPEN:
            raise CheckFailed(
                "its forget gate is not 1 at every token, and nothing is proved of what it forgets"
            )
        return cls()


OPTIONS: tuple[
    tuple[frozenset[str], tuple[str, ...], Callable[[SoftmaxMixer, int], Step | None]], ...
] = (
    (frozenset({"conv"}), ("conv.weight",), Convolved.of),
    (frozenset({"qk_norm"}), ("q_norm.weight", "k_norm.weight"), Normed.of),
    (frozenset({"rope", "rope_dim", "rope_scaling"}), (), Rotated.of),
    (frozenset({"sink"}), ("sink",), Sunk.of),
    (frozenset(), ("f.weight", "f.bias"), Remembering.of),
    (frozenset({"gate"}), ("gate.weight",), Gated.of),
)
"""In the order in which they act: the mechanism's options that an evaluator covers, the parameters
that it reads, and how it is made for one head.
"""
COVERED = frozenset[str]().union(*(names for names, _, _ in OPTIONS))
PARAMETERS = tuple(name for _, names, _ in OPTIONS for name in names)


def steps(mixer: SoftmaxMixer, head: int, where: str) -> tuple[Step, ...]:
    """The options of a mixer's head, in order. Raises CheckFailed for one without an evaluator."""
    other = mixer.mechanism.altered - COVERED
    if other:
        raise CheckFailed(
            f"{where}: nothing is proved of {mixer.mechanism.name} with {', '.join(sorted(other))}"
        )
    try:
        made = [of(mixer, head) for _, _, of in OPTIONS]
    except CheckFailed as error:
        raise CheckFailed(f"{where}: {error}") from None
    return tuple(step for step in made if step is not None)


def _stored_product(x: Enclosure, factor: Enclosure, what: str) -> Enclosure:
    """Every number times a factor, which is rounded to one number of the format where it is told so
    closely.
    """
    return times(x.summed(), factor.summed(), what).stored_in(x.arithmetic)


def own_group(table: Array, head: int, heads: int, what: str) -> Array:
    """A head's entry of a table of heads, or of groups that heads share. Raises CheckFailed where
    another entry is not zero.
    """
    used = head // (heads // len(table))
    if np.delete(table, used, 0).any():
        raise CheckFailed(f"{what} of a head that is not used is not zero")
    return table[used]
