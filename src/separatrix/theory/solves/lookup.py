"""What stood behind a key, by two layers: one brings every token those before it, one compares."""

from __future__ import annotations

from collections.abc import Iterator
from typing import ClassVar, NamedTuple

from separatrix.core.evidence.records import Verdict
from separatrix.stacks.architecture import Architecture
from separatrix.tasks import MQAR, CGram, NoisyRecall, Recall, Task
from separatrix.tasks.recall import PROMISED
from separatrix.theory.base import SOLVABLE, Theorem
from separatrix.theory.solves.fan_in import seeing_heads
from separatrix.theory.solves.places import MOST_ADDRESS_BITS, NEEDS_NONE, content_dims, places
from separatrix.theory.solves.room import (
    CHOSEN_WEIGHTS,
    CONTENTS,
    PLACES,
    TAGS,
    bits_of,
    full_heads,
)
from separatrix.theory.words import Words, WordsByTask

_BEHIND = Words(
    "{statement}",
    "One layer tells every token which ones stood before it, and another finds the one place"
    " where that is what is asked for.",
)


class Wanted(NamedTuple):
    """What stands once behind so many tokens of a prompt, which are also its last ones."""

    before: int
    letter: int
    """Bits of a token."""

    @property
    def key(self) -> int:
        """Key dimensions: the bits of these tokens, and tags."""
        return self.before * self.letter + TAGS


class TwoLayerLookup(Theorem):
    key = "lookup"
    title = "two layers find what stood behind a key"
    statement = (
        "The last c tokens of a prompt stand once before, and what follows there is asked for:"
        " associative recall of keys that are written once and promised, amid filler and for many"
        " questions alike (c = 1), or c-gram retrieval. A layer brings every token the c tokens"
        " before it: c heads by their offsets or places, in a window of c + 1 tokens or more, or a"
        " short convolution. One head of a full layer behind it compares c B bits and 2 tags, B"
        " bits a token, in dimensions that no rotation turns, and reads the token found."
    )
    premises = (
        "a start token stands before the prompt where offsets are asked for",
        PLACES,
        f"{CONTENTS}: c B + 2 of them, at most {MOST_ADDRESS_BITS}; B value dimensions",
        CHOSEN_WEIGHTS,
    )
    source = "[Wen25]; theory.md, section 6, retrieval head and places [here]"
    proof_sketch = (
        "A token that finds the start token at offset j knows that nothing stands further back, so"
        " every token knows its c predecessors, or that there are fewer. Written in +-1, with a tag"
        " for those that have all, they score s^2 (2 + c B) against the last c tokens where they"
        " are the same and at least 2 s^2 less elsewhere: the retrieval head of Eva, with contents"
        " for addresses. Only one place matches, and a threshold cleans what is read there."
    )
    shows = SOLVABLE
    words: ClassVar[WordsByTask] = dict.fromkeys(
        ("recall", "mqar", "noisy-recall", "cgram"), _BEHIND
    )

    def judge(self, architecture: Architecture, task: Task) -> Verdict | None:
        wanted = wanted_by(task)
        if wanted is None:
            return None
        for first, rests_on in bringing(architecture, wanted, task.length):
            for second in comparing(architecture, wanted):
                if second <= first:
                    continue
                tokens = "the token" if wanted.before == 1 else f"the {wanted.before} tokens"
                return self.solved(
                    architecture,
                    task,
                    (
                        f"two layers solve it: layer {first + 1} brings every token {tokens} "
                        f"before it, layer {second + 1} compares {wanted.key} key dimensions"
                        f" and reads {wanted.letter} bits"
                    ),
                    {
                        "key_bits": wanted.key,
                        "payload_bits": wanted.letter,
                        "first": first,
                        "second": second,
                    },
                    rests_on,
                )
        return None


def wanted_by(task: Task) -> Wanted | None:
    """What a task asks to be looked up; None where it is something else, or may stand twice."""
    match task:
        case CGram():
            before = task.c
        case Recall(question="last") if task.form in PROMISED:
            before = 1
        case MQAR() | NoisyRecall():
            before = 1
        case _:
            return None
    return Wanted(before, bits_of(task.vocabulary))


def bringing(architecture: Architecture, wanted: Wanted, tokens: int) -> Iterator[tuple[int, str]]:
    """The layers that bring every token those before it, and what that rests on."""
    for index, layer in enumerate(architecture):
        # one number more for each: whether there is such a token
        numbers = wanted.before * (wanted.letter + 1)
        if any(p.brought >= numbers and p.sizes()["conv"] > wanted.before for p in layer):
            yield index, NEEDS_NONE
    for index, part, head, window in seeing_heads(architecture):
        seen = tokens + 1 if window is None else min(tokens + 1, window)
        if part.sizes()["heads"] < wanted.before or seen <= wanted.before:
            continue
        found = places(
            architecture,
            part,
            head,
            index=index,
            address=bits_of(tokens) + TAGS,
            payload=wanted.letter + 1,
            tokens=seen,
            prompt=tokens + 1,
        )
        if found is not None:
            yield index, found.rests_on


def comparing(architecture: Architecture, wanted: Wanted) -> list[int]:
    """The full layers with a head that compares so many bits of contents and reads a token."""
    return [
        index
        for index, part, head in full_heads(architecture)
        if wanted.key <= min(content_dims(architecture, part, head), MOST_ADDRESS_BITS)
        and head.has_room(wanted.key, wanted.letter)
    ]
