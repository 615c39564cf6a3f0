"""Proves a chain of retrieval heads from its weights, for every input of the task.

Keys are functions of the position, values of the token, queries of the last token and of what was
fetched before: the zeros of the matrices show it. So the queries of a hop can be enumerated, its
scores computed exactly, and the key that wins compared with the one the task asks for.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any, Literal

import numpy as np

from separatrix.checks.arrival import prove_arrival
from separatrix.checks.block_choice import prove_block_choice
from separatrix.checks.derivation import Derived
from separatrix.checks.exact import Array, columns, largest, largest_row_sum
from separatrix.checks.live_parts import Head, Live, Stack, live_parts
from separatrix.checks.position_wise import prove_readout, prove_threshold
from separatrix.checks.queries import Queries, Wanted
from separatrix.errors import CheckFailed
from separatrix.model import Model
from separatrix.proofs.entries import block_entry, carry_entry, fetch_entry
from separatrix.proofs.float32 import SHUT, Carry, Fetch, FetchBounds
from separatrix.tasks import Task

__all__ = [
    "LARGEST_WEIGHT",
    "Fetched",
    "Fetcher",
    "Wanted",
    "carry",
    "derive_chain",
    "full_fetch",
    "sparse_fetch",
]

LARGEST_WEIGHT = 2.0**10
"""Scores are products of two products of two weights, times a few dozen dimensions: far below
float32's 2^127.
"""


@dataclass(frozen=True, kw_only=True)
class Fetched:
    """What a hop leaves behind: its proof, the field its threshold wrote for each value (values,
    width), its error, key and value numbers used.
    """

    kind: Literal["layers", "sparse", "carriers"]
    """Under what name the record counts the layer."""
    entry: dict[str, Any]
    field: Array
    error: Fraction
    key_numbers: int
    value_numbers: int


Fetcher = Callable[[Stack, Live, Wanted, list[Fetched]], Fetched]
"""Proves one hop, given those before it."""


def derive_chain(
    task: Task, model: Model, hops: Sequence[Wanted], by: Sequence[Fetcher]
) -> Derived:
    """The proof of a chain whose i-th hop is proved by the i-th fetcher.

    Raises CheckFailed, naming the part, where the weights do not bear it out.
    """
    if model.config.bos:
        raise CheckFailed("this construction has no start token")
    live = live_parts(model)
    if len(live) != len(hops):
        raise CheckFailed(f"{task.spec} takes {len(hops)} fetches, but {len(live)} layers write")
    stack = Stack(task, model, live)
    done: list[Fetched] = []
    for part, hop, fetch in zip(live, hops, by, strict=True):
        done.append(fetch(stack, part, hop, done))
    last = done[-1]
    margin = prove_readout(stack, last.field, f"mlp {len(done) - 1}").margin(last.error)
    numbers = {
        "head_dim": max(hop.key_numbers for hop in done),
        "value_dim": max(hop.value_numbers for hop in done),
    }
    return Derived([hop.entry for hop in done], margin, Counter(h.kind for h in done) | numbers)


def full_fetch(stack: Stack, part: Live, hop: Wanted, before: list[Fetched]) -> Fetched:
    """One head of full attention at the last token, which asks with what the hop before left
    behind.
    """
    _, head = part.full_head()
    return _softmax_fetch(stack, part, hop, before, head, shut=Fraction(0)).fetched


def sparse_fetch(stack: Stack, part: Live, hop: Wanted, before: list[Fetched]) -> Fetched:
    """The same with a block-sparse head.

    It reads only some keys, the right one among them if `prove_block_choice` says so: the bounds
    are those of reading all.
    """
    index, head = part.sparse_head()
    softmax = _softmax_fetch(stack, part, hop, before, head, shut=SHUT)
    queries, places = softmax.queries.every(hop)
    lead = prove_block_choice(
        part, index, queries, softmax.keys, places, key_sum=softmax.fetch.key_sum
    )
    # both scores may be off by the error, in opposite directions
    if lead is not None and lead <= 2 * softmax.bounds.score_error:
        raise CheckFailed(
            f"layer {part.layer + 1}: rounding of scores may change the choice of blocks"
        )
    entry = block_entry(softmax.fetched.entry, block_gap=lead, fetch=softmax.fetch)
    return replace(softmax.fetched, kind="sparse", entry=entry)


@dataclass(frozen=True)
class _SoftmaxFetch:
    """A hop by a softmax over all keys, and what its proof rests on."""

    fetched: Fetched
    fetch: Fetch
    bounds: FetchBounds
    queries: Queries
    keys: Array


def _softmax_fetch(
    stack: Stack, part: Live, hop: Wanted, before: list[Fetched], head: Head, *, shut: Fraction
) -> _SoftmaxFetch:
    number = len(before)
    where = f"layer {part.layer + 1}"
    source = f"mlp {number - 1}"
    stack.writers.allow(head.k.reads, f"{where}, k", "positions")
    stack.writers.allow(head.v.reads, f"{where}, v", "tokens")
    stack.writers.allow(head.q.reads, f"{where}, q", "tokens", "positions", source)
    keys = head.k.of_rows(stack.position)
    queries = Queries.of(
        head,
        hop,
        stack.embed[: len(hop.part)],
        stack.position[-1:],
        before[-1].field if before else stack.nothing,
    )
    # every token, also those no instance has at the place read: other positions may hold any
    outputs = head.o.of_rows(head.v.of_rows(stack.embed))
    threshold, field = prove_threshold(stack, part, outputs[: hop.values], f"attention {number}")
    # how much of an error of the hop before a query takes over
    linked = head.q.matrix[:, stack.writers.written[source]] if before else np.zeros((0, 0))
    fetch = Fetch(
        keys=len(keys),
        gap=queries.gap(hop, keys),
        # a product counts unless one of its factors is zero for all keys or all queries
        terms=int((columns(keys) & (head.q.matrix != 0.0).any(1)).sum()),
        query=queries.largest_number(),
        query_gain=largest(linked),
        key_sum=largest_row_sum(keys),
        value=largest(outputs),
        threshold=threshold,
        shut=shut,
    )
    bounds = fetch.bounds(before[-1].error if before else Fraction(0))
    entry = fetch_entry(
        part.place, fetches=hop.fetches, queries=queries.count, fetch=fetch, bounds=bounds
    )
    fetched = Fetched(
        kind="layers",
        entry=entry,
        field=field,
        error=bounds.clean_error,
        key_numbers=fetch.terms,
        value_numbers=int(head.v.matrix.any(1).sum()),
    )
    return _SoftmaxFetch(fetched, fetch, bounds, queries, keys)


def carry(stack: Stack, part: Live, hop: Wanted, before: list[Fetched]) -> Fetched:
    """A recurrent layer that brings the value at the one place asked for to the last token. It
    stands first in its chain.
    """
    place = np.unique(np.asarray(hop.place(hop.part, 0)))
    if len(place) != 1:
        raise CheckFailed(
            f"{hop.fetches}: a state of bounded size carries one place, but the task asks for"
            f" {len(place)}"
        )
    head, arrival = prove_arrival(stack.writers, part, stack.position, int(place[0]))
    # the scale is a power of two: no rounding
    outputs = head.o.of_rows(head.v.of_rows(stack.embed)) * arrival.scale
    source = f"attention {len(before)}"
    threshold, field = prove_threshold(stack, part, outputs[: hop.values], source)
    sizes = Carry(
        keys=len(stack.position),
        others=arrival.others,
        shrinks=arrival.shrinks,
        value=largest(outputs),
        threshold=threshold,
    )
    bounds = sizes.bounds()
    name = part.mixer.mechanism.name
    entry = carry_entry(part.place, fetches=hop.fetches, mechanism=name, carry=sizes, bounds=bounds)
    return Fetched(
        kind="carriers",
        entry=entry,
        field=field,
        error=bounds.clean_error,
        key_numbers=0,
        value_numbers=0,
    )
