"""Copying a string: one full layer finds its end, a second one looks each value up."""

from __future__ import annotations

from typing import ClassVar

from separatrix.core.evidence.records import Verdict
from separatrix.stacks.architecture import Architecture
from separatrix.tasks import Copying, Task
from separatrix.theory.base import SOLVABLE, Theorem
from separatrix.theory.solves.places import finders
from separatrix.theory.solves.room import CHOSEN_WEIGHTS, TAGS, bits_of
from separatrix.theory.words import Words, WordsByTask


class TwoLayerCopying(Theorem):
    key = "copying"
    title = "two full layers that address places copy a string"
    statement = (
        "A string, a mark, then a blank for each of its values. In one full layer every blank finds"
        " the mark and reads the address of its place; a blank at place p behind a mark at place m"
        " asks a second full layer for place p - m - 1. So two full layers whose tokens address"
        " places, by embeddings or by counts of recurrent layers before, copy strings of every"
        " length up to n."
    )
    premises = (
        "addresses of places, embedded or counted; rotations alone ask for fixed offsets",
        "keys with room for an address and 2 tags; values for an address in the first, a value's"
        " bits in the second",
        CHOSEN_WEIGHTS,
    )
    source = "theory.md, section 6, retrieval head [here]; Jelassi et al., arXiv 2402.01032"
    proof_sketch = (
        "Both are retrieval heads: the first with one bit, mark or none, for an address, the second"
        " with the difference that a position-wise map makes of two addresses. The mark stands once"
        " and before every blank; a threshold restores the bits of its place."
    )
    shows = SOLVABLE
    start_token = False
    words: ClassVar[WordsByTask] = {
        "copying": Words("{statement}", "Each blank works out where its value stands, and looks.")
    }

    def judge(self, architecture: Architecture, task: Task) -> Verdict | None:
        if not isinstance(task, Copying):
            return None
        address = bits_of(task.length)
        heads = finders(
            architecture,
            address=address + TAGS,
            payload=max(address, bits_of(task.V)),
            tokens=task.length,
            named=True,
        )
        # of two kinds of heads in one layer the second adds no layer
        layers = {i: found for i, _, _, found in heads}
        if len(layers) < 2:
            return None
        first, second, *_ = sorted(layers)
        return self.solved(
            architecture,
            task,
            (
                f"two full layers solve it: layer {first + 1} finds the mark, layer {second + 1} "
                f"looks up values by {address} address bits and {TAGS} tags in its keys"
            ),
            {"address_bits": address, "first": first, "second": second},
            layers[first].rests_on,
        )
