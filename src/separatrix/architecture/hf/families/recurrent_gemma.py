"""RecurrentGemma (Griffin): RG-LRU layers and sliding-window attention."""

from __future__ import annotations

from separatrix.architecture.hf.attention import (
    ACCUMULATORS,
    cache_note,
    convolution_note,
    state_note,
    window_attention,
)
from separatrix.architecture.hf.draft import Draft, Reading
from separatrix.architecture.hf.family import Family
from separatrix.architecture.hf.fields import Fields
from separatrix.mechanisms import RGLRU

WORDS = {"recurrent": "recurrent", "attention": "window"}


def recurrent_gemma(fields: Fields) -> Reading:
    """`block_types` (released files: `_block_types`) is tiled over the depth; its attention is
    sliding.
    """
    name = fields.find("block_types", "_block_types")
    if name is None:
        raise fields.no_pattern(("block_types", "_block_types"))
    kinds = fields.kinds(name, WORDS, tiled=True)
    dtype = fields.model_format()
    sizes = {
        "width": fields.size("lru_width"),
        "conv": fields.size("conv1d_width"),
        "format": dtype,
        "state_format": "fp32",
    }
    recurrent = Draft(RGLRU, sizes)
    window = window_attention(fields, window="attention_window_size")
    notes = [state_note("fp32"), convolution_note(dtype), cache_note(dtype), ACCUMULATORS]
    return Reading.of([recurrent if kind == "recurrent" else window for kind in kinds], notes)


FAMILIES: dict[str, Family] = {
    "recurrent_gemma": recurrent_gemma,
}
CLASSES: dict[str, str] = {
    "RecurrentGemmaForCausalLM": "recurrent_gemma",
}
