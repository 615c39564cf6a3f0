"""How many weights a model's maps have, and how many of them one token meets."""

from __future__ import annotations

from dataclasses import dataclass, replace
from fractions import Fraction
from operator import mul
from typing import NamedTuple

_EVERY = 10**9
"""Tokens that meet every expert."""


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


_ALIKE = Bits(*[Fraction(1)] * 4)


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
    """What tokens and places are looked up in, but for an embedding that is the head."""
    bits: Bits | None
    """None where they are quantised in a way that is not read."""
    again: int = 0
    """Of maps and MLPs, those that a token has met in an earlier layer: stored once."""
    assumed: str = ""
    """What the class does where a file does not say whether the head is the embedding."""

    @property
    def total(self) -> int:
        return int(self._stored(_ALIKE))

    @property
    def stored(self) -> int | None:
        """Bits of all weights as the release stores them."""
        return None if self.bits is None else round(self._stored(self.bits))

    def _stored(self, bits: Bits) -> Fraction:
        every = self._bits(_EVERY, bits)
        return every + self.embedding * bits.head - self.again * bits.maps

    def within(self, widest: int) -> Weights:
        """In numbers of at most so many bits."""
        bits = self.bits and Bits(*(min(own, Fraction(widest)) for own in self.bits))
        return replace(self, bits=bits)

    def read(self, tokens: int) -> int:
        """Weights that decoding so many tokens at once needs at the most; no rows of embedding."""
        return int(self._bits(tokens, _ALIKE))

    def share(self, tokens: int) -> Fraction:
        """Of the bits of all weights, those of these; of all alike where no bits are read."""
        bits = self.bits or _ALIKE
        return self._bits(tokens, bits) / self._stored(bits)

    def _bits(self, tokens: int, bits: Bits) -> Fraction:
        # each token may choose other experts
        met = ((own, min(own.every, own.chosen * tokens)) for own in self.experts)
        experts = sum(own.layers * chosen * own.size for own, chosen in met)
        sizes = (self.maps, self.mlps, experts, self.head)
        return sum(map(mul, sizes, bits), Fraction())

    def operations(self, *, head: bool) -> int:
        """Operations of a token: 2 for each weight that it meets."""
        return 2 * (self.read(1) - (0 if head else self.head))
