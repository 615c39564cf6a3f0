"""Ring-linear and Ling-linear: Lightning attention with a softmax layer every few layers."""

from __future__ import annotations

from separatrix.architecture.hf.attention import ACCUMULATORS, cache_note, full_attention
from separatrix.architecture.hf.draft import Draft, Reading
from separatrix.architecture.hf.family import Family
from separatrix.architecture.hf.fields import Fields
from separatrix.mechanisms import Lightning

_STATE = "recurrent state fp32 (assumed): the released code and the kernels of vLLM sum it in fp32"


def bailing_linear(fields: Fields) -> Reading:
    """Softmax attention in the last layer of every `layer_group_size` layers, and in those left
    over at the end; Lightning attention with as many key as query heads, both rotated, in the
    others.
    """
    period = fields.needed("layer_group_size")
    layers = fields.layers()
    whole = layers // period * period
    # of the norm after the recurrence, and of what Qwen's spelling would slide
    fields.harmless("group_norm_size", "linear_silu", "max_window_layers")
    full = full_attention(fields)
    recurrent = Draft(
        Lightning,
        {
            "heads": fields.size("num_attention_heads"),
            "head_dim": fields.size("head_dim"),
            "format": fields.model_format(),
            "state_format": "fp32",
            "rotated": True,
        },
    )
    return Reading.of(
        [full if (i + 1) % period == 0 or i >= whole else recurrent for i in range(layers)],
        [_STATE, cache_note(fields.model_format()), ACCUMULATORS],
    )


FAMILIES: dict[str, Family] = {"bailing_moe_linear": bailing_linear}
CLASSES: dict[str, str] = {
    "BailingMoeLinearForCausalLM": "bailing_moe_linear",
    "BailingMoeLinearV2ForCausalLM": "bailing_moe_linear",
}
