"""Theorem S: layers that read multiply what they fetch, so that products of any finite monoid are
followed up to the product of their fan-ins: how many maps of a few points layers fetch at a time,
and what MLPs make of them (theory.md, section 12).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from functools import lru_cache
from itertools import groupby
from math import ceil, inf
from operator import itemgetter
from typing import NamedTuple

from separatrix.core.numbers.formats import DIGITS
from separatrix.stacks.architecture import Architecture
from separatrix.stacks.architecture.weights import Mlp
from separatrix.stacks.mechanisms import Full, Window
from separatrix.stacks.mechanisms.base import ATTENTION, EXACT_FORMATS
from separatrix.tasks import Task
from separatrix.tasks.tracking import tracked
from separatrix.theory.base import number
from separatrix.theory.search.reals import ln
from separatrix.theory.solves.places import (
    BY_AVERAGES,
    BY_ROTATIONS,
    COUNTED,
    Attending,
    counted_tokens,
    full_heads,
)
from separatrix.theory.solves.room import (
    EMBEDDED,
    LAST,
    START,
    WIDE,
    Room,
    bits_of,
    each,
)
from separatrix.theory.solves.states import SATURATED
from separatrix.theory.words import counted_as

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


@lru_cache(maxsize=1 << 12)
def at_once(points: int, width: int, mlps: int, format: str) -> int:
    """R: how many maps so many MLPs in turn multiply: as a tree, its last level made first here."""
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
        heads, index = one.asks, one.layer
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
        part = max(layer, key=lambda part: part.slotted)
        words = part.slotted // (points**2 + 3)
        if architecture.positions == "embedded":
            rests_on = EMBEDDED
        elif letters <= counted_tokens(architecture, index):
            rests_on = COUNTED.format(letters)
        else:
            continue
        if words:
            found[index] = Reader(index, words, None, part.format, rests_on, 0)
    return found


def seeing_heads(architecture: Architecture) -> Iterator[Attending]:
    """Heads that see all tokens, and those that see the last ones."""
    yield from full_heads(architecture, choosing=True)
    for (index, _), part in each(architecture):
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

    Each multiplies as many words as it can. Where that leaves a later window too few, fewer words
    at once may reach further.
    """
    taken, product = _steps(architecture, found, points, mlp, letters)
    windows = any(reader.window is not None for reader in found.values())
    for most in range(max((step.words for step in taken), default=0) - 1, 1, -1) if windows else ():
        if product >= letters:
            break
        fewer = _steps(architecture, found, points, mlp, letters, most)
        taken, product = max((taken, product), fewer, key=itemgetter(1))
    return taken, product


def _steps(
    architecture: Architecture,
    found: Mapping[int, Reader],
    points: int,
    mlp: Mlp,
    letters: int,
    most: float = inf,
) -> tuple[list[Step], int]:
    """The same where no layer multiplies more words than `most`."""
    layers = [found[index] for index in sorted(found)]
    borders = [*sorted(found), len(architecture)]
    behind = [
        int(mlp.every or any(not part.mixes_tokens for part in layer)) for layer in architecture
    ]

    def words(at: int, until: int, product: int) -> int:
        """How many words layer `at` multiplies in the MLPs before layer `until`."""
        mlps = sum(behind[borders[at] : borders[until]])
        made = at_once(points, mlp.width, mlps, layers[at].format)
        return int(min(made, fetched(layers[at], product), most))

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


def fetched(reader: Reader, product: int) -> int:
    """How many words a token has, with its own, of so many letters each."""
    seen = 1 + reader.heads
    return seen if reader.window is None else min(seen, 1 + (reader.window - 1) // product)


DIVIDES_LAST = (
    "weights of exp(0) = 1 are summed up in fp32 and divide once, in the end, as in FlashAttention;"
    " a softmax that is written out first rounds every weight"
)
SPACING = 256
"""Counts that one output in bf16 tells apart."""
MOST_HALF = 1 << 20
"""Letters up to which sums of the thresholds of bf16 are exact in fp32."""


def products(architecture: Architecture, task: Task) -> Room | None:
    moved = tracked(task)
    if moved is None:
        return None
    points = moved.things
    n = task.length

    def multiplied(found: dict[int, Reader], said: str) -> Room | None:
        return _multiplied(architecture, n, points, found, said)

    def counted() -> Room | None:
        return _counted(architecture, n, moved.added)

    found = readers(architecture, points, n, blank=True)
    averaged = any(reader.rests_on.startswith(BY_AVERAGES) for reader in found.values())
    return (
        (counted() if averaged else None)
        or multiplied(found, START)
        or counted()
        # which bring every token the same letters, also one that asks
        or multiplied(readers(architecture, points, n, blank=True, convolutions=True), START)
        or multiplied(slotted(architecture, points, n), SATURATED)
        or multiplied(readers(architecture, points, n, blank=False), LAST)
    )


def _multiplied(
    architecture: Architecture, n: int, points: int, found: dict[int, Reader], said: str
) -> Room | None:
    """By what these layers fetch of n letters; `said` tells the form."""
    mlp = mlp_of(architecture)
    first = said != LAST
    # half of the units multiply for who asks, whose word no head may read in place of a letter's
    units = mlp if first else replace(mlp, width=mlp.width // 2)
    taken, product = steps(architecture, found, points, units, n if first else n + 1)
    if product < n + (not first):
        return None
    sentence = (
        f"{_layers(taken, architecture)} multiply {_in_turn([step.words for step in taken])}, which"
        f" is enough for {number(product - (not first))} letters; "
        + ("every token holds the product so far" if first else "a token behind them asks")
    )
    numbers = {
        "points": points,
        **numbers_of(mlp),
        "letters": product - (not first),
        "every_prefix": int(first),
        "layers": len(taken),
        "score": max(step.reader.score for step in taken),
    }
    for place, step in enumerate(taken, 1):
        numbers |= {f"layer_{place}": step.reader.layer, f"maps_{place}": step.words}
    sources = dict.fromkeys(step.reader.rests_on for step in taken if step.reader.rests_on)
    return Room(numbers, (*sources, said, width_said(mlp)), sentence)


def _counted(architecture: Architecture, n: int, added: int) -> Room | None:
    """By the sum c of n letters, each of which adds so much at most. In fp32 the steps of c/n are
    larger than the last bit: that of numbers from 2^k on is 2^(k-23), and n 2^k <= n added < 2^23.
    So are those of c fl(1/n), as FlashAttention divides.
    """
    if not added or architecture.positions not in ("embedded", "none"):
        return None
    for (index, _), part in each(architecture):
        if not isinstance(part, Full) or not part.counts:
            continue
        channels = part.kv * part.dv
        if part.format in WIDE:
            most = ((1 << DIGITS["fp32"] - 1) - 1) // added
            said = f"fp32 tells c/n apart up to {most:,}"
        elif part.format == "bf16" and added == 1:
            most = MOST_HALF if channels >= channels_needed(n) else 0
            said = f"{channels:,} value channels in bf16 tell {n:,} counts apart"
        else:
            continue
        if n <= most:
            return Room(
                {"layer": index, "channels": channels},
                (DIVIDES_LAST, *([START] if part.format == "bf16" else [])),
                f"one full layer (layer {index + 1}) of equal weights counts: {said}",
            )
    return None


def channels_needed(n: int) -> int:
    """How many value channels in bf16 tell every count of n bits from the next, behind a start
    token.

    N >= n is a multiple of 256, and of 2^(d+7) where it is above 2^16, at most 2^(d+16). Channel j
    holds c - T_j, T_j = 128 + 256 j = N b_j + s_j: b_j, a multiple of 2^-d nearest to T_j / N, goes
    with every letter and s_j, at most 256 times 128, with the start token: both have eight digits,
    and sums, multiples of 2^-d below N, are exact in fp32. For n bits the same numbers hold
    c - T_j + (N - n) b_j: no two neighbours are further than 256 apart, and the last is n - 128 at
    least. So of every c and c + 1 one is less than 128 from some threshold, by 2^-d at least.
    Divided by n + 1 and rounded these two are apart: one unit in the last place is below 1/(n+1)
    where neither passes a power of two, and below 2/3 of it where one does.
    """
    unit = max(SPACING, 128 << max(0, (n - 1).bit_length() - 16))
    return -(-n // unit) * unit // SPACING


def width_said(mlp: Mlp) -> str:
    where = "in every layer" if mlp.every else "in the layers that mix no tokens"
    if mlp.stated:
        return f"an MLP of {mlp.width:,} units {where} (the file)"
    return (
        f"an MLP of {mlp.width:,} units {where} (assumed: {ASSUMED_WIDTH} times the heads' width)"
    )


def _in_turn(used: list[int]) -> str:
    runs = [words for words, _ in groupby(used)]
    if len(runs) == 1:
        return f"{runs[0]} maps{' each' if len(used) > 1 else ''}"
    first, *later = runs
    return f"{first} maps each, then {', '.join(map(str, later))}"


def _layers(taken: list[Step], architecture: Architecture) -> str:
    brought = sum(not step.reader.rests_on for step in taken)
    windows = sum(step.reader.window is not None for step in taken) - brought
    kinds = ((windows, "window"), (brought, "short convolution"))
    of = ", ".join(counted_as(number, kind) for number, kind in kinds if number)
    return f"{counted_as(len(taken), 'layer')} of {len(architecture)}{f' ({of})' if of else ''}"
