"""Contents compared: pairs that cancel, strings alike or near, symbols counted, sets averaged; and
nested brackets by the depths that full layers count.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from math import ceil, inf

from separatrix.stacks.architecture import Architecture
from separatrix.stacks.mechanisms import Full, Mechanism
from separatrix.tasks import QSA, Counting, Dyck, Equality, Neighbour, TwoSum
from separatrix.theory.solves.places import (
    NEEDS_NONE,
    Attending,
    Places,
    full_heads,
    heads_in_turn,
)
from separatrix.theory.solves.products import DIVIDES_LAST
from separatrix.theory.solves.recall import Told, digit_layers, told_places
from separatrix.theory.solves.room import EMBEDDED, START, TAGS, WIDE, Room, bits_of
from separatrix.theory.words import Words, lack

MATCH_LIMIT = {"fp64": 130_000_000, "fp32": 5_754, "fp16": 63, "bf16": 22}
"""Largest M that the three-dimensional embedding separates, by format (theory.md, section 6)."""
MOST_TIED = {"fp64": 1 << 18, "fp32": 2351, "fp16": 25, "bf16": 7}
"""Keys that may tie at most, start token included, by format: up to here the logits are proved to
lead (constructions/counting.py).
"""
MOST_SUMMED = 1 << 19
"""Largest q^3 V^2 for which rounding of the steps is shown to leave a lead in fp32: up to q steps
are added up, each of numbers up to q V times V.
"""


def match2(architecture: Architecture, task: TwoSum) -> Room | None:
    for one in full_heads(architecture) if task.form == "query" else ():
        part, head = one.part, one.head
        # the value is 0 at the last token, which needs its place
        placed = architecture.positions == "embedded"
        # what a norm of queries and keys, or of a latent, makes of cosines is not worked out
        free = placed and not part.normed and head.latent is None
        most = MATCH_LIMIT[head.format]
        dims = bits_of(task.M) + TAGS
        if free and most >= task.M and one.compares(3):
            dims, rests_on = 3, EMBEDDED
        elif one.compares(dims):
            rests_on = NEEDS_NONE
        else:
            continue
        return Room({"dimensions": dims, "layer": one.layer}, (rests_on, START))
    return None


def pairs(architecture: Architecture, task: TwoSum) -> Room | None:
    bits = bits_of(task.M)
    layers = heads_in_turn(
        architecture,
        lambda one: one.compares(bits + TAGS),
        lambda one: one.flags_carry(task.length),
    )
    if layers is None or task.form != "decision":
        return None
    first, second = (one.layer for one, _ in layers)
    return Room({"value_bits": bits, "first": first, "second": second}, (NEEDS_NONE, START))


def equality(architecture: Architecture, task: Equality) -> Room | None:
    address = bits_of(task.n)
    n = task.length

    def fetches(one: Attending) -> Places | None:
        how = one.places(address=address + TAGS, payload=1, tokens=n)
        # tokens of the first string have no partner: a start token must take their weight
        return how if how and (how.address or one.blank_beside(1, n)) else None

    layers = heads_in_turn(architecture, fetches, lambda one: one.flags_carry(n))
    if layers is None:
        return None
    (first, second), found = (one.layer for one, _ in layers), layers[0][1]
    granted = (found.rests_on, *[START] * (not found.address))
    return Room(found.numbers(address, first=first, second=second), granted)


def neighbour(architecture: Architecture, task: Neighbour) -> Room | None:
    address = bits_of(task.n + 1)
    compared, labels = task.d + TAGS, bits_of(task.V)

    def compares(one: Attending) -> bool:
        bare = not one.part.normed and one.head.latent is None and one.compares(compared)
        return bare and one.head.has_room(compared, labels)

    layers = heads_in_turn(
        architecture,
        lambda one: one.places(address=address + TAGS, payload=task.d, tokens=task.length),
        compares,
        choosing=False,
    )
    if layers is None:
        return None
    (first, second), found = (one.layer for one, _ in layers), layers[0][1]
    numbers = found.numbers(address, first=first, second=second, compared=compared)
    return Room(numbers, (found.rests_on,))


def counting(architecture: Architecture, task: Counting) -> Room | None:
    tied = task.n + 1 + (task.form == "queried")
    bits = bits_of(task.V)
    for one in full_heads(architecture):
        index, part, head = one.layer, one.part, one.head
        if not isinstance(part, Full) or part.normed or tied > MOST_TIED[head.format]:
            continue
        if head.format not in WIDE and part.accumulator_bits < 32:
            continue
        if one.content_dims <= bits or not head.has_room(bits + 1, 1):
            continue
        return Room({"symbol_bits": bits, "tied": tied, "layer": index}, (NEEDS_NONE, START))
    return None


def qsa(architecture: Architecture, task: QSA) -> Room | None:
    if task.q**3 * task.V**2 > MOST_SUMMED or task.length > 1 << 16:
        return None
    address, payload, number = bits_of(task.n), bits_of(task.V), bits_of(task.sets)

    def holds(one: Attending, keys: int, values: int) -> bool:
        plain = one.head.format in WIDE and not (one.part.normed or one.head.latent or one.choice)
        return plain and one.still(keys, values)

    layers = heads_in_turn(
        architecture,
        lambda one: holds(one, address + TAGS, payload),
        lambda one: holds(one, number + TAGS, 1),
    )
    if layers is None:
        return None
    first, second = (one.layer for one, _ in layers)
    numbers = {"address_bits": address, "payload_bits": payload, "set_bits": number}
    return Room(numbers | {"first": first, "second": second})


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


def levels(architecture: Architecture, task: Dyck) -> Room | None:
    found = by_levels(architecture, task)
    return found if isinstance(found, Room) else None


def by_levels(architecture: Architecture, task: Dyck) -> Room | Words:
    tokens = task.n + 1
    missing = lack("places are not told", ": no layers are shown to tell tokens theirs")
    rooms = list[Room]()
    for known in told_places(architecture, tokens):
        if known.many < tokens:
            continue
        free = (one for one in full_heads(architecture) if one.layer not in known.layers)
        counting = counters(((one.layer, one.part) for one in free), task.n)
        if not counting:
            missing = lack("too few layers count", f" the open ones of {task.n:,} by averages")
            continue
        more = ", or those and the digits of a place, in turn behind layers that count"
        missing = lack("depths are not compared", more)
        for searched in searching(architecture, max(*counting, known.behind), task):
            later = (one for one in full_heads(architecture) if one.layer > searched[-1])
            last = next((one.layer for one in later if one.flags_carry(tokens)), None)
            if last is not None:
                rooms.append(_room(task, known, counting, searched, last))
    return min(rooms, key=lambda room: room.numbers["layers"], default=missing)


def _room(task: Dyck, known: Told, counting: list[int], searched: list[int], last: int) -> Room:
    layers = known.taken + len({*counting, *searched, last})
    bits = _depth_bits(task)
    numbers = {"depth_bits": bits, "layers": layers, "counter": counting[0], "flag": last}
    return Room(numbers, (*known.rests_on, DIVIDES_LAST, START))


def _depth_bits(task: Dyck) -> int:
    """Of a depth from 1 on, or 0."""
    return bits_of(min(task.D, task.n // 2) + 1)


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
