"""L-SeqComp in L+1 full layers: a hop that fetches z_0, and one for each function. Or in L full
layers and a bounded one that hands a value on from z_0 to w: z_0 itself, before the first full
layer, or i_1, which the first full layer fetches at z_0, before the second. What stands at z_0's
place does not depend on w: it is followed in the prompt that ends there.

L-SeqComp by one full layer that writes L tokens: a hop after each of the last L+1 tokens.

By induction on what was written: if the tokens behind the prompt are right so far, the last of them
is (w, i_{l-1}). For every such token, whatever stands elsewhere, the layer fetches i_l and the head
names the token that is due.

What arrives at the last token through mixers whose state is a vector: short convolutions, Mamba,
RG-LRU.

    shortconv   y = O (c_i * sum_r w_r (b_{i-r} * u_{i-r}))
    mamba       h_i = exp(D_i A) h_{i-1} + D_i u_i B_i,   y_i = O (<C_i, h_i> + E u_i)
    rglru       h_i = a_i h_{i-1} + sqrt(1 - a_i^2) g_i u_i,   y_i = O h_i

The token that must arrive stands right before the last. Two steps are evaluated channel by channel,
from a state that is bounded whatever came before.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, NamedTuple

import numpy as np
from torch import Tensor

from separatrix.core.errors import CheckFailed
from separatrix.mixers import Mixer
from separatrix.mixers.base.mixer import EPSILON
from separatrix.mixers.channels import SCALE, MambaMixer, RGLRUMixer, ShortConvolutionMixer
from separatrix.mixers.ops.maps import Convolution
from separatrix.mixers.window import WindowMixer
from separatrix.models.model import Model
from separatrix.proofs.arithmetic import FP32, Arithmetic
from separatrix.proofs.derivations.parts.arriving import Arrival, arrived
from separatrix.proofs.derivations.parts.chain import Fetched, derive_chain, elsewhere, full_fetch
from separatrix.proofs.derivations.parts.derivation import Derivation, Derived, Layer, derived
from separatrix.proofs.derivations.parts.live_parts import Live, array, live_of, live_parts
from separatrix.proofs.derivations.parts.matrix_states import MATRIX_STATES, matrix_state
from separatrix.proofs.derivations.parts.queries import Queries, Wanted
from separatrix.proofs.derivations.parts.reading import Reading, numbers, readout
from separatrix.proofs.derivations.parts.recurrent_maps import (
    exponential,
    normed,
    not_narrowed,
    sigmoid,
    silu,
    softplus,
)
from separatrix.proofs.derivations.parts.stream import Stream
from separatrix.proofs.entries import entry
from separatrix.proofs.machine import (
    Array,
    Enclosure,
    above,
    add,
    limited,
    linear,
    roundings,
    slack,
    times,
)
from separatrix.tasks import SeqComp, Thought
from separatrix.tasks.base.task import Tokens

_OURS = 1 + 2.0**-40


class Seen(NamedTuple):
    """One quantity at the place, a row for each thing that may stand there; at the last token; at
    any place before the two; and at any place at all.
    """

    place: Enclosure
    last: Enclosure
    before: Enclosure
    anywhere: Enclosure

    def map(self, function: Callable[[Enclosure], Enclosure]) -> Seen:
        return Seen(*map(function, self))

    def times(self, other: Seen, what: str) -> Seen:
        return Seen(*(times(x, y, what) for x, y in zip(self, other, strict=True)))


def _held(stream: Stream, place: int, at_place: Enclosure, where: str) -> Seen:
    """What the residual stream holds. Raises CheckFailed unless the place is the last but one."""
    tokens = len(stream.by_place.mid)
    not_narrowed(stream.last.arithmetic, where)
    if place != tokens - 2:
        raise CheckFailed(f"{where}: what is carried stands right before the last token")
    # a prompt of two tokens has none before: then this is more than there is
    before = stream.by_place.rows(slice(0, max(1, place))).hull()
    return Seen(at_place, stream.at_last(), before, stream.by_place.hull())


def _map(seen: Seen, weight: Array, what: str) -> Seen:
    return seen.map(lambda x: linear(x, weight, what=what))


def _convolved(conv: Convolution, x: Seen, what: str) -> Seen:
    """Through a convolution; taps further back than one token read any place, or nothing."""
    weight = array(conv.weight)
    kernel = weight.shape[1]
    arithmetic = x.last.arithmetic
    taps = [Enclosure.point(weight[:, kernel - 1 - r][None], arithmetic) for r in range(kernel)]

    def total(first: list[Enclosure], rows: int) -> Enclosure:
        found = Enclosure.point(np.zeros((rows, len(weight))), arithmetic)
        for tap, one in zip(taps, first, strict=True):
            found = add(found, times(tap, one, what), what)
        return silu(found, what) if conv.silu else found

    rows = len(x.place.mid)
    # before the first token stand zeros
    any_ = x.last.spanning(np.minimum(x.anywhere.low, 0.0), np.maximum(x.anywhere.high, 0.0))
    old = x.last.spanning(np.minimum(x.before.low, 0.0), np.maximum(x.before.high, 0.0))
    more = kernel - 1
    # a row at the last token for each thing at the place, which stands one token back
    last = total([x.last, x.place, *[old] * (more - 1)][:kernel], rows)
    return Seen(
        total([x.place, *[old] * more], rows),
        last,
        total([x.before, *[old] * more], 1),
        total([x.anywhere, *[any_] * more], 1),
    )


def _inputs(mixer: MambaMixer | RGLRUMixer, held: Seen, where: str) -> Seen:
    u = _map(held, array(mixer.v.weight), where)
    return u if mixer.conv is None else _convolved(mixer.conv, u, where)


def short_convolution(stream: Stream, part: Live, place: int, at_place: Enclosure) -> Arrival:
    mixer, where = part.mixer, part.where
    assert isinstance(mixer, ShortConvolutionMixer)
    held = _held(stream, place, at_place, where)
    v, b, c = (_map(held, array(one.weight), where) for one in (mixer.v, mixer.b, mixer.c))
    y = c.times(_convolved(mixer.conv, b.times(v, where), where), where)
    o = array(mixer.o.weight)
    return Arrival(linear(y.last, o, what=where), linear(y.anywhere, o, what=where), 0.0)


def mamba(stream: Stream, part: Live, place: int, at_place: Enclosure) -> Arrival:
    mixer, where = part.mixer, part.where
    assert isinstance(mixer, MambaMixer)
    u = _inputs(mixer, _held(stream, place, at_place, where), where)
    steps = u.map(lambda x: _steps(mixer, x, where))
    b = u.map(lambda x: _read(mixer, "b", x, where))
    c = u.map(lambda x: _read(mixer, "c", x, where))
    tokens = len(stream.by_place.mid)
    # D u B and exp(D A): a column for each number of each channel
    channels, numbers = mixer.channels, mixer.numbers
    written = steps.times(u, where).map(lambda x: _repeated(x, numbers))
    written = written.times(b.map(lambda x: _tiled(x, channels)), where)
    rates = exponential(_point(mixer.rate.reshape(1, -1), stream), f"{where}, rate")
    slow = steps.map(lambda x: times(_repeated(x, numbers), rates, where))
    kept = slow.map(lambda x: exponential(-x, where))
    # no state is larger than the sum of all that was written
    arithmetic = stream.last.arithmetic
    tiny = arithmetic.tiny
    many = tokens * (1 + float(roundings(64 * tokens + 64, arithmetic)))
    state = _two_steps(_within(many * written.before.size + tiny, u.last), kept, written, where)
    read = times(state, _tiled(c.last, channels), where)
    sums = _summed(read, numbers)
    skip = _point(mixer.skip[None], stream)
    y = add(sums, times(skip, u.last, where), where)
    top = _within(many * (written.anywhere.size + tiny), u.last)
    most = _summed(times(top, _tiled(c.anywhere, channels), where), numbers).size
    most = most + times(skip, u.anywhere, where).size * (1 + 2.0**-20)
    return _written(y, most, array(mixer.o.weight), where)


def _summed(x: Enclosure, numbers: int) -> Enclosure:
    """The sum over the numbers of each channel."""
    mid, rad, size = (
        part.reshape(len(x.mid), -1, numbers).sum(2) for part in (x.mid, x.rad, x.size)
    )
    off = rad + (float(roundings(numbers + 256, x.arithmetic)) + slack(numbers)) * size
    off = off + x.arithmetic.tiny
    return x.like(mid, np.where(size == 0, 0.0, off * _OURS))


def _written(y: Enclosure, most: Array, o: Array, where: str) -> Arrival:
    """Rows at the last token, and the most at any."""
    anywhere = _within(np.maximum(most, y.size.max(0, keepdims=True)), y)
    return Arrival(linear(y, o, what=where), linear(anywhere, o, what=where), 0.0)


def _within(size: Array, like: Enclosure) -> Enclosure:
    limited(size, "a state", like.arithmetic)
    return like.like(np.zeros_like(size), size)


def _point(parameter: Tensor, stream: Stream) -> Enclosure:
    return Enclosure.point(array(parameter), stream.last.arithmetic)


def _two_steps(stale: Enclosure, kept: Seen, put: Seen, where: str) -> Enclosure:
    """The state at the last token, from what it may be before the place: two steps, and by what a
    chunk of the parallel form rounds, which takes decays from its start.
    """
    first = add(times(stale, kept.place, where), put.place, where)
    state = add(times(first, kept.last, where), put.last, where)
    off = float(roundings(512, state.arithmetic)) * state.size + state.arithmetic.tiny
    return state.wider(off * (state.size > 0))


def _repeated(x: Enclosure, numbers: int) -> Enclosure:
    """A column for each number of each channel, from one for each channel."""
    return x.like(np.repeat(x.mid, numbers, 1), np.repeat(x.rad, numbers, 1))


def _tiled(x: Enclosure, channels: int) -> Enclosure:
    """The same from one for each number."""
    return x.like(np.tile(x.mid, (1, channels)), np.tile(x.rad, (1, channels)))


def _steps(mixer: MambaMixer, u: Enclosure, where: str) -> Enclosure:
    low = linear(u, array(mixer.dt.down.weight), what=where)
    if mixer.read is not None:
        low = normed(low, EPSILON)
    up = linear(low, array(mixer.dt.up.weight), array(mixer.dt.up.bias), what=where)
    return softplus(up, f"{where}, dt")


def _read(mixer: MambaMixer, name: str, u: Enclosure, where: str) -> Enclosure:
    """B or C."""
    found = linear(u, array(mixer.get_parameter(f"{name}.weight")), what=where)
    if mixer.read is None:
        return found
    found = normed(found, EPSILON)
    if name == "b":
        return found
    scale = Enclosure.point(array(mixer.read)[None], found.arithmetic)
    return times(found, scale, where)


def rglru(stream: Stream, part: Live, place: int, at_place: Enclosure) -> Arrival:
    mixer, where = part.mixer, part.where
    assert isinstance(mixer, RGLRUMixer)
    u = _inputs(mixer, _held(stream, place, at_place, where), where)
    speed = softplus(_point(mixer.rate[None], stream), f"{where}, rate")
    opened, gated = (
        u.map(
            lambda x, gate=gate: sigmoid(
                linear(x, array(gate.weight), array(gate.bias), what=where), where
            )
        )
        for gate in (mixer.r, mixer.g)
    )
    slow = opened.map(lambda r: times(speed.like(SCALE * speed.mid, SCALE * speed.rad), r, where))
    kept = slow.map(lambda x: exponential(-x, where))
    put = slow.map(_root).times(gated, where).times(u, where)
    tokens = len(stream.by_place.mid)
    stale = _within(_most(kept.before, put.before, tokens), u.last)
    h = _two_steps(stale, kept, put, where)
    return _written(h, _most(kept.anywhere, put.anywhere, tokens), array(mixer.o.weight), where)


def _most(kept: Enclosure, put: Enclosure, tokens: int) -> Array:
    """The most that a state may be: the sum of all that was put in, or put / (1 - a)."""
    many = tokens * put.size * (1 + float(roundings(tokens + 64, put.arithmetic)))
    gap = np.maximum(1 - kept.high, 2.0**-60)
    rounded = 1 + 64 * float(put.arithmetic.summed)
    return np.minimum(put.size / gap * rounded, many) + put.arithmetic.tiny


def _root(slow: Enclosure) -> Enclosure:
    """sqrt(-expm1(-2 x)), of at least the smallest normal number, within 16 u of its size."""
    off = max(2.0**-16, 16 * float(slow.arithmetic.summed))
    tiny = slow.arithmetic.tiny
    low = np.sqrt(-np.expm1(-2 * np.maximum(slow.low, 0.0))) * (1 - off)
    high = np.sqrt(np.maximum(-np.expm1(-2 * np.maximum(slow.high, 0.0)), tiny)) * (1 + off)
    return slow.spanning(np.minimum(low, high), high)


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
    every = head.keys(stream.by_place, np.arange(tokens), where)
    numbers(head, every, where, stream.by_place.hull(), stream.at_last())
    keys = every.rows(slice(first, tokens))
    queries = Queries.alone(head.asked(stream.at_last(), np.array([tokens - 1]), where))
    seen = head.values(stream.by_place.hull(), where)
    hop = Wanted.each(f"{where}, its window", np.array([place - first]))
    reading = Reading.won(part, head, queries, keys, hop, seen)
    last = reading.written(head.values(at_place, where), stream.at_last())
    anywhere = reading.anywhere(stream.by_place.hull())
    return Arrival(last, anywhere, above(reading.mass), head.assumes)


_ARRIVALS: dict[type[Mixer], Callable[[Stream, Live, int, Enclosure], Arrival]] = {
    ShortConvolutionMixer: short_convolution,
    MambaMixer: mamba,
    RGLRUMixer: rglru,
    WindowMixer: windowed,
}
"""Mixers beside those with a matrix state whose operations can be evaluated."""


def arrival(stream: Stream, part: Live, place: int, at_place: Enclosure) -> Arrival:
    """What a bounded layer writes at the last token, for each thing that may stand at the place."""
    kind = type(part.mixer)
    if kind in MATRIX_STATES:
        maps, written = matrix_state(stream, part)
        return arrived(stream, maps, place, written, at_place)
    if kind in _ARRIVALS:
        return _ARRIVALS[kind](stream, part, place, at_place)
    name = part.mixer.mechanism.name
    raise CheckFailed(f"{part.where}: no proof is known that {name} carries a value")


def carry(stream: Stream, part: Live, hop: Wanted, place: int, at_place: Enclosure) -> Fetched:
    """A bounded layer that brings what stands at the place to the last token; `at_place` has a row
    for each value of the hop.
    """
    found = arrival(stream, part, place, at_place)
    after = stream.after(part, found.last, found.anywhere, hop.then)
    said = entry(
        part.place,
        after.left(part, found.last),
        carries=hop.fetches,
        mechanism=part.mixer.mechanism.name,
        keys=len(stream.by_place.mid),
        off_target_mass=found.mass,
    )
    return Fetched(Layer(said, "carriers", assumes=found.assumes), after.stream)


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


@dataclass(frozen=True, kw_only=True)
class Step:
    """What the layer is to do after one token."""

    tokens: Tokens
    """Every id that may stand there."""
    hop: Wanted
    named: Tokens
    """For each token the id of value 0 of what is due; that of value v is v more."""


def steps(task: Thought, inner: SeqComp) -> Iterator[Step]:
    """After the prompt, and after each token that is written."""
    every_w = np.arange(inner.w_values)
    for level, hop in enumerate(hops(inner)):
        values = np.arange(hops(inner)[level - 1].values if level else 1)
        w = np.repeat(every_w, len(values))
        before = np.tile(values, len(every_w))
        place = np.asarray(hop.place(hop.part[w], before))
        yield Step(
            tokens=task.pair(w, before) if level else w,
            hop=Wanted(hop.fetches, hop.values, place, lambda at, _: at),
            named=task.pair(w, 0 * w) if level < inner.L else 0 * w,
        )


def derive_thought(task: Thought, model: Model, arithmetic: Arithmetic = FP32) -> Derived:
    inner = task.task
    if not isinstance(inner, SeqComp) or task.form != "pairs":
        raise CheckFailed(f"{task.spec}: the proof is about pairs of a composition")
    (part,) = live_of(model, 1)
    done: list[Layer] = []
    leads: list[Fraction] = []
    for number, step in enumerate(steps(task, inner)):
        before = Stream.of(model, inner.length + number, step.tokens, arithmetic)
        layer, stream = full_fetch(before, part, step.hop)
        done.append(layer)
        leads.append(_named(model, step, stream))
    return derived(arithmetic, done, min(leads), layers=1, written=inner.L)


def _named(model: Model, step: Step, stream: Stream) -> Fraction:
    """The smallest lead of the token that is due over all others. Raises CheckFailed where another
    one may be named.
    """
    read = (array(model.head.weight) != 0.0).any(0)
    last = stream.last.only(read)
    # tokens of which the head reads the same, and to which the same is due, count once
    table = np.concatenate([last.mid, last.rad, step.named[:, None]], 1)
    _, first = np.unique(table, axis=0, return_index=True)
    when = f"once it is fetched: {step.hop.fetches}"
    values = np.arange(len(stream.field.mid))
    return min(
        readout(model, stream.rows(slice(at, at + 1)), when, step.named[at] + values)
        for at in first.tolist()
    )


DERIVATIONS: tuple[Derivation[Any], ...] = (
    Derivation(name="seqcomp", task=SeqComp, derive=derive, ids=ids),
    Derivation(name="carried", task=SeqComp, derive=derive_carried, ids=ids),
    Derivation(
        name="thought", task=Thought, derive=derive_thought, ids=lambda task: ids(task.asked)
    ),
)
