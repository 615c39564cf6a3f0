"""What is known at a token after a stage of a stack: of unbounded width, so everything that reached
the token. Source: theory.md, section 11 (the model used).
"""

from __future__ import annotations

from collections.abc import Hashable
from typing import Any


class Known:
    """What is known at one token, as a tuple of numbers and of other `Known`.

    Made by `Knowledge` only, so that two that know the same are one object. Equality is identity
    and costs nothing however much is known.
    """

    __slots__ = ("_hash", "parts")

    def __init__(self, parts: tuple[Any, ...]) -> None:
        self.parts = parts
        # tuples of integers hash alike in every run, and so do tuples of such hashes
        self._hash = hash(parts)

    def __hash__(self) -> int:
        return self._hash

    @property
    def token(self) -> int:
        return self.parts[2]

    @property
    def place(self) -> int:
        """The token's place in the prompt."""
        return self.parts[1]

    @property
    def below(self) -> Known:
        """What was known at this token one stage earlier."""
        return self.parts[3]

    @property
    def cache(self) -> int:
        """What reached this stage through its bounded layers."""
        return self.parts[4]

    @property
    def read(self) -> int:
        """What this token read in this stage's reading layer."""
        return self.parts[5]

    def plain(self) -> tuple[Any, ...]:
        """The same in numbers alone, for comparison between two protocols."""
        return tuple(part.plain() if type(part) is Known else part for part in self.parts)


class Knowledge:
    """Everything that is known anywhere in a protocol's runs, each once."""

    def __init__(self) -> None:
        self._all: dict[tuple[Hashable, ...], Known] = {}

    def __call__(self, *parts: Hashable) -> Known:
        known = self._all.get(parts)
        if known is None:
            known = self._all[parts] = Known(parts)
        return known


def tokens_in(keys: Known | tuple[()]) -> list[tuple[int, int]]:
    """The (place, token) of every token in a chain of keys, the last one first."""
    found: list[tuple[int, int]] = []
    while type(keys) is Known:
        found.append((keys.place, keys.token))
        keys = keys.parts[-1]
    return found
