"""Released models by name, read by the same reader as any config.json."""

from __future__ import annotations

from separatrix.core.errors import UnknownNameError
from separatrix.stacks.architecture import Architecture
from separatrix.stacks.architecture.released import PRESETS
from separatrix.stacks.architecture.settings import Settings


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
