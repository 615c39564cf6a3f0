"""What a reader did not ask for: a field that may change attention, and that no reader knows,
stops the file.

A file is read only if every field that speaks of layers, heads, windows, caches, loops or blocks
was asked for by its reader, or is known to be harmless.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import fields as sizes_of
from typing import Any

from separatrix.core.errors import ConfigError
from separatrix.core.evidence.canonical import json_list, json_object
from separatrix.stacks.architecture.hf.draft import Draft, Reading, Unknown
from separatrix.stacks.architecture.hf.fields import FIELDS, Fields, one_of, shown
from separatrix.stacks.architecture.hf.kv_format import STATED
from separatrix.stacks.mechanisms.base import ATTENTION

_SPEAKS = re.compile(one_of("speaks"))
_MIXERS = re.compile(one_of("mixers"))
_SENSE = re.compile(one_of("sense"))

_OF_HEADS = re.compile(r"head|kv|(^|_)(key|value|quer)|channels$|group|gqa|mqa|latent|lora_rank")
_DEEPEST = 8
"""Objects within objects that are looked into."""
_NAMES = FIELDS["harmless"]
_HARMLESS = frozenset((*_NAMES["heads"], *_NAMES["elsewhere"], *_NAMES["silent"]))
_SAME: dict[str, list[str]] = {k: v for k, v in FIELDS["same"].items() if k != "depth"}
"""Size -> spellings that are harmless where they say what was read under another one."""

_STRONG = re.compile(one_of("strong"))
_USUAL = re.compile(rf"(^|_)({one_of('usual')})($|_)")
_POSITIONWISE = re.compile(rf"(^|_)({one_of('positionwise')})($|_)")
_MODES = re.compile(rf"^({one_of('modes')})_")


def _harmless(name: str) -> bool:
    """Whether a field of that name, in a file of any family, is known to be harmless."""
    low = name.lower()
    return (
        low in _HARMLESS
        or _USUAL.search(low) is not None
        or _MODES.search(low) is not None
        or (_STRONG.search(low) is None and _POSITIONWISE.search(low) is not None)
    )


def refuse_unread(fields: Fields, reading: Reading, outer: Sequence[Mapping[str, Any]]) -> None:
    """Raises ConfigError for the first field that may change attention and that the reader did
    not ask for. `outer` are the objects around the language model's own, outermost first.
    """
    for name, value in _unknown(fields.data, fields, ""):
        if not _confirmed(name, value, reading):
            raise _error(fields, name, value)
    # what the reader asked for, it found in the language model's own
    unasked = Fields({}, fields.where)
    unasked.harmless(*STATED, *_NAMES["around"])
    for level in outer:
        for name, value in _unknown(level, unasked, ""):
            # some files repeat the language model's fields around it
            if value != fields.data.get(name) and not _confirmed(name, value, reading):
                raise _error(fields, name, value)


def unknown_note(fields: Fields) -> list[str]:
    """Says which fields nobody knows whose names speak of nothing here."""
    names = [
        str(name)
        for name, value in fields.data.items()
        if str(name) not in fields.read
        and not (
            str(name) in _NAMES["whole"]
            or _harmless(str(name))
            or _SPEAKS.search(str(name).lower())
        )
        # switches, factors and words name no size
        and not (value is None or isinstance(value, bool | float | str))
        and value not in ([], {}, 0, 1)
    ]
    if not names:
        return []
    more = f" and {len(names) - 5} more" if len(names) > 5 else ""
    listed = ", ".join(f"'{name[:60]}'" for name in names[:5])
    return [f"fields that are not known change no layer (assumed): {listed}{more}"]


def unread(fields: Fields, reading: Reading) -> list[str]:
    """The fields that may change attention and that nobody asked for, for a stack given by
    hand.
    """
    found = _unknown(fields.data, fields, "")
    return [name for name, value in found if not _confirmed(name, value, reading)]


def doubted(reading: Reading, names: Sequence[str]) -> Reading:
    """The reading with the heads of softmax attention unknown, where a field that nobody knows
    speaks of them.
    """
    doubts: dict[str, Unknown] = {}
    for name in names:
        if _OF_HEADS.search(name.lower()) and not name.startswith("index"):
            why = Unknown((f"'{name[:60]}' is there, and what it says of heads is not known",))
            # a dimension says nothing of how many there are
            of_one = re.search(r"dim|channels|size", name) is not None
            for size in ("head_dim", "value_dim") if of_one else _SAME:
                doubts.setdefault(size, why)
    if not doubts:
        return reading

    def in_doubt(draft: Draft) -> Draft:
        sizes = {size: why for size, why in doubts.items() if size in draft.sizes}
        softmax = draft.cls.group in ATTENTION
        return Draft(draft.cls, {**draft.sizes, **sizes}) if softmax else draft

    return reading.mapped(in_doubt)


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
        passed = known or _harmless(own) or not _SPEAKS.search(own.lower())
        if inner is not None and passed:
            yield from _unknown(inner, fields, f"{name}.")
        elif entries is not None and passed:
            for i, entry in enumerate(entries):
                yield from _unknown(json_object(entry) or {}, fields, f"{name}[{i}].")
        elif (
            not known and not _harmless(own) and (_SPEAKS.search(own.lower()) or _says(own, value))
        ):
            yield name, value


def _says(name: str, value: Any) -> bool:
    """Whether a text names a mixer, under whatever name it stands."""
    return (
        isinstance(value, str)
        and name not in ("model_type", "_name_or_path", "name_or_path")
        and _MIXERS.search(value.lower()) is not None
    )


def _off(name: str, value: Any) -> bool:
    """Whether a value switches off whatever the field may be."""
    if value is False:
        return _SENSE.search(name.lower()) is None or name in _NAMES["off_by_false"]
    if name in _NAMES["off_by_one"]:
        return type(value) in (int, float) and value == 1
    return value is None or value in ("", [], {})


def _confirmed(name: str, value: Any, reading: Reading) -> bool:
    """Whether a field repeats, in another spelling, what was read."""
    if type(value) is not int:
        return False
    if name in FIELDS["same"]["depth"]:
        return value == len(reading.layers)
    for size, spellings in _SAME.items():
        if name in spellings:
            found = [
                draft.sizes.get(size)
                for layer in reading.layers
                for draft in layer
                if draft.cls.group != "recurrent"
                and any(field.name == size for field in sizes_of(draft.cls))
            ]
            return bool(found) and all(given == value for given in found)
    return False


def _error(fields: Fields, name: str, value: Any) -> ConfigError:
    return fields.error(
        f"'{name[:60]}' is {shown(value)}: by its name it may change the layers, what they keep or"
        " what they see, and no reader of this model type knows it; pass --pattern or the stack as"
        " a spec, or remove the field if it changes none of that"
    )
