"""Counting in one full layer: the weight of a start token that ties with every match, for each
number of matches, and the lines that are read off at it.

Of c matches k keys tie, each of which exp(0) = 1 makes weigh exactly 1. A partial sum of some of
these and of others, whose mass together is below half the distance of numbers above 1, is rounded
to the number of the former: the denominator is k. So the weight is v/k up to a few roundings.

The logits a y + b are compared between neighbours alone, at one and the same y. Let line m + 1
exceed line m by db_m - da_m y, da and db positive. From one line to the next the error of what is
computed grows by a share e of da_m y + db_m at most. If for every count c the lead over c + 1, less
that share, exceeds the error of line c twice, and so does the lead over c - 1, then every further
line is beaten by more: on the way from m to m + 1 the lead grows by at least da_m y (1 - e) - db_m
(1 + e), which is positive for every y at or above that of m, and the same downwards.

Parity and the number of ones modulo m: a full layer that weighs all bits alike, whose average
tells the number of ones, and an MLP behind it, evaluated for every number of ones.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np

from separatrix.core.errors import CheckFailed
from separatrix.mixers.full import FullMixer
from separatrix.models.model import Model
from separatrix.proofs.arithmetic import FP32, Arithmetic
from separatrix.proofs.derivations.flags import tied
from separatrix.proofs.derivations.parts.derivation import Derivation, Derived, Layer, derived
from separatrix.proofs.derivations.parts.live_parts import Head, Live, array, live_of
from separatrix.proofs.derivations.parts.reading import CHUNK, logit_leads
from separatrix.proofs.derivations.parts.stream import Embedded
from separatrix.proofs.entries import entry
from separatrix.proofs.machine import (
    Array,
    Enclosure,
    above,
    add_once,
    flushed,
    limited,
    roundings,
    slack,
)
from separatrix.proofs.softmax import even_share, exact_share
from separatrix.tasks import Counting, Modular, Parity

_OURS = 2.0**-48
"""More than the relative rounding of the few operations of float64 here."""


def derive(task: Counting, model: Model, arithmetic: Arithmetic = FP32) -> Derived:
    """The proof of the one layer. Raises CheckFailed where the weights do not bear it out."""
    (part,) = live_of(model, 1, placed=False, start=True, mlp=False)
    where = part.where
    head = part.full_head()
    at = Embedded.of(model, task.length + 1, arithmetic)
    tokens, start = at.tokens(slice(0, task.V), slice(1, None)), at.start(task.V)
    queried = task.form == "queried"
    found = tied(
        head,
        head.asked(tokens, None, where),
        head.keys(tokens, None, where),
        head.values(tokens, where),
        start,
        np.arange(task.V) if queried else np.ones(task.V, np.int64),
        where,
    )
    lead, value = found.lead, found.value
    if value.rad.any():
        raise CheckFailed(f"{where}: the value is not exact")
    share = exact_share(task.length + 1, Fraction(lead.least), arithmetic)
    output = _Output.of(head, value.mid[0], task.length + 1, arithmetic, where)
    read = _Lines.of(model, output, tokens.hull(), where)
    first = 1 + queried
    leads = read.leads(first, share.off, task.length + 1, arithmetic)
    worst = int(leads.argmin())
    if leads[worst] <= 0:
        raise CheckFailed(
            f"the head: {worst:,} may be answered otherwise: by {leads[worst]:g} at worst"
        )
    said = entry(
        part.place,
        counts="tokens that are the one asked for",
        queries=task.V,
        keys=task.length + 1,
        score_gap=lead.gap,
        score_error=0,
        off_target_mass=share.mass,
        weight_error=share.off,
        closest_count=worst,
    )
    layer = Layer(said, "layers", found.key_numbers, head.value_numbers, ("exp(0) = 1",))
    return derived(arithmetic, [layer], Fraction(float(leads[worst])))


@dataclass(frozen=True)
class _Output:
    """What the weight becomes in the stream: one number, in one coordinate, or times powers of two
    in several. Numbers that are rounded on their own need not cancel as they should.
    """

    given: Array
    """What a weight of 1 adds to the stream."""
    mapped: bool
    """Whether it is rounded on the way: by factors other than powers of two."""

    @classmethod
    def of(cls, head: Head, value: Array, keys: int, arithmetic: Arithmetic, where: str) -> _Output:
        """`value`: that of the start token. Raises CheckFailed where it is more than one number, or
        one that a weight of 1 / keys makes too small for the format.
        """
        (used,) = np.nonzero(value)
        if len(used) != 1 or (np.delete(head.o, used, 1) != 0.0).any():
            raise CheckFailed(f"{where}: the weight is not one number")
        factors = np.append(head.o[head.o != 0.0], value[used])
        mapped = not (np.frexp(np.abs(factors))[0] == 0.5).all()
        if mapped and len(factors) > 2:
            raise CheckFailed(f"{where}: the weight is rounded differently in several coordinates")
        given = head.o @ value
        least = min(np.abs(given[given != 0.0]).min(initial=np.inf), abs(float(value[used[0]])))
        if least < 4 * arithmetic.tiny * keys:
            raise CheckFailed(
                f"{where}: a weight of 1/{keys:,} may be flushed to zero in {arithmetic.name}"
            )
        return cls(given, mapped)


@dataclass(frozen=True)
class _Lines:
    """The logits as lines in the weight: sums of products, and of their absolute values."""

    slopes: Array
    heights: Array
    spread: float
    """At least the sum of absolute values over the absolute value of the sum, for each."""
    terms: int
    mapped: bool
    """Whether what is written is rounded once more than the weight."""

    @classmethod
    def of(cls, model: Model, output: _Output, base: Enclosure, where: str) -> _Lines:
        """`base`: what stands before where the weight is written."""
        given = output.given
        weight = array(model.head.weight)
        bias = array(model.head.bias)
        written = given != 0.0
        if base.only(written).used.any():
            raise CheckFailed(f"{where}: it writes where tokens hold something")
        still = base.columns((weight != 0.0).any(0) & ~written)
        if still.rad.any():
            raise CheckFailed("the head reads the last token beside the weight")
        rises = weight[:, written] * given[written]
        levels = np.column_stack(
            [weight[:, (weight != 0.0).any(0) & ~written] * still.mid[0], bias]
        )
        slopes, heights = rises.sum(1), levels.sum(1)
        if slopes.max() > 0 or heights.min() < 0 or slopes[0] or heights[0]:
            raise CheckFailed("the head: the lines do not begin at 0 and fall")
        if (np.diff(slopes) >= 0).any() or (np.diff(heights) <= 0).any():
            raise CheckFailed("the head: not every line is steeper and higher than the one before")
        tall = np.concatenate(
            [np.abs(rises).sum(1)[1:] / -slopes[1:], np.abs(levels).sum(1)[1:] / heights[1:]]
        )
        if np.abs(rises[0]).any() or np.abs(levels[0]).any():
            raise CheckFailed("the head: the line of 0 is not 0")
        terms = rises.shape[1] + levels.shape[1]
        return cls(slopes, heights, float(tall.max(initial=1.0)), terms, output.mapped)

    def leads(self, first: int, off: float, keys: int, arithmetic: Arithmetic) -> Array:
        """For each count the smaller of its leads over its neighbours, less twice the error of its
        own line. `off` is the relative error of the weight, the same for all lines.
        """
        y = 1.0 / (first + np.arange(len(self.slopes)))
        if y[-1] < 4 * arithmetic.tiny:
            raise CheckFailed(f"a weight of {y[-1]:g} may be flushed to zero in {arithmetic.name}")
        whole = float(-self.slopes[-1] + self.heights[-1]) * self.spread
        limited(np.array([whole]), "the head", arithmetic)
        stored = float(arithmetic.stored) if arithmetic.narrowed else 0.0
        # of one product, or one addition, whose result may be stored
        each = stored + float(roundings(1, arithmetic)) + _OURS
        added = each * self.terms * self.spread + _OURS
        if self.terms == 2 and not self.mapped:
            size = each * (-self.slopes * y + np.abs(self.slopes * y + self.heights) * (1 + each))
        else:
            own = added + self.mapped * (stored + float(roundings(2, arithmetic)))
            size = -self.slopes * y * own + self.heights * added
        # of the average, relative to a weight of 1, and of what is stored
        lost = flushed(keys, whole, arithmetic) + 8 * self.terms * arithmetic.tiny
        errors = 2 * (size + lost) * (1 + 8 * each)
        # from one line to the next errors grow by no more than this share of its terms
        share = off + 2 * added + 2 * self.mapped * each
        falls = -np.diff(self.slopes)
        rises = np.diff(self.heights)
        found = np.full(len(y), np.inf)
        over = falls * y[:-1] * (1 - share) - rises * (1 + share)
        found[:-1] = over - errors[:-1]
        under = rises * (1 - share) - falls * y[1:] * (1 + share)
        found[1:] = np.minimum(found[1:], under - errors[1:])
        return found


def derive_ones(task: Parity | Modular, model: Model, arithmetic: Arithmetic = FP32) -> Derived:
    """The proof of the one layer. Raises CheckFailed where the weights do not bear it out."""
    (part,) = live_of(model, 1, placed=False)
    where = part.where
    head = part.softmax_head(FullMixer)
    bits = Embedded.of(model, task.n, arithmetic).tokens(slice(0, 2))
    if head.asked(bits, None, where).size.any():
        raise CheckFailed(f"{where}: a query is not 0, so that not every bit weighs the same")
    # a score is 0 times a number, which must be one
    head.keys(bits, None, where)
    share, averages = _averages(task.n, part, head, head.values(bits, where))
    base = bits.hull()
    due = np.arange(task.n + 1) % task.answers
    rows = max(1, CHUNK // max(1, model.config.hidden))
    found: list[np.ndarray] = []
    for start in range(0, task.n + 1, rows):
        some = slice(start, start + rows)
        written = head.written(averages.rows(some), base, where)
        x = add_once(base.repeated(len(written.mid)), written, f"{where}, its sum")
        found.append(logit_leads(model, part.after_mlp(x), due[some]))
    leads = np.concatenate(found)
    worst = int(leads.argmin())
    if not leads[worst] > 0:
        raise CheckFailed(
            f"{worst:,} ones: answer {due[worst]} has not the largest logit, or rounding may take"
            " it away"
        )
    said = entry(part.place, counts="ones", keys=task.n, weight_error=share, closest_count=worst)
    layer = Layer(said, "layers", 0, head.value_numbers, (*head.assumes, "exp(0) = 1"))
    return derived(arithmetic, [layer], Fraction(float(leads[worst])))


def _averages(n: int, part: Live, head: Head, values: Enclosure) -> tuple[Fraction, Enclosure]:
    """By what share of itself the average of n bits may be off, and a row for every number of ones.
    `values`: those of 0 and of 1. Raises CheckFailed where these are not 0 and a power of two.
    """
    (used,) = np.nonzero(values.mid[1])
    one = float(values.mid[1].sum())
    if values.spread.any() or values.mid[0].any() or len(used) != 1 or np.frexp(one)[0] != 0.5:
        raise CheckFailed(f"{part.where}: the values of the bits are not 0 and a power of two")
    arithmetic = values.arithmetic
    gap = -Fraction(max(head.rivals, default=-1024.0))
    share = even_share(n, len(head.rivals), gap, arithmetic)
    if not 8 * n * arithmetic.tiny <= one <= arithmetic.large / n:
        raise CheckFailed(f"{part.where}: an average may be too small or too large for a number")
    mid = np.zeros((n + 1, values.mid.shape[1]))
    mid[:, used[0]] = np.arange(n + 1) * one / n
    # our own quotient is rounded, too
    off = mid * (above(share) + slack(1)) if share else 0 * mid
    return share, values.like(mid, 0 * mid).wider(off).stored()


DERIVATIONS: tuple[Derivation[Any], ...] = (
    Derivation(name="counting", task=Counting, derive=derive),
    Derivation(name="counted-parity", task=Parity, derive=derive_ones),
    Derivation(name="counted-modular", task=Modular, derive=derive_ones),
)
