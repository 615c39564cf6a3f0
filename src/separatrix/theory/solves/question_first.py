"""Recall with the question before the facts: recurrences that wait for the key they keep."""

from __future__ import annotations

from collections.abc import Callable
from typing import ClassVar

from separatrix.core.evidence.records import Verdict
from separatrix.stacks.architecture import Architecture
from separatrix.stacks.mechanisms import Mechanism
from separatrix.tasks import Recall, Task
from separatrix.theory.base import SOLVABLE, Sees, Theorem, number
from separatrix.theory.solves.places import EMBEDDED
from separatrix.theory.solves.room import bits_of
from separatrix.theory.solves.state_tracking import SATURATED
from separatrix.theory.words import Words, WordsByTask


class QuestionFirst(Theorem):
    key = "question-first"
    title = "recurrences recall what they were asked for before"
    statement = (
        "The key asked for stands before the pairs. A recurrence whose tokens may overwrite"
        " numbers of its state, or leave them exactly as they are, keeps the bits of that key;"
        " each token is compared with it; a layer that sees the token before hands on whether it"
        " matched; and such a recurrence again keeps the value behind a match. About log2 K +"
        " log2 V bits answer every prompt, whatever n, in every form."
    )
    premises = (
        (
            "two layers of such recurrences, with room for the bits of a key and of an answer,"
            " and between them a layer with a short convolution that hands a bit to the next token"
        ),
        (
            "the first token is told apart: by embeddings of positions, or by one more layer with a"
            " short convolution before"
        ),
        SATURATED,
        ("weights, token embeddings and position-wise maps may be chosen; the same serve every n"),
    )
    source = "theory.md, section 12 [here]; Arora et al., Just Read Twice, arXiv 2407.05483"
    proof_sketch = (
        "Gates saturate, so that what is kept is kept bit for bit: the delta rule with one key"
        " for all tokens and b = 1 or 0, Mamba with a large step or 0, RG-LRU with r = 1 or 0."
        " The first token writes its bits into the first state, and no other does; behind that"
        " layer every token sees its own bits and these, and an MLP says whether all agree. The"
        " token after a match is its value, which overwrites the second state; where nothing"
        " matched it stays empty. The last match counts, so that keys may be written again."
    )
    shows = SOLVABLE
    sees = Sees.STACK
    words: ClassVar[WordsByTask] = {
        "recall": Words(
            "{statement}", "It need not keep the facts, as it knows which one to wait for."
        )
    }

    def judge(self, architecture: Architecture, task: Task) -> Verdict | None:
        if not isinstance(task, Recall) or task.question != "first":
            return None
        key = bits_of(task.K)
        answer = bits_of(task.answers)
        placed = architecture.positions == "embedded"

        def keeps_key(part: Mechanism) -> bool:
            return part.latched >= key

        def keeps_answer(part: Mechanism) -> bool:
            # one number more: whether anything was kept
            return part.latched > answer

        wanted = (keeps_key, hands_on, keeps_answer)
        layers = in_turn(architecture, wanted if placed else (hands_on, *wanted))
        if layers is None:
            return None
        first, _, last = layers[-3:]
        return self.solved(
            architecture,
            task,
            (
                f"layer {first + 1} keeps the {number(key)} bits of the key asked for, layer"
                f" {last + 1} the {number(answer)} bits of its value, whatever n"
            ),
            {"key_bits": key, "answer_bits": answer}
            | {f"layer_{i}": layer for i, layer in enumerate(layers, 1)},
            SATURATED,
            *([EMBEDDED] if placed else []),
        )


def hands_on(part: Mechanism) -> bool:
    """Whether it tells a token one bit of the token before it."""
    return part.sees_neighbour and part.carries(1)


def in_turn(
    architecture: Architecture, wanted: tuple[Callable[[Mechanism], bool], ...]
) -> list[int] | None:
    """The first layers that do what is wanted, one after the other; None where there are none."""
    found: list[int] = []
    for index, layer in enumerate(architecture):
        if len(found) < len(wanted) and any(wanted[len(found)](part) for part in layer):
            found.append(index)
    return found if len(found) == len(wanted) else None


def waits(architecture: Architecture, values: int) -> Verdict | None:
    """The verdict on recall of one of two facts of so many keys and values, which holds for every
    number of facts.
    """
    task = Recall(n=2, K=max(2, values), V=max(2, values), question="first")
    return QuestionFirst().judge(architecture, task)
