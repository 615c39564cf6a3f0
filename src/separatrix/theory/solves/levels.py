"""Nested brackets by their depths, which full layers count: those of one depth open and close in
turn, so that each kind is closed as often as it was opened, or was opened last where one closes.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from math import ceil, inf
from typing import NamedTuple

from separatrix.stacks.architecture import Architecture
from separatrix.stacks.mechanisms import Full, Mechanism
from separatrix.tasks import Dyck
from separatrix.theory.solves.places import COUNTED, counted_tokens, full_heads
from separatrix.theory.solves.products import DIVIDES_LAST
from separatrix.theory.solves.recall import digit_layers, telling, told_places
from separatrix.theory.solves.room import START, TAGS, WIDE, Room, bits_of
from separatrix.theory.words import Words, lack

MOST_EXACT = 1 << 23
"""Tokens of which fp32 adds up numbers of -1, 0 and 1, or averages them, and tells all sums apart.
"""
APART = 192
"""Counts that one output in bf16 tells apart: its value stays below 96 shares of a token, of which
one unit in the last place is at most three quarters of one.
"""
PADDED = 5
"""Value dimensions of a head that keep all values equally long, where a norm stands behind them as
in Gemma 4: four squares fill up to any integer.
"""


class Placed(NamedTuple):
    """How every token comes to know its place."""

    behind: int
    """The last layer that this takes, -1 for none."""
    layers: tuple[int, ...]
    """Those that tell places, and do nothing else."""
    many: int
    said: str
    rests_on: tuple[str, ...]


def levels(architecture: Architecture, task: Dyck) -> Room | None:
    found = by_levels(architecture, task)
    return found if isinstance(found, Room) else None


def by_levels(architecture: Architecture, task: Dyck) -> Room | Words:
    tokens = task.n + 1
    missing = lack("places are not told", ": no layers are shown to tell tokens theirs")
    rooms = list[Room]()
    for known in placed(architecture, tokens):
        free = (one for one in full_heads(architecture) if one.layer not in known.layers)
        counting = counters(((one.layer, one.part) for one in free), task.n)
        if not counting:
            others = "other " * bool(known.layers)
            more = f", by averages of its {others}full ones, the open ones of {task.n:,} brackets"
            missing = lack("too few layers count", more)
            continue
        more = ", or those and the digits of a place, in turn behind layers that count"
        missing = lack("depths are not compared", more)
        for searched in searching(architecture, max(*counting, known.behind), task):
            later = (one for one in full_heads(architecture) if one.layer > searched[-1])
            last = next((one.layer for one in later if one.flags_carry(tokens)), None)
            if last is not None:
                rooms.append(_room(task, known, counting, searched, last))
    return min(rooms, key=lambda room: room.numbers["layers"], default=missing)


def _room(task: Dyck, known: Placed, counting: list[int], searched: list[int], last: int) -> Room:
    finds = f"layer {searched[0] + 1} adds up each kind's brackets of the same depth"
    if len(searched) > 1:
        finds = f"{len(searched)} look digit by digit for the latest one that opened at that depth"
    layers = known.many + len({*counting, *searched, last})
    counts = " and ".join(f"{layer + 1}" for layer in counting)
    counts = f"layers {counts} count" if len(counting) > 1 else f"layer {counts} counts"
    bits = _depth_bits(task)
    said = (
        f"{layers} layers solve it: {known.said}{counts} what is open, {finds} ({bits} bits), layer"
        f" {last + 1} looks for one that closes another kind"
    )
    numbers = {"depth_bits": bits, "layers": layers, "counter": counting[0], "flag": last}
    return Room(said, numbers, (*known.rests_on, DIVIDES_LAST, START))


def _depth_bits(task: Dyck) -> int:
    """Of a depth from 1 on, or 0."""
    return bits_of(min(task.D, task.n // 2) + 1)


def placed(architecture: Architecture, tokens: int) -> Iterator[Placed]:
    """How every token comes to know its place, each way that is known."""
    if architecture.positions not in ("embedded", "none"):
        return
    used, told, rests_on = told_places(architecture, tokens)
    if told >= tokens:
        said = f"{telling(used)}, " if used else ""
        yield Placed(max(used, default=-1), tuple(used), len(used), said, rests_on)
    for index in range(1, len(architecture)):
        if counted_tokens(architecture, index) >= tokens:
            many, _ = architecture.counted_before[index]
            yield Placed(
                index - 1, (), many, f"{many} recurrences count places, ", (COUNTED.format(tokens),)
            )
            return


def counters(full: Iterable[tuple[int, Mechanism]], n: int) -> list[int]:
    """The first full layers in which averages over the tokens so far tell how many of them open, at
    every place of n: in fp32 by one channel, in bf16 by many that each take off a share of the
    tokens and a number; none where there are too few.
    """
    found = dict[int, int]()
    for layer, part in full if n < MOST_EXACT else ():
        if isinstance(part, Full) and part.counts:
            if part.format in WIDE:
                return [layer]
            channels = part.kv * max(0, part.dv - PADDED) if part.format == "bf16" else 0
            if channels > found.get(layer, 0):
                found[layer] = channels
        if sum(found.values()) >= prefix_channels(n):
            return list(found)
    return []


def searching(architecture: Architecture, behind: int, task: Dyck) -> Iterator[list[int]]:
    """The layers that tell each bracket that closes whether the one that it closes is of its kind,
    each way that is known: a head that adds up what opened and closed at its depth, or heads that
    look for the digits of the latest place that opened there.
    """
    tokens, depth = task.n + 1, _depth_bits(task)
    for one in full_heads(architecture):
        # what a norm makes of a latent is added up in some order
        wide = one.sums_wide and one.head.latent is None
        if one.layer > behind and wide and one.still(depth + TAGS, task.k):
            yield [one.layer]
            break
    place, held = bits_of(tokens), depth + bits_of(tokens)
    found = digit_layers(architecture, behind, place, held, held + bits_of(task.k), tokens)
    if found:
        yield found


def prefix_channels(n: int) -> float:
    """How many value channels in bf16 tell the count c of every prefix of n tokens; infinite where
    none are known.

    Channel (i, r) adds up 1 - i/2^d for a token that opens, -i/2^d for one that closes, and -192 r
    for the start token: c - t i/2^d - 192 r after t tokens. The shares i/2^d lie at most n/2^d
    apart, and steps of 192 fill what lies between them: some channel is within 96 of 0. Sums are
    multiples of 2^-d below n + 192 R, so exact in fp32 while (n + 192 R) 2^d <= 2^24, in any order;
    values have eight digits at most.
    """
    found = list[int]()
    for d in range(8):
        most = ceil(n / (APART << (d + 1)))
        if (n + APART * most) << d <= 1 << 24 and most <= 85:
            found.append(((1 << d) + 1) * (2 * most + 1))
    return min(found, default=inf)
