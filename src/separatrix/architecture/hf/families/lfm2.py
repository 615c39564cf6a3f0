"""LFM2: short convolutions with a few full attention layers."""

from __future__ import annotations

from separatrix.architecture.hf.attention import ACCUMULATORS, cache_note, convolution_note
from separatrix.architecture.hf.draft import Draft, Reading
from separatrix.architecture.hf.family import Family
from separatrix.architecture.hf.fields import Fields
from separatrix.architecture.hf.lists import indices, spelled
from separatrix.architecture.hf.recurrent import attention_head_dim, plain_attention
from separatrix.mechanisms import ShortConvolution

_WORDS = {"conv": "conv", "full_attention": "full", "attention": "full"}


def lfm2(fields: Fields) -> Reading:
    """`layer_types`, or `full_attn_idxs` numbered from 0; the other layers are short
    convolutions of `conv_L_cache` tokens.
    """
    kinds = spelled(fields, (("layer_types", _WORDS),))
    if kinds is None:
        if not fields.has("full_attn_idxs"):
            raise fields.no_pattern(("layer_types", "full_attn_idxs"))
        layers = fields.layers()
        full = set(indices(fields, "full_attn_idxs", layers, base=0))
        kinds = ["full" if i in full else "conv" for i in range(layers)]
    # what the model class does not read: its convolutions have hidden_size channels
    fields.harmless("conv_dim", "conv_dim_out", "num_heads")
    dtype = fields.model_format()
    sizes = {
        "width": fields.size("hidden_size"),
        "conv": fields.size("conv_L_cache"),
        "format": dtype,
    }
    conv = Draft(ShortConvolution, sizes)
    attention = plain_attention(fields, head_dim=attention_head_dim(fields))
    notes = [convolution_note(dtype), cache_note(dtype), ACCUMULATORS]
    return Reading.of([attention if kind == "full" else conv for kind in kinds], notes)


FAMILIES: dict[str, Family] = {
    "lfm2": lfm2,
    "lfm2_moe": lfm2,
}
CLASSES: dict[str, str] = {
    "Lfm2ForCausalLM": "lfm2",
    "Lfm2MoeForCausalLM": "lfm2_moe",
}
