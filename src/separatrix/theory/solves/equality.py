"""Equality of two strings in two full layers."""

from __future__ import annotations

from typing import ClassVar

from separatrix.core.evidence.records import Verdict
from separatrix.stacks.architecture import Architecture
from separatrix.tasks import Equality, Task
from separatrix.theory.base import SOLVABLE, Sees, Theorem
from separatrix.theory.solves.places import blank_beside, finders, flags_carry
from separatrix.theory.solves.room import CHOSEN_WEIGHTS, PLACES, TAGS, bits_of, full_heads
from separatrix.theory.words import Words, WordsByTask


class TwoLayerEquality(Theorem):
    key = "equality"
    title = "two full layers compare two strings"
    statement = (
        "In the first layer every bit of the second string fetches the bit at its place in the"
        " first, by its address, and flags a difference. In the second the last token looks for a"
        " flagged token: weight at least 1 - n e^(-2 s^2) on flagged ones if there is any, none"
        " otherwise. With rotations alone every token asks for the offset n; a start token takes"
        " the weight of those that have no token there."
    )
    premises = (
        (
            "two full layers, the first, for addresses, with room in its keys for their bits and"
            " two tags"
        ),
        PLACES,
        "with rotations alone, a start token may stand before the prompt",
        "scores of addresses exact in the format: s a power of two, at most 256 address bits",
        CHOSEN_WEIGHTS,
    )
    source = "[Bha24], in the form of theory.md, section 6; the retrieval head is [CPW]"
    proof_sketch = (
        "The first layer is a retrieval head of one bit, the second a retrieval head for the flag;"
        " a threshold cleans both."
    )
    shows = SOLVABLE
    sees = Sees.READERS
    words: ClassVar[WordsByTask] = {
        "equality": Words(
            "{statement}",
            "One full layer fetches each bit's partner, a second one looks for a pair that"
            " differs.",
        )
    }

    def judge(self, architecture: Architecture, task: Task) -> Verdict | None:
        if not isinstance(task, Equality):
            return None
        address = bits_of(task.n)
        fetching = finders(architecture, address=address + TAGS, payload=1, tokens=task.length)
        # tokens of the first string have no partner: a start token must take their weight
        first, found = next(
            (
                (i, one)
                for i, part, head, one in fetching
                if one.address
                or blank_beside(architecture, part, head, payload=1, tokens=task.length)
            ),
            (-1, None),
        )
        if found is None:
            return None
        second = next(
            (
                i
                for i, part, head in full_heads(architecture)
                if i > first and flags_carry(architecture, part, head, tokens=task.length)
            ),
            None,
        )
        if second is None:
            return None
        asked = f"the offset {task.n:,}"
        if found.address:
            asked = f"{address} address bits and {TAGS} tags in its keys"
        sentence = (
            f"two full layers solve it: layer {first + 1} fetches partners ({asked}), layer"
            f" {second + 1} looks for a difference"
        )
        return self.solved(
            architecture,
            task,
            sentence,
            found.numbers(address, first=first, second=second),
            found.rests_on,
        )
