"""What is taken for granted of the layers of every file."""

from __future__ import annotations

from collections.abc import Iterable

from separatrix.stacks.architecture.hf.fields import Fields
from separatrix.stacks.mechanisms import DSA, Mechanism

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


def convolution_note(dtype: str) -> str:
    return (
        f"convolution buffers {dtype} (assumed), the last K-1 inputs: transformers and vLLM keep"
        " them in the model's dtype"
    )


def cache_note(dtype: str) -> str:
    return (
        f"keys and values {dtype} (assumed): transformers and vLLM keep them in the dtype they"
        " compute in, the file's unless told otherwise"
    )


def format_notes(fields: Fields, classes: Iterable[type[Mechanism]]) -> list[str]:
    """Where engines store other than in the dtype that the file states, or it states none."""
    stated = fields.number_format("dtype", "torch_dtype")
    said: list[str] = []
    if stated is None:
        said.append(
            "number format bf16 (assumed): the file states no 'dtype'; --set dtype=... where the"
            " weights are in another"
        )
    if stated == "fp32":
        said.append("number format fp32, as the file states; vLLM runs such files in 16 bits")
    if DSA in classes:
        said.append(
            "an indexed latent in fp8 takes 656 bytes in vLLM (fp8_ds_mla: scales, and rotated"
            " numbers in bf16), and its indexer's key 1 byte a number and 4 for each 128"
        )
    return said


def predicted_notes(fields: Fields) -> list[str]:
    """Says that layers for multi-token prediction are left out, where a file has some."""
    for name in _PREDICTED:
        number = fields.optional_size(name, low=0)
        if number:
            return [
                f"layers for multi-token prediction ('{name}' = {number}) are not part of the stack"
            ]
    return []
