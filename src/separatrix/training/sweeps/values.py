"""Values of a run's fields, read from a tree by the field's type."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any, get_origin, get_type_hints

from separatrix.core.errors import UnknownNameError
from separatrix.stacks.architecture import Architecture
from separatrix.tasks import parse_task
from separatrix.training.run import Run
from separatrix.training.sweeps.nodes import Node, placed, refuse

HINTS: dict[str, Any] = {name: hint for name, hint in get_type_hints(Run).items() if name != "seed"}
"""The fields that a file may set, with their types; seeds stand apart."""
NEEDED = ("architecture", "task")
"""Fields that have no default."""
MOST_DIGITS = 40
_INTEGER = re.compile(r"[-+]?[0-9]+(_[0-9]+)*")
_NUMBER = re.compile(r"[-+]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][-+]?[0-9]+)?")
FAMILIAR = {
    "lr": "learning_rate",
    "wd": "weight_decay",
    "d_model": "width",
    "arch": "architecture",
    "model": "architecture",
}
"""Names that other programs have for fields, whose letters are nearer to a wrong one."""
OF_STACKS = ("heads", "head_dim", "layers", "window")
"""What a text of an architecture says, and no field does."""
_READERS: dict[str, Callable[[str], object]] = {
    "architecture": Architecture.parse,
    "task": parse_task,
}
"""Texts that are read at once, so that an error names their line."""


def check_field(name: str, place: str, where: str) -> None:
    """Raises UnknownNameError for a name that is no field of a run."""
    if name in ("seed", "seeds"):
        refuse(
            place, "seeds stand beside `baseline:` and `grid:`, as `seeds:` with a count or list"
        )
    if name in OF_STACKS:
        refuse(
            place,
            f"{name} is no field; the architecture says it, as in"
            " 'window(size=4)*2 @ heads=1, head_dim=16'",
        )
    if name not in HINTS:
        with placed(place):
            if name in FAMILIAR:
                raise UnknownNameError(
                    f"unknown field '{name}' in {where}. Did you mean '{FAMILIAR[name]}'?"
                )
            raise UnknownNameError.of("field", name[:60], HINTS, where=f" in {where}")


def value(name: str, node: Node) -> Any:
    """The value of a field. Raises SpecError, SizeError or UnknownNameError, with the place, for
    one of another type, one out of its range, and a text that does not parse.
    """
    found = _typed(name, HINTS[name], node)
    with placed(node.place):
        if name in _READERS:
            _READERS[name](found)
        # the run itself knows its ranges
        texts: dict[str, Any] = {"architecture": "full", "task": "eva:n=4,V=4", "seed": 0}
        Run(**texts | {name: found})
    return found


def integer(name: str, node: Node) -> int:
    """A whole number written as such. Raises SpecError for anything else."""
    text = _scalar(name, node, "a whole number")
    if not node.bare or not _INTEGER.fullmatch(text) or len(text) > MOST_DIGITS:
        refuse(node.place, f"{name} is {node.shown}; it must be a whole number, such as 32")
    digits = text.lstrip("+-")
    if digits.startswith("0") and len(digits) > 1:
        refuse(
            node.place,
            f"{name} is {node.shown}; to some readers that is octal, so write it"
            " without zeros in front",
        )
    return int(text)


def text(name: str, node: Node) -> str:
    """A text, with quotes or without. Raises SpecError for anything else, and for none."""
    found = _scalar(name, node, "a text")
    if not found.strip():
        refuse(node.place, f"{name} is empty")
    return found


def _typed(name: str, hint: Any, node: Node) -> Any:
    if hint is int:
        return integer(name, node)
    if hint is float:
        found = _scalar(name, node, "a number")
        if not node.bare or not _NUMBER.fullmatch(found):
            shown = node.shown
            refuse(node.place, f"{name} is {shown}; it must be a number, such as 0.003 or 3e-3")
        return float(found)
    if get_origin(hint) is tuple:
        if node.items is None:
            refuse(node.place, f"{name} is a list of texts, such as [n=16, n=32]")
        return tuple(text(f"each entry of {name}", inner) for inner in node.items)
    return text(name, node)


def _scalar(name: str, node: Node, wanted: str) -> str:
    if node.text is None:
        found = "a mapping" if node.items is None else "a list"
        refuse(node.place, f"{name} is {wanted}, and {found} stands here")
    return node.text
