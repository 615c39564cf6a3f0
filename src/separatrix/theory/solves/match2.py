"""2-Sum per query in one full layer."""

from __future__ import annotations

from typing import ClassVar

from separatrix.core.evidence.records import Verdict
from separatrix.stacks.architecture import Architecture
from separatrix.tasks import Task, TwoSum
from separatrix.theory.base import SOLVABLE, Sees, Theorem
from separatrix.theory.solves.places import EMBEDDED, NEEDS_NONE, compares
from separatrix.theory.solves.room import CONTENTS, TAGS, bits_of, full_heads
from separatrix.theory.words import Words, WordsByTask

MATCH_LIMIT = {"fp64": 130_000_000, "fp32": 5_754, "fp16": 63, "bf16": 22}
"""Largest M that the three-dimensional embedding separates, by format (theory.md, section 6)."""


class Match2(Theorem):
    key = "match2"
    title = "one full layer solves 2-Sum per query"
    statement = (
        "With phi(x) = (cos, sin, 1) of 2 pi x/M a head of dimension 3 scores c cos(2 pi (x_i +"
        " x_j)/M), largest exactly where the two cancel; a blank key takes the weight otherwise."
        " Beyond the M that the format separates, a bit code of log2 M + 2 dimensions does it, the"
        " start token scoring as much as a match: its weight tells how many tokens match, the last"
        " one itself among them where it cancels itself."
    )
    premises = (
        "a full head of dimension 3 (or log2 M + 2)",
        CONTENTS,
        "a start token may stand before the prompt",
        "weights and embeddings may be chosen",
    )
    source = "[San23]; theory.md, section 6, Match2"
    proof_sketch = (
        "Match over blank and blank over best non-match are both c sin^2(pi/M); c ="
        " ln(8n)/sin^2(pi/M) outweighs n tokens."
    )
    shows = SOLVABLE
    sees = Sees.READERS
    words: ClassVar[WordsByTask] = {
        "twosum": Words("{statement}", "The layer compares it with all others at once.")
    }

    def judge(self, architecture: Architecture, task: Task) -> Verdict | None:
        if not isinstance(task, TwoSum) or task.form != "query":
            return None
        for index, part, head in full_heads(architecture):
            # the value is 0 at the last token, which needs its place
            placed = architecture.positions == "embedded"
            # what a norm of queries and keys, or of a latent, makes of cosines is not worked out
            free = placed and not part.normed and head.latent is None
            three = free and compares(architecture, part, head, 3)
            coded = bits_of(task.M) + TAGS
            if three and MATCH_LIMIT[head.format] >= task.M:
                how = (
                    f"3 key dimensions, M = {task.M:,} of at most {MATCH_LIMIT[head.format]:,}"
                    f" in {head.format}"
                )
                dimensions = 3
                rests_on = EMBEDDED
            elif compares(architecture, part, head, coded):
                how = f"a bit code in {coded} of {head.head_dim} key dimensions"
                dimensions = coded
                rests_on = NEEDS_NONE
            else:
                continue
            sentence = f"one full layer (layer {index + 1}) solves it: {how}"
            return self.solved(
                architecture, task, sentence, {"dimensions": dimensions, "layer": index}, rests_on
            )
        return None
