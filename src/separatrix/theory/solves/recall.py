"""Associative recall in one full layer behind a short convolution."""

from __future__ import annotations

from typing import ClassVar, NamedTuple

from separatrix.core.evidence.records import Verdict
from separatrix.stacks.architecture import Architecture
from separatrix.stacks.mechanisms import Full, Mechanism
from separatrix.tasks import MQAR, Recall, Task
from separatrix.tasks.recall import PROMISED
from separatrix.theory.base import SOLVABLE, Sees, Theorem
from separatrix.theory.solves.places import EMBEDDED, MOST_ADDRESS_BITS
from separatrix.theory.solves.room import CHOSEN_WEIGHTS, WIDE, bits_of
from separatrix.theory.words import Words, WordsByTask

_JOINED = Words(
    "{statement}",
    "Keys made of the token before let every value be found by the key in front of it.",
)


class Needed(NamedTuple):
    """Dimensions: of a key's code, of the number of its pair, of an answer's code."""

    code: int
    order: int
    answer: int


class ConvolvedRecall(Theorem):
    key = "recall"
    title = "one full layer behind a short convolution recalls"
    statement = (
        "A convolution over two tokens makes the key of a value's place of the key in front of it."
        " A query for q scores s^2 c (1 - 2 hamming) there, less elsewhere, and 0 at the first"
        " place, before which nothing stands: it is the blank where nothing matches. With the"
        " number of the pair added, c = 2^(r+1) for r bits, the last of equal keys wins. One such"
        " layer solves associative recall in every form, and MQAR."
    )
    premises = (
        (
            "a full head behind a convolution of two tokens or more, with room for the bits of a"
            " key, those of the number of a pair where keys are written again, and one tag; and in"
            " its values for the answer's bits"
        ),
        "embeddings give every token its place",
        (
            "scores exact: fp32 or wider, or sums in fp32 where keys are written once; at most 256"
            " bits, and 2^(r+1) (2 D + 2) at most 2^24"
        ),
        CHOSEN_WEIGHTS,
    )
    source = "this program: constructions/parts/lookups.py derives the weights; [Bha24], [Aro24]"
    proof_sketch = (
        "A key that matches scores at least s^2 (2^r + 1), every other place at most the negative"
        " of that; 2 s^2 apart they outweigh any n once s^2 > ln(n)/2. Without a convolution one"
        " layer of h readable bits cannot: with the query fixed, what it sums up of the values"
        " alone is one of 2^h, and there are V^n contents that some place of the key tells apart."
    )
    shows = SOLVABLE
    start_token = False
    sees = Sees.LAYERS
    words: ClassVar[WordsByTask] = {"recall": _JOINED, "mqar": _JOINED}

    def judge(self, architecture: Architecture, task: Task) -> Verdict | None:
        needed = needed_by(task)
        if needed is None or architecture.positions != "embedded":
            return None
        for index, layer in enumerate(architecture):
            for part in layer:
                if not _holds(part, needed):
                    continue
                sentence = (
                    f"one full layer (layer {index + 1}) behind a convolution solves it:"
                    f" {needed.code} bits of a key{', ' if needed.order else ' and '}"
                    + (f"{needed.order} of the number of its pair and " if needed.order else "")
                    + f"a tag of {part.sizes()['head_dim']} key dimensions, {needed.answer} answer"
                    " bits"
                )
                return self.solved(
                    architecture,
                    task,
                    sentence,
                    {
                        "key_bits": needed.code,
                        "order_bits": needed.order,
                        "payload_bits": needed.answer,
                        "layer": index,
                    },
                    EMBEDDED,
                )
        return None


def needed_by(task: Task) -> Needed | None:
    """The dimensions that a task takes; None for another task."""
    match task:
        case Recall(question="last"):
            order = bits_of(task.n) if task.form == "last" else 0
            return Needed(bits_of(task.K), order, bits_of(task.V + (task.form not in PROMISED)))
        case MQAR():
            return Needed(bits_of(task.first_value - 1), 0, bits_of(task.answers))
        case _:
            return None


def _holds(part: Mechanism, needed: Needed) -> bool:
    """Whether the head fits, and its scores are exact."""
    if not isinstance(part, Full) or part.altered != frozenset({"conv"}) or part.conv < 2:
        return False
    head = part.retrieval_head
    if head is None or part.accumulator_bits < 32 or (needed.order and head.format not in WIDE):
        return False
    return exact_scores(needed, head.format) and head.has_room(
        needed.code + 1 + needed.order, needed.answer
    )


def exact_scores(needed: Needed, form: str) -> bool:
    """Whether numbers of keys and partial sums of scores are held by a format, and by fp32."""
    # stored numbers up to code + 1 need eight digits
    most = MOST_ADDRESS_BITS if form in WIDE else 127
    return needed.code < most and (2 * needed.code + 2) << (needed.order + 1) <= 1 << 24
