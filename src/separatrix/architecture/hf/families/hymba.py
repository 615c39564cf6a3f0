"""Hymba: attention and Mamba side by side in every layer, attention full in a few layers and
sliding in the others.
"""

from __future__ import annotations

from separatrix.architecture.hf.attention import full_attention, window_attention
from separatrix.architecture.hf.draft import Draft, Reading
from separatrix.architecture.hf.family import Family
from separatrix.architecture.hf.fields import Fields, shown
from separatrix.architecture.hf.lists import indices, spelled
from separatrix.architecture.hf.recurrent import assumed, mamba, scaled
from separatrix.evidence.canonical import json_list
from separatrix.mechanisms.reused import Reused, ReusedWindow

_LEARNED = (
    "the learned tokens before the prompt ('num_memory_tokens') are the same for every input and"
    " not counted"
)
_HARMLESS = (
    *("num_memory_tokens", "kq_norm", "attn_only_wo_proj", "attn_implementation_new", "conv_dim"),
    *("calc_logits_for_entire_prompt", "mamba_dt_rank", "kv_weight_reuse", "seq_length"),
)
_USUAL = {
    "num_mamba": 1,
    "memory_tokens_interspersed_every": 0,
    "kq_head_dim": -1,
    "attn_hidden_size": -1,
    "kv_reuse_every_i_layer": -1,
}
"""Field -> the value that changes nothing; no other is read."""


def hymba(fields: Fields) -> Reading:
    """`global_attn_idx`, numbered from 0: full; the other layers slide over `sliding_window`
    tokens. Of a group in `kv_reuse_group` the first layer keeps keys and values for all.
    """
    if not fields.has("global_attn_idx"):
        raise fields.no_pattern(("global_attn_idx",))
    _refuse_unusual(fields)
    if isinstance(fields.value("layer_type"), list):
        spelled(fields, (("layer_type", {"h": "hybrid"}),))
    layers = fields.layers()
    full = set(indices(fields, "global_attn_idx", layers, base=0))
    hidden = fields.size("hidden_size")
    heads = fields.size("num_attention_heads")
    width = scaled(fields, hidden, "mamba_expand")
    head_dim = fields.quotient(hidden, heads, "hidden_size / num_attention_heads")
    value_dim = fields.quotient(width, heads, "mamba_expand x hidden_size / num_attention_heads")
    stated = fields.optional_size("v_head_dim")
    if stated is not None and isinstance(value_dim, int) and stated != value_dim:
        raise fields.error(
            f"'v_head_dim' is {stated}, but mamba_expand x hidden_size / num_attention_heads is"
            f" {value_dim}; correct one of them"
        )
    recurrent = mamba(
        fields,
        width=width,
        state=("mamba_d_state",),
        conv=("mamba_d_conv",),
        norms=bool(fields.flag("mamba_inner_layernorms")),
    )
    near = window_attention(fields, head_dim=head_dim)
    wide = full_attention(fields, head_dim=head_dim)
    reusing = _reusing(fields, layers, full)
    made = {
        (kept, reused): Draft(cls, {**draft.sizes, "value_dim": value_dim})
        for kept, draft in ((False, near), (True, wide))
        for reused, cls in ((False, draft.cls), (True, Reused if kept else ReusedWindow))
    }
    found = [(made[i in full, i in reusing], recurrent) for i in range(layers)]
    return Reading.of(found, [*assumed(fields), _LEARNED])


def _reusing(fields: Fields, layers: int, full: set[int]) -> set[int]:
    """The layers that read the keys and values of the first layer of their group, by
    `kv_reuse_group` numbered from 0.

    Raises ConfigError for layers that stand in two groups, or in a group with full and sliding
    ones.
    """
    value = fields.value("kv_reuse_group")
    groups = [] if value is None else json_list(value)
    if groups is None:
        raise fields.error(f"'kv_reuse_group' is {shown(value)}; it must list groups of layers")
    seen: set[int] = set()
    reusing: set[int] = set()
    for place, group in enumerate(groups):
        name = f"kv_reuse_group[{place}]"
        of_group = indices(fields.with_data({**fields.data, name: group}), name, layers, base=0)
        if not of_group or seen & set(of_group) or len({i in full for i in of_group}) > 1:
            raise fields.error(
                f"'{name}' is {shown(group)}; a group must hold layers of no other group, all full"
                " or all sliding"
            )
        seen |= set(of_group)
        reusing |= set(of_group[1:])
    return reusing


def _refuse_unusual(fields: Fields) -> None:
    """Raises ConfigError for values of fields that no released file has."""
    for name, usual in _USUAL.items():
        value = fields.value(name)
        if value not in (None, usual):
            raise fields.error(
                f"'{name}' is {shown(value)}, and only {usual} is supported; pass the stack as a"
                " spec"
            )
    fields.harmless(*_HARMLESS)


FAMILIES: dict[str, Family] = {
    "hymba": hymba,
}
CLASSES: dict[str, str] = {
    "HymbaForCausalLM": "hymba",
}
