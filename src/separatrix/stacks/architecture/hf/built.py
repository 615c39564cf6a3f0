"""From drafts to an architecture: sizes set by hand go over those of the file, and what is still
unknown is named.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from separatrix.core.errors import ConfigError, SizeError
from separatrix.core.evidence.canonical import json_object
from separatrix.stacks.architecture import Architecture
from separatrix.stacks.architecture.hf.draft import Draft, Reading, Unknown
from separatrix.stacks.architecture.hf.fields import Fields
from separatrix.stacks.architecture.outline import Outline, Part, UnknownSizes
from separatrix.stacks.architecture.released import PRESETS
from separatrix.stacks.architecture.settings import Settings
from separatrix.stacks.mechanisms import Mechanism

Reader = Callable[[Any, str], Architecture]
"""Reads the fields of a config.json, under a name."""
_WIDTHS = ("hidden_size", "d_model", "n_embd", "embedding_dim")
_DEPTHS = ("num_hidden_layers", "n_layer", "n_layers", "num_layers", "num_blocks")
_LOOSE = frozenset(
    (
        *("dtype", "torch_dtype", "model_type", "architectures", "vocab_size"),
        *("rope_theta", "rope_scaling", "rope_parameters", "text_config", "layer_types"),
    )
)
"""Fields that may differ, or be spelled in another way, where the sizes are those of one model."""


def preset_like(
    data: Mapping[Any, Any], layers: tuple[tuple[Part, ...], ...], name: str, read: Reader
) -> str | None:
    """The name of the only preset whose layers are those of the file, and none of whose sizes
    contradicts it.
    """
    found = [
        known
        for known, facts in PRESETS.items()
        if known != name and _agree(data, _inner(facts["config"])) and _layers(known, layers, read)
    ]
    return found[0] if len(found) == 1 else None


def _inner(config: Mapping[str, Any]) -> Mapping[str, Any]:
    inner = json_object(config.get("text_config"))
    return config if inner is None else {**config, **inner}


def _agree(data: Mapping[Any, Any], known: Mapping[str, Any]) -> bool:
    for spellings in (_WIDTHS, _DEPTHS):
        own, theirs = (
            next((fields[name] for name in spellings if fields.get(name) is not None), None)
            for fields in (data, known)
        )
        if own != theirs or type(own) is not int:
            return False
    both = (name for name in known if name not in _LOOSE and data.get(name) is not None)
    return all(type(data[name]) is not int or data[name] == known[name] for name in both)


def _layers(known: str, layers: tuple[tuple[Part, ...], ...], read: Reader) -> bool:
    try:
        theirs = read(PRESETS[known]["config"], known).layers
    except ConfigError:
        return False
    names = [[part.name for part in layer] for layer in layers]
    return names == [[part.name for part in layer] for layer in theirs]


_CONTEXTS = ("max_position_embeddings", "model_max_length", "context_length", "n_positions")
"""Fields that say for how many tokens a model was made; the first that is there counts."""


def built(
    reading: Reading, fields: Fields, name: str, settings: Settings, read: Reader
) -> Architecture:
    """The architecture of a reading. Raises UnknownSizes where sizes stay open, naming the preset
    that has them, as `read` reads it; ConfigError for sizes that do not go together.
    """
    # by identity: a draft that layers share is built once
    drafts = {id(draft): draft for layer in reading.layers for draft in layer}
    among = {draft.cls.name for draft in drafts.values()}
    settings.check_used(among)
    parts: dict[int, Part] = {}
    shapes: dict[int, Part] = {}
    missing: dict[str, Unknown] = {}
    for key, draft in drafts.items():
        sizes = settings.over(draft.cls, draft.sizes, among)
        unknown = {size: value for size, value in sizes.items() if isinstance(value, Unknown)}
        missing |= {
            # a format that the file states of keys and values, and in words that are not read
            "kv" if size == "format" else f"{draft.cls.name}.{size}": value
            for size, value in unknown.items()
        }
        formats = {size for size in unknown if size.endswith("format") or size == "accumulator"}
        shapes[key] = (
            draft.cls
            if set(unknown) - formats
            # any format will do, as shapes tell numbers and never bits
            else _mechanism(draft, sizes | dict.fromkeys(formats, "fp32"), fields)
        )
        parts[key] = draft.cls if unknown else shapes[key]
    layers, shaped = (
        tuple(tuple(found[id(draft)] for draft in layer) for layer in reading.layers)
        for found in (parts, shapes)
    )
    vocabulary = settings.vocabulary or fields.optional_size("vocab_size")
    context = settings.context or next(filter(None, map(fields.optional_size, _CONTEXTS)), None)
    notes = settings.noted(reading.notes)
    if missing:
        like = preset_like(fields.data, layers, name, read)
        outline = Outline(layers, name, tuple(missing), shaped, notes, vocabulary, context, like)
        raise UnknownSizes(_message(missing, fields, like), outline)
    whole = tuple(tuple(part for part in layer if isinstance(part, Mechanism)) for layer in layers)
    return Architecture(whole, name, notes, vocabulary, context)


def _mechanism(draft: Draft, sizes: dict[str, Any], fields: Fields) -> Mechanism:
    try:
        return draft.cls(**sizes)
    except SizeError as error:
        raise fields.error(f"the sizes of a layer do not go together: {error}") from None


def _message(missing: dict[str, Unknown], fields: Fields, like: str | None) -> str:
    looked = list(dict.fromkeys(text for value in missing.values() for text in value.looked_for))
    ways = " ".join(f"--set {name}=..." for name in missing)
    return (
        f"{fields.where}: {'; '.join(looked)}; sizes are not guessed: add it to the file, or pass"
        f" {ways}" + (f"; or take the preset '{like}', which has them" if like else "")
    )
