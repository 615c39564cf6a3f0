"""Phi-4-mini-flash (SambaY): its layers share keys, values and states in ways that the file does
not say.
"""

from __future__ import annotations

from separatrix.architecture.hf.draft import Reading
from separatrix.architecture.hf.family import Family
from separatrix.architecture.hf.fields import Fields


def phi4flash(fields: Fields) -> Reading:
    """Always raises ConfigError: what is cached does not follow from the file."""
    raise fields.error(
        "'model_type' is 'phi4flash', whose layers share keys, values and states across layers in"
        " ways the file does not say; pass the stack itself instead, such as '(mamba + window)*8 +"
        " full @ heads=40, bf16'"
    )


FAMILIES: dict[str, Family] = {
    "phi4flash": phi4flash,
}
CLASSES: dict[str, str] = {}
