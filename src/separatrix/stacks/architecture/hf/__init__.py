"""Reading an architecture from a Hugging Face config.json: `json` only, no remote code, no guesses.

A family is one function from the fields of the file to a `Reading`, in a file of its own that says
which model types it reads.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from separatrix.core.errors import ConfigError, UnknownNameError
from separatrix.core.evidence.canonical import json_list, json_object
from separatrix.core.numbers.amounts import LARGEST_BYTES
from separatrix.stacks.architecture import Architecture
from separatrix.stacks.architecture.hf.built import built
from separatrix.stacks.architecture.hf.causal import refuse_not_causal
from separatrix.stacks.architecture.hf.draft import Reading
from separatrix.stacks.architecture.hf.fields import Fields, shown
from separatrix.stacks.architecture.hf.file import config_file, label, load_json
from separatrix.stacks.architecture.hf.interpreter import probe, read
from separatrix.stacks.architecture.hf.kv_format import QUANTISED, STATED, stored, with_quantised
from separatrix.stacks.architecture.hf.notes import format_notes
from separatrix.stacks.architecture.hf.pattern import by_pattern
from separatrix.stacks.architecture.hf.positions import placed
from separatrix.stacks.architecture.hf.table import NATIVE, ROWS, Row, of_class
from separatrix.stacks.architecture.hf.unread import refuse_unread, unknown_note
from separatrix.stacks.architecture.hf.ways import RULES, Way
from separatrix.stacks.architecture.hf.weights import mlp, weights
from separatrix.stacks.architecture.settings import Settings

__all__ = ["ROWS", "from_config", "of_class", "read_config"]

_NESTED = ("text_config", "llm_config", "language_config", "thinker_config")
_TIED = "tie_word_embeddings"
_INDEX = "model.safetensors.index.json"
_ABOVE = (
    *("dtype", "torch_dtype", "model_type", "architectures", _TIED),
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
    found = from_config(data, name, where=label(path), settings=settings, pattern=pattern)
    return replace(found, weight_bits=_beside(file)) if file.name == "config.json" else found


def _beside(file: Path) -> int | None:
    """Bits of the weights beside a config.json, as the index of a checkpoint of several files
    tells, or its only file does. Raises ConfigError for an index that is none.
    """
    index, only = (file.with_name(name) for name in (_INDEX, _INDEX.removesuffix(".index.json")))
    if not index.is_file():
        return 8 * only.stat().st_size if only.is_file() else None
    whole = json_object((json_object(load_json(index)) or {}).get("metadata")) or {}
    size = whole.get("total_size")
    if size is None:
        return None
    # some write it as a float
    if type(size) not in (int, float) or not 0 < size <= LARGEST_BYTES or size != int(size):
        raise ConfigError(
            f"{label(index)}: 'metadata.total_size' is {shown(size)}; it must be the bytes of all"
            " weights"
        )
    return 8 * int(size)


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
    if chosen.like is not None:
        fields = _like(fields, chosen.like)
    refuse_not_causal(fields, [*outer, fields.data])
    _, row = _row(fields)
    way, norm = (Way(RULES["said"]), None) if row is None else (row.way, row.norm)
    fields, assumed = _with_defaults(fields, row)
    reading = _reading(fields) if pattern is None else by_pattern(fields, pattern)
    reading = stored(placed(reading, fields, chosen, way, norm), fields)
    classes = {draft.cls for layer in reading.layers for draft in layer}
    reading = replace(reading, notes=(*reading.notes, *format_notes(fields, classes)))
    if pattern is not None:
        return built(reading, fields, name, chosen, from_config)
    refuse_unread(fields, reading, outer)
    if chosen.like is not None:
        assumed.append(f"read as {chosen.like} (set by hand), whatever the file's own model type")
    reading = replace(reading, notes=(*reading.notes, *assumed, *unknown_note(fields)))
    architecture = built(reading, fields, name, chosen, from_config)
    return replace(
        architecture,
        weights=None if row is None else weights(fields, architecture, row),
        mlp=mlp(fields, architecture, bare=row is not None and row.bare),
    )


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
            key: value
            for key, value in inner.items()
            # the class around ties the head, or does not
            if key not in above or (value is not None and key != _TIED)
        }
    raise Fields(outer, where).error(
        f"'{_NESTED[0]}' is nested more than 3 deep; pass the language model's own config.json"
    )


def _like(fields: Fields, kind: str) -> Fields:
    """The fields as if of another model type. Raises UnknownNameError for one without a row."""
    if kind not in ROWS:
        raise UnknownNameError.of("model type", kind[:60], ROWS, where=" in --set like=")
    return fields.replaced(model_type=kind, architectures=None)


def _with_defaults(fields: Fields, row: Row | None) -> tuple[Fields, list[str]]:
    """The fields, those that the file leaves out as the model class takes them, and a note."""
    usual: Mapping[str, int] = {} if row is None else row.defaults
    left_out = {name: size for name, size in usual.items() if name not in fields.data}
    if not left_out:
        return fields, []
    listed = ", ".join(f"'{name}' = {size:,}" for name, size in left_out.items())
    note = f"{listed} (assumed): the file does not say, and transformers takes it so"
    return fields.replaced(**left_out), [note]


def _row(fields: Fields) -> tuple[str | None, Row | None]:
    """The row of a file, None where neither its model type nor its class is known; and the class
    that stands in for an unknown model type.
    """
    kind = fields.data.get("model_type")
    if _is_native(fields):
        return None, NATIVE
    if isinstance(kind, str) and kind in ROWS:
        return None, ROWS[kind]
    listed = json_list(fields.data.get("architectures"))
    other = of_class(listed[0]) if listed else None
    if listed and other is not None:
        return None if kind is None else listed[0], ROWS[other]
    return None, None


def _is_native(fields: Fields) -> bool:
    """Whether the file is spelled as mamba_ssm spells its own."""
    # asked of every file, so that it must not count as read
    there = {name for name, value in fields.data.items() if value is not None}
    own = {"ssm_cfg", "attn_layer_idx"} & there
    return "model_type" not in there and bool(own and {"n_layer", "d_model"} & there)


def _reading(fields: Fields) -> Reading:
    kind = fields.data.get("model_type")
    if kind is not None and (not isinstance(kind, str) or not kind):
        raise fields.unknown_family(ROWS)
    by_class, row = _row(fields)
    if row is None:
        return probe(fields, ROWS)
    if kind in ROWS:
        _refuse_other_class(fields, kind)
    reading = read(row, fields)
    if by_class is None:
        return reading
    note = f"'model_type' is {shown(kind)}, which is not known: read as {by_class}"
    return replace(reading, notes=(note, *reading.notes))


def _refuse_other_class(fields: Fields, kind: str) -> None:
    """Raises ConfigError where 'architectures' names a class of another family of models."""
    for name in json_list(fields.data.get("architectures")) or []:
        other = of_class(name)
        if other is not None and ROWS[other].family != ROWS[kind].family:
            raise fields.error(
                f"'model_type' is {shown(kind)}, but 'architectures' names {name}, a class of"
                f" {other}; correct one of them"
            )
