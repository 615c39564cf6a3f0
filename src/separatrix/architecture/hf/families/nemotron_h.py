"""Nemotron-H: Mamba-2 layers, a few attention layers, and MLP or expert layers that stand alone."""

from __future__ import annotations

from separatrix.architecture.hf.attention import (
    ACCUMULATORS,
    attention_without_types,
    cache_note,
    convolution_note,
    state_note,
)
from separatrix.architecture.hf.draft import Draft, Reading, Size
from separatrix.architecture.hf.family import Family
from separatrix.architecture.hf.fields import Fields
from separatrix.architecture.hf.lists import spelled
from separatrix.mechanisms import Mamba2, PositionWise

SYMBOLS = {"M": "mamba", "*": "attention", "-": "mlp", "E": "mlp"}
WORDS = {
    "mamba": "mamba",
    "linear_attention": "mamba",
    "attention": "attention",
    "full_attention": "attention",
    "mlp": "mlp",
    "moe": "mlp",
}
"""`layers_block_type` or `layer_types`, the list that newer files hold instead of the string."""
LISTS = (("hybrid_override_pattern", SYMBOLS), ("layers_block_type", WORDS), ("layer_types", WORDS))


def nemotron_h(fields: Fields) -> Reading:
    """`hybrid_override_pattern`, `layers_block_type` or `layer_types`; heads * head_dim wins
    over `expand` * `hidden_size`.
    """
    if fields.has("block_configs"):
        raise fields.error(
            "'block_configs' gives every layer its own sizes, which is not supported; pass the"
            " stack itself as a spec"
        )
    listed = next(
        (fields.data[name] for name, _ in LISTS if isinstance(fields.data.get(name), list | str)),
        None,
    )
    # transformers' class takes the depth from the list, and saves no other
    if listed is not None and not fields.has("num_hidden_layers"):
        fields = fields.replaced(num_hidden_layers=len(listed))
    kinds = spelled(fields, LISTS)
    if kinds is None:
        raise fields.no_pattern(tuple(name for name, _ in LISTS))
    # heads * head_dim says the width
    fields.harmless("expand")
    stated = fields.number_format("mamba_ssm_cache_dtype")
    dtype = fields.model_format()
    drafts = {
        "mamba": Draft(
            Mamba2,
            {
                "heads": fields.size("mamba_num_heads"),
                "head_dim": fields.size("mamba_head_dim"),
                "state": fields.size("ssm_state_size"),
                "groups": _groups(fields),
                "conv": fields.size("conv_kernel", "mamba_d_conv"),
                "format": dtype,
                "state_format": stated or "fp32",
            },
        ),
        "attention": attention_without_types(
            fields, head_dim=fields.size("attention_head_dim", "head_dim")
        ),
        "mlp": Draft(PositionWise, {"format": dtype}),
    }
    state = state_note(stated or "fp32", "mamba_ssm_cache_dtype" if stated else None)
    return Reading.of(
        [drafts[kind] for kind in kinds],
        [state, convolution_note(dtype), cache_note(dtype), ACCUMULATORS],
    )


def _groups(fields: Fields) -> Size:
    groups = fields.size("n_groups", "mamba_n_groups")
    heads = fields.size("mamba_num_heads")
    if isinstance(groups, int) and isinstance(heads, int) and heads % groups:
        raise fields.error(
            f"'{fields.find('n_groups', 'mamba_n_groups')}' is {groups}, which does not divide"
            f" 'mamba_num_heads' = {heads}; correct one of them"
        )
    return groups


FAMILIES: dict[str, Family] = {
    "nemotron_h": nemotron_h,
}
CLASSES: dict[str, str] = {
    "NemotronHForCausalLM": "nemotron_h",
}
