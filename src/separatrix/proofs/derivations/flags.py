"""What is decided by flags. 2-Sum per query by a bit code: the weight of a start token that ties
with every match, and the logits it leads to. As a decision: every token counts what cancels it, the
MLP flags it, and the last token looks for a flag. Equality of two strings: every place fetches the
bit of its partner, the MLP flags a difference, and the last token looks for a flag.

Where tokens count nothing depends on places. The M x M scores are not written down: keys are codes
(parts/queries.py). Tokens that cancel themselves, and those that do not, are a class each.

Where one looks, tokens are of two kinds: plain ones and flagged ones, each an enclosure with a row
per class of them. Every flagged key outscores every plain one, so that with a flag anywhere the
head reads flagged values, and without one it reads plain values.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from separatrix.core.errors import CheckFailed
from separatrix.models.model import Model
from separatrix.proofs.arithmetic import FP32, Arithmetic
from separatrix.proofs.derivations.parts.compared import at_any_distance
from separatrix.proofs.derivations.parts.derivation import Derivation, Derived, Layer, derived
from separatrix.proofs.derivations.parts.live_parts import Head, Live, live_of
from separatrix.proofs.derivations.parts.queries import Lead, lead_of_rows, must_tie
from separatrix.proofs.derivations.parts.reading import (
    Reading,
    any_average,
    readout,
    weighed,
    with_sinks,
)
from separatrix.proofs.derivations.parts.stream import Embedded, Stream
from separatrix.proofs.entries import entry
from separatrix.proofs.machine import (
    RESIDUAL,
    Array,
    Enclosure,
    Scores,
    above,
    add,
    stacked,
)
from separatrix.proofs.softmax import Tie
from separatrix.tasks import Equality, TwoSum
from separatrix.tasks.base.task import Tokens

_VALUES, _PLACES = slice(0, -1), slice(1, None)
"""The start token is the last id, and stands first."""


@dataclass(frozen=True, kw_only=True)
class Counted:
    """What the layer leaves, before its MLP: a row per class of tokens, without an earlier match
    and with one; and one row for the start token.
    """

    layer: Layer
    alone: Enclosure
    met: Enclosure
    start: Enclosure


@dataclass(frozen=True, kw_only=True)
class Tied:
    """A head whose start token alone has a value, and ties with what a token asks for."""

    lead: Lead
    """Of what ties over all others."""
    score: float
    """At or below the scores of all that ties, the start token's own for itself among them."""
    value: Enclosure
    """The start token's, one row."""
    key_numbers: int


def tied(
    head: Head,
    queries: Enclosure,
    keys: Enclosure,
    values: Enclosure,
    start: Enclosure,
    right: NDArray[np.int64],
    where: str,
) -> Tied:
    """Queries, keys and values are a row for each token, `start` is the stream of the start token,
    and `right` says for each token which one it asks for. Raises CheckFailed where that, the start
    token and no other score the same number, unrounded, or another token has a value.
    """
    of_start = head.keys(start)
    both = stacked(keys, of_start)
    must_tie(queries, both, where)
    lead = lead_of_rows(queries, keys, right, f"{where}, what is counted: value")
    scores = (queries.mid * keys.mid[right]).sum(1)
    if (queries.mid @ of_start.mid[0] != scores).any():
        raise CheckFailed(f"{where}: the start token does not tie with a match")
    # the start token sees itself alone: its score need only be a number
    own = head.asked(start)
    off = Scores(of_start, own.used, f"{where}, scores").errors(own)
    alone = float((own.mid @ of_start.mid.T - off).min())
    value = head.values(start)
    if values.size.any() or not value.size.any():
        raise CheckFailed(f"{where}: the value is not that of the start token alone")
    return Tied(
        lead=lead,
        score=min(float(scores.min()), alone),
        value=value,
        key_numbers=int((queries.used & both.used).sum()),
    )


def count(task: TwoSum, model: Model, part: Live, arithmetic: Arithmetic) -> Counted:
    """The proof of the layer. Raises CheckFailed where the start token does not tie with every
    match, or anything else is not less.
    """
    head = part.softmax_head()
    where = part.where
    # a sink is one key more
    keys = task.length + 1 + len(head.rivals)
    at = Embedded.of(model, task.length + 1, arithmetic)
    if len(at.embed.mid) != task.M + 1:
        raise CheckFailed(f"a start token stands beside {len(at.embed.mid) - 1:,} of {task.M:,}")
    start = at.start(task.M)
    tokens = at.tokens(_VALUES, _PLACES)
    queries, of_tokens = head.asked(tokens), head.keys(tokens)
    values = head.values(tokens)
    every = np.arange(task.M)
    partner = (-every) % task.M
    found = tied(head, queries, of_tokens, values, start, partner, where)
    gap = Fraction(found.lead.least)
    for score in head.rivals:
        gap = min(gap, Fraction(found.score) - Fraction(score))
    if gap <= 0:
        raise CheckFailed(f"{where}: its sink scores no less than a match")
    tie = Tie(keys=keys, gap=gap, arithmetic=arithmetic)
    cancels = partner == every
    # tokens that do not cancel themselves, and those that do
    classes = [kind for kind in (False, True) if (cancels == kind).any()]
    rows = stacked(*(tokens.rows(np.flatnonzero(cancels == kind)).hull() for kind in classes))

    def left(base: Enclosure, matches: NDArray[np.int64], *, more: bool) -> Enclosure:
        """With so many matches, a number per row, or, with `more`, so many or more."""
        low = np.array([0.0 if more else -above(-tie.least(c)) for c in matches.tolist()])
        high = np.array([above(tie.most(c)) for c in matches.tolist()])
        output = weighed(found.value, low, high, keys, where)
        return add(base, head.written(output, base.hull()), RESIDUAL)

    matches = np.array(classes, np.int64)
    also: dict[str, Any] = {}
    if cancels.any():
        # where the token that asks is itself a match
        also = {"weight_with_own": tie.least(1), "weight_with_own_and_match": tie.most(2)}
    said = entry(
        part.place,
        counts="tokens that cancel the one that asks",
        queries=task.M,
        keys=keys,
        score_gap=found.lead.gap,
        score_error=0,
        off_target_mass=tie.mass,
        weight_without_match=tie.least(0),
        weight_with_match=tie.most(1),
        **also,
    )
    return Counted(
        layer=Layer(said, "layers", found.key_numbers, head.value_numbers, head.assumes),
        alone=left(rows, matches, more=False),
        met=left(rows, matches + 1, more=True),
        start=left(start, np.zeros(1, np.int64), more=False),
    )


def around(task: TwoSum, rng: np.random.Generator) -> Tokens:
    """Values that cancel themselves, and any, behind what is a bit away from what would cancel
    them: alone, behind one partner among these, and behind partners.
    """
    rows = []
    for value in {0, task.M // 2, int(rng.integers(task.M))}:
        partner = -value % task.M
        # clearing a bit that is set leaves a value, and 0 has 1 beside it
        near = (partner ^ 1 << bit for bit in rng.permutation(task.M.bit_length()).tolist())
        row = np.full(task.length, next(other for other in near if other < task.M))
        row[-1] = value
        for partners in (0, 1, task.length - 1):
            some = row.copy()
            some[rng.permutation(task.length - 1)[:partners]] = partner
            rows.append(some)
    return np.array(rows, np.int64)


@dataclass(frozen=True, kw_only=True)
class Kinds:
    """What tokens hold before a layer: a row per class of plain ones, and of flagged ones."""

    plain: Enclosure
    flagged: Enclosure

    def every(self) -> Enclosure:
        return stacked(self.plain, self.flagged)


def telling(part: Live, tokens: Kinds, asking: Enclosure, keys: int) -> Reading:
    """The head of a layer that tells flagged tokens from plain ones, for queries of these rows, of
    which no place is known; among so many keys. Raises CheckFailed where a plain one may win.
    """
    head = part.softmax_head()
    where = part.where
    rotation = part.mixer.mechanism.rotation
    # rows as they are before they are turned: no token's place is known
    plain, flagged = (head.keys(x, "apart") for x in (tokens.plain, tokens.flagged))
    queries = head.asked(asking, "apart")
    both = Scores(stacked(plain, flagged), queries.used, f"{where}, scores")

    def highest(side: int, rows: Enclosure) -> Array:
        """Scores of each query, or of its negative, with one of these keys, which may be unlike:
        as they should be and as computed.
        """
        found: list[Array] = []
        for row in range(len(rows.mid)):
            key = rows.rows(slice(row, row + 1))
            off = Scores(key, queries.used, both.what).errors(queries)
            told = at_any_distance(
                side * queries.mid, key.mid, rotation, keys - 1, queries.arithmetic
            )
            score = (told.queries @ told.keys.T)[:, 0]
            found.append(np.stack((score, score + off * (1 + 2.0**-40))))
        return np.max(found, 0)

    lowest = -highest(-1, flagged)
    gap, least = (lowest - highest(1, plain)).min(1) * (1, 1 - 2.0**-40)
    if not least > 0:
        raise CheckFailed(f"{where}: a flagged token may score no more than one that is not")
    # the other tokens' scores and outputs are numbers, whatever they are
    every = tokens.every()
    head.numbers(head.keys(every), every)
    return Reading.of(
        head,
        Lead(float(gap), float(gap - least) / 2, float(least)),
        head.values(every).hull(),
        queries=len(queries.mid),
        keys=keys,
        key_numbers=both.terms,
        lowest=lambda: float(lowest[1].min()),
    )


def look(
    model: Model, part: Live, tokens: Kinds, last: Kinds, keys: int, answers: tuple[int, int]
) -> tuple[Layer, Fraction]:
    """The proof of the last layer of a stack, and by how much the right logit leads at least: one
    of `keys` tokens is flagged, or none, and the answers without and with a flag are `answers`.
    `last` are the classes of the last token. Raises CheckFailed where the weights do not tell the
    two apart.
    """
    where, every = part.where, tokens.every()
    reading = telling(part, tokens, last.every(), keys)
    head = reading.head
    of_plain, of_flagged = (head.values(rows).hull() for rows in (tokens.plain, tokens.flagged))
    outputs = (
        # a sink is one plain key more, of a value of 0
        any_average(with_sinks(head, of_plain), reading.count, where),
        reading.grouped(of_flagged),
        reading.anything(),
    )
    none, some, any_ = (head.written(output, every.hull()) for output in outputs)
    part.after(every, any_)
    margins = (
        readout(model, part.after(last.plain, none), answers[0]),
        # a flag elsewhere, or its own
        readout(model, part.after(last.every(), some), answers[1]),
    )
    tells = int((some.low - none.high).argmax())
    said = entry(
        part.place,
        looks_for="a flagged token",
        keys=reading.count,
        score_gap=reading.lead.gap,
        score_error=reading.lead.error,
        off_target_mass=reading.mass,
        output_without_flag=float(none.high[0, tells]),
        output_with_flag=float(some.low[0, tells]),
    )
    layer = Layer(said, "layers", reading.key_numbers, head.value_numbers, head.assumes)
    return layer, min(margins)


_BITS = 2
_FETCHES = "the bit at the same place of the first string"


def derive_query(task: TwoSum, model: Model, arithmetic: Arithmetic = FP32) -> Derived:
    """The proof of the one layer. Raises CheckFailed where the weights do not bear it out."""
    if task.form != "query":
        raise CheckFailed("this construction answers the query form")
    (part,) = live_of(model, 1, placed=False, start=True)
    counted = count(task, model, part, arithmetic)
    part.after_mlp(counted.start)
    margins = [
        readout(model, part.after_mlp(rows), answer)
        for answer, rows in enumerate((counted.alone, counted.met))
    ]
    return derived(arithmetic, [counted.layer], min(margins))


def derive_decision(task: TwoSum, model: Model, arithmetic: Arithmetic = FP32) -> Derived:
    """The proof of both layers. Raises CheckFailed where the weights do not bear it out."""
    if task.form != "decision":
        raise CheckFailed("this construction answers the decision form")
    first, second = live_of(model, 2, placed=False, start=True)
    counted = count(task, model, first, arithmetic)
    alone = first.after_mlp(counted.alone)
    met = first.after_mlp(counted.met)
    start = first.after_mlp(counted.start)
    last = Kinds(plain=alone, flagged=met)
    tokens = Kinds(plain=stacked(alone, start), flagged=met)
    looked, margin = look(model, second, tokens, last, task.length + 1, (0, 1))
    return derived(arithmetic, [counted.layer, looked], margin)


def derive_equality(task: Equality, model: Model, arithmetic: Arithmetic = FP32) -> Derived:
    """The proof of both layers. Raises CheckFailed where the weights do not bear it out."""
    first, second = live_of(model, 2)
    stream = Stream.of(model, task.length, _BITS, arithmetic)
    # a place of the first string is its own partner
    partner = np.arange(task.length) % task.n
    head, places = first.softmax_head(), np.arange(task.length)
    at = stream.by_place
    reading = Reading.each(head, at, at, partner, _FETCHES, places=places)
    fetched = reading.written(head.values(stream.by_token.rows(slice(0, _BITS))), at.hull())
    # a token at any place, and what it has fetched: the same bit, or the other
    bit, other = (grid.ravel() for grid in np.indices((_BITS, _BITS)))
    after = first.after(stream.by_token.rows(bit), fetched.rows(other))
    kinds = Kinds(plain=after.rows(bit == other), flagged=after.rows(bit != other))
    looked, margin = look(model, second, kinds, kinds, task.length, (1, 0))
    return derived(arithmetic, [reading.layer(_FETCHES), looked], margin)


DERIVATIONS = (
    Derivation(name="match2-bits", task=TwoSum, derive=derive_query, hard=around),
    Derivation(name="pairs", task=TwoSum, derive=derive_decision, hard=around),
    Derivation(name="equality", task=Equality, derive=derive_equality),
)
