"""Brackets as counters see them: how many stand open, of each kind and in all."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from separatrix.tasks.base.task import Tokens

if TYPE_CHECKING:
    from separatrix.tasks import Dyck


def products(task: Dyck, tokens: Tokens) -> Tokens:
    """Of two kinds x < y: two to five brackets in a row that open, the first x and the last y,
    less those with y and x, each weighed by its place, or by its half; the same of brackets that
    close; and the product of both, added up over x and y.
    """
    opens = tokens < task.k
    kind = tokens % task.k
    columns = []
    for length in range(2, 6):
        among = np.lib.stride_tricks.sliding_window_view(opens, length, axis=1)
        runs = among.all(axis=2), ~among.any(axis=2)
        first, last = kind[:, : 1 - length], kind[:, length - 1 :]
        place = 2 * np.arange(first.shape[1]) - first.shape[1] + 1
        for weight in (place, np.sign(place)):
            total = np.zeros(len(tokens), np.int64)
            for x in range(task.k):
                for y in range(x + 1, task.k):
                    way = ((first == x) & (last == y)).astype(np.int64)
                    way -= (first == y) & (last == x)
                    one, other = (np.where(run, way, 0) @ weight for run in runs)
                    total += one * other
            columns.append(total)
    return np.column_stack(columns)


def counters(task: Dyck, tokens: Tokens) -> Tokens:
    """Of the depth: its largest and smallest value, its returns to 0, the sums of its powers. Of
    the counters of single kinds: the same, over all kinds, and whether as many open as close at
    even places, and at each depth.
    """
    step = np.where(tokens < task.k, 1, -1)
    depth = np.cumsum(step, axis=1)
    columns = [
        depth.max(axis=1),
        depth.min(axis=1),
        (depth == 0).sum(axis=1),
        depth.sum(axis=1),
        (depth**2).sum(axis=1),
        (depth > task.D).any(axis=1),
    ]
    # of a pair one bracket stands at an even place, one at an odd; both begin and end one depth
    side = np.arange(tokens.shape[1]) % 2 ^ (step < 0)
    level = np.where(step > 0, depth, depth + 1)
    unlike = np.zeros((2, len(tokens)), np.int64)
    for kind in range(task.k):
        own = np.where(tokens % task.k == kind, step, 0)
        unlike[0] += np.abs(np.where(side == 0, own, 0).sum(axis=1))
        for at in range(1, task.D + 1):
            unlike[1] += np.abs(np.where(level == at, own, 0).sum(axis=1))
    columns += [*unlike]
    low, high, end = (np.zeros((len(tokens), 0), np.int64) for _ in range(3))
    zeros, squares, cubes = (np.zeros(len(tokens), np.int64) for _ in range(3))
    for kind in range(task.k):
        open_ = np.cumsum(np.where(tokens % task.k == kind, step, 0), axis=1)
        low = np.column_stack((low, open_.min(axis=1)))
        high = np.column_stack((high, open_.max(axis=1)))
        end = np.column_stack((end, open_[:, -1]))
        zeros += (open_ == 0).sum(axis=1)
        squares += (open_**2).sum(axis=1)
        cubes += (open_**3).sum(axis=1)
    columns += [
        low.min(axis=1),
        low.sum(axis=1),
        high.max(axis=1),
        high.sum(axis=1),
        (high == high.max(axis=1, keepdims=True)).sum(axis=1),
        np.abs(end).sum(axis=1),
        zeros,
        squares,
        cubes,
    ]
    return np.column_stack(columns).astype(np.int64)
