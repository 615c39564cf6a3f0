"""The features of prompts that regressions are fitted to.

Where token ids are many, they see those that occur most often in the prompts fitted to, and count
all others as one. The number of those seen is limited, so that there are about 2^16 weights at
most.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from separatrix.tasks.base.task import Tokens

MOST_WEIGHTS = 1 << 16
MOST_IDS = 512
"""Token ids that a regression tells apart, at most."""


def frequent(tokens: Tokens, *, answers: int, nothing: int, groups: int = 1) -> Tokens:
    """The ids of `tokens` that get weights of their own, ascending; `groups` is how often each
    gets them.
    """
    ids, often = np.unique(tokens, return_counts=True)
    ids, often = ids[ids != nothing], often[ids != nothing]
    most = max(1, min(MOST_IDS, MOST_WEIGHTS // (answers * groups)))
    return np.sort(ids[np.argsort(-often, kind="stable")[:most]])


def _columns(tokens: Tokens, ids: Tokens, nothing: int) -> Tokens:
    """Column of each token: its rank in `ids`, then one column for any other id, then one for no
    token.
    """
    rank = np.minimum(np.searchsorted(ids, tokens), len(ids) - 1)
    return np.where(tokens == nothing, len(ids) + 1, np.where(ids[rank] == tokens, rank, len(ids)))


def counted(tokens: Tokens, ids: Tokens, nothing: int) -> NDArray[np.float64]:
    """How often each of `ids`, then any other, occurs in each row: (batch, ids + 1)."""
    width = len(ids) + 2
    cells = _columns(tokens, ids, nothing) + width * np.arange(len(tokens))[:, None]
    return (
        np.bincount(cells.ravel(), minlength=width * len(tokens))
        .reshape(len(tokens), width)[:, :-1]
        .astype(float)
    )


def indicated(tokens: Tokens, ids: Tokens, nothing: int) -> NDArray[np.float64]:
    """Which of `ids`, any other, or none stands in each column: (batch, columns (ids + 2))."""
    width = len(ids) + 2
    hot = np.zeros((len(tokens), tokens.shape[1] * width))
    np.put_along_axis(
        hot, _columns(tokens, ids, nothing) + width * np.arange(tokens.shape[1]), 1.0, axis=1
    )
    return hot
