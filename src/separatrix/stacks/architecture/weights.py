"""How many weights a model's maps have, and how many of them one token meets."""

from __future__ import annotations

from dataclasses import dataclass


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
    bits: int | None
    """Of each weight; None where they are quantised."""

    @property
    def total(self) -> int:
        return self.maps + self.mlps + self.embedding + self.head + self._experts

    @property
    def _experts(self) -> int:
        return sum(own.layers * own.every * own.size for own in self.experts)

    def read(self, tokens: int) -> int:
        """Weights that decoding so many tokens at once needs at the most; of the embedding only
        rows, which are not counted.
        """
        chosen = sum(own.read(tokens) for own in self.experts)
        return self.maps + self.mlps + self.head + chosen

    def operations(self, *, head: bool) -> int:
        """Operations of a token: 2 for each weight that it meets."""
        return 2 * (self.read(1) - (0 if head else self.head))
