"""Bounded Dyck-(k, D) in three recurrent layers: a counter, a stack, and a flag."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import ClassVar

from separatrix.core.evidence.records import Verdict
from separatrix.core.numbers.formats import DIGITS
from separatrix.stacks.architecture import Architecture, Place
from separatrix.stacks.mechanisms import Mechanism
from separatrix.tasks import Dyck, Task
from separatrix.theory.base import SOLVABLE, Sees, Theorem, number
from separatrix.theory.solves.room import bits_of
from separatrix.theory.solves.state_tracking import SATURATED
from separatrix.theory.words import Words, WordsByTask


@dataclass(frozen=True, kw_only=True)
class Needed:
    """What the construction takes for one task."""

    slots: int
    """Open brackets that can still be closed, at most."""
    bits: int
    """Of a kind of brackets."""
    tokens: int

    @classmethod
    def of(cls, task: Dyck) -> Needed:
        return cls(slots=min(task.D, task.n // 2), bits=bits_of(task.k), tokens=task.n)


class Brackets(Theorem):
    key = "brackets"
    title = "a counter and two layers that overwrite judge nested brackets"
    statement = (
        "Three recurrent layers, one behind the other, solve bounded Dyck-(k, D): the first adds up"
        " how many brackets are open, the second keeps the kind of the bracket open at each depth"
        " in a slot of its own, and the third remembers whether a bracket was wrong. The state"
        " holds D' slots of ceil(log2 k) numbers, D' = min(D, n/2), and two more; the classes of"
        " Theorem I take log(1 + sum over j <= D' of k^j) bits."
    )
    premises = (
        (
            "a head that adds up a number of every token, with no decay and no normaliser; behind"
            " it a delta-rule head with a key dimension for each of D' open brackets and a value"
            " dimension for each bit of a kind; behind that another delta-rule head"
        ),
        "no convolution, norm or gate around these heads",
        "4 (n + 2) at most 2^digits in every format of theirs: all sums are exact integers",
        SATURATED,
        "weights, token embeddings and position-wise maps may be chosen; no positions are used",
    )
    source = "theory.md, sections 3 and 6 [here]; the question is that of [Bha24]"
    proof_sketch = (
        "With c brackets open after a token, its slot is s = c if it opens and s = c + 1 if it"
        " closes; the key is e_s, b = 1 where a bracket opens and 0 where one closes. Induction:"
        " up to the first wrong bracket, slot j holds the kind of the bracket opened last at depth"
        " j, since e_s is of length 1 and the update S (I - e_s e_s^T) + v e_s^T replaces that slot"
        " and no other. So a bracket that closes reads the kind of the one it must match. It is"
        " wrong if they differ, or if c < 0, or if one opens with c > D'. The third layer's key is"
        " e_1 at wrong brackets and 0 at all others: its number is 1 from the first of them on."
        " Balanced means: that number and c are 0 in the end. All numbers are integers of size at"
        " most 4 (n + 2), in either form."
    )
    shows = SOLVABLE
    sees = Sees.STACK
    words: ClassVar[WordsByTask] = {
        "dyck": Words(
            "{statement}",
            "One layer counts how many are open, the next one keeps what opened at each depth, the"
            " third remembers a fault; training may not find such weights.",
        )
    }

    def judge(self, architecture: Architecture, task: Task) -> Verdict | None:
        if not isinstance(task, Dyck):
            return None
        needed = Needed.of(task)
        found = stacked(architecture, needed)
        if found is None:
            return None
        counter, holder, flag = (layer + 1 for layer, _ in found)
        sentence = (
            f"layer {counter} counts the open brackets, layer {holder} keeps the kinds of up to"
            f" {number(needed.slots)} in slots of {needed.bits} numbers, layer {flag} remembers a"
            " wrong one: they judge every prompt"
        )
        return self.solved(
            architecture,
            task,
            sentence,
            {
                "counter": counter - 1,
                "stack": holder - 1,
                "flag": flag - 1,
                "slots": needed.slots,
                "bits_of_a_kind": needed.bits,
            },
            SATURATED,
        )


def stacked(architecture: Architecture, needed: Needed) -> tuple[Place, Place, Place] | None:
    """Where counter, stack and flag find room; None where they do not."""
    asked: tuple[Callable[[Mechanism], bool], ...] = (
        lambda part: part.adds_up,
        lambda part: _holds(part, needed.slots, needed.bits),
        lambda part: _holds(part, 1, 1),
    )
    found: list[Place] = []
    for index, layer in enumerate(architecture):
        for kind, part in enumerate(layer):
            right = len(found) < len(asked) and asked[len(found)](part)
            if right and _exact(part, needed.tokens):
                found.append((index, kind))
                # heads side by side read the same input
                break
    if len(found) < len(asked):
        return None
    first, second, third = found
    return first, second, third


def most_counted(name: str) -> int:
    """The most tokens that the construction counts in a format."""
    return (1 << DIGITS[name]) // 4 - 2 if name in DIGITS else 0


def _holds(part: Mechanism, places: int, numbers: int) -> bool:
    slots = part.slots
    return slots is not None and slots.places >= places and slots.numbers >= numbers


def _exact(part: Mechanism, tokens: int) -> bool:
    return all(tokens <= most_counted(name) for name in part.formats)
