"""One text, one architecture: a preset's name, a path, an architecture or config.json written out as JSON, or a spec."""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import Any

from separatrix.architecture import Architecture
from separatrix.architecture.hf import from_config, read_config
from separatrix.architecture.hf._file import config_file, label, load_json, parse_json
from separatrix.architecture.mechanisms import MECHANISMS
from separatrix.architecture.presets import PRESETS, preset
from separatrix.errors import ConfigError, SeparatrixError, SpecError, UnknownNameError

_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_-]*")
_WAYS = "Read are a preset, a path to a config.json, or a stack such as 'full*2 + gdn*24'."


def resolve(text: str) -> Architecture:
    """The architecture that `text` names.

    Raises ConfigError for a path or model file that cannot be read, and UnknownNameError, SpecError or SizeError for a spec.
    """
    text = text.strip()
    if text in PRESETS or text.lower() in PRESETS:
        return preset(text if text in PRESETS else text.lower())
    if text.startswith("{"):
        return _from_data(parse_json(text, "the JSON given"), "", "the JSON given")
    if _looks_like_path(text):
        return _from_path(text)
    text = " ".join(text.split())
    if not text.isprintable():
        raise SpecError(f"{text[:60]!r} holds characters that cannot be printed. {_WAYS}")
    if _NAME.fullmatch(text) and text not in MECHANISMS:
        if os.path.exists(text):
            return _from_path(text)
        error = UnknownNameError.of("architecture", text[:60], [*PRESETS, *MECHANISMS])
        raise UnknownNameError(f"{error} {_WAYS}")
    return Architecture.parse(text)


def _looks_like_path(text: str) -> bool:
    """Whether a text has what no spec has: a separator, a dot or a tilde."""
    return any(mark in text for mark in {"/", ".", "~", os.sep})


def _from_path(text: str) -> Architecture:
    path = Path(text).expanduser() if text.startswith("~/") else Path(text)
    if not os.path.exists(path):
        raise ConfigError(f"{label(Path(text))}: no such file or folder (nothing is downloaded). {_WAYS}")
    file = config_file(path)
    data = load_json(file)
    if _is_architecture(data):
        return _from_data(data, file.stem, label(path))
    return read_config(path)


def _is_architecture(data: Any) -> bool:
    return isinstance(data, dict) and "layers" in data and "model_type" not in data


def _from_data(data: Any, name: str, where: str) -> Architecture:
    if not _is_architecture(data):
        return from_config(data, name, where=where)
    try:
        return Architecture.from_json(data)
    except SeparatrixError as error:
        raise SpecError(f"{where}: {error}") from None
