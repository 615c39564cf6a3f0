"""The preset that has the sizes a file leaves open: of the same layers, width and depth."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from separatrix.core.errors import ConfigError
from separatrix.core.evidence.canonical import json_object
from separatrix.stacks.architecture import Architecture
from separatrix.stacks.architecture.outline import Part
from separatrix.stacks.architecture.released import PRESETS

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
