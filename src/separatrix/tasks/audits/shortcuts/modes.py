"""What values functions take most often: of one row, and of the rows that are composed."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from separatrix.tasks.base.task import Tokens

if TYPE_CHECKING:
    from separatrix.tasks.functions.composed import Functions


def modes(task: Functions, tokens: Tokens) -> Tokens:
    """The value that z_L takes most often, whole and in the row that w asks for; and for every
    earlier start the one that most values lead to, w being known.
    """
    rows = np.arange(len(tokens))[:, None]
    w = task.split_w(tokens[:, task.position_w])
    top = task.offset(task.L)
    columns = [_mode(tokens[:, top : top + task.entries(task.L)], task.answers)]
    for start in range(task.L, 0, -1):
        sources = task.N(max(start - 2, 0))
        value = np.broadcast_to(np.arange(sources), (len(tokens), sources))
        for level in range(start, task.L + 1):
            before = w[level - 2][:, None] if level > 1 else np.zeros((len(tokens), 1), np.int64)
            value = tokens[rows, task.position(level, before, value)]
        columns.append(_mode(value, task.answers))
    return np.column_stack(columns)


def _mode(values: Tokens, answers: int) -> Tokens:
    """The most frequent value of each row, the smallest of several."""
    cells = values + answers * np.arange(len(values))[:, None]
    often = np.bincount(cells.ravel(), minlength=answers * len(values))
    return often.reshape(len(values), answers).argmax(axis=1)
