"""One text, one architecture: a preset's name, a path, an architecture or config.json written
out as JSON, or a spec.
"""

from __future__ import annotations

import difflib
import os
import re
from dataclasses import replace
from pathlib import Path
from typing import Any

from separatrix.architecture import Architecture
from separatrix.architecture.hf import from_config, read_config
from separatrix.architecture.hf.file import config_file, label, load_json, parse_json
from separatrix.architecture.presets import PRESETS, hub_ids, preset, preset_named
from separatrix.architecture.settings import Settings
from separatrix.errors import ConfigError, SeparatrixError, SpecError, UnknownNameError
from separatrix.mechanisms import MECHANISMS, Mechanism

_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_-]*")
_HUB_ID = re.compile(r"[\w.-]+/[\w.-]+")
_WAYS = "Give a preset, the path of a config.json, or a stack such as 'full*2 + gdn*24'."


def resolve(
    text: str, *, settings: Settings | None = None, pattern: str | None = None
) -> Architecture:
    """The architecture that `text` names, with sizes (`settings`) and, for a model's file, the
    stack (`pattern`) given by hand.

    Raises ConfigError for a path or model file that cannot be read, UnknownSizes where it leaves
    sizes open, and UnknownNameError, SpecError or SizeError for a spec, a pattern, or a setting
    that fits no layer.
    """
    text = text.strip()
    known = preset_named(text)
    if known is not None and ("/" not in text or not os.path.exists(text)):
        return preset(known, settings=settings, pattern=pattern)
    if text.startswith("{"):
        return _from_data(
            parse_json(text, "the JSON given"), "", "the JSON given", settings, pattern
        )
    if _looks_like_path(text):
        return _from_path(text, settings, pattern)
    text = " ".join(text.split())
    if not text.isprintable():
        raise SpecError(f"{text[:60]!r} holds characters that cannot be printed. {_WAYS}")
    if _NAME.fullmatch(text) and text not in MECHANISMS:
        if os.path.exists(text):
            return _from_path(text, settings, pattern)
        error = UnknownNameError.of(
            "architecture", text[:60], [*PRESETS, *MECHANISMS], listing="separatrix presets"
        )
        raise UnknownNameError(f"{error} {_WAYS}")
    _no_pattern(pattern)
    return with_settings(Architecture.parse(text), settings)


def with_settings(architecture: Architecture, settings: Settings | None) -> Architecture:
    """The architecture with sizes set by hand in place of its own, and a note that says so. Raises
    UnknownNameError for a setting that fits no layer, SizeError or SpecError for a value that does
    not.
    """
    if not settings:
        return architecture
    among = {part.name for layer, _ in architecture.counted() for part in layer}
    settings.check_used(among)
    made: dict[Mechanism, Mechanism] = {}
    for layer, _ in architecture.counted():
        for part in layer:
            made[part] = type(part)(**settings.over(type(part), part.sizes(), among))
    return replace(
        architecture,
        layers=tuple(tuple(made[part] for part in layer) for layer in architecture.layers),
        notes=(*architecture.notes, *settings.notes()),
        vocabulary=settings.vocabulary or architecture.vocabulary,
        context=settings.context or architecture.context,
    )


def _looks_like_path(text: str) -> bool:
    """Whether a text has what no spec has: a separator, a dot or a tilde."""
    return any(mark in text for mark in {"/", ".", "~", os.sep})


def _from_path(text: str, settings: Settings | None, pattern: str | None) -> Architecture:
    path = Path(text).expanduser() if text.startswith("~/") else Path(text)
    if not os.path.exists(path):
        raise ConfigError(
            f"{label(Path(text))}: no such file or folder (nothing is downloaded).{_near_id(text)}"
            f" {_WAYS}"
        )
    file = config_file(path)
    data = load_json(file)
    if _is_architecture(data):
        return _from_data(data, file.stem, label(path), settings, pattern)
    return read_config(path, settings=settings, pattern=pattern)


def _near_id(text: str) -> str:
    """A sentence on the preset with the nearest id on the hub, for a text that looks like one."""
    if not _HUB_ID.fullmatch(text):
        return ""
    ids = {one.casefold(): (one, name) for name in PRESETS for one in hub_ids(name)}
    near = difflib.get_close_matches(text.casefold(), ids, n=1, cutoff=0.7)
    if not near:
        return ""
    one, name = ids[near[0]]
    return f" Did you mean '{one}', which is the preset {name}?"


def _is_architecture(data: Any) -> bool:
    return isinstance(data, dict) and "layers" in data and "model_type" not in data


def _from_data(
    data: Any, name: str, where: str, settings: Settings | None, pattern: str | None
) -> Architecture:
    if not _is_architecture(data):
        return from_config(data, name, where=where, settings=settings, pattern=pattern)
    try:
        _no_pattern(pattern)
        return with_settings(Architecture.from_json(data), settings)
    except SeparatrixError as error:
        raise SpecError(f"{where}: {error}") from None


def _no_pattern(pattern: str | None) -> None:
    if pattern is not None:
        raise SpecError(
            "--pattern gives the layers of a model's config.json; a spec and an architecture in"
            " JSON have their own: leave it out"
        )
