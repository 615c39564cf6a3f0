"""What an engine keeps of a sequence on each card: pages, formats, heads that every card holds."""

from __future__ import annotations

import tomllib
from collections import Counter
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from typing import Any, NamedTuple, Self

from separatrix.core.errors import SizeError, UnknownNameError
from separatrix.stacks.architecture import Architecture
from separatrix.stacks.mechanisms import (
    DSA,
    KDA,
    Chosen,
    Indexed,
    Latent,
    Mamba2,
    Mechanism,
    ShortConvolution,
)
from separatrix.stacks.mechanisms.recurrent_state import Stateful
from separatrix.stacks.mechanisms.softmax import Softmax

MOST_CARDS = 4096
_NARROW = 8
_SCALED = _NARROW + Fraction(32, 128)
"""Bits of a number of 8 bits, with its share of a scale of 32 bits for 128 of them."""
_CONV = "convolution"
_FAR = 1 << 40


class Kept(NamedTuple):
    """Of one layer, on one card: bits of each token, of how many tokens at the most, and bits of a
    state.
    """

    token: Fraction = Fraction(0)
    most: int | None = None
    state: int = 0


@dataclass(frozen=True)
class Engine:
    """A row of engines.toml, on so many cards."""

    name: str
    cards: int
    date: str
    source: str
    memory: str
    """Share of a card's memory that it takes."""
    keeps: str = ""
    widest: int = 0
    page: int = 0
    columns: str = ""

    @classmethod
    def named(cls, name: str, cards: int = 1) -> Self:
        """Raises UnknownNameError for a name that is not in the table, SizeError for a number of
        cards that it says nothing of.
        """
        if name not in TABLE:
            raise UnknownNameError.of("engine", name[:60], list(TABLE), where=" in --set engine=")
        engine = cls(name, cards, **TABLE[name])
        if cards > 1 and not engine.page:
            raise SizeError(f"tp={cards}: how {name} divides a model among cards is not known here")
        return engine

    def bits(self, architecture: Architecture, t: int) -> int:
        """Bits of a sequence of t tokens on each card. Raises SizeError for a mechanism that the
        engine does not have, and for heads that the cards do not divide.
        """
        if not self.page:
            return architecture.cache_bits(t) + sum(
                self._beside(part, t) * times
                for layer, times in architecture.counted()
                for part in layer
            )
        layers = self.layers(architecture)
        page = self._page(layers)
        counts = layers.values()
        # groups of as many layers as the rarest kind has, or as the most frequent one where these
        # are hardly more; what is missing of a group is given out all the same
        most, fewest = max(counts, default=1), min(counts, default=1)
        group = most if 2 * most < 3 * fewest else fewest
        groups = ((-(-number // group), kept) for kept, number in layers.items())
        pages = sum(number * self._pages(kept, t, page) for number, kept in groups)
        return -(-pages * group * page // 1)

    def _beside(self, part: Mechanism, t: int) -> int:
        """What is kept beside what is declared: a column of a convolution that is shifted out
        before it is used, and keys and values of all heads made of indexed latents.
        """
        found = 0
        if part.name in self.columns.split() and (conv := part.sizes()["conv"]) > 1:
            found += sum(item.bits.total for item in part.cache(conv) if item.kind == _CONV)
            found //= conv - 1
        if isinstance(part, Chosen):
            heads = part.heads * (part.head_dim + part.rope_dim + part.dv)
            found += t * (heads - part.kv_numbers) * part.p
        return found

    def page_tokens(self, layers: Counter[Kept]) -> int:
        """Tokens of a page of the layers that keep the most of a token: where states stand beside
        attention, so many that the page holds a state.
        """
        state, token = _largest(layers)
        if not state or not token:
            return self.page
        return self.page * (-(-state // (self.page * token)))

    def _page(self, layers: Counter[Kept]) -> Fraction:
        state, token = _largest(layers)
        return max(self.page_tokens(layers) * token, Fraction(state))

    def _pages(self, kept: Kept, t: int, page: Fraction) -> int:
        """Pages are of one size, so that those of layers with less of a token hold more tokens. A
        window may begin in the middle of a page.
        """
        if kept.state:
            return 1
        moved = kept.most is not None and t > kept.most
        seen = t if kept.most is None else min(t, kept.most)
        return -(-seen // (page // kept.token)) + moved

    def held(self, architecture: Architecture, t: int) -> Fraction:
        """Bits of a sequence of t tokens on each card, without what pages leave empty."""
        return sum(
            (
                number * (kept.token * (t if kept.most is None else min(t, kept.most)) + kept.state)
                for kept, number in self.layers(architecture).items()
            ),
            Fraction(),
        )

    def layers(self, architecture: Architecture) -> Counter[Kept]:
        """What layers keep, and how many keep so much; those that keep nothing are left out."""
        assumed = any(
            note.startswith("recurrent state") and "(assumed)" in note
            for note in architecture.notes
        )
        found: Counter[Kept] = Counter()
        for layer, times in architecture.counted():
            for part in layer:
                if part.name not in self.keeps.split():
                    raise SizeError(f"engine={self.name}: it has no {part.title} ({part.name})")
                kept = self._kept(part, assumed=assumed)
                if kept.token or kept.state:
                    found[kept] += times
        return found

    def _kept(self, part: Mechanism, *, assumed: bool) -> Kept:
        p = min(part.p, self.widest)
        sizes = part.sizes()
        shared = "heads" if "heads" in sizes else "width"
        if sizes.get(shared, 0) % self.cards:
            raise SizeError(f"tp={self.cards} does not divide {part.name}.{shared}={sizes[shared]}")
        match part:
            case DSA():
                # a latent of 8 bits has scales, and what turns in it has 16; the indexer's key
                # has 8 and scales whatever the rest has
                latent = part.kv_numbers * p
                if p == _NARROW:
                    latent = part.latent * _SCALED + part.rope_dim * 2 * _NARROW
                return Kept(latent + part.index_dim * _SCALED)
            case Latent():
                return Kept(Fraction(part.kv_numbers * p))
            case Softmax() if part.stores():
                numbers = self._kv_heads(part.kv) * (part.head_dim + part.dv)
                more = part.index_dim if isinstance(part, Indexed) else 0
                return Kept(Fraction((numbers + more) * p), sizes.get("size"))
            case Stateful() | ShortConvolution():
                conv = sum(item.bits.numbers for item in part.cache(_FAR) if item.kind == _CONV)
                if isinstance(part, Mamba2) and part.groups % self.cards:
                    # each card has the groups that its heads read
                    more = 2 * part.state * (self.cards - part.groups) * (part.conv - 1)
                    conv += max(0, more)
                state, width = 0, p
                if isinstance(part, Stateful):
                    state, own = part.state_numbers, min(part.state_p, 2 * self.widest)
                    # a format that nobody states is the model's own, but for KDA's
                    width = own if not assumed or isinstance(part, KDA) else p
                return Kept(state=-(-(state * width + conv * p) // self.cards))
            case _:
                return Kept()

    def _kv_heads(self, kv: int) -> int:
        """Of each card: a head that fewer cards than there are would share is on several."""
        small, large = sorted((kv, self.cards))
        if large % small:
            raise SizeError(
                f"tp={self.cards} and {kv} key-value heads: neither divides the other; choose"
                " another tp"
            )
        return max(1, kv // self.cards)

    def said(self, architecture: Architecture) -> str:
        """What was taken of the table, in words."""
        cards = f" on {self.cards:,} cards" if self.cards > 1 else ""
        text = f"{self.name} as of {self.date}{cards}: "
        if not self.page:
            return f"{text}caches as its classes keep them"
        layers = self.layers(architecture)
        pages = f"{text}pages of {self.page_tokens(layers):,} tokens"
        if any(kept.state for kept in layers):
            pages += ", one for a state of each layer (two where prefixes are cached)"
        return f"{pages}; heads that cards share are on each" if cards else pages


def _largest(layers: Counter[Kept]) -> tuple[int, Fraction]:
    """The largest state, and the most that a layer keeps of a token."""
    token = max((kept.token for kept in layers), default=Fraction(0))
    return max((kept.state for kept in layers), default=0), token


TABLE: dict[str, dict[str, Any]] = tomllib.loads(
    Path(__file__).with_name("engines.toml").read_text(encoding="utf-8")
)
