"""Equality of two strings in two full layers."""

from __future__ import annotations

from typing import ClassVar

from separatrix.architecture import Architecture
from separatrix.evidence.records import Verdict
from separatrix.tasks import Equality, Task
from separatrix.theory.base import SOLVABLE, Sees, Theorem
from separatrix.theory.solves.room import CHOSEN_WEIGHTS, TAGS, bits_of, flagging_layers
from separatrix.theory.words import Words, WordsByTask


class TwoLayerEquality(Theorem):
    key = "equality"
    title = "two full layers compare two strings"
    statement = (
        "In the first layer every bit of the second string fetches the bit at its place in the"
        " first, by its address, and flags a difference. In the second the last token looks for a"
        " flagged token: weight at least 1 - n e^(-2 s^2) on flagged ones if there is any, none"
        " otherwise."
    )
    premises = (
        "two full layers, the first with room in its keys for the address bits and two tags",
        "scores exact in the format: s a power of two, at most 256 address bits",
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
        layers = flagging_layers(architecture, address)
        if layers is None:
            return None
        first, second = layers
        sentence = (
            f"two full layers solve it: layer {first + 1} fetches partners ({address} address bits"
            f" and {TAGS} tags in its keys), layer {second + 1} looks for a difference"
        )
        return self.verdict(
            architecture,
            task,
            "SOLVABLE",
            sentence,
            numbers={"address_bits": address, "first": first, "second": second},
        )
