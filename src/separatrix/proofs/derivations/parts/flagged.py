"""Proves a layer in which the last token looks for any flag, and what the head makes of it.

Tokens are of two kinds before it: plain ones and flagged ones, each an enclosure with a row per
class of them. Every flagged key outscores every plain one, so that with a flag anywhere the
head reads flagged values, and without one it reads plain values.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from separatrix.core.errors import CheckFailed
from separatrix.models.model import Model
from separatrix.proofs.derivations.parts.derivation import Layer
from separatrix.proofs.derivations.parts.live_parts import Live
from separatrix.proofs.derivations.parts.queries import Lead
from separatrix.proofs.derivations.parts.reading import (
    Reading,
    any_average,
    lead_of,
    numbers,
    with_sinks,
)
from separatrix.proofs.derivations.parts.turning import at_any_distance
from separatrix.proofs.entries import entry
from separatrix.proofs.machine import Array, Enclosure, Scores, hull, stacked


@dataclass(frozen=True, kw_only=True)
class Kinds:
    """What tokens hold before a layer: a row per class of plain ones, and of flagged ones."""

    plain: Enclosure
    flagged: Enclosure

    def every(self) -> Enclosure:
        return stacked(self.plain, self.flagged)


def look(
    model: Model, part: Live, tokens: Kinds, last: Kinds, keys: int, answers: tuple[int, int]
) -> tuple[Layer, Fraction]:
    """The proof of the last layer of a stack, and by how much the right logit leads at least: one
    of `keys` tokens is flagged, or none, and the answers without and with a flag are `answers`.
    `last` are the classes of the last token. Raises CheckFailed where the weights do not tell the
    two apart.
    """
    head = part.softmax_head()
    where = part.where
    rotation = part.mixer.mechanism.rotation
    # rows as they are before they are turned: no token's place is known
    plain, flagged = (head.keys(x, "apart", where) for x in (tokens.plain, tokens.flagged))
    queries = head.asked(last.every(), "apart", where)
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
    numbers(head, head.keys(every, None, where), where, every)
    of_plain, of_flagged = (
        head.values(rows, where).hull() for rows in (tokens.plain, tokens.flagged)
    )
    reading = Reading.of(
        part,
        head,
        Lead(float(gap), float(gap - least) / 2, float(least)),
        hull(of_plain, of_flagged),
        queries=len(queries.mid),
        keys=keys,
        key_numbers=both.terms,
        lowest=lambda: float(lowest[1].min()),
    )
    outputs = (
        # a sink is one plain key more, of a value of 0
        any_average(with_sinks(head, of_plain), reading.count, where),
        reading.grouped(of_flagged),
        reading.anything(),
    )
    none, some, any_ = (head.written(output, every.hull(), where) for output in outputs)
    part.after(every, any_)
    margins = (
        lead_of(model, part.after(last.plain, none), answers[0]),
        # a flag elsewhere, or its own
        lead_of(model, part.after(last.every(), some), answers[1]),
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
    layer = Layer(said, "layers", both.terms, head.value_numbers, head.assumes)
    return layer, min(margins)
