"""States that hold the whole answer: permutations by reflections, brackets by slots, and any total
task by the automaton of its prefixes' classes.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from separatrix.core.numbers.formats import DIGITS
from separatrix.stacks.architecture import Architecture, Place
from separatrix.stacks.mechanisms import Mechanism
from separatrix.tasks import (
    Disjointness,
    Dyck,
    Equality,
    Eva,
    Group,
    Modular,
    Parity,
    Permutation,
    Task,
)
from separatrix.tasks.tracking import Tracked, tracked
from separatrix.theory.base import counted, number
from separatrix.theory.solves.room import Construction, Room, bits_of
from separatrix.theory.words import counted_as

MOST_THINGS = 128
"""Largest number of things: what is read of them stays below 2^8, which bfloat16 holds."""
SATURATED = (
    "gates saturate: in float32 the sigmoid of 128 is 1 and that of -128 is 0, and the softplus of"
    " -128 is 0; in float64 those of 1,024"
)
"""What the construction takes for granted of the arithmetic."""
TOTAL = (Eva, Equality, Disjointness, Parity, Modular)
"""Tasks that allow every continuation after every prefix, and that tell no more prefixes apart at
any length than `prefix_classes` says.
"""


class StateTracking(Construction[Task]):
    key = "state-tracking"
    title = "one layer that reflects its state tracks permutations exactly"
    statement = (
        "With b = 2 a delta-rule update with a key of length 1 is a reflection: it exchanges two"
        " things i and j where the key is (e_i - e_j, e_i - e_j)/2, a key of length exactly 1. One"
        " DeltaNet, Gated DeltaNet, Gated DeltaProduct or KDA layer with negative eigenvalues"
        " follows every rearrangement of K things that is a product of at most as many exchanges as"
        " a token has updates: all of S_K with K - 1, the cyclic group of order m with the sum of q"
        " - 1 over the prime powers q of m, parity and every group of two elements with one. It"
        " answers every prompt of every length, and no number in it is ever rounded. Exchanges of"
        " two things after an arbitrary first token take one update and a second head."
    )
    premises = (
        "a layer whose b reaches 2 (negative eigenvalues), in fp64, fp32, bf16 or fp16",
        (
            "keys of 2K numbers and values of one for each thing that is followed; of one number"
            " each for a group of two elements"
        ),
        (
            "no convolution, norm or gate around the recurrence; for a group of two elements there"
            " may be"
        ),
        SATURATED,
        (
            "weights and token embeddings may be chosen; the same serve every length (for exchanges"
            " after an arbitrary first token also the first position embedding, and the MLP)"
        ),
    )
    source = "theory.md, section 10 [here]; negative eigenvalues: Grazzi et al., arXiv 2411.12537"
    proof_sketch = (
        "The state is R = P Y - Y, twice, for the permutation P so far and Y the identity: zero at"
        " the start. The update adds 2 k (v - k^T R) with v = -(e_i - e_j), so that P becomes (i j)"
        " P, and R stays among finitely many matrices of -1, 0 and 1. A query of numbers a/2^s of"
        " length 1 that gives every place a weight of its own reads off where each thing stands."
        " For two elements: k = e_1, v = 1/2, b = 2 or 0, and s becomes 1 - s or stays; behind SiLU"
        " k comes from 128 and v from 32, which it leaves as they are, s becomes 64 - s or stays,"
        " and a norm and a gate after it leave 0 apart from 64. In the"
        " parallel form every number solved for is an integer of absolute value at most 2, or a"
        " deviation as above, since products of reflections are orthogonal."
    )
    about = (Parity, Modular, Permutation, Group)
    why = (
        "Its tokens turn the state over along a direction of their choice, which exchanges two"
        " things and leaves no rounding error, however long the prompt; training may not find such"
        " weights."
    )

    def room(self, architecture: Architecture, task: Task) -> Room | None:
        moved = tracked(task)
        if moved is None:
            return None
        placed = architecture.positions == "embedded"
        found = [
            (index, part, room)
            for index, layer in enumerate(architecture)
            for part in layer
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
        return Room(said, numbers, (SATURATED,))


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


class Brackets(Construction[Dyck]):
    key = "brackets"
    title = "a counter and two layers that overwrite judge nested brackets"
    statement = (
        "Three recurrent layers, one behind the other, solve bounded Dyck-(k, D): the first adds up"
        " how many brackets are open, the second keeps the kind of the bracket open at each depth"
        " in a slot of its own, and the third remembers whether a bracket was wrong. The state"
        " holds D' slots of ceil(log2 k) numbers, D' = min(D, n/2), and two more; the classes of"
        " Theorem I take log(1 + sum over j <= D' of k^j) bits."
    )
    premises = (
        (
            "a head that adds up a number of every token, with no decay and no normaliser; behind"
            " it a delta-rule head with a key dimension for each of D' open brackets and a value"
            " dimension for each bit of a kind; behind that another delta-rule head"
        ),
        "no convolution, norm or gate around these heads",
        "4 (n + 2) at most 2^digits in every format of theirs: all sums are exact integers",
        SATURATED,
        "weights, token embeddings and position-wise maps may be chosen; no positions are used",
    )
    source = "theory.md, sections 3 and 6 [here]; the question is that of [Bha24]"
    proof_sketch = (
        "With c brackets open after a token, its slot is s = c if it opens and s = c + 1 if it"
        " closes; the key is e_s, b = 1 where a bracket opens and 0 where one closes. Induction:"
        " up to the first wrong bracket, slot j holds the kind of the bracket opened last at depth"
        " j, since e_s is of length 1 and the update S (I - e_s e_s^T) + v e_s^T replaces that slot"
        " and no other. So a bracket that closes reads the kind of the one it must match. It is"
        " wrong if they differ, or if c < 0, or if one opens with c > D'. The third layer's key is"
        " e_1 at wrong brackets and 0 at all others: its number is 1 from the first of them on."
        " Balanced means: that number and c are 0 in the end. All numbers are integers of size at"
        " most 4 (n + 2), in either form."
    )
    about = (Dyck,)
    why = (
        "One layer counts how many are open, the next one keeps what opened at each depth, the"
        " third remembers a fault; training may not find such weights."
    )

    def room(self, architecture: Architecture, task: Dyck) -> Room | None:
        needed = Needed.of(task)
        found = stacked(architecture, needed)
        if found is None:
            return None
        counter, holder, flag = (layer for layer, _ in found)
        said = (
            f"layer {counter + 1} counts the open brackets, layer {holder + 1} keeps the kinds of"
            f" up to {number(needed.slots)} in slots of {needed.bits} numbers, layer {flag + 1}"
            " remembers a wrong one: they judge every prompt"
        )
        numbers = {"counter": counter, "stack": holder, "flag": flag}
        numbers |= {"slots": needed.slots, "bits_of_a_kind": needed.bits}
        return Room(said, numbers, (SATURATED,))


def stacked(architecture: Architecture, needed: Needed) -> tuple[Place, Place, Place] | None:
    """Where counter, stack and flag find room; None where they do not."""
    asked: tuple[Callable[[Mechanism], bool], ...] = (
        lambda part: part.adds_up,
        lambda part: _holds(part, needed.slots, needed.bits),
        lambda part: _holds(part, 1, 1),
    )
    found: list[Place] = []
    for index, layer in enumerate(architecture):
        for kind, part in enumerate(layer):
            right = len(found) < len(asked) and asked[len(found)](part)
            if right and _exact(part, needed.tokens):
                found.append((index, kind))
                # heads side by side read the same input
                break
    if len(found) < len(asked):
        return None
    first, second, third = found
    return first, second, third


def most_counted(name: str) -> int:
    """The most tokens that the construction counts in a format."""
    return (1 << DIGITS[name]) // 4 - 2 if name in DIGITS else 0


def _holds(part: Mechanism, places: int, numbers: int) -> bool:
    slots = part.slots
    return slots is not None and slots.places >= places and slots.numbers >= numbers


def _exact(part: Mechanism, tokens: int) -> bool:
    return all(tokens <= most_counted(name) for name in part.formats)


class Tightness(Construction[Task]):
    key = "tightness"
    title = "Theorem I is tight for total tasks"
    statement = (
        "An automaton with ceil(log2 max_t C(t)) bits, the maximum over prefix lengths t, solves a"
        " total task when the position is supplied."
    )
    premises = (
        "every continuation is allowed after every prefix",
        "the update is an arbitrary function of state, token and position: a layer of kind"
        " automaton with a rule for each token at each place, and positions embedded",
        "the table may be chosen, for this size",
    )
    source = "theory.md, section 3, Theorem I"
    proof_sketch = (
        "The states are the classes of prefixes: two prefixes of one class stay in one class"
        " whatever token follows, so that a token at a place is a map of classes; after the last"
        " token a class is an answer. One bit less and Theorem I refutes it."
    )
    about = TOTAL
    embedded = True

    def room(self, architecture: Architecture, task: Task) -> Room | None:
        needed, rules = automaton_of(task)
        for index, layer in enumerate(architecture):
            for machine in (part.machine for part in layer):
                if machine is None or machine.bits < needed or machine.rules < rules:
                    continue
                said = (
                    f"layer {index + 1} solves it as the automaton of its prefixes' classes:"
                    f" {needed} of {machine.bits} bits, {rules} of {machine.rules} rules"
                )
                return Room(said, {"layer": index, "bits": needed, "rules": rules})
        return None


def automaton_of(task: Task) -> tuple[int, int]:
    """Bits of the automaton of a total task, and its rules: the ids that may stand at each place,
    added up.
    """
    tokens = task.length * task.vocabulary
    rules = task.n * (task.V + 1) if isinstance(task, Eva) else tokens
    return max(1, counted(task).ceil_log2(), (task.answers - 1).bit_length()), rules
