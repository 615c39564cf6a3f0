"""L-SeqComp by an encoder: a layer in which every token fetches w, and w fetches z_0, and layers in
each of which every token reads the entry that it points to.

By induction on layers, for every token at once: after layer 1 + j a token holds all of w, and a
pointer 2^j steps along the chain, a level and a value, or what is final. Index 0 of the chain is w,
index l an entry of z_l; what follows an entry of z_L is final.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from separatrix.core.errors import CheckFailed
from separatrix.models.model import Model
from separatrix.proofs.arithmetic import FP32, Arithmetic
from separatrix.proofs.derivations.parts.derivation import Derivation, Derived
from separatrix.proofs.derivations.parts.hops import (
    RESIDUAL,
    Numbered,
    Position,
    hull,
    left_of,
    repeated,
    stacked,
    within,
)
from separatrix.proofs.derivations.parts.live_parts import Head, Live, array, live_parts
from separatrix.proofs.derivations.parts.nearest import Near, nearest
from separatrix.proofs.derivations.parts.queries import Lead, Queries, Wanted, winning
from separatrix.proofs.derivations.parts.softmax import averaged
from separatrix.proofs.derivations.seqcomp import hops, ids
from separatrix.proofs.entries import fetch_entry
from separatrix.proofs.machine import Enclosure, Scores, add, linear
from separatrix.proofs.softmax import off_target
from separatrix.tasks import SeqComp

Numbers = NDArray[np.int64]


@dataclass(frozen=True, kw_only=True)
class Held:
    """What tokens hold before a layer, whatever the prompt."""

    by_place: Enclosure
    """A row per place."""
    w: Numbered | None
    """By w, of which every token holds all; None where there is but one."""
    pointer: Numbered
    """By the number of the pointer (see `Pointers`)."""

    def tightened(self) -> Held:
        """The same, each view within what the others say of any token."""
        row = within(self.pointer.any(), self.by_place.hull())
        row = row if self.w is None else within(row, self.w.any())

        def tight(table: Enclosure) -> Enclosure:
            return within(table, row)

        return Held(
            by_place=tight(self.by_place),
            w=None if self.w is None else self.w.mapped(tight),
            pointer=self.pointer.mapped(tight),
        )


@dataclass(frozen=True)
class Pointers:
    """Pointers as numbers: the digits of a value, of a level, and one for being final."""

    task: SeqComp

    @property
    def value_bits(self) -> int:
        return (self.task.answers - 1).bit_length()

    @property
    def final(self) -> int:
        """The digit for being final."""
        return self.value_bits + (self.task.L + 1).bit_length()

    @property
    def bits(self) -> int:
        return self.final + 1

    def number(self, level: int, values: Numbers) -> Numbers:
        final = int(level > self.task.L)
        return values + (level << self.value_bits) + (final << self.final)

    def w_numbers(self) -> tuple[Numbers, int]:
        """Of every w the digits of its parts, one behind the other, and how many there are."""
        parts = self.task.split_w(np.arange(self.task.w_values))
        found = np.zeros(self.task.w_values, np.int64)
        bits = 0
        for part, count in zip(parts, self.task.branching, strict=True):
            found += part << bits
            bits += (count - 1).bit_length()
        return found, bits


def derive(task: SeqComp, model: Model, arithmetic: Arithmetic = FP32) -> Derived:
    if model.config.bos:
        raise CheckFailed("this construction has no start token")
    live = live_parts(model)
    rounds = task.L.bit_length()
    if len(live) != 1 + rounds:
        raise CheckFailed(f"{task.spec} takes {1 + rounds} layers, but {len(live)} layers write")
    pointers = Pointers(task)
    entry, tokens, numbers = _first(task, model, live[0], pointers, arithmetic)
    entries = [entry]
    near: list[Near] = []
    for number, part in enumerate(live[1:]):
        entry, tokens, used, worst = _double(task, part, number, tokens, pointers)
        entries.append(entry)
        near.append(worst)
        numbers = (max(numbers[0], used[0]), max(numbers[1], used[1]))
    margin, answer = _readout(task, model, tokens, pointers)
    near.append(Near(hop=task.L, answer=answer))
    return Derived(
        entries,
        margin,
        {"layers": 1 + rounds, "head_dim": numbers[0], "value_dim": numbers[1]},
        lambda rng: nearest(task, hops(task), near, ids(task), rng),
        arithmetic=arithmetic.said,
        formats=(arithmetic.name,),
    )


@dataclass(frozen=True, kw_only=True)
class _Layer:
    """One head of a layer whose every query has one key that wins."""

    part: Live
    head: Head
    seen: Enclosure
    keys: int
    mass: Fraction

    def values(self, rows: Enclosure) -> Enclosure:
        return linear(rows, self.head.v, what=f"{self.part.where}, v")

    def written(self, values: Enclosure) -> Enclosure:
        """What is added where a key of one of these values wins."""
        read = averaged(values, self.seen, self.keys, self.mass, self.part.where)
        return linear(read, self.head.o, what=f"{self.part.where}, o")

    def anything(self) -> Enclosure:
        """What is added whatever wins, or none."""
        read = averaged(self.seen, self.seen, self.keys, Fraction(0), self.part.where)
        return linear(read, self.head.o, what=f"{self.part.where}, o")


def _lead(
    part: Live, head: Head, by_place: Enclosure, asking: Enclosure, wanted: Numbers, fetches: str
) -> tuple[Lead, Queries, Scores]:
    """The smallest lead of the key that each row asks for, among those of all places."""
    where = part.where
    keys = linear(by_place, head.k, what=f"{where}, k")
    queries = Queries.alone(linear(asking, head.q, what=f"{where}, q"))
    scores = Scores(keys, queries.used, f"{where}, scores")
    hop = Wanted(fetches, len(keys.mid), wanted, lambda row, _: wanted[row])
    lead = queries.lead(scores, hop)
    assert lead is not None
    # queries of which nothing is asked have scores, too, and these must be numbers
    others = linear(by_place.hull(), head.q, what=f"{where}, q")
    Scores(keys, others.used, f"{where}, scores").errors(others)
    return winning(lead, f"{fetches}: position"), queries, scores


def _first(
    task: SeqComp, model: Model, part: Live, pointers: Pointers, arithmetic: Arithmetic
) -> tuple[dict[str, Any], Held, tuple[int, int]]:
    """Layer 1: every token fetches w, and w fetches z_0."""
    head = part.encoder_head()
    embed = Enclosure.point(array(model.embed.weight), arithmetic)
    position = Enclosure.point(array(model.position.weight)[: task.length], arithmetic)
    by_place = add(embed.hull(), position, RESIDUAL)
    at_w = task.position_w
    at_z0 = task.position_z0
    wanted = np.full(task.length, at_w)
    wanted[at_w] = at_z0
    fetches = "w, and z_0 at w"
    lead, queries, scores = _lead(part, head, by_place, by_place, wanted, fetches)
    layer = _Layer(
        part=part,
        head=head,
        seen=linear(by_place, head.v, what=f"{part.where}, v").hull(),
        keys=task.length,
        mass=off_target(task.length - 1, Fraction(lead.least), by_place.arithmetic),
    )
    mlp = Position(part)
    others = np.flatnonzero(np.arange(task.length) != at_w)
    place_w, place_z0 = (position.rows(slice(at, at + 1)) for at in (at_w, at_z0))
    tokens_w = add(embed.rows(slice(0, task.w_values)), place_w, RESIDUAL)
    tokens_z0 = add(embed.rows(slice(0, task.m)), place_z0, RESIDUAL)
    from_w = layer.written(layer.values(tokens_w))
    from_z0 = layer.written(layer.values(tokens_z0))
    # w itself, by what it fetches, and the others, by their own values
    w_row = by_place.rows(slice(at_w, at_w + 1))
    moved_w = mlp.after(repeated(w_row, task.m), from_z0)
    elsewhere = by_place.rows(others).hull()
    values = add(embed.rows(slice(0, task.answers)), position.rows(others).hull(), RESIDUAL)
    moved = mlp.after(values, repeated(from_w.hull(), task.answers))
    places = mlp.after(by_place.rows(others), repeated(from_w.hull(), len(others)))
    after = np.argsort(np.append(others, at_w))
    view = stacked([places, moved_w.hull()]).rows(after)
    numbers, bits = pointers.w_numbers()
    w = None
    if bits:
        by_w = mlp.after(repeated(elsewhere, task.w_values), from_w)
        own = mlp.after(tokens_w, repeated(from_z0.hull(), task.w_values))
        w = _either(Numbered.of(by_w, numbers, bits), Numbered.of(own, numbers, bits))
    pointer = _pointing(task, pointers, moved, moved_w, view)
    rooms = (
        mlp.room(repeated(elsewhere, task.w_values), from_w),
        mlp.room(repeated(w_row, task.m), from_z0),
    )
    cleaned = [pointer.digits] + ([] if w is None else [w.digits])
    entry = fetch_entry(
        part.place,
        fetches=fetches,
        queries=queries.count,
        keys=task.length,
        score_gap=lead.gap,
        score_error=lead.error,
        mass=layer.mass,
        left=left_of(part, [from_w, from_z0], cleaned, min(rooms)),
    )
    held = Held(by_place=view, w=w, pointer=pointer).tightened()
    return entry, held, (scores.terms, int((head.v != 0.0).any(1).sum()))


def _pointing(
    task: SeqComp, pointers: Pointers, moved: Enclosure, moved_w: Enclosure, view: Enclosure
) -> Numbered:
    """Tokens by their first pointer: entries and z_0 by their place and their own value, w by the
    value of z_0.
    """
    levels = np.full(task.length, task.L + 1)
    for level in range(1, task.L + 1):
        start = task.offset(level)
        levels[start : start + task.entries(level)] = level + 1
    levels[task.position_w] = 1
    none = np.zeros(1, np.int64)
    of_level = np.concatenate([pointers.number(level, none) for level in range(task.L + 2)])
    of_place = of_level[levels]
    values = Numbered.of(moved, np.arange(task.answers), pointers.value_bits)
    found: list[Enclosure] = []
    for digit in (0, 1):
        for place in range(pointers.bits):
            if place < pointers.value_bits:
                row = digit * pointers.value_bits + place
                # of w, where its value has such a digit
                own = np.flatnonzero((np.arange(task.m) >> place & 1) == digit)
                rows = [values.digits.rows(slice(row, row + 1))]
                rows += [moved_w.rows(own)] * bool(len(own))
                found.append(hull(rows))
            else:
                found.append(view.rows(np.flatnonzero((of_place >> place & 1) == digit)).hull())
    return Numbered(stacked(found), None)


def _double(
    task: SeqComp, part: Live, number: int, before: Held, pointers: Pointers
) -> tuple[dict[str, Any], Held, tuple[int, int], Near]:
    """A later layer: every token reads the entry that it points to, or keeps what is final."""
    head = part.encoder_head()
    asked, wanted, of = _asked(task, before, pointers)
    steps = 1 << number
    fetches = f"what {steps} step{'s' * (steps > 1)} lead{'s' * (steps == 1)} to"
    lead, queries, scores = _lead(part, head, before.by_place, asked, wanted, fetches)
    values = linear(before.pointer.all(), head.v, what=f"{part.where}, v")
    layer = _Layer(
        part=part,
        head=head,
        seen=linear(before.by_place, head.v, what=f"{part.where}, v").hull(),
        keys=task.length,
        mass=off_target(task.length - 1, Fraction(lead.least), before.by_place.arithmetic),
    )
    mlp = Position(part)
    anything = layer.anything()
    anywhere = before.by_place.hull()
    final = pointers.final
    open_row = before.pointer.digits.rows(slice(final, final + 1))
    closed_row = before.pointer.digits.rows(slice(pointers.bits + final, pointers.bits + final + 1))
    # what points on, by what it reads; what is final, by what it holds
    read = layer.written(values)
    pointing = repeated(within(anywhere, open_row), len(read.mid))
    moved = mlp.after(pointing, read)
    table = before.pointer.digits
    # a digit that nothing final has is what is read alone
    final_too = (table.low <= closed_row.high).all(1) & (table.high >= closed_row.low).all(1)
    staying = within(table.rows(np.flatnonzero(final_too)), closed_row)
    stayed = mlp.after(staying, repeated(anything, len(staying.mid)))

    def kept(rows: Enclosure) -> Enclosure:
        return mlp.after(rows, repeated(anything, len(rows.mid)))

    digits = [moved.rows(slice(row, row + 1)) for row in range(len(moved.mid))]
    for found, row in enumerate(np.flatnonzero(final_too)):
        digits[row] = hull([digits[row], stayed.rows(slice(found, found + 1))])
    pointer = Numbered(stacked(digits), None)
    entry = fetch_entry(
        part.place,
        fetches=fetches,
        queries=queries.count,
        keys=task.length,
        score_gap=lead.gap,
        score_error=lead.error,
        mass=layer.mass,
        left=left_of(part, [read], [pointer.digits], mlp.room(pointing, read)),
    )
    after = Held(
        by_place=kept(before.by_place),
        w=None if before.w is None else before.w.mapped(kept),
        pointer=pointer,
    ).tightened()
    w, level, value = (int(column[lead.token]) for column in of)
    near = Near(hop=level, token=w, value=value, rivals=range(lead.rival, lead.rival + 1))
    return entry, after, (scores.terms, int((head.v != 0.0).any(1).sum())), near


def _asked(
    task: SeqComp, before: Held, pointers: Pointers
) -> tuple[Enclosure, Numbers, tuple[Numbers, Numbers, Numbers]]:
    """What a token with any w and any pointer that is not final holds, the entry that it points
    to, and w, level and value.
    """
    of_w, _ = pointers.w_numbers()
    parts = (0 * of_w, *task.split_w(np.arange(task.w_values)))
    rows: list[Enclosure] = []
    places: list[Numbers] = []
    of: list[tuple[Numbers, Numbers, Numbers]] = []
    for level in range(1, task.L + 1):
        values = np.arange(task.N(max(level - 2, 0)))
        w = np.repeat(np.arange(task.w_values), len(values))
        value = np.tile(values, task.w_values)
        some = before.pointer.rows(pointers.number(level, values))
        row = some.rows(value)
        if before.w is not None:
            whole = before.w.rows(of_w).rows(w)
            row = row.spanning(np.maximum(row.low, whole.low), np.minimum(row.high, whole.high))
        rows.append(row)
        places.append(np.asarray(task.position(level, parts[level - 1][w], value)))
        of.append((w, np.full(len(w), level), value))
    joined = tuple(np.concatenate(column) for column in zip(*of, strict=True))
    return stacked(rows), np.concatenate(places), (joined[0], joined[1], joined[2])


def _either(one: Numbered, other: Numbered) -> Numbered:
    """What a token may hold that is of one kind or the other."""
    low = np.minimum(one.digits.low, other.digits.low)
    high = np.maximum(one.digits.high, other.digits.high)
    return replace(one, digits=one.digits.spanning(low, high))


def _readout(task: SeqComp, model: Model, tokens: Held, pointers: Pointers) -> tuple[Fraction, int]:
    """The smallest lead of the right logit, and the answer where it is. Raises CheckFailed where
    one has not the largest.
    """
    weight = array(model.head.weight)
    answers = np.arange(task.answers)
    rows = tokens.pointer.rows(pointers.number(task.L + 1, answers))
    logits = linear(rows, weight, array(model.head.bias), what="the head")
    others = logits.high.copy()
    right = logits.low[answers, answers]
    others[answers, answers] = -np.inf
    lead = np.nextafter(right - others.max(1), -np.inf)
    worst = int(lead.argmin())
    if lead[worst] <= 0:
        raise CheckFailed(f"answer {worst} has not the largest logit where it is due")
    return Fraction(float(lead[worst])), worst


DERIVATIONS = (Derivation(name="encoder", task=SeqComp, derive=derive, ids=ids),)
