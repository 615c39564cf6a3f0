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

2-Sum per query in one full layer: all M x M scores of the head, as they are computed.
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
from separatrix.proofs.derivations.flags import around, tied
from separatrix.proofs.derivations.parts.derivation import Derivation, Derived, Layer, derived
from separatrix.proofs.derivations.parts.live_parts import Head, Live, array, live_of
from separatrix.proofs.derivations.parts.queries import must_tie
from separatrix.proofs.derivations.parts.reading import (
    CHUNK,
    logit_leads,
    readout,
    weighed,
)
from separatrix.proofs.derivations.parts.stream import Embedded
from separatrix.proofs.entries import entry
from separatrix.proofs.machine import (
    RESIDUAL,
    Array,
    Enclosure,
    Scores,
    above,
    add,
    add_once,
    flushed,
    hull,
    limited,
    roundings,
    slack,
    stacked,
    whole,
)
from separatrix.proofs.softmax import Match, averaging, even_share, exact_share
from separatrix.tasks import Counting, Modular, Parity, TwoSum

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
        head.asked(tokens),
        head.keys(tokens),
        head.values(tokens),
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
    if head.asked(bits).size.any():
        raise CheckFailed(f"{where}: a query is not 0, so that not every bit weighs the same")
    # a score is 0 times a number, which must be one
    head.keys(bits)
    share, averages = _averages(task.n, part, head, head.values(bits))
    base = bits.hull()
    due = np.arange(task.n + 1) % task.answers
    rows = max(1, CHUNK // max(1, model.config.hidden))
    found: list[np.ndarray] = []
    for start in range(0, task.n + 1, rows):
        some = slice(start, start + rows)
        written = head.written(averages.rows(some), base)
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


_ROWS = 512
Gaps = tuple[float, float, float, float]
"""A match over the blank key, that over the rest, and the widest match over it, between scores
before rounding; and how far rounding may move one of them.
"""
_TABLE = 5754
"""So many values are compared in pairs."""


def derive_match(task: TwoSum, model: Model, arithmetic: Arithmetic = FP32) -> Derived:
    """The proof of the one layer. Raises CheckFailed where the weights do not bear it out."""
    if task.form != "query":
        raise CheckFailed("this construction answers the query form")
    (part,) = live_of(model, 1, start=True, mlp=False)
    head = part.softmax_head()
    at = Embedded.of(model, task.n + 2, arithmetic)
    start, ids = at.start(task.M), slice(0, task.M)
    # a token between start and query, at any place, and the last one
    earlier, last = (at.tokens(ids, some) for some in (slice(1, task.n + 1), slice(-1, None)))
    queries = head.asked(last)
    keys, own, blank = (head.keys(rows) for rows in (earlier, last, start))
    for table in (keys, own, blank):
        head.numbers(table, hull(start, earlier, last))
    if not (np.array_equal(own.mid, keys.mid) and np.array_equal(own.rad, keys.rad)):
        raise CheckFailed("the key of the last token is not that of the token elsewhere")
    match = _match(queries, keys, blank, head.rivals, task.n + len(head.rivals))
    margin, threshold = _margin(model, part, head, (start, earlier, last), match)
    # numbers of a key that some score really uses
    used = int((queries.used & (keys.used | blank.used)).sum())
    # gaps are those of the weights before rounding errors; outputs bound what is computed
    said = entry(
        part.place,
        keys=match.earlier + 2,
        match_over_blank=match.match_over_blank,
        blank_over_rest=match.blank_over_rest,
        score_error=match.score_error,
        output_without_match=match.without(),
        output_with_match=match.with_match(),
        threshold=threshold,
    )
    layer = Layer(said, "layers", used, head.value_numbers, head.assumes)
    return derived(arithmetic, [layer], margin)


def _match(
    queries: Enclosure, keys: Enclosure, blank: Enclosure, sinks: list[float], earlier: int
) -> Match:
    """Leads over all queries. Raises CheckFailed when a key that does not cancel a query scores
    above the blank key, or the blank key above one that does. A sink is one more key that cancels
    nothing.
    """
    if queries.rad.any() or keys.rad.any() or blank.rad.any():
        raise CheckFailed("queries and keys of a Match2 construction are not exact")
    must_tie(queries, blank, "the blank key")
    count = len(queries.mid)
    # 2x = 0 mod M at x = 0 and, for an even M, at M/2: there the query's own key is a match. Its
    # value is 0, so its weight takes from the others', and must not exceed theirs by rounding
    for x in {0, count // 2} if count % 2 == 0 else {0}:
        own = slice(x, x + 1)
        must_tie(queries.rows(own), keys.rows(own), f"the key of value {x}, which cancels itself")
    over, under, widest, error = map(Fraction, _gaps(queries, keys, blank, sinks))
    found = Match(
        earlier=earlier,
        match_over_blank=over,
        blank_over_rest=under,
        widest=widest,
        score_error=error,
        arithmetic=queries.arithmetic,
    )
    if found.match_over_blank <= 0 or found.blank_over_rest <= 0:
        raise CheckFailed(
            "some query scores a key that does not cancel it above the blank key, or the blank key"
            " above one that does"
        )
    return found


def _gaps(queries: Enclosure, keys: Enclosure, blank: Enclosure, sinks: list[float]) -> Gaps:
    """From the scores of all pairs, in float64, which rounds them by little or nothing."""
    arithmetic = queries.arithmetic.inner
    count = len(queries.mid)
    if count > _TABLE:
        raise CheckFailed(f"{count:,} values are too many to compare in pairs")
    terms = int((queries.used & keys.used).sum())
    blanks = queries.mid @ blank.mid[0]
    match = np.inf
    rest = min((float(blanks.min()) - score for score in sinks), default=np.inf)
    widest = -np.inf
    products = 0.0
    heights = np.abs(keys.mid).T
    for start in range(0, count, _ROWS):
        rows = np.arange(start, min(start + _ROWS, count))
        asked = queries.mid[rows]
        row = np.arange(len(rows))
        # x + x_j = 0 mod M: the one key that must match
        partner = -rows % count
        # rounding of a score grows with the sum of the absolute values of its products
        scores = asked @ keys.mid.T
        products = max(products, float((np.abs(asked) @ heights).max()))
        over = scores[row, partner] - blanks[rows]
        match = min(match, float(over.min()))
        widest = max(widest, float(over.max()))
        scores[row, partner] = -np.inf
        rest = min(rest, float((blanks[rows] - scores.max(1)).min()))
    # `numbers` has found that none of these overflows
    size = products * (1 + slack(terms))
    error = float(roundings(terms, arithmetic)) * size + 4 * terms * arithmetic.summed_tiny
    if not (whole(queries.mid, keys.mid.T) and whole(queries.mid, blank.mid.T)):
        # our own sums and differences are off, too, by no more than this
        error += (terms + 2) * 2.0**-53 * size
    if not Scores(stacked(keys, blank), queries.used, "scores").of(queries).rounded:
        error = 0.0
    return match, rest, widest, error


def _margin(
    model: Model,
    part: Live,
    head: Head,
    tokens: tuple[Enclosure, Enclosure, Enclosure],
    match: Match,
) -> tuple[Fraction, Fraction]:
    """The lead of the right logit, evaluated with and without a match, and the output from which
    the answer is 1. Raises CheckFailed unless the value is exactly 0 at start and query.
    """
    start, earlier, last = tokens
    value = head.values(earlier).hull()
    for rows in (start, last):
        if head.values(rows).size.any():
            raise CheckFailed("the value is not 0 at the start token and at the query")
    if (value.low < 0).any() or not value.size.any():
        raise CheckFailed("the value is not a positive number between start and query")
    arithmetic = value.arithmetic
    keys = match.earlier + 2
    # weights add up to 1 but for the rounding of sums and quotients
    most = (1 + above(averaging(keys, arithmetic))) ** 2 * (1 + 2.0**-50)
    if arithmetic.narrowed:
        most *= 1 + 2 * float(arithmetic.stored)
    if len(model.head.weight) != 2:
        raise CheckFailed(f"{len(model.head.weight)} answers, but there are two")
    least = np.array([0.0, -above(-match.with_match())])
    outputs = weighed(value, least, np.array([above(match.without()), most]), keys, part.where)
    leads = []
    for answer in (0, 1):
        output = outputs.rows(slice(answer, answer + 1))
        written = head.written(output, last.hull())
        # one row for every last token
        leads.append(readout(model, add(last, written, RESIDUAL), answer))
    margin = min(leads)
    whole_value = head.written(value, last.hull())
    weight, bias = array(model.head.weight), array(model.head.bias)
    slope = float((weight[1] - weight[0]) @ whole_value.mid[0])
    if slope <= 0:
        raise CheckFailed("the answer does not depend on what the head writes")
    return margin, Fraction(float(bias[0] - bias[1])) / Fraction(slope)


DERIVATIONS: tuple[Derivation[Any], ...] = (
    Derivation(name="match2", task=TwoSum, derive=derive_match, hard=around),
    Derivation(name="counting", task=Counting, derive=derive),
    Derivation(name="counted-parity", task=Parity, derive=derive_ones),
    Derivation(name="counted-modular", task=Modular, derive=derive_ones),
)
