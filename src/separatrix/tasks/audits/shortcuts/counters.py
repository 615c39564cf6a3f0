"""Brackets as counters see them: how many stand open, of each kind and in all."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from separatrix.tasks.base.task import Tokens

if TYPE_CHECKING:
    from separatrix.tasks import Dyck


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
