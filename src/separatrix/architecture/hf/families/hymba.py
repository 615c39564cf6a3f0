"""Hymba: attention and Mamba side by side in every layer, attention full in a few layers and
sliding in the others.
"""

from __future__ import annotations

from separatrix.architecture.hf.attention import full_attention, window_attention
from separatrix.architecture.hf.draft import Draft, Reading
from separatrix.architecture.hf.family import Family
from separatrix.architecture.hf.fields import Fields
from separatrix.architecture.hf.lists import indices, spelled
from separatrix.architecture.hf.recurrent import assumed, mamba, scaled

_SHARED = (
    "keys and values that layers share ('kv_reuse_group') are counted in every layer, so the cache"
    " is at most what is said; the learned tokens before the prompt ('num_memory_tokens') are the"
    " same for every input and not counted"
)


def hymba(fields: Fields) -> Reading:
    """`global_attn_idx`, numbered from 0: full; the other layers slide over `sliding_window`
    tokens.
    """
    if not fields.has("global_attn_idx"):
        raise fields.no_pattern(("global_attn_idx",))
    if isinstance(fields.value("layer_type"), list):
        spelled(fields, (("layer_type", {"h": "hybrid"}),))
    layers = fields.layers()
    full = set(indices(fields, "global_attn_idx", layers, base=0))
    hidden = fields.size("hidden_size")
    heads = fields.size("num_attention_heads")
    width = scaled(fields, hidden, "mamba_expand")
    head_dim = fields.quotient(hidden, heads, "hidden_size / num_attention_heads")
    value_dim = fields.quotient(width, heads, "mamba_expand x hidden_size / num_attention_heads")
    recurrent = mamba(
        fields,
        width=width,
        state=("mamba_d_state",),
        conv=("mamba_d_conv",),
        norms=bool(fields.flag("mamba_inner_layernorms")),
    )
    near = window_attention(fields, head_dim=head_dim)
    wide = full_attention(fields, head_dim=head_dim)
    pair = [Draft(draft.cls, {**draft.sizes, "value_dim": value_dim}) for draft in (near, wide)]
    return Reading.of(
        [(pair[i in full], recurrent) for i in range(layers)], [*assumed(fields), _SHARED]
    )


FAMILIES: dict[str, Family] = {
    "hymba": hymba,
}
CLASSES: dict[str, str] = {
    "HymbaForCausalLM": "hymba",
}
