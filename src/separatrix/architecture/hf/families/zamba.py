"""Zamba and Zamba2: Mamba layers, some with shared attention beside them; weights are shared,
keys and values are not.
"""

from __future__ import annotations

from separatrix.architecture.hf.attention import full_attention
from separatrix.architecture.hf.draft import Draft, Reading, Size
from separatrix.architecture.hf.family import Family
from separatrix.architecture.hf.fields import Fields
from separatrix.architecture.hf.lists import spelled
from separatrix.architecture.hf.recurrent import assumed, mamba, mamba2, scaled

_WORDS = {"mamba": "recurrent", "linear_attention": "recurrent", "hybrid": "hybrid"}
_LISTS = (("layers_block_type", _WORDS), ("layer_types", _WORDS))
_UNUSED = (
    *("attention_hidden_size", "num_mem_blocks", "kv_channels", "num_query_groups"),
    *(
        "adapter_rank",
        "use_shared_attention_adapter",
        "n_mamba_heads",
        "mamba_headdim",
        "hybrid_layer_ids",
    ),
)
_SHARED = (
    "attention weights are shared between hybrid layers; each of them keeps keys and values of"
    " its own"
)


def zamba2(fields: Fields) -> Reading:
    """`layers_block_type`: mamba, or hybrid (attention and Mamba-2 in one layer). Heads are
    expansion x hidden_size / headdim.
    """
    kinds = spelled(fields, _LISTS)
    if kinds is None:
        raise fields.no_pattern(("layers_block_type", "layer_types"))
    width = scaled(fields, fields.size("hidden_size"), "mamba_expand", "expansion_factor")
    head_dim = fields.optional_size("mamba_headdim")
    heads = (
        fields.size("n_mamba_heads")
        if head_dim is None
        else fields.quotient(width, head_dim, "expansion x hidden_size / mamba_headdim")
    )
    stated = fields.optional_size("n_mamba_heads")
    if stated is not None and isinstance(heads, int) and heads != stated:
        raise fields.error(
            f"'n_mamba_heads' is {stated}, but expansion x hidden_size / mamba_headdim is {heads};"
            " correct one of them"
        )
    recurrent = mamba2(
        fields,
        heads=heads,
        head_dim=(
            fields.quotient(width, heads, "expansion x hidden_size / n_mamba_heads")
            if head_dim is None
            else head_dim
        ),
        state=fields.size("mamba_d_state", "state_size"),
        groups=fields.size("mamba_ngroups"),
        conv=fields.size("mamba_d_conv", "conv_dimension"),
    )
    return _reading(fields, kinds, recurrent)


def zamba(fields: Fields) -> Reading:
    """`layers_block_type`; if absent, two Mamba layers, a hybrid one, then hybrid iff i %
    `attn_layer_period` == `attn_layer_offset`.
    """
    kinds = spelled(fields, _LISTS)
    if kinds is None:
        if not fields.has("attn_layer_period"):
            raise fields.no_pattern(("layers_block_type", "attn_layer_period", "attn_layer_offset"))
        period = fields.needed("attn_layer_period")
        layers = fields.layers()
        offset = fields.needed("attn_layer_offset", low=0, high=period - 1)
        if layers < 3:
            raise fields.error(
                f"'num_hidden_layers' is {layers}; without 'layers_block_type' this model type has"
                " at least 3 layers"
            )
        kinds = [
            "recurrent",
            "recurrent",
            "hybrid",
            *("hybrid" if i % period == offset else "recurrent" for i in range(layers - 3)),
        ]
    fields.harmless("n_mamba_heads")
    width = scaled(fields, fields.size("hidden_size"), "mamba_expand")
    return _reading(
        fields, kinds, mamba(fields, width=width, state=("mamba_d_state",), conv=("mamba_d_conv",))
    )


def _reading(fields: Fields, kinds: list[str], recurrent: Draft) -> Reading:
    # the width of what attention sees, adapters of shared weights, and sizes that others settle
    fields.harmless(*_UNUSED)
    attention = full_attention(fields, head_dim=_head_dim(fields))
    layers = {"recurrent": (recurrent,), "hybrid": (attention, recurrent)}
    return Reading.of([layers[kind] for kind in kinds], [*assumed(fields), _SHARED])


def _head_dim(fields: Fields) -> Size:
    """2 x hidden_size / heads: attention sees the input beside the hidden state."""
    given = fields.optional_size("attention_head_dim")
    hidden = 2 * fields.size("hidden_size")
    heads = fields.size("num_attention_heads")
    return (
        fields.quotient(hidden, heads, "2 x hidden_size / num_attention_heads")
        if given is None
        else given
    )


FAMILIES: dict[str, Family] = {
    "zamba": zamba,
    "zamba2": zamba2,
}
CLASSES: dict[str, str] = {
    "ZambaForCausalLM": "zamba",
    "Zamba2ForCausalLM": "zamba2",
}
