"""Mamba, Falcon-Mamba and Mamba-2 in transformers' and flash-linear-attention's spelling:
recurrent layers alone.
"""

from __future__ import annotations

from separatrix.architecture.hf.draft import Reading, Size
from separatrix.architecture.hf.family import Family
from separatrix.architecture.hf.fields import Fields
from separatrix.architecture.hf.lists import spelled
from separatrix.architecture.hf.recurrent import (
    assumed,
    expanded,
    mamba,
    mamba2,
    mamba2_heads,
    scaled,
)

_LISTS = (("layer_types", {"linear_attention": "recurrent", "mamba": "recurrent"}),)


def mamba_1(fields: Fields) -> Reading:
    """All layers Mamba of `intermediate_size` channels, which is `expand` x `hidden_size` where it
    is absent.
    """
    return _mamba_1(fields, expanded(fields))


def falcon_mamba(fields: Fields) -> Reading:
    """All layers Mamba of `intermediate_size` channels, normed: `expand` of the released files
    says something else.
    """
    fields.harmless("expand")
    return _mamba_1(fields, fields.size("intermediate_size"), norms=True)


def _mamba_1(fields: Fields, width: Size, *, norms: bool = False) -> Reading:
    spelled(fields, _LISTS)
    layer = mamba(fields, width=width, state=("state_size",), conv=("conv_kernel",), norms=norms)
    return Reading.of([layer] * fields.layers(), assumed(fields, attention=False))


def mamba_2(fields: Fields) -> Reading:
    """All layers Mamba-2 of `expand` x `hidden_size` channels."""
    spelled(fields, _LISTS)
    heads, head_dim = heads_of(fields)
    layer = mamba2(
        fields,
        heads=heads,
        head_dim=head_dim,
        state=fields.size("state_size"),
        groups=fields.size("n_groups"),
        conv=fields.size("conv_kernel"),
    )
    return Reading.of([layer] * fields.layers(), assumed(fields, attention=False))


def heads_of(fields: Fields) -> tuple[Size, Size]:
    """Heads and head dimension; heads that are not in the file are channels / `head_dim`."""
    width = scaled(fields, fields.size("hidden_size"), "expand")
    if fields.has("num_heads"):
        if isinstance(width, int):
            return mamba2_heads(fields, width=width, heads="num_heads", head_dim="head_dim")
        return fields.size("num_heads"), fields.size("head_dim")
    head_dim = fields.size("head_dim")
    return fields.quotient(width, head_dim, "expand x hidden_size / head_dim"), head_dim


FAMILIES: dict[str, Family] = {
    "mamba": mamba_1,
    "falcon_mamba": falcon_mamba,
    "mamba2": mamba_2,
}
CLASSES: dict[str, str] = {
    "MambaForCausalLM": "mamba",
    "FalconMambaForCausalLM": "falcon_mamba",
    "Mamba2ForCausalLM": "mamba2",
}
