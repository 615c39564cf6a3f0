"""flash-linear-attention's models of softmax attention alone: its transformer, forgetting and
latent attention, mixture of block attention and native sparse attention.
"""

from __future__ import annotations

from separatrix.architecture.hf.attention import ACCUMULATORS, UNCACHED, cache_note
from separatrix.architecture.hf.draft import Draft, Reading, Size, Value
from separatrix.architecture.hf.family import Family
from separatrix.architecture.hf.fields import Fields
from separatrix.mechanisms import NSA, Fox, Full, Latent, MoBA, Sparse, Window

_LATENT = (
    "latents are what is cached (assumed), as in the paper; flash-linear-attention's own layer"
    " caches the keys and values made from them"
)
_MOBA = (
    "'moba_topk' blocks are read, the own one among them; flash-linear-attention reads all tokens"
    " while it decodes"
)
_NSA = (
    "one compressed key and value per block is cached (assumed); flash-linear-attention's layer"
    " makes them again from the keys and values of all tokens"
)


def transformer(fields: Fields) -> Reading:
    """Grouped attention, all of it sliding if there is a `window_size`."""
    sizes = _grouped(fields)
    window = fields.optional_size("window_size")
    layer = Draft(Full, sizes) if window is None else Draft(Window, sizes | {"size": window})
    return _reading(fields, layer)


def forgetting(fields: Fields) -> Reading:
    """Forgetting attention: a forget gate per head beside keys and values, and no rotation."""
    sizes = _grouped(fields) | {
        "qk_norm": "each" if fields.flag("qk_norm") else "none",
        "gate": "sigmoid" if fields.flag("use_output_gate") else "none",
    }
    return _reading(fields, Draft(Fox, sizes))


def mla(fields: Fields) -> Reading:
    """Latent attention, spelled as DeepSeek spells it but for `num_heads`."""
    fields.harmless(*UNCACHED)
    layer = Draft(
        Latent,
        {
            "heads": fields.size("num_heads"),
            "head_dim": fields.size("qk_nope_head_dim"),
            "value_dim": fields.size("v_head_dim"),
            "latent": fields.size("kv_lora_rank"),
            "rope_dim": fields.size("qk_rope_head_dim", low=0),
            **_formats(fields),
        },
    )
    return _reading(fields, layer, _LATENT)


def moba(fields: Fields) -> Reading:
    """Mixture of block attention: `moba_topk` blocks of `moba_chunk_size` tokens."""
    fields.harmless("use_flash_moba")
    topk = fields.size("moba_topk", low=2)
    sizes = _grouped(fields) | {"block": fields.size("moba_chunk_size"), "topk": topk - 1}
    return _reading(fields, Draft(MoBA, sizes), _MOBA)


def nsa(fields: Fields) -> Reading:
    """Native sparse attention: means of blocks of `block_size` tokens, `block_counts` of which are
    read, the first, the own and the one before always; and a window.
    """
    sizes = _grouped(fields, head_dim=fields.size("head_dim"))
    block = fields.size("block_size")
    topk = fields.size("block_counts")
    if window := fields.optional_size("window_size", low=0):
        same = {"block": block, "stride": block, "selected": block}
        branches = {"topk": topk, "window": window, "pool": "mean", "shared": True}
        return _reading(fields, Draft(NSA, {**sizes, **same, **branches}), _NSA)
    # without a window two branches are left, and what has them is (B, k)-sparse attention
    return _reading(
        fields, Draft(Sparse, {**sizes, "block": block, "topk": topk, "gates": True}), _NSA
    )


def _grouped(fields: Fields, *, head_dim: Size | None = None) -> dict[str, Value]:
    heads = fields.size("num_heads")
    kv = fields.optional_size("num_kv_heads")
    if kv is not None:
        fields.divisor("num_kv_heads", "num_heads")
    whole = fields.size("hidden_size")
    return {
        "heads": heads,
        "kv_heads": heads if kv is None else kv,
        "head_dim": (
            fields.quotient(whole, heads, "hidden_size / num_heads")
            if head_dim is None
            else head_dim
        ),
        **_formats(fields),
    }


def _formats(fields: Fields) -> dict[str, Value]:
    return {"format": fields.model_format(), "accumulator": "fp32", "running_max": True}


def _reading(fields: Fields, layer: Draft, *notes: str) -> Reading:
    # attention over the outputs of earlier layers at the same token
    fields.harmless("attnres_block_size")
    dtype = fields.model_format()
    return Reading.of([layer] * fields.layers(), [*notes, cache_note(dtype), ACCUMULATORS])


FAMILIES: dict[str, Family] = {
    "transformer": transformer,
    "forgetting_transformer": forgetting,
    "mla": mla,
    "moba": moba,
    "nsa": nsa,
}
CLASSES: dict[str, str] = {
    "TransformerForCausalLM": "transformer",
    "ForgettingTransformerForCausalLM": "forgetting_transformer",
    "MLAForCausalLM": "mla",
    "MoBAForCausalLM": "moba",
    "NSAForCausalLM": "nsa",
}
