"""One full layer at the end of a stack, behind short convolutions: recall and c-gram retrieval."""

from __future__ import annotations

from typing import ClassVar

from separatrix.core.evidence.records import Verdict
from separatrix.stacks.architecture import Architecture
from separatrix.stacks.mechanisms import Full, Mechanism, ShortConvolution
from separatrix.tasks import CGram, Task
from separatrix.theory.base import SOLVABLE, Sees, Theorem
from separatrix.theory.solves.places import EMBEDDED, MOST_ADDRESS_BITS, NEEDS_NONE
from separatrix.theory.solves.recall import Needed, exact_scores, needed_by
from separatrix.theory.solves.room import CHOSEN_WEIGHTS, WIDE, bits_of
from separatrix.theory.words import Words, WordsByTask

_BROUGHT = Words(
    "{statement}",
    "Short convolutions bring every place the tokens before it, and one full layer looks them up.",
)


class LastLayer(Theorem):
    key = "last-layer"
    title = "one full layer after a stack of bounded layers closes the retrieval gap"
    statement = (
        "A layer of short convolutions brings every place what the c tokens before it hold, number"
        " by number. One plain full layer behind it then compares these with what is asked for. So"
        " it solves c-gram retrieval, and with c = 1 and embedded places associative recall in"
        " every form, and MQAR; no bounded cache does. (For Index the last layer is the"
        " construction `retrieval`, for counting `counting`, whatever stands before it.)"
    )
    premises = (
        (
            "a layer of short convolutions in fp32 or wider with a kernel of c + 1 tokens or more,"
            " and a channel for each number of a key: c ceil(log2 V) for c-grams; for recall the"
            " bits of a key, one tag and, where keys are written again, the number of a pair"
        ),
        "behind it a plain full layer in fp32 or wider with room for these and for the answer",
        "at most 256 bits of a key; for recall 2^(r+1) (2 D + 2) at most 2^24",
        "for recall, embeddings give every token its place; for c-grams no place is needed",
        CHOSEN_WEIGHTS,
    )
    source = (
        "[Wen25]; this program: constructions/cgram.py and constructions/parts/lookups.py derive"
        " the weights"
    )
    proof_sketch = (
        "A channel copies one number and multiplies by 1, so nothing is rounded. Of letters of +-1"
        " the same c score s^2 c B, a letter that differs or is missing costs 2 s^2 at least, and"
        " the context stands once. Recall is the theorem `recall`: its keys are made of the token"
        " before, here by a layer of their own."
    )
    shows = SOLVABLE
    start_token = False
    sees = Sees.LAYERS
    words: ClassVar[WordsByTask] = {"recall": _BROUGHT, "mqar": _BROUGHT, "cgram": _BROUGHT}

    def judge(self, architecture: Architecture, task: Task) -> Verdict | None:
        grams = isinstance(task, CGram)
        c = task.c if isinstance(task, CGram) else 1
        needed = _needed(task)
        known = ("embedded", "none") if grams else ("embedded",)
        if needed is None or architecture.positions not in known:
            return None
        width = needed.code + needed.order + (not grams)
        bring = [
            index
            for index, layer in enumerate(architecture)
            if any(_brings(part, width, c) for part in layer)
        ]
        last = [
            index
            for index, layer in enumerate(architecture)
            if bring and index > bring[0] and any(_compares(part, needed, width) for part in layer)
        ]
        if not last:
            return None
        index = last[-1]
        brought = max(layer for layer in bring if layer < index)
        tokens = f"the {c} tokens" if grams else "the token"
        sentence = (
            f"one full layer (layer {index + 1}) behind short convolutions (layer {brought + 1})"
            f" solves it: they bring {tokens} before, {width} numbers of a key, and"
            f" {needed.answer} answer bits are read"
        )
        numbers = {
            "key_bits": needed.code,
            "payload_bits": needed.answer,
            "convolutions": brought,
            "layer": index,
        }
        if needed.order:
            numbers["order_bits"] = needed.order
        return self.solved(architecture, task, sentence, numbers, NEEDS_NONE if grams else EMBEDDED)


def _needed(task: Task) -> Needed | None:
    if isinstance(task, CGram):
        letter = bits_of(task.V)
        return Needed(task.c * letter, 0, letter)
    return needed_by(task)


def _brings(part: Mechanism, width: int, back: int) -> bool:
    """Whether it hands on so many numbers from so many tokens back, unrounded."""
    return (
        isinstance(part, ShortConvolution)
        and part.conv > back
        and part.width >= width
        and part.format in WIDE
    )


def _compares(part: Mechanism, needed: Needed, width: int) -> bool:
    """Whether a plain full head fits, and its scores are exact."""
    if not isinstance(part, Full) or not part.plain or part.accumulator_bits < 32:
        return False
    head = part.retrieval_head
    if head is None or head.format not in WIDE or width > MOST_ADDRESS_BITS:
        return False
    return exact_scores(needed, head.format) and head.has_room(width, needed.answer)
