"""State tracking in one layer whose tokens reflect its state (theory.md, section 10)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from separatrix.core.evidence.records import Verdict
from separatrix.stacks.architecture import Architecture
from separatrix.stacks.mechanisms import Mechanism
from separatrix.tasks import Permutation, Task
from separatrix.tasks.functions.tracked import Tracked, tracked
from separatrix.theory.base import SOLVABLE, Sees, Theorem, number
from separatrix.theory.words import Words, WordsByTask, counted_as

MOST_THINGS = 128
"""Largest number of things: what is read of them stays below 2^8, which bfloat16 holds."""
SATURATED = (
    "gates saturate: in float32 the sigmoid of 128 is 1 and that of -128 is 0, and the softplus of"
    " -128 is 0; in float64 those of 1,024"
)
"""What the construction takes for granted of the arithmetic."""
_WHY = (
    "Its tokens turn the state over along a direction of their choice, which exchanges two things"
    " and leaves no rounding error, however long the prompt; training may not find such weights."
)


class StateTracking(Theorem):
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
    shows = SOLVABLE
    sees = Sees.LAYERS
    words: ClassVar[WordsByTask] = {
        name: Words("{statement}", _WHY) for name in ("parity", "modular", "permutation", "group")
    }

    def judge(self, architecture: Architecture, task: Task) -> Verdict | None:
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
        index, part, room = next((one for one in found if _bare(one[1])), found[0])
        sentence = (
            f"one {part.title} layer (layer {index + 1}) answers every prompt of every length:"
            f" {room.said}"
        )
        return self.solved(
            architecture,
            task,
            sentence,
            {
                "layer": index,
                "things": moved.things,
                "reflections": room.reflections,
                "key_numbers": room.keys,
                "value_numbers": room.values,
                "heads": room.heads,
            },
            SATURATED,
        )


def _bare(part: Mechanism) -> bool:
    return part.turning is not None and part.turning.bare


@dataclass(frozen=True, kw_only=True)
class Room:
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


def room_for(moved: Tracked, task: Task, part: Mechanism, *, placed: bool) -> Room | None:
    """The cheapest construction that a layer has room for; None where it has none.

    `placed`: tokens know whether they come first, by embeddings of positions.
    """
    turning = part.turning
    if turning is None:
        return None
    if moved.order == 2:
        said = "a reflection in one key dimension takes its state s to 1 - s"
        return Room(form="flip", keys=1, values=1, reflections=1, said=said)
    things = moved.things
    if not turning.bare or turning.key_dim < 2 * things or things > MOST_THINGS:
        return None
    dims = f"keys of {number(2 * things)} of {number(turning.key_dim)} dimensions"
    values = len(moved.followed)
    if moved.swaps <= turning.reflections and values <= turning.value_dim:
        used = counted_as(moved.swaps, "reflection")
        said = f"{used} per token of {turning.reflections:,}, {things:,} things in {dims}"
        return Room(
            form="reflections", keys=2 * things, values=values, reflections=moved.swaps, said=said
        )
    swapped = isinstance(task, Permutation) and task.shift == "swaps" and placed
    # a head of its own carries the first token's permutation, each thing's place as a unit vector
    if swapped and turning.heads >= 2 and turning.value_dim >= things * things:
        return Room(
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
