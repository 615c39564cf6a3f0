"""k-hop induction in floor(log2 k) + 2 full layers: a layer in which every token finds the latest
earlier one of its letter, and layers in each of which every token reads where its pointer leads.

By induction on layers, for every token of every prompt at once: after layer l a token holds the
place before that of 2^(l-1) hops, or none, and the letter as many hops on as the lowest l-1 bits of
k say, or none. The start token holds none of both.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from fractions import Fraction
from typing import NamedTuple

import numpy as np

from separatrix.core.errors import CheckFailed
from separatrix.mixers.full import FullMixer
from separatrix.models.model import Model
from separatrix.proofs.arithmetic import FP32, Arithmetic
from separatrix.proofs.derivations.parts.derivation import Derivation, Derived, Layer, derived
from separatrix.proofs.derivations.parts.hops import Numbered, Views, left_of, room_of
from separatrix.proofs.derivations.parts.latest import latest_of_a_block
from separatrix.proofs.derivations.parts.live_parts import (
    Head,
    Live,
    array,
    live_of,
    weights_of,
)
from separatrix.proofs.derivations.parts.queries import Queries, Wanted
from separatrix.proofs.derivations.parts.reading import (
    Reading,
    any_average,
    averaged,
    numbers,
    readout,
)
from separatrix.proofs.entries import entry
from separatrix.proofs.machine import RESIDUAL, Array, Enclosure, add, hull, linear, stacked
from separatrix.proofs.softmax import off_target
from separatrix.tasks import KHop


class Held(NamedTuple):
    """What tokens hold before a layer."""

    start: Enclosure
    """The start token, one row."""
    views: Views
    """Places 1..n, by the letter known, and, behind the first layer, by the place pointed to."""


def derive(task: KHop, model: Model, arithmetic: Arithmetic = FP32) -> Derived:
    depth = task.k.bit_length() + 1
    first, *rest = live_of(model, depth, start=True)
    tokens = _embedded(task, model, arithmetic)
    if tokens.start.rad.any():
        raise CheckFailed("the embedding of the start token may be rounded")
    heads = Heads.of(first)
    found, tokens = _search(task, model, first, heads, tokens)
    layers = [found]
    for level, part in enumerate(rest, 2):
        found, tokens = _hop(task, part, level, tokens)
        layers.append(found)
    letter = tokens.views.by["letter"]
    last = stacked(letter.rows(np.arange(task.V)), letter.absent)
    return derived(arithmetic, layers, readout(model, last), heads=len(heads.each))


@dataclass(frozen=True)
class Heads:
    """The heads of plain full attention that write, each with keys of its own, and the output map
    of all (width, heads * value_dim).
    """

    each: list[Head]
    o: Array
    value_dim: int
    where: str

    @classmethod
    def of(cls, part: Live) -> Heads:
        """Raises CheckFailed for another mixer, options, a parameter that is not read, and for a
        head that does not write but is not zero.
        """
        mixer = part.mixer
        if not isinstance(mixer, FullMixer) or not mixer.mechanism.plain:
            raise CheckFailed(f"{part.where}: the proof is about plain full attention")
        if mixer.kv != mixer.heads:
            raise CheckFailed(f"{part.where}: its heads share keys, which the proof is not about")
        weights = weights_of(mixer, part.where)
        return cls(
            [weights.head(index) for index in weights.live],
            array(mixer.o.weight),
            mixer.dv,
            part.where,
        )

    def written(self, averages: dict[int, Enclosure]) -> Enclosure:
        """What averages add to the stream: by the number of a head, all with as many rows; heads
        that are not named give 0.
        """
        some = next(iter(averages.values()))
        mid = np.zeros((len(some.mid), self.o.shape[1]))
        rad = np.zeros_like(mid)
        for index, given in averages.items():
            own = slice(index * self.value_dim, (index + 1) * self.value_dim)
            mid[:, own] = given.mid
            rad[:, own] = given.rad
        return linear(some.like(mid, rad), self.o, what=f"{self.where}, o")


def _embedded(task: KHop, model: Model, arithmetic: Arithmetic) -> Held:
    """Before the first layer: every letter at every place."""
    embed = Enclosure.point(array(model.embed.weight), arithmetic)
    position = Enclosure.point(array(model.position.weight), arithmetic)
    places = position.rows(slice(1, task.n + 1))
    letters = embed.rows(slice(0, task.V))
    bits = (task.V - 1).bit_length()
    numbered = Numbered.of(add(letters, places.hull(), RESIDUAL), np.arange(task.V), bits)
    start = add(embed.rows(slice(task.V, task.V + 1)), position.rows(slice(0, 1)), RESIDUAL)
    return Held(start, Views(add(letters.hull(), places, RESIDUAL), {"letter": numbered}))


def _search(task: KHop, model: Model, part: Live, heads: Heads, before: Held) -> tuple[Layer, Held]:
    """Layer 1: head b finds the latest token of one's letter in block S_b, or the start token."""
    bits = task.n.bit_length()
    where = part.where
    if len(heads.each) != bits:
        raise CheckFailed(f"{where}: {len(heads.each)} heads write; {bits} bits number a place")
    keys = task.n + 1
    letters = array(model.embed.weight)[: task.V]
    places = array(model.position.weight)[1:keys]
    gap, error, mass = np.inf, 0.0, Fraction(0)
    found: list[Numbered] = []
    anything: list[Enclosure] = []
    alone: list[Enclosure] = []
    for bit, head in enumerate(heads.each):
        lead = latest_of_a_block(head, letters, places, before.start, bit, where)
        gap, error = min(gap, lead.gap), max(error, lead.error)
        own = off_target(keys - 1, lead.least, before.start.arithmetic)
        mass = max(mass, own)
        values = head.values(before.views.by_place, where)
        nothing = head.values(before.start, where)
        seen = hull(values, nothing)

        def read(rows: Enclosure, seen: Enclosure = seen, own: Fraction = own) -> Enclosure:
            return averaged(rows, seen, keys, own, where)

        numbered = Numbered.of(values, np.arange(1, keys), bits)
        found.append(replace(numbered, none=nothing).mapped(read))
        anything.append(any_average(seen, keys, where))
        alone.append(any_average(nothing, 1, where))
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
    anywhere = before.views.anywhere
    mixed = [add(anywhere.repeated(len(table.mid)), table, RESIDUAL) for table in tables]
    after = [part.after_mlp(rows) for rows in mixed]
    digits = stacked(
        *(hull(*(one.rows(slice(row, row + 1)) for one in after[:-1])) for row in range(2 * bits))
    )
    other = heads.written({h.index: one for h, one in zip(heads.each, anything, strict=True)})
    itself = heads.written({h.index: one for h, one in zip(heads.each, alone, strict=True)})
    said = entry(
        part.place,
        left_of(part, tables, [digits], room_of(part, *mixed)),
        fetches="the latest earlier token of the same letter",
        queries=task.n * task.V,
        keys=keys,
        score_gap=gap,
        score_error=error,
        off_target_mass=mass,
    )
    views = before.views.mapped(
        lambda rows: part.after(rows, other.repeated(len(rows.mid))),
        pointer=Numbered(digits, after[-1]),
    )
    keys_used = max(int((head.k != 0.0).any(1).sum()) for head in heads.each)
    layer = Layer(said, "layers", keys_used, max(head.value_numbers for head in heads.each))
    return layer, Held(part.after(before.start, itself), views.tightened())


def _hop(task: KHop, part: Live, level: int, before: Held) -> tuple[Layer, Held]:
    """Layer l >= 2: every token reads the token behind the place that it points to, or the start
    token.
    """
    by, where = before.views.by, part.where
    head = part.full_head()
    held = head.keys(stacked(before.start, before.views.by_place), None, where)
    pointers = np.arange(1, task.n)
    asked = stacked(by["pointer"].rows(pointers), by["pointer"].absent)
    # the token behind the place, or the start token
    wanted = np.append(pointers + 1, 0)
    queries = Queries.alone(head.asked(asked, None, where))
    hops = 1 << (level - 2)
    fetches = f"what {hops} hop{'s' * (hops > 1)} lead{'s' * (hops == 1)} to"
    # the start token's own query meets its own key alone, whose score must be a number
    numbers(head, held, where, before.start)
    alone = head.values(before.start, where)
    seen = hull(head.values(before.views.by_place, where), alone)
    reading = Reading.won(part, head, queries, held, Wanted.each(fetches, wanted), seen)
    anywhere = before.views.anywhere
    other = reading.anywhere(anywhere)
    mixed: list[Enclosure] = []
    fetched: list[Enclosure] = []

    def moved(numbered: Numbered) -> Numbered:
        """Of what is read."""
        none = [alone] if numbered.none is None else [alone, head.values(numbered.none, where)]
        read = stacked(head.values(numbered.digits, where), hull(*none))
        fetched.append(reading.written(read, anywhere))
        mixed.append(add(anywhere.repeated(len(read.mid)), fetched[-1], RESIDUAL))
        table = part.after_mlp(mixed[-1])
        return Numbered(table.rows(slice(0, -1)), table.rows(slice(-1, None)))

    found = {"pointer": moved(by["pointer"])}
    if task.k >> (level - 2) & 1:
        found["letter"] = moved(by["letter"])
    cleaned = [numbered.digits for numbered in found.values()]
    left = left_of(part, fetched, cleaned, room_of(part, *mixed))
    itself = head.written(any_average(alone, 1, where), anywhere, where)
    views = before.views.mapped(
        lambda rows: part.after(rows, other.repeated(len(rows.mid))), **found
    )
    after = Held(part.after(before.start, itself), views.tightened())
    return reading.layer(fetches, left), after


DERIVATIONS = (Derivation(name="khop", task=KHop, derive=derive),)
