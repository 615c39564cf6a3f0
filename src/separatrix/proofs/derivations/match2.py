"""2-Sum per query in one full layer: all M x M scores of the head, as they are computed, or, for a
large M, how far queries and keys are from the points of a circle.
"""

from __future__ import annotations

from fractions import Fraction

import numpy as np

from separatrix.core.errors import CheckFailed
from separatrix.models.model import Model
from separatrix.proofs import circle
from separatrix.proofs.arithmetic import FP32, Arithmetic
from separatrix.proofs.derivations.flags import around
from separatrix.proofs.derivations.parts.derivation import Derivation, Derived, Layer, derived
from separatrix.proofs.derivations.parts.live_parts import Head, Live, array, live_of
from separatrix.proofs.derivations.parts.queries import must_tie
from separatrix.proofs.derivations.parts.reading import lead_of, numbers, weighed
from separatrix.proofs.derivations.parts.stream import Embedded
from separatrix.proofs.entries import entry
from separatrix.proofs.machine import (
    RESIDUAL,
    Array,
    Enclosure,
    Scores,
    above,
    add,
    hull,
    roundings,
    slack,
    stacked,
    whole,
)
from separatrix.proofs.softmax import Match, averaging
from separatrix.tasks import TwoSum

_ROWS = 512
Gaps = tuple[Fraction | float, Fraction | float, Fraction | float, Fraction | float]
"""A match over the blank key, that over the rest, and the widest match over it, between scores
before rounding; and how far rounding may move one of them.
"""
_TABLE = 5754
"""Up to so many values all pairs are looked at."""


def derive(task: TwoSum, model: Model, arithmetic: Arithmetic = FP32) -> Derived:
    """The proof of the one layer. Raises CheckFailed where the weights do not bear it out."""
    if task.form != "query":
        raise CheckFailed("this construction answers the query form")
    (part,) = live_of(model, 1, start=True, mlp=False)
    head = part.softmax_head()
    at = Embedded.of(model, task.n + 2, arithmetic)
    start, ids = at.start(task.M), slice(0, task.M)
    # a token between start and query, at any place, and the last one
    earlier, last = (at.tokens(ids, some) for some in (slice(1, task.n + 1), slice(-1, None)))
    queries = head.asked(last, None, part.where)
    keys, own, blank = (head.keys(rows, None, part.where) for rows in (earlier, last, start))
    for table in (keys, own, blank):
        numbers(head, table, part.where, hull(start, earlier, last))
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
    by = _by_table if count <= _TABLE else _by_circle
    over, under, widest, error = (Fraction(found) for found in by(queries, keys, blank, sinks))
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


def _by_circle(queries: Enclosure, keys: Enclosure, blank: Enclosure, sinks: list[float]) -> Gaps:
    """From how far queries are from c (cos, -sin), and keys from (cos, sin), of 2 pi x/M, without a
    table of pairs. Raises CheckFailed for scores that are made of more than two products, and where
    either radius is no power of two.
    """
    arithmetic = queries.arithmetic.inner
    shared = np.flatnonzero(queries.used & keys.used)
    if len(shared) != 2:
        raise CheckFailed(f"scores are sums of {len(shared)} products; those of a circle are of 2")
    # e^0 = 1: the first point tells the cosine from the sine
    axes = shared if keys.mid[0, shared[0]] else shared[::-1]
    (radius, turn, off), (other, back, apart) = (
        _round(rows.mid[:, axes]) for rows in (queries, keys)
    )
    if turn == back or (radius > 0) != (other > 0):
        raise CheckFailed("queries are not the conjugates of keys")
    bounds = circle.pairs(off, apart, len(queries.mid))
    strength = Fraction(radius) * Fraction(other)
    # products that sums hold: none of them is rounded
    blanks = queries.mid @ blank.mid[0]
    lowest, highest = Fraction(float(blanks.min())), Fraction(float(blanks.max()))
    rest = max([bounds.highest_rest * strength, *map(Fraction, sinks)])
    product = bounds.products * strength
    error = Fraction(float(roundings(2, arithmetic))) * product
    return (
        bounds.lowest_match * strength - highest,
        lowest - rest,
        bounds.highest_match * strength - lowest,
        error + 8 * Fraction(arithmetic.summed_tiny),
    )


def _round(points: Array) -> tuple[float, float, Fraction]:
    """Of points near a circle its radius, on the side of the first point, which way round they go,
    and how far they are from where they should be, in units of the radius. Raises CheckFailed
    unless that is a power of two, by which nothing is rounded.
    """
    radius = float(points[0, 0])
    if abs(np.frexp(radius)[0]) != 0.5:
        raise CheckFailed(f"the radius of the circle, {radius:g}, is no power of two")
    turn = float(np.sign(points[1, 1] * radius)) or 1.0
    return radius, turn, circle.farthest(points, scale=radius, turn=turn)


def _by_table(queries: Enclosure, keys: Enclosure, blank: Enclosure, sinks: list[float]) -> Gaps:
    """From the scores of all pairs, in float64, which rounds them by little or nothing."""
    arithmetic = queries.arithmetic.inner
    count = len(queries.mid)
    dims = queries.mid.shape[1]
    terms = int((queries.used & keys.used).sum())
    blanks = queries.mid @ blank.mid[0]
    match = np.inf
    rest = min((float(blanks.min()) - score for score in sinks), default=np.inf)
    widest = -np.inf
    products = 0.0
    heights = np.abs(keys.mid).T
    for start in range(0, count, _ROWS):
        rows = np.arange(start, min(start + _ROWS, count))
        scores = queries.mid[rows] @ keys.mid.T
        row = np.arange(len(rows))
        # x + x_j = 0 mod M: the one key that must match
        partner = -rows % count
        # rounding of a score grows with the sum of the absolute values of its products
        products = max(products, float((np.abs(queries.mid[rows]) @ heights).max()))
        over = scores[row, partner] - blanks[rows]
        match = min(match, float(over.min()))
        widest = max(widest, float(over.max()))
        scores[row, partner] = -np.inf
        rest = min(rest, float((blanks[rows] - scores.max(1)).min()))
    # `numbers` has found that none of these overflows
    size = products * (1 + slack(dims))
    # our own sums and differences are off, too, by no more than this
    error = (
        float(roundings(terms, arithmetic)) * size
        + 8 * slack(dims) * size
        + 4 * terms * arithmetic.summed_tiny
    )
    if whole(queries.mid, keys.mid.T) and whole(queries.mid, blank.mid.T):
        error = float(roundings(terms, arithmetic)) * size + 4 * terms * arithmetic.summed_tiny
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
    value = head.values(earlier, part.where).hull()
    for rows in (start, last):
        if head.values(rows, part.where).size.any():
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
        written = head.written(output, last.hull(), part.where)
        # one row for every last token
        leads.append(lead_of(model, add(last, written, RESIDUAL), answer))
    margin = min(leads)
    whole_value = head.written(value, last.hull(), part.where)
    weight, bias = array(model.head.weight), array(model.head.bias)
    slope = float((weight[1] - weight[0]) @ whole_value.mid[0])
    if slope <= 0:
        raise CheckFailed("the answer does not depend on what the head writes")
    return margin, Fraction(float(bias[0] - bias[1])) / Fraction(slope)


DERIVATIONS = (Derivation(name="match2", task=TwoSum, derive=derive, hard=around),)
