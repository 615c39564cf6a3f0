"""A softmax head of a layer, where every query that counts has one key, or several that are alike,
that outweighs all others together; and the lead of the right logit at the end.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from separatrix.core.errors import CheckFailed
from separatrix.models.model import Model
from separatrix.proofs.arithmetic import Arithmetic
from separatrix.proofs.derivations.parts.derivation import Layer
from separatrix.proofs.derivations.parts.live_parts import Head, array
from separatrix.proofs.derivations.parts.queries import Lead, Queries, Wanted, winning
from separatrix.proofs.entries import entry
from separatrix.proofs.machine import (
    Array,
    Enclosure,
    Scores,
    above,
    flushed,
    limited,
    linear,
    mapping,
    shared,
    slack,
)
from separatrix.proofs.softmax import mixing, off_target

CHUNK = 1 << 20
"""Numbers of one intermediate table at a time."""
_FEW = 4


@dataclass(frozen=True, kw_only=True)
class Reading:
    """What the head reads, and what it adds to the stream."""

    head: Head
    lead: Lead
    """The smallest of the keys that are asked for."""
    mass: Fraction
    """What all others weigh, relative to one of those."""
    seen: Enclosure
    """Values of any key, one row."""
    queries: int
    keys: int
    count: int
    """Keys and sinks."""
    key_numbers: int
    """Numbers of a key that some score uses."""

    @classmethod
    def of(
        cls,
        head: Head,
        lead: Lead,
        seen: Enclosure,
        *,
        queries: int,
        keys: int,
        key_numbers: int,
        lowest: Callable[[], float] | None = None,
    ) -> Reading:
        """`lowest`: at or below the scores of all keys that are asked for. Raises CheckFailed where
        a sink may score no less.
        """
        mass = off_target(keys - 1, Fraction(lead.least), seen.arithmetic)
        for score in head.rivals:
            over = Fraction(-np.inf if lowest is None else lowest()) - Fraction(score)
            if over <= 0:
                raise CheckFailed(
                    f"{head.where}: its sink scores no less than the key the task asks for"
                )
            mass += off_target(1, over, seen.arithmetic)
        return cls(
            head=head,
            lead=lead,
            mass=mass,
            seen=with_sinks(head, seen),
            queries=queries,
            keys=keys,
            count=keys + len(head.rivals),
            key_numbers=key_numbers,
        )

    @classmethod
    def won(
        cls,
        head: Head,
        queries: Queries,
        keys: Enclosure,
        hop: Wanted,
        seen: Enclosure,
        *,
        causal: bool = False,
    ) -> Reading:
        """Where each query asks for one of the keys. Raises CheckFailed where another may win."""
        scores = Scores(keys, queries.used, f"{head.where}, scores")
        return cls.of(
            head,
            winning(queries.lead(scores, hop, causal=causal), f"{hop.fetches}: position"),
            seen,
            queries=queries.count,
            keys=len(keys.mid),
            key_numbers=scores.terms,
            lowest=lambda: queries.lowest(scores, hop),
        )

    @classmethod
    def each(
        cls,
        head: Head,
        rows: Enclosure,
        asking: Enclosure,
        wanted: NDArray[np.int64],
        fetches: str,
        *,
        places: NDArray[np.int64] | None = None,
    ) -> Reading:
        """The same where every row of the stream that asks has one key that wins, of these rows.
        `places`: where rows stand, first to last, of which none sees those behind it.
        """
        keys = head.keys(rows, places)
        # queries of which nothing is asked have scores, too, and these must be numbers
        head.numbers(keys, rows.hull())
        queries = Queries.alone(head.asked(asking, places))
        seen = head.values(rows).hull()
        hop = Wanted.each(fetches, wanted)
        return cls.won(head, queries, keys, hop, seen, causal=places is not None)

    def read(self, values: Enclosure) -> Enclosure:
        """The average where the key asked for has one of these values, a row for each."""
        return averaged(values, self.seen, self.count, self.mass, self.head.where)

    def grouped(self, values: Enclosure) -> Enclosure:
        """The average where any number of keys, all of values within a row of these, win alike.

        Sums of many that are alike are rounded as any average is (softmax.py); the others move it
        by twice their mass at most.
        """
        moved = 2 * above(self.mass) * self.seen.size * (1 + 2.0**-40)
        where = self.head.where
        return averaged(values.wider(moved), self.seen, self.count, Fraction(0), where)

    def anything(self) -> Enclosure:
        """The average whatever is asked for, one row."""
        return any_average(self.seen, self.count, self.head.where)

    def written(self, values: Enclosure, at: Enclosure) -> Enclosure:
        """What is added to the stream at tokens within `at` (one row)."""
        return self.head.written(self.read(values), at)

    def anywhere(self, at: Enclosure) -> Enclosure:
        """The same, whatever is asked for."""
        return self.head.written(self.anything(), at)

    def layer(self, fetches: str, kind: str = "layers", **more: Any) -> Layer:
        """The proof of the layer, with these entries more."""
        said = entry(
            self.head.place,
            fetches=fetches,
            queries=self.queries,
            keys=self.keys,
            score_gap=self.lead.gap,
            score_error=self.lead.error,
            off_target_mass=self.mass,
            **more,
        )
        return Layer(said, kind, self.key_numbers, self.head.value_numbers, self.head.assumes)


def all_of(heads: Sequence[Reading]) -> Reading:
    """The heads of one layer as its proof tells of them: the least of what each has."""
    worst = min(heads, key=lambda head: head.lead.gap)
    return replace(
        worst,
        lead=replace(worst.lead, error=max(head.lead.error for head in heads)),
        mass=max(head.mass for head in heads),
        key_numbers=max(head.key_numbers for head in heads),
        head=max((head.head for head in heads), key=lambda head: head.value_numbers),
    )


def with_sinks(head: Head, seen: Enclosure) -> Enclosure:
    """The values that keys and sinks have, whose value is 0."""
    if not head.rivals:
        return seen
    return seen.or_zero()


def averaged(value: Enclosure, seen: Enclosure, keys: int, mass: Fraction, where: str) -> Enclosure:
    """What a softmax over `keys` keys computes where a key of a value within `value` outweighs all
    others, whose values are within `seen`, together: they weigh `mass` relative to it.

    With mass 0 it is any average of values within `value`.
    """
    arithmetic = shared(value, seen)
    largest = seen.size
    # unscaled sums of a fused kernel
    limited(largest * keys, f"{where}, the sum of its values", arithmetic, summed=True)
    return value.wider(mixed(largest, keys, mass, arithmetic)).stored()


def mixed(largest: Array, keys: int, mass: Fraction, arithmetic: Arithmetic) -> Array:
    """How far such an average may be off before it is stored, of values of at most these sizes."""
    off = above(mixing(keys, mass, arithmetic))
    return np.where(largest == 0, 0.0, largest * off + flushed(keys, largest, arithmetic))


def any_average(seen: Enclosure, keys: int, where: str) -> Enclosure:
    """Any average of values within `seen`, as computed."""
    return averaged(seen, seen, keys, Fraction(0), where)


def weighed(value: Enclosure, least: Array, most: Array, keys: int, where: str) -> Enclosure:
    """What a softmax over `keys` keys computes where one of them alone has a value, of one row, and
    a weight between these: a row for each pair.
    """
    limited(value.size * keys, f"{where}, v", value.arithmetic, summed=True)
    ends = [weight[:, None] * end for weight in (least, most) for end in (value.low, value.high)]
    output = value.spanning(np.minimum.reduce(ends), np.maximum.reduce(ends))
    lost = flushed(keys, value.size, value.arithmetic)
    return output.wider(np.where(value.size == 0, 0.0, lost)).stored()


def two_sum(x: Array, y: Array) -> tuple[Array, Array]:
    """x + y rounded, and what the rounding took, exactly."""
    total = x + y
    own = total - x
    return total, (x - (total - own)) + (y - own)


def leads(numbers: Enclosure, answers: int | NDArray[np.int64]) -> Array:
    """For each row by how much the number of its answer leads over all others, at least; not
    positive where another may be as large.
    """
    row = np.arange(len(numbers.mid))
    right = numbers.low[row, answers]
    # the largest that another number can be, less the smallest that the right one can
    others = numbers.high.copy()
    others[row, answers] = -np.inf
    # one answer alone has no rival
    with np.errstate(invalid="ignore"):
        found, lost = two_sum(right, -others.max(1, initial=-np.inf))
    return np.where(lost == 0, found, np.nextafter(found, -np.inf))


def logit_leads(model: Model, rows: Enclosure, answers: int | NDArray[np.int64]) -> Array:
    """The same of logits. What is off in the stream is the same for two logits, and moves their
    difference by no more than that of their weights: so it is told where few numbers are off.
    """
    weight, bias = array(model.head.weight), array(model.head.bias)
    logits = linear(rows, weight, bias, what="the head")
    found = leads(logits, answers)
    loose = np.flatnonzero(rows.spread.any(0) & weight.any(0))
    if not 0 < len(loose) <= _FEW:
        return found
    row = np.arange(len(rows.mid))
    right = np.broadcast_to(answers, len(row))
    size = rows.size @ np.abs(weight).T + np.abs(bias)
    count = (weight != 0.0).sum(1) + (bias != 0.0)
    off = (mapping(count, size, rows.arithmetic) + slack(weight.shape[1]) * size) * (1 + 2.0**-40)
    centres = rows.mid @ weight.T + bias
    apart = centres[row, right, None] - centres - off - off[row, right, None]
    for column in loose:
        differ = np.abs(weight[right, column, None] - weight[:, column])
        apart -= differ * rows.rad[:, column, None] * (1 + 2.0**-40)
    apart -= 2.0**-48 * np.abs(apart)
    apart[row, right] = np.inf
    return np.maximum(found, apart.min(1))


def readout(
    model: Model,
    rows: Enclosure,
    answers: int | NDArray[np.int64] | None = None,
    when: str = "where it is due",
) -> Fraction:
    """The smallest lead where each row holds what is left of its answer; of all answers in their
    order, unless told. Raises CheckFailed where another logit may be as large.
    """
    due = np.arange(model.config.answers) if answers is None else answers
    if not isinstance(due, int) and len(due) != len(rows.mid):
        raise CheckFailed(f"{len(rows.mid)} values are fetched, but there are {len(due)} answers")
    due = np.broadcast_to(due, len(rows.mid))
    least = 2.0**126  # one answer alone has no rival
    count = max(1, CHUNK // model.config.answers)
    for start in range(0, len(rows.mid), count):
        some = rows.rows(slice(start, start + count))
        leads = logit_leads(model, some, due[start : start + count])
        worst = int(leads.argmin())
        if not leads[worst] > 0:
            raise CheckFailed(f"answer {due[start + worst]} has not the largest logit {when}")
        least = min(least, float(leads[worst]))
    return Fraction(least)
