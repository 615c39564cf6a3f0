"""Kimi Linear and Kimi K3: Kimi Delta Attention with latent attention (MLA) every few layers."""

from __future__ import annotations

from separatrix.architecture.hf.attention import latent_attention
from separatrix.architecture.hf.draft import Draft, Reading
from separatrix.architecture.hf.family import Family
from separatrix.architecture.hf.fields import Fields
from separatrix.architecture.hf.lists import indices, partition, spelled
from separatrix.architecture.hf.recurrent import WORDS, assumed
from separatrix.mechanisms import KDA

_FULL = "linear_attn_config.full_attn_layers"
_KDA = "linear_attn_config.kda_layers"


def kimi(fields: Fields) -> Reading:
    """`linear_attn_config` lists the layers, numbered from 1, and the sizes of KDA; the
    `head_dim` beside it belongs to no layer.
    """
    # residual connections that attend to earlier layers of the same token
    fields.harmless("attn_res_block_size")
    fields = fields.section("linear_attn_config")
    kinds = _kinds(fields)
    listed = spelled(fields, (("layer_types", WORDS),))
    if kinds is not None and listed is not None and kinds != listed:
        raise fields.error(
            "'linear_attn_config' and 'layer_types' both list the layers and disagree; remove the"
            " wrong one"
        )
    kinds = kinds or listed
    if kinds is None:
        raise fields.no_pattern((_FULL, _KDA, "layer_types"))
    recurrent = Draft(
        KDA,
        {
            "heads": fields.size("linear_attn_config.num_heads", "linear_num_heads"),
            "head_dim": fields.size("linear_attn_config.head_dim", "linear_head_dim"),
            "conv": fields.size(
                "linear_attn_config.short_conv_kernel_size", "linear_conv_kernel_dim"
            ),
            "format": fields.model_format(),
            "state_format": "fp32",
        },
    )
    attention = latent_attention(fields)
    return Reading.of(
        [attention if kind == "full" else recurrent for kind in kinds], assumed(fields)
    )


def _kinds(fields: Fields) -> list[str] | None:
    layers = fields.layers()
    if fields.has(_FULL) and fields.has(_KDA):
        return ["full" if full else "recurrent" for full in partition(fields, _FULL, _KDA, layers)]
    for name, kind, other in ((_FULL, "full", "recurrent"), (_KDA, "recurrent", "full")):
        if fields.has(name):
            there = set(indices(fields, name, layers, base=None))
            return [kind if i in there else other for i in range(layers)]
    return None


FAMILIES: dict[str, Family] = {
    "kimi_linear": kimi,
    "kimi_k3": kimi,
}
CLASSES: dict[str, str] = {
    "KimiLinearForCausalLM": "kimi_linear",
}
