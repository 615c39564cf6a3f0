"""Graphs as a short look round every vertex sees them."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from separatrix.tasks.base.task import Tokens
from separatrix.tasks.istree import groups

if TYPE_CHECKING:
    from separatrix.tasks import IsTree

SMALL = 5
"""Vertices of the largest cycle and the largest group that a short look shows as a whole."""


def cycles(task: IsTree, tokens: Tokens) -> Tokens:
    """The vertices on a cycle and those of the smallest group, where they are at most 3, 4 or 5;
    and how many walks of 1, 2, ..., log2 n edges, rounded up, there are that never turn back.
    """
    n = task.n
    row = n * np.arange(len(tokens))[:, None]
    one = (tokens[:, 0::2] + row).ravel()
    other = (tokens[:, 1::2] + row).ravel()
    cycle = _on_cycles(one, other, len(tokens) * n).reshape(-1, n).sum(axis=1)
    to = groups(tokens[:, 0::2], tokens[:, 1::2], n)
    sizes = np.bincount(to.ravel(), minlength=len(tokens) * n).reshape(-1, n)
    smallest = np.where(sizes > 0, sizes, n).min(axis=1)
    shown = [
        np.where((number > 0) & (number <= most), number, 0)
        for number in (cycle, smallest)
        for most in range(3, SMALL + 1)
    ]
    steps = (n - 1).bit_length()
    return np.column_stack([*shown, *_walks(one, other, len(tokens), n, steps)])


def leaves(task: IsTree, tokens: Tokens) -> Tokens:
    """How many edges are left when leaves are taken away 1, 2, ..., 2 log2 n times."""
    n = task.n
    row = n * np.arange(len(tokens))[:, None]
    ends = np.stack(((tokens[:, 0::2] + row).ravel(), (tokens[:, 1::2] + row).ravel()))
    columns = []
    for _ in range(2 * (n - 1).bit_length()):
        degree = np.bincount(ends.ravel(), minlength=len(tokens) * n)
        ends = ends[:, (degree[ends] > 1).all(axis=0)]
        columns.append(np.bincount(ends[0] // n, minlength=len(tokens)))
    return np.column_stack(columns)


def _on_cycles(one: Tokens, other: Tokens, vertices: int) -> Tokens:
    """1 for vertices that remain when those with one edge are taken away again and again."""
    ends = np.concatenate((one, other))
    while True:
        degree = np.bincount(ends, minlength=vertices)
        kept = (degree[one] > 1) & (degree[other] > 1)
        if kept.all():
            return (degree > 0).astype(np.int64)
        one, other = one[kept], other[kept]
        ends = np.concatenate((one, other))


def _walks(one: Tokens, other: Tokens, batch: int, n: int, steps: int) -> list[Tokens]:
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
