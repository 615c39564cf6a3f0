"""Nearest neighbour: labels fetch the strings before them, and the query compares its bits with
those of all strings at once.

Neither the 2^d strings nor their pairs are gone through one by one: every number of a key or query
depends on one bit alone, so that two strings, without and with all bits, tell what every string
does, and a score is a sum over bits of one of four numbers each. Maps and MLPs hand dependence on:
of what reads coordinates of two bits nothing is claimed.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from separatrix.core.errors import CheckFailed
from separatrix.models.model import Model
from separatrix.proofs.arithmetic import FP32, Arithmetic
from separatrix.proofs.derivations.parts.compared import least_of
from separatrix.proofs.derivations.parts.derivation import Derivation, Derived, derived
from separatrix.proofs.derivations.parts.live_parts import Head, Live, live_of
from separatrix.proofs.derivations.parts.queries import Lead
from separatrix.proofs.derivations.parts.reading import Reading, lead_of, numbers
from separatrix.proofs.derivations.parts.stream import Stream
from separatrix.proofs.entries import Left
from separatrix.proofs.machine import RESIDUAL, Array, Enclosure, Scores, add, stacked
from separatrix.tasks import Neighbour
from separatrix.tasks.base.task import Tokens

_FETCHES = "the string before each label"
_FINDS = "the label of the nearest string"


Bits = NDArray[np.bool_]
"""(coordinates, d): which bits each coordinate may depend on."""


def derive(task: Neighbour, model: Model, arithmetic: Arithmetic = FP32) -> Derived:
    """The proof of both layers. Raises CheckFailed where the weights do not bear it out."""
    first, second = live_of(model, 2)
    stream = Stream.of(model, task.length, task.strings, arithmetic)
    # what the two strings without and with all bits do is what every string does, bit by bit
    ends = np.array([0, task.strings - 1])
    at, places = stream.by_place, np.arange(task.length)
    head = first.softmax_head()
    fetched = Reading.each(first, head, at, at, places // 2 * 2, _FETCHES, places=places)
    written = fetched.written(head.values(stream.by_token.rows(ends), first.where), at.hull())
    tokens = _Tokens.of(task, model, stream, first, written)
    head = second.full_head()
    where = second.where
    values = head.values(tokens.labels, where)
    seen = stacked(values, head.values(tokens.strings, where)).hull()
    lead, terms = _lead(tokens, head, second, task.d)
    reading = Reading.of(
        second, head, lead, seen, queries=task.strings, keys=task.length, key_numbers=terms
    )
    # several may be nearest, with one label
    written = head.written(reading.grouped(values), tokens.last, where)
    every = stacked(tokens.labels, tokens.strings)
    second.after(every, reading.anywhere(every.hull()))
    before = add(tokens.last, written, RESIDUAL)
    after = second.after_mlp(before)
    layers = [
        fetched.layer(_FETCHES, tokens.left),
        reading.layer(_FINDS, second.left([written], [before], [after])),
    ]
    return derived(arithmetic, layers, lead_of(model, after, np.arange(task.V)))


@dataclass(frozen=True, kw_only=True)
class _Tokens:
    """What tokens hold after the first layer."""

    labels: Enclosure
    """A row per label, whatever its string."""
    near: Enclosure
    """A row for a label, whichever it is, with each of the two strings before it."""
    strings: Enclosure
    """Rows that enclose every string at a place of strings, or the query, bit by bit."""
    query: Enclosure
    """A row for each of the two strings as the query: others are like them bit by bit, in what
    depends on a bit alone.
    """
    last: Enclosure
    """One row: any query."""
    near_bits: Bits
    query_bits: Bits
    left: Left

    @classmethod
    def of(
        cls, task: Neighbour, model: Model, stream: Stream, part: Live, written: Enclosure
    ) -> _Tokens:
        """`written`: what a label fetches, a row for each of the two strings."""
        head = part.full_head()
        labels = stream.by_token.rows(slice(task.strings, task.vocabulary))
        strings = stream.by_token.rows(slice(0, task.strings)).hull()
        before = add(labels.hull(), written, RESIDUAL)
        near = part.after_mlp(before)
        embedded = _bits_of(model.embed.weight[: task.strings].numpy(), task.d)
        brought = _through(head.o, _through(head.v, embedded))
        ends = np.array([0, task.strings - 1])
        return cls(
            labels=part.after(labels, written.hull()),
            near=near,
            strings=part.after(strings, written),
            query=part.after(stream.last.rows(ends), written.hull()),
            last=part.after(stream.last.hull(), written.hull()),
            near_bits=_bits_after_mlp(part, brought),
            query_bits=_bits_after_mlp(part, embedded),
            left=part.left([written], [before], [near]),
        )


def _lead(tokens: _Tokens, head: Head, part: Live, bits: int) -> tuple[Lead, int]:
    """The smallest lead of a label with the nearest string, and the numbers of a key in use. Raises
    CheckFailed where a bit that differs need not cost what any other costs, or where a string may
    outscore a label.
    """
    where = part.where
    keys = head.keys(tokens.near, None, where)
    others = head.keys(tokens.strings, None, where)
    queries = head.asked(tokens.query, None, where)
    every = stacked(keys, others)
    scores = Scores(every, queries.used, f"{where}, scores")
    numbers(head, every, where, tokens.labels, tokens.strings)
    of_key = _only_bit(_through(head.k, tokens.near_bits), f"{where}, k")
    of_query = _only_bit(_through(head.q, tokens.query_bits), f"{where}, q")
    losses = _losses(queries.mid, keys.mid, of_query, of_key, bits, where)
    least, most = float(losses.min()), float(losses.max())
    # h + 1 bits or more against h, of which d - 1 at most differ
    nearer = least - (bits - 1) * (most - least)
    over = _over_others(queries.mid, keys.mid, others, of_query, bits)
    gaps = [min(nearer, over) * (1 - 2.0**-40)]
    error = float(scores.errors(queries).max())
    return least_of(gaps, error, "the nearest string", where), scores.terms


def _bits_of(table: NDArray[np.float32], bits: int) -> Bits:
    """Of each column of a table with a row for every id below 2^bits."""
    found = np.zeros((table.shape[1], bits), np.bool_)
    ids = np.arange(1 << bits)
    for number, column in enumerate(table.T):
        one = [bit for bit in range(bits) if column[1 << bit] != column[0]]
        right = np.full(len(column), column[0])
        if len(one) == 1:
            right = np.where(ids >> one[0] & 1, column[1 << one[0]], column[0])
        # of a column that is no function of one bit nothing is known
        found[number, one if (column == right).all() else slice(None)] = True
    return found


def _through(weight: Array, bits: Bits) -> Bits:
    """Of each output of a map, from its inputs."""
    return ((weight != 0.0).astype(np.int64) @ bits.astype(np.int64)) > 0


def _bits_after_mlp(part: Live, bits: Bits) -> Bits:
    """Of the residual stream after the MLP of a layer."""
    if not part.mlp:
        return bits
    return bits | _through(part.mlp["down.weight"], _through(part.mlp["up.weight"], bits))


def _only_bit(bits: Bits, what: str) -> NDArray[np.int64]:
    """The bit that each number depends on, -1 for none."""
    if (bits.sum(1) > 1).any():
        raise CheckFailed(f"{what}: a number depends on more than one bit of a string")
    return np.where(bits.any(1), bits.argmax(1), -1)


def _losses(
    queries: Array,
    keys: Array,
    of_query: NDArray[np.int64],
    of_key: NDArray[np.int64],
    bits: int,
    where: str,
) -> Array:
    """(d, 2): by how much a key's score falls where it differs from the query in a bit, which is 0
    or 1 in the query.
    """
    compared = queries.any(0) & (of_key >= 0)
    if (compared & (of_query >= 0) & (of_query != of_key)).any():
        raise CheckFailed(f"{where}: two different bits are compared")
    step = (keys[1] - keys[0]) * compared
    of_bit = (of_key == np.arange(bits)[:, None]).astype(np.float64)
    return of_bit @ np.stack([-queries[0] * step, queries[1] * step], 1)


def _over_others(
    queries: Array,
    keys: Array,
    others: Enclosure,
    of_query: NDArray[np.int64],
    bits: int,
) -> float:
    """How much more than any string every label scores, at least."""
    ends = np.stack([others.low.min(0), others.high.max(0)])
    # (2, dims): the worst of each number, for a query's bit that is 0 and that is 1
    most = np.maximum(queries * ends[0], queries * ends[1])
    least = np.minimum(queries * keys[0], queries * keys[1])
    lead = least - most
    alike = lead[:, of_query < 0].min(0).sum()
    return float(alike + sum(lead[:, of_query == bit].sum(1).min() for bit in range(bits)))


def asked(task: Neighbour, tokens: Tokens) -> NDArray[np.bool_]:
    """Prompts of strings and labels in turn whose nearest strings have one label."""
    strings, labels, query = tokens[:, 0:-1:2], tokens[:, 1::2], tokens[:, -1:]
    distance = np.bitwise_count(strings ^ query)
    nearest = distance == distance.min(1, keepdims=True)
    least = np.where(nearest, labels, task.vocabulary).min(1)
    return (labels >= task.strings).all(1) & (least == np.where(nearest, labels, -1).max(1))


def hard(task: Neighbour, rng: np.random.Generator) -> Tokens:
    """One string nearest by a single bit, or two that tie and share a label, with all others of
    another label one bit further away: near the query, as far as can be, and in between.
    """
    rows = []
    for far in sorted({0, 1, task.d // 2, task.d - 1}):
        for ties in (1, 2):
            query = int(rng.integers(task.strings))
            flips = [_flip(task.d, far + (i >= ties), rng) for i in range(task.n)]
            one, other = rng.choice(task.V, size=2, replace=False)
            prompt = np.empty((task.n, 2), np.int64)
            prompt[:, 0] = query ^ np.array(flips)
            prompt[:, 1] = task.strings + np.where(np.arange(task.n) < ties, one, other)
            rows.append(np.append(prompt[rng.permutation(task.n)].ravel(), query))
    return np.array(rows, np.int64)


def _flip(bits: int, number: int, rng: np.random.Generator) -> int:
    """So many bits, anywhere."""
    return sum(1 << int(bit) for bit in rng.permutation(bits)[:number])


def ids(task: Neighbour) -> list[int]:
    """Strings, and labels behind all strings (`asked` says which prompts count)."""
    return [task.strings, task.vocabulary] * task.n + [task.strings]


DERIVATIONS = (
    Derivation(name="neighbour", task=Neighbour, derive=derive, ids=ids, asked=asked, hard=hard),
)
