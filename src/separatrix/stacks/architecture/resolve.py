"""One text, one architecture: a preset's name, a path, an architecture or config.json written
out as JSON, or a spec.
"""

from __future__ import annotations

import os
import re
from types import ModuleType

from separatrix.core.errors import SpecError, UnknownNameError
from separatrix.stacks.architecture import Architecture
from separatrix.stacks.architecture.released import PRESETS, WAYS, preset_named
from separatrix.stacks.architecture.settings import Settings, no_pattern, with_settings
from separatrix.stacks.mechanisms import MECHANISMS, called

_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_-]*")


def preset(
    name: str, *, settings: Settings | None = None, pattern: str | None = None
) -> Architecture:
    """The released model of that name, with sizes or the stack given by hand, as `from_config`
    takes them.

    Raises UnknownNameError, suggesting the nearest name, and what `from_config` raises.
    """
    # the families of models load when one is read
    from separatrix.stacks.architecture.hf import from_config

    if name not in PRESETS:
        raise UnknownNameError.of("preset", name, PRESETS, listing="separatrix list presets")
    return from_config(PRESETS[name]["config"], name, settings=settings, pattern=pattern)


def resolve(
    text: str, *, settings: Settings | None = None, pattern: str | None = None
) -> Architecture:
    """The architecture that `text` names, with sizes (`settings`) and, for a model's file, the
    stack (`pattern`) given by hand.

    Raises ConfigError for a path or model file that cannot be read, and UnknownSizes where it
    leaves sizes open. A spec, a pattern, or a setting that fits no layer raises UnknownNameError,
    SpecError or SizeError.
    """
    text = text.strip()
    known = preset_named(text)
    # an id on the hub may be a folder here as well, which then is what is meant
    if known is not None and ("/" not in text or not os.path.exists(text)):
        return preset(known, settings=settings, pattern=pattern)
    if text.startswith("{"):
        return _files().from_json_text(text, settings, pattern)
    if _looks_like_path(text):
        return _files().from_path(text, settings, pattern)
    text = " ".join(text.split())
    if not text.isprintable():
        raise SpecError(f"{text[:60]!r} holds characters that cannot be printed. {WAYS}")
    if _NAME.fullmatch(text) and not called(text):
        if os.path.exists(text):
            return _files().from_path(text, settings, pattern)
        error = UnknownNameError.of(
            "architecture", text[:60], [*PRESETS, *MECHANISMS], listing="separatrix list presets"
        )
        raise UnknownNameError(f"{error} {WAYS}")
    no_pattern(pattern)
    return with_settings(Architecture.parse(text), settings)


def _looks_like_path(text: str) -> bool:
    """Whether a text has what no spec has: a separator, a dot or a tilde."""
    return any(mark in text for mark in {"/", ".", "~", os.sep})


def _files() -> ModuleType:
    # a spec needs none of the families of models, whose files take long to load
    from separatrix.stacks.architecture import files

    return files
