"""L-SeqComp by an encoder: a layer in which every token fetches w, and w fetches z_0, and layers in
each of which every token reads the entry that it points to.

By induction on layers, for every token at once: after layer 1 + j a token holds all of w, and a
pointer 2^j steps along the chain, a level and a value, or what is final. Index 0 of the chain is w,
index l an entry of z_l; what follows an entry of z_L is final.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from separatrix.mixers.full import FullMixer
from separatrix.models.model import Model
from separatrix.proofs.arithmetic import FP32, Arithmetic
from separatrix.proofs.derivations.parts.derivation import Derivation, Derived, Layer, derived
from separatrix.proofs.derivations.parts.hops import Numbered, Views, moved
from separatrix.proofs.derivations.parts.live_parts import Head, Live, live_of
from separatrix.proofs.derivations.parts.reading import Reading, readout
from separatrix.proofs.derivations.parts.stream import Embedded
from separatrix.proofs.derivations.seqcomp import ids
from separatrix.proofs.machine import RESIDUAL, Enclosure, add, hull, stacked
from separatrix.tasks import SeqComp

Numbers = NDArray[np.int64]


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

    def number(self, level: int | Numbers, values: Numbers) -> Numbers:
        final = np.int64(1) * (level > self.task.L)
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
    rounds = task.L.bit_length()
    first, *rest = live_of(model, 1 + rounds)
    pointers = Pointers(task)
    # by the number of the pointer (see `Pointers`), and by w, of which every token holds all, if
    # there is more than one
    layer, tokens = _first(task, model, first, pointers, arithmetic)
    done = [layer]
    for number, part in enumerate(rest):
        layer, tokens = _double(task, part, number, tokens, pointers)
        done.append(layer)
    answers = pointers.number(task.L + 1, np.arange(task.answers))
    return derived(arithmetic, done, readout(model, tokens.by["pointer"].at(answers)))


def _head(part: Live) -> Head:
    options = frozenset({"causal"})
    return part.head(FullMixer, "full attention with causal=false", options=options)


def _first(
    task: SeqComp, model: Model, part: Live, pointers: Pointers, arithmetic: Arithmetic
) -> tuple[Layer, Views]:
    """Layer 1: every token fetches w, and w fetches z_0."""
    at = Embedded.of(model, task.length, arithmetic)
    by_place = at.places()
    at_w = task.position_w
    at_z0 = task.position_z0
    wanted = np.full(task.length, at_w)
    wanted[at_w] = at_z0
    fetches = "w, and z_0 at w"
    reading = Reading.each(part, _head(part), by_place, by_place, wanted, fetches)
    others = np.flatnonzero(np.arange(task.length) != at_w)
    tokens_w = at.tokens(slice(0, task.w_values), slice(at_w, at_w + 1))
    tokens_z0 = at.tokens(slice(0, task.m), slice(at_z0, at_z0 + 1))
    from_w, from_z0 = (
        reading.written(reading.head.values(rows, part.where), by_place.hull())
        for rows in (tokens_w, tokens_z0)
    )
    # w itself, by what it fetches, and the others, by their own values
    w_row = by_place.rows(slice(at_w, at_w + 1))
    mixed_w = add(w_row.repeated(task.m), from_z0, RESIDUAL)
    moved_w = part.after_mlp(mixed_w)
    elsewhere = by_place.rows(others).hull()
    values = at.tokens(slice(0, task.answers), others)
    entries = part.after(values, from_w.hull().repeated(task.answers))
    places = part.after(by_place.rows(others), from_w.hull().repeated(len(others)))
    after = np.argsort(np.append(others, at_w))
    view = stacked(places, moved_w.hull()).rows(after)
    of_w, bits = pointers.w_numbers()
    mixed = add(elsewhere.repeated(task.w_values), from_w, RESIDUAL)
    pointer = _pointing(task, pointers, entries, moved_w, view)
    by = {"pointer": pointer}
    if bits:
        own = part.after(tokens_w, from_z0.hull().repeated(task.w_values))
        by_w = part.after_mlp(mixed)
        by["w"] = Numbered.of(stacked(by_w, own), np.tile(of_w, 2), bits)
    cleaned = [numbered.digits for numbered in by.values()]
    left = part.left([from_w, from_z0], [mixed, mixed_w], cleaned, every=False)
    return reading.layer(fetches, left), Views(view, by).tightened()


def _pointing(
    task: SeqComp, pointers: Pointers, own: Enclosure, of_w: Enclosure, view: Enclosure
) -> Numbered:
    """Tokens by their first pointer: entries and z_0 by their place and their own value, w by the
    value of z_0.
    """
    levels = np.full(task.length, task.L + 1)
    for level in range(1, task.L + 1):
        start = task.offset(level)
        levels[start : start + task.entries(level)] = level + 1
    levels[task.position_w] = 1
    bits = pointers.value_bits
    # entries by their own value, and w by that of z_0
    every = np.append(np.arange(task.answers), np.arange(task.m))
    values = Numbered.of(stacked(own, of_w), every, bits)
    of_place = Numbered.of(view, pointers.number(levels, 0 * levels) >> bits, pointers.bits - bits)
    return Numbered([*values.each, *of_place.each])


def _double(
    task: SeqComp, part: Live, number: int, before: Views, pointers: Pointers
) -> tuple[Layer, Views]:
    """A later layer: every token reads the entry that it points to, or keeps what is final."""
    asked, wanted = _asked(task, before, pointers)
    steps = 1 << number
    fetches = f"what {steps} step{'s' * (steps > 1)} lead{'s' * (steps == 1)} to"
    reading = Reading.each(part, _head(part), before.by_place, asked, wanted, fetches)
    anywhere = before.anywhere
    anything = reading.anywhere(anywhere)
    pointer = before.by["pointer"]
    # what points on, by what it reads; what is final, by what it holds
    points_on, final = (pointer.each[pointers.final].rows(slice(i, i + 1)) for i in (0, 1))
    read = pointer.mapped(
        lambda rows: reading.written(reading.head.values(rows, part.where), anywhere)
    )
    mixed, after = moved(part, read, anywhere.within(points_on))

    def kept(rows: Enclosure) -> Enclosure:
        return part.after(rows, anything.repeated(len(rows.mid)))

    def either(held: Enclosure, fetched: Enclosure) -> Enclosure:
        found: list[Enclosure] = []
        for row in (slice(0, 1), slice(1, 2)):
            some = held.rows(row)
            stays = ((some.low <= final.high) & (some.high >= final.low)).all()
            # a digit that nothing final has is what is read alone
            also = [kept(some.within(final))] if stays else []
            found.append(hull(fetched.rows(row), *also))
        return stacked(*found)

    pointer = pointer.mapped(either, after)
    left = part.left([read.digits], [mixed.digits], [pointer.digits], every=False)
    return reading.layer(fetches, left), before.mapped(kept, pointer=pointer).tightened()


def _asked(task: SeqComp, before: Views, pointers: Pointers) -> tuple[Enclosure, Numbers]:
    """What a token with any w and any pointer that is not final holds, and the entry that it points
    to.
    """
    of_w, _ = pointers.w_numbers()
    parts = (0 * of_w, *task.split_w(np.arange(task.w_values)))
    rows: list[Enclosure] = []
    places: list[Numbers] = []
    for level in range(1, task.L + 1):
        values = np.arange(task.N(max(level - 2, 0)))
        w = np.repeat(np.arange(task.w_values), len(values))
        value = np.tile(values, task.w_values)
        some = before.by["pointer"].at(pointers.number(level, values))
        row = some.rows(value)
        if "w" in before.by:
            row = row.within(before.by["w"].at(of_w).rows(w))
        rows.append(row)
        places.append(np.asarray(task.position(level, parts[level - 1][w], value)))
    return stacked(*rows), np.concatenate(places)


DERIVATIONS = (Derivation(name="encoder", task=SeqComp, derive=derive, ids=ids),)
