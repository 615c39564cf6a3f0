"""Proves a layer in which the last token looks for any flag, and what the head makes of it.

Tokens are of two kinds before it: plain ones and flagged ones, each an enclosure with a row per
class of them. Every flagged key outscores every plain one, so that with a flag anywhere the head
reads flagged values, and without one it reads plain values.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from separatrix.core.errors import CheckFailed
from separatrix.models.model import Model
from separatrix.proofs.arithmetic import Arithmetic
from separatrix.proofs.derivations.parts.live_parts import Live, array
from separatrix.proofs.derivations.parts.softmax import averaged
from separatrix.proofs.derivations.parts.stream import RESIDUAL
from separatrix.proofs.entries import flag_entry
from separatrix.proofs.machine import Enclosure, Scores, above, add, linear, mlp
from separatrix.proofs.softmax import off_target


@dataclass(frozen=True, kw_only=True)
class Kinds:
    """What tokens hold before a layer: a row per class of plain ones, and of flagged ones."""

    plain: Enclosure
    flagged: Enclosure

    def every(self) -> Enclosure:
        return stacked(self.plain, self.flagged)


@dataclass(frozen=True, kw_only=True)
class Looked:
    """The proof of the layer, by how much the right logit leads at least, and key and value numbers
    used.
    """

    entry: dict[str, Any]
    margin: Fraction
    assumes: tuple[str, ...]
    key_numbers: int
    value_numbers: int


def look(
    model: Model, part: Live, tokens: Kinds, last: Kinds, keys: int, answers: tuple[int, int]
) -> Looked:
    """The last layer of a stack: one of `keys` tokens is flagged, or none, and the answers without
    and with a flag are `answers`. `last` are the classes of the last token. Raises CheckFailed
    where the weights do not tell the two apart.
    """
    head = part.softmax_head()
    where = part.where
    plain = head.keys(tokens.plain, None, where)
    flagged = head.keys(tokens.flagged, None, where)
    queries = head.asked(last.every(), None, where)
    both = stacked(plain, flagged)
    scores = Scores(both, queries.used, f"{where}, scores")
    table = scores.centres(queries)
    # a sink is one plain key more, of a value of 0
    rival = max(head.rivals, default=-np.inf)
    keys += len(head.rivals)
    lead = table[:, len(plain.mid) :].min(1)
    lead = lead - np.maximum(table[:, : len(plain.mid)].max(1), rival)
    error = scores.errors(queries)
    least = float((lead - 2 * error * (1 + 2.0**-40)).min()) * (1 - 2.0**-40)
    if least <= 0:
        raise CheckFailed(f"{where}: a flagged token may score no more than one that is not")
    # the other tokens' scores and outputs are numbers, whatever they are
    others = head.asked(tokens.every(), None, where)
    Scores(both, others.used, f"{where}, scores").errors(others)
    mass = off_target(keys - 1, Fraction(least), queries.arithmetic)
    of_plain = head.values(tokens.plain, where).hull()
    if head.rivals:
        of_plain = of_plain.spanning(np.minimum(of_plain.low, 0.0), np.maximum(of_plain.high, 0.0))
    of_flagged = head.values(tokens.flagged, where).hull()
    seen = stacked(of_plain, of_flagged).hull()
    outputs = (
        averaged(of_plain, of_plain, keys, Fraction(0), where),
        grouped(of_flagged, seen, keys, mass, where),
        averaged(seen, seen, keys, Fraction(0), where),
    )
    every = tokens.every().hull()
    none, some, any_ = (head.written(output, every, where) for output in outputs)
    after_layer(part, tokens.every(), any_)
    margins = (
        lead_of(model, after_layer(part, last.plain, none), answers[0]),
        # a flag elsewhere, or its own
        lead_of(model, after_layer(part, last.every(), some), answers[1]),
    )
    tells = int((some.low - none.high).argmax())
    return Looked(
        entry=flag_entry(
            part.place,
            keys=keys,
            score_gap=float(lead.min()),
            score_error=float(error.max()),
            mass=mass,
            without=float(none.high[0, tells]),
            with_flag=float(some.low[0, tells]),
        ),
        margin=min(margins),
        assumes=head.assumes,
        key_numbers=scores.terms,
        value_numbers=int((head.v != 0.0).any(1).sum()),
    )


def grouped(value: Enclosure, seen: Enclosure, keys: int, mass: Fraction, where: str) -> Enclosure:
    """What a softmax computes where any number of keys, of values within `value`, outweigh all
    others, whose values are within `seen`: these weigh `mass` relative to any one of them.

    Sums of many that are alike are rounded as any average is (softmax.py); the others move it by
    twice their mass at most.
    """
    moved = 2 * above(mass) * seen.size * (1 + 2.0**-40)
    return averaged(value.wider(moved), seen, keys, Fraction(0), where)


def stacked(*parts: Enclosure) -> Enclosure:
    """The rows of all of them."""
    return parts[0].like(
        np.concatenate([part.mid for part in parts]), np.concatenate([part.rad for part in parts])
    )


def after_layer(part: Live, rows: Enclosure, written: Enclosure) -> Enclosure:
    """Rows of the residual stream after a layer whose head has written a row for each, or one for
    all.
    """
    return after_mlp(part, add(rows, written, RESIDUAL))


def after_mlp(part: Live, rows: Enclosure) -> Enclosure:
    """Rows after the MLP of a layer, if it has one."""
    if not part.mlp:
        return rows
    weights = (
        part.mlp["up.weight"],
        part.mlp["up.bias"],
        part.mlp["down.weight"],
        part.mlp["down.bias"],
    )
    written, _ = mlp(rows, weights, what=f"{part.where}, MLP")
    return add(rows, written, RESIDUAL)


def threshold_margin(part: Live, rows: Enclosure) -> float:
    """How much further every coordinate may move, from anywhere within the rows, before a hidden
    unit of the MLP switches; 0 where one may switch already.
    """
    if not part.mlp:
        return 0.0
    up = part.mlp["up.weight"]
    hidden = linear(rows, up, part.mlp["up.bias"], what=f"{part.where}, MLP")
    least = np.maximum(np.maximum(hidden.low, -hidden.high), 0.0)
    reach = np.abs(up).sum(1)
    return float((least[:, reach > 0] / reach[reach > 0]).min(initial=np.inf)) * (1 - 2.0**-40)


def lead_of(model: Model, rows: Enclosure, answer: int | NDArray[np.int64]) -> Fraction:
    """The smallest lead, over all rows, of the logit of an answer (one for all, or one for each)
    over all others; not positive where another may be as large.
    """
    logits = linear(rows, array(model.head.weight), array(model.head.bias), what="the head")
    row = np.arange(len(logits.mid))
    right = logits.low[row, answer]
    others = logits.high.copy()
    others[row, answer] = -np.inf
    return Fraction(float(np.nextafter(right - others.max(1), -np.inf).min()))


def said(arithmetic: Arithmetic, *assumes: tuple[str, ...]) -> str:
    """What is assumed of the arithmetic, the options of heads included."""
    every = dict.fromkeys(one for some in assumes for one in some)
    return "; ".join((arithmetic.said, *every))
