"""Architectures from files: a config.json, the folder that holds one, or the layers as JSON."""

from __future__ import annotations

import difflib
import os
import re
from pathlib import Path
from typing import Any

from separatrix.core.errors import ConfigError, SeparatrixError, SpecError
from separatrix.stacks.architecture import Architecture
from separatrix.stacks.architecture.hf import from_config, read_config
from separatrix.stacks.architecture.hf.file import config_file, label, load_json, parse_json
from separatrix.stacks.architecture.released import PRESETS, WAYS, hub_ids
from separatrix.stacks.architecture.settings import Settings, no_pattern, with_settings

_HUB_ID = re.compile(r"[\w.-]+/[\w.-]+")


def from_json_text(text: str, settings: Settings | None, pattern: str | None) -> Architecture:
    """The architecture that a JSON object describes, written out as text."""
    where = "the JSON given"
    return _from_data(parse_json(text, where), "", where, settings, pattern)


def from_path(text: str, settings: Settings | None, pattern: str | None) -> Architecture:
    """The architecture that a file or folder describes."""
    path = Path(text).expanduser() if text.startswith("~/") else Path(text)
    if not os.path.exists(path):
        raise ConfigError(
            f"{label(Path(text))}: no such file or folder (nothing is downloaded).{_near_id(text)}"
            f" {WAYS}"
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
        no_pattern(pattern)
        return with_settings(Architecture.from_json(data), settings)
    except SeparatrixError as error:
        raise SpecError(f"{where}: {error}") from None
