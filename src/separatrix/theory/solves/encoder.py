"""Composition in an encoder of logarithmic depth: attention that sees later tokens too."""

from __future__ import annotations

from typing import ClassVar

from separatrix.core.evidence.records import Verdict
from separatrix.stacks.architecture import Architecture
from separatrix.stacks.mechanisms import Full, Mechanism
from separatrix.tasks import SeqComp, Task
from separatrix.theory.base import SOLVABLE, Theorem
from separatrix.theory.solves.places import EMBEDDED, MOST_ADDRESS_BITS
from separatrix.theory.solves.room import CHOSEN_WEIGHTS, WIDE, bits_of
from separatrix.theory.words import Words, WordsByTask


class Encoder(Theorem):
    key = "encoder"
    title = "an encoder of 1 + ceil(log2(L+1)) layers composes L steps"
    statement = (
        "1 + ceil(log2(L+1)) layers of attention that is not causal solve L-SeqComp. In the first"
        " every token fetches w, and the token w fetches z_0. Every token then holds an address to"
        " read next, or a final value and a flag; each further layer doubles the jump."
    )
    premises = (
        (
            "full layers with causal=false and no other option, with room for the bits of w, of"
            " N_{L-2} values and of L+2 levels in their keys, and for a value, a level and a flag,"
            " or a value and w, in their values"
        ),
        "positions: learned or free embeddings",
        "scores of addresses exact in the format: fp32 or wider, at most 256 address bits",
        CHOSEN_WEIGHTS,
    )
    source = "[CPW]; theory.md, section 6; constructions/encoder.py derives the weights"
    proof_sketch = (
        "Number the chain: w is 0, the entry of z_l that is asked for l, the answer L+1. Induction:"
        " behind layer 1 + j a token at index i holds the address of index i + 2^j, or the final"
        " value if that is L+1 or more: it reads the pointer of the token that it points to, and"
        " keeps a final value. So w holds the answer once 2^j is at least L+1."
    )
    shows = SOLVABLE
    both_ways = True
    words: ClassVar[WordsByTask] = {
        "seqcomp": Words(
            "{statement}",
            "Where every token sees the whole prompt, all of them follow their pointers at once,"
            " and each layer doubles how far these reach.",
        )
    }

    def judge(self, architecture: Architecture, task: Task) -> Verdict | None:
        if not isinstance(task, SeqComp) or architecture.positions != "embedded":
            return None
        parts = sum((number - 1).bit_length() for number in task.branching)
        address = parts + bits_of(task.N(max(task.L - 2, 0))) + bits_of(task.L + 2)
        payload = bits_of(task.N(task.L - 1)) + max(parts, bits_of(task.L + 2) + 1)
        wide = [
            index
            for index, layer in enumerate(architecture)
            if any(_holds(part, max(2, address), payload) for part in layer)
        ]
        depth = 1 + task.L.bit_length()
        if len(wide) < depth or address > MOST_ADDRESS_BITS:
            return None
        sentence = (
            f"{depth} full layers that see every token solve it: the first fetches w and z_0, each"
            f" of {depth - 1} further ones doubles the jump ({address} address and tag bits in the"
            f" keys, {payload} value dimensions)"
        )
        return self.solved(
            architecture,
            task,
            sentence,
            {"address_bits": address, "payload_bits": payload, "full_layers": depth},
            EMBEDDED,
        )


def _holds(part: Mechanism, keys: int, values: int) -> bool:
    """Whether a layer sees every token, with the room, in a format that keeps scores exact."""
    return (
        isinstance(part, Full)
        and part.altered == frozenset({"causal"})
        and part.formats <= WIDE
        and part.head.has_room(keys, values)
    )
