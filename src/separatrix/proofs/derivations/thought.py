"""L-SeqComp by one full layer that writes L tokens: a hop after each of the last L+1 tokens.

By induction on what was written: if the tokens behind the prompt are right so far, the last of them
is (w, i_{l-1}). For every such token, whatever stands elsewhere, the layer fetches i_l and the head
names the token that is due.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from separatrix.core.errors import CheckFailed
from separatrix.models.model import Model
from separatrix.proofs.arithmetic import FP32, Arithmetic
from separatrix.proofs.derivations.parts.chain import full_fetch
from separatrix.proofs.derivations.parts.derivation import Derivation, Derived, Layer, derived
from separatrix.proofs.derivations.parts.live_parts import array, live_of
from separatrix.proofs.derivations.parts.queries import Wanted
from separatrix.proofs.derivations.parts.reading import readout
from separatrix.proofs.derivations.parts.stream import Stream
from separatrix.proofs.derivations.seqcomp import hops, ids
from separatrix.tasks import SeqComp, Thought
from separatrix.tasks.base.task import Tokens


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


def derive(task: Thought, model: Model, arithmetic: Arithmetic = FP32) -> Derived:
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


DERIVATIONS = (
    Derivation(name="thought", task=Thought, derive=derive, ids=lambda task: ids(task.asked)),
)
