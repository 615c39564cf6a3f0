"""Instances drawn block by block, so that one call draws what several would: which rows come next
depends on the generator alone, not on how they are asked for.

PCG64, NumPy's usual generator, is a counter in disguise: the low b bits of its state run through
all 2^b values and then begin again. So the generator itself says where a block of 2^b rows begins
and which of its rows is next. A row is one step of the generator; a block has a generator of its
own, whose seed is the number drawn at its first row.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from separatrix.core.numbers.lazy import np

MOST_ROWS = 256
"""Rows of a block, at most."""
_TOKENS = 1 << 16
"""Tokens of a block, about: whoever asks for one row waits for all of it."""
_STEPS = {"PCG64": 0x2360ED051FC65DA44385DF649FCCF645, "PCG64DXSM": 0xDA942042E4DD58B5}
"""Multipliers of the generators that count."""


class Part(NamedTuple):
    """Rows `first`, ..., `last` - 1 of the block of `rows` rows that `seed` draws."""

    seed: int
    rows: int
    first: int
    last: int


def rows_of(length: int) -> int:
    """Rows of a block of prompts of `length` tokens: a power of two."""
    return 1 << (max(1, min(MOST_ROWS, _TOKENS // length)).bit_length() - 1)


def parts(batch: int, length: int, rng: np.random.Generator) -> list[Part]:
    """What the next `batch` rows are; `rng` moves on by as many steps.

    Other generators than PCG64 show no place, so that every row is a block of its own.
    """
    if type(rng.bit_generator).__name__ not in _STEPS:
        seeds = rng.integers(0, 1 << 64, size=batch, dtype=np.uint64)
        return [Part(int(seed), 1, 0, 1) for seed in seeds]
    rows = rows_of(length)
    first = _place(rng, rows)
    return list(_counted(batch, rows, first, rng))


def _counted(batch: int, rows: int, first: int, rng: np.random.Generator) -> Iterator[Part]:
    counter = rng.bit_generator
    _move(counter, -first)
    left = batch
    while left:
        seed = int(counter.random_raw())
        last = min(rows, first + left)
        yield Part(seed, rows, first, last)
        _move(counter, last - 1)
        left -= last - first
        first = 0


def _place(rng: np.random.Generator, rows: int) -> int:
    """Which row of its block comes next: steps since the low bits of the state were all 0."""
    held = rng.bit_generator.state
    step = _STEPS[held["bit_generator"]] % rows
    add = held["state"]["inc"] % rows
    low = held["state"]["state"] % rows
    place = 0
    value = 0
    while value != low:
        value = (value * step + add) % rows
        place += 1
    return place


def _move(counter: np.random.BitGenerator, steps: int) -> None:
    counter.advance(steps % (1 << 128))  # type: ignore[attr-defined]
