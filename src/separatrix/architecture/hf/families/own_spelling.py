"""Decoders of softmax attention whose heads or layers are spelled in a way of their own: JetMoE,
MPT, DeciLM; and two whose sparse attention is not read: Phi-3-small and Doge.
"""

from __future__ import annotations

from separatrix.architecture.hf.attention import (
    full_attention,
    head_dim_or_quotient,
)
from separatrix.architecture.hf.draft import Draft, Reading
from separatrix.architecture.hf.families.decoders import older
from separatrix.architecture.hf.family import Family
from separatrix.architecture.hf.fields import LARGEST, Fields, shown
from separatrix.architecture.hf.stack import attention_reading, drafts, listed
from separatrix.evidence.canonical import json_list

_MPT = ("multihead_attention", "multiquery_attention", "grouped_query_attention")
_HARMLESS = (
    *("alibi_bias_max", "qk_ln", "qk_gn", "attn_impl", "attn_uses_sequence_id"),
    *("rope_impl", "rope_dail_config", "rope_hf_config"),
)
_PER_LAYER = "num_key_value_heads_per_layer"


def jetmoe(fields: Fields) -> Reading:
    """JetMoE: `num_key_value_heads` heads of `kv_channels` numbers; each of a token's experts has
    that many query heads.
    """
    kv = fields.size("num_key_value_heads")
    heads = kv * fields.size("num_experts_per_tok")
    fields.harmless("num_attention_heads", "head_dim")
    dims = fields.size("kv_channels")
    layer = full_attention(fields, head_dim=dims, kv_heads=kv)
    layer = Draft(layer.cls, {**layer.sizes, "heads": heads})
    return attention_reading(fields, [layer] * fields.layers())


def mpt(fields: Fields) -> Reading:
    """MPT: as many key as query heads, one with `attn_config.attn_type` multiquery_attention,
    `attn_config.kv_n_heads` with grouped_query_attention.
    """
    inner = fields.section("attn_config")
    inner.harmless(*(f"attn_config.{name}" for name in _HARMLESS))
    kind = inner.value("attn_config.attn_type")
    if kind is not None and kind not in _MPT:
        raise fields.error(
            f"'attn_config.attn_type' is {shown(kind)}; it must be one of {', '.join(_MPT)}"
        )
    window = inner.optional_size("attn_config.sliding_window_size", low=-1)
    if window not in (None, -1):
        raise fields.error(
            f"'attn_config.sliding_window_size' is {window}, which is not supported; pass the stack"
            " as a spec"
        )
    if inner.flag("attn_config.rope"):
        raise fields.error(
            "'attn_config.rope' is true, which is not supported; pass the stack as a spec"
        )
    given = inner.optional_size("attn_config.kv_n_heads")
    if kind == _MPT[1]:
        if given not in (None, 1):
            raise fields.error(
                f"'attn_config.kv_n_heads' is {given}, but multiquery_attention has 1; correct it"
            )
        return older(inner, 1)
    if kind == _MPT[2]:
        return older(inner, inner.size("attn_config.kv_n_heads"))
    heads = inner.optional_size("n_heads", "num_attention_heads")
    if given is not None and given != heads:
        raise fields.error(
            f"'attn_config.kv_n_heads' is {given}, but multihead_attention has as many as query"
            " heads; correct one of them"
        )
    return older(inner, None)


def deci(fields: Fields) -> Reading:
    """DeciLM: `num_key_value_heads_per_layer`, a number for every layer."""
    value = fields.value(_PER_LAYER)
    # of the layers with most of them, in files that have the list
    fields.harmless("num_key_value_heads")
    numbers = json_list(value)
    layers = fields.layers()
    if numbers is None or len(numbers) != layers:
        raise fields.error(
            f"'{_PER_LAYER}' is {shown(value)}; it must give each of the {layers} layers a number"
        )
    heads = fields.size("num_attention_heads")
    for place, number in enumerate(numbers, 1):
        whole = heads if isinstance(heads, int) else number
        if type(number) is not int or not 1 <= number <= LARGEST or whole % number:
            raise fields.error(
                f"entry {place} of '{_PER_LAYER}' is {shown(number)}; it must divide"
                " 'num_attention_heads'"
            )
    dims = head_dim_or_quotient(fields)
    made = {kv: full_attention(fields, head_dim=dims, kv_heads=kv) for kv in set(numbers)}
    return attention_reading(fields, [made[kv] for kv in numbers])


def mellum(fields: Fields) -> Reading:
    """Mellum: `layer_types`; where they are absent all layers are full, whatever
    `sliding_window` says.
    """
    kinds = listed(fields)
    notes: list[str] = []
    if kinds is None:
        fields.refuse_recurrent_looks()
        fields.harmless("sliding_window")
        kinds = ["full"] * fields.layers()
        notes = [
            "full attention everywhere (assumed): the file has no 'layer_types', and transformers"
            " takes it so"
        ]
    return attention_reading(fields, drafts(fields, kinds), notes)


def phi3small(fields: Fields) -> Reading:
    """Always raises ConfigError: which blocks are seen follows from the model's code."""
    raise fields.error(
        "'model_type' is 'phi3small', whose layers see local blocks and every few blocks before"
        " them ('blocksparse_*'), other ones in every head, but for one layer in"
        " 'dense_attention_every_n_layers': not supported; pass the stack as a spec, such as"
        " '(sparse + full)*16 @ heads=32, bf16'"
    )


def doge(fields: Fields) -> Reading:
    """Always raises ConfigError: of more than `keep_window_size` tokens, a layer keeps the keys
    with the largest scores, which do not depend on the query.
    """
    kept = fields.needed("keep_window_size")
    raise fields.error(
        f"'model_type' is 'doge', whose layers see all tokens up to 'keep_window_size' = {kept:,},"
        " and beyond them only the keys of largest scores, chosen without the query: not supported;"
        " for shorter contexts pass the stack as a spec, such as 'full*32 @ heads=8, bf16'"
    )


FAMILIES: dict[str, Family] = {
    "jetmoe": jetmoe,
    "mpt": mpt,
    "deci": deci,
    "mellum": mellum,
    "phi3small": phi3small,
    "doge": doge,
}
CLASSES: dict[str, str] = {
    "JetMoeForCausalLM": "jetmoe",
    "MptForCausalLM": "mpt",
    "MPTForCausalLM": "mpt",
    "MellumForCausalLM": "mellum",
    "Phi3SmallForCausalLM": "phi3small",
    "DogeForCausalLM": "doge",
}
