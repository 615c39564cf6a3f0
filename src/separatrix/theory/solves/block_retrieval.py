"""Retrieval in one block-sparse layer."""

from __future__ import annotations

from separatrix.core.evidence.records import Verdict
from separatrix.stacks.architecture import Architecture
from separatrix.stacks.mechanisms import Sparse
from separatrix.tasks import Eva, Index, Task
from separatrix.theory.base import SOLVABLE, Sees, Theorem
from separatrix.theory.solves.places import EMBEDDED
from separatrix.theory.solves.retrieval import RETRIEVED
from separatrix.theory.solves.room import TAGS, WIDE, bits_of


class BlockRetrieval(Theorem):
    key = "block-retrieval"
    title = "one block-sparse layer retrieves"
    statement = (
        "Mean-pooled over a block of 2^b tokens, keys of address bits keep the high bits and lose"
        " the b low ones, so the block asked for scores highest, is the one opened, and holds the"
        " token asked for. One (B, k)-sparse layer solves Eva and index lookup for every k"
        " >= 1."
    )
    premises = (
        (
            "a sparse head without convolution, rotation, window and gates, with room for the"
            " address bits and two tags in its keys and for the answer's bits in its values"
        ),
        "blocks of a power of two, pooled by the mean; float32 or wider",
        "weights, embeddings and position-wise maps may be chosen",
    )
    source = (
        "this program: constructions/sparse_retrieval.py derives the weights; the retrieval head is"
        " [CPW]"
    )
    proof_sketch = (
        "Low bits cancel exactly in the mean; the right block leads by 2 s^2, and within it the"
        " retrieval head does the rest."
    )
    shows = SOLVABLE
    sees = Sees.READERS
    words = RETRIEVED

    def judge(self, architecture: Architecture, task: Task) -> Verdict | None:
        if not isinstance(task, Eva | Index):
            return None
        address = bits_of(task.n)
        payload = bits_of(task.V)
        for index, layer in enumerate(architecture):
            for part in layer:
                if not isinstance(part, Sparse) or not part.plain or not part.formats <= WIDE:
                    continue
                if architecture.positions != "embedded":
                    continue
                # low address bits cancel in the mean over whole powers of two only
                if part.block < 2 or part.block & (part.block - 1):
                    continue
                if part.head.has_room(address + TAGS, payload) and address <= 256:
                    sentence = (
                        f"one sparse layer (layer {index + 1}) solves it, opening 1 block of"
                        f" {part.block} tokens: {address} address bits and {TAGS} tags of"
                        f" {part.head_dim} key dimensions, {payload} answer bits of {part.dv} value"
                        " dimensions"
                    )
                    numbers = {
                        "address_bits": address,
                        "payload_bits": payload,
                        "block": part.block,
                        "layer": index,
                    }
                    return self.solved(architecture, task, sentence, numbers, EMBEDDED)
        return None
