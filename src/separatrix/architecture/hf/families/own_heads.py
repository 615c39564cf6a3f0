"""Families whose sliding layers have heads of their own: Gemma 4, MiMo-V2, Step-3.5 and 3.7; and
SmallThinker.
"""

from __future__ import annotations

from separatrix.architecture.hf.attention import full_attention, softmax_sizes, window_attention
from separatrix.architecture.hf.draft import Draft, Reading, Size
from separatrix.architecture.hf.family import Family
from separatrix.architecture.hf.fields import Fields
from separatrix.architecture.hf.single_layers import OVERRIDES, per_layer, reusing
from separatrix.architecture.hf.stack import (
    WORDS,
    attention_reading,
    drafts,
    every,
    listed,
    period_note,
)
from separatrix.mechanisms import Full, Window


def gemma4(*, gated: bool) -> Family:
    """Gemma 4: full layers have heads of `global_head_dim`, and `num_global_key_value_heads` of
    them, if `gated` only where `attention_k_eq_v` is true; or both stand in `per_layer_config`, as
    transformers saves them. `layer_types`, or a full layer every 6 layers; the last layer is full.
    The last `num_kv_shared_layers` layers reuse keys and values of an earlier one. Keys and values
    that come from one projection are normalised apart, so both are cached.
    """

    def read(fields: Fields) -> Reading:
        fields.harmless("attention_k_eq_v")
        kinds = listed(fields)
        notes: list[str] = []
        if kinds is None:
            fields.refuse_recurrent_looks()
            kinds = every(fields.layers(), 6)
            notes = [period_note(6, "any other field for it")]
        if kinds[-1] != "full":
            kinds[-1] = "full"
            notes.append(
                "the last layer is full attention, whatever the file says: the model class makes"
                " it so"
            )
        if "chunked" in kinds:
            raise fields.error(
                "'layer_types' names chunked_attention, which this model type does not have;"
                " correct it"
            )
        layers = (
            [_gemma4_own(own, kind) for own, kind in zip(per_layer(fields), kinds, strict=True)]
            if fields.has(OVERRIDES)
            else _gemma4_global(fields, kinds, gated=gated)
        )
        shared = fields.optional_size("num_kv_shared_layers", low=0) or 0
        layers, said = reusing(fields, kinds, layers, shared)
        return attention_reading(
            fields, layers, [*notes, *said], but=("num_kv_shared_layers", OVERRIDES)
        )

    return read


def _gemma4_own(fields: Fields, kind: str) -> Draft:
    return full_attention(fields) if kind == "full" else window_attention(fields)


def _gemma4_global(fields: Fields, kinds: list[str], *, gated: bool) -> list[Draft]:
    """The layers of a file that sizes all full layers at once."""
    kv = None
    if fields.has("num_global_key_value_heads") and (not gated or fields.flag("attention_k_eq_v")):
        kv = fields.divisor("num_global_key_value_heads", "num_attention_heads")
    full = full_attention(fields, head_dim=fields.size("global_head_dim"), kv_heads=kv)
    # without sliding layers, a missing window is no unknown size
    window = window_attention(fields) if "window" in kinds else full
    return [full if kind == "full" else window for kind in kinds]


def mimo(fields: Fields) -> Reading:
    """MiMo-V2: `hybrid_layer_pattern` (0 full, 1 sliding) or `layer_types`; sliding layers have
    the heads of the fields `swa_*`.
    """
    kinds = listed(fields, "hybrid_layer_pattern", {0: "full", 1: "window"})
    typed = listed(fields, words={word: kind for word, kind in WORDS.items() if kind != "chunked"})
    if kinds is not None and typed is not None and kinds != typed:
        raise fields.error(
            "'hybrid_layer_pattern' and 'layer_types' both list the layers and disagree; remove the"
            " wrong one"
        )
    notes = []
    # released files repeat the window as the size of a chunk, and no layer is chunked
    fields.harmless("attention_chunk_size")
    if kinds is None:
        kinds = typed
    if kinds is None:
        fields.refuse_recurrent_looks()
        kinds = ["full" if i == 0 or (i + 1) % 6 == 0 else "window" for i in range(fields.layers())]
        notes = [
            "full attention in the first and every 6th layer (assumed): the file does not say, and"
            " transformers takes it so"
        ]
    full = Draft(Full, softmax_sizes(fields) | {"value_dim": fields.size("v_head_dim")})
    ported = not any(str(name).startswith("swa_") for name in fields.data)
    if ported and "window" in kinds:
        notes.append(
            "sliding layers have twice the key-value heads of full ones (assumed): the file has no"
            " 'swa_*', and transformers' class makes it so"
        )
    if ported:
        heads = full.sizes["heads"]
        values = full.sizes["value_dim"]
        kv = 2 * fields.size("num_key_value_heads")
        sliding = softmax_sizes(fields, kv_heads=kv)
    else:
        heads = fields.size("swa_num_attention_heads")
        values = fields.size("swa_v_head_dim")
        kv = fields.divisor("swa_num_key_value_heads", "swa_num_attention_heads")
        sliding = softmax_sizes(fields, head_dim=fields.size("swa_head_dim"), kv_heads=kv)
    window = Draft(
        Window,
        {
            **sliding,
            "heads": heads,
            "value_dim": values,
            "size": fields.size("sliding_window", "sliding_window_size"),
        },
    )
    if "window" in kinds:
        notes.append(
            "sliding windows count the token itself (assumed), as in vLLM; transformers lets this"
            " model type see one token more"
        )
    return attention_reading(fields, [full if kind == "full" else window for kind in kinds], notes)


def step3(fields: Fields) -> Reading:
    """Step-3.5 and 3.7: `layer_types`; `attention_other_setting` or
    `num_sliding_attention_heads` gives sliding layers heads of their own.
    """
    kinds = listed(fields)
    notes = []
    if kinds is None:
        fields.refuse_recurrent_looks()
        fields.harmless("sliding_window")
        kinds = ["full"] * fields.layers()
        notes = [
            "full attention everywhere (assumed): the file has no 'layer_types', and transformers"
            " takes it so"
        ]
    heads = fields.size("num_attention_heads")
    kv = fields.size("num_key_value_heads", "num_attention_groups")
    other = fields.section("attention_other_setting")
    own_heads = (
        other.optional_size(
            "attention_other_setting.num_attention_heads", "num_sliding_attention_heads"
        )
        or heads
    )
    own_kv = (
        other.optional_size(
            "attention_other_setting.num_key_value_heads",
            "attention_other_setting.num_attention_groups",
        )
        or kv
    )
    own_dim = other.optional_size("attention_other_setting.head_dim")
    full = full_attention(fields, kv_heads=_grouped(fields, heads, kv))
    layers: dict[str, Draft] = {"full": full}
    if "chunked" in kinds:
        raise fields.error(
            "'layer_types' names chunked_attention, which this model type does not have; correct it"
        )
    if "window" in kinds:
        window = window_attention(
            fields, head_dim=own_dim, kv_heads=_grouped(fields, own_heads, own_kv)
        )
        layers["window"] = Draft(Window, {**window.sizes, "heads": own_heads})
    return attention_reading(fields, [layers[kind] for kind in kinds], notes)


def _grouped(fields: Fields, heads: Size, kv_heads: Size) -> Size:
    if isinstance(heads, int) and isinstance(kv_heads, int) and heads % kv_heads:
        raise fields.error(
            f"{kv_heads} key-value heads do not divide {heads} heads of a layer; correct one of the"
            " two fields"
        )
    return kv_heads


def smallthinker(fields: Fields) -> Reading:
    """SmallThinker: `sliding_window_layout` (1 sliding, 0 full) with windows of
    `sliding_window_size`; all full without it.
    """
    kinds = listed(fields, "sliding_window_layout", {1: "window", 0: "full"})
    typed = listed(fields)
    if kinds is not None and typed is not None and kinds != typed:
        raise fields.error(
            "'sliding_window_layout' and 'layer_types' both list the layers and disagree; remove"
            " the wrong one"
        )
    kinds = typed if kinds is None else kinds
    if kinds is None:
        fields.refuse_recurrent_looks()
        kinds = ["full"] * fields.layers()
    size = fields.find("sliding_window_size", "sliding_window")
    if size == "sliding_window_size":
        fields = fields.replaced(sliding_window=fields.data[size])
    return attention_reading(fields, drafts(fields, kinds))


FAMILIES: dict[str, Family] = {
    **dict.fromkeys(("gemma4", "gemma4_text"), gemma4(gated=True)),
    **dict.fromkeys(("gemma4_unified", "gemma4_unified_text"), gemma4(gated=False)),
    "mimo_v2_flash": mimo,
    **dict.fromkeys(("step3p5", "step3p7"), step3),
    "smallthinker": smallthinker,
}
CLASSES: dict[str, str] = {
    "Gemma4ForCausalLM": "gemma4_text",
    "Gemma4ForConditionalGeneration": "gemma4",
    "MiMoV2FlashForCausalLM": "mimo_v2_flash",
    "Step3p5ForCausalLM": "step3p5",
    "Step3p7FlashForCausalLM": "step3p7",
    "SmallThinkerForCausalLM": "smallthinker",
}
