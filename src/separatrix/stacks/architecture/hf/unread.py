"""What stops a file: a model that does not read left to right, of which nothing is judged here, and
a field that may change attention and that no reader asked for or is known to be harmless.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import fields as sizes_of
from typing import Any

from separatrix.core.errors import ConfigError
from separatrix.core.evidence.canonical import json_list, json_object
from separatrix.stacks.architecture.hf.fields import (
    FIELDS,
    Fields,
    Layers,
    holds,
    one_of,
    shown,
    some,
)
from separatrix.stacks.architecture.hf.notes import STATED
from separatrix.stacks.architecture.hf.table import ROWS

_DEEPEST = 8
"""Objects within objects that are looked into."""
_NAMES = FIELDS["harmless"]
_OFF = {
    **dict.fromkeys(_NAMES["off_by_zero"], 0),
    **dict.fromkeys(_NAMES["off_by_one"], 1),
}
_HARMLESS = frozenset((*_NAMES["heads"], *_NAMES["elsewhere"], *_NAMES["silent"]))
_SAME: dict[str, list[str]] = {k: v for k, v in FIELDS["same"].items() if k != "depth"}
"""Size -> spellings that are harmless where they say what was read under another one."""

_USUAL = re.compile(rf"(^|_)({one_of('usual').pattern})($|_)")
_POSITIONWISE = re.compile(rf"(^|_)({one_of('positionwise').pattern})($|_)")
_MODES = re.compile(rf"^({one_of('modes').pattern})_")


def _harmless(name: str) -> bool:
    """Whether a field of that name, in a file of any family, is known to be harmless."""
    low = name.lower()
    return (
        low in _HARMLESS
        or _USUAL.search(low) is not None
        or _MODES.search(low) is not None
        or (not holds("strong", low) and _POSITIONWISE.search(low) is not None)
    )


def refuse_unread(fields: Fields, layers: Layers, outer: Sequence[Mapping[str, Any]]) -> None:
    """Raises ConfigError for the first field that may change attention and that the reader did
    not ask for. `outer` are the objects around the language model's own, outermost first.
    """
    for name, value in unread(fields.data, fields, layers):
        raise _error(fields, name, value)
    # what the reader asked for, it found in the language model's own
    unasked = Fields({}, fields.where)
    unasked.harmless(*STATED)
    for level in outer:
        for name, value in unread(level, unasked, layers):
            # some files repeat the language model's fields around it
            of_encoder = {name.partition(".")[0], f"{level.get('model_type')}.{name}"}
            if value != fields.data.get(name) and of_encoder.isdisjoint(_NAMES["around"]):
                raise _error(fields, name, value)


def note_unknown(fields: Fields) -> None:
    """Says which fields nobody knows whose names speak of nothing here."""
    names = [
        str(name)
        for name, value in fields.data.items()
        if str(name) not in fields.read
        and not (
            str(name) in _NAMES["whole"]
            or _harmless(str(name))
            or holds("speaks", str(name).lower())
        )
        # switches, factors and words name no size
        and not (value is None or isinstance(value, bool | float | str))
        and value not in ([], {}, 0, 1)
    ]
    if names:
        fields.note(f"fields that are not known change no layer (assumed): {some(names)}")


def unread(data: Mapping[Any, Any], fields: Fields, layers: Layers) -> Iterator[tuple[str, Any]]:
    """The fields that may change attention and that nobody asked for."""
    found = _unknown(data, fields, "")
    return ((name, value) for name, value in found if not _confirmed(name, value, layers))


def _unknown(data: Mapping[Any, Any], fields: Fields, prefix: str) -> Iterator[tuple[str, Any]]:
    for key, value in data.items():
        own = str(key)
        name = prefix + own
        if prefix.count(".") > _DEEPEST:
            yield name, value
            return
        if _off(own, value) or own in _NAMES["whole"] or name == "architectures":
            continue
        known = name in fields.read
        inner = json_object(value)
        entries = json_list(value)
        passed = known or _harmless(own) or not holds("speaks", own.lower())
        if inner is not None and passed:
            yield from _unknown(inner, fields, f"{name}.")
        elif entries is not None and passed:
            for i, entry in enumerate(entries):
                yield from _unknown(json_object(entry) or {}, fields, f"{name}[{i}].")
        elif (
            not known and not _harmless(own) and (holds("speaks", own.lower()) or _says(own, value))
        ):
            yield name, value


def _says(name: str, value: Any) -> bool:
    """Whether a text names a mixer, under whatever name it stands."""
    return (
        isinstance(value, str)
        and name not in ("model_type", "_name_or_path", "name_or_path")
        and holds("mixers", value.lower())
    )


def _off(name: str, value: Any) -> bool:
    """Whether a value switches off whatever the field may be."""
    if value is False:
        return not holds("sense", name.lower()) or name in _NAMES["off_by_false"]
    if name in _OFF:
        return type(value) in (int, float) and value == _OFF[name]
    return value is None or value in ("", [], {})


def _confirmed(name: str, value: Any, layers: Layers) -> bool:
    """Whether a field repeats, in another spelling, what was read, or names every layer."""
    if value == [*range(len(layers))]:
        return True
    if type(value) is not int:
        return False
    if name in FIELDS["same"]["depth"]:
        return value == len(layers)
    for size, spellings in _SAME.items():
        if name in spellings:
            found = [
                draft.sizes.get(size)
                for layer in layers
                for draft in layer
                if draft.cls.group != "recurrent"
                and any(field.name == size for field in sizes_of(draft.cls))
            ]
            return bool(found) and all(given == value for given in found)
    return False


def _error(fields: Fields, name: str, value: Any) -> ConfigError:
    known = fields.data.get("model_type") in [*ROWS]
    reader = "no reader of this model type knows it" if known else fields.unknown(ROWS)
    return fields.error(
        f"'{name[:60]}' is {shown(value)}: by its name it may change the layers, what they keep or"
        f" what they see, and {reader}; pass the stack as a spec, or remove the field"
        " if it changes none of that"
    )


_KINDS = FIELDS["not_causal"]
_ANY_ORDER = "a diffusion model, which fills in tokens in any order"


def refuse_not_causal(fields: Fields, levels: Sequence[Mapping[Any, Any]]) -> None:
    """Raises ConfigError, with the reason, for a model that does not read left to right. `levels`
    are the objects of the file that describe it, outermost first.
    """
    for level in levels:
        reason = _by_flags(fields, level) or _by_type(level)
        if reason is not None:
            raise fields.error(f"{reason}; only models that read left to right are judged")


def _by_type(level: Mapping[Any, Any]) -> str | None:
    listed = json_list(level.get("architectures")) or []
    classes = [name for name in listed if isinstance(name, str)]
    kind = level.get("model_type")
    if isinstance(kind, str):
        said = f"'model_type' is {shown(kind)}"
        if holds("diffusion", kind.lower()):
            return f"{said}, {_ANY_ORDER}"
        if kind in _KINDS["prefix"]:
            return f"{said}, a prefix LM, whose prompt sees the tokens after it"
        if kind in _KINDS["encoder_decoders"]:
            return f"{said}, an encoder-decoder"
        whole = kind in _KINDS["encoders"] or holds("whole_text", kind.lower())
        if whole and level.get("is_decoder") is not True:
            return f"{said}, an encoder, which sees the whole text ('is_decoder' is not true)"
        if holds("other_input", kind) and not _holds_text(level):
            return f"{said}, an encoder of another kind of input than text"
    for name in classes:
        if holds("diffusion", name.lower()):
            return f"'architectures' is {shown(name)}, {_ANY_ORDER}"
        if holds("whole_text_classes", name):
            return f"'architectures' is {shown(name)}, which sees the whole text"
    return None


def _holds_text(level: Mapping[Any, Any]) -> bool:
    """Whether a language model is nested in it, or it is one with eyes and ears."""
    kind = str(level.get("model_type"))
    # CLIP and its kin hold a text encoder
    if holds("contrastive", kind):
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
        if _switch(value) is False and holds("false", low):
            return f"'{name[:60]}' is false: its tokens see the ones after them"
        if low == "use_bidirectional_attention" and value == "vision":
            continue
        named = isinstance(value, str) and value != "" and _switch(value) is None
        if holds("true", low) and (_switch(value) is True or named):
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


_NESTED = ("text_config", "llm_config", "language_config", "thinker_config", "decoder_config")
_INNER = ("attn_config", "attn_cfg", "attn", "attention_config", "model_args", "transformer_config")
_BOTH = (
    ("encoder_layers", "num_encoder_layers", "encoder_attention_heads", "encoder_config"),
    ("decoder_layers", "num_decoder_layers", "decoder_attention_heads", "decoder_config"),
)
