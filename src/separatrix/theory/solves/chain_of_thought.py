"""Composition with a chain of thought: one full layer takes any number of steps by writing them
down.
"""

from __future__ import annotations

from typing import ClassVar

from separatrix.core.evidence.records import Verdict
from separatrix.stacks.architecture import Architecture
from separatrix.stacks.mechanisms import Mechanism
from separatrix.stacks.mechanisms.base import Head
from separatrix.tasks import SeqComp, Task
from separatrix.tasks import Thought as Written
from separatrix.theory.base import SOLVABLE, Theorem
from separatrix.theory.solves.places import finders
from separatrix.theory.solves.room import CHOSEN_WEIGHTS, PLACES, bits_of
from separatrix.theory.words import Words, WordsByTask


class Thought(Theorem):
    key = "thought"
    title = "one full layer composes L steps in L written tokens"
    statement = (
        "A decoder with one full layer that may write before it answers solves L-SeqComp for every"
        " L with room for all of w: it writes the composites (w, z_0), (w, i_1), ..., (w,"
        " i_{L-1}), L tokens, and then answers i_L. The composites matter: from i_l alone the next"
        " query would not know w_l. With rotations alone a written token does not know its step:"
        " one head for each step fetches what it would be in that step, and one for each step but"
        " the first asks whether a written token stands so far back."
    )
    premises = (
        (
            "a full head with room for the values' bits in its values and, for addresses, for the"
            " bits of every part of w, of N_{L-2} values and of L+1 levels in its keys"
        ),
        PLACES,
        (
            "for more than one step by rotations alone, 2 L - 1 heads, and room for one bit more in"
            " the values"
        ),
        "written tokens from a vocabulary of composites; decoding is deterministic",
        "scores of addresses exact in the format: s a power of two, at most 256 address bits",
        CHOSEN_WEIGHTS,
    )
    source = "[CPW]; theory.md, section 6, chain of thought"
    proof_sketch = (
        "Every written token is one retrieval for the address (level, w_{l-1}, i_{l-1}), of which"
        " its place is the level and the token just written holds the rest: it asks with every part"
        " of w, and the keys of a level are 0 but in the bits of theirs. A level that is not asked"
        " for scores less by twice the tags' factor, a power of two above half of an address's"
        " bits."
    )
    shows = SOLVABLE
    at_once = False
    after_thought = True
    words_after_thought: ClassVar[WordsByTask] = {
        "seqcomp": Words(
            "one full layer suffices, which writes a token for each of {written} steps",
            "If the model may write intermediate results, one full layer is enough: it looks up a"
            " step, writes the result, looks up the next. It then writes one token per step; the"
            " limit of {written} is where the proof was asked for, the key's room for step"
            " tags, or the heads that ask for offsets.",
        )
    }

    def judge(self, architecture: Architecture, task: Task) -> Verdict | None:
        """SOLVABLE with a chain of thought, or None where no full head has the room.

        The task may be the composition or that with its chain of pairs written out; the record
        names the latter, since the composition at once may well fail.
        """
        if isinstance(task, Written):
            # from a value alone the next query would not know its w
            return self.judge(architecture, task.task) if task.form == "pairs" else None
        if not isinstance(task, SeqComp):
            return None
        address = _address(task)
        payload = bits_of(task.N(task.L - 1))
        # the tokens written stand behind the prompt
        heads = finders(architecture, address=address, payload=payload, tokens=task.length + task.L)
        for index, part, head, found in heads:
            if not (found.address or _knows_its_step(part, head, task.L, payload)):
                continue
            asked = f"{address} address and tag bits of {head.head_dim} key dimensions"
            if not found.address:
                asked = (
                    f"{_heads_for(task.L):,} of its {part.head_shape.heads:,} heads ask for offsets"
                )
            sentence = (
                f"with a chain of thought of {task.L:,} tokens one full layer (layer"
                f" {index + 1}) solves it: {asked}, {payload} answer bits of {head.dv} value"
                " dimensions"
            )
            numbers = found.numbers(address, payload_bits=payload, layer=index, written=task.L)
            return self.solved(
                architecture, Written(task=task, form="pairs"), sentence, numbers, found.rests_on
            )
        return None


def _address(task: SeqComp) -> int:
    """Key dimensions: the bits of every part of w, of a value that is written with it, and of the
    L+1 levels. A token does not know which part of w its step asks for: the keys of each level hold
    theirs, and 0 for the others.
    """
    parts = sum((number - 1).bit_length() for number in task.branching)
    return parts + bits_of(task.N(max(task.L - 2, 0))) + bits_of(task.L + 1)


def _knows_its_step(part: Mechanism, head: Head, steps: int, payload: int) -> bool:
    """Whether heads that ask for offsets can answer whatever step a written token stands for.

    The offset of an entry depends on the step, and the same token may be written in any of them:
    a token fetches the entry of every step, and counts the written tokens before it, which are no
    tokens of the prompt. Values hold the bits of an entry, and whether the token was written.
    """
    if steps == 1:
        return True
    return _heads_for(steps) <= part.head_shape.heads and head.has_room(0, payload + 1)


def _heads_for(steps: int) -> int:
    """Heads that fetch the entry of each step, and ask whether a token 1, ..., steps - 1 places
    back was written.
    """
    return 2 * steps - 1
