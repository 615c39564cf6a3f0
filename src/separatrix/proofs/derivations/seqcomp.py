"""L-SeqComp in L+1 full layers: a hop that fetches z_0, and one for each function. Or in L full
layers and a bounded one that hands a value on from z_0 to w: z_0 itself, before the first full
layer, or i_1, which the first full layer fetches at z_0, before the second. What stands at z_0's
place does not depend on w: it is followed in the prompt that ends there.
"""

from __future__ import annotations

import numpy as np

from separatrix.models.model import Model
from separatrix.proofs.arithmetic import FP32, Arithmetic
from separatrix.proofs.derivations.parts.chain import (
    Fetched,
    Wanted,
    derive_chain,
    elsewhere,
    full_fetch,
)
from separatrix.proofs.derivations.parts.derivation import Derivation, Derived
from separatrix.proofs.derivations.parts.live_parts import Live, live_parts
from separatrix.proofs.derivations.parts.recurrent import carry
from separatrix.proofs.derivations.parts.stream import Stream
from separatrix.tasks import SeqComp


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


DERIVATIONS = (
    Derivation(name="seqcomp", task=SeqComp, derive=derive, ids=ids),
    Derivation(name="carried", task=SeqComp, derive=derive_carried, ids=ids),
)
