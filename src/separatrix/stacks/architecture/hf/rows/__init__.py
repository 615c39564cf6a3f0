"""The table of model types: one row each."""

from __future__ import annotations

from typing import Any

from separatrix.stacks.architecture.hf.row import Row
from separatrix.stacks.architecture.hf.rows import attention, fla, latent, recurrent

ROWS: dict[str, Row] = {**attention.ROWS, **latent.ROWS, **recurrent.ROWS, **fla.ROWS}
"""`model_type` -> what is known of it."""
_SQUEEZED = {kind.translate(str.maketrans("", "", "_-")): kind for kind in ROWS}
_CLASSES = {name: kind for kind, row in ROWS.items() for name in row.classes}
_ENDS = ("ForCausalLM", "LMHeadModel", "ForConditionalGeneration")


def of_class(name: Any) -> str | None:
    """The model type of a class in `architectures`: classes are named after it, but for a few.
    None for a class that is not known.
    """
    if not isinstance(name, str):
        return None
    stems = (name.removesuffix(end) for end in _ENDS if name.endswith(end))
    return _CLASSES.get(name) or _SQUEEZED.get(next(stems, "").replace("_", "").lower())
