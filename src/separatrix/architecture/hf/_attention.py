"""Softmax attention as config.json files spell it, and the assumptions that go with every file."""

from __future__ import annotations

from separatrix.architecture.hf._fields import Fields
from separatrix.architecture.mechanisms import Full, Window

ACCUMULATORS = (
    "softmax accumulators fp32 with a running maximum (assumed): the FlashAttention kernels of transformers and vLLM keep them so"
)


def state_note(dtype: str, stated_by: str | None = None) -> str:
    """What is taken for granted about the recurrent state, or which field states it."""
    if stated_by:
        return f"recurrent state {dtype}, as the file states in {stated_by}"
    return f"recurrent state {dtype} (assumed): transformers keeps it in {dtype}; vLLM keeps it in the model's dtype by default"


def convolution_note(dtype: str) -> str:
    return f"convolution buffers {dtype} (assumed), the last K-1 inputs: transformers and vLLM keep them in the model's dtype"


def cache_note(dtype: str) -> str:
    return f"keys and values {dtype} (assumed): transformers and vLLM keep them in the model's dtype unless told to quantise"


def full_attention(fields: Fields, *, head_dim: int) -> Full:
    """Full attention from the usual fields (grouped heads). Raises ConfigError as `Fields` does."""
    return Full(
        heads=fields.size("num_attention_heads"),
        kv_heads=fields.divisor("num_key_value_heads", "num_attention_heads"),
        head_dim=head_dim,
        format=fields.model_format(),
        accumulator="fp32",
        running_max=True,
    )


def window_attention(fields: Fields, *, head_dim: int, window: str) -> Window:
    """Sliding-window attention of the size in the field `window`. Raises ConfigError as `Fields` does."""
    return Window(
        heads=fields.size("num_attention_heads"),
        kv_heads=fields.divisor("num_key_value_heads", "num_attention_heads"),
        head_dim=head_dim,
        size=fields.size(window),
        format=fields.model_format(),
        accumulator="fp32",
        running_max=True,
    )


def attention_without_types(fields: Fields, *, head_dim: int) -> Full | Window:
    """Attention where no field types it per layer: sliding if `sliding_window` is set and not switched off, full otherwise."""
    if fields.has("sliding_window") and fields.flag("use_sliding_window") is not False:
        return window_attention(fields, head_dim=head_dim, window="sliding_window")
    return full_attention(fields, head_dim=head_dim)
