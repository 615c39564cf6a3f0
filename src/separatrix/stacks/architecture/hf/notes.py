"""What is taken for granted of the layers of every file."""

from __future__ import annotations

from separatrix.stacks.architecture.hf.draft import Unknown
from separatrix.stacks.architecture.hf.fields import Fields

_PREDICTED = ("num_nextn_predict_layers", "num_mtp_layers", "num_mtp_modules")
ACCUMULATORS = (
    "softmax accumulators fp32 with a running maximum (assumed): the FlashAttention kernels of"
    " transformers and vLLM keep them so"
)


def state_note(dtype: str, stated_by: str | None = None) -> str:
    """What is taken for granted about the recurrent state, or which field states it."""
    if stated_by:
        return f"recurrent state {dtype}, as the file states in {stated_by}"
    return (
        f"recurrent state {dtype} (assumed): transformers keeps it in {dtype}; vLLM keeps it in the"
        " model's dtype by default"
    )


def convolution_note(dtype: str | Unknown) -> str:
    return (
        f"convolution buffers {_said(dtype)} (assumed), the last K-1 inputs: transformers and vLLM"
        " keep them in the model's dtype"
    )


def cache_note(dtype: str | Unknown) -> str:
    return (
        f"keys and values {_said(dtype)} (assumed): transformers and vLLM keep them in the model's"
        " dtype unless told to quantise"
    )


def _said(dtype: str | Unknown) -> str:
    return "in the model's dtype" if isinstance(dtype, Unknown) else dtype


def predicted_notes(fields: Fields) -> list[str]:
    """Says that layers for multi-token prediction are left out, where a file has some."""
    for name in _PREDICTED:
        number = fields.optional_size(name, low=0)
        if number:
            return [
                f"layers for multi-token prediction ('{name}' = {number}) are not part of the stack"
            ]
    return []
