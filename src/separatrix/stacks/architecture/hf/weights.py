"""How many weights a released model has, from the sizes in its file: maps, MLPs, experts, head.

Where a model type's row does not say what follows its mixers, or a size is missing, nothing is
said. `tests/peers/test_weights.py` compares with transformers' own modules.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from separatrix.core.errors import ConfigError
from separatrix.core.evidence.canonical import json_list
from separatrix.core.numbers.formats import NumberFormat
from separatrix.stacks.architecture import Architecture
from separatrix.stacks.architecture.hf.draft import Unknown
from separatrix.stacks.architecture.hf.fields import Fields
from separatrix.stacks.architecture.hf.row import Row
from separatrix.stacks.architecture.weights import Experts, Weights
from separatrix.stacks.mechanisms import DSA, Full, GatedDeltaNet, Latent, Mechanism, Window

_QUANTISED = ("quantization_config", "quantization", "compression_config")


class _Mlp(NamedTuple):
    """What follows the mixers of a stack."""

    every: int
    """Weights that every token meets, over all layers."""
    experts: tuple[Experts, ...] = ()


def weights(fields: Fields, architecture: Architecture, row: Row) -> Weights | None:
    """The weights of a model, or None where its file or its type does not tell them."""
    known = _MLPS.get(row.mlps)
    if known is None or architecture.vocabulary is None:
        return None
    try:
        width = fields.size("hidden_size")
        if isinstance(width, Unknown):
            return None
        mlp = known(fields, width)
        tied = fields.flag("tie_word_embeddings")
        maps = _maps(fields, architecture, width)
    except ConfigError:
        # of a field that nothing else is read from: costs are left out, the card is not
        return None
    if mlp is None or maps is None:
        return None
    head = width * architecture.vocabulary
    embedding = 0 if (row.tied if tied is None else tied) else head
    return Weights(maps, mlp.every, mlp.experts, head, embedding, _bits(fields))


def _bits(fields: Fields) -> int | None:
    """Bits of a weight in the model's own format."""
    named = fields.model_format()
    if isinstance(named, Unknown) or any(fields.has(name) for name in _QUANTISED):
        return None
    return NumberFormat(named).bits


def _maps(fields: Fields, architecture: Architecture, width: int) -> int | None:
    """Weights of all mixers; None where one's are not known."""
    latent = fields.optional_size("q_lora_rank")
    total = 0
    for layer, times in architecture.counted():
        for part in layer:
            own = _of_mixer(part, width, latent)
            if own is None:
                return None
            total += own * times
    return total


def _of_mixer(part: Mechanism, width: int, latent: int | None) -> int | None:
    match part:
        case Full() | Window():
            inner = part.heads * part.dv
            gates = {"none": 0, "sigmoid": width * inner, "head": width * part.heads}[part.gate]
            queries = width * part.heads * part.head_dim
            return queries + width * part.kv_numbers + inner * width + gates
        case GatedDeltaNet():
            inner = part.heads * part.dv
            channels = 2 * part.qk * part.head_dim + inner
            # and an output gate, a decay and a strength of writing for each head
            made = width * (channels + inner + 2 * part.heads)
            return made + part.conv * channels + inner * width
        case Latent():
            return _latent(part, width, latent)
        case DSA():
            if latent is None:
                return None
            indexer = part.index_dim * (part.index_heads * latent + width)
            return _latent(part, width, latent) + indexer + width * part.index_heads
        case _:
            return None


def _latent(part: Latent | DSA, width: int, latent: int | None) -> int:
    """Queries, from a latent where there is one; the cached latent; keys and values made of it."""
    asked = part.heads * (part.head_dim + part.rope_dim)
    queries = width * asked if latent is None else latent * (width + asked)
    made = part.latent * part.heads * (part.head_dim + part.dv)
    return queries + width * part.kv_numbers + made + part.heads * part.dv * width


def _gated(fields: Fields, width: int) -> _Mlp | None:
    """An MLP of three maps in every layer."""
    hidden = fields.optional_size("intermediate_size")
    return None if hidden is None else _Mlp(3 * width * hidden * fields.layers())


def _mixtral(fields: Fields, width: int) -> _Mlp | None:
    """Experts in every layer, of the one hidden size that the file has."""
    return _routed(
        fields,
        width,
        experts=fields.optional_size("num_local_experts"),
        hidden=fields.optional_size("intermediate_size"),
        sparse=fields.layers(),
    )


def _qwen(fields: Fields, width: int) -> _Mlp | None:
    """Experts in every `decoder_sparse_step`th layer that is not listed as dense."""
    step = fields.optional_size("decoder_sparse_step") or 1
    dense = json_list(fields.value("mlp_only_layers") or [])
    if dense is None:
        return None
    layers = fields.layers()
    sparse = sum((i + 1) % step == 0 and i not in dense for i in range(layers))
    shared = fields.optional_size("shared_expert_intermediate_size", low=0) or 0
    return _routed(
        fields,
        width,
        experts=fields.optional_size("num_experts"),
        hidden=fields.optional_size("moe_intermediate_size"),
        sparse=sparse,
        # with a gate of one number
        shared=width * (3 * shared + 1) if shared else 0,
    )


def _deepseek(fields: Fields, width: int) -> _Mlp | None:
    """Dense layers first, then experts beside shared ones."""
    hidden = fields.optional_size("moe_intermediate_size")
    first = fields.optional_size("first_k_dense_replace", low=0)
    if hidden is None or first is None or fields.optional_size("moe_layer_freq") not in (None, 1):
        return None
    return _routed(
        fields,
        width,
        experts=fields.optional_size("n_routed_experts"),
        hidden=hidden,
        sparse=fields.layers() - first,
        shared=3 * width * hidden * (fields.optional_size("n_shared_experts", low=0) or 0),
    )


def _routed(
    fields: Fields,
    width: int,
    *,
    experts: int | None,
    hidden: int | None,
    sparse: int,
    shared: int = 0,
) -> _Mlp | None:
    """Experts of three maps in `sparse` layers, and what every token takes beside them; dense MLPs
    in the others.
    """
    chosen = fields.optional_size("num_experts_per_tok", "num_experts_per_token")
    dense = fields.layers() - sparse
    wide = fields.optional_size("intermediate_size") if dense else 0
    if experts is None or hidden is None or chosen is None or wide is None or chosen > experts:
        return None
    every = sparse * (width * experts + shared) + dense * 3 * width * wide
    return _Mlp(every, (Experts(sparse, experts, chosen, 3 * width * hidden),))


_MLPS: dict[str, Callable[[Fields, int], _Mlp | None]] = {
    "gated": _gated,
    "mixtral": _mixtral,
    "qwen": _qwen,
    "deepseek": _deepseek,
}
"""`Row.mlps` -> what a model class has behind its mixers."""
