"""Models that do not read left to right: encoders, encoder-decoders, prefix LMs, diffusion LMs.

Nothing here is judged of them: what a token knows of the ones after it changes every theorem. The
model types are those of transformers 5.17 that it lists for masked tokens, images or sound alone,
or as encoder-decoders.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

from separatrix.core.errors import ConfigError
from separatrix.core.evidence.canonical import json_list, json_object
from separatrix.stacks.architecture.hf.fields import FIELDS, Fields, one_of, shown

_KINDS = FIELDS["not_causal"]
_OTHER_INPUT = re.compile(one_of("other_input"))
_DIFFUSION = re.compile(one_of("diffusion"), re.IGNORECASE)
_CLASSES = re.compile(one_of("whole_text_classes"))
_FALSE = re.compile(one_of("false"))
_TRUE = re.compile(one_of("true"))
_WHOLE_TEXT = re.compile(one_of("whole_text"), re.IGNORECASE)
_ANY_ORDER = "a diffusion model, which fills in tokens in any order"
_REMEDY = "only models that read left to right are judged"


def refuse_not_causal(fields: Fields, levels: Sequence[Mapping[Any, Any]]) -> None:
    """Raises ConfigError, with the reason, for a model that does not read left to right. `levels`
    are the objects of the file that describe it, outermost first.
    """
    for level in levels:
        reason = _by_flags(fields, level) or _by_type(level)
        if reason is not None:
            raise _error(fields, reason)


def _by_type(level: Mapping[Any, Any]) -> str | None:
    listed = json_list(level.get("architectures")) or []
    classes = [name for name in listed if isinstance(name, str)]
    kind = level.get("model_type")
    if isinstance(kind, str):
        said = f"'model_type' is {shown(kind)}"
        if _DIFFUSION.search(kind):
            return f"{said}, {_ANY_ORDER}"
        if kind in _KINDS["prefix"]:
            return f"{said}, a prefix LM, whose prompt sees the tokens after it"
        if kind in _KINDS["encoder_decoders"]:
            return f"{said}, an encoder-decoder"
        whole = kind in _KINDS["encoders"] or _WHOLE_TEXT.search(kind) is not None
        if whole and level.get("is_decoder") is not True:
            return f"{said}, an encoder, which sees the whole text ('is_decoder' is not true)"
        if _OTHER_INPUT.search(kind) and not _holds_text(level):
            return f"{said}, an encoder of another kind of input than text"
    for name in classes:
        if _DIFFUSION.search(name):
            return f"'architectures' is {shown(name)}, {_ANY_ORDER}"
        if _CLASSES.search(name):
            return f"'architectures' is {shown(name)}, which sees the whole text"
    return None


def _holds_text(level: Mapping[Any, Any]) -> bool:
    """Whether a language model is nested in it, or it is one with eyes and ears."""
    kind = str(level.get("model_type"))
    # CLIP and its kin hold a text encoder
    if _CONTRASTIVE.search(kind):
        return False
    inside = any(json_object(level.get(name)) is not None for name in _NESTED)
    return inside or (level.get("vocab_size") is not None and "encoder" not in kind)


def _by_flags(fields: Fields, level: Mapping[Any, Any]) -> str | None:
    if _switch(level.get("is_encoder_decoder")) is True:
        return "'is_encoder_decoder' is true: an encoder-decoder"
    both = all(any(name in level for name in names) for names in _BOTH)
    if both and level.get("is_encoder_decoder") is not False:
        return "its fields size an encoder and a decoder: an encoder-decoder"
    for key, value in level.items():
        name = str(key)
        low = name.lower()
        if _switch(value) is False and _FALSE.search(low):
            return f"'{name[:60]}' is false: its tokens see the ones after them"
        if low == "use_bidirectional_attention" and value == "vision":
            continue
        named = isinstance(value, str) and value != "" and _switch(value) is None
        if _TRUE.search(low) and (_switch(value) is True or named):
            return f"'{name[:60]}' is {shown(value)}: its tokens see the ones after them"
        if low in ("attn_type", "attention_type") and value in ("bi", "bidirectional", "full_bi"):
            return f"'{name}' is {shown(value)}: its tokens see the ones after them"
        inner = json_object(value) if low in _INNER else None
        if inner is not None:
            found = _by_flags(fields, inner)
            if found is not None:
                return found
    return None


def _switch(value: Any) -> bool | None:
    """What a switch says that may be written as a text or a number; None where it is no switch."""
    if isinstance(value, str):
        return {"true": True, "yes": True, "1": True, "false": False, "no": False, "0": False}.get(
            value.strip().lower()
        )
    return bool(value) if type(value) in (bool, int, float) and value in (0, 1) else None


_CONTRASTIVE = re.compile(one_of("contrastive"))
_NESTED = ("text_config", "llm_config", "language_config", "thinker_config", "decoder_config")
_INNER = ("attn_config", "attn_cfg", "attn", "attention_config", "model_args", "transformer_config")
_BOTH = (
    ("encoder_layers", "num_encoder_layers", "encoder_attention_heads", "encoder_config"),
    ("decoder_layers", "num_decoder_layers", "decoder_attention_heads", "decoder_config"),
)


def _error(fields: Fields, reason: str) -> ConfigError:
    return fields.error(f"{reason}; {_REMEDY}")
