"""RecurrentGemma (Griffin): RG-LRU layers and sliding-window attention."""

from __future__ import annotations

from separatrix.architecture.hf._attention import ACCUMULATORS, cache_note, convolution_note, state_note, window_attention
from separatrix.architecture.hf._fields import Fields
from separatrix.architecture.mechanisms import RGLRU, Mechanism

WORDS = {"recurrent": "recurrent", "attention": "window"}


def recurrent_gemma(fields: Fields) -> tuple[list[Mechanism], list[str]]:
    """Layers and notes. `block_types` (released files: `_block_types`) is tiled over the depth; its attention is sliding."""
    name = fields.find("block_types", "_block_types")
    if name is None:
        raise fields.no_pattern(("block_types", "_block_types"))
    kinds = fields.kinds(name, WORDS, tiled=True)
    dtype = fields.model_format()
    recurrent = RGLRU(width=fields.size("lru_width"), conv=fields.size("conv1d_width"), format=dtype, state_format="fp32")
    window = window_attention(fields, head_dim=fields.size("head_dim"), window="attention_window_size")
    layers: list[Mechanism] = [recurrent if kind == "recurrent" else window for kind in kinds]
    return layers, [state_note("fp32"), convolution_note(dtype), cache_note(dtype), ACCUMULATORS]
