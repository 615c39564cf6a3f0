"""What a short look round every vertex of a graph shows: no audit tries it, since it tells nothing
of what istree draws.
"""

from __future__ import annotations

import numpy as np

from separatrix.tasks import IsTree
from separatrix.tasks.audits.shortcuts import _without_leaves
from separatrix.tasks.base.task import Tokens
from separatrix.tasks.istree import groups

SMALL = 5
"""Vertices of the largest cycle and the largest group that it shows as a whole."""


def cycles(task: IsTree, tokens: Tokens) -> Tokens:
    """Cycles and groups of at most five vertices, and how many walks of up to log2 n edges."""
    n = task.n
    peeled = _without_leaves(task, tokens)
    one, other = core = next(peeled)
    while (left := next(peeled)).shape != core.shape:
        core = left
    cycle = (np.bincount(core.ravel(), minlength=len(tokens) * n) > 0).reshape(-1, n).sum(axis=1)
    to = groups(tokens[:, 0::2], tokens[:, 1::2], n)
    sizes = np.bincount(to.ravel(), minlength=len(tokens) * n).reshape(-1, n)
    smallest = np.where(sizes > 0, sizes, n).min(axis=1)
    shown = [
        np.where((number > 0) & (number <= most), number, 0)
        for number in (cycle, smallest)
        for most in range(3, SMALL + 1)
    ]
    steps = (n - 1).bit_length()
    return np.column_stack([*shown, *_walks_on(one, other, len(tokens), n, steps)])


def _walks_on(one: Tokens, other: Tokens, batch: int, n: int, steps: int) -> list[Tokens]:
    """How many walks of 1, ..., `steps` edges never turn back, and the sum over vertices of the
    squared numbers that end there.
    """
    start = np.concatenate((one, other))
    end = np.concatenate((other, one))
    back = np.roll(np.arange(len(start)), len(one))
    into = np.ones(len(start))
    found = []
    for _ in range(steps):
        arrived = np.bincount(end, weights=into, minlength=batch * n)
        each = arrived.reshape(batch, n)
        found += [each.sum(axis=1), (each**2).sum(axis=1)]
        into = arrived[start] - into[back]
    return [column.astype(np.int64) for column in found]
