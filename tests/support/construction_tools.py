"""What the tests of constructions share: every input of a small task, and the inputs a model
answers wrongly.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence

import numpy as np
import torch
from numpy.typing import NDArray

from separatrix.constructions import Built

Tokens = NDArray[np.int64]


def every(ranges: Sequence[int]) -> Tokens:
    """All sequences whose position p holds one of ranges[p] ids."""
    return np.array(list(itertools.product(*map(range, ranges))), np.int64)


def logits(built: Built, tokens: Tokens, *, batch: int = 4096) -> NDArray[np.float32]:
    with torch.inference_mode():
        return np.concatenate(
            [
                built.model(torch.from_numpy(tokens[i : i + batch])).numpy()
                for i in range(0, len(tokens), batch)
            ]
        )


def wrong(
    built: Built, tokens: Tokens, answers: NDArray[np.int64], *, batch: int = 4096
) -> list[list[int]]:
    """The inputs (their first 20 tokens) that are answered wrongly, at most five of them."""
    found = logits(built, tokens, batch=batch).argmax(-1)
    return [tokens[i][:20].tolist() for i in np.flatnonzero(found != answers)[:5]]
