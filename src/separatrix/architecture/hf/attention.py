"""Softmax attention as config.json files spell it, and the assumptions that go with every file."""

from __future__ import annotations

from separatrix.architecture.hf.draft import Draft, Size, Unknown, Value
from separatrix.architecture.hf.fields import Fields
from separatrix.mechanisms import Chunked, Full, Latent, Window

UNCACHED = ("head_dim", "num_key_value_heads", "qk_head_dim")
"""Fields of files with latent attention that size nothing: every head reads the same latents."""
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


def softmax_sizes(
    fields: Fields, *, head_dim: Size | None = None, kv_heads: Size | None = None
) -> dict[str, Value]:
    """Sizes of grouped softmax attention from the usual fields; `head_dim`, `kv_heads` where
    they are not the fields of that name.
    """
    return {
        "heads": fields.size("num_attention_heads"),
        "kv_heads": (
            fields.divisor("num_key_value_heads", "num_attention_heads")
            if kv_heads is None
            else kv_heads
        ),
        "head_dim": fields.size("head_dim") if head_dim is None else head_dim,
        "format": fields.model_format(),
        "accumulator": "fp32",
        "running_max": True,
    }


def head_dim_or_quotient(fields: Fields) -> Size:
    """`head_dim`, or hidden_size / num_attention_heads where a model type defines it so when the
    field is absent.
    """
    given = fields.optional_size("head_dim")
    if given is not None:
        return given
    return fields.quotient(
        fields.size("hidden_size"),
        fields.size("num_attention_heads"),
        "hidden_size / num_attention_heads",
    )


def kv_heads_or_heads(fields: Fields) -> Size:
    """`num_key_value_heads`, or num_attention_heads where a model type defines it so when the
    field is absent.
    """
    if fields.has("num_key_value_heads"):
        return fields.divisor("num_key_value_heads", "num_attention_heads")
    return fields.size("num_attention_heads")


def full_attention(
    fields: Fields, *, head_dim: Size | None = None, kv_heads: Size | None = None
) -> Draft:
    """Full attention from the usual fields (grouped heads)."""
    return Draft(Full, softmax_sizes(fields, head_dim=head_dim, kv_heads=kv_heads))


def window_attention(
    fields: Fields,
    *,
    head_dim: Size | None = None,
    kv_heads: Size | None = None,
    window: str = "sliding_window",
) -> Draft:
    """Sliding-window attention of the size in the field `window`."""
    return Draft(
        Window,
        softmax_sizes(fields, head_dim=head_dim, kv_heads=kv_heads) | {"size": fields.size(window)},
    )


def chunked_attention(
    fields: Fields, *, head_dim: Size | None = None, kv_heads: Size | None = None
) -> Draft:
    """Chunked attention of the size in `attention_chunk_size`."""
    return Draft(
        Chunked,
        softmax_sizes(fields, head_dim=head_dim, kv_heads=kv_heads)
        | {"size": fields.size("attention_chunk_size")},
    )


def latent_attention(fields: Fields) -> Draft:
    """Multi-head latent attention (MLA): the cache holds kv_lora_rank + qk_rope_head_dim numbers
    per token.
    """
    fields.harmless(*UNCACHED)
    return Draft(
        Latent,
        {
            "heads": fields.size("num_attention_heads"),
            "head_dim": fields.size("qk_nope_head_dim"),
            "value_dim": fields.size("v_head_dim"),
            "latent": fields.size("kv_lora_rank"),
            "rope_dim": fields.size("qk_rope_head_dim", low=0),
            "format": fields.model_format(),
            "accumulator": "fp32",
            "running_max": True,
        },
    )


def attention_without_types(
    fields: Fields, *, head_dim: Size | None = None, kv_heads: Size | None = None
) -> Draft:
    """Attention where no field types it per layer: sliding if `sliding_window` is set and not
    switched off, else chunked if `attention_chunk_size` is set, full otherwise.
    """
    if fields.has("sliding_window") and fields.flag("use_sliding_window") is not False:
        return window_attention(fields, head_dim=head_dim, kv_heads=kv_heads)
    if fields.has("attention_chunk_size"):
        return chunked_attention(fields, head_dim=head_dim, kv_heads=kv_heads)
    return full_attention(fields, head_dim=head_dim, kv_heads=kv_heads)
