"""A protocol for L-SeqComp with R reading layers that is right on every prompt: what must be sent.

w composes one function per reading layer, z_1 to z_{L-1}, and z_L reaches it whole through the
last group. In Theorem VI's shape group 0 carries z_0 to w; in VII's w reads z_0 in layer 1. With
fewer values than they need, messages clip.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from adversaries.knowledge import Known, tokens_in
from adversaries.many_readings import ManyReadings, ManyReadingsSizes
from separatrix.protocols.solvers import digit, number
from separatrix.protocols.tables import Message, written


def enough_many(sizes: ManyReadingsSizes) -> ManyReadingsSizes:
    """The values that the protocol needs: a read tells an entry or that nothing was found yet."""
    found = tuple(n + 1 for n in sizes.N[:-1])
    silent = (1,) * (sizes.R - 1)
    whole = sizes.N[-1] ** sizes.N[-1]
    if sizes.shift:
        return replace(sizes, reads=(sizes.m + 1, *found), caches=(1, *silent, whole))
    return replace(sizes, reads=found, caches=(sizes.m, *silent, whole))


def many_readings_solver(sizes: ManyReadingsSizes) -> ManyReadings:
    """The protocol, clipped to these sizes."""
    task = sizes.task
    last = sum(sizes.N) + 1

    def wanted(j: int, query: Known) -> int | None:
        """The place that w asks for in layer j, if it knows."""
        level = j - sizes.shift
        if level == 0:
            return last - 1
        # what the stage before found: group 0's cache is z_0 itself, a read is 1 more
        i = query.read - 1 if query.parts[0] else query.cache
        if i < 0:
            return None
        row = sizes.digit(query.token, level - 1) * sizes.N[level - 2] if level > 1 else 0
        return task.offset(level) + row + i

    def read(j: int) -> Message:
        def look(known: tuple[int, Known, Known], before: int) -> int:
            _, query, keys = known
            if before or query.place != last:
                return before
            place = wanted(j, query)
            return next((token + 1 for at, token in tokens_in(keys) if at == place), 0)

        return look

    def carried(known: tuple[int, Known], before: int) -> int:
        cut, seen = known
        return seen.token if cut == sizes.L + 1 else 0

    def whole(known: tuple[int, Known], before: int) -> int:
        cut, seen = known
        if cut > 1:
            return before
        entries = [token for _, token in reversed(tokens_in(seen))]
        return number(entries, sizes.N[-1])

    def answer(known: Known, *told: Any) -> int:
        row = sizes.digit(known.token, sizes.L - 1) * sizes.N[-2]
        return digit(known.cache, row + max(known.read - 1, 0), sizes.N[-1])

    messages: dict[str, Message] = {f"read {j}": read(j) for j in range(1, sizes.R + 1)}
    messages["cache 0"] = carried
    messages[f"cache {sizes.R}"] = whole
    messages["answer"] = answer
    return ManyReadings(sizes, written(messages))
