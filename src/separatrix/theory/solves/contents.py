"""Contents compared: pairs that cancel, strings alike or near, symbols counted, sets averaged."""

from __future__ import annotations

from separatrix.stacks.architecture import Architecture
from separatrix.stacks.mechanisms import Full
from separatrix.tasks import QSA, Counting, Equality, Neighbour, TwoSum
from separatrix.theory.solves.places import (
    NEEDS_NONE,
    Attending,
    finders,
    full_heads,
    heads_in_turn,
)
from separatrix.theory.solves.room import EMBEDDED, START, TAGS, WIDE, Room, bits_of

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
            how = f"3 key dimensions, M = {task.M:,} of at most {most:,} in {head.format}"
        elif one.compares(dims):
            how = f"a bit code in {dims} of {head.head_dim} key dimensions"
            rests_on = NEEDS_NONE
        else:
            continue
        said = f"one full layer (layer {one.layer + 1}) solves it: {how}"
        return Room(said, {"dimensions": dims, "layer": one.layer}, (rests_on, START))
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
    first, second = layers
    said = (
        f"two layers solve it: layer {first + 1} flags tokens that an earlier one cancels"
        f" ({bits} value bits and {TAGS} tags in its keys), layer {second + 1} looks for a flag"
    )
    return Room(said, {"value_bits": bits, "first": first, "second": second}, (NEEDS_NONE, START))


def equality(architecture: Architecture, task: Equality) -> Room | None:
    address = bits_of(task.n)
    n = task.length
    fetching = (
        (one.layer, found)
        for one, found in finders(
            architecture, address=address + TAGS, payload=1, tokens=n, choosing=True
        )
        # tokens of the first string have no partner: a start token must take their weight
        if found.address or one.blank_beside(1, n)
    )
    first, found = next(fetching, (-1, None))
    later = (one for one in full_heads(architecture, choosing=True) if one.layer > first)
    second = next((one.layer for one in later if one.flags_carry(n)), None)
    if found is None or second is None:
        return None
    asked = f"the offset {task.n:,}"
    granted = (found.rests_on, START)
    if found.address:
        asked = f"{address} address bits and {TAGS} tags in its keys"
        granted = (found.rests_on,)
    said = (
        f"two layers solve it: layer {first + 1} fetches partners ({asked}), layer"
        f" {second + 1} looks for a difference"
    )
    return Room(said, found.numbers(address, first=first, second=second), granted)


def neighbour(architecture: Architecture, task: Neighbour) -> Room | None:
    address = bits_of(task.n + 1)
    fetching = finders(architecture, address=address + TAGS, payload=task.d, tokens=task.length)
    if not fetching:
        return None
    (first, found), *_ = ((one.layer, found) for one, found in fetching)
    compared, labels = task.d + TAGS, bits_of(task.V)
    second = next(
        (
            one.layer
            for one in full_heads(architecture)
            if one.layer > first
            and not one.part.normed
            and one.head.latent is None
            and one.compares(compared)
            and one.head.has_room(compared, labels)
        ),
        None,
    )
    if second is None:
        return None
    asked = f"{address} address bits and {TAGS} tags in its keys"
    said = (
        f"two full layers solve it: layer {first + 1} hands labels their strings"
        f" ({asked if found.address else 'the offset 1'}, {task.d} bits in its values), layer"
        f" {second + 1} compares {task.d} bits ({compared} key dimensions)"
    )
    numbers = found.numbers(address, first=first, second=second, compared=compared)
    return Room(said, numbers, (found.rests_on,))


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
        said = (
            f"one full layer (layer {index + 1}) solves it: {bits} bits of a symbol and a tag"
            f" of {head.head_dim} key dimensions; at most {tied:,} of"
            f" {MOST_TIED[head.format]:,} keys tie in {head.format}"
        )
        return Room(said, {"symbol_bits": bits, "tied": tied, "layer": index}, (NEEDS_NONE, START))
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
    first, second = layers
    said = (
        f"two full layers (layers {first + 1} and {second + 1}) solve it: {address} bits of a"
        f" place and {payload} of a value, then {number} bits of a set's number"
    )
    numbers = {"address_bits": address, "payload_bits": payload, "set_bits": number}
    return Room(said, numbers | {"first": first, "second": second})
