"""Proves a chain of retrieval heads from its weights, for every input of the task.

Keys are functions of the position, values of the token, queries of the last token and of what was
fetched before: the zeros of the matrices show it. So the states of a hop can be enumerated, its
scores computed exactly, and the key that wins compared with the one the task asks for.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from separatrix.checks.blocks import prove_blocks
from separatrix.checks.carry import prove_arrival
from separatrix.checks.exact import (
    Array,
    columns,
    exact_product,
    exact_sum,
    largest,
    largest_row_sum,
    most_terms,
)
from separatrix.checks.stack import Head, Live, Writers, array, live_parts
from separatrix.errors import CheckFailed
from separatrix.model import Model
from separatrix.proofs.entries import block_entry, carry_entry, fetch_entry
from separatrix.proofs.float32 import SHUT, Carry, Fetch, Readout, Threshold
from separatrix.tasks import Eva, SeqComp, Task

_CHUNK = 1 << 22


@dataclass(frozen=True)
class Wanted:
    """What the task asks of one hop: the place to read, given a part of the last token and what
    the hop before has fetched.
    """

    fetches: str
    values: int
    """Ids 0..values-1 may stand at the places read."""
    part: NDArray[np.int64]
    """For each last token, the part of it that decides."""
    place: Callable[[Any, Any], Any]
    """(part, value fetched before) -> position."""


def wanted(task: Task) -> list[Wanted]:
    """The hops of a task whose answer is found by following pointers. Raises CheckFailed for
    another task.
    """
    if isinstance(task, Eva):
        return [Wanted("f(x)", task.V, np.arange(task.n), lambda x, before: x)]
    if not isinstance(task, SeqComp):
        raise CheckFailed(f"{task.spec}: this proof is about tasks that follow pointers")
    tokens = np.arange(task.w_values)
    parts = [0 * tokens, 0 * tokens, *task.split_w(tokens)]
    hops = [Wanted("z_0", task.m, parts[0], lambda a, before: task.position_z0 + 0 * (a + before))]
    for level in range(1, task.L + 1):
        hops.append(
            Wanted(
                f"i_{level}",
                task.entries(level),
                parts[level],
                lambda a, i, level=level: task.position(level, a, i),
            )
        )
    return hops


@dataclass(frozen=True)
class Fetched:
    """What a hop leaves behind: its proof, the field its threshold wrote for each value (values,
    width), its error, key and value numbers used.
    """

    entry: dict[str, Any]
    field: Array
    error: Fraction
    key_numbers: int
    value_numbers: int


def prove_chain(
    task: Task, model: Model, *, carried: bool = False, sparse: bool = False
) -> tuple[list[dict[str, Any]], Fraction, dict[str, int]]:
    """The proof layer by layer, the final margin and the sizes used.

    `carried`: a recurrent layer makes the first hop; `sparse`: the softmax heads are block-sparse.

    Raises CheckFailed, naming the part, where the weights do not bear it out.
    """
    if model.config.bos:
        raise CheckFailed("this construction has no start token")
    hops = wanted(task)
    live = live_parts(model)
    if len(live) != len(hops):
        raise CheckFailed(f"{task.spec} takes {len(hops)} fetches, but {len(live)} layers write")
    stack = Stack(
        task, model, Writers(array(model.embed.weight), array(model.position.weight), live)
    )
    done: list[Fetched] = []
    for number, (part, hop) in enumerate(zip(live, hops, strict=True)):
        before = done[-1] if done else None
        carry = carried and before is None
        done.append(
            prove_carry(stack, part, hop)
            if carry
            else prove_fetch(stack, part, hop, number, before, sparse=sparse)
        )
    margin = prove_readout(stack, done[-1].field, f"mlp {len(done) - 1}").margin(done[-1].error)
    full = done[carried:]
    sizes = {
        "sparse" if sparse else "layers": len(full),
        "head_dim": max(f.key_numbers for f in full),
        "value_dim": max(f.value_numbers for f in full),
    }
    return [f.entry for f in done], margin, ({"carriers": 1} if carried else {}) | sizes


def prove_fetch(
    stack: Stack, part: Live, hop: Wanted, number: int, last: Fetched | None, *, sparse: bool
) -> Fetched:
    """One head of full or sparse attention at the last token, which asks with what the hop before
    left behind.

    A sparse head reads only some keys, the right one among them if `prove_blocks` says so: the
    bounds are those of reading all.
    """
    index, head = part.sparse_head() if sparse else part.full_head()
    where = f"layer {part.layer}"
    source = f"mlp {number - 1}"
    stack.writers.allow(head.k.reads, f"{where}, k", "positions")
    stack.writers.allow(head.v.reads, f"{where}, v", "tokens")
    stack.writers.allow(head.q.reads, f"{where}, q", "tokens", "positions", source)
    keys = head.k.of_rows(stack.position)
    states = States.of(
        head,
        hop,
        stack.embed[: len(hop.part)],
        stack.position[-1:],
        stack.nothing if last is None else last.field,
    )
    outputs = head.o.of_rows(head.v.of_rows(stack.embed))  # other positions may hold any token
    threshold, field = prove_threshold(stack, part, outputs[: hop.values], f"attention {number}")
    linked = (
        head.q.matrix[:, stack.writers.written[source]] if last is not None else np.zeros((0, 0))
    )
    fetch = Fetch(
        keys=len(keys),
        gap=states.gap(hop, keys),
        terms=int((columns(keys) & (head.q.matrix != 0.0).any(1)).sum()),
        query=states.largest_query(),
        query_gain=largest(linked),
        key_sum=largest_row_sum(keys),
        value=largest(outputs),
        threshold=threshold,
        shut=SHUT if sparse else Fraction(0),
    )
    bounds = fetch.bounds(Fraction(0) if last is None else last.error)
    entry = fetch_entry(
        part.place, fetches=hop.fetches, queries=states.count, fetch=fetch, bounds=bounds
    )
    if sparse:
        queries, places = states.every(hop)
        lead = prove_blocks(part, index, queries, keys, places, key_sum=fetch.key_sum)
        if lead is not None and lead <= 2 * bounds.score_error:
            raise CheckFailed(f"{where}: rounding of scores may change the choice of blocks")
        entry = block_entry(entry, block_gap=lead, fetch=fetch)
    return Fetched(entry, field, bounds.clean_error, fetch.terms, int(head.v.matrix.any(1).sum()))


def prove_carry(stack: Stack, part: Live, hop: Wanted) -> Fetched:
    """A recurrent layer that brings the value at the one place asked for to the last token."""
    place = np.unique(np.asarray(hop.place(hop.part, 0)))
    if len(place) != 1:
        raise CheckFailed(
            f"{hop.fetches}: a state of bounded size carries one place, but the task asks for"
            f" {len(place)}"
        )
    head, arrival = prove_arrival(stack.writers, part, stack.position, int(place[0]))
    outputs = head.o.of_rows(head.v.of_rows(stack.embed)) * arrival.scale  # a power of two
    threshold, field = prove_threshold(stack, part, outputs[: hop.values], "attention 0")
    carry = Carry(
        keys=len(stack.position),
        others=arrival.others,
        shrinks=arrival.shrinks,
        value=largest(outputs),
        threshold=threshold,
    )
    bounds = carry.bounds()
    entry = carry_entry(
        part.place,
        fetches=hop.fetches,
        mechanism=part.mixer.mechanism.name,
        carry=carry,
        bounds=bounds,
    )
    return Fetched(entry, field, bounds.clean_error, 0, 0)


class Stack:
    """The embeddings a proof reads, and who writes which coordinate."""

    def __init__(self, task: Task, model: Model, writers: Writers) -> None:
        self.model = model
        self.writers = writers
        self.embed = array(model.embed.weight)
        self.position = array(model.position.weight)[: task.length]
        self.nothing = np.zeros((1, model.config.width))


@dataclass(frozen=True)
class States:
    """Every query one hop can have: `of_part` (parts, head_dim) of the last token plus
    `of_field` (values, head_dim) of what was fetched before.
    """

    parts: NDArray[np.int64]
    of_part: Array
    of_field: Array

    @classmethod
    def of(cls, head: Head, hop: Wanted, embed: Array, position: Array, field: Array) -> States:
        """Last tokens with one query are one state; the task must ask the same of all of them
        (CheckFailed otherwise).
        """
        fixed = exact_sum(embed, np.broadcast_to(position, embed.shape))
        rows, first, inverse = np.unique(
            head.q.of_rows(fixed), axis=0, return_index=True, return_inverse=True
        )
        if (hop.part[first][inverse.reshape(-1)] != hop.part).any():
            raise CheckFailed(
                f"{hop.fetches}: two last tokens that ask for different places have one query"
            )
        return cls(hop.part[first], rows, head.q.of_rows(field))

    @property
    def count(self) -> int:
        return len(self.of_part) * len(self.of_field)

    def largest_query(self) -> Fraction:
        return max(
            largest(self.of_part), largest(self.of_field)
        )  # every row of q picks one coordinate, so the two never add up

    def every(self, hop: Wanted) -> tuple[Array, NDArray[np.int64]]:
        """All queries (states, head_dim) and the place each must read."""
        part, value = np.divmod(np.arange(self.count), len(self.of_field))
        return exact_sum(self.of_part[part], self.of_field[value]), np.asarray(
            hop.place(self.parts[part], value)
        )

    def gap(self, hop: Wanted, keys: Array) -> Fraction:
        """The smallest lead, over all states, of the key the task asks for. Raises CheckFailed
        when another key wins or ties.
        """
        smallest = np.inf
        rows = max(1, _CHUNK // len(keys))
        for start in range(0, self.count, rows):
            part, value = np.divmod(
                np.arange(start, min(start + rows, self.count)), len(self.of_field)
            )
            scores = exact_product(exact_sum(self.of_part[part], self.of_field[value]), keys.T)
            row = np.arange(len(part))
            place = np.asarray(hop.place(self.parts[part], value))
            right = scores[row, place]
            scores[row, place] = -np.inf
            lead = right - scores.max(1)
            if lead.min() <= 0:
                worst = int(lead.argmin())
                winner = int(scores[worst].argmax())
                asked = int(place[worst])
                raise CheckFailed(
                    f"{hop.fetches}: position {winner} scores no less than position {asked}, the"
                    " one the task asks for"
                )
            smallest = min(smallest, float(lead.min()))
        return Fraction(smallest)


def prove_threshold(
    stack: Stack, part: Live, fetched: Array, source: str
) -> tuple[Threshold, Array]:
    """The MLP's sizes and its exact outputs (values, width). Raises CheckFailed unless it reads
    `source` only and is constant near every value.
    """
    if not part.mlp:
        raise CheckFailed(f"layer {part.layer}: no MLP cleans what was fetched")
    stack.writers.allow(columns(part.mlp["up.weight"]), f"layer {part.layer}, MLP", source)
    up, up_bias, down, down_bias = (
        part.mlp[name] for name in ("up.weight", "up.bias", "down.weight", "down.bias")
    )
    if most_terms(up) > 1:
        raise CheckFailed(
            f"layer {part.layer}: a hidden unit reads several coordinates; a construction's read"
            " one each"
        )
    hidden = exact_sum(
        exact_product(fetched, up.T), np.broadcast_to(up_bias, (len(fetched), len(up_bias)))
    )
    radius = None
    for coordinate in np.flatnonzero(columns(up)):
        units = np.flatnonzero(up[:, coordinate])
        for state in np.unique(hidden[:, units], axis=0):
            slope = exact_product((up[units, coordinate] * (state > 0))[None], down[:, units].T)
            if slope.any():
                raise CheckFailed(
                    f"layer {part.layer}: the MLP is not constant near a fetched value"
                )
            near = min(
                Fraction(abs(float(h))) / Fraction(abs(float(w)))
                for h, w in zip(state, up[units, coordinate], strict=True)
            )
            radius = near if radius is None else min(radius, near)
    if not radius:
        raise CheckFailed(f"layer {part.layer}: the MLP does not clean what was fetched")
    clean = exact_sum(
        exact_product(np.maximum(hidden, 0.0), down.T),
        np.broadcast_to(down_bias, (len(fetched), len(down_bias))),
    )
    sizes = Threshold(
        radius=radius,
        up_terms=most_terms(up),
        up_sum=largest_row_sum(up),
        up_bias=largest(up_bias),
        down_terms=most_terms(down),
        down_sum=largest_row_sum(down),
        down_bias=largest(down_bias),
    )
    return sizes, clean


def prove_readout(stack: Stack, field: Array, source: str) -> Readout:
    """The head's sizes and exact lead. Raises CheckFailed when some answer's logit is not the
    largest for what was fetched.
    """
    weight = array(stack.model.head.weight)
    bias = array(stack.model.head.bias)
    stack.writers.allow(columns(weight), "the head", source)
    smallest = np.inf
    rows = max(1, _CHUNK // len(weight))
    for start in range(0, len(field), rows):
        some = field[start : start + rows]
        logits = exact_sum(
            exact_product(some, weight.T), np.broadcast_to(bias, (len(some), len(bias)))
        )
        row = np.arange(len(some))
        answer = np.arange(start, start + len(some))
        right = logits[row, answer]
        logits[row, answer] = -np.inf
        lead = right - logits.max(1)
        if lead.min() <= 0:
            raise CheckFailed(
                f"answer {int(answer[lead.argmin()])} has not the largest logit when it was fetched"
            )
        smallest = min(smallest, float(lead.min()))
    return Readout(
        gap=Fraction(smallest),
        terms=most_terms(weight),
        row_sum=largest_row_sum(weight),
        bias=largest(bias),
        value=largest(field[:, columns(weight)]),
    )
