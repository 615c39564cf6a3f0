"""Qwen3-Next and Qwen3.5: Gated DeltaNet with a full attention layer every few layers."""

from __future__ import annotations

from separatrix.architecture.hf.attention import (
    ACCUMULATORS,
    cache_note,
    convolution_note,
    full_attention,
    state_note,
)
from separatrix.architecture.hf.draft import Draft, Reading
from separatrix.architecture.hf.family import Family
from separatrix.architecture.hf.fields import Fields
from separatrix.mechanisms import GatedDeltaNet

WORDS = {
    "linear_attention": "linear",
    "full_attention": "full",
    "mamba": "linear",
    "attention": "full",
}
_DEFAULT_INTERVAL = 4


def qwen3_next(fields: Fields) -> Reading:
    """`layer_types` wins over `full_attention_interval` n (full iff (i+1) % n == 0; 4 in
    transformers if absent).
    """
    stated = fields.number_format("mamba_ssm_dtype")
    state = state_note(stated or "fp32", "mamba_ssm_dtype" if stated else None)
    notes = [
        state,
        convolution_note(fields.model_format()),
        cache_note(fields.model_format()),
        ACCUMULATORS,
    ]
    if fields.flag("use_sliding_window") and fields.has("sliding_window"):
        raise fields.error(
            "'use_sliding_window' is true, but such a model has no sliding layers; set it to false"
        )
    if fields.has("layer_types"):
        kinds = fields.kinds("layer_types", WORDS)
    else:
        interval = fields.optional_size("full_attention_interval")
        if interval is None:
            interval = _DEFAULT_INTERVAL
            notes.append(
                f"full attention every {interval}th layer (assumed): the file does not say, and"
                f" transformers takes {interval}"
            )
        kinds = ["full" if (i + 1) % interval == 0 else "linear" for i in range(fields.layers())]
    attention = full_attention(fields)
    recurrent = Draft(
        GatedDeltaNet,
        {
            "heads": fields.size("linear_num_value_heads"),
            "key_heads": fields.divisor("linear_num_key_heads", "linear_num_value_heads"),
            "head_dim": fields.size("linear_key_head_dim"),
            "value_dim": fields.size("linear_value_head_dim"),
            "conv": fields.size("linear_conv_kernel_dim"),
            "format": fields.model_format(),
            "state_format": stated or "fp32",
        },
    )
    return Reading.of([attention if kind == "full" else recurrent for kind in kinds], notes)


FAMILIES: dict[str, Family] = {
    "qwen3_next": qwen3_next,
    "qwen3_5": qwen3_next,
    "qwen3_5_text": qwen3_next,
    "qwen3_5_moe": qwen3_next,
    "qwen3_5_moe_text": qwen3_next,
}
CLASSES: dict[str, str] = {
    "Qwen3NextForCausalLM": "qwen3_next",
    "Qwen3_5ForCausalLM": "qwen3_5_text",
}
