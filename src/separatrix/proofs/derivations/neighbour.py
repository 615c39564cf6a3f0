"""Nearest neighbour: labels fetch the strings before them, and the query compares its bits with
those of all strings at once.

Neither the 2^d strings nor their pairs are gone through one by one: every number of a key or query
depends on one bit alone (parts/bitwise.py), so that a score is a sum over bits of one of four
numbers each.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from separatrix.core.errors import CheckFailed
from separatrix.models.model import Model
from separatrix.proofs.arithmetic import FP32, Arithmetic
from separatrix.proofs.derivations.parts import bitwise
from separatrix.proofs.derivations.parts.bitwise import Bits
from separatrix.proofs.derivations.parts.derivation import Derivation, Derived
from separatrix.proofs.derivations.parts.flagged import (
    after_layer,
    after_mlp,
    grouped,
    lead_of,
    stacked,
)
from separatrix.proofs.derivations.parts.live_parts import Head, Live, live_parts
from separatrix.proofs.derivations.parts.partners import Partners, fetch_partners, left_in
from separatrix.proofs.derivations.parts.softmax import averaged
from separatrix.proofs.derivations.parts.stream import RESIDUAL, Stream
from separatrix.proofs.entries import Left, fetch_entry
from separatrix.proofs.machine import Array, Enclosure, Scores, add, linear
from separatrix.proofs.softmax import off_target
from separatrix.tasks import Neighbour
from separatrix.tasks.base.task import Tokens

_FETCHES = "the string before each label"
_FINDS = "the label of the nearest string"


def derive(task: Neighbour, model: Model, arithmetic: Arithmetic = FP32) -> Derived:
    """The proof of both layers. Raises CheckFailed where the weights do not bear it out."""
    if model.config.bos:
        raise CheckFailed("this construction has no start token")
    live = live_parts(model)
    if len(live) != 2:
        raise CheckFailed(f"{len(live)} layers write; this construction is two")
    first, second = live
    stream = Stream.of(model, task.length, task.strings, arithmetic)
    # what the two strings without and with all bits do is what every string does, bit by bit
    ends = np.array([0, task.strings - 1])
    fetched = fetch_partners(stream, first, np.arange(task.length) // 2 * 2, ends)
    tokens = _Tokens.of(task, model, stream, first, fetched)
    keys = task.length
    head = second.full_head()
    found = _compared(tokens, head, second, task.d)
    mass = off_target(keys - 1, Fraction(found.least), arithmetic)
    values = linear(tokens.labels, head.v, what=f"{second.where}, v")
    others = linear(tokens.strings, head.v, what=f"{second.where}, v")
    seen = stacked(values, others).hull()
    # several may be nearest, with one label
    read = grouped(values, seen, keys, mass, second.where)
    written = linear(read, head.o, what=f"{second.where}, o")
    anywhere = averaged(seen, seen, keys, Fraction(0), second.where)
    after_layer(
        second,
        stacked(tokens.labels, tokens.strings),
        linear(anywhere, head.o, what=f"{second.where}, o"),
    )
    before = add(tokens.last, written, RESIDUAL)
    after = after_mlp(second, before)
    entries = [
        fetched.entry(first, _FETCHES, tokens.left),
        fetch_entry(
            second.place,
            fetches=_FINDS,
            queries=task.strings,
            keys=keys,
            score_gap=found.gap,
            score_error=found.error,
            mass=mass,
            left=left_in(second, written, before, after),
        ),
    ]
    used = {
        "layers": 2,
        "head_dim": max(fetched.key_numbers, found.key_numbers),
        "value_dim": max(fetched.value_numbers, int((head.v != 0.0).any(1).sum())),
    }
    margin = lead_of(model, after, np.arange(task.V))
    return Derived(
        entries,
        margin,
        used,
        lambda rng: closest(task, rng),
        arithmetic=arithmetic.said,
        formats=(arithmetic.name,),
    )


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
        cls, task: Neighbour, model: Model, stream: Stream, part: Live, fetched: Partners
    ) -> _Tokens:
        head = part.full_head()
        labels = stream.by_token.rows(slice(task.strings, task.vocabulary))
        strings = stream.by_token.rows(slice(0, task.strings)).hull()
        written = fetched.written
        before = add(labels.hull(), written, RESIDUAL)
        near = after_mlp(part, before)
        embedded = bitwise.of_columns(model.embed.weight[: task.strings].numpy(), task.d)
        brought = bitwise.through(head.o, bitwise.through(head.v, embedded))
        ends = np.array([0, task.strings - 1])
        return cls(
            labels=after_layer(part, labels, written.hull()),
            near=near,
            strings=after_layer(part, strings, written),
            query=after_layer(part, stream.last.rows(ends), written.hull()),
            last=after_layer(part, stream.last.hull(), written.hull()),
            near_bits=bitwise.after_mlp(part, brought),
            query_bits=bitwise.after_mlp(part, embedded),
            left=left_in(part, written, before, near),
        )


@dataclass(frozen=True)
class _Compared:
    """The smallest lead of a label with the nearest string, before and after rounding."""

    gap: float
    error: float
    least: float
    key_numbers: int


def _compared(tokens: _Tokens, head: Head, part: Live, bits: int) -> _Compared:
    """Raises CheckFailed where a bit that differs need not cost what any other costs, or where a
    string may outscore a label.
    """
    where = part.where
    keys = linear(tokens.near, head.k, what=f"{where}, k")
    others = linear(tokens.strings, head.k, what=f"{where}, k")
    queries = linear(tokens.query, head.q, what=f"{where}, q")
    scores = Scores(stacked(keys, others), queries.used, f"{where}, scores")
    for rows in (tokens.labels, tokens.strings):
        asking = linear(rows, head.q, what=f"{where}, q")
        Scores(stacked(keys, others), asking.used, f"{where}, scores").errors(asking)
    of_key = _only_bit(bitwise.through(head.k, tokens.near_bits), f"{where}, k")
    of_query = _only_bit(bitwise.through(head.q, tokens.query_bits), f"{where}, q")
    losses = _losses(queries.mid, keys.mid, of_query, of_key, bits, where)
    least, most = float(losses.min()), float(losses.max())
    # h + 1 bits or more against h, of which d - 1 at most differ
    nearer = least - (bits - 1) * (most - least)
    over = _over_others(queries.mid, keys.mid, others, of_query, bits)
    gap = min(nearer, over) * (1 - 2.0**-40)
    error = float(scores.errors(queries).max())
    computed = gap - 2 * error * (1 + 2.0**-40)
    if computed <= 0:
        raise CheckFailed(
            f"{where}: a string that is not the nearest may score no less than one that is"
        )
    return _Compared(gap, error, computed, scores.terms)


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
    lost = np.zeros((bits, 2))
    for number, (asked, bit) in enumerate(zip(of_query, of_key, strict=True)):
        if bit < 0 or not queries[:, number].any():
            continue
        if asked not in (-1, bit):
            raise CheckFailed(f"{where}: two different bits are compared")
        step = keys[1, number] - keys[0, number]
        lost[bit] += (-queries[0, number] * step, queries[1, number] * step)
    return lost


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


def closest(task: Neighbour, rng: np.random.Generator) -> Tokens:
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


DERIVATIONS = (Derivation(name="neighbour", task=Neighbour, derive=derive, ids=ids, asked=asked),)
