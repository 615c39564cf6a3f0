"""How many maps of a few points layers multiply at a time: what they fetch, and what MLPs make of
it (theory.md, section 12, Theorem S).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from math import ceil
from typing import NamedTuple

from separatrix.core.numbers.formats import DIGITS
from separatrix.stacks.architecture import Architecture
from separatrix.stacks.architecture.weights import Mlp
from separatrix.stacks.mechanisms import Window
from separatrix.stacks.mechanisms.base import ATTENTION, EXACT_FORMATS
from separatrix.theory.search.reals import ln
from separatrix.theory.solves.places import BY_ROTATIONS, Attending, counted_tokens, full_heads
from separatrix.theory.solves.room import EMBEDDED, bits_of

ASSUMED_WIDTH = 4
"""Units of an MLP over the width of attention heads, where no file says how many there are."""
HIGHEST_SCORE = {"fp16": 2.0**15}
"""Scores up to which leads are worked out, in formats that end early."""


class Reader(NamedTuple):
    """A layer that fetches words by their offsets."""

    layer: int
    heads: int
    """Words that it fetches at most: by one head each, or by as many channels as a word has."""
    window: int | None
    """Tokens that it sees; None where it sees all."""
    format: str
    rests_on: str
    """Where its places come from; "" for a convolution, which needs none."""
    score: int
    """The largest score, so that all other tokens together weigh less than the last bit of fp32."""


class Step(NamedTuple):
    """A layer, and how many words every token multiplies there."""

    reader: Reader
    words: int


def mlp_of(architecture: Architecture) -> Mlp:
    """The MLPs of a stack; assumed where no file tells them."""
    parts = [part for layer, _ in architecture.counted() for part in layer]
    heads = [part.inner_width for part in parts if part.group in ATTENTION]
    widest = max(heads or [part.inner_width for part in parts])
    return architecture.mlp or Mlp(max(1, ASSUMED_WIDTH * widest), stated=False)


def numbers_of(mlp: Mlp) -> dict[str, int]:
    """The MLPs as numbers of a verdict, since specs do not hold them."""
    return {
        "width": mlp.width,
        "width_stated": int(mlp.stated),
        "mlp_in_every_layer": int(mlp.every),
    }


def cost(points: int, words: int, format: str) -> int:
    """Units with which one ReLU layer multiplies so many maps of so many points, exactly: by an AND
    for every path of one-hot images; or by numbers, whose sums reach points^words.
    """
    if words < 2:
        return 0
    found = [points ** (words + 1)]
    if words == 2:
        found.append(2 * points**2)
    if points**words <= 1 << DIGITS[format]:
        found.append(2 * sum(points**j for j in range(2, words + 1)) + points)
    return min(found)


def at_once(points: int, width: int, mlps: int, format: str) -> int:
    """R: how many maps so many MLPs, one after the other, multiply: as a tree, whose last level is
    made first here.
    """
    after = 1
    for _ in range(mlps):
        words = 1
        while cost(points, words + 1, format) * after <= width:
            words += 1
        if words == 1:
            break
        after *= words
    return after


def readers(
    architecture: Architecture,
    points: int,
    letters: int,
    *,
    blank: bool,
    convolutions: bool = False,
) -> dict[int, Reader]:
    """The layers in which every token finds any of so many letters by its offset. `blank`: a start
    token takes the weight where there is none; like a token that asks, it is told by a tag, and not
    by its place. Convolutions read zeros there: the identity, where a word has a
    number for each point that it moves.
    """
    found: dict[int, Reader] = {}
    for one in seeing_heads(architecture):
        seen = min(letters, one.window or letters)
        placed = one.places(address=bits_of(letters) + 1, payload=points**2, tokens=letters)
        if placed is None:
            continue
        score = 0
        form = one.head.format
        if placed.rests_on.startswith(BY_ROTATIONS):
            margin = _margin(one, points, seen, blank=blank)
            score = ceil((ln(seen + 1) + 17) / margin) if margin > 0 else 0
            if not 0 < score <= HIGHEST_SCORE.get(form, 2.0**24):
                continue
        heads, index = one.part.sizes()["heads"], one.layer
        if index not in found or found[index].heads < heads:
            found[index] = Reader(index, heads, one.window, form, placed.rests_on, score)
    for index, layer in enumerate(architecture) if convolutions else ():
        part = max(layer, key=lambda part: part.brought)
        if words := part.brought // points**2:
            reader = Reader(index, words, part.sizes()["conv"], part.format, "", 0)
            found.setdefault(index, reader)
    return found


def slotted(architecture: Architecture, points: int, letters: int) -> dict[int, Reader]:
    """The recurrences whose tokens keep numbers or overwrite them as their places say, for so many
    letters: what a convolution brings of the token before is a finished word. In the gates' reach
    stand three flags beside each word: write it, keep it, clear it.
    """
    found: dict[int, Reader] = {}
    for index, layer in enumerate(architecture):
        words = max(part.slotted for part in layer) // (points**2 + 3)
        if architecture.positions == "embedded":
            rests_on = EMBEDDED
        elif letters <= counted_tokens(architecture, index):
            rests_on = f"positions: counted by recurrent layers before, up to {letters:,} tokens"
        else:
            continue
        if words:
            found[index] = Reader(index, words, None, layer[0].format, rests_on, 0)
    return found


def seeing_heads(architecture: Architecture) -> Iterator[Attending]:
    """Heads that see all tokens, and those that see the last ones."""
    yield from full_heads(architecture)
    for index, layer in enumerate(architecture):
        for part in layer:
            if not isinstance(part, Window) or part.shared or not part.free_scores:
                continue
            if part.formats <= EXACT_FORMATS:
                yield Attending(architecture, index, part, part.head, part.size)


def _margin(one: Attending, points: int, tokens: int, *, blank: bool) -> float:
    """By how much, as a share of the largest score, the token asked for leads by its rotation."""
    if blank:
        return one.blank_margin(points**2, tokens) or 0.0
    lead = one.place_lead(tokens)
    return 0.0 if lead is None else lead.gap - lead.rounding


def steps(
    architecture: Architecture, found: Mapping[int, Reader], points: int, mlp: Mlp, letters: int
) -> tuple[list[Step], int]:
    """The layers that multiply, in their order, until every token holds the product of so many
    letters, or no layer is left; and how many letters that is.
    """
    layers = [found[index] for index in sorted(found)]
    borders = [*sorted(found), len(architecture)]
    behind = [
        int(mlp.every or any(not part.mixes_tokens for part in layer)) for layer in architecture
    ]

    def words(at: int, until: int, product: int) -> int:
        """How many words layer `at` multiplies in the MLPs before layer `until`."""
        mlps = sum(behind[borders[at] : borders[until]])
        made = at_once(points, mlp.width, mlps, layers[at].format)
        return min(made, _fetched(layers[at], product))

    taken: list[Step] = []
    product = 1
    at = 0
    while at < len(layers) and product < letters:
        until = at + 1
        here = words(at, until, product)
        # a window that multiplies less than the MLP behind it, as one more of this layer, is passed
        while until < len(layers) and layers[until].window is not None:
            longer = words(at, until + 1, product)
            if longer < here * words(until, until + 1, product * here):
                break
            until += 1
            here = longer
        if here > 1:
            taken.append(Step(layers[at], here))
            product *= here
        at = until
    return taken, product


def _fetched(reader: Reader, product: int) -> int:
    seen = 1 + reader.heads
    return seen if reader.window is None else min(seen, 1 + (reader.window - 1) // product)
