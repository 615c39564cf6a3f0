"""What can be solved: explicit constructions with the sizes they need. `constructions/` builds the weights of most of them."""

from __future__ import annotations

from collections.abc import Iterator

from separatrix.architecture import Architecture
from separatrix.architecture.mechanisms import (
    RGLRU,
    Full,
    Indexed,
    Latent,
    Mamba,
    Mamba2,
    MatrixState,
    Mechanism,
    ShortConvolution,
    Sparse,
    Window,
)
from separatrix.evidence import Verdict
from separatrix.tasks import Eva, SeqComp, Task, TwoSum
from separatrix.theory._base import Theorem

FORMATS = ("fp64", "fp32", "bf16", "fp16")
"""Formats in which a power-of-two scale keeps scores of up to 256 address bits exact."""
WIDE = ("fp64", "fp32")
"""Formats for which the block-sparse construction is proved."""
MATCH_LIMIT = {"fp64": 130_000_000, "fp32": 5_754, "fp16": 63, "bf16": 22}
"""Largest M that the three-dimensional embedding separates, by format (theory.md, section 6)."""
TAGS = 2
"""Key dimensions a retrieval head keeps free for tags beside the address."""


def full_heads(architecture: Architecture) -> Iterator[tuple[int, Full | Latent]]:
    """(layer, heads) of the full attention, latent attention included, in formats that keep scores exact."""
    for index, layer in enumerate(architecture):
        for part in layer:
            if (
                isinstance(part, Full | Latent)
                and not getattr(part, "rope", False)
                and {part.format, part.accumulator or part.format} <= set(FORMATS)
            ):
                yield index, part


def has_room(part: Full | Latent | Sparse | Indexed, keys: int, values: int) -> bool:
    """Whether a head has that many key and value dimensions; a latent must hold both, since it is all that is kept of a token."""
    latent = part.latent if isinstance(part, Latent | Indexed) else None
    return keys <= part.head_dim and values <= part.dv and (latent is None or keys + values <= latent)


def bits_of(values: int) -> int:
    """ceil(log2 values), at least 1."""
    return max(1, (values - 1).bit_length())


class Retrieval(Theorem):
    key = "retrieval"
    title = "one full layer retrieves"
    statement = (
        "A head whose keys hold D address bits as +-1 and whose query asks for one address scores s^2 (D - 2 hamming): the right token wins by "
        "2 s^2, the rest weighs at most (n-1) e^(-2 s^2), and a threshold restores the payload exactly. One full layer solves Eva."
    )
    premises = (
        "a full head with room for the address bits and two tags in its keys and for the answer's bits in its values",
        "scores exact in the format: s a power of two, at most 256 address bits",
        "weights, embeddings and position-wise maps, rotations of queries and keys (RoPE) among them, may be chosen",
    )
    source = "[CPW]; theory.md, section 6, retrieval head"
    proof_sketch = "The gap 2 s^2 outweighs n - 1 wrong tokens once s^2 > ln(n)/2; the other layers write nothing."

    def judge(self, architecture: Architecture, task: Task) -> Verdict | None:
        if not isinstance(task, Eva):
            return None
        address, payload = bits_of(task.n), bits_of(task.V)
        for index, part in full_heads(architecture):
            if has_room(part, address + TAGS, payload) and address <= 256:
                sentence = (
                    f"one full layer (layer {index + 1}) solves it: {address} address bits and {TAGS} tags of {part.head_dim} key dimensions, "
                    f"{payload} answer bits of {part.dv} value dimensions"
                )
                numbers = {"address_bits": address, "payload_bits": payload, "layer": index}
                return self.verdict(architecture, task, "SOLVABLE", sentence, numbers=numbers)
        return None


class BlockRetrieval(Theorem):
    key = "block-retrieval"
    title = "one block-sparse layer retrieves"
    statement = (
        "Mean-pooled over a block of 2^b tokens, keys of address bits keep the high bits and lose the b low ones, so the block asked for scores "
        "highest, is the one opened, and holds the token asked for. One (B, k)-sparse layer solves Eva for every k >= 1."
    )
    premises = (
        "a sparse head without convolution, rotation, window and gates, with room for the address bits and two tags in its keys and for the "
        "answer's bits in its values",
        "blocks of a power of two, pooled by the mean; float32 or wider",
        "weights, embeddings and position-wise maps may be chosen",
    )
    source = "this program: constructions/sparse_retrieval.py derives the weights; the retrieval head is [CPW]"
    proof_sketch = "Low bits cancel exactly in the mean; the right block leads by 2 s^2, and within it the retrieval head does the rest."

    def judge(self, architecture: Architecture, task: Task) -> Verdict | None:
        if not isinstance(task, Eva):
            return None
        address, payload = bits_of(task.n), bits_of(task.V)
        for index, layer in enumerate(architecture):
            for part in layer:
                if not isinstance(part, Sparse) or not part.plain or not {part.format, part.accumulator or part.format} <= set(WIDE):
                    continue
                if part.block < 2 or part.block & (part.block - 1):
                    continue
                if address + TAGS <= part.head_dim and payload <= part.dv and address <= 256:
                    sentence = (
                        f"one sparse layer (layer {index + 1}) solves it, opening 1 block of {part.block} tokens: {address} address bits "
                        f"and {TAGS} tags of {part.head_dim} key dimensions, {payload} answer bits of {part.dv} value dimensions"
                    )
                    numbers = {"address_bits": address, "payload_bits": payload, "block": part.block, "layer": index}
                    return self.verdict(architecture, task, "SOLVABLE", sentence, numbers=numbers)
        return None


class IndexedRetrieval(Theorem):
    key = "indexed-retrieval"
    title = "one indexed layer retrieves"
    statement = (
        "With address bits as +-1 in the indexer's keys and the query, the token asked for has the highest score, so it is among the k >= 1 tokens "
        "read; among those the retrieval head finds it. One indexed layer solves Eva."
    )
    premises = (
        "an indexer whose score of a token grows with the product of one query and the token's key, with room for the address bits and two tags",
        "a head with room for the address bits and two tags in its keys and for the answer's bits in its values (both within the latent)",
        "scores exact in the format: s a power of two, at most 256 address bits",
        "weights, embeddings and position-wise maps, rotations of queries and keys (RoPE) among them, may be chosen",
    )
    source = "this program: the retrieval head [CPW], once in the indexer and once in the head"
    proof_sketch = (
        "Products are D - 2 hamming, largest at hamming 0 alone; ReLU and a sum over index heads keep the order where they are positive."
    )

    def judge(self, architecture: Architecture, task: Task) -> Verdict | None:
        if not isinstance(task, Eva):
            return None
        address, payload = bits_of(task.n), bits_of(task.V)
        for index, layer in enumerate(architecture):
            for part in layer:
                if not isinstance(part, Indexed) or not {part.format, part.accumulator or part.format} <= set(FORMATS):
                    continue
                if part.rope or part.block != 1 or part.index_dim < address + TAGS or address > 256:
                    continue
                if has_room(part, address + TAGS, payload):
                    sentence = (
                        f"one indexed layer (layer {index + 1}) solves it: {address} address bits and {TAGS} tags of {part.index_dim} index "
                        f"dimensions and {part.head_dim} key dimensions, {payload} answer bits of {part.dv} value dimensions"
                    )
                    numbers = {"address_bits": address, "payload_bits": payload, "layer": index}
                    return self.verdict(architecture, task, "SOLVABLE", sentence, numbers=numbers)
        return None


class Composition(Theorem):
    key = "composition"
    title = "L+1 full layers, or L and a bounded one, compose L steps"
    statement = (
        "L+1 full layers solve L-SeqComp: the first fetches z_0, each further one follows one step. L full layers and one recurrent layer, window "
        "or short convolution before the first full layer (it carries z_0 to w, the next token) or between the first and the second (it carries "
        "i_1) do too."
    )
    premises = (
        "full heads with room for the address bits and a tag for each level in their keys and for the values' bits in their values",
        "a carrier, where one is used, with room for the bits of z_0 in one head",
        "scores exact in the format: s a power of two, at most 256 address bits",
        "weights, embeddings and position-wise maps, rotations of queries and keys (RoPE) among them, may be chosen",
    )
    source = "[CPW]; theory.md, sections 5 (tightness) and 6"
    proof_sketch = (
        "Every layer is a retrieval head for the address (level, w_{l-1}, i_{l-1}); z_0 comes by one more of them, or by the recurrence."
    )

    def judge(self, architecture: Architecture, task: Task) -> Verdict | None:
        if not isinstance(task, SeqComp):
            return None
        address = bits_of(task.N(task.L - 1)) + task.L + 1
        payload = bits_of(task.N(task.L - 1))
        layers = sorted({i for i, part in full_heads(architecture) if has_room(part, address, payload) and address <= 256})
        steps, carried = composable(architecture, layers, bits_of(task.m))
        if steps < task.L:
            return None
        how = "the first fetches z_0" if not carried or len(layers) > task.L else "a bounded layer carries z_0 or i_1 to w"
        sentence = (
            f"{len(layers)} full layers solve it ({how}, each further one follows a step): {address} address and tag bits in the keys"
        )
        numbers = {"address_bits": address, "payload_bits": payload, "full_layers": len(layers), "steps": steps}
        return self.verdict(architecture, task, "SOLVABLE", sentence, numbers=numbers)


def composable(architecture: Architecture, full_layers: list[int], carried_bits: int) -> tuple[int, bool]:
    """(largest L that the constructions cover with these full layers, whether a bounded layer carries z_0 or i_1, of that many bits).

    The carrier stands before the first full layer or between the first and the second; heads beside the first would come too late (Theorem IV).
    It hands the bits on from z_0 to w, which is the next token.
    """
    if not full_layers:
        return 0, False
    first, second = full_layers[0], full_layers[1] if len(full_layers) > 1 else full_layers[0]
    carried = any(carries(part, carried_bits) for i in range(second) if i != first for part in architecture.layers[i])
    return len(full_layers) - 1 + carried, carried


def carries(part: Mechanism, bits: int) -> bool:
    """Whether one head can hand that many bits, each as +-1, from one token to the next."""
    sizes = part.sizes()
    if not {part.format, *(sizes.get(key) or part.format for key in ("state_format", "accumulator"))} <= set(FORMATS):
        return False
    if isinstance(part, Window):
        return part.size >= 2 and part.dv >= bits and not part.shared
    if isinstance(part, ShortConvolution):
        return part.conv >= 2 and part.width >= bits
    if isinstance(part, RGLRU | Mamba):
        return part.width >= bits
    if isinstance(part, Mamba2):
        return part.head_dim >= bits
    return isinstance(part, MatrixState) and part.dv >= bits


class Match2(Theorem):
    key = "match2"
    title = "one full layer solves 2-Sum per query"
    statement = (
        "With phi(x) = (cos, sin, 1) of 2 pi x/M a head of dimension 3 scores c cos(2 pi (x_i + x_j)/M), largest exactly where the two cancel; "
        "a blank key takes the weight otherwise. Beyond the M that the format separates, a bit code of log2 M + 1 dimensions does it."
    )
    premises = (
        "a full head of dimension 3 (or log2 M + 2)",
        "a start token may stand before the prompt",
        "weights and embeddings may be chosen",
    )
    source = "[San23]; theory.md, section 6, Match2"
    proof_sketch = "Match over blank and blank over best non-match are both c sin^2(pi/M); c = ln(8n)/sin^2(pi/M) outweighs n tokens."

    def judge(self, architecture: Architecture, task: Task) -> Verdict | None:
        if not isinstance(task, TwoSum) or task.form != "query":
            return None
        for index, part in full_heads(architecture):
            if has_room(part, 3, 1) and MATCH_LIMIT[part.format] >= task.M:
                how, dimensions = f"3 key dimensions, M = {task.M:,} of at most {MATCH_LIMIT[part.format]:,} in {part.format}", 3
            elif has_room(part, bits_of(task.M) + TAGS, 1):
                how, dimensions = f"a bit code in {bits_of(task.M) + TAGS} of {part.head_dim} key dimensions", bits_of(task.M) + TAGS
            else:
                continue
            sentence = f"one full layer (layer {index + 1}) solves it: {how}"
            return self.verdict(architecture, task, "SOLVABLE", sentence, numbers={"dimensions": dimensions, "layer": index})
        return None
