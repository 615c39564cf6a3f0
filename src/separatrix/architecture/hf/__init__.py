"""Reading an architecture from a Hugging Face config.json: `json` only, no remote code, no guesses.

A family is one function from the fields of the file to layers and notes, and one line in `FAMILIES`.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

from separatrix.architecture import Architecture
from separatrix.architecture.hf._fields import Fields, shown
from separatrix.architecture.hf._file import config_file, label, load_json
from separatrix.architecture.hf.nemotron_h import nemotron_h
from separatrix.architecture.hf.qwen3_next import qwen3_next
from separatrix.architecture.hf.recurrent_gemma import recurrent_gemma
from separatrix.architecture.mechanisms import Mechanism

Family = Callable[[Fields], tuple[list[Mechanism], list[str]]]

FAMILIES: dict[str, Family] = {
    "qwen3_next": qwen3_next,
    "nemotron_h": nemotron_h,
    "recurrent_gemma": recurrent_gemma,
}
"""`model_type` -> reader."""

_CLASSES = {
    "Qwen3NextForCausalLM": "qwen3_next",
    "NemotronHForCausalLM": "nemotron_h",
    "RecurrentGemmaForCausalLM": "recurrent_gemma",
}
"""`architectures[0]` -> `model_type`, for files without one."""

_NESTED = ("text_config", "llm_config", "language_config")
_ABOVE = ("dtype", "torch_dtype", "model_type", "architectures")
"""Fields that a nested configuration may leave to the one around it."""


def read_config(path: Path) -> Architecture:
    """The architecture of a config.json, or of the folder that holds one. Raises ConfigError with the file, the field and the remedy."""
    file = config_file(path)
    name = file.absolute().parent.name if file.name == "config.json" else file.stem
    return from_config(load_json(file), name, where=label(path))


def from_config(data: Any, name: str = "", *, where: str = "") -> Architecture:
    """The architecture that the fields of a config.json describe; `where` (the file) begins every message, `name` if not given.

    Raises ConfigError for data that is no object, a `model_type` nobody reads, and a field that is missing, of the wrong type or length.
    """
    fields = _text_fields(data, where or name or "the configuration")
    layers, notes = _family(fields)(fields)
    return Architecture(
        tuple((layer,) for layer in layers),
        name,
        tuple(notes),
        fields.optional_size("vocab_size"),
        fields.optional_size("max_position_embeddings"),
    )


def _text_fields(data: Any, where: str) -> Fields:
    """The fields of the language model, wherever they are nested."""
    for _ in range(4):
        if not isinstance(data, dict):
            raise Fields({}, where).error(f"holds {shown(data)}, which is no JSON object; pass the model's config.json")
        nested = [key for key in _NESTED if data.get(key) is not None]
        if not nested:
            return Fields(data, where)
        inner = data[nested[0]]
        if not isinstance(inner, dict):
            raise Fields(data, where).error(f"'{nested[0]}' is {shown(inner)}; it must be an object with the language model's fields")
        above = {key: data[key] for key in _ABOVE if data.get(key) is not None}
        if "dtype" in inner or "torch_dtype" in inner:
            above = {key: value for key, value in above.items() if "dtype" not in key}
        data = above | {key: value for key, value in inner.items() if value is not None}
    raise Fields(data, where).error(f"'{_NESTED[0]}' is nested more than 3 deep; pass the language model's own config.json")


def _family(fields: Fields) -> Family:
    kind = fields.data.get("model_type")
    if kind is None:
        classes = fields.data.get("architectures")
        first = classes[0] if isinstance(classes, list) and classes else None
        kind = _CLASSES.get(first) if isinstance(first, str) else None
    if not isinstance(kind, str) or kind not in FAMILIES:
        raise fields.unknown_family(tuple(FAMILIES))
    return FAMILIES[kind]
