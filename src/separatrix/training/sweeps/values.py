"""Grids of runs: values of a run's fields, read from a tree by the field's type, and axes of
entries, counted before they are multiplied.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from typing import Any, get_origin, get_type_hints

from separatrix.core.errors import SeparatrixError, UnknownNameError
from separatrix.stacks.architecture import Architecture
from separatrix.tasks import parse_task
from separatrix.training.run import Run
from separatrix.training.sweeps.nodes import Node, placed, refuse, within

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


@dataclass(frozen=True)
class Entry:
    """Values that are set together, and where they stand."""

    place: str
    values: Mapping[str, Any]
    places: Mapping[str, str]
    """Where each of the values stands."""


@dataclass(frozen=True)
class Axis:
    """The entries of one field, of which each combination takes one."""

    name: str
    place: str
    entries: tuple[Entry, ...]

    @property
    def names(self) -> set[str]:
        """Every field that one of its entries sets."""
        return {name for entry in self.entries for name in entry.values}

    @property
    def always(self) -> set[str]:
        """The fields that each of its entries sets."""
        return set.intersection(*(set(entry.values) for entry in self.entries))


@dataclass(frozen=True)
class Grid:
    """The baseline, and the axes that change it."""

    baseline: Entry
    axes: tuple[Axis, ...]

    @property
    def points(self) -> int:
        """How many combinations there are."""
        return math.prod(len(axis.entries) for axis in self.axes)

    def runs(self, seeds: Sequence[int]) -> Iterator[Run]:
        """Every combination with every seed, the last axis and then the seeds changing fastest.

        Raises SizeError and the like, with the lines to blame, for what no model can be trained on.
        """
        for entries in product(*(axis.entries for axis in self.axes)):
            values = self._values(entries)
            yield from (Run(**values, seed=seed) for seed in seeds)

    def check(self) -> None:
        """Raises what an impossible combination raises, with the lines that together are to blame.

        Each combination of what matters is tried once: learning rates do not.
        """
        tried: set[tuple[Any, ...]] = set()
        for entries in product(*(axis.entries for axis in self.axes)):
            values = self._values(entries)
            what = tuple(values.get(name) for name in HINTS if name not in _HARMLESS)
            if what in tried:
                continue
            tried.add(what)
            if (error := _error(values)) is not None:
                raise type(error)(f"{self._blamed(entries)}: {error}")

    def _values(self, entries: Sequence[Entry]) -> dict[str, Any]:
        values = dict(self.baseline.values)
        for entry in entries:
            values |= entry.values
        return values

    def _blamed(self, entries: tuple[Entry, ...]) -> str:
        """The places without which the combination would do."""
        values = self._values(entries)
        places = dict(self.baseline.places)
        for entry in entries:
            places |= entry.places
        found = [
            places[name]
            for name in values
            if name not in NEEDED and _error({k: v for k, v in values.items() if k != name}) is None
        ]
        for number, axis in enumerate(self.axes):
            others = (
                (*entries[:number], other, *entries[number + 1 :])
                for other in axis.entries
                if other is not entries[number]
            )
            if any(_error(self._values(changed)) is None for changed in others):
                found.append(places[axis.name])
        if not found:
            # where nothing helps alone, the two texts do not fit, or the task fits no stack at all
            alone = _error(values | {"architecture": "full"}) is not None
            found = [places["task"]] if alone else [places[name] for name in NEEDED]
        first, *rest = dict.fromkeys(found)
        return f"{first}, with {' and '.join(map(within, rest))}" if rest else first


_HARMLESS = ("learning_rate", "weight_decay", "stop_at", "plateau", "seconds", "tested")
"""Fields that fit any others."""


def _error(values: Mapping[str, Any]) -> SeparatrixError | None:
    try:
        Run(**values, seed=0).check()
    except SeparatrixError as error:
        return error
    return None


# ---- from a tree


def read_baseline(node: Node) -> Entry:
    """The baseline, which sets fields for every run."""
    if node.fields is None:
        refuse(node.place, "baseline is a mapping of fields, such as `width: 32`")
    return _entry(node, node.fields, "baseline")


def read_grids(node: Node, baseline: Entry) -> list[Grid]:
    """One grid, or a list of them."""
    parts = (node,) if node.items is None else node.items
    if not parts:
        refuse(node.place, "grid is an empty list; leave it out, or name fields with lists")
    return [_grid(part, baseline) for part in parts]


def _grid(node: Node, baseline: Entry) -> Grid:
    if node.fields is None:
        refuse(node.place, "a grid is a mapping of fields to lists, such as `width: [32, 64]`")
    for name, (place, _) in node.fields.items():
        check_field(name, place, "grid")
    axes = tuple(_axis(name, inner) for name, (_, inner) in node.fields.items())
    owner: dict[str, Axis] = {}
    for axis in axes:
        for name in axis.names:
            if name in owner:
                refuse(
                    axis.place,
                    f"the entries of {axis.name} set {name}, which those of {owner[name].name} set"
                    " as well; a field varies in one place",
                )
            owner[name] = axis
    given = set(baseline.values).union(*(axis.always for axis in axes))
    for name in NEEDED:
        if name not in given:
            refuse(node.place, f"{name} is not set; put it under `baseline:`, or as a list here")
    return Grid(baseline, axes)


def _axis(name: str, node: Node) -> Axis:
    if node.items is None:
        advice = (
            f"; write {name}: [{node.text[:60]}], or put it under `baseline:`" if node.text else ""
        )
        refuse(node.place, f"in a grid {name} has a list of values{advice}")
    if not node.items:
        refuse(node.place, f"{name} is an empty list: the grid has no run")
    entries: dict[frozenset[tuple[str, Any]], Entry] = {}
    for inner in node.items:
        entry = _axis_entry(name, inner, flow=node.bare)
        before = entries.setdefault(frozenset(entry.values.items()), entry)
        if before is not entry:
            first = within(before.place)
            refuse(entry.place, f"this entry of {name} stands twice; it is in {first} already")
    return Axis(name, node.place, tuple(entries.values()))


def _axis_entry(name: str, node: Node, *, flow: bool) -> Entry:
    if node.fields is not None:
        entry = _entry(node, node.fields, f"an entry of {name}")
        if name not in entry.values:
            refuse(node.place, f"an entry of {name} sets other fields, but not {name} itself")
        return entry
    try:
        return Entry(node.place, {name: value(name, node)}, {name: node.place})
    except SeparatrixError as error:
        # of "full @ heads=1, head_dim=16" the second half begins with "head_dim=16"
        text = node.text or ""
        open_bracket = text.count("(") != text.count(")")
        cut = name in NEEDED and (open_bracket or ("=" in text and "(" not in text))
        if not (cut and flow and node.bare):
            raise
        said = str(error).removesuffix(".")
        raise type(error)(f"{said}. Inside [...] a text with commas needs quotes") from None


def _entry(node: Node, fields: Mapping[str, tuple[str, Node]], where: str) -> Entry:
    for name, (place, _) in fields.items():
        check_field(name, place, where)
    return Entry(
        node.place,
        {name: value(name, inner) for name, (_, inner) in fields.items()},
        {name: inner.place for name, (_, inner) in fields.items()},
    )
