"""Retrieval in one full layer."""

from __future__ import annotations

from separatrix.core.evidence.records import Verdict
from separatrix.stacks.architecture import Architecture
from separatrix.tasks import Eva, Index, Task
from separatrix.theory.base import SOLVABLE, Sees, Theorem
from separatrix.theory.solves.places import finders
from separatrix.theory.solves.room import CHOSEN_WEIGHTS, PLACES, TAGS, bits_of
from separatrix.theory.words import Words, WordsByTask

RETRIEVED: WordsByTask = dict.fromkeys(
    ("eva", "index"),
    Words(
        "{statement}",
        "The layer looks the fact up by its address instead of remembering it, so the growing cache"
        " does the work; training may not find them.",
    ),
)
"""How retrieval is told, whatever kind of layer retrieves."""


class Retrieval(Theorem):
    key = "retrieval"
    title = "one full layer retrieves"
    statement = (
        "A head whose keys hold D address bits as +-1 and whose query asks for one address scores"
        " s^2 (D - 2 hamming): the right token wins by 2 s^2, the rest weighs at most (n-1) e^(-2"
        " s^2), and a threshold restores the payload exactly. With rotations alone the keys are all"
        " equal and the last token, whose place is known, asks for an offset: the score is largest"
        " there (relative selection). One full layer solves Eva and index lookup."
    )
    premises = (
        (
            "a full head with room for the answer's bits in its values and, for addresses, for"
            " their bits and two tags in its keys"
        ),
        PLACES,
        "scores of addresses exact in the format: s a power of two, at most 256 address bits",
        CHOSEN_WEIGHTS,
    )
    source = "[CPW]; theory.md, section 6, retrieval head"
    proof_sketch = (
        "The gap 2 s^2 outweighs n - 1 wrong tokens once s^2 > ln(n)/2; the other layers write"
        " nothing. Rotated, the score at distance D from the offset asked for is s^2 sum_r w_r"
        " cos(theta_r D): the smallest of sum_r w_r (1 - cos(theta_r D)) over all D is computed"
        " from balls, and exceeds what rounding takes."
    )
    shows = SOLVABLE
    start_token = False
    sees = Sees.READERS
    words = RETRIEVED

    def judge(self, architecture: Architecture, task: Task) -> Verdict | None:
        if not isinstance(task, Eva | Index):
            return None
        address = bits_of(task.n)
        payload = bits_of(task.V)
        heads = finders(architecture, address=address + TAGS, payload=payload, tokens=task.length)
        for index, _, head, found in heads:
            asked = found.asked or (
                f"{address} address bits and {TAGS} tags of {head.head_dim} key dimensions"
            )
            sentence = (
                f"one full layer (layer {index + 1}) solves it: {asked}, {payload} answer bits of"
                f" {head.dv} value dimensions"
            )
            return self.solved(
                architecture,
                task,
                sentence,
                found.numbers(address, payload_bits=payload, layer=index),
                found.rests_on,
            )
        return None
