"""Relative selection: how clearly rotated queries and keys tell one offset from all others.

A head whose keys are equal before rotation, and whose query asks for the offset d, scores

    s(j) = sum_r w_r cos(theta_r (i - j - d))

at the token that stands i - j places back: its range is [-W, W], W = sum_r w_r, and its largest
value W stands at the offset asked for. With w_r > 0 the lead over all other offsets up to n is

    min over 1 <= D <= n of sum_r w_r (1 - cos(theta_r D)).

Any weights may be taken: here w_r = ratio^r for the ratio that leads most clearly.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from importlib.util import find_spec
from itertools import accumulate, chain, repeat
from math import frexp, fsum
from operator import mul
from typing import Any

from flint import arb, ctx

from separatrix.core.errors import SizeError
from separatrix.core.numbers import plain
from separatrix.core.numbers.formats import DIGITS
from separatrix.core.numbers.lazy import np
from separatrix.core.numbers.rotary import Rotation
from separatrix.core.numbers.turns import turns

MOST_OFFSETS = 1 << 24
"""Offsets beyond which no lead is computed."""
MOST_PAIRS = 1 << 12
RATIOS = (0.9, 0.85, 0.8, 0.75, 0.7)
"""Weights of the next slower pair over that of the faster one, tried in turn."""
ROUNDED = frozenset({"fp64", "fp32", "fp16", "bf16"})
"""Formats that round to the nearest, with u at most 1/256."""
ANGLES = 24
"""Bits of the significand in which angles are computed, whatever the format of the model: float32,
as transformers and this program's mixers do."""
_BLOCK = 1 << 12
_CHUNK = 16
"""Blocks that are looked at together, and kept: a longer prompt begins like a shorter one."""
_FLOATS = 2.0**-30
"""Far more than all float64 errors below together, for leads of sums of weights 1. A row of
`turns` is a product of at most 13 complex numbers, each rounded: within 2^-46. So a product of
two rows is within 2^-44; weights are within 2^-40 of what they should be."""
_FIRST = 1 << 29
_WITHIN = 1 << 23
"""Units of the two factors of a sum, which are rounded to integers: products of 2^52 for weights
of 1 in all and less than 2^37 for what is rounded, so that every sum of them is exact, and the
same in whatever order a library adds."""


@dataclass(frozen=True)
class Lead:
    """The lead of the offset asked for, and what rounding takes from it, as shares of the largest
    score W; the first rounded down, the second rounded up."""

    gap: float
    rounding: float
    ratio: float = RATIOS[0]
    """The weight of a pair over that of the next faster one."""

    @property
    def holds(self) -> bool:
        """Whether the offset asked for wins whatever way numbers are rounded."""
        return self.gap > self.rounding


@lru_cache(maxsize=1024)
def selection_lead(
    rotation: Rotation, offsets: int, format: str, *, normed: bool = False
) -> Lead | None:
    """The certified lead over all offsets from 1 to at least `offsets`, with the weights for which
    it exceeds rounding most; None where it is not computed (too many offsets or pairs, another
    format). `normed`: behind a norm of queries and keys. Raises SizeError for no offsets.
    """
    if offsets < 1:
        raise SizeError(f"a lead over {offsets} offsets; there must be at least 1")
    if offsets > MOST_OFFSETS or rotation.dims > 2 * MOST_PAIRS or format not in ROUNDED:
        return None
    # few offsets are taken exactly, many in whole blocks: a lead over more is a lead over fewer
    whole = offsets if offsets <= _BLOCK else -(-offsets // _BLOCK) * _BLOCK
    errors = angle_errors(rotation, offsets)
    leads = [
        Lead(gap, _rounding(rotation, ratio, errors, format, normed=normed), ratio)
        for ratio, gap in zip(RATIOS, _gaps(rotation, whole), strict=True)
    ]
    return max(leads, key=lambda lead: lead.gap - lead.rounding)


def slow_turn(rotation: Rotation, offsets: int) -> float:
    """1 - cos(theta n) of the slowest pair, rounded up: how far a match of contents in that pair
    may fall with the distance. 2 where the pair turns by more than a right angle, or there are more
    pairs than are looked at.
    """
    if rotation.dims > 2 * MOST_PAIRS:
        return 2.0
    with ctx.workprec(128):
        angle = rotation.angles[-1] * offsets
        if not angle < arb.pi() / 2:
            return 2.0
        return float((1 - angle.cos()).upper()) * (1 + 2.0**-50)


@dataclass(frozen=True)
class Slow:
    """How contents are compared in pairs that turn slowly."""

    left: float
    """What is left of the lead of a bit, as a share of it without rotations, rounded down."""
    doubled: int
    """Of the pairs of a token, those that hold two of its bits; the others hold one."""


@lru_cache(maxsize=1024)
def slow_bits(
    rotation: Rotation,
    tokens: int,
    bits: int,
    many: int,
    format: str,
    *,
    normed: bool = False,
    single: bool = False,
) -> Slow | None:
    """How two of so many tokens compare the bits of `many` of them in the slowest pairs, most
    clearly; None where pairs are too few or turn too far, or the format is another. `normed`:
    behind a norm of queries and keys, which a pair that no query asks with keeps as long where
    there is no such token; `single`: one bit in a pair alone, so that a query may ask for some.

    A query asks in the middle of what a pair turns over all tokens, and is off by a_r = theta_r
    (tokens - 1) / 2 at most. A bit alone in a pair has the weight w_r = 1 / cos(a_r / 2)^2: where
    it differs it takes w_r (1 + cos a_r) = 2, where it is alike it lacks w_r (1 - cos a_r). Each of
    two bits has w_r = 1 / (1 - sin a_r): where one differs it takes 2 w_r (1 - sin a_r) = 2, where
    both are alike they lack 2 w_r (1 - cos a_r).

    A rotated key is off by u of its length, a rotated query by u, its weight by u, the score by u,
    and a query of two bits, a sum, by u before: below 5 u of w_r with what is of second order, or
    6 u of 2 w_r. Two scores, and 2 is the whole: as much of all weights; sines, products and sums
    in float32 take the rest. A norm scales all keys alike, and rounds a query once more. In fp16
    the lead must do with scores of 2^15, as that of offsets.
    """
    pairs = rotation.dims // 2 - normed
    if not 0 < pairs <= MOST_PAIRS or tokens > MOST_OFFSETS or format not in ROUNDED:
        return None
    used = min(many * bits, pairs)
    errors = angle_errors(rotation, tokens)[-used:]
    with ctx.workprec(128):
        unit = arb(2) ** -DIGITS[format]
        rest = (8 * rotation.dims + 64) * arb(2) ** -24 + (2.0**-11 if format == "fp16" else 0)
        # what a bit, or two, lack of 2, rounded; from the last pair on, as long as they are slow
        alone, both = list[arb](), list[arb]()
        for angle, error in zip(rotation.angles[: -used - 1 : -1], errors[::-1], strict=True):
            off = (angle * (tokens - 1) + error) / 2
            if not off < arb.pi() / 2:
                break
            weight = 1 / (off / 2).cos() ** 2
            alone.append(weight - 1 + weight * ((5 + normed) * unit + rest))
            if off < 3 / 2 and len(both) == len(alone) - 1:
                weight = 1 / (1 - off.sin())
                both.append(weight * (1 - off.cos()) + 2 * weight * ((6 + normed) * unit + rest))
        found: list[Slow] = []
        for doubled in range(1 if single else bits // 2 + 1):
            first, last = many * doubled, many * (bits - doubled)
            if first <= len(both) and last <= len(alone):
                lost = sum([*both[:first], *alone[first:last]], arb(0))
                found.append(Slow(float((1 - lost).lower()) - _FLOATS, doubled))
    return max(found, key=lambda one: one.left, default=None)


def _rounding(
    rotation: Rotation, ratio: float, errors: list[float], format: str, *, normed: bool
) -> float:
    """What rounding may take from a lead, as a share of W.

    With u = 2^-p in the format. A pair of the query, w (cos, sin) with w rounded in, is off by u of
    its length; rotation multiplies by a cosine and a sine rounded to u, rounds two products and a
    sum: at most (2 sqrt 2 + 1) u more. The key (1, 0) becomes a rounded cosine and sine: u. So a
    product of the two is off by less than 5.9 u; the score, rounded once, by less than 7 u, and 8 u
    bounds what is of second order with it (u <= 1/256). Two scores: 16 u. A norm of
    queries and keys, its weights a power of two, scales a vector by one factor in float32 and
    rounds each number to u once more. The numbers 1 of the key are rounded alike, which is a factor
    of all scores. So a score is off by less than 8 u, by 9 u with what is of second order: 18 u.

    A score is a sum of d products in float32 at least: below 2 d 2^-24 more, for two scores twice.
    In fp16, whose numbers end at 65,504, the lead must do with scores of 2^15: 2^-10 of them are
    32, more than ln(8 n) for n up to 2^24, so that n tokens weigh nothing.

    Angles are products of a place and a frequency in float32, each off by 2^-24 of its size. The
    score asked for falls by w e^2 / 2 at most, another rises by w e, if both and the frequency are
    off by e in all.
    """
    weights = _weights(ratio, len(errors))
    angles = fsum(w * (error + error * error / 2) for w, error in zip(weights, errors, strict=True))
    rounded = (18 if normed else 16) * 2.0 ** -DIGITS[format] + 4 * rotation.dims * 2.0**-24
    return rounded + angles / fsum(weights) + _FLOATS + (2.0**-10 if format == "fp16" else 0.0)


def angle_errors(rotation: Rotation, offsets: int) -> list[float]:
    """How far the angles of two places are apart from what they should be, for each pair.

    The frequency base^-x is computed in float32 too: x is off by 2^-24 of its size, which x ln base
    multiplies, the power by 2^-23, its reciprocal by 2^-24; base^0 is exact. Division by a factor
    is one operation more. Yarn and llama3 mix angles in at most 8, each off by 2^-24 of the angle
    before. Places up to 2^24 are exact, and so are their products with a power of two.
    """
    plain = rotation.frequencies
    mixed = str(rotation.scaling).startswith(("yarn", "llama3"))
    if mixed or str(rotation.scaling).startswith("linear"):
        plain = Rotation(rotation.base, rotation.dims).frequencies
    errors: list[float] = []
    for before, after in zip(plain, rotation.frequencies, strict=True):
        units = 0.0 if frexp(after)[0] == 0.5 and before == 1 else 2 * after
        units += 0.0 if before == 1 else (3 - float(arb(before).log())) * after
        if before != after:
            units += 8 * before if mixed else after
        errors.append(min(units * offsets * 2.0**-ANGLES, 2.0))
    return errors


def _gaps(rotation: Rotation, offsets: int) -> tuple[float, ...]:
    """For each ratio the smallest sum_r w_r (1 - cos(theta_r D)) / W over 1 <= D <= offsets,
    rounded down."""
    block = min(_BLOCK, offsets)
    chunks = [
        _largest(rotation, block, range(first, min(first + _CHUNK * block, offsets), block))
        for first in range(0, offsets, _CHUNK * block)
    ]
    # half a unit in each factor: of either product, pairs / 2^30 + 1 / 2^24
    lost = _FLOATS + rotation.dims // 2 / _FIRST + 1 / _WITHIN
    return tuple(1.0 - max(near) / (_FIRST * _WITHIN) - lost for near in zip(*chunks, strict=True))


@lru_cache(maxsize=4096)
def _largest(rotation: Rotation, block: int, first: range) -> tuple[float, ...]:
    """For each ratio the largest sum_r w_r cos(theta_r D), in units, over the blocks of D that
    begin behind these places."""
    if find_spec("numpy") is None:
        return _largest_plain(rotation, block, first)
    weights = np.array([_weights(ratio, rotation.dims // 2) for ratio in RATIOS])
    weights /= [[fsum(row)] for row in weights]
    turned = turns(rotation.angles, first)[:, None, :]
    # Re(sum_r w_r a_r b_r): the products in real arithmetic, one matrix product; no partial sum is
    # larger than the weights, whose pairs are products of two vectors of length 1
    factors = np.concatenate((weights * turned.real, -weights * turned.imag), 2)
    scores = np.rint(_FIRST * factors).reshape(-1, rotation.dims) @ _within(rotation, block)
    largest = scores.max(1).reshape(len(first), len(RATIOS)).max(0)
    return tuple(largest.tolist())


@lru_cache(maxsize=8)
def _within(rotation: Rotation, block: int) -> Any:
    """Cosines, above sines, of the turns within a block, in units: D = first + within, and
    e^(i theta D) is the product of the two, so that few balls suffice."""
    within = turns(rotation.angles, range(1, block + 1)).T
    return np.rint(_WITHIN * np.concatenate((within.real, within.imag)))


def _largest_plain(rotation: Rotation, block: int, first: range) -> tuple[float, ...]:
    """`_largest` without NumPy."""
    turned = plain.turns(rotation.angles, first)
    largest: list[float] = []
    for ratio in RATIOS:
        weights = _weights(ratio, rotation.dims // 2)
        shares = [weight / fsum(weights) for weight in weights]
        factors = chain.from_iterable(
            [
                *(w * real for w, (real, _) in zip(shares, row, strict=True)),
                *(-w * imag for w, (_, imag) in zip(shares, row, strict=True)),
            ]
            for row in turned
        )
        rows = plain.rounded(_FIRST, factors)
        largest.append(max(plain.maxima(rows, _within_plain(rotation, block), rotation.dims)))
    return tuple(largest)


@lru_cache(maxsize=8)
def _within_plain(rotation: Rotation, block: int) -> Any:
    """`_within` without NumPy, column behind column."""
    parts = (
        row[pair][part]
        for row in plain.turns(rotation.angles, range(1, block + 1))
        for part in (0, 1)
        for pair in range(rotation.dims // 2)
    )
    return plain.rounded(_WITHIN, parts)


def _weights(ratio: float, pairs: int) -> list[float]:
    """The powers of a ratio, by products alone, which every processor rounds alike."""
    return list(accumulate(repeat(ratio, pairs - 1), mul, initial=1.0))
