"""q-sparse averaging in two full layers."""

from __future__ import annotations

from typing import ClassVar

from separatrix.core.evidence.records import Verdict
from separatrix.stacks.architecture import Architecture
from separatrix.tasks import QSA, Task
from separatrix.theory.base import SOLVABLE, Sees, Theorem
from separatrix.theory.solves.places import EMBEDDED, MOST_ADDRESS_BITS, content_dims
from separatrix.theory.solves.room import CHOSEN_WEIGHTS, TAGS, WIDE, bits_of, full_heads
from separatrix.theory.words import Words, WordsByTask

MOST_SUMMED = 1 << 19
"""Largest q^3 V^2 for which rounding of the steps is shown to leave a lead in fp32: up to q steps
are added up, each of numbers up to q V times V.
"""


class SparseAveraging(Theorem):
    key = "qsa"
    title = "two full layers average over sets"
    statement = (
        "In the first layer every token of a set fetches the value at its place. In the second the"
        " tokens of one set, whose keys hold its number, score alike, exactly, and 2 s^2 more than"
        " all others: the last one gets their average. Steps of a position-wise map take multiples"
        " of V off its q-fold, the sum. Two full layers solve q-sparse averaging."
    )
    premises = (
        (
            "two full heads in turn, the first with room for the bits of a place and two tags and"
            " for a value's bits, the second for the bits of a set's number and two tags"
        ),
        "embeddings give every token its place",
        "fp32 or wider, exp(0) = 1, q^3 V^2 at most 2^19 and at most 2^16 tokens",
        CHOSEN_WEIGHTS,
    )
    source = "[San23] for the task; this program: constructions/qsa.py derives the weights"
    proof_sketch = (
        "The first layer is a retrieval head that every token asks. Keys of one set are equal, so"
        " their weights are 1 each, and the average is off by what q roundings take; a sum is a"
        " whole number, a step has room for 1/4, and the logits a s - a^2/2 leave 1/2. One layer"
        " alone cannot: a set is q tokens, and the last of them is fixed."
    )
    shows = SOLVABLE
    sees = Sees.LAYERS
    words: ClassVar[WordsByTask] = {
        "qsa": Words(
            "{statement}", "One layer looks the values of a set up, the next averages over the set."
        )
    }

    def judge(self, architecture: Architecture, task: Task) -> Verdict | None:
        if not isinstance(task, QSA) or architecture.positions != "embedded":
            return None
        if task.q**3 * task.V**2 > MOST_SUMMED or task.length > 1 << 16:
            return None
        address, payload, number = bits_of(task.n), bits_of(task.V), bits_of(task.sets)
        wanted = ((address + TAGS, payload), (number + TAGS, 1))
        found: list[int] = []
        for index, part, head in full_heads(architecture):
            if len(found) == len(wanted) or (found and index == found[-1]):
                continue
            keys, values = wanted[len(found)]
            narrow = head.format not in WIDE or part.normed or head.latent is not None
            if narrow or keys > min(content_dims(architecture, part, head), MOST_ADDRESS_BITS):
                continue
            if head.has_room(keys, values):
                found.append(index)
        if len(found) < len(wanted):
            return None
        first, second = found
        return self.solved(
            architecture,
            task,
            (
                f"two full layers (layers {first + 1} and {second + 1}) solve it: {address} bits of"
                f" a place and {payload} of a value, then {number} bits of a set's number"
            ),
            {
                "address_bits": address,
                "payload_bits": payload,
                "set_bits": number,
                "first": first,
                "second": second,
            },
            EMBEDDED,
        )
