"""Nearest neighbour: labels fetch the strings before them, and the query compares its bits with
those of all strings at once.

Neither the 2^d strings nor their pairs are gone through one by one: what a token may hold is known
by each bit of its string (parts/hops.py), and a score is a sum over bits of one of four numbers
each (parts/compared.py). Of what two bits tell together nothing is claimed.
"""

from __future__ import annotations

import numpy as np

from separatrix.models.model import Model
from separatrix.proofs.arithmetic import FP32, Arithmetic
from separatrix.proofs.derivations.parts.compared import Compared
from separatrix.proofs.derivations.parts.derivation import Derivation, Derived, derived
from separatrix.proofs.derivations.parts.hops import Numbered, moved
from separatrix.proofs.derivations.parts.live_parts import Head, live_of
from separatrix.proofs.derivations.parts.queries import Lead
from separatrix.proofs.derivations.parts.reading import Reading, lead_of, numbers
from separatrix.proofs.derivations.parts.stream import Stream
from separatrix.proofs.machine import RESIDUAL, add, stacked
from separatrix.tasks import Neighbour
from separatrix.tasks.base.task import Tokens

_FETCHES = "the string before each label"
_FINDS = "the label of the nearest string"


def derive(task: Neighbour, model: Model, arithmetic: Arithmetic = FP32) -> Derived:
    """The proof of both layers. Raises CheckFailed where the weights do not bear it out."""
    first, second = live_of(model, 2)
    stream = Stream.of(model, task.length, task.strings, arithmetic)
    at, places, every = stream.by_place, np.arange(task.length), np.arange(task.strings)
    head = first.softmax_head()
    fetched = Reading.each(first, head, at, at, places // 2 * 2, _FETCHES, places=places)
    of_string, query = (
        Numbered.of(rows, every, task.d) for rows in (stream.by_token.rows(every), stream.last)
    )
    written = of_string.mapped(
        lambda rows: fetched.written(head.values(rows, first.where), at.hull())
    )
    # a label whose string has each bit, and strings, which fetch themselves
    labels = stream.by_token.rows(slice(task.strings, task.vocabulary))
    mixed, near = moved(first, written, labels.hull())
    strings, query = (rows.mapped(first.after, written) for rows in (of_string, query))
    labels = first.after(labels, written.digits.hull())
    head, where = second.full_head(), second.where
    values = head.values(labels, where)
    seen = stacked(values, head.values(strings.digits, where)).hull()
    lead, terms = _lead(near, strings, query, head, where)
    keys = stacked(*(head.keys(view.digits, None, where) for view in (near, strings)))
    numbers(head, keys, where, labels, strings.digits)
    reading = Reading.of(
        second, head, lead, seen, queries=task.strings, keys=task.length, key_numbers=terms
    )
    # several may be nearest, with one label
    last = query.digits.hull()
    found = head.written(reading.grouped(values), last, where)
    any_token = stacked(labels, strings.digits)
    second.after(any_token, reading.anywhere(any_token.hull()))
    before = add(last, found, RESIDUAL)
    after = second.after_mlp(before)
    # of two strings, without and with all bits, every number is known
    ends = np.array([0, task.strings - 1])
    left = first.left(*([view.at(ends)] for view in (written, mixed, near)))
    layers = [
        fetched.layer(_FETCHES, left),
        reading.layer(_FINDS, second.left([found], [before], [after])),
    ]
    return derived(arithmetic, layers, lead_of(model, after, np.arange(task.V)))


def _lead(
    near: Numbered, strings: Numbered, query: Numbered, head: Head, where: str
) -> tuple[Lead, int]:
    """The smallest lead of a label with the nearest string, and the numbers of a key in use. Raises
    CheckFailed where a bit that differs need not cost what any other costs, or where a string may
    outscore a label.
    """
    keys = [
        head.keys(stacked(*rows), None, where) for rows in zip(near.each, strings.each, strict=True)
    ]
    compared = Compared.of([head.asked(rows, None, where) for rows in query.each], keys, where)
    # (d, 2, 4): a bit of the query against that of a label's string, and of a string
    table = np.array(
        [q.mid @ k.mid.T for q, k in zip(compared.queries, compared.keys, strict=True)]
    )
    losses = table[:, [0, 1], [0, 1]] - table[:, [0, 1], [1, 0]]
    least, most = float(losses.min()), float(losses.max())
    # h + 1 bits or more against h, of which d - 1 at most differ
    nearer = least - (near.bits - 1) * (most - least)
    over = float((table[..., :2].min(2) - table[..., 2:].max(2)).min(1).sum())
    lead = compared.least([min(nearer, over) * (1 - 2.0**-40)], "the nearest string")
    return lead, compared.terms


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


DERIVATIONS = (Derivation(name="neighbour", task=Neighbour, derive=derive, hard=hard),)
