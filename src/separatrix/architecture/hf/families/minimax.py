"""MiniMax-Text-01 and MiniMax-M1: Lightning attention with softmax attention every few layers."""

from __future__ import annotations

from separatrix.architecture.hf.attention import (
    ACCUMULATORS,
    attention_without_types,
    cache_note,
    head_dim_or_quotient,
)
from separatrix.architecture.hf.draft import Draft, Reading
from separatrix.architecture.hf.family import Family
from separatrix.architecture.hf.fields import Fields
from separatrix.architecture.hf.lists import spelled
from separatrix.architecture.hf.recurrent import WORDS
from separatrix.mechanisms import Lightning

_CODES = {0: "recurrent", 1: "full"}
_LISTS = (("attn_type_list", _CODES), ("layer_types", WORDS))
_KINDS = ("full_attn", "linear_attn", "layernorm_full_attention", "layernorm_linear_attention")
_SCALES = ("alpha", "beta")
_RELEASED = (
    "recurrent state fp32 (assumed): the released code sums it in fp32; transformers' class and"
    " vLLM keep it in the model's dtype"
)
_PORTED = (
    "recurrent state in the model's dtype (assumed): transformers and vLLM keep the state of"
    " Lightning attention so"
)


def minimax(fields: Fields) -> Reading:
    """`attn_type_list`: 0 Lightning, 1 softmax; transformers' own `minimax` may write
    `layer_types`. No default: its own is wrong here.
    """
    kinds = spelled(fields, _LISTS)
    if kinds is None:
        raise fields.no_pattern(("attn_type_list", "layer_types"))
    # the size of kernels' blocks, and weights of residual connections
    fields.harmless(
        "block_size", *(f"{kind}_{factor}_factor" for kind in _KINDS for factor in _SCALES)
    )
    # the released files all have it, those that transformers saves do not
    ported = not fields.has("attn_type_list")
    dims = head_dim_or_quotient(fields) if ported else fields.size("head_dim")
    sizes = {
        "heads": fields.size("num_attention_heads"),
        "head_dim": dims,
        "format": fields.model_format(),
        "state_format": None if ported else "fp32",
    }
    recurrent = Draft(Lightning, sizes)
    attention = attention_without_types(fields, head_dim=dims)
    notes = [_PORTED if ported else _RELEASED, cache_note(fields.model_format()), ACCUMULATORS]
    return Reading.of([attention if kind == "full" else recurrent for kind in kinds], notes)


FAMILIES: dict[str, Family] = {
    "minimax": minimax,
    "minimax_text_01": minimax,
    "minimax_m1": minimax,
}
CLASSES: dict[str, str] = {
    "MiniMaxForCausalLM": "minimax",
    "MiniMaxText01ForCausalLM": "minimax_text_01",
    "MiniMaxM1ForCausalLM": "minimax_m1",
}
