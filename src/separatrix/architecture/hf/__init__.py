"""Reading an architecture from a Hugging Face config.json: `json` only, no remote code, no guesses.

A family is one function from the fields of the file to a `Reading`, in a file of its own that says
which model types it reads.
"""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

from separatrix.architecture import Architecture
from separatrix.architecture.hf.built import built
from separatrix.architecture.hf.causal import refuse_not_causal
from separatrix.architecture.hf.draft import Reading
from separatrix.architecture.hf.families import CLASSES, FAMILIES
from separatrix.architecture.hf.families.mamba_ssm import is_native, mamba_ssm
from separatrix.architecture.hf.family import Family
from separatrix.architecture.hf.fields import Fields, shown
from separatrix.architecture.hf.file import config_file, label, load_json
from separatrix.architecture.hf.kv_format import QUANTISED, STATED, stored, with_quantised
from separatrix.architecture.hf.pattern import by_pattern
from separatrix.architecture.hf.positions import placed
from separatrix.architecture.hf.probe import probe
from separatrix.architecture.hf.unread import refuse_unread, unknown_note
from separatrix.architecture.hf.weights import weights
from separatrix.architecture.settings import Settings
from separatrix.evidence.canonical import json_list, json_object

__all__ = ["CLASSES", "FAMILIES", "from_config", "read_config"]

_NESTED = ("text_config", "llm_config", "language_config", "thinker_config")
_ABOVE = (
    *("dtype", "torch_dtype", "model_type", "architectures"),
    *("quantization_config", "quantization", "compression_config", *STATED),
)
"""Fields that a nested configuration may leave to the one around it."""


def read_config(
    path: Path, *, settings: Settings | None = None, pattern: str | None = None
) -> Architecture:
    """The architecture of a config.json, or of the folder that holds one. Raises as
    `from_config` does.
    """
    file = config_file(path)
    name = file.absolute().parent.name if file.name == "config.json" else file.stem
    data = load_json(file)
    beside = file.with_name(QUANTISED)
    if file.name == "config.json" and beside.is_file():
        data = with_quantised(data, load_json(beside))
    return from_config(data, name, where=label(path), settings=settings, pattern=pattern)


def from_config(
    data: Any,
    name: str = "",
    *,
    where: str = "",
    settings: Settings | None = None,
    pattern: str | None = None,
) -> Architecture:
    """The architecture that the fields of a config.json describe; `where` (the file) begins every
    message, `name` if not given.

    `settings` are sizes given by hand, `pattern` is the stack given by hand, such as '(mamba2*7 +
    full)*4', to which the file gives the sizes. Raises what a spec raises for the pattern;
    ConfigError for data that is no object, a model whose layers the file does not tell, and a field
    that is of the wrong type or length; UnknownSizes, with an outline, where the file leaves sizes
    open; UnknownNameError for a setting that fits no layer.
    """
    fields, outer = _text_fields(data, where or name or "the configuration")
    chosen = settings or Settings()
    refuse_not_causal(fields, [*outer, fields.data])
    if pattern is not None:
        reading = stored(placed(by_pattern(fields, pattern), fields, chosen), fields)
        return built(reading, fields, name, chosen)
    reading = stored(placed(_family(fields)(fields), fields, chosen), fields)
    refuse_unread(fields, reading, outer)
    reading = replace(reading, notes=(*reading.notes, *unknown_note(fields)))
    architecture = built(reading, fields, name, chosen)
    return replace(architecture, weights=weights(fields, architecture))


def _text_fields(data: Any, where: str) -> tuple[Fields, list[dict[str, Any]]]:
    """The fields of the language model, wherever they are nested, and those of the objects around
    it, outermost first.
    """
    around: list[dict[str, Any]] = []
    outer = json_object(data)
    if outer is None:
        raise Fields({}, where).error(
            f"holds {shown(data)}, which is no JSON object; pass the model's config.json"
        )
    for _ in range(4):
        nested = [key for key in _NESTED if outer.get(key) is not None]
        if not nested:
            return Fields(outer, where), around
        inner = json_object(outer[nested[0]])
        if inner is None:
            raise Fields(outer, where).error(
                f"'{nested[0]}' is {shown(outer[nested[0]])}; it must be an object with the"
                " language model's fields"
            )
        others = [key for key in nested[1:] if outer[key] != outer[nested[0]]]
        if others:
            raise Fields(outer, where).error(
                f"'{nested[0]}' and '{others[0]}' both hold a model; pass the config.json of the"
                " one that is meant"
            )
        around.append(outer)
        above = {key: outer[key] for key in _ABOVE if outer.get(key) is not None}
        # the inner dtype, in either spelling, wins over both spellings around it
        if any(inner.get(name) is not None for name in ("dtype", "torch_dtype")):
            above = {key: value for key, value in above.items() if "dtype" not in key}
        outer = above | {
            key: value for key, value in inner.items() if value is not None or key not in above
        }
    raise Fields(outer, where).error(
        f"'{_NESTED[0]}' is nested more than 3 deep; pass the language model's own config.json"
    )


def _family(fields: Fields) -> Family:
    kind = fields.data.get("model_type")
    if is_native(fields):
        return mamba_ssm
    if isinstance(kind, str) and kind in FAMILIES:
        _refuse_other_class(fields, kind)
        return FAMILIES[kind]
    if kind is not None and (not isinstance(kind, str) or not kind):
        raise fields.unknown_family(FAMILIES)
    classes = fields.data.get("architectures")
    listed = json_list(classes)
    first = listed[0] if listed else None
    if isinstance(first, str) and first in CLASSES:
        family = FAMILIES[CLASSES[first]]
        return family if kind is None else partial(_by_class, family, first)
    return partial(probe, known=FAMILIES)


def _refuse_other_class(fields: Fields, kind: str) -> None:
    """Raises ConfigError where 'architectures' names a class of another family of models."""
    for name in json_list(fields.data.get("architectures")) or []:
        other = CLASSES.get(name) if isinstance(name, str) else None
        if other is not None and FAMILIES[other].__module__ != FAMILIES[kind].__module__:
            raise fields.error(
                f"'model_type' is {shown(kind)}, but 'architectures' names {name}, a class of"
                f" {other}; correct one of them"
            )


def _by_class(family: Family, name: str, fields: Fields) -> Reading:
    """The reading of a file of an unknown model type by its class, with a note that says so."""
    reading = family(fields)
    return replace(
        reading,
        notes=(
            (
                f"'model_type' is {shown(fields.data['model_type'])}, which is not known: read as"
                f" {name}"
            ),
            *reading.notes,
        ),
    )
