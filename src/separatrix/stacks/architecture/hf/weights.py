"""How many weights a released model has, and how wide its MLPs are, from the sizes in its file.

Where a model type's row does not say what follows its mixers, or a size is missing, nothing is
said. `tests/peers/test_weights.py` compares with transformers' own modules.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from fractions import Fraction
from math import frexp
from typing import Any, NamedTuple

from separatrix.core.errors import ConfigError
from separatrix.core.evidence.canonical import json_list, json_object
from separatrix.core.numbers.formats import NumberFormat
from separatrix.stacks.architecture import Architecture
from separatrix.stacks.architecture.hf.draft import Unknown
from separatrix.stacks.architecture.hf.fields import Fields
from separatrix.stacks.architecture.hf.table import Row
from separatrix.stacks.architecture.weights import Bits, Experts, Mlp, Weights
from separatrix.stacks.mechanisms import DSA, Full, GatedDeltaNet, Latent, Mechanism, Window

_QUANTISED = ("quantization_config", "quantization", "compression_config")


class _Mlp(NamedTuple):
    """What follows the mixers of a stack."""

    every: int
    """Weights that every token meets, over all layers."""
    experts: tuple[Experts, ...] = ()


def weights(fields: Fields, architecture: Architecture, row: Row) -> Weights | None:
    """The weights of a model, or None where its file or its type does not tell them."""
    if not row.mlps or architecture.vocabulary is None:
        return None
    try:
        width = fields.size("hidden_size")
        if isinstance(width, Unknown):
            return None
        mlp = _mlps(row.mlps, fields, width)
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


def _bits(fields: Fields) -> Bits | None:
    """Of the model's own format, or narrower where a release is quantised: attention, routers and
    what else the file leaves out are not.
    """
    own = Fraction(NumberFormat(fields.model_format()).bits)
    name = fields.find(*_QUANTISED)
    if name is None:
        return Bits(own, own, own, own)
    said = json_object(fields.data[name]) or {}
    narrow = _narrow(said)
    if narrow is None:
        return None
    kept = [str(each) for key in _KEPT for each in json_list(said.get(key)) or []]
    attention = any(_ATTENTION.search(each) for each in kept)
    # MXFP4 is of experts alone
    mlps = own if str(said.get("quant_method")) == "mxfp4" else narrow
    return Bits(own if attention else narrow, mlps, narrow, own)


_KEPT = ("modules_to_not_convert", "ignore", "ignored_layers", "exclude_modules", "exclude")
"""How quantised files call the modules that they leave alone."""
_ATTENTION = re.compile(r"attn(\W|$)|attention(\W|$)|[qkvo]_proj|qkv")
_EIGHT = frozenset(("fp8", "fbgemm_fp8", "w8a8_fp8", "ptpc_fp8", "int8", "fp8_e4m3"))
_FOUR = {"mxfp4": Fraction(17, 4), "fp4": Fraction(17, 4), "nvfp4": Fraction(9, 2)}
"""With a scale of 8 bits for 32 numbers, or for 16."""


def _narrow(said: Mapping[Any, Any]) -> Fraction | None:
    """Bits of a quantised weight and its share of the scales; None for a way that is not read."""
    method = str(said.get("quant_method") or said.get("quant_algo")).lower()
    if method == "modelopt":
        method = str(said.get("quant_algo")).lower()
    if method == "quark":
        own = json_object((json_object(said.get("global_quant_config")) or {}).get("weight")) or {}
        method = str(own.get("dtype")).lower()
    if method == "compressed-tensors":
        groups = (json_object(said.get("config_groups")) or {}).values()
        kinds = [json_object((json_object(group) or {}).get("weights")) or {} for group in groups]
        found = [_grouped(kind.get("num_bits"), kind.get("group_size")) for kind in kinds]
        return None if not found or None in found else max(filter(None, found))
    if method in ("gptq", "awq", "gptq_marlin", "awq_marlin", "auto-round"):
        bits, group = (said.get(name) for name in ("bits", "group_size"))
        # and a zero for every group
        return _grouped(bits, group, more=bits)
    if method == "bitsandbytes":
        four = said.get("load_in_4bit", said.get("_load_in_4bit")) is True
        # a scale of 32 bits for 64 numbers, itself in 8 bits where it is quantised too
        scale = Fraction(1, 8) if said.get("bnb_4bit_use_double_quant") is True else Fraction(1, 2)
        return 4 + scale if four else Fraction(8)
    return Fraction(8) if method in _EIGHT else _FOUR.get(method)


def _grouped(bits: Any, group: Any, more: Any = 0) -> Fraction | None:
    """Weights of so many bits with a scale of 16 for each group."""
    if type(bits) is not int or not 1 <= bits <= 16:
        return None
    scales = Fraction(16 + more, group) if type(group) is int and group > 0 else 0
    return bits + Fraction(scales)


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


_EXPERTS = {
    "mixtral": ("num_local_experts", "intermediate_size"),
    "qwen": ("num_experts", "moe_intermediate_size"),
    "deepseek": ("n_routed_experts", "moe_intermediate_size"),
}
"""`Row.mlps` -> the fields that count experts, and say how wide they are."""


def _mlps(kind: str, fields: Fields, width: int) -> _Mlp | None:
    """What a model class has behind its mixers: MLPs of three maps ("gated"), or experts of three
    maps, and what every token takes beside them; dense MLPs in the layers without.
    """
    if kind not in _EXPERTS:
        wide = fields.optional_size("intermediate_size")
        return None if wide is None else _Mlp(3 * width * wide * fields.layers())
    experts, hidden = map(fields.optional_size, _EXPERTS[kind])
    chosen = fields.optional_size("num_experts_per_tok", "num_experts_per_token")
    sparse = _sparse(kind, fields)
    if experts is None or hidden is None or chosen is None or sparse is None or chosen > experts:
        return None
    dense = fields.layers() - sparse
    wide = fields.optional_size("intermediate_size") if dense else 0
    if wide is None:
        return None
    if kind == "deepseek":
        beside = 3 * hidden * (fields.optional_size("n_shared_experts", low=0) or 0)
    else:
        name = "shared_expert_intermediate_size"
        shared = fields.optional_size(name, low=0) if kind == "qwen" else None
        # with a gate of one number
        beside = 3 * shared + 1 if shared else 0
    every = sparse * width * (experts + beside) + dense * 3 * width * wide
    return _Mlp(every, (Experts(sparse, experts, chosen, 3 * width * hidden),))


def _sparse(kind: str, fields: Fields) -> int | None:
    """How many layers have experts; None where that is not told."""
    layers = fields.layers()
    if kind == "qwen":
        # every so many, where it is not listed as dense
        step = fields.optional_size("decoder_sparse_step") or 1
        dense = json_list(fields.value("mlp_only_layers") or [])
        numbers = range(layers)
        return (
            None if dense is None else sum((i + 1) % step == 0 and i not in dense for i in numbers)
        )
    if kind == "deepseek":
        first = fields.optional_size("first_k_dense_replace", low=0)
        known = fields.optional_size("moe_layer_freq") in (None, 1)
        return None if first is None or not known else layers - first
    return layers


def mlp(fields: Fields, architecture: Architecture, *, bare: bool) -> Mlp | None:
    """The units that every token has in each MLP, or None where the file does not tell them.
    `bare`: whether recurrent layers have no MLP behind them.

    Of the k experts of a token, 2^j, the largest power of two, can be given one weight, a power of
    two, by a constant routing that leaves the others next to nothing; a factor of their sum that is
    no power of two would have to be undone, so that such experts do not count. Shared experts do.
    """
    try:
        found = _widths(fields)
    except ConfigError:
        # of a field that nothing else is read from: a width is assumed, the card is there
        return None
    if not found or min(found) < 1:
        return None
    apart = any(not part.mixes_tokens for layer, _ in architecture.counted() for part in layer)
    return Mlp(min(found), stated=True, every=not (bare or apart))


def _widths(fields: Fields) -> list[int]:
    """The width of every kind of MLP that layers have; empty where one is not known."""
    dense = fields.optional_size("intermediate_size", "n_inner", "ffn_dim")
    chosen = fields.optional_size(
        "num_experts_per_tok", "num_experts_per_token", "top_k_experts", low=0
    )
    if not chosen:
        return [] if dense is None else [dense]
    own = fields.optional_size("moe_intermediate_size")
    hidden = dense if own is None else own
    if hidden is None:
        return []
    shared = fields.optional_size(
        "shared_expert_intermediate_size", "shared_intermediate_size", low=0
    )
    if shared is None:
        shared = hidden * (fields.optional_size("n_shared_experts", low=0) or 0)
    scale = fields.value("routed_scaling_factor")
    # where such files are silent, classes have factors of their own
    silent = scale is None and not fields.has("n_routed_experts")
    try:
        clean = silent or (isinstance(scale, int | float) and frexp(scale)[0] == 0.5)
    except OverflowError:
        clean = False
    routed = hidden << (chosen.bit_length() - 1) if clean else 0
    # layers without experts have the dense width: all that a file without sizes of its own
    # for experts may hold is one width for both
    mixed = (fields.optional_size("expert_layer_period") or 1) > 1 or own is not None
    return [routed + shared, *([dense] if mixed and dense is not None else [])]
