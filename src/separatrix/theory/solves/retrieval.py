"""Retrieval in one layer: full, block-sparse or indexed attention."""

from __future__ import annotations

from separatrix.core.evidence.records import Verdict
from separatrix.stacks.architecture import Architecture
from separatrix.stacks.mechanisms import Sparse
from separatrix.tasks import Eva, Index, Task
from separatrix.theory.base import SOLVABLE, Sees, Theorem
from separatrix.theory.solves.places import EMBEDDED, finders, places
from separatrix.theory.solves.room import CHOSEN_WEIGHTS, PLACES, TAGS, WIDE, bits_of
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


class IndexedRetrieval(Theorem):
    key = "indexed-retrieval"
    title = "one indexed layer retrieves"
    statement = (
        "With address bits as +-1 in the indexer's keys and the query, the token asked for has the"
        " highest score, so it is among the k >= 1 tokens read; among those the retrieval head"
        " finds it. One indexed layer solves Eva and index lookup."
    )
    premises = (
        (
            "an indexer whose score of a token grows with the product of one query and the token's"
            " key, with room for the address bits and two tags, no rotation among them, twice"
            " behind a LayerNorm; or one that reads every token"
        ),
        (
            "a head with room for the address bits and two tags in its keys and for the answer's"
            " bits in its values (both within the latent)"
        ),
        PLACES,
        "scores of addresses exact in the format: s a power of two, at most 256 address bits",
        CHOSEN_WEIGHTS,
    )
    source = "this program: the retrieval head [CPW], once in the indexer and once in the head"
    proof_sketch = (
        "Products are D - 2 hamming, largest at hamming 0 alone; ReLU and a sum over index heads"
        " keep the order where they are positive."
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
                choice = part.token_choice
                if choice is None:
                    continue
                found = places(
                    architecture,
                    part,
                    choice.head,
                    index=index,
                    address=address + TAGS,
                    payload=payload,
                    tokens=task.length,
                )
                # an indexer that reads every token need not choose
                every = choice.topk >= task.length
                if found is None or not (
                    every or (found.address and choice.dims >= address + TAGS)
                ):
                    continue
                turned = 0 if part.rotation is None else part.rotation.dims
                if choice.asking is not None and choice.asking < (found.address or turned):
                    continue
                asked = found.asked or (
                    f"{address} address bits and {TAGS} tags of {choice.dims} dimensions of the"
                    f" indexer and {choice.head.head_dim} key dimensions"
                )
                sentence = (
                    f"one indexed layer (layer {index + 1}) solves it: {asked}, {payload} answer"
                    f" bits of {choice.head.dv} value dimensions"
                )
                return self.solved(
                    architecture,
                    task,
                    sentence,
                    found.numbers(address, payload_bits=payload, layer=index),
                    found.rests_on,
                )
        return None
