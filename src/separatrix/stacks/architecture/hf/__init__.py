"""Reading an architecture from a Hugging Face config.json: `json` only, no remote code, no guesses.

A model type is a row of `models.toml`, which one interpreter reads into drafts of layers; sizes set
by hand go over those of the file, and what is still unknown is named.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

from separatrix.core.errors import ConfigError, SizeError, UnknownNameError
from separatrix.core.evidence.canonical import json_list, json_object
from separatrix.core.numbers.amounts import LARGEST_BYTES
from separatrix.stacks.architecture import Architecture
from separatrix.stacks.architecture.file import config_file, label, load_json
from separatrix.stacks.architecture.hf.fields import (
    OF_THE_TYPE,
    Draft,
    Fields,
    Layers,
    Unknown,
    shown,
)
from separatrix.stacks.architecture.hf.layers import probe, read
from separatrix.stacks.architecture.hf.notes import (
    QUANTISED,
    SECTIONS,
    STATED,
    note_formats,
    stored,
    with_quantised,
)
from separatrix.stacks.architecture.hf.table import NATIVE, ROWS, UNKNOWN, Row, of_class
from separatrix.stacks.architecture.hf.unread import note_unknown, refuse_not_causal, refuse_unread
from separatrix.stacks.architecture.hf.ways import placed
from separatrix.stacks.architecture.hf.weights import KEPT, mlp, weights
from separatrix.stacks.architecture.outline import Outline, Part, UnknownSizes
from separatrix.stacks.architecture.settings import Settings
from separatrix.stacks.mechanisms import Mechanism

__all__ = ["ROWS", "from_config", "of_class", "read_config"]

_NESTED = ("text_config", "llm_config", "language_config", "thinker_config")
_TIED = "tie_word_embeddings"
_INDEX = "model.safetensors.index.json"
_ABOVE = (
    *("dtype", "torch_dtype", "model_type", "architectures", _TIED),
    *(*SECTIONS, *STATED),
)
"""Fields that a nested configuration may leave to the one around it."""


def read_config(path: Path, *, settings: Settings | None = None) -> Architecture:
    """The architecture of a config.json, or of the folder that holds one. Raises as
    `from_config` does.
    """
    file = config_file(path)
    name = file.absolute().parent.name if file.name == "config.json" else file.stem
    data = load_json(file)
    beside = file.with_name(QUANTISED)
    if file.name == "config.json" and beside.is_file():
        data = with_quantised(data, load_json(beside))
    found = from_config(data, name, where=label(path), settings=settings)
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
) -> Architecture:
    """The architecture that the fields of a config.json describe; `where` (the file) begins every
    message, `name` if not given.

    `settings` are sizes given by hand. Raises ConfigError for data that is no object, a model whose
    layers the file does not tell, and a field that is of the wrong type or length; UnknownSizes,
    with an outline, where the file leaves sizes open; UnknownNameError for a setting that fits no
    layer.
    """
    fields, outer = _text_fields(data, where or name or "the configuration")
    chosen = settings or Settings()
    if chosen.like is not None:
        fields = _like(fields, chosen.like)
    by_class, row = _row(fields)
    if row.refused:
        said = " ".join(row.refused.split())
        kind = fields.data.get("model_type")
        named = kind if kind in ROWS else row.family
        raise fields.error(
            f"'model_type' is '{named}', whose layers {said}: not supported; pass the stack as a"
            " spec, such as '(window*3 + full)*8 @ heads=16, bf16'"
        )
    refuse_not_causal(fields, [*outer, fields.data])
    fields = _with_defaults(fields, row, nested=bool(outer))
    layers = _layers(fields, row, by_class)
    layers = stored(placed(layers, fields, chosen, row.way, row.norm), fields)
    note_formats(fields, layers)
    refuse_unread(fields, layers, outer)
    if chosen.like is not None:
        fields.note(f"read as {chosen.like} (set by hand), whatever the file's own model type")
    note_unknown(fields)
    architecture = _built(layers, fields, name, chosen)
    told = weights(fields, architecture, row)
    told = {"uncounted": told} if isinstance(told, str) else {"weights": told}
    return replace(architecture, mlp=mlp(fields, architecture, row), **told)


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
        for key in above.keys() & {*SECTIONS, *STATED} & inner.keys():
            one, another = outer[key], inner[key]
            # whatever two ways of quantising leave out under other names
            bare = [
                own and {name: of for name, of in own.items() if name not in KEPT}
                for own in map(json_object, (one, another))
            ]
            if another is not None and one != another and (bare[0] is None or bare[0] != bare[1]):
                raise Fields(outer, where).unlike(key, one, f"{nested[0]}.{key}", another)
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


def _with_defaults(fields: Fields, row: Row, *, nested: bool) -> Fields:
    """The fields, those that the file leaves out as the model class takes them."""
    left_out = {name: size for name, size in row.defaults.items() if name not in fields.data}
    # key heads that are told are of another model than the class's
    if fields.has("num_key_value_heads"):
        left_out.pop("num_attention_heads", None)
    # within another model, transformers saves what is not the class's own alone
    if nested:
        left_out |= {name: size for name, size in row.nested.items() if name not in fields.data}
    if left_out:
        fields.assume(", ".join(f"'{name}' = {size:,}" for name, size in left_out.items()))
    return fields.replaced(**left_out)


def _row(fields: Fields) -> tuple[str, Row]:
    """The row of a file, UNKNOWN where neither its model type nor its class is known; and the class
    that stands in for an unknown model type, or nothing.
    """
    kind = fields.data.get("model_type")
    # asked of every file, so that it must not count as read
    there = {name for name, value in fields.data.items() if value is not None}
    native = {"ssm_cfg", "attn_layer_idx"} & there and {"n_layer", "d_model"} & there
    if native and "model_type" not in there:
        return "", NATIVE
    if isinstance(kind, str) and kind in ROWS:
        return "", ROWS[kind]
    listed = json_list(fields.data.get("architectures"))
    other = of_class(listed[0]) if listed else None
    if listed and other is not None:
        return "" if kind is None else listed[0], ROWS[other]
    return "", UNKNOWN


def _layers(fields: Fields, row: Row, by_class: str) -> Layers:
    kind = fields.data.get("model_type")
    if kind is not None and (not isinstance(kind, str) or not kind):
        raise fields.unknown_family([*ROWS])
    if row is UNKNOWN:
        return probe(fields)
    if kind in ROWS:
        _refuse_other_class(fields, kind)
    if by_class:
        fields.note(f"{OF_THE_TYPE} {shown(kind)}, which is not known: read as {by_class}")
    return read(row, fields)


def _refuse_other_class(fields: Fields, kind: str) -> None:
    """Raises ConfigError where 'architectures' names a class of another family of models."""
    for name in json_list(fields.data.get("architectures")) or []:
        other = of_class(name)
        if other is not None and ROWS[other].family != ROWS[kind].family:
            raise fields.error(
                f"'model_type' is {shown(kind)}, but 'architectures' names {name}, a class of"
                f" {other}; correct one of them"
            )


_CONTEXTS = ("max_position_embeddings", "model_max_length", "context_length", "n_positions")
"""Fields that say for how many tokens a model was made; the first that is there counts."""


def _built(drafted: Layers, fields: Fields, name: str, settings: Settings) -> Architecture:
    """The architecture of these layers. Raises UnknownSizes where sizes stay open, ConfigError for
    sizes that do not go together.
    """
    # by identity: a draft that layers share is built once
    drafts = {id(draft): draft for layer in drafted for draft in layer}
    settings.check_used({draft.cls.name for draft in drafts.values()})
    parts: dict[int, Part] = {}
    missing: dict[str, Unknown] = {}
    for key, draft in drafts.items():
        sizes = settings.over(draft.cls, draft.sizes)
        unknown = {size: value for size, value in sizes.items() if isinstance(value, Unknown)}
        missing |= {
            # a format that the file states of keys and values, and in words that are not read
            "kv" if size == "format" else f"{draft.cls.name}.{size}": value
            for size, value in unknown.items()
        }
        parts[key] = draft.cls if unknown else _mechanism(draft, sizes, fields)
    layers = tuple(tuple(parts[id(draft)] for draft in layer) for layer in drafted)
    vocabulary = settings.vocabulary or fields.optional_size("vocab_size", "padded_vocab_size")
    context = settings.context or next(filter(None, map(fields.optional_size, _CONTEXTS)), None)
    notes = settings.noted(tuple(fields.notes))
    if missing:
        looked = dict.fromkeys(text for value in missing.values() for text in value.looked_for)
        ways = " ".join(f"--set {name}=..." for name in missing)
        raise UnknownSizes(
            f"{fields.where}: {'; '.join(looked)}; sizes are not guessed: add it to the file, or"
            f" pass {ways}",
            Outline(layers, tuple(missing)),
        )
    whole = tuple(tuple(part for part in layer if isinstance(part, Mechanism)) for layer in layers)
    return Architecture(whole, name, notes, vocabulary, context)


def _mechanism(draft: Draft, sizes: dict[str, Any], fields: Fields) -> Mechanism:
    try:
        return draft.cls(**sizes)
    except SizeError as error:
        raise fields.error(f"the sizes of a layer do not go together: {error}") from None
