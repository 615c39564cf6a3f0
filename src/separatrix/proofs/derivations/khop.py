"""k-hop induction in floor(log2 k) + 2 full layers: a layer in which every token finds the latest
earlier one of its letter, and layers in each of which every token reads where its pointer leads.

By induction on layers, for every token of every prompt at once: after layer l a token holds the
place before that of 2^(l-1) hops, or none, and the letter as many hops on as the lowest l-1 bits of
k say, or none. The start token holds none of both.
"""

from __future__ import annotations

from dataclasses import replace
from typing import NamedTuple

import numpy as np

from separatrix.core.errors import CheckFailed
from separatrix.models.model import Model
from separatrix.proofs.arithmetic import FP32, Arithmetic
from separatrix.proofs.derivations.parts.compared import Compared
from separatrix.proofs.derivations.parts.derivation import Derivation, Derived, Layer, derived
from separatrix.proofs.derivations.parts.hops import Heads, Numbered, Views, moved
from separatrix.proofs.derivations.parts.live_parts import Head, Live, live_of
from separatrix.proofs.derivations.parts.queries import Lead
from separatrix.proofs.derivations.parts.reading import (
    CHUNK,
    Reading,
    all_of,
    any_average,
    numbers,
    readout,
)
from separatrix.proofs.derivations.parts.stream import Embedded
from separatrix.proofs.machine import RESIDUAL, Enclosure, add, hull, stacked
from separatrix.tasks import KHop


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
        values = head.values(places, where)
        nothing = head.values(start, where)
        reading = Reading.of(
            part,
            head,
            _latest(task, head, start, (letters, places), bit, where),
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
    mixed = [add(anywhere.repeated(len(table.mid)), table, RESIDUAL) for table in tables]
    after = [part.after_mlp(rows) for rows in mixed]
    digits = stacked(
        *(hull(*(one.rows(slice(row, row + 1)) for one in after[:-1])) for row in range(2 * bits))
    )
    other = heads.written({h.index: one for h, one in zip(heads.each, anything, strict=True)})
    itself = heads.written({h.index: one for h, one in zip(heads.each, alone, strict=True)})
    letter = Numbered.of(letters, np.arange(task.V), (task.V - 1).bit_length())
    views = Views(places, {"letter": letter}).mapped(
        lambda rows: part.after(rows, other.repeated(len(rows.mid))),
        pointer=Numbered.split(digits, after[-1]),
    )
    left = part.left(tables, mixed, [digits], every=False)
    layer = all_of(readings).layer("the latest earlier token of the same letter", left)
    return layer, Held(part.after(start, itself), views.tightened())


def _latest(
    task: KHop,
    head: Head,
    start: Enclosure,
    views: tuple[Enclosure, Enclosure],
    digit: int,
    where: str,
) -> Lead:
    """By how much the latest token of one's own letter in a block of places before one's own leads,
    or the start token where there is none, over every letter at every place, whatever stands
    elsewhere. Raises CheckFailed where another key may win for some query.

    Of places p, j >= 1 and a binary digit b, j is in the block of p where p has 1 in digit b, j has
    0, and both agree above: floor(p / 2^b) is odd, and floor(j / 2^b) is one less.
    """
    blank = head.keys(start, None, where)
    # alone with its own key, whose score need only be a number
    numbers(head, blank, where, start)
    compared = Compared.of(
        [head.asked(rows, None, where) for rows in views],
        [head.keys(rows, None, where) for rows in views],
        where,
        blank,
    )
    q, k = ([rows.mid for rows in views] for views in (compared.queries, compared.keys))
    (first,) = blank.mid
    same = q[0] @ k[0].T
    to_start = q[0] @ first
    match = np.diagonal(same)
    other = same.copy()
    np.fill_diagonal(other, -np.inf)
    # of letters: a match over the start token, and that over a wrong one, and over any
    over_start = float((match - to_start).min())
    start_over_wrong = float((to_start - other.max(1)).min())
    start_over_any = float((to_start - same.max(1)).min())

    block = np.arange(1, task.n + 1) >> digit
    groups, rows = np.unique(block, return_index=True)
    if (q[1] != q[1][rows][np.searchsorted(groups, block)]).any():
        raise CheckFailed(f"{where}, q: places of one block ask differently")
    gap = np.inf
    count = max(1, CHUNK // task.n)
    for at in range(0, len(groups), count):
        group = groups[at : at + count]
        asked = q[1][rows[at : at + count]]
        table = asked @ k[1].T
        start_score = asked @ first
        inside = (block[None] == group[:, None] - 1) & (group[:, None] % 2 == 1)
        rise = np.diff(table, axis=1)[inside[:, 1:] & inside[:, :-1]]
        low = np.where(inside, table, np.inf).min(1)
        high = np.where(inside, table, -np.inf).max(1)
        outside = np.where(inside, -np.inf, table).max(1)
        gap = min(
            gap,
            # a later match over an earlier one; over wrong letters it leads through the start token
            float(rise.min(initial=np.inf)),
            float((low - start_score).min()) + over_start,
            float((start_score - high).min()) + start_over_wrong,
            float((start_score - outside).min()) + start_over_any,
        )
    return compared.least([gap], "the latest of its letter, or the start token")


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
    reading = Reading.each(part, head, rows, asked, np.append(pointers + 1, 0), fetches)
    alone = head.values(before.start, where)
    anywhere = before.views.anywhere
    other = reading.anywhere(anywhere)
    fetched: list[Numbered] = []
    mixed: list[Numbered] = []

    def behind(numbered: Numbered) -> Numbered:
        """Of what is read."""
        read = numbered.mapped(lambda rows: head.values(rows, where))
        none = [alone] if read.none is None else [alone, read.none]
        read = replace(read, none=hull(*none))
        fetched.append(read.mapped(lambda rows: reading.written(rows, anywhere)))
        before, after = moved(part, fetched[-1], anywhere)
        mixed.append(before)
        return after

    found = {"pointer": behind(by["pointer"])}
    if task.k >> (level - 2) & 1:
        found["letter"] = behind(by["letter"])
    cleaned = [numbered.digits for numbered in found.values()]
    left = part.left([x.rows for x in fetched], [x.rows for x in mixed], cleaned, every=False)
    itself = head.written(any_average(alone, 1, where), anywhere, where)
    views = before.views.mapped(
        lambda rows: part.after(rows, other.repeated(len(rows.mid))), **found
    )
    after = Held(part.after(before.start, itself), views.tightened())
    return reading.layer(fetches, left), after


DERIVATIONS = (Derivation(name="khop", task=KHop, derive=derive),)
