"""Which model classes norm queries and keys before they meet, and how.

What a class does stands in its row (`Row.norm`), as transformers defines it; a flag of the file
switches some of them on or off. A flag that is true in a file of another class says that there is a
norm, and not which: it counts as one of another kind.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from separatrix.stacks.architecture.hf.fields import Fields, shown

_FLAGS = (
    *("use_qk_norm", "qk_norm", "qk_layernorm", "use_qk_layernorm", "qk_layer_norms", "qk_ln"),
    *("use_query_key_norm", "query_key_norm"),
)
"""How files call the flag."""


class Norm(NamedTuple):
    """The norm of a class: a value of the size `qk_norm`, and the flag that switches it."""

    kind: str
    flag: str = ""
    usually: bool = True
    """What the class takes where the flag is absent."""
    bounds: bool = False
    """Whether it has no weights, where a layer rotates; elsewhere there is none."""

    @classmethod
    def of(cls, said: Sequence[Any]) -> Norm | None:
        """As the table writes it: the kind, the flag, and what is taken where the flag is absent;
        nothing where flags alone say it, "bounds" for one without weights.
        """
        if said == ["bounds"]:
            return cls("none", bounds=True)
        return cls(*said) if said else None


def query_norm(norm: Norm | None, fields: Fields) -> str:
    """The size `qk_norm` of attention layers of a model class with that norm, None where it is not
    known, which have these fields. Raises ConfigError for a flag that is neither true nor false.
    """
    if norm is None:
        return "other" if any(_said(fields, name) is True for name in _FLAGS) else "none"
    said = _said(fields, norm.flag) if norm.flag else None
    if said is not None and not isinstance(said, bool):
        raise fields.error(f"'{norm.flag}' is {shown(said)}; it must be true or false")
    return norm.kind if (norm.usually if said is None else said) else "none"


def bounded_by_norm(norm: Norm | None, file: Fields) -> bool:
    """Whether queries and keys of a layer that rotates come out of a norm without weights."""
    return norm is not None and norm.bounds and file.flag("use_qk_norm") is not False


def _said(fields: Fields, flag: str) -> Any:
    """What a field of that name says, the innermost first; of an object alone, if `flag` has a
    dot."""
    _, inner, name = flag.rpartition(".")
    found = [key for key in fields.data if key.rpartition(".")[2] == name]
    found = [key for key in found if "." in key or not inner]
    return fields.data[max(found, key=lambda key: key.count("."))] if found else None
