"""L-SeqComp in L+1 full layers: a hop that fetches z_0, and one for each function. Or in L full
layers and a bounded one that hands a value on from z_0 to w: z_0 itself, before the first full
layer, or i_1, which the first full layer fetches at z_0, before the second. What stands at z_0's
place does not depend on w: it is followed in the prompt that ends there.

L-SeqComp by one full layer that writes L tokens: a hop after each of the last L+1 tokens.

By induction on what was written: if the tokens behind the prompt are right so far, the last of them
is (w, i_{l-1}). For every such token, whatever stands elsewhere, the layer fetches i_l and the head
names the token that is due.
"""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import numpy as np

from separatrix.core.errors import CheckFailed
from separatrix.mixers.window import WindowMixer
from separatrix.models.model import Model
from separatrix.proofs.arithmetic import FP32, Arithmetic
from separatrix.proofs.derivations.parts.carriers import Arrival
from separatrix.proofs.derivations.parts.chain import Fetched, derive_chain, elsewhere, full_fetch
from separatrix.proofs.derivations.parts.derivation import Derivation, Derived, Layer, derived
from separatrix.proofs.derivations.parts.live_parts import Live, array, live_of, live_parts
from separatrix.proofs.derivations.parts.queries import Queries, Wanted
from separatrix.proofs.derivations.parts.reading import Reading, readout
from separatrix.proofs.derivations.parts.recurrences import arrival
from separatrix.proofs.derivations.parts.stream import Stream
from separatrix.proofs.entries import entry
from separatrix.proofs.machine import Enclosure, above
from separatrix.tasks import SeqComp, Thought
from separatrix.tasks.base.task import Tokens


def windowed(stream: Stream, part: Live, place: int, at_place: Enclosure) -> Arrival:
    """By a sliding window: a softmax over all keys of which only the last ones are seen, so that
    the bounds of one over all keys hold.
    """
    head, mixer, where = part.softmax_head(WindowMixer), part.mixer, part.where
    assert isinstance(mixer, WindowMixer)
    tokens = len(stream.by_place.mid)
    first = max(0, tokens - mixer.size)
    if place < first:
        raise CheckFailed(f"{where}: position {place} is out of the window's sight")
    every = head.keys(stream.by_place, np.arange(tokens))
    head.numbers(every, stream.by_place.hull(), stream.at_last())
    keys = every.rows(slice(first, tokens))
    queries = Queries.alone(head.asked(stream.at_last(), np.array([tokens - 1])))
    seen = head.values(stream.by_place.hull())
    hop = Wanted.each(f"{where}, its window", np.array([place - first]))
    reading = Reading.won(head, queries, keys, hop, seen)
    last = reading.written(head.values(at_place), stream.at_last())
    anywhere = reading.anywhere(stream.by_place.hull())
    return Arrival(last, anywhere, above(reading.mass), head.assumes)


def carry(stream: Stream, part: Live, hop: Wanted, place: int, at_place: Enclosure) -> Fetched:
    """A bounded layer that brings what stands at the place to the last token; `at_place` has a row
    for each value of the hop.
    """
    read = windowed if isinstance(part.mixer, WindowMixer) else arrival
    found = read(stream, part, place, at_place)
    after = stream.after(part, found.last, found.anywhere, hop.then)
    said = entry(
        part.place,
        carries=hop.fetches,
        mechanism=part.mixer.mechanism.name,
        keys=len(stream.by_place.mid),
        off_target_mass=found.mass,
    )
    return Fetched(Layer(said, "carriers", assumes=found.assumes), after)


def hops(task: SeqComp) -> list[Wanted]:
    """z_0 has one place; i_l = z_l(w_{l-1}, i_{l-1}) has the place of its row and column."""
    tokens = np.arange(task.w_values)
    # z_0 and z_1 are asked for alike by every w: their part of the last token is 0
    parts = [0 * tokens, 0 * tokens, *task.split_w(tokens)]
    first = Wanted("z_0", task.m, parts[0], lambda a, before: task.position_z0 + 0 * (a + before))
    rest = [
        Wanted(
            f"i_{level}",
            task.entries(level),
            parts[level],
            lambda a, i, level=level: task.position(level, a, i),
        )
        for level in range(1, task.L + 1)
    ]
    return [first, *rest]


def derive(task: SeqComp, model: Model, arithmetic: Arithmetic = FP32) -> Derived:
    return derive_chain(task, model, hops(task), [full_fetch] * (task.L + 1), arithmetic)


def ids(task: SeqComp) -> list[int]:
    """The functions, last one first, as tables; then z_0 and w."""
    counts = [task.entries(level) for level in range(task.L, 0, -1)]
    tables = [count for count in counts for _ in range(count)]
    return [*tables, task.m, task.w_values]


def derive_carried(task: SeqComp, model: Model, arithmetic: Arithmetic = FP32) -> Derived:
    live = live_parts(model, placed=False)
    if live and live[0].mixer.mechanism.reading:
        return _between(task, model, arithmetic)
    first, *rest = hops(task)
    at_z0 = Stream.of(model, task.position_z0 + 1, task.m, arithmetic).last

    def bring(stream: Stream, part: Live, hop: Wanted) -> Fetched:
        return carry(stream, part, hop, task.position_z0, at_z0)

    by = [bring, *[full_fetch] * task.L]
    return derive_chain(task, model, [first, *rest], by, arithmetic)


def _between(task: SeqComp, model: Model, arithmetic: Arithmetic) -> Derived:
    """The first full layer fetches i_1 at the place of z_0, and the bounded one brings it to w."""
    _, first, *rest = hops(task)
    place = task.position_z0
    prefix = Stream.of(model, place + 1, task.m, arithmetic)
    # at its own place z_0 is what decides
    here = Wanted(
        "i_1 at z_0",
        first.values,
        np.arange(task.m),
        lambda a, i: task.position(1, 0 * a, a + 0 * i),
    )
    found: list[Fetched] = []

    def early(stream: Stream, part: Live, hop: Wanted) -> Fetched:
        at_z0 = full_fetch(prefix, part, here)
        found.append(at_z0)
        return elsewhere(stream, part, at_z0)

    def bring(stream: Stream, part: Live, hop: Wanted) -> Fetched:
        return carry(stream, part, hop, place, found[0].stream.rows())

    by = [early, bring, *[full_fetch] * (task.L - 1)]
    return derive_chain(task, model, [first, first, *rest], by, arithmetic)


def derive_thought(task: Thought, model: Model, arithmetic: Arithmetic = FP32) -> Derived:
    inner = task.task
    if not isinstance(inner, SeqComp) or task.form != "pairs":
        raise CheckFailed(f"{task.spec}: the proof is about pairs of a composition")
    (part,) = live_of(model, 1)
    done: list[Layer] = []
    leads: list[Fraction] = []
    # after the prompt, and after each token that is written
    for level, hop in enumerate(hops(inner)):
        values = hops(inner)[level - 1].values if level else 1
        w, before = np.divmod(np.arange(inner.w_values * values), values)
        place = np.asarray(hop.place(hop.part[w], before))
        tokens = task.pair(w, before) if level else w
        stream = Stream.of(model, inner.length + level, tokens, arithmetic)
        wanted = Wanted(hop.fetches, hop.values, place, lambda at, _: at)
        layer, stream = full_fetch(stream, part, wanted)
        done.append(layer)
        named = task.pair(w, 0 * w) if level < inner.L else 0 * w
        leads.append(_named(model, hop.fetches, named, stream))
    return derived(arithmetic, done, min(leads), layers=1, written=inner.L)


def _named(model: Model, fetches: str, named: Tokens, stream: Stream) -> Fraction:
    """The smallest lead of the token that is due over all others; `named`: for each last token the
    id of value 0 of it, that of value v is v more. Raises CheckFailed where another one may be
    named.
    """
    read = (array(model.head.weight) != 0.0).any(0)
    last = stream.last.only(read)
    # tokens of which the head reads the same, and to which the same is due, count once
    table = np.concatenate([last.mid, last.rad, named[:, None]], 1)
    _, first = np.unique(table, axis=0, return_index=True)
    when = f"once it is fetched: {fetches}"
    values = np.arange(len(stream.field.mid))
    return min(
        readout(model, stream.rows(slice(at, at + 1)), named[at] + values, when)
        for at in first.tolist()
    )


DERIVATIONS: tuple[Derivation[Any], ...] = (
    Derivation(name="seqcomp", task=SeqComp, derive=derive, ids=ids),
    Derivation(name="carried", task=SeqComp, derive=derive_carried, ids=ids),
    Derivation(
        name="thought", task=Thought, derive=derive_thought, ids=lambda task: ids(task.asked)
    ),
)
