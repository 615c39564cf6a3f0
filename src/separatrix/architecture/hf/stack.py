"""Stacks of softmax attention: the kind of every layer as `layer_types` spells it, what is
refused, what is taken for granted.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from separatrix.architecture.hf.attention import (
    ACCUMULATORS,
    cache_note,
    chunked_attention,
    full_attention,
    window_attention,
)
from separatrix.architecture.hf.draft import Draft, Reading, Size
from separatrix.architecture.hf.fields import Fields
from separatrix.evidence.canonical import json_list

WORDS = {
    "full_attention": "full",
    "attention": "full",
    "sliding_attention": "window",
    "chunked_attention": "chunked",
}
"""`layer_types` of models with softmax attention alone."""

_PREDICTED = ("num_nextn_predict_layers", "num_mtp_layers", "num_mtp_modules")
_OWN_SIZES = (
    "per_layer_config",
    "block_configs",
    "num_attention_heads_per_layer",
    "kv_source_layers",
    "cross_attention_layers",
)


def listed(
    fields: Fields, name: str = "layer_types", words: Mapping[Any, str] = WORDS
) -> list[str] | None:
    """The kind of every layer from the list `name`, or None where it is absent. Entries of layers
    for multi-token prediction, which are not part of the stack, may follow those of the stack.
    """
    if not fields.has(name):
        return None
    value = fields.value(name)
    layers = fields.layers()
    predicted = fields.optional_size("num_nextn_predict_layers", low=0)
    entries = json_list(value)
    if predicted and entries is not None and len(entries) == layers + predicted:
        fields = fields.with_data({**fields.data, name: entries[:layers]})
    return fields.kinds(name, words)


def every(layers: int, period: int) -> list[str]:
    """Sliding layers with a full one every `period` layers, the last of each period."""
    return ["full" if (i + 1) % period == 0 else "window" for i in range(layers)]


def period_note(period: int, field: str) -> str:
    return (
        f"full attention every {period} layers (assumed): the file has neither 'layer_types' nor"
        f" '{field}', and transformers takes {period}"
    )


def drafts(
    fields: Fields,
    kinds: Sequence[str],
    *,
    head_dim: Size | None = None,
    kv_heads: Size | None = None,
) -> list[Draft]:
    """Full, sliding and chunked layers with the same heads. Raises ConfigError where
    `use_sliding_window` is false and layers slide.
    """
    if "window" in kinds and fields.flag("use_sliding_window") is False:
        raise fields.error(
            "'use_sliding_window' is false, but layers are listed as sliding; correct one of them"
        )
    makers: dict[str, Callable[..., Draft]] = {
        "full": full_attention,
        "window": window_attention,
        "chunked": chunked_attention,
    }
    made = {
        kind: makers[kind](fields, head_dim=head_dim, kv_heads=kv_heads)
        for kind in dict.fromkeys(kinds)
    }
    return [made[kind] for kind in kinds]


def attention_reading(
    fields: Fields, layers: list[Draft], notes: Sequence[str] = (), *, but: Sequence[str] = ()
) -> Reading:
    """A reading of attention layers alone, with the assumptions that go with it. Raises
    ConfigError for what is not supported; `but` are fields of single layers that were read.
    """
    refuse_unread(fields, but=but)
    return Reading.of(
        layers, [*notes, cache_note(fields.model_format()), ACCUMULATORS, *predicted_notes(fields)]
    )


def predicted_notes(fields: Fields) -> list[str]:
    """Says that layers for multi-token prediction are left out, where a file has some."""
    for name in _PREDICTED:
        number = fields.optional_size(name, low=0)
        if number:
            return [
                f"layers for multi-token prediction ('{name}' = {number}) are not part of the stack"
            ]
    return []


def refuse_unread(fields: Fields, *, but: Sequence[str] = ()) -> None:
    """Raises ConfigError for fields that give layers sizes of their own, or share keys and values
    between them, except those in `but`.
    """
    for name in _OWN_SIZES:
        if name not in but and fields.has(name) and fields.data[name] not in ([], {}):
            raise fields.error(
                f"'{name}' gives single layers sizes or sources of their own, which is not"
                " supported; pass the stack as a spec"
            )
    shared = fields.optional_size("num_kv_shared_layers", low=0)
    if shared and "num_kv_shared_layers" not in but:
        raise fields.error(
            f"'num_kv_shared_layers' is {shared}: layers that reuse keys and values of other layers"
            " are not supported; pass the stack as a spec"
        )
    if fields.flag("use_cla") and "use_cla" not in but:
        raise fields.error(
            "'use_cla' is true: layers that reuse keys and values of other layers are not"
            " supported; pass the stack as a spec"
        )
