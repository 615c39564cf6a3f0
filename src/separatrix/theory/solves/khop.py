"""k-hop induction in floor(log2 k) + 2 full layers."""

from __future__ import annotations

from typing import ClassVar

from separatrix.core.evidence.records import Verdict
from separatrix.stacks.architecture import Architecture
from separatrix.stacks.mechanisms import Mechanism
from separatrix.stacks.mechanisms.base import Head
from separatrix.tasks import KHop, Task
from separatrix.theory.base import SOLVABLE, Theorem
from separatrix.theory.solves.places import EMBEDDED, compares
from separatrix.theory.solves.room import CHOSEN_WEIGHTS, bits_of, full_heads
from separatrix.theory.words import Words, WordsByTask

_EXACT = 24
"""Binary digits of scores in steps of 16."""


class DoubledHops(Theorem):
    key = "k-hop"
    title = "floor(log2 k) + 2 full layers make k hops"
    statement = (
        "In the first layer every token finds the latest earlier one of its letter: one head for"
        " each binary digit of a place, which looks where that digit is the first to differ, so"
        " that no token finds itself. The place behind it is one hop away. In each further layer"
        " every token reads where its pointer leads: the pointer there, which doubles the hops,"
        " and, where a digit of k is set, the letter known there. So floor(log2 k) + 2 layers make"
        " k hops. (With the previous token in the first layer and the last occurrence in the second"
        " the same depth would make 2^floor(log2 k) hops only.)"
    )
    premises = (
        (
            "full layers, the first with a head for each binary digit of a place, its keys with"
            " room for a place, a letter and a start token; the others with room for a place and a"
            " tag in their keys, and for a place and a letter in their values"
        ),
        "positions: learned or free embeddings; a start token stands before the prompt",
        "scores of up to 32 (n+1) (2 log V + 6), in steps of 16, are exact: fp32 or wider",
        CHOSEN_WEIGHTS,
    )
    source = "[San24] for the depth; constructions/khop.py derives the weights [here]"
    proof_sketch = (
        "A token before p first differs from p in some digit b, 1 in p and 0 there: it lies in"
        " block b of p. Of the tokens of p's letter in that block the latest scores highest, by a"
        " step per place; a start token lies between those and all others. The lowest digit with a"
        " find is the nearest block. Then induction: behind layer l a token holds the place that"
        " 2^(l-1) hops lead to, less one, and the letter as many hops on as the lowest l-1 digits"
        " of k say."
    )
    shows = SOLVABLE
    words: ClassVar[WordsByTask] = {
        "khop": Words(
            "{statement}",
            "One layer finds what each token looks for, and every further one doubles the hops.",
        )
    }

    def judge(self, architecture: Architecture, task: Task) -> Verdict | None:
        if not isinstance(task, KHop) or architecture.positions != "embedded":
            return None
        place = bits_of(task.n + 1)
        letter = bits_of(task.V)
        # the sizes of what is added up to a score, in the head for the highest digit
        if (1 << place) * (2 * letter + 6) > 1 << _EXACT:
            return None
        depth = task.k.bit_length() + 1
        first: int | None = None
        after: list[int] = []
        for index, part, head in full_heads(architecture):
            # of two kinds of heads in one layer the second adds no layer
            if first is None and _searches(part, head, place, letter, architecture):
                first = index
            elif first is not None and index not in (first, *after):
                asks = compares(architecture, part, head, place + 1)
                after += [index] * (asks and head.has_room(place + 1, place + letter))
        if first is None or len(after) < depth - 1:
            return None
        sentence = (
            f"{depth} full layers solve it: layer {first + 1} finds the latest earlier token of the"
            f" same letter ({place} of its heads, {place + letter + 1} key dimensions), each of"
            f" {depth - 1} further ones doubles the hops ({place + letter} value dimensions)"
        )
        return self.solved(
            architecture,
            task,
            sentence,
            {"address_bits": place, "letter_bits": letter, "layers": depth, "first": first},
            EMBEDDED,
        )


def _searches(
    part: Mechanism, head: Head, place: int, letter: int, architecture: Architecture
) -> bool:
    """Whether a layer has a head for each digit of a place, with keys of its own in fp32."""
    shape = part.head_shape
    return (
        part.plain
        and shape.heads >= place
        and shape.kv in (None, shape.heads)
        and head.format in ("fp32", "fp64")
        and compares(architecture, part, head, place + letter + 1)
        and head.has_room(place + letter + 1, place + 1)
    )
