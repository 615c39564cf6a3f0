"""Theorem R by brute force: tiny stacks of lookups, whose windows and recurrences are arbitrary
tables, over all prefixes and all continuations.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import product
from random import Random

import pytest

from separatrix.stacks.architecture import Architecture
from separatrix.stacks.architecture.forgetting import Lags

Word = tuple[int, ...]


@dataclass
class Lookup:
    """A window of w letters, a chunk, or a state of so many bits, that gives a letter by a drawn
    table; `older`: a window over what so many layers before read.
    """

    window: int
    bits: int
    rng: Random
    chunk: int = 0
    older: int = 0

    def __post_init__(self) -> None:
        self.table: dict[tuple[int, ...], tuple[int, int]] = {}

    def __call__(self, letters: Word, keys: Word) -> Word:
        state = 0
        said: list[int] = []
        for t in range(len(letters)):
            start = t - t % self.chunk if self.chunk else max(0, t - self.window + 1)
            # a table of its own for each place, as positions allow
            key = (t % 3, state, letters[t], *keys[start : t + 1])
            if key not in self.table:
                self.table[key] = self.rng.randrange(2), self.rng.randrange(1 << self.bits)
            letter, state = self.table[key]
            said.append(letter)
        return tuple(said)

    @property
    def spec(self) -> str:
        if self.chunk:
            return f"chunked(size={self.chunk})"
        name = "reused_window" if self.older else "window"
        return f"automaton(bits={self.bits})" if self.bits else f"{name}(size={self.window})"


def outputs(stack: Sequence[Lookup], letters: Word) -> Word:
    """What the last layer says, and the sum with what came in, so that nothing is lost."""
    came = [letters]
    for layer in stack:
        told = layer(letters, came[-1 - min(layer.older, len(came) - 1)])
        letters = tuple(2 * (a % 8) + b for a, b in zip(letters, told, strict=True))
        came.append(letters)
    return letters


def words(length: int) -> list[Word]:
    return list(product(range(2), repeat=length))


def beyond(stack: Sequence[Lookup], cut: int, shared: Word, free: int, reach: int) -> set[object]:
    """The different functions, of all prefixes of `cut` letters, from continuations that begin
    with the shared letters to the outputs behind the reach.
    """
    rest = [shared + end for end in words(free)]
    return {
        tuple(outputs(stack, prefix + end)[cut + reach :] for end in rest) for prefix in words(cut)
    }


def drawn(rng: Random) -> list[Lookup]:
    kinds = [(rng.choice((2, 3)), 0) if rng.random() < 0.6 else (1, 1) for _ in range(3)]
    return [Lookup(window, bits, rng) for window, bits in kinds]


def mixed(rng: Random) -> list[Lookup]:
    """Chunks, windows over an older layer's keys, and a pass that is run twice."""
    kinds = [
        Lookup(rng.choice((2, 3)), 0, rng, older=rng.choice((0, 1, 2))),
        Lookup(1, 0, rng, chunk=rng.choice((2, 3))),
        Lookup(1, 1, rng),
    ]
    chosen = [rng.choice(kinds) for _ in range(2)]
    return [*chosen, *chosen] if rng.random() < 0.4 else [*chosen, rng.choice(kinds)]


@pytest.mark.parametrize(
    "seed", [*range(25), *(pytest.param(n, marks=pytest.mark.slow) for n in range(25, 80))]
)
def test_no_more_prefixes_are_told_apart_than_states_pass(seed: int) -> None:
    rng = Random(seed)
    stack = drawn(rng) if seed < 40 else mixed(rng)
    lags = Lags.of(Architecture.parse("+".join(layer.spec for layer in stack)))
    assert lags is not None
    cut = 5
    lost = lags.at(cut)
    assert lost.bits == sum(layer.bits for layer in stack)
    handed = lost.handed - cut
    for shared in words(handed)[:2]:
        free = lost.reach - handed + 2
        told = beyond(stack, cut, shared, free, lost.reach)
        assert len(told) <= 2**lost.bits


def test_the_reach_is_sharp_and_all_bits_are_used() -> None:
    """Some windows tell prefixes apart by the last output within reach, and some stacks of states
    as many as there are states.
    """
    sharp = 0
    full = 0
    for seed in range(30):
        rng = Random(seed)
        windows = [Lookup(2, 0, rng), Lookup(3, 0, rng)]
        # G = 1 + 2: behind it nothing, one token earlier something
        assert len(beyond(windows, 4, (), 5, 3)) == 1
        sharp += len(beyond(windows, 4, (), 5, 2)) > 1
        # a chunk of 3 behind 4 letters ends 2 letters later; a window of 3 over what an older layer
        # read reaches back 2, though the newer one's lag is counted too
        assert len(beyond([Lookup(1, 0, rng, chunk=3)], 4, (), 4, 2)) == 1
        sharp += len(beyond([Lookup(1, 0, rng, chunk=3)], 4, (), 4, 1)) > 1
        reused = [Lookup(2, 0, rng), Lookup(3, 0, rng, older=1)]
        assert len(beyond(reused, 4, (), 5, 2)) == 1
        sharp += len(beyond(reused, 4, (), 5, 1)) > 1
        states = [Lookup(2, 0, rng), Lookup(1, 1, rng), Lookup(1, 1, rng)]
        full += len(beyond(states, 4, (0,), 3, 1)) == 4
    assert sharp >= 60
    assert full >= 1
