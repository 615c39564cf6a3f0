"""DeepSeek and its kin: latent attention (MLA), latent attention read through an indexer (DSA),
compressed attention (V4).
"""

from __future__ import annotations

from separatrix.architecture.hf.attention import UNCACHED, latent_attention
from separatrix.architecture.hf.draft import Draft, Reading, Size
from separatrix.architecture.hf.family import Family
from separatrix.architecture.hf.fields import Fields, shown
from separatrix.architecture.hf.stack import attention_reading, listed
from separatrix.evidence.canonical import json_list
from separatrix.mechanisms import DSA, Compressed, Window

_INDEXED = {"indexed_attention": "indexed", "deepseek_sparse_attention": "indexed"}
_COMPRESSED = {
    "sliding_attention": "window",
    "compressed_sparse_attention": "sparse",
    "heavily_compressed_attention": "heavy",
}
_RATIOS = {0: "window", 4: "sparse", 128: "heavy"}
_RATES = (
    ("sparse", "compressed_sparse_attention", "compress_rate_csa"),
    ("heavy", "heavily_compressed_attention", "compress_rate_hca"),
)


def mla(fields: Fields) -> Reading:
    """All layers latent attention (DeepSeek-V2 and V3, Kimi K2, ...)."""
    if fields.flag("use_mla") is False:
        raise fields.error(
            "'use_mla' is false: this variant without latent attention is not supported; pass the"
            " stack as a spec"
        )
    if fields.has("index_topk"):
        raise fields.error(
            "'index_topk' is there, but this model type has no indexer; correct 'model_type'"
            " (deepseek_v32?) or remove it"
        )
    kinds = listed(fields, words={"full_attention": "full", "attention": "full"})
    if kinds is None:
        fields.refuse_recurrent_looks()
    return attention_reading(fields, [latent_attention(fields)] * fields.layers())


def indexed_latents(fields: Fields) -> Draft:
    """DeepSeek sparse attention: kv_lora_rank + qk_rope_head_dim numbers per token, and the
    indexer's key of index_head_dim.
    """
    fields.harmless(*UNCACHED)
    return Draft(
        DSA,
        {
            "heads": fields.size("num_attention_heads"),
            "head_dim": fields.size("qk_nope_head_dim"),
            "value_dim": fields.size("v_head_dim"),
            "latent": fields.size("kv_lora_rank"),
            "rope_dim": fields.size("qk_rope_head_dim", low=0),
            "query_latent": fields.optional_size("q_lora_rank"),
            "index_heads": fields.size("index_n_heads"),
            "index_dim": fields.size("index_head_dim"),
            "topk": fields.size("index_topk"),
            "format": fields.model_format(),
            "accumulator": "fp32",
            "running_max": True,
        },
    )


def dsa(fields: Fields) -> Reading:
    """All layers DeepSeek sparse attention (DeepSeek-V3.2, GLM-5). Raises ConfigError where
    layers share an indexer.
    """
    if listed(fields, words=_INDEXED) is None:
        fields.refuse_recurrent_looks()
    refuse_shared_indexers(fields)
    return attention_reading(fields, [indexed_latents(fields)] * fields.layers())


def refuse_shared_indexers(fields: Fields) -> None:
    """Raises ConfigError where a layer takes the choice of another layer's indexer: it keeps no
    indexer keys, which is not supported.
    """
    every = fields.optional_size("index_topk_freq")
    types = fields.value("indexer_types")
    pattern = fields.value("index_topk_pattern")
    for name, value, own in (
        ("indexer_types", types, "full"),
        ("index_topk_pattern", pattern, "F"),
    ):
        entries = value if isinstance(value, str) else json_list(value)
        if value is not None and (
            entries is None or any(entry not in (own, "full") for entry in entries)
        ):
            raise fields.error(
                f"'{name}' is {shown(value)}: layers that share an indexer are not supported; pass"
                " the stack as a spec"
            )
    if every is not None and every > 1 and types is None and pattern is None:
        raise fields.error(
            f"'index_topk_freq' is {every}: layers that share an indexer are not supported; pass"
            " the stack as a spec"
        )


def deepseek_v4(fields: Fields) -> Reading:
    """`compress_ratios` per layer (0 a window alone, 4 compressed sparse, 128 heavily compressed),
    or `layer_types` with `compress_rates`.

    One vector of head_dim numbers is key and value of all heads; transformers caches it once.
    """
    kinds = listed(fields, "compress_ratios", _RATIOS)
    typed = listed(fields, words=_COMPRESSED)
    if kinds is not None and typed is not None and kinds != typed:
        raise fields.error(
            "'compress_ratios' and 'layer_types' both list the layers and disagree; remove the"
            " wrong one"
        )
    if kinds is None and typed is None:
        raise fields.error(
            "neither 'compress_ratios' nor 'layer_types' is there, so which layers compress is"
            " unknown; add one of them"
        )
    rates = {"sparse": 4, "heavy": 128} if kinds is not None else _rates(fields)
    one = fields.optional_size("num_key_value_heads")
    if one not in (None, 1):
        raise fields.error(
            f"'num_key_value_heads' is {one}, but in this model type one vector serves all heads;"
            " set it to 1"
        )
    shared = {
        "heads": fields.size("num_attention_heads"),
        "head_dim": fields.size("head_dim"),
        "size": fields.size("sliding_window"),
        "format": fields.model_format(),
        "accumulator": "fp32",
        "running_max": True,
    }
    indexer = {
        "index_heads": fields.size("index_n_heads"),
        "index_dim": fields.size("index_head_dim"),
        "topk": fields.size("index_topk"),
    }
    layers = {
        "window": Draft(Window, {**shared, "kv_heads": 1, "shared": True}),
        "sparse": Draft(
            Compressed, {**shared, **indexer, "ratio": rates["sparse"], "overlap": True}
        ),
        "heavy": Draft(Compressed, {**shared, "ratio": rates["heavy"]}),
    }
    return attention_reading(fields, [layers[kind] for kind in kinds or typed or []])


def _rates(fields: Fields) -> dict[str, Size]:
    """Tokens per compressed entry, by kind of layer."""
    inner = fields.section("compress_rates")
    return {kind: inner.size(f"compress_rates.{word}", old) for kind, word, old in _RATES}


FAMILIES: dict[str, Family] = {
    **dict.fromkeys(("deepseek_v2", "deepseek_v3", "kimi_k2", "mistral4", "glm4_moe_lite"), mla),
    **dict.fromkeys(("minicpm3", "axk1", "youtu"), mla),
    **dict.fromkeys(("deepseek_v32", "glm_moe_dsa"), dsa),
    "deepseek_v4": deepseek_v4,
}
CLASSES: dict[str, str] = {
    "GlmMoeDsaForCausalLM": "glm_moe_dsa",
    "DeepseekV2ForCausalLM": "deepseek_v2",
    "DeepseekV3ForCausalLM": "deepseek_v3",
    "DeepseekV32ForCausalLM": "deepseek_v32",
    "DeepseekV4ForCausalLM": "deepseek_v4",
}
