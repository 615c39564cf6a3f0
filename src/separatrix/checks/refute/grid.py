"""Which step a grid of p bits should have."""

from __future__ import annotations

import math
from collections.abc import Callable

import torch
from torch import Tensor

from separatrix.models.caches import MESSAGES, Grid, cache_codes, exact, run
from separatrix.models.model import Cache, Model
from separatrix.tasks.base.task import Tokens

_FINEST = 12
"""Powers of two below the coarsest step that are tried: a state that grows by small additions
needs a fine one.
"""


def fit_grid(
    model: Model,
    prefixes: Tokens,
    *,
    bits: int,
    messages: bool = False,
    check: Callable[[], None] = lambda: None,
) -> Grid:
    """The grid whose step, a power of two, keeps most of the prefixes (number, cut) apart; the
    coarsest of equally good ones.

    `messages`: round the messages of a sparse layer's blocks only. `check` is called after each
    token. Raises SizeError for more than 32 bits, and what `check` raises.
    """
    copy = exact(model)
    names = MESSAGES if messages else None
    tokens = torch.from_numpy(prefixes)
    # fine and wide enough to see how large the carried numbers are
    wide = Grid(32, -16)
    largest = max(
        (
            float(x.abs().max())
            for x in _carried(run(copy, tokens, wide, names=names, check=check).cache, names)
            if x.numel()
        ),
        default=1.0,
    )
    # largest < 2^e, and 2^bits levels on both sides of 0 reach 2^(bits - 1) steps
    coarsest = math.frexp(largest or 1.0)[1] - max(0, bits - 1)
    grids = [Grid(bits, coarsest - finer) for finer in range(_FINEST)]

    def apart(grid: Grid) -> int:
        cache = run(copy, tokens, grid, names=names, check=check).cache
        return len(cache_codes(cache, grid, names=names).unique(dim=0))

    return max(grids, key=apart)


def _carried(cache: Cache, names: frozenset[str] | None) -> list[Tensor]:
    return [
        x
        for states in cache
        for state in states
        for name, x in state.items()
        if names is None or name in names
    ]
