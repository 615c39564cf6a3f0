"""Bamba, Granite 4 and Falcon-H1: Mamba-2 spelled with `mamba_n_heads`, beside or between full
attention.
"""

from __future__ import annotations

from separatrix.architecture.hf.draft import Draft, Reading, Size
from separatrix.architecture.hf.family import Family
from separatrix.architecture.hf.fields import Fields
from separatrix.architecture.hf.lists import indices, spelled
from separatrix.architecture.hf.recurrent import (
    LISTS,
    assumed,
    attention_head_dim,
    mamba2,
    mamba2_heads,
    plain_attention,
    scaled,
)


def bamba(fields: Fields) -> Reading:
    """`attn_layer_indices`, numbered from 0, or the kind of every layer."""
    kinds = spelled(fields, LISTS)
    if fields.has("attn_layer_indices"):
        layers = fields.layers()
        full = set(indices(fields, "attn_layer_indices", layers, base=0))
        listed = ["full" if i in full else "recurrent" for i in range(layers)]
        if kinds not in (None, listed):
            raise fields.error(
                "'attn_layer_indices' and the list of layer types disagree; remove the wrong one"
            )
        kinds = listed
    if kinds is None:
        raise fields.no_pattern(("attn_layer_indices", "layer_types", "layers_block_type"))
    return _reading(fields, kinds)


def granite(fields: Fields) -> Reading:
    """`layer_types`: mamba or attention."""
    kinds = spelled(fields, LISTS)
    if kinds is None:
        raise fields.no_pattern(("layer_types", "layers_block_type"))
    return _reading(fields, kinds)


def falcon_h1(fields: Fields) -> Reading:
    """Every layer holds attention and Mamba-2 side by side; `mamba_d_ssm` wins over
    `mamba_expand` x `hidden_size`.
    """
    words = {"hybrid": "hybrid"}
    spelled(fields, (("layer_types", words), ("layers_block_type", words)))
    # null asks for the product; where the field is missing the width is unknown
    if "mamba_d_ssm" in fields.data and not fields.has("mamba_d_ssm"):
        width = scaled(fields, fields.size("hidden_size"), "mamba_expand")
    else:
        width = fields.size("mamba_d_ssm")
        fields.harmless("mamba_expand")
    dims = attention_head_dim(fields)
    layer = (plain_attention(fields, head_dim=dims), _mamba2(fields, width))
    return Reading.of([layer] * fields.layers(), assumed(fields))


def _reading(fields: Fields, kinds: list[str]) -> Reading:
    recurrent = _mamba2(fields, scaled(fields, fields.size("hidden_size"), "mamba_expand"))
    attention = plain_attention(fields, head_dim=attention_head_dim(fields))
    return Reading.of(
        [attention if kind == "full" else recurrent for kind in kinds], assumed(fields)
    )


def _mamba2(fields: Fields, width: Size) -> Draft:
    heads, head_dim = mamba2_heads(
        fields, width=width, heads="mamba_n_heads", head_dim="mamba_d_head"
    )
    groups = fields.divisor("mamba_n_groups", "mamba_n_heads")
    return mamba2(
        fields,
        heads=heads,
        head_dim=head_dim,
        state=fields.size("mamba_d_state"),
        groups=groups,
        conv=fields.size("mamba_d_conv"),
    )


FAMILIES: dict[str, Family] = {
    "bamba": bamba,
    "granitemoehybrid": granite,
    "falcon_h1": falcon_h1,
}
CLASSES: dict[str, str] = {
    "BambaForCausalLM": "bamba",
    "GraniteMoeHybridForCausalLM": "granitemoehybrid",
    "FalconH1ForCausalLM": "falcon_h1",
}
