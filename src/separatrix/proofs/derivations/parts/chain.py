"""Proves a chain of hops from the weights: each reads the value at the place that the task asks for
and hands it on, in float32, for every input.

The residual stream is carried along class by class (stream.py). A hop enumerates its queries, finds
the lead of the key the task asks for, and encloses what the layer then writes, for every value that
may stand there; the MLP after it is evaluated on that.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

from separatrix.models.model import Model
from separatrix.proofs.arithmetic import Arithmetic
from separatrix.proofs.derivations.parts.derivation import Derived, derived
from separatrix.proofs.derivations.parts.live_parts import Live, live_of
from separatrix.proofs.derivations.parts.nearest import Near, nearest
from separatrix.proofs.derivations.parts.queries import Wanted
from separatrix.proofs.derivations.parts.reading import prove_readout
from separatrix.proofs.derivations.parts.stream import Stream
from separatrix.tasks import Task

__all__ = ["Fetched", "Fetcher", "Wanted", "derive_chain"]


@dataclass(frozen=True, kw_only=True)
class Fetched:
    """What a hop leaves behind: its proof, the stream after it, the queries that came closest to
    another key, key and value numbers used.
    """

    kind: Literal["layers", "sparse", "indexed", "carriers"]
    """Under what name the record counts the layer."""
    entry: dict[str, Any]
    stream: Stream
    near: list[Near]
    key_numbers: int
    value_numbers: int
    assumes: tuple[str, ...] = ()
    """What the layer takes for granted of the arithmetic, beyond what every proof does."""


Fetcher = Callable[[Stream, Live, Wanted], Fetched]
"""Proves one hop from the stream before it."""


def derive_chain(
    task: Task,
    model: Model,
    hops: Sequence[Wanted],
    by: Sequence[Fetcher],
    ids: list[int],
    arithmetic: Arithmetic,
    *,
    asked: Sequence[Wanted] | None = None,
) -> Derived:
    """The proof of a chain whose i-th hop is proved by the i-th fetcher; `ids` says how many ids
    may stand at each position, and `asked` what the task asks, hop by hop (default: `hops`).

    Raises CheckFailed, naming the part, where the weights do not bear it out.
    """
    # whatever finds places, the score of the right key leads by it
    live = live_of(model, len(hops), placed=False)
    stream = Stream.of(model, task.length, len(hops[0].part), arithmetic, first=hops[0].first)
    done: list[Fetched] = []
    near: list[Near] = []
    for number, (part, hop, fetch) in enumerate(zip(live, hops, by, strict=True)):
        if number + 1 < len(hops):
            hop = replace(hop, then=hops[number + 1].part)
        fetched = fetch(replace(stream, ends=number == len(hops) - 1), part, hop)
        near.extend(found.at(number) for found in fetched.near)
        done.append(fetched)
        stream = fetched.stream
    margin, answer = prove_readout(model, stream)
    near.append(Near(hop=len(hops) - 1, answer=answer))
    numbers = {
        "head_dim": max(hop.key_numbers for hop in done),
        "value_dim": max(hop.value_numbers for hop in done),
    }
    return derived(
        arithmetic,
        [hop.entry for hop in done],
        margin,
        Counter(h.kind for h in done) | numbers,
        lambda rng: nearest(task, hops if asked is None else asked, near, ids, rng),
        *(hop.assumes for hop in done),
    )
