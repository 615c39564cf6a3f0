"""k-hop induction in floor(log2 k) + 2 full layers: a layer in which every token finds the latest
earlier one of its letter, and layers in each of which every token reads where its pointer leads.

By induction on layers, for every token of every prompt at once: after layer l a token holds the
place before that of 2^(l-1) hops, or none, and the letter as many hops on as the lowest l-1 bits of
k say, or none. The start token holds none of both.

L-SeqComp by an encoder: a layer in which every token fetches w, and w fetches z_0, and layers in
each of which every token reads the entry that it points to.

By induction on layers, for every token at once: after layer 1 + j a token holds all of w, and a
pointer 2^j steps along the chain, a level and a value, or what is final. Index 0 of the chain is w,
index l an entry of z_l; what follows an entry of z_L is final.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from separatrix.core.errors import CheckFailed
from separatrix.mixers.full import FullMixer
from separatrix.models.model import Model
from separatrix.proofs.arithmetic import FP32, Arithmetic
from separatrix.proofs.derivations.parts.compared import Compared, Heads, Numbered, Views, moved
from separatrix.proofs.derivations.parts.derivation import Derivation, Derived, Layer, derived
from separatrix.proofs.derivations.parts.live_parts import Head, Live, live_of
from separatrix.proofs.derivations.parts.queries import Lead
from separatrix.proofs.derivations.parts.reading import (
    Reading,
    all_of,
    any_average,
    readout,
)
from separatrix.proofs.derivations.parts.stream import Embedded
from separatrix.proofs.derivations.seqcomp import ids
from separatrix.proofs.machine import Enclosure, hull, stacked
from separatrix.tasks import KHop, SeqComp


class Held(NamedTuple):
    """What tokens hold before a later layer."""

    start: Enclosure
    """The start token, one row."""
    views: Views
    """Places 1..n, by the letter known and by the place pointed to."""


def derive(task: KHop, model: Model, arithmetic: Arithmetic = FP32) -> Derived:
    depth = task.k.bit_length() + 1
    first, *rest = live_of(model, depth, start=True)
    at = Embedded.of(model, task.n + 1, arithmetic)
    letters, places = slice(0, task.V), slice(1, None)
    views = at.tokens(letters, places), at.places(places, letters)
    heads = Heads.of(first)
    found, tokens = _search(task, first, heads, at.start(task.V), *views)
    layers = [found]
    for level, part in enumerate(rest, 2):
        found, tokens = _hop(task, part, level, tokens)
        layers.append(found)
    letter = tokens.views.by["letter"]
    last = stacked(letter.at(np.arange(task.V)), letter.absent)
    return derived(arithmetic, layers, readout(model, last), heads=len(heads.each))


def _search(
    task: KHop, part: Live, heads: Heads, start: Enclosure, letters: Enclosure, places: Enclosure
) -> tuple[Layer, Held]:
    """Layer 1: head b finds the latest token of one's letter in block S_b, or the start token.
    Tokens are a row for each letter at any place, and for each place, whatever the letter.
    """
    bits = task.n.bit_length()
    where = part.where
    if len(heads.each) != bits:
        raise CheckFailed(f"{where}: {len(heads.each)} heads write; {bits} bits number a place")
    readings: list[Reading] = []
    found: list[Numbered] = []
    alone: list[Enclosure] = []
    for bit, head in enumerate(heads.each):
        values = head.values(places)
        nothing = head.values(start)
        reading = Reading.of(
            head,
            _latest(task, head, start, (letters, places), bit),
            hull(values, nothing),
            queries=task.n * task.V,
            keys=task.n + 1,
            key_numbers=int((head.k != 0.0).any(1).sum()),
        )
        readings.append(reading)
        numbered = Numbered.of(values, np.arange(1, task.n + 1), bits)
        found.append(replace(numbered, none=nothing).mapped(reading.read))
        alone.append(any_average(nothing, 1, where))
    anything = [reading.anything() for reading in readings]
    # lower heads found none, this one has found a place, higher ones may hold anything
    rows: list[dict[int, Enclosure]] = []
    for bit in range(bits):
        given = {}
        for other, head in enumerate(heads.each):
            row = found[other].absent if other < bit else anything[other]
            given[head.index] = found[bit].digits if other == bit else row.repeated(2 * bits)
        rows.append(given)
    nowhere = {head.index: one.absent for head, one in zip(heads.each, found, strict=True)}
    tables = [heads.written(given) for given in (*rows, nowhere)]
    anywhere = places.hull()
    after = [part.after(anywhere, table) for table in tables]
    digits = stacked(
        *(hull(*(one.rows(slice(row, row + 1)) for one in after[:-1])) for row in range(2 * bits))
    )
    other = heads.written({h.index: one for h, one in zip(heads.each, anything, strict=True)})
    itself = heads.written({h.index: one for h, one in zip(heads.each, alone, strict=True)})
    letter = Numbered.of(letters, np.arange(task.V), (task.V - 1).bit_length())
    views = Views(places, {"letter": letter}).mapped(
        lambda rows: part.after(rows, other),
        pointer=Numbered.split(digits, after[-1]),
    )
    layer = all_of(readings).layer("the latest earlier token of the same letter")
    return layer, Held(part.after(start, itself), views.tightened())


def _latest(
    task: KHop,
    head: Head,
    start: Enclosure,
    views: tuple[Enclosure, Enclosure],
    digit: int,
) -> Lead:
    """By how much the latest token of one's own letter in a block of places before one's own leads,
    or the start token where there is none, over every letter at every place, whatever stands
    elsewhere. Raises CheckFailed where another key may win for some query.

    Of places p, j >= 1 and a binary digit b, j is in the block of p where p has 1 in digit b, j has
    0, and both agree above: floor(p / 2^b) is odd, and floor(j / 2^b) is one less.
    """
    blank = head.keys(start)
    # alone with its own key, whose score need only be a number
    head.numbers(blank, start)
    compared = Compared.of(
        [head.asked(rows) for rows in views],
        [head.keys(rows) for rows in views],
        head.where,
        blank,
    )
    asked = compared.queries[1].mid
    block = np.arange(1, task.n + 1) >> digit
    groups, rows = np.unique(block, return_index=True)
    if (asked != asked[rows][np.searchsorted(groups, block)]).any():
        raise CheckFailed(f"{head.where}, q: places of one block ask differently")

    def inside(some: slice) -> NDArray[np.bool_]:
        group = groups[some, None]
        return (block[None] == group - 1) & (group % 2 == 1)

    return compared.latest(slice(None), asked[rows], inside)


def _hop(task: KHop, part: Live, level: int, before: Held) -> tuple[Layer, Held]:
    """Layer l >= 2: every token reads the token behind the place that it points to, or the start
    token.
    """
    by, where = before.views.by, part.where
    head = part.full_head()
    rows = stacked(before.start, before.views.by_place)
    pointers = np.arange(1, task.n)
    asked = stacked(by["pointer"].at(pointers), by["pointer"].absent)
    hops = 1 << (level - 2)
    fetches = f"what {hops} hop{'s' * (hops > 1)} lead{'s' * (hops == 1)} to"
    # the token behind the place, or the start token
    reading = Reading.each(head, rows, asked, np.append(pointers + 1, 0), fetches)
    alone = head.values(before.start)
    anywhere = before.views.anywhere
    other = reading.anywhere(anywhere)

    def behind(numbered: Numbered) -> Numbered:
        """Of what is read."""
        read = numbered.mapped(lambda rows: head.values(rows))
        none = [alone] if read.none is None else [alone, read.none]
        read = replace(read, none=hull(*none))
        return moved(part, read.mapped(lambda rows: reading.written(rows, anywhere)), anywhere)

    found = {"pointer": behind(by["pointer"])}
    if task.k >> (level - 2) & 1:
        found["letter"] = behind(by["letter"])
    itself = head.written(any_average(alone, 1, where), anywhere)
    views = before.views.mapped(lambda rows: part.after(rows, other), **found)
    after = Held(part.after(before.start, itself), views.tightened())
    return reading.layer(fetches), after


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


def derive_encoder(task: SeqComp, model: Model, arithmetic: Arithmetic = FP32) -> Derived:
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
    reading = Reading.each(_head(part), by_place, by_place, wanted, fetches)
    others = np.flatnonzero(np.arange(task.length) != at_w)
    tokens_w = at.tokens(slice(0, task.w_values), slice(at_w, at_w + 1))
    tokens_z0 = at.tokens(slice(0, task.m), slice(at_z0, at_z0 + 1))
    from_w, from_z0 = (
        reading.written(reading.head.values(rows), by_place.hull())
        for rows in (tokens_w, tokens_z0)
    )
    # w itself, by what it fetches, and the others, by their own values
    w_row = by_place.rows(slice(at_w, at_w + 1))
    moved_w = part.after(w_row, from_z0)
    elsewhere = by_place.rows(others).hull()
    values = at.tokens(slice(0, task.answers), others)
    entries = part.after(values, from_w.hull())
    places = part.after(by_place.rows(others), from_w.hull())
    after = np.argsort(np.append(others, at_w))
    view = stacked(places, moved_w.hull()).rows(after)
    of_w, bits = pointers.w_numbers()
    pointer = _pointing(task, pointers, entries, moved_w, view)
    by = {"pointer": pointer}
    if bits:
        own = part.after(tokens_w, from_z0.hull())
        by_w = part.after(elsewhere, from_w)
        by["w"] = Numbered.of(stacked(by_w, own), np.tile(of_w, 2), bits)
    return reading.layer(fetches), Views(view, by).tightened()


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
    reading = Reading.each(_head(part), before.by_place, asked, wanted, fetches)
    anywhere = before.anywhere
    anything = reading.anywhere(anywhere)
    pointer = before.by["pointer"]
    # what points on, by what it reads; what is final, by what it holds
    points_on, final = (pointer.each[pointers.final].rows(slice(i, i + 1)) for i in (0, 1))
    read = pointer.mapped(lambda rows: reading.written(reading.head.values(rows), anywhere))
    after = moved(part, read, anywhere.within(points_on))

    def kept(rows: Enclosure) -> Enclosure:
        return part.after(rows, anything)

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
    return reading.layer(fetches), before.mapped(kept, pointer=pointer).tightened()


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


DERIVATIONS = (
    Derivation(name="khop", task=KHop, derive=derive),
    Derivation(name="encoder", task=SeqComp, derive=derive_encoder, ids=ids),
)
