"""Retrieval in one layer of indexed attention."""

from __future__ import annotations

from separatrix.core.evidence.records import Verdict
from separatrix.stacks.architecture import Architecture
from separatrix.tasks import Eva, Index, Task
from separatrix.theory.base import SOLVABLE, Sees, Theorem
from separatrix.theory.solves.places import places
from separatrix.theory.solves.retrieval import RETRIEVED
from separatrix.theory.solves.room import CHOSEN_WEIGHTS, PLACES, TAGS, bits_of


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
