"""Nemotron-H: Mamba-2 layers, a few attention layers, and MLP or expert layers that stand alone."""

from __future__ import annotations

from separatrix.architecture.hf._attention import ACCUMULATORS, attention_without_types, cache_note, convolution_note, state_note
from separatrix.architecture.hf._draft import Draft, Reading
from separatrix.architecture.hf._fields import Fields
from separatrix.architecture.mechanisms import Mamba2, PositionWise

SYMBOLS = {"M": "mamba", "*": "attention", "-": "mlp", "E": "mlp"}
WORDS = {"mamba": "mamba", "attention": "attention", "mlp": "mlp", "moe": "mlp"}
"""`layers_block_type`, the list that newer files hold instead of the string."""


def nemotron_h(fields: Fields) -> Reading:
    """`hybrid_override_pattern` or `layers_block_type`; heads * head_dim wins over `expand` * `hidden_size`."""
    if fields.has("block_configs"):
        raise fields.error("'block_configs' gives every layer its own sizes, which is not read; pass the stack itself as a spec")
    if fields.has("hybrid_override_pattern"):
        kinds = fields.kinds("hybrid_override_pattern", SYMBOLS)
    elif fields.has("layers_block_type"):
        kinds = fields.kinds("layers_block_type", WORDS)
    else:
        raise fields.no_pattern(("hybrid_override_pattern", "layers_block_type"))
    stated = fields.number_format("mamba_ssm_cache_dtype")
    dtype = fields.model_format()
    drafts = {
        "mamba": Draft(
            Mamba2,
            {
                "heads": fields.size("mamba_num_heads"),
                "head_dim": fields.size("mamba_head_dim"),
                "state": fields.size("ssm_state_size"),
                "groups": fields.divisor("n_groups", "mamba_num_heads"),
                "conv": fields.size("conv_kernel"),
                "format": dtype,
                "state_format": stated or "fp32",
            },
        ),
        "attention": attention_without_types(fields, head_dim=fields.size("attention_head_dim", "head_dim")),
        "mlp": Draft(PositionWise, {"format": dtype}),
    }
    state = state_note(stated or "fp32", "mamba_ssm_cache_dtype" if stated else None)
    return Reading.of([drafts[kind] for kind in kinds], [state, convolution_note(dtype), cache_note(dtype), ACCUMULATORS])
