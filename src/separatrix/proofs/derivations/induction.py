"""Induction heads: a layer that brings every token those before it, by heads or, for c-grams, by a
short convolution; and one that finds where the last c tokens stood before and reads what stood
behind them.

A score is a sum over g = 1, ..., c of what one token says of another: the query's g-th from its
end, and the g-th before the place that is scored. Every number of a key is told by one of them, and
the number of the query that meets it by the one beside it. If for each g a token's own key leads
over that of any other, and over that of none, then the place behind the same c tokens leads over
all others by the smallest of these leads; less, where keys turn with the distance, what the other
tokens may score more at that place though they are the same.

What tokens hold that have read an average, whatever it is, of values none of which is the one
asked for.

The MLP adds up, with weights of one sign, units of which each is convex in what is read: relu(z) is
at least z, and at least 0. So their sum is at least a linear function of what is read, for each
query another one, and of an average it is at least what it is of some value.
"""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from separatrix.core.errors import CheckFailed
from separatrix.core.numbers.rotary import Rotation
from separatrix.models.model import Model
from separatrix.proofs.arithmetic import FP32, Arithmetic
from separatrix.proofs.derivations.flags import Kinds, around, look
from separatrix.proofs.derivations.lookups import brought, tapped
from separatrix.proofs.derivations.parts.compared import (
    OPTIONS,
    Compared,
    Heads,
    Told,
    at_any_distance,
    least_of,
    looking_back,
)
from separatrix.proofs.derivations.parts.derivation import Derivation, Derived, Layer, derived
from separatrix.proofs.derivations.parts.live_parts import Head, Live, live_of
from separatrix.proofs.derivations.parts.queries import Lead
from separatrix.proofs.derivations.parts.reading import (
    CHUNK,
    Reading,
    all_of,
    any_average,
    mixed,
    readout,
    with_sinks,
)
from separatrix.proofs.derivations.parts.stream import Embedded
from separatrix.proofs.machine import RESIDUAL, Array, Enclosure, add, stacked, summing
from separatrix.tasks import MQAR, CGram, NoisyRecall, Recall, Task, TwoSum
from separatrix.tasks.recall import PROMISED

MOST_COMPARED = 1 << 16
_BRINGS = "the tokens at these offsets"
_FINDS = "what stood behind the same tokens"
_CANCELS = "the token that would cancel the last one"
_FOLLOWED = "what followed the context, letter by letter"


def derive(task: Task, model: Model, arithmetic: Arithmetic = FP32) -> Derived:
    """The proof of both layers. Raises CheckFailed where the weights do not bear it out."""
    if isinstance(task, Recall) and (task.question != "last" or task.form not in PROMISED):
        raise CheckFailed("this construction is about a key that stands among the pairs before it")
    _check_few(task)
    before = task.c if isinstance(task, CGram) else 1
    first, second = live_of(model, 2, placed=False, start=True)
    brought, views = _brought(task, model, first, before, arithmetic)
    found, margin = _found(task, model, second, views, task.length + 1, _FINDS)
    heads = {"most_heads": before} if before > 1 else {}
    return derived(arithmetic, [brought, found], margin, **heads)


def derive_cancelling(task: TwoSum, model: Model, arithmetic: Arithmetic = FP32) -> Derived:
    """The same where what would cancel a token is looked up, and compared with what is read: the
    last one, or as a decision every one, so that a third layer looks for one that is cancelled.
    Raises CheckFailed where the weights do not bear it out.
    """
    _check_few(task)
    every_one = task.form == "decision"
    first, second, *third = live_of(model, 2 + every_one, placed=False, start=True)
    brought, (own, before) = _brought(task, model, first, 1, arithmetic)
    # in the order of what cancels them
    asking = own.rows(np.append(-np.arange(task.M) % task.M, task.M))
    keys = task.length + 1
    reading, every = _reading(task, second, [asking, before], before, keys, _CANCELS)
    head, where, tokens = reading.head, second.where, asking.rows(slice(0, -1))
    values = head.values(before)
    # any number of tokens may cancel it
    met = head.written(reading.grouped(values.rows(slice(0, -1))), every)
    second.after(every, reading.anywhere(every))
    layers = [brought, reading.layer(_CANCELS)]
    cancelled, alone = second.after(tokens, met), behind_others(second, reading, tokens, values)
    if not every_one:
        margin = min(readout(model, cancelled, 1), readout(model, alone, 0))
        return derived(arithmetic, layers, margin)
    # a start token reads itself, before which there is none
    itself = with_sinks(head, values.rows(slice(-1, None)))
    read = head.written(any_average(itself, reading.count, where), every)
    plain = stacked(alone, second.after(asking.rows(slice(-1, None)), read)).hull()
    flagged = cancelled.hull()
    last = Kinds(plain=alone.hull(), flagged=flagged)
    tokens = Kinds(plain=_pieces(plain), flagged=flagged)
    looked, margin = look(model, third[0], tokens, last, keys, (0, 1))
    return derived(arithmetic, [*layers, looked], margin)


def _pieces(row: Enclosure) -> Enclosure:
    """The same in rows within each of which the widest number below 0 hardly grows: a norm leaves
    its sign.
    """
    number = int(np.where(row.high[0] < 0, row.rad[0], 0.0).argmax())
    low, high = (float(end[0, number]) for end in (row.low, row.high))
    if not low < high < 0:
        return row
    ends = [low]
    while ends[-1] < high:
        ends.append(min(high, ends[-1] / 1.5))
    rows = row.repeated(len(ends) - 1)
    lows, highs = rows.low.copy(), rows.high.copy()
    lows[:, number], highs[:, number] = ends[:-1], ends[1:]
    return row.spanning(lows, highs)


def derive_tapped(task: CGram, model: Model, arithmetic: Arithmetic = FP32) -> Derived:
    """The same behind a short convolution, without a start token."""
    first, second = live_of(model, 2, placed=False)
    rows = Embedded.of(model, task.length, arithmetic).tokens()
    every = rows.hull()
    own = tapped(first, stacked(rows, every), every, 0)
    views = [own, *(tapped(first, rows, every, back + 1) for back in range(task.c))]
    found, margin = _found(task, model, second, views, task.length, _FOLLOWED)
    return derived(arithmetic, [brought(first, f"{task.c} tokens before"), found], margin)


def _found(
    task: Task, model: Model, part: Live, views: list[Enclosure], keys: int, finds: str
) -> tuple[Layer, Fraction]:
    """The second layer, among so many keys, and the lead of the right logit. `views`: tokens before
    it, a row for each id and then one for none: by their own id, and by that of the token 1, ..., c
    before them.
    """
    reading, every = _reading(task, part, views, views[0], keys, finds)
    head = reading.head
    start = task.first_value if isinstance(task, MQAR) else 0
    ids = slice(start, start + task.answers)
    written = head.written(reading.read(head.values(views[0].rows(ids))), every)
    after = part.after(every, written)
    part.after(every, reading.anywhere(every))
    return reading.layer(finds), readout(model, after)


def _check_few(task: Task) -> None:
    if task.vocabulary > MOST_COMPARED:
        raise CheckFailed(f"{task.vocabulary:,} token ids are too many to compare one by one")


def _reading(
    task: Task, part: Live, views: list[Enclosure], read: Enclosure, keys: int, finds: str
) -> tuple[Reading, Enclosure]:
    """The head of the second layer, which reads rows like these, and what any token holds before
    it, one row.
    """
    head, where = part.softmax_head(), part.where
    every = views[0].hull()
    head.numbers(head.keys(every), every)
    rotation = part.mixer.mechanism.rotation
    lead, lowest, terms = _lead(views, head, rotation, keys - 1, finds, where)
    reading = Reading.of(
        head,
        lead,
        head.values(read.hull()),
        queries=task.vocabulary,
        keys=keys,
        key_numbers=terms,
        lowest=lambda: lowest,
    )
    return reading, every


def _brought(
    task: Task, model: Model, part: Live, before: int, arithmetic: Arithmetic
) -> tuple[Layer, list[Enclosure]]:
    """The first layer, and tokens behind it, as `_found` takes them."""
    at = Embedded.of(model, task.length + 1, arithmetic)
    letters, places, none = slice(0, task.vocabulary), slice(1, None), slice(-1, None)
    start = at.start(task.vocabulary)
    tokens = stacked(at.tokens(letters, places), start)
    heads = Heads.of(part, OPTIONS, windows=True)
    by_place = stacked(start, at.places(places, letters))
    due = [min(back, task.length) for back in range(1, before + 1)]
    found = looking_back(heads, by_place, tokens, _BRINGS, due)
    views: list[Enclosure] = []
    for lag in range(before + 1):
        given = {
            one.head: one.fetched if number == lag else one.fetched.hull().repeated(len(tokens.mid))
            for number, one in enumerate(found, 1)
        }
        own = tokens if lag == 0 else tokens.hull()
        mixed = add(own, heads.written(given), RESIDUAL)
        # of tokens alone nothing is rounded; of none something is
        views.append(stacked(*(part.after_mlp(mixed.rows(some)) for some in (letters, none))))
    layer = all_of([one.reading for one in found]).layer(_BRINGS, heads.kind, tokens=before)
    return layer, views


def _lead(
    views: list[Enclosure],
    head: Head,
    rotation: Rotation | None,
    most: int,
    finds: str,
    where: str,
) -> tuple[Lead, float, int]:
    """The lead of the place behind the same tokens; at or below every score of such a place; and
    the numbers of a key in use. Raises CheckFailed where another place may win.
    """
    keys = [head.keys(view, "apart") for view in views[1:]]
    # none asks behind a start token
    asking = [head.asked(view.rows(slice(0, -1)), "apart") for view in views[:-1]]
    half = 0 if rotation is None else rotation.dims // 2
    compared = Compared.of(asking, keys, where, pairs=half)
    told = [
        _own(at_any_distance(q.mid, k.mid, rotation, most, q.arithmetic))
        for q, k in zip(compared.queries, compared.keys, strict=True)
    ]
    among, over_none, lowest, alike = map(list, zip(*told, strict=True))
    # what is alike may score more elsewhere, where keys turn
    beside = [(sum(alike) - own) * (1 + 2.0**-40) for own in alike]
    among, over_none = (
        [gap - lost for gap, lost in zip(gaps, beside, strict=True)] for gaps in (among, over_none)
    )
    # what is left where there is no token is told less closely than tokens are
    right = replace(compared, keys=[rows.rows(slice(0, -1)) for rows in compared.keys]).error
    leads = [
        least_of(among, right, finds, where),
        least_of(over_none, (right + compared.error) / 2, finds, where),
    ]
    lead = min(leads, key=lambda one: one.least)
    return lead, sum(lowest) - right * (1 + 2.0**-40), compared.terms


def _own(told: Told) -> tuple[float, float, float, float]:
    """By how much each query's own key, in its row, leads over all others, and over that of none,
    the last one; its least score; and how much more the same key may score at another distance.
    """
    gap = none = least = np.inf
    alike = 0.0
    step = max(1, CHUNK // len(told.keys))
    for start in range(0, len(told.queries), step):
        table = told.queries[start : start + step] @ told.keys.T
        row = np.arange(len(table))
        right = told.own[start : start + step]
        alike = max(alike, float((table[row, start + row] - right).max()))
        none = min(none, float((right - table[:, -1]).min()))
        table[row, start + row] = -np.inf
        gap = min(gap, float((right - table[:, :-1].max(1)).min()))
        least = min(least, float(right.min()))
    return gap, none, least, alike


DERIVATIONS: tuple[Derivation[Any], ...] = (
    Derivation(name="cgram", task=CGram, derive=derive_tapped),
    *(
        Derivation(name=f"induction-{task.name}", task=task, derive=derive)
        for task in (Recall, MQAR, NoisyRecall, CGram)
    ),
    Derivation(name="induction-twosum", task=TwoSum, derive=derive_cancelling, hard=around),
)


_OURS = 2.0**-36
"""Of sums of sizes: far more than float64 takes from sums of fewer than 2^14 products."""


def behind_others(part: Live, reading: Reading, tokens: Enclosure, values: Enclosure) -> Enclosure:
    """Tokens of these rows behind the MLP, each of which has read an average of values but the one
    in its own row. Raises CheckFailed for weights of another kind.
    """
    where, arithmetic = part.where, tokens.arithmetic
    after = part.after(tokens, reading.anywhere(tokens.hull()))
    o, writes = reading.head.o, (reading.head.o != 0.0).any(1)
    # one power of two for a number: what is written is not rounded
    powers = ((np.frexp(o)[0] == 0.5) | (o == 0.0)).all()
    if not powers or ((o != 0.0).sum(1) > 1).any() or (tokens.used & writes).any():
        raise CheckFailed(f"{where}: what it reads is not written as it is, beside all else")
    if not part.mlp:
        raise CheckFailed(f"{where}: no MLP compares what it reads")
    up, up_bias, down, down_bias = part.weights

    # sizes, and what rounding takes of them
    seen = values.size.max(0)
    off = mixed(seen, reading.count, Fraction(0), arithmetic)
    off = off + _one(seen + off, arithmetic)
    # gates are alike for all values, and round once more
    gates = reading.head.given(tokens.like(0 * seen[None] + 1, 0 * seen[None]), tokens.hull())
    gate, loose = gates.mid[0], gates.rad[0]
    off = np.abs(gate) * off + loose * (seen + off) + arithmetic.tiny * (loose > 0)
    read = np.abs(o) @ (np.abs(gate) * seen + off)
    x = tokens.size + read
    centres = tokens.mid @ up.T + up_bias
    hidden = np.maximum(0.0, centres + (tokens.rad + read) @ np.abs(up).T)
    first = _lost(up, up_bias, x, hidden, arithmetic)
    hidden = hidden + first
    most = hidden @ np.abs(down).T + np.abs(down_bias)
    second = _lost(down, down_bias, hidden, most, arithmetic)
    second = second + np.where(tokens.used | writes, _one(most + x, arithmetic), 0.0)
    if reading.head.rivals:
        # a sink is one value more
        values = stacked(values, values.like(*np.zeros((2, 1, len(seen)))))

    low, high = after.low.copy(), after.high.copy()
    for number in np.flatnonzero(down.any(1)):
        sign = 1.0 if down[number].sum() > 0 else -1.0
        signs = sign * down[number]
        if not (signs >= 0).all():
            continue
        opened = signs * (centres > 0)
        slopes = opened @ up
        slopes[:, number] += sign
        lost = (opened * first).sum(1) + second[:, number]
        lost += np.abs(slopes @ o) @ off + (np.abs(slopes) * tokens.rad).sum(1)
        # what is written may be flushed to zero
        lost += np.abs(slopes) @ (arithmetic.tiny * writes)
        size = most[:, number] + x.max(1) * (1 + signs @ np.abs(up).sum(1))
        lost += _OURS * (size + signs @ np.abs(up_bias))
        own = (slopes * tokens.mid).sum(1) + opened @ up_bias + sign * down_bias[number]
        least = own - lost + _least(slopes @ (o * gate), values)
        if sign > 0:
            low[:, number] = np.maximum(low[:, number], least)
        else:
            high[:, number] = np.minimum(high[:, number], -least)
    if (low > high).any():
        raise CheckFailed(f"{where}: no token can hold what is proved of it")
    return after.spanning(low, high)


def _least(slopes: Array, values: Enclosure) -> Array:
    """The least of each row of slopes with a value of another row, at most."""
    found = np.empty(len(slopes))
    step = max(1, CHUNK // len(values.mid))
    for start in range(0, len(slopes), step):
        some = slopes[start : start + step]
        table = some @ values.mid.T - np.abs(some) @ values.rad.T
        row = np.arange(len(some))
        table[row, start + row] = np.inf
        found[start : start + step] = table.min(1)
    return found


def _lost(weight: Array, bias: Array, x: Array, result: Array, arithmetic: Arithmetic) -> Array:
    """How far the results of a map, of at most these sizes, may be off by its own roundings."""
    count: NDArray[np.int64] = (weight != 0.0).sum(1) + (bias != 0.0)
    size = x @ np.abs(weight).T + np.abs(bias)
    summed = summing(count, size, arithmetic)
    if not arithmetic.narrowed:
        return summed
    # a product that is stored before the bias is added
    again = np.where(bias == 0.0, 0.0, _one(size + summed, arithmetic))
    return summed + again + _one(result + summed + again, arithmetic)


def _one(size: Array, arithmetic: Arithmetic) -> Array:
    """How far a number of at most this size may be off once it is stored."""
    return float(arithmetic.stored) * size + arithmetic.tiny
