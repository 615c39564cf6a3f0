"""Counting in one full layer beside a start token."""

from __future__ import annotations

from typing import ClassVar

from separatrix.core.evidence.records import Verdict
from separatrix.stacks.architecture import Architecture
from separatrix.stacks.mechanisms import Full
from separatrix.tasks import Counting, Task
from separatrix.theory.base import SOLVABLE, Sees, Theorem
from separatrix.theory.solves.places import NEEDS_NONE, content_dims
from separatrix.theory.solves.room import CHOSEN_WEIGHTS, CONTENTS, WIDE, bits_of, full_heads
from separatrix.theory.words import Words, WordsByTask

MOST_TIED = {"fp64": 1 << 18, "fp32": 2351, "fp16": 25, "bf16": 7}
"""Keys that may tie at most, start token included, by format: up to here the logits are proved to
lead (constructions/counting.py).
"""


class StartTokenCounts(Theorem):
    key = "counting"
    title = "one full layer counts beside a start token"
    statement = (
        "A start token that scores as much as every match, while all else scores 2 s^2 less, weighs"
        " 1/k, where k counts it and the matches. Of the lines -y sum j (j + 1) + sum (j + 1/2), j"
        " below k, that of k is the highest at y = 1/k, by 1/2. They are of size k^2, so that p"
        " digits tell about 2^(p/2) counts apart. One full layer solves counting up to the n of its"
        " format."
    )
    premises = (
        "a full head with room for a symbol's bits and one tag in its keys",
        CONTENTS,
        "a start token stands before the prompt",
        (
            "at most 262,144 keys that tie in fp64, 2,351 in fp32, 25 in fp16, 7 in bf16, half"
            " formats with sums in fp32; exp(0) = 1"
        ),
        CHOSEN_WEIGHTS,
    )
    source = "[Wen25] (counting); this program: constructions/counting.py derives the weights"
    proof_sketch = (
        "Scores that tie are exact, each weighs exp(0) = 1, and sums of ones are exact, so that the"
        " weight is 1/k up to three roundings. It is one number for all logits: between neighbours"
        " what is left is what the head itself rounds, about u k^2, against 1/2."
    )
    shows = SOLVABLE
    sees = Sees.LAYERS
    words: ClassVar[WordsByTask] = {
        "counting": Words("{statement}", "The weight of a start token that ties says how many tie.")
    }

    def judge(self, architecture: Architecture, task: Task) -> Verdict | None:
        if not isinstance(task, Counting):
            return None
        tied = task.n + 1 + (task.form == "queried")
        bits = bits_of(task.V)
        for index, part, head in full_heads(architecture):
            if not isinstance(part, Full) or part.normed or tied > MOST_TIED[head.format]:
                continue
            if head.format not in WIDE and part.accumulator_bits < 32:
                continue
            if content_dims(architecture, part, head) <= bits or not head.has_room(bits + 1, 1):
                continue
            return self.solved(
                architecture,
                task,
                (
                    f"one full layer (layer {index + 1}) solves it: {bits} bits of a symbol and a"
                    f" tag of {head.head_dim} key dimensions; at most {tied:,} of"
                    f" {MOST_TIED[head.format]:,} keys tie in {head.format}"
                ),
                {"symbol_bits": bits, "tied": tied, "layer": index},
                NEEDS_NONE,
            )
        return None
