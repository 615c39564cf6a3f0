"""What is taken for granted of the layers of every file, and the number format of keys and values
where a file states it, as quantised releases do.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from separatrix.core.evidence.canonical import json_list, json_object
from separatrix.stacks.architecture.hf.fields import (
    FORMATS,
    Draft,
    Fields,
    Layers,
    Unknown,
    mapped,
    shown,
)
from separatrix.stacks.mechanisms import DSA
from separatrix.stacks.mechanisms.base import ATTENTION

_PREDICTED = ("num_nextn_predict_layers", "num_mtp_layers", "num_mtp_modules")


def note_usual(fields: Fields, drafts: Sequence[Draft], state: str = "") -> None:
    """Says what is taken for granted of such mixers in any file; `state`: as `Row.state`."""
    dtype = fields.model_format()
    if any("state_format" in draft.sizes for draft in drafts):
        _note_state(fields, state)
    # over one token it is a function of that token
    if any(draft.sizes.get("conv", 0) not in (0, 1) for draft in drafts):
        fields.note(
            f"convolution buffers {dtype} (assumed), the last K-1 inputs: transformers and vLLM"
            " keep them in the model's dtype"
        )
    if any(draft.cls.group in ATTENTION for draft in drafts):
        fields.note(
            _cache_note(dtype),
            "softmax accumulators fp32 with a running maximum (assumed): the FlashAttention kernels"
            " of transformers and vLLM keep them so",
        )


def _note_state(fields: Fields, said: str) -> None:
    """Says what is taken for granted of the recurrent state, unless its mixer has said so; `said`:
    the field that states its format, or the sentence.
    """
    if any(note.startswith("recurrent state") for note in fields.notes):
        return
    if " " in said:
        fields.note(" ".join(said.split()))
    elif said and (stated := fields.number_format(said)):
        fields.note(f"recurrent state {stated}, as the file states in {said}")
    else:
        fields.note(
            "recurrent state fp32 (assumed): transformers keeps it in fp32; vLLM keeps it in the"
            " model's dtype by default"
        )


def _cache_note(dtype: str) -> str:
    return (
        f"keys and values {dtype} (assumed): transformers and vLLM keep them in the dtype they"
        " compute in, the file's unless told otherwise"
    )


def note_formats(fields: Fields, layers: Layers) -> None:
    """Says where engines store other than in the dtype that the file states, or it states none."""
    stated = fields.number_format("dtype", "torch_dtype")
    if stated is None:
        fields.note(
            "number format bf16 (assumed): the file states no 'dtype'; --set dtype=... where the"
            " weights are in another"
        )
    if stated == "fp32":
        fields.note("number format fp32, as the file states; vLLM runs such files in 16 bits")
    if any(draft.cls is DSA for layer in layers for draft in layer):
        fields.note(
            "an indexed latent in fp8 takes 656 bytes in vLLM (fp8_ds_mla: scales, and rotated"
            " numbers in bf16), and its indexer's key 1 byte a number and 4 for each 128; how that"
            " rounds what it chooses is not worked out"
        )


def note_predicted(fields: Fields) -> None:
    """Says that layers for multi-token prediction are left out, where a file has some."""
    for name in _PREDICTED:
        number = fields.optional_size(name, low=0)
        if number:
            fields.note(
                f"layers for multi-token prediction ('{name}' = {number}) are not part of the stack"
            )
            return


STATED = ("kv_cache_scheme", "kv_cache_quant_algo", "kv_cache_dtype")
QUANTISED = "hf_quant_config.json"
"""Name of the file beside a config.json that states how a release is quantised."""
SECTIONS = ("quantization_config", "quantization", "compression_config")
"""Objects that state it in a config.json."""
_NAMES: dict[str, str | None] = {
    **dict.fromkeys(("fp8", "fp8_e4m3", "fp8_e5m2", "float8", "float8_e4m3fn", "f8"), "fp8"),
    **dict.fromkeys(("float8_e5m2", "e4m3", "e5m2"), "fp8"),
    **FORMATS,
    **{name: name for name in ("int8", "bf16", "fp16", "fp32")},
    # one scale for the whole cache, of fp8 numbers, as AutoFP8 writes it
    "static": "fp8",
    **dict.fromkeys(("auto", "none", "")),
}
"""What files write -> format; None where it is the model's own."""
_OF_CACHE = re.compile(r"(^|_)(kv|cache)(_|$)")
_PER_TENSOR = (None, "tensor", "channel", "attn_head", "head")
"""Strategies whose scales are weights; others keep scales of every token beside the numbers."""


def with_quantised(data: Any, beside: Any) -> Any:
    """The fields of a config.json, and with them the format of keys and values that the file
    beside it states, as ModelOpt writes it.
    """
    fields, whole = json_object(data), json_object(beside)
    section = None if whole is None else json_object(whole.get("quantization"))
    if fields is None or section is None or fields.get("quantization") is not None:
        return data
    names = (*STATED, "quant_algo", "exclude_modules")
    said = {name: section[name] for name in names if section.get(name) is not None}
    return {**fields, "quantization": said} if said else data


def stored(layers: Layers, fields: Fields) -> Layers:
    """The layers with keys and values in the format that the file states. Where it states one
    that is not known, the format is an unknown size. Raises ConfigError for two that disagree.
    """
    found = list(_found(fields.data, fields, ""))
    if not found:
        return layers
    name, format_ = found[0]
    for other, another in found[1:]:
        if another != format_:
            raise fields.error(
                f"'{name}' and '{other}' state the format of keys and values and disagree; remove"
                " the wrong one"
            )
    said = f"keys and values {format_}, as the file states in '{name}'"
    usual = _cache_note(fields.model_format())
    fields.notes[:] = [said if note == usual else note for note in fields.notes]

    def formatted(draft: Draft) -> Draft:
        softmax = draft.cls.group in ATTENTION
        return replace(draft, sizes={**draft.sizes, "format": format_}) if softmax else draft

    return mapped(layers, formatted)


def _found(
    data: Mapping[Any, Any], fields: Fields, prefix: str
) -> Iterator[tuple[str, str | Unknown]]:
    """The fields that state a format other than the model's own, in any of the objects."""
    for key, value in data.items():
        name = f"{prefix}{key}"
        inner = json_object(value)
        if key in SECTIONS and inner is not None:
            yield from _found(inner, fields, f"{name}.")
            yield from _of_quark(inner, name)
        elif key in STATED:
            fields.harmless(name)
            format_ = _scheme(name, inner) if inner is not None else _named(name, value)
            if format_ is not None:
                yield name, format_
        elif prefix and isinstance(key, str) and _OF_CACHE.search(key) and not _empty(value):
            yield name, _unknown(name, value)


def _of_quark(section: Mapping[Any, Any], prefix: str) -> Iterator[tuple[str, str | Unknown]]:
    """Quark names the maps whose outputs are cached, and gives their format beside them."""
    listed = (json_object(section.get("export")) or {}).get("kv_cache_group")
    layers = json_object(section.get("layer_quant_config")) or {}
    for pattern in json_list(listed) or []:
        outputs = (json_object(layers.get(str(pattern))) or {}).get("output_tensors")
        of_one = (json_object(outputs) or {}).get("dtype")
        name = f"{prefix}.export.kv_cache_group"
        format_ = _named(name, of_one)
        yield name, _unknown(name, listed) if format_ is None else format_


def _scheme(name: str, scheme: Mapping[str, Any]) -> str | Unknown:
    """An object with `num_bits` and `type`, as compressed-tensors writes it."""
    bits = scheme.get("num_bits")
    kind = scheme.get("type", "float")
    plain = scheme.get("dynamic") in (None, False) and scheme.get("strategy") in _PER_TENSOR
    if not plain or type(bits) is not int or scheme.get("group_size") is not None:
        return _unknown(name, dict(scheme))
    return {(8, "float"): "fp8", (8, "int"): "int8"}.get((bits, kind)) or _unknown(
        name, dict(scheme)
    )


def _named(name: str, value: Any) -> str | Unknown | None:
    """A name such as FP8; None for the model's own format."""
    if _empty(value):
        return None
    key = value.lower().removeprefix("torch.") if isinstance(value, str) else None
    if key is None or key not in _NAMES:
        return _unknown(name, value)
    return _NAMES[key]


def _empty(value: Any) -> bool:
    return value is None or value is False or json_object(value) == {} or json_list(value) == []


def _unknown(name: str, value: Any) -> Unknown:
    return Unknown((f"'{name}' is {shown(value)}, a format of keys and values that is not read",))
