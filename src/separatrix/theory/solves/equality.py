"""Equality of two strings in two full layers."""

from __future__ import annotations

from typing import ClassVar

from separatrix.architecture import Architecture
from separatrix.evidence.records import Verdict
from separatrix.tasks import Equality, Task
from separatrix.theory.base import SOLVABLE, Sees, Theorem
from separatrix.theory.solves.room import TAGS, bits_of, full_heads
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
        (
            "weights, embeddings and position-wise maps, rotations of queries and keys (RoPE) among"
            " them, may be chosen"
        ),
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
        first = next(
            (
                i
                for i, part in full_heads(architecture)
                if part.has_room(address + TAGS, 1) and address <= 256
            ),
            None,
        )
        second = next(
            (i for i, _ in full_heads(architecture) if first is not None and i > first), None
        )
        if first is None or second is None:
            return None
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
