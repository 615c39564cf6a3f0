"""Jamba: Mamba layers with an attention layer every few layers."""

from __future__ import annotations

from separatrix.architecture.hf.draft import Reading
from separatrix.architecture.hf.family import Family
from separatrix.architecture.hf.fields import Fields
from separatrix.architecture.hf.lists import spelled
from separatrix.architecture.hf.recurrent import (
    LISTS,
    assumed,
    attention_head_dim,
    mamba,
    plain_attention,
    scaled,
)


def jamba(fields: Fields) -> Reading:
    """`layer_types` or `layers_block_type`, else full iff i % `attn_layer_period` ==
    `attn_layer_offset`.
    """
    kinds = spelled(fields, LISTS)
    if kinds is None:
        if not fields.has("attn_layer_period"):
            raise fields.no_pattern(
                ("attn_layer_period", "attn_layer_offset", "layer_types", "layers_block_type")
            )
        period = fields.needed("attn_layer_period")
        offset = fields.needed("attn_layer_offset", low=0, high=period - 1)
        kinds = ["full" if i % period == offset else "recurrent" for i in range(fields.layers())]
    width = scaled(fields, fields.size("hidden_size"), "mamba_expand")
    recurrent = mamba(
        fields, width=width, state=("mamba_d_state",), conv=("mamba_d_conv",), norms=True
    )
    attention = plain_attention(fields, head_dim=attention_head_dim(fields))
    return Reading.of(
        [attention if kind == "full" else recurrent for kind in kinds], assumed(fields)
    )


FAMILIES: dict[str, Family] = {
    "jamba": jamba,
}
CLASSES: dict[str, str] = {
    "JambaForCausalLM": "jamba",
}
