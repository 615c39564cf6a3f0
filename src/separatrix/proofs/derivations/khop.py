"""k-hop induction in floor(log2 k) + 2 full layers: a layer in which every token finds the latest
earlier one of its letter, and layers in each of which every token reads where its pointer leads.

By induction on layers, for every token of every prompt at once: after layer l a token holds the
place before that of 2^(l-1) hops, or none, and the letter as many hops on as the lowest l-1 bits of
k say, or none. The start token holds none of both.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any

import numpy as np

from separatrix.core.errors import CheckFailed
from separatrix.models.model import Model
from separatrix.proofs.arithmetic import FP32, Arithmetic
from separatrix.proofs.derivations.parts.derivation import Derivation, Derived
from separatrix.proofs.derivations.parts.heads import Heads, full_heads
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
from separatrix.proofs.derivations.parts.latest import latest_of_a_block
from separatrix.proofs.derivations.parts.live_parts import Live, array, live_parts
from separatrix.proofs.derivations.parts.queries import Queries, Wanted, winning
from separatrix.proofs.derivations.parts.softmax import averaged
from separatrix.proofs.entries import fetch_entry
from separatrix.proofs.machine import Enclosure, Scores, add, linear
from separatrix.proofs.softmax import off_target
from separatrix.tasks import KHop
from separatrix.tasks.base.task import Tokens


@dataclass(frozen=True, kw_only=True)
class Held:
    """What tokens hold before a layer: places 1..n, whatever the prompt."""

    start: Enclosure
    """The start token, one row."""
    by_place: Enclosure
    """A row per place."""
    pointer: Numbered | None
    """By the place that is pointed to; None before the first layer."""
    letter: Numbered
    """By the letter known."""

    @property
    def anywhere(self) -> Enclosure:
        """One row: any token of the prompt."""
        return self.by_place.hull()

    def tightened(self) -> Held:
        """The same, each view within what the others say of any token."""
        row = within(self.letter.any(), self.anywhere)
        row = row if self.pointer is None else within(row, self.pointer.any())

        def tight(table: Enclosure) -> Enclosure:
            return within(table, row)

        return replace(
            self,
            by_place=tight(self.by_place),
            pointer=None if self.pointer is None else self.pointer.mapped(tight),
            letter=self.letter.mapped(tight),
        )


def derive(task: KHop, model: Model, arithmetic: Arithmetic = FP32) -> Derived:
    if not model.config.bos:
        raise CheckFailed("this construction has a start token")
    live = live_parts(model)
    depth = task.k.bit_length() + 1
    if len(live) != depth:
        raise CheckFailed(f"{task.spec} takes {depth} layers, but {len(live)} layers write")
    tokens = _embedded(task, model, arithmetic)
    if tokens.start.rad.any():
        raise CheckFailed("the embedding of the start token may be rounded")
    first = full_heads(live[0])
    entry, tokens = _search(task, model, live[0], first, tokens)
    tokens = tokens.tightened()
    entries = [entry]
    key_numbers = value_numbers = 0
    for level, part in enumerate(live[1:], 2):
        entry, tokens, numbers = _hop(task, part, level, tokens)
        tokens = tokens.tightened()
        entries.append(entry)
        key_numbers = max(key_numbers, numbers[0])
        value_numbers = max(value_numbers, numbers[1])
    for head in first.each:
        key_numbers = max(key_numbers, int((head.k != 0.0).any(1).sum()))
        value_numbers = max(value_numbers, int((head.v != 0.0).any(1).sum()))
    sizes = {
        "layers": depth,
        "heads": len(first.each),
        "head_dim": key_numbers,
        "value_dim": value_numbers,
    }
    return Derived(
        entries,
        _readout(task, model, tokens),
        sizes,
        lambda rng: _closest(task, rng),
        arithmetic=arithmetic.said,
        formats=(arithmetic.name,),
    )


def _embedded(task: KHop, model: Model, arithmetic: Arithmetic) -> Held:
    """Before the first layer: every letter at every place."""
    embed = Enclosure.point(array(model.embed.weight), arithmetic)
    position = Enclosure.point(array(model.position.weight), arithmetic)
    places = position.rows(slice(1, task.n + 1))
    letters = embed.rows(slice(0, task.V))
    return Held(
        start=add(embed.rows(slice(task.V, task.V + 1)), position.rows(slice(0, 1)), RESIDUAL),
        by_place=add(letters.hull(), places, RESIDUAL),
        pointer=None,
        letter=Numbered.of(
            add(letters, places.hull(), RESIDUAL), np.arange(task.V), (task.V - 1).bit_length()
        ),
    )


def _search(
    task: KHop, model: Model, part: Live, heads: Heads, before: Held
) -> tuple[dict[str, Any], Held]:
    """Layer 1: head b finds the latest token of one's letter in block S_b, or the start token."""
    bits = task.n.bit_length()
    where = part.where
    if len(heads.each) != bits:
        raise CheckFailed(f"{where}: {len(heads.each)} heads write; {bits} bits number a place")
    keys = task.n + 1
    letters = array(model.embed.weight)[: task.V]
    places = array(model.position.weight)[1:keys]
    gap = np.inf
    error = 0.0
    mass = Fraction(0)
    found: list[Numbered] = []
    anything: list[Enclosure] = []
    alone: list[Enclosure] = []
    for bit, head in enumerate(heads.each):
        lead = latest_of_a_block(head, letters, places, before.start, bit, where)
        gap, error = min(gap, lead.gap), max(error, lead.error)
        own = off_target(keys - 1, lead.least, before.start.arithmetic)
        mass = max(mass, own)
        values = linear(before.by_place, head.v, what=f"{where}, v")
        nothing = linear(before.start, head.v, what=f"{where}, v")
        seen = hull([values, nothing])

        def read(rows: Enclosure, seen: Enclosure = seen, own: Fraction = own) -> Enclosure:
            return averaged(rows, seen, keys, own, where)

        numbered = Numbered.of(values, np.arange(1, keys), bits)
        found.append(replace(numbered, none=nothing).mapped(read))
        anything.append(averaged(seen, seen, keys, Fraction(0), where))
        alone.append(averaged(nothing, nothing, 1, Fraction(0), where))
    # lower heads found none, this one has found a place, higher ones may hold anything
    rows: list[dict[int, Enclosure]] = []
    for bit in range(bits):
        count = 2 * bits
        given = {}
        for other, head in enumerate(heads.each):
            none = found[other].none
            assert none is not None
            row = none if other < bit else anything[other]
            given[head.index] = found[bit].digits if other == bit else repeated(row, count)
        rows.append(given)
    nowhere = {head.index: _none(found[other]) for other, head in enumerate(heads.each)}
    tables = [heads.written(given) for given in (*rows, nowhere)]
    mlp = Position(part)
    anywhere = before.anywhere
    after = [mlp.after(repeated(anywhere, len(table.mid)), table) for table in tables]
    room = min(mlp.room(repeated(anywhere, len(table.mid)), table) for table in tables)
    digits = stacked(
        [hull([one.rows(slice(row, row + 1)) for one in after[:-1]]) for row in range(2 * bits)]
    )
    pointer = Numbered(digits, after[-1])
    other = heads.written({h.index: one for h, one in zip(heads.each, anything, strict=True)})
    itself = heads.written({h.index: one for h, one in zip(heads.each, alone, strict=True)})
    return (
        fetch_entry(
            part.place,
            fetches="the latest earlier token of the same letter",
            queries=task.n * task.V,
            keys=keys,
            score_gap=gap,
            score_error=error,
            mass=mass,
            left=left_of(part, tables, [digits], room),
        ),
        Held(
            start=mlp.after(before.start, itself),
            by_place=mlp.after(before.by_place, repeated(other, task.n)),
            pointer=pointer,
            letter=before.letter.like(
                mlp.after(before.letter.all(), repeated(other, len(before.letter.all().mid)))
            ),
        ),
    )


def _hop(
    task: KHop, part: Live, level: int, before: Held
) -> tuple[dict[str, Any], Held, tuple[int, int]]:
    """Layer l >= 2: every token reads the token behind the place that it points to, or the start
    token.
    """
    assert before.pointer is not None
    where = part.where
    head = part.full_head()
    keys = task.n + 1
    held = linear(stacked([before.start, before.by_place]), head.k, what=f"{where}, k")
    pointers = np.arange(1, task.n)
    asked = stacked([before.pointer.rows(pointers), _none(before.pointer)])
    query = linear(asked, head.q, what=f"{where}, q")
    # the token behind the place, or the start token
    wanted = np.append(pointers + 1, 0)
    queries = Queries.alone(query)
    scores = Scores(held, queries.used, f"{where}, scores")
    hops = 1 << (level - 2)
    fetches = f"what {hops} hop{'s' * (hops > 1)} lead{'s' * (hops == 1)} to"
    hop = Wanted(fetches, task.n, wanted, lambda part, _: wanted[part])
    lead = queries.lead(scores, hop)
    assert lead is not None
    winning(lead, f"{hop.fetches}: position")
    # the start token's own query meets its own key alone, whose score must be a number
    scores.errors(linear(before.start, head.q, what=f"{where}, q"))
    mass = off_target(keys - 1, Fraction(lead.least), held.arithmetic)

    def values(rows: Enclosure) -> Enclosure:
        return linear(rows, head.v, what=f"{where}, v")

    seen = hull([values(before.by_place), values(before.start)])

    def written(rows: Enclosure) -> Enclosure:
        return linear(averaged(rows, seen, keys, mass, where), head.o, what=f"{where}, o")

    other = linear(averaged(seen, seen, keys, Fraction(0), where), head.o, what=f"{where}, o")
    alone = values(before.start)
    itself = linear(averaged(alone, alone, 1, Fraction(0), where), head.o, what=f"{where}, o")
    mlp = Position(part)
    anywhere = before.anywhere

    def moved(numbered: Numbered) -> tuple[Numbered, Enclosure]:
        """Of what is read, and what attention writes."""
        none = [alone] if numbered.none is None else [alone, values(numbered.none)]
        read = written(stacked([values(numbered.digits), hull(none)]))
        table = mlp.after(repeated(anywhere, len(read.mid)), read)
        return Numbered(table.rows(slice(0, -1)), table.rows(slice(-1, None))), read

    def kept(rows: Enclosure) -> Enclosure:
        return mlp.after(rows, repeated(other, len(rows.mid)))

    pointer, fetched = moved(before.pointer)
    tables, cleaned = [fetched], [pointer.digits]
    letter = before.letter.like(kept(before.letter.all()))
    if task.k >> (level - 2) & 1:
        letter, fetched = moved(before.letter)
        tables.append(fetched)
        cleaned.append(letter.digits)
    room = min(mlp.room(repeated(anywhere, len(table.mid)), table) for table in tables)
    entry = fetch_entry(
        part.place,
        fetches=hop.fetches,
        queries=queries.count,
        keys=keys,
        score_gap=lead.gap,
        score_error=lead.error,
        mass=mass,
        left=left_of(part, tables, cleaned, room),
    )
    after = Held(
        start=mlp.after(before.start, itself),
        by_place=kept(before.by_place),
        pointer=pointer,
        letter=letter,
    )
    numbers = scores.terms, int((head.v != 0.0).any(1).sum())
    return entry, after, numbers


def _readout(task: KHop, model: Model, tokens: Held) -> Fraction:
    """The smallest lead of the right logit. Raises CheckFailed where an answer has not the largest
    one.
    """
    weight = array(model.head.weight)
    rows = stacked([tokens.letter.rows(np.arange(task.V)), _none(tokens.letter)])
    logits = linear(rows, weight, array(model.head.bias), what="the head")
    others = logits.high.copy()
    row = np.arange(task.V + 1)
    right = logits.low[row, row]
    others[row, row] = -np.inf
    lead = np.nextafter(right - others.max(1), -np.inf)
    worst = int(lead.argmin())
    if lead[worst] <= 0:
        raise CheckFailed(f"answer {worst} has not the largest logit where it is due")
    return Fraction(float(lead[worst]))


def _none(numbered: Numbered) -> Enclosure:
    assert numbered.none is not None
    return numbered.none


def _closest(task: KHop, rng: np.random.Generator) -> Tokens:
    """Prompts whose hops are short, long, or lead nowhere: one letter, two in turn, a letter met
    again only at the other end, all letters in order, and one that is new at the end.
    """
    n, V = task.n, task.V
    one = np.full(n, rng.integers(V))
    turns = np.arange(n) % 2 * int(rng.integers(1, V))
    far = np.full(n, 1)
    far[0] = far[-1] = 0
    order = np.arange(n) % V
    new = np.concatenate([rng.integers(1, V, size=n - 1), [0]])
    back = order[::-1]
    return np.stack([one, turns, far, order, new, back])


def ids(task: KHop) -> list[int]:
    """Any letter at any place."""
    return [task.V] * task.n


DERIVATIONS = (Derivation(name="khop", task=KHop, derive=derive, ids=ids),)
