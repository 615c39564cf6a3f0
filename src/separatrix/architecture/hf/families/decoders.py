"""Decoders of one kind of softmax attention: llama, mistral, qwen and their kin, and older ones
with as many key as query heads.
"""

from __future__ import annotations

from separatrix.architecture.hf.attention import (
    attention_without_types,
    full_attention,
    head_dim_or_quotient,
    kv_heads_or_heads,
)
from separatrix.architecture.hf.draft import Draft, Reading, Size, Unknown
from separatrix.architecture.hf.family import Family
from separatrix.architecture.hf.fields import Fields
from separatrix.architecture.hf.stack import attention_reading, drafts, listed
from separatrix.mechanisms import Full, Window


def decoder(*, kv_heads: bool, head_dim: bool, switched: bool = False) -> Family:
    """A reader of layers from the usual fields. Where they are absent, `num_key_value_heads` is
    num_attention_heads if `kv_heads`, and `head_dim` is hidden_size / num_attention_heads if
    `head_dim`: what the model class defines. `switched`: layers slide only where
    `use_sliding_window` is true, and then from layer `max_window_layers` on.
    """

    def read(fields: Fields) -> Reading:
        kinds = listed(fields)
        if kinds is None:
            fields.refuse_recurrent_looks()
            kinds = switched_kinds(fields) if switched else None
        d = head_dim_or_quotient(fields) if head_dim else None
        kv = kv_heads_or_heads(fields) if kv_heads else None
        if kinds is None:
            return attention_reading(
                fields, [attention_without_types(fields, head_dim=d, kv_heads=kv)] * fields.layers()
            )
        return attention_reading(fields, drafts(fields, kinds, head_dim=d, kv_heads=kv))

    return read


def switched_kinds(fields: Fields, *, unless_said: bool = False) -> list[str]:
    """Sliding only if `use_sliding_window` is true (`unless_said` where it is absent),
    `sliding_window` is there, and from layer `max_window_layers` on (Qwen2 and kin).
    """
    layers = fields.layers()
    switch = fields.flag("use_sliding_window")
    # without the switch, neither of them says anything
    fields.harmless("sliding_window", "max_window_layers")
    if not (unless_said if switch is None else switch) or not fields.has("sliding_window"):
        return ["full"] * layers
    first = fields.needed("max_window_layers", low=0)
    return ["window" if i >= first else "full" for i in range(layers)]


def dots1(fields: Fields) -> Reading:
    """dots.llm1: `layer_types`, or sliding from layer `max_window_layers` on where
    `sliding_window` is there.
    """
    kinds = listed(fields)
    if kinds is None:
        fields.refuse_recurrent_looks()
        kinds = switched_kinds(fields, unless_said=True)
    return attention_reading(fields, drafts(fields, kinds, head_dim=head_dim_or_quotient(fields)))


def undecided(fields: Fields) -> Reading:
    """Qwen2-MoE, Qwen3-MoE, SmolLM3: full attention; releases of transformers disagree on which
    layers slide once sliding is switched on.
    """
    kinds = listed(fields)
    if kinds is None:
        fields.refuse_recurrent_looks()
        if fields.flag("use_sliding_window") and fields.has("sliding_window"):
            raise fields.error(
                "'use_sliding_window' is true, and implementations of this model type disagree on"
                " the layers; add 'layer_types'"
            )
        # without the switch, it says nothing
        fields.harmless("max_window_layers")
        kinds = ["full"] * fields.layers()
    return attention_reading(fields, drafts(fields, kinds, head_dim=head_dim_or_quotient(fields)))


_LAYERS = ("num_hidden_layers", "n_layer", "num_layers", "n_layers")
_HEADS = ("num_attention_heads", "n_head", "num_heads", "n_heads", "attention_heads")
_HIDDEN = ("hidden_size", "n_embd", "d_model", "n_embed")


def multi_head(fields: Fields) -> Reading:
    """GPT-2 and its time: full attention with as many key as query heads."""
    return older(fields, fields.size(*_HEADS))


def multi_query(fields: Fields) -> Reading:
    """GPT-BigCode: one key head if `multi_query`, else as many as query heads."""
    # transformers saves a number of them that its own class does not read
    fields.harmless("num_key_value_heads")
    return older(fields, _one_or(fields, fields.size(*_HEADS)))


def falcon(fields: Fields) -> Reading:
    """Falcon: `num_kv_heads` (all heads if absent) in the new decoder architecture; before, one
    key head if `multi_query`.
    """
    # says nothing in the new architecture
    fields.harmless("multi_query")
    given = fields.optional_size("num_kv_heads", "n_head_kv")
    grouped = fields.size(*_HEADS) if given is None else given
    return older(
        fields, grouped if fields.flag("new_decoder_architecture") else _one_or(fields, grouped)
    )


def dbrx(fields: Fields) -> Reading:
    """DBRX: key heads in `attn_config.kv_n_heads`."""
    return older(fields, fields.section("attn_config").size("attn_config.kv_n_heads"))


def _one_or(fields: Fields, otherwise: Size) -> Size:
    one = fields.flag("multi_query")
    if one is None:
        return Unknown(("'multi_query' is missing",))
    return 1 if one else otherwise


def older(fields: Fields, kv_heads: Size | None) -> Reading:
    """Full attention in the spellings of GPT-2 and its time, with as many key as query heads if
    `kv_heads` is None.
    """
    fields.refuse_recurrent_looks()
    if kv_heads is None:
        return older(fields, fields.size(*_HEADS))
    heads = fields.size(*_HEADS)
    head_dim = fields.quotient(fields.size(*_HIDDEN), heads, "hidden_size / num_attention_heads")
    if isinstance(heads, int) and isinstance(kv_heads, int) and heads % kv_heads:
        raise fields.error(
            f"{kv_heads} key-value heads do not divide {heads} heads; correct one of the two fields"
        )
    sizes = full_attention(fields, head_dim=head_dim, kv_heads=kv_heads).sizes
    return attention_reading(
        fields, [Draft(Full, {**sizes, "heads": heads})] * fields.layers(*_LAYERS)
    )


def mistral(fields: Fields) -> Reading:
    """Mistral: sliding in all layers, of `sliding_window` tokens; full only where that is null."""
    if "sliding_window" in fields.data or fields.has("layer_types"):
        return _KV_STATED(fields)
    missing = Unknown(("'sliding_window' is missing (null says that every token is seen)",))
    given = full_attention(fields, head_dim=head_dim_or_quotient(fields))
    layer = Draft(Window, {**given.sizes, "size": missing})
    return attention_reading(fields, [layer] * fields.layers())


_BOTH = decoder(kv_heads=True, head_dim=True)
_KV_STATED = decoder(kv_heads=False, head_dim=True)
_HEAD_DIM_STATED = decoder(kv_heads=True, head_dim=False)
_STATED = decoder(kv_heads=False, head_dim=False)
_QWEN2 = decoder(kv_heads=False, head_dim=True, switched=True)
_QWEN3 = decoder(kv_heads=False, head_dim=False, switched=True)

FAMILIES: dict[str, Family] = {
    **dict.fromkeys(("llama", "olmo", "olmo2", "olmoe", "flex_olmo"), _BOTH),
    **dict.fromkeys(("cohere", "phi", "phi3", "granite", "granitemoe", "granitemoeshared"), _BOTH),
    **dict.fromkeys(("apertus", "arcee", "nanochat", "jais2"), _BOTH),
    **dict.fromkeys(("mixtral", "phimoe", "starcoder2"), _KV_STATED),
    **dict.fromkeys(("mistral", "ministral"), mistral),
    **dict.fromkeys(("glm4_moe", "stablelm", "bitnet", "ernie4_5_moe"), _KV_STATED),
    "qwen3_vl_moe_text": _KV_STATED,
    "seed_oss": _HEAD_DIM_STATED,
    **dict.fromkeys(("gemma", "glm", "glm4", "ernie4_5", "helium", "internlm3"), _STATED),
    **dict.fromkeys(("hy_v3", "solar_open", "ministral3", "nemotron", "qwen3_vl_text"), _STATED),
    **dict.fromkeys(("qwen2", "qwen2_vl", "qwen2_vl_text"), _QWEN2),
    **dict.fromkeys(("qwen2_5_vl", "qwen2_5_vl_text"), _QWEN2),
    "qwen3": _QWEN3,
    "dots1": dots1,
    **dict.fromkeys(("qwen2_moe", "qwen3_moe", "smollm3"), undecided),
    **dict.fromkeys(("gpt2", "gpt_neox", "opt", "bloom"), multi_head),
    **dict.fromkeys(("codegen", "persimmon", "xglm"), multi_head),
    "gpt_bigcode": multi_query,
    "falcon": falcon,
    "dbrx": dbrx,
}
CLASSES: dict[str, str] = {
    "LlamaForCausalLM": "llama",
    "OlmoForCausalLM": "olmo",
    "Olmo2ForCausalLM": "olmo2",
    "OlmoeForCausalLM": "olmoe",
    "CohereForCausalLM": "cohere",
    "PhiForCausalLM": "phi",
    "Phi3ForCausalLM": "phi3",
    "PhimoeForCausalLM": "phimoe",
    "GraniteForCausalLM": "granite",
    "GraniteMoeForCausalLM": "granitemoe",
    "MistralForCausalLM": "mistral",
    "MixtralForCausalLM": "mixtral",
    "Starcoder2ForCausalLM": "starcoder2",
    "GlmForCausalLM": "glm",
    "Glm4ForCausalLM": "glm4",
    "Glm4MoeForCausalLM": "glm4_moe",
    "StableLmForCausalLM": "stablelm",
    "GemmaForCausalLM": "gemma",
    "SeedOssForCausalLM": "seed_oss",
    "Ernie4_5ForCausalLM": "ernie4_5",
    "Ernie4_5_MoeForCausalLM": "ernie4_5_moe",
    "Qwen2ForCausalLM": "qwen2",
    "Qwen2MoeForCausalLM": "qwen2_moe",
    "Qwen3ForCausalLM": "qwen3",
    "Qwen3MoeForCausalLM": "qwen3_moe",
    "Dots1ForCausalLM": "dots1",
    "SmolLM3ForCausalLM": "smollm3",
    "GPT2LMHeadModel": "gpt2",
    "GPTNeoXForCausalLM": "gpt_neox",
    "OPTForCausalLM": "opt",
    "BloomForCausalLM": "bloom",
    "FalconForCausalLM": "falcon",
    "DbrxForCausalLM": "dbrx",
}
