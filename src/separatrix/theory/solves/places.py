"""How a layer of full attention finds the token at a place: by embedded addresses, by rotations
alone (relative selection), or by addresses that layers before it have counted.

Theory.md, section 1, "Positions": theorems that say "solves" need reading layers that know places.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

from separatrix.core.numbers.formats import DIGITS
from separatrix.core.numbers.selection import Lead, Slow, selection_lead, slow_bits, slow_turn
from separatrix.stacks.architecture import Architecture
from separatrix.stacks.mechanisms import Mechanism
from separatrix.stacks.mechanisms.base import Head, TokenChoice
from separatrix.theory.base import START_TOKEN
from separatrix.theory.solves.room import EMBEDDED, TAGS, WIDE, bits_of
from separatrix.theory.words import counted_as

MOST_ADDRESS_BITS = 256
"""Address bits up to which scores are exact in every format."""
BY_ROTATIONS = "positions: rotations alone"
"""How the source begins where an offset is asked for."""
COUNTED = "positions: counted by recurrent layers before, up to {:,} tokens"
BY_AVERAGES = "positions: counted by equal weights"
"""How the source begins where full layers count."""
NEEDS_NONE = "positions: none needed, contents are compared in dimensions that no rotation turns"
BROUGHT = "positions: none needed, a convolution brings the tokens before"
LEAST_LEFT = 1 / 16
"""Of the lead of a bit, where slow pairs compare contents: scores are as many times larger."""
MOST_COUNTED = 1 << 20
"""Tokens up to which a state in fp32 counts: each adds at least a thirty-second of the last bit."""
STEP = 96
"""Counts that one output in bf16 tells apart, up to a number of eight digits that is no less."""
MOST_CHANNELS = 85
"""Multiples of 96 of eight digits."""


@dataclass(frozen=True)
class Places:
    """What finds a token by its place in one layer, and what that rests on."""

    address: int
    """Key dimensions that hold address bits and tags; 0 for relative selection."""
    rests_on: str
    counted: bool = False
    """Whether layers before it count the places."""

    def numbers(self, address_bits: int, **others: int) -> dict[str, int]:
        """The numbers of a verdict: the bits of an address only where there is one."""
        return others | ({"address_bits": address_bits} if self.address else {})


@dataclass(frozen=True)
class Attending:
    """Heads of a layer that attend to earlier tokens, how many they see if not all, and who chooses
    what they read: the token asked for, whose score leads among the indexer's as among theirs.
    """

    architecture: Architecture
    layer: int
    part: Mechanism
    head: Head
    window: int | None = None
    choice: TokenChoice | None = None

    @property
    def asks(self) -> int:
        """How many tokens it may ask for at once: with one choice for all heads a single one."""
        return 1 if self.choice is not None else self.part.sizes()["heads"]

    @property
    def content_dims(self) -> int:
        """Key dimensions of a head in which contents compare exactly at any distance: no rotation
        turns them, and nothing is added to their scores.
        """
        if self.architecture.positions not in ("embedded", "none"):
            return 0
        # latent attention keeps its rotated dimensions beside those of the head
        turned = (
            0
            if self.part.rotation is None or self.head.latent is not None
            else self.part.rotation.dims
        )
        still = self.head.head_dim - turned
        if self.choice is None:
            return still
        return min(still, self.choice.dims, self.choice.asking or still)

    @property
    def sums_wide(self) -> bool:
        """Whether its softmax adds up in 32 bits or more."""
        return getattr(self.part, "accumulator_bits", 0) >= 32

    def still(self, dims: int, payload: int) -> bool:
        """Whether a head compares bits and tags in so many such dimensions, and reads so much."""
        most = min(self.content_dims, MOST_ADDRESS_BITS)
        return dims <= most and self.head.has_room(dims, payload)

    def compares(self, dims: int) -> bool:
        """Whether a head compares contents of so many dimensions and hands on a bit of what
        matches.

        Behind a norm of queries and keys, twice the dimensions: what a token says stands in the one
        half, what a start token says in the other, queries ask in both, and all entries are +-1, so
        that a norm scales and rounds them alike. Or, in fp32 and wider, one dimension more that
        makes all keys equally long: entries of unlike size are then each off by less than 4 u, and
        a score of up to 2 D by 8 D u, with D <= 258 less than a thousandth of its lead.
        """
        if self.choice is not None:
            return False
        if self.part.normed:
            twice = 2 * dims <= self.content_dims and dims <= MOST_ADDRESS_BITS
            dims = 2 * dims if twice and self.head.has_room(2 * dims, 1) else dims + 1
            if not twice and self.head.format not in WIDE:
                return False
            return dims <= self.content_dims and self.head.has_room(dims, 1)
        # a latent stands behind a norm: both halves are in it, and the key adds them
        if self.head.latent is not None and 2 * dims + 1 > self.head.latent:
            return False
        still = dims <= min(self.content_dims, MOST_ADDRESS_BITS + 2)
        return still and self.head.has_room(dims, 1)

    def places(
        self, *, address: int, payload: int, tokens: int, named: bool = False
    ) -> Places | None:
        """How they find one of `tokens` tokens by its place and read `payload` bits of it, where
        `address` bits and tags would name the place; None where nothing is known. `named`: by an
        address alone.

        A norm of queries and keys changes nothing for addresses: all their entries are +-1, so they
        are equally long, and scaled and rounded alike.
        """
        addressable = self.still(address, payload)
        if addressable and self.architecture.positions == "embedded":
            return Places(address, EMBEDDED)
        seen = min(tokens, self.window or tokens)
        lead = None if named else self.place_lead(seen)
        if lead is not None and lead.holds and self.head.has_room(0, payload):
            where = "prompt" if seen == tokens else "window"
            return Places(
                0,
                f"{BY_ROTATIONS} ({self.part.rotation}); over all offsets of the {where} the one"
                f" asked for leads by more than {down(lead.gap)} of the largest score, and rounding"
                f" in {self.head.format}, with angles in fp32, takes less than"
                f" {up(lead.rounding)}",
            )
        most = counted_tokens(self.architecture, self.layer)
        if addressable and tokens <= most:
            layers, _ = self.architecture.counted_before[self.layer]
            return Places(
                address,
                f"positions: counted by {counted_as(layers, 'recurrent layer')} before it, token by"
                " token, from states in fp32 of which each layer hands on as many bits as its"
                f" format resolves: up to {most:,} tokens",
                counted=True,
            )
        counting = averaging(self.architecture, self.layer, tokens) if addressable else ()
        if counting:
            return Places(address, averages(counting), counted=True)
        return None

    def place_lead(self, tokens: int, written: str = "") -> Lead | None:
        """The lead of relative selection over so many tokens, in the head's format or in the one it
        is written in; None where there is none.
        """
        # what is added to scores beside the rotation might outweigh the lead
        if self.part.rotation is None or self.architecture.positions not in ("embedded", "none"):
            return None
        choice = self.choice
        # an indexer that reads every token need not choose
        if choice and not choice.turned and (choice.asking or choice.topk < tokens):
            return None
        return selection_lead(
            self.part.rotation, tokens, written or self.head.format, normed=self.part.rounded_again
        )

    def slow(
        self, bits: int, many: int, tokens: int, *, written: str = "", single: bool = False
    ) -> Slow | None:
        """How the bits of `many` tokens are compared in the slowest pairs of rotations that turn
        every key dimension, and those of one read; in the head's format or in the one it is written
        in. None where too little of their lead is left, or nothing is known.
        """
        rotation, head, normed = self.part.rotation, self.head, self.part.normed
        if rotation is None or rotation.dims != head.head_dim or head.latent or self.choice:
            return None
        # a token that is missing lacks its bits; behind a norm the whole key stands in another pair
        if bits < 2:
            return None
        placed = self.architecture.positions in ("embedded", "none")
        if not placed or not head.has_room(0, bits):
            return None
        form = written or head.format
        found = slow_bits(rotation, tokens, bits, many, form, normed=normed, single=single)
        return found if found and found.left >= LEAST_LEFT else None

    def finds(self, address: int, payload: int, tokens: int, *, single: bool = False) -> bool:
        """Whether a head compares so many bits that every one of so many tokens has, and reads so
        many: in dimensions that no rotation turns, or in slow pairs; `single`: or some of them.
        """
        if self.still(address + TAGS, payload):
            return True
        slow = self.slow(address, 1, tokens, single=single)
        return slow is not None and self.head.has_room(0, payload)

    def blank_beside(self, payload: int, tokens: int) -> bool:
        """Whether a start token can take the weight of queries whose offset holds no token."""
        margin = self.blank_margin(payload, tokens)
        return margin is not None and margin > 0

    def blank_margin(self, payload: int, tokens: int) -> float | None:
        """How far such a start token scores below the offset asked for and above all others, at any
        distance, as a share of the largest score; not above 0 where it does not. None where nothing
        is known.

        Two comparisons must come out right: the start token's score with the one asked for, and
        with its best rival. The latter two are off by `lead.rounding` together. The start token's
        own score counts twice: in a dimension that no rotation turns it is one product, off by less
        than 2 u. In the slowest pair it is off like any other, and falls by `slow_turn` with the
        distance.
        """
        lead = self.place_lead(tokens)
        if lead is None or self.part.rotation is None or (self.choice and self.choice.topk < 2):
            return None
        # the start token's key and the payload of the others are apart in a latent too
        if self.content_dims and self.head.has_room(1, payload):
            # a norm rounds both numbers of its product once more
            units = 8 if self.part.rounded_again else 4
            return (lead.gap - lead.rounding - units * 2.0 ** -DIGITS[self.head.format]) / 2
        if self.part.normed or self.choice is not None:
            # a key in one pair alone comes out of a norm longer than in all pairs
            return None
        return (lead.gap - 2 * lead.rounding - slow_turn(self.part.rotation, tokens)) / 2

    def flags_carry(self, tokens: int) -> bool:
        """Whether the last token can tell flagged tokens from others at any distance: in a
        dimension that no rotation turns, or in the slowest pair while its cosine stays above 3/4.
        """
        if self.content_dims:
            return True
        return (
            self.architecture.positions in ("embedded", "none")
            and self.part.rotation is not None
            and self.choice is None
            and slow_turn(self.part.rotation, tokens) < 0.25
        )


def counted_tokens(architecture: Architecture, index: int) -> int:
    """How many tokens the recurrent layers before layer `index` tell apart by counting.

    The first counts all tokens, and hands on what its format resolves: of t tokens, at most
    ceil(t / 2^bits) in a row look alike. The next counts from the start of such a run, and so on
    (docs/theory.md, "Counting").
    """
    _, bits = architecture.counted_before[index]
    return min(1 << min(bits, 64), MOST_COUNTED) if bits else 0


def averaging(architecture: Architecture, index: int, tokens: int) -> tuple[int, ...]:
    """The full layers before layer `index` whose equal weights tell so many tokens their places,
    behind a start token; none where none are known.

    The average of what the start token alone holds is 1 / (t + 1) after t tokens. In fp32 all of
    these differ. In bf16 at most t / 128 + 2 in a row are alike, and a second layer averages over
    these and the start token: one channel for every 96 tokens tells how many there are.
    """
    found: tuple[int, ...] = ()
    alike = tokens // 128 + 2
    bits = bits_of(128 * bits_of(tokens + 1) + 1)
    for layer, part in architecture.equal_weights if tokens <= MOST_COUNTED else ():
        if layer >= index:
            break
        if part.format in WIDE:
            return (layer,)
        room = part.head_dim > bits and alike <= STEP * min(part.dv, MOST_CHANNELS)
        if found and found[0] < layer and room:
            return (*found, layer)
        found = found or (layer,)
    return ()


def averages(counting: tuple[int, ...]) -> str:
    """That these layers tell places."""
    layers = counted_as(len(counting), "full layer")
    divided = "; sums divide once, in the end" if counting[1:] else ""
    return f"{BY_AVERAGES} of {layers} before it, behind {START_TOKEN}{divided}"


def full_heads(architecture: Architecture, *, choosing: bool = False) -> Iterator[Attending]:
    """The full attention, latent attention included, in formats that keep scores exact; and what
    reads tokens that an indexer chooses, where one token is asked for at a time.
    """
    for index in architecture.reading:
        for part in architecture.layers[index]:
            choice = part.token_choice if choosing else None
            head = part.retrieval_head if choice is None else choice.head
            if head is not None:
                yield Attending(architecture, index, part, head, None, choice)


def finders(
    architecture: Architecture,
    *,
    address: int,
    payload: int,
    tokens: int,
    named: bool = False,
    choosing: bool = False,
) -> list[tuple[Attending, Places]]:
    """The full layers whose heads find one of so many tokens, and how."""
    found: list[tuple[Attending, Places]] = []
    same: dict[int, Places] = {}
    for one in full_heads(architecture, choosing=choosing):
        how = same.get(id(one.part)) or one.places(
            address=address, payload=payload, tokens=tokens, named=named
        )
        if how is not None:
            found.append((one, how))
            # what is counted depends on the layers before
            if not how.counted:
                same[id(one.part)] = how
    return found


def heads_in_turn(
    architecture: Architecture, *wanted: Callable[[Attending], Any], choosing: bool = True
) -> list[tuple[Attending, Any]] | None:
    """The first full layers that do what is wanted, in turn, and how; None where there are none."""
    found: list[tuple[Attending, Any]] = []
    for one in full_heads(architecture, choosing=choosing):
        behind = not found or one.layer > found[-1][0].layer
        if behind and len(found) < len(wanted) and (how := wanted[len(found)](one)):
            found.append((one, how))
    return found if len(found) == len(wanted) else None


def down(share: float) -> str:
    """A share rounded down to four digits after the point."""
    return f"{int(max(share, 0.0) * 10_000) / 10_000:.4f}"


def up(share: float) -> str:
    """A share rounded up to four digits after the point."""
    return f"{(int(share * 10_000) + 1) / 10_000:.4f}"
