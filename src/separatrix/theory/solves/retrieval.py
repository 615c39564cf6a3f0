"""Facts by their addresses: retrieval in one layer, full, sparse or indexed; copying in two."""

from __future__ import annotations

from separatrix.stacks.architecture import Architecture
from separatrix.stacks.mechanisms import Sparse
from separatrix.tasks import Copying, Eva, Index
from separatrix.theory.solves.places import Attending, finders
from separatrix.theory.solves.room import (
    CHOSEN_WEIGHTS,
    EXACT_SCORES,
    PLACES,
    TAGS,
    WIDE,
    Construction,
    Room,
    bits_of,
)


class _Retrieves(Construction[Eva | Index]):
    """Whatever kind of layer retrieves."""

    about = (Eva, Index)
    why = (
        "The layer looks the fact up by its address instead of remembering it, so the growing cache"
        " does the work; training may not find them."
    )


class Retrieval(_Retrieves):
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
        EXACT_SCORES,
        CHOSEN_WEIGHTS,
    )
    source = "[CPW]; theory.md, section 6, retrieval head"
    proof_sketch = (
        "The gap 2 s^2 outweighs n - 1 wrong tokens once s^2 > ln(n)/2; the other layers write"
        " nothing. Rotated, the score at distance D from the offset asked for is s^2 sum_r w_r"
        " cos(theta_r D): the smallest of sum_r w_r (1 - cos(theta_r D)) over all D is computed"
        " from balls, and exceeds what rounding takes."
    )
    start_token = False

    def room(self, architecture: Architecture, task: Eva | Index) -> Room | None:
        address, payload = bits_of(task.n), bits_of(task.V)
        heads = finders(architecture, address=address + TAGS, payload=payload, tokens=task.length)
        for one, found in heads:
            asked = found.asked or (
                f"{address} address bits and {TAGS} tags of {one.head.head_dim} key dimensions"
            )
            said = (
                f"one full layer (layer {one.layer + 1}) solves it: {asked}, {payload} answer bits"
                f" of {one.head.dv} value dimensions"
            )
            numbers = found.numbers(address, payload_bits=payload, layer=one.layer)
            return Room(said, numbers, (found.rests_on,))
        return None


class BlockRetrieval(_Retrieves):
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
        "this program: constructions/retrieval.py derives the weights; the retrieval head is [CPW]"
    )
    proof_sketch = (
        "Low bits cancel exactly in the mean; the right block leads by 2 s^2, and within it the"
        " retrieval head does the rest."
    )
    embedded = True

    def room(self, architecture: Architecture, task: Eva | Index) -> Room | None:
        address, payload = bits_of(task.n), bits_of(task.V)
        for index, layer in enumerate(architecture):
            for part in layer:
                if not isinstance(part, Sparse) or not part.plain or not part.formats <= WIDE:
                    continue
                # low address bits cancel in the mean over whole powers of two only
                if part.block < 2 or part.block & (part.block - 1):
                    continue
                if part.head.has_room(address + TAGS, payload) and address <= 256:
                    said = (
                        f"one sparse layer (layer {index + 1}) solves it, opening 1 block of"
                        f" {part.block} tokens: {address} address bits and {TAGS} tags of"
                        f" {part.head_dim} key dimensions, {payload} answer bits of {part.dv} value"
                        " dimensions"
                    )
                    numbers = {"address_bits": address, "payload_bits": payload}
                    return Room(said, numbers | {"block": part.block, "layer": index})
        return None


class IndexedRetrieval(_Retrieves):
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
        EXACT_SCORES,
        CHOSEN_WEIGHTS,
    )
    source = "this program: the retrieval head [CPW], once in the indexer and once in the head"
    proof_sketch = (
        "Products are D - 2 hamming, largest at hamming 0 alone; ReLU and a sum over index heads"
        " keep the order where they are positive."
    )

    def room(self, architecture: Architecture, task: Eva | Index) -> Room | None:
        address, payload = bits_of(task.n), bits_of(task.V)
        for index, layer in enumerate(architecture):
            for part in layer:
                choice = part.token_choice
                if choice is None:
                    continue
                found = Attending(architecture, index, part, choice.head).places(
                    address=address + TAGS, payload=payload, tokens=task.length
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
                said = (
                    f"one indexed layer (layer {index + 1}) solves it: {asked}, {payload} answer"
                    f" bits of {choice.head.dv} value dimensions"
                )
                numbers = found.numbers(address, payload_bits=payload, layer=index)
                return Room(said, numbers, (found.rests_on,))
        return None


class TwoLayerCopying(Construction[Copying]):
    key = "copying"
    title = "two full layers that address places copy a string"
    statement = (
        "A string, a mark, then a blank for each of its values. In one full layer every blank finds"
        " the mark and reads the address of its place; a blank at place p behind a mark at place m"
        " asks a second full layer for place p - m - 1. So two full layers whose tokens address"
        " places, by embeddings or by counts of recurrent layers before, copy strings of every"
        " length up to n."
    )
    premises = (
        "addresses of places, embedded or counted; rotations alone ask for fixed offsets",
        "keys with room for an address and 2 tags; values for an address in the first, a value's"
        " bits in the second",
        CHOSEN_WEIGHTS,
    )
    source = "theory.md, section 6, retrieval head [here]; Jelassi et al., arXiv 2402.01032"
    proof_sketch = (
        "Both are retrieval heads: the first with one bit, mark or none, for an address, the second"
        " with the difference that a position-wise map makes of two addresses. The mark stands once"
        " and before every blank; a threshold restores the bits of its place."
    )
    start_token = False
    about = (Copying,)
    why = "Each blank works out where its value stands, and looks."

    def room(self, architecture: Architecture, task: Copying) -> Room | None:
        address = bits_of(task.length)
        heads = finders(
            architecture,
            address=address + TAGS,
            payload=max(address, bits_of(task.V)),
            tokens=task.length,
            named=True,
        )
        # of two kinds of heads in one layer the second adds no layer
        layers = {one.layer: found for one, found in heads}
        if len(layers) < 2:
            return None
        first, second, *_ = sorted(layers)
        said = (
            f"two full layers solve it: layer {first + 1} finds the mark, layer {second + 1} looks"
            f" up values by {address} address bits and {TAGS} tags in its keys"
        )
        numbers = {"address_bits": address, "first": first, "second": second}
        return Room(said, numbers, (layers[first].rests_on,))
