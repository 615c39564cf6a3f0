"""How many weights a model's maps have, and how many of them one token meets."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import NamedTuple


@dataclass(frozen=True)
class Experts:
    """Layers with experts of one size, of which each token is sent to a few."""

    layers: int
    every: int
    """Experts of a layer."""
    chosen: int
    """Experts of a layer that a token is sent to."""
    size: int
    """Weights of an expert."""

    def read(self, tokens: int) -> int:
        """Weights that so many tokens need at the most: each may choose other experts."""
        return self.layers * min(self.every, self.chosen * tokens) * self.size


@dataclass(frozen=True)
class Mlp:
    """The MLPs of a stack, as constructions may use them."""

    width: int
    """Units that every token has in each of them, at least."""
    stated: bool
    """Whether a file says so; else assumed."""
    every: bool = True
    """Whether every layer has one; else those that mix no tokens, and none beside a mixer."""


class Bits(NamedTuple):
    """Bits of a weight as a release stores it, with its share of the scales."""

    maps: Fraction
    mlps: Fraction
    experts: Fraction
    head: Fraction
    """And of the embedding."""


@dataclass(frozen=True)
class Weights:
    """The weights of a released model, in numbers; norms and biases left out."""

    maps: int
    """Maps and short convolutions of what mixes tokens."""
    mlps: int
    """MLPs, experts that all tokens take, and what chooses experts."""
    experts: tuple[Experts, ...]
    head: int
    embedding: int
    """0 where the head is the embedding."""
    bits: Bits | None
    """None where they are quantised in a way that is not read."""

    @property
    def total(self) -> int:
        return self.maps + self.mlps + self.embedding + self.head + self._experts

    @property
    def _experts(self) -> int:
        return sum(own.layers * own.every * own.size for own in self.experts)

    @property
    def stored(self) -> int | None:
        """Bits of all weights as the release stores them."""
        if self.bits is None:
            return None
        maps, mlps, experts, head = self.bits
        found = self.maps * maps + self.mlps * mlps + self._experts * experts
        return round(found + (self.head + self.embedding) * head)

    def read(self, tokens: int) -> int:
        """Weights that decoding so many tokens at once needs at the most; of the embedding only
        rows, which are not counted.
        """
        chosen = sum(own.read(tokens) for own in self.experts)
        return self.maps + self.mlps + self.head + chosen

    def operations(self, *, head: bool) -> int:
        """Operations of a token: 2 for each weight that it meets."""
        return 2 * (self.read(1) - (0 if head else self.head))
