"""States that hold the whole answer: permutations by reflections, brackets by slots, and any total
task by the automaton of its prefixes' classes.
"""

from __future__ import annotations

from dataclasses import dataclass

from separatrix.core.numbers.formats import DIGITS
from separatrix.stacks.architecture import Architecture, Place
from separatrix.stacks.mechanisms import Mechanism
from separatrix.tasks import Dyck, Permutation, Task
from separatrix.tasks.lookups import Lookup
from separatrix.tasks.tracking import Tracked, tracked
from separatrix.theory.base import counted, number
from separatrix.theory.solves.room import Room, bits_of, each, in_turn
from separatrix.theory.words import SHARED, counted_as

MOST_THINGS = 128
"""Largest number of things: what is read of them stays below 2^8, which bfloat16 holds."""
SATURATED = SHARED["saturated"]
"""What the construction takes for granted of the arithmetic."""
TRACKED = ("parity", "modular", "permutation", "group")
TOTAL = ("eva", "index", "equality", "disjointness", *TRACKED)
"""Names of tasks that allow every continuation after every prefix, and that tell no more prefixes
apart at any length than `prefix_classes` says.
"""


def state_tracking(architecture: Architecture, task: Task) -> Room | None:
    moved = tracked(task)
    if moved is None:
        return None
    placed = architecture.positions == "embedded"
    found = [
        (index, part, room)
        for (index, _), part in each(architecture)
        if (room := room_for(moved, task, part, placed=placed)) is not None
    ]
    if not found:
        return None
    # the first, and rather one that `construct` writes weights into
    bare = (one for one in found if one[1].turning is not None and one[1].turning.bare)
    index, part, room = next(bare, found[0])
    said = (
        f"one {part.title} layer (layer {index + 1}) answers every prompt of every length:"
        f" {room.said}"
    )
    numbers = {
        "layer": index,
        "things": moved.things,
        "reflections": room.reflections,
        "key_numbers": room.keys,
        "value_numbers": room.values,
        "heads": room.heads,
    }
    return Room(numbers, (SATURATED,), said)


@dataclass(frozen=True, kw_only=True)
class Turns:
    """What a construction takes of a layer."""

    form: str
    """Which construction: "flip" for a group of two elements, "reflections", or "swaps" for
    exchanges after an arbitrary first token.
    """
    keys: int
    values: int
    reflections: int
    said: str
    heads: int = 1


def room_for(moved: Tracked, task: Task, part: Mechanism, *, placed: bool) -> Turns | None:
    """The cheapest construction that a layer has room for; None where it has none.

    `placed`: tokens know whether they come first, by embeddings of positions.
    """
    turning = part.turning
    if turning is None:
        return None
    if moved.order == 2:
        said = "a reflection in one key dimension takes its state s to 1 - s"
        return Turns(form="flip", keys=1, values=1, reflections=1, said=said)
    things = moved.things
    if not turning.bare or turning.key_dim < 2 * things or things > MOST_THINGS:
        return None
    dims = f"keys of {number(2 * things)} of {number(turning.key_dim)} dimensions"
    values = len(moved.followed)
    if moved.swaps <= turning.reflections and values <= turning.value_dim:
        used = counted_as(moved.swaps, "reflection")
        said = f"{used} per token of {turning.reflections:,}, {things:,} things in {dims}"
        return Turns(
            form="reflections", keys=2 * things, values=values, reflections=moved.swaps, said=said
        )
    swapped = isinstance(task, Permutation) and task.shift == "swaps" and placed
    # a head of its own carries the first token's permutation, each thing's place as a unit vector
    if swapped and turning.heads >= 2 and turning.value_dim >= things * things:
        return Turns(
            form="swaps",
            keys=2 * things,
            values=things * things,
            reflections=1,
            heads=2,
            said=(
                "prompts as this shift draws them, one reflection per token, and a second head that"
                f" carries the first token; {things:,} things in {dims}"
            ),
        )
    return None


@dataclass(frozen=True, kw_only=True)
class Needed:
    """What the construction takes for one task."""

    slots: int
    """Open brackets that can still be closed, at most."""
    bits: int
    """Of a kind of brackets."""
    tokens: int

    @classmethod
    def of(cls, task: Dyck) -> Needed:
        return cls(slots=min(task.D, task.n // 2), bits=bits_of(task.k), tokens=task.n)


def brackets(architecture: Architecture, task: Dyck) -> Room | None:
    needed = Needed.of(task)
    found = stacked(architecture, needed)
    if found is None:
        return None
    counter, holder, flag = (layer for layer, _ in found)
    numbers = {"counter": counter, "stack": holder, "flag": flag}
    numbers |= {"slots": needed.slots, "bits_of_a_kind": needed.bits}
    return Room(numbers, (SATURATED,))


def stacked(architecture: Architecture, needed: Needed) -> tuple[Place, ...] | None:
    """Where counter, stack and flag find room; None where they do not."""

    def exact(part: Mechanism) -> bool:
        return all(needed.tokens <= most_counted(name) for name in part.formats)

    return in_turn(
        each(architecture),
        lambda part: part.adds_up and exact(part),
        lambda part: _holds(part, needed.slots, needed.bits) and exact(part),
        lambda part: _holds(part, 1, 1) and exact(part),
    )


def most_counted(name: str) -> int:
    """The most tokens that the construction counts in a format."""
    return (1 << DIGITS[name]) // 4 - 2 if name in DIGITS else 0


def _holds(part: Mechanism, places: int, numbers: int) -> bool:
    slots = part.slots
    return slots is not None and slots.places >= places and slots.numbers >= numbers


def tightness(architecture: Architecture, task: Task) -> Room | None:
    needed, rules = automaton_of(task)
    for (index, _), part in each(architecture):
        machine = part.machine
        if machine is not None and machine.bits >= needed and machine.rules >= rules:
            return Room({"layer": index, "bits": needed, "rules": rules})
    return None


def automaton_of(task: Task) -> tuple[int, int]:
    """Bits of the automaton of a total task, and its rules: the ids at every place, added up."""
    tokens = task.length * task.vocabulary
    rules = task.n * (task.V + 1) if isinstance(task, Lookup) else tokens
    return max(1, counted(task).ceil_log2(), (task.answers - 1).bit_length()), rules
