"""Two prompts that differ in one token where a run of tokens ends: what a recurrence that only
moves one way cannot tell apart once both runs are long.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import groupby
from typing import NamedTuple

from separatrix.core.numbers.lazy import Ints, np

_MOST_SHOWN = 12
"""Runs of a prompt that a line shows."""


class TwoRuns(NamedTuple):
    """a^j b^(m-j) and a^(j+1) b^(m-j-1), both followed by one and the same end: two prompts with
    different answers.
    """

    a: int
    b: int
    j: int
    m: int
    end: tuple[tuple[tuple[int, ...], int], ...] = ()
    """What follows, as patterns of tokens and how often each is repeated."""

    @classmethod
    def halves(cls, m: int, end: tuple[tuple[tuple[int, ...], int], ...] = ()) -> TwoRuns:
        """Runs of ones, then of zeros, that meet in the middle of m tokens."""
        return cls(1, 0, m // 2, m, end)

    @property
    def shorter(self) -> int:
        """The length of the shortest run: of a in the first prompt, or of b in the second."""
        return min(self.j, self.m - self.j - 1)

    @property
    def shown(self) -> str:
        """Both prompts without their end, as people write them."""
        first = f"{self.a}^{self.j:,} {self.b}^{self.m - self.j:,}"
        return f"{first} and {self.a}^{self.j + 1:,} {self.b}^{self.m - self.j - 1:,}"

    def prompts(self) -> Ints:
        """Both prompts, token by token (2, length)."""
        end = [np.tile(np.array(pattern, np.int64), times) for pattern, times in self.end]
        rows = [
            np.concatenate([np.repeat([self.a, self.b], [times, self.m - times]), *end])
            for times in (self.j, self.j + 1)
        ]
        return np.stack(rows).astype(np.int64)


def in_runs(prompt: Sequence[int]) -> str:
    """A prompt as runs of equal tokens: "1 x 37, 0 x 63"; of many runs the first and the last."""
    runs = [f"{token} x {len([*run]):,}" for token, run in groupby(prompt)]
    if len(runs) > _MOST_SHOWN:
        left = f"... {len(runs) - _MOST_SHOWN + 1} runs ..."
        runs = [*runs[: _MOST_SHOWN - 3], left, *runs[-2:]]
    return ", ".join(runs)
