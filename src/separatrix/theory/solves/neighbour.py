"""Nearest neighbour in two full layers."""

from __future__ import annotations

from typing import ClassVar

from separatrix.core.evidence.records import Verdict
from separatrix.stacks.architecture import Architecture
from separatrix.tasks import Neighbour, Task
from separatrix.theory.base import SOLVABLE, Sees, Theorem
from separatrix.theory.solves.places import compares, finders
from separatrix.theory.solves.room import (
    CHOSEN_WEIGHTS,
    CONTENTS,
    PLACES,
    TAGS,
    bits_of,
    full_heads,
)
from separatrix.theory.words import Words, WordsByTask


class TwoLayerNeighbour(Theorem):
    key = "neighbour"
    title = "two full layers find the nearest of n labelled strings"
    statement = (
        "In the first layer every label fetches the string before it, by its place. In the second"
        " the query compares its bits with those: a label whose string differs in h bits scores s^2"
        " (d - 2 h), strings less than all labels, by a tag of weight d + 1. The nearest ones lead"
        " by 2 s^2, and all others weigh at most 2 n e^(-2 s^2) relative to them."
    )
    premises = (
        (
            "two full layers: the first, for addresses, with room in its keys for their bits and"
            " two tags, and in its values for d bits; the second with d + 2 key dimensions, and"
            " room in its values for the bits of a label"
        ),
        PLACES,
        CONTENTS,
        "no norm of queries and keys, and no latent, in the second",
        "scores exact in the format: s a power of two, d at most 40",
        CHOSEN_WEIGHTS,
    )
    source = "[Bha24], nearest neighbour in two layers; the weights, and the tag, are ours [here]"
    proof_sketch = (
        "The first layer is a retrieval head of d bits, cleaned by a threshold. In the second each"
        " bit that differs costs 2 s^2. Strings as near as the nearest have its label, or the"
        " prompt is no instance, so that it is a mean of equal values that is read."
    )
    shows = SOLVABLE
    sees = Sees.READERS
    words: ClassVar[WordsByTask] = {
        "neighbour": Words(
            "{statement}",
            "One full layer hands every label its string, a second one compares them all with the"
            " query.",
        )
    }

    def judge(self, architecture: Architecture, task: Task) -> Verdict | None:
        if not isinstance(task, Neighbour):
            return None
        address = bits_of(task.n + 1)
        fetching = finders(architecture, address=address + TAGS, payload=task.d, tokens=task.length)
        if not fetching:
            return None
        first, _, _, found = fetching[0]
        compared = task.d + TAGS
        labels = bits_of(task.V)
        second = next(
            (
                index
                for index, part, head in full_heads(architecture)
                if index > first
                and not part.normed
                and head.latent is None
                and compares(architecture, part, head, compared)
                and head.has_room(compared, labels)
            ),
            None,
        )
        if second is None:
            return None
        asked = f"{address} address bits and {TAGS} tags in its keys"
        sentence = (
            f"two full layers solve it: layer {first + 1} hands labels their strings"
            f" ({asked if found.address else 'the offset 1'}, {task.d} bits in its values), layer"
            f" {second + 1} compares {task.d} bits ({compared} key dimensions)"
        )
        return self.solved(
            architecture,
            task,
            sentence,
            found.numbers(address, first=first, second=second, compared=compared),
            found.rests_on,
        )
