"""One text, one architecture: a preset's name, a path, an architecture or config.json written
out as JSON, or a spec.
"""

from __future__ import annotations

import difflib
import os
import re
from pathlib import Path
from types import ModuleType
from typing import Any

from separatrix.core.errors import ConfigError, SeparatrixError, SpecError, UnknownNameError
from separatrix.stacks.architecture import Architecture
from separatrix.stacks.architecture.file import config_file, label, load_json, parse_json
from separatrix.stacks.architecture.released import PRESETS, WAYS, hub_ids, preset_named
from separatrix.stacks.architecture.settings import Settings, with_settings
from separatrix.stacks.mechanisms import MECHANISMS, OWN, called

_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_-]*")
_HUB_ID = re.compile(r"[\w.-]+/[\w.-]+")


def preset(name: str, *, settings: Settings | None = None) -> Architecture:
    """The released model of that name, with sizes given by hand.

    Raises UnknownNameError, suggesting the nearest name, and what `from_config` raises.
    """
    if name not in PRESETS:
        raise UnknownNameError.of("preset", name, PRESETS, listing="separatrix list presets")
    return _hf().from_config(PRESETS[name]["config"], name, settings=settings)


Stack = str | os.PathLike[str] | Architecture
"""A spec, a preset, the path of a config.json, or what they name."""


def stack_of(model: Stack) -> Architecture:
    """What a text, a path or an object names. Raises SpecError for anything else."""
    match model:
        case Architecture():
            return model
        case str() | os.PathLike():
            return resolve(os.fspath(model))
        case _:
            raise SpecError(f"{model!r:.60} names no stack. {WAYS}")


def resolve(text: str, *, settings: Settings | None = None) -> Architecture:
    """The architecture that `text` names, with sizes (`settings`) given by hand.

    Raises ConfigError for a path or model file that cannot be read, and UnknownSizes where it
    leaves sizes open. A spec or a setting that fits no layer raises UnknownNameError,
    SpecError or SizeError.
    """
    text = text.strip()
    known = preset_named(text)
    # an id on the hub may be a folder here as well, which then is what is meant
    if known is not None and ("/" not in text or not os.path.exists(text)):
        return preset(known, settings=settings)
    if text.startswith("{"):
        where = "the JSON given"
        return _from_data(parse_json(text, where), "", where, settings)
    # no spec has a separator, a dot or a tilde
    if any(mark in text for mark in {"/", ".", "~", os.sep}):
        return _from_path(text, settings)
    text = " ".join(text.split())
    if not text.isprintable():
        raise SpecError(f"{text[:60]!r} holds characters that cannot be printed. {WAYS}")
    if _NAME.fullmatch(text) and not called(text):
        if os.path.exists(text):
            return _from_path(text, settings)
        known, listing = [*PRESETS, *MECHANISMS], "separatrix list presets"
        raise UnknownNameError.of(
            "architecture", text[:60], known, listing=listing, more=f"{WAYS} {OWN}"
        )
    return with_settings(Architecture.parse(text), settings)


def _hf() -> ModuleType:
    # a spec needs none of the families of models, which take long to load
    from separatrix.stacks.architecture import hf

    return hf


def _from_path(text: str, settings: Settings | None) -> Architecture:
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
        return _from_data(data, file.stem, label(path), settings)
    return _hf().read_config(path, settings=settings)


def _near_id(text: str) -> str:
    """A sentence on the preset with the nearest id on the hub, for a text that looks like one."""
    ids = {one.casefold(): (one, name) for name in PRESETS for one in hub_ids(name)}
    asked = text.casefold() if _HUB_ID.fullmatch(text) else ""
    near = (ids[one] for one in difflib.get_close_matches(asked, ids, n=1, cutoff=0.7))
    return "".join(f" Did you mean '{one}', which is the preset {name}?" for one, name in near)


def _is_architecture(data: Any) -> bool:
    return isinstance(data, dict) and "layers" in data and "model_type" not in data


def _from_data(data: Any, name: str, where: str, settings: Settings | None) -> Architecture:
    if not _is_architecture(data):
        return _hf().from_config(data, name, where=where, settings=settings)
    try:
        return with_settings(Architecture.from_json(data), settings)
    except SeparatrixError as error:
        raise SpecError(f"{where}: {error}") from None
