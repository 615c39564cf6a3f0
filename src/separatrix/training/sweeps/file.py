"""What a sweep's file says: a name, a baseline, a grid and seeds; or the same in Python.

Values are read by the type of their field, and axes are counted before they are multiplied.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from pathlib import Path
from typing import Any, NamedTuple, get_type_hints

from separatrix.core.errors import SeparatrixError, SizeError, SpecError, UnknownNameError
from separatrix.models.stored.run import Run
from separatrix.stacks.architecture import Architecture
from separatrix.tasks import parse_task
from separatrix.tasks.base.described import shown
from separatrix.training.sweeps.nodes import Node, from_python, from_yaml, placed, refuse, within

KEYS = ("name", "baseline", "grid", "seeds")
HINTS = get_type_hints(Run)
FIELDS = [name for name in HINTS if name != "seed"]
"""What a file may set of a run; seeds stand apart."""
NEEDED = ("architecture", "task")
"""Fields that have no default."""
SEEDS = 3
"""How many where nothing is said: with fewer, an interval says little of training."""
MOST_RUNS = 1_000_000
LONGEST_NAME = 100
MOST_DIGITS = 40
_NUMBERS = {
    # 010 is ten to some readers and eight to others
    int: re.compile(r"[-+]?(0|[1-9][0-9]*(_[0-9]+)*)"),
    float: re.compile(r"[-+]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][-+]?[0-9]+)?"),
}
FAMILIAR = {
    "lr": "learning_rate",
    "wd": "weight_decay",
    "d_model": "width",
    **dict.fromkeys(("arch", "model", "heads", "head_dim", "layers", "window"), "architecture"),
}
"""Names that other programs have for what a field says, whose letters are nearer to another."""
_HARMLESS = ("learning_rate", "weight_decay", "stop_at", "plateau", "seconds", "tested")
"""Fields that fit any others."""


@dataclass(frozen=True)
class Sweep:
    """Many runs under one name, each of them once."""

    name: str
    runs: tuple[Run, ...]


def read_sweep(path: Path) -> Sweep:
    """The sweep of a YAML file. Raises SpecError for a file that cannot be read, and what
    `parse_sweep` raises.
    """
    try:
        data = path.read_bytes()
    except OSError as error:
        raise SpecError(
            f"{path}: {error.strerror}; a sweep is a YAML file with `baseline:` and `grid:`"
        ) from None
    try:
        words = data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        raise SpecError(f"{path}, line {line}: no UTF-8; save the file as UTF-8") from None
    return parse_sweep(words, str(path), name=path.stem)


def parse_sweep(words: str, where: str, *, name: str) -> Sweep:
    """The sweep that a YAML text says; `name` is its name where it says none.

    Raises SpecError, UnknownNameError or SizeError that names the line.
    """
    return _sweep(from_yaml(words, where), name)


def python_sweep(source: Mapping[str, Any] | Sequence[Run], *, name: str) -> Sweep:
    """The sweep of a mapping with the keys of a file, or of runs. Raises what a file raises, with
    places such as sweep.grid.width[1].
    """
    if isinstance(source, Mapping):
        return _sweep(from_python(source, "sweep"), name)
    for number, run in enumerate(source):
        if not isinstance(run, Run):
            raise SpecError(
                f"runs[{number}] is {repr(run)[:60]}; a sweep takes Run objects, or a mapping with"
                " baseline and grid"
            )
        with placed(f"runs[{number}]"):
            run.check()
    return _once(name, source)


def _once(name: str, runs: Sequence[Run]) -> Sweep:
    """Grids may overlap, and a text may be written in two ways: what is one run is trained once."""
    if not runs:
        raise SpecError("the sweep has no runs; give at least one")
    return Sweep(name, tuple({run.key: run for run in runs}.values()))


def _sweep(node: Node, name: str) -> Sweep:
    if node.fields is None:
        refuse(node.place, "a sweep is a mapping with `baseline:` and `grid:`")
    for key, inner in node.fields.items():
        if key in FIELDS:
            refuse(
                inner.named, f"{key} is a field of the runs; put it under `baseline:` or `grid:`"
            )
        if key not in KEYS:
            with placed(inner.named):
                raise UnknownNameError.of("key", key[:60], KEYS, where=" of a sweep")
    baseline, grid, seeded, named = map(node.fields.get, ("baseline", "grid", "seeds", "name"))
    if baseline is not None and baseline.fields is None:
        refuse(baseline.place, "baseline is a mapping of fields, such as `width: 32`")
    same = {} if baseline is None else _entry(baseline, "baseline")
    if grid is None:
        _check_needed(same, baseline or node, "`grid:`")
        grids = [Grid(same, ())]
    elif grid.items is not None and not grid.items:
        refuse(grid.place, "grid is an empty list; leave it out, or name fields with lists")
    else:
        grids = [_grid(part, same) for part in grid.items or (grid,)]
    seeds = range(SEEDS) if seeded is None else _seeds(seeded)
    count = sum(one.points for one in grids) * len(seeds)
    if count > MOST_RUNS:
        place = (grid or seeded or node).place
        raise SizeError(f"{place}: {count:,} runs; a sweep has {MOST_RUNS:,} at most")
    for one in grids:
        one.check()
    if named is not None:
        name = named.text or ""
        if not 0 < len(name.strip()) <= len(name) <= LONGEST_NAME or not name.isprintable():
            refuse(named.place, f"a name has 1 to {LONGEST_NAME} letters, all of which print")
    return _once(name, [run for one in grids for run in one.runs(seeds)])


def _seeds(node: Node) -> Sequence[int]:
    if node.items is None:
        count = _said(node, int)
        if type(count) is not int or not 1 <= count <= MOST_RUNS:
            raise SizeError(
                f"{node.place}: seeds is {shown(count)}; a count from 1 to {MOST_RUNS:,}, or a list"
            )
        return range(count)
    seeds: dict[int, None] = {}
    for inner in node.items:
        seed = value("seed", inner)
        if seed in seeds:
            refuse(inner.place, f"the seed {seed} stands twice")
        seeds[seed] = None
    if not seeds:
        refuse(node.place, "seeds is an empty list: no run is left")
    return list(seeds)


# ---- grids


class Given(NamedTuple):
    """A field's value, and where it stands."""

    value: Any
    place: str


Entry = dict[str, Given]
"""Fields that are set together."""


class Axis(NamedTuple):
    """The entries of one field, of which each combination takes one."""

    name: str
    place: str
    entries: Sequence[Entry]


@dataclass(frozen=True)
class Grid:
    """The baseline, and the axes that change it."""

    baseline: Entry
    axes: Sequence[Axis]

    @property
    def points(self) -> int:
        """How many combinations there are."""
        return math.prod(len(axis.entries) for axis in self.axes)

    def runs(self, seeds: Sequence[int]) -> Iterator[Run]:
        """Every combination with every seed, the last axis and then the seeds changing fastest."""
        for entries in product(*(axis.entries for axis in self.axes)):
            values = _values(self._merged(entries))
            yield from (Run(**values, seed=seed) for seed in seeds)

    def check(self) -> None:
        """Raises what an impossible combination raises, with the lines that together are to blame.

        Each combination of what matters is tried once: learning rates do not.
        """
        tried: set[tuple[Any, ...]] = set()
        for entries in product(*(axis.entries for axis in self.axes)):
            values = _values(self._merged(entries))
            what = tuple(values.get(name) for name in FIELDS if name not in _HARMLESS)
            if what in tried:
                continue
            tried.add(what)
            if (error := _error(values)) is not None:
                raise type(error)(f"{self._blamed(entries)}: {error}")

    def _merged(self, entries: Sequence[Entry]) -> Entry:
        merged = dict(self.baseline)
        for entry in entries:
            merged |= entry
        return merged

    def _blamed(self, entries: tuple[Entry, ...]) -> str:
        """The places without which the combination would do."""
        merged = self._merged(entries)
        values = _values(merged)
        found = [
            place
            for name, (_, place) in merged.items()
            if name not in NEEDED and _error({k: v for k, v in values.items() if k != name}) is None
        ]
        for number, axis in enumerate(self.axes):
            others = (
                self._merged((*entries[:number], other, *entries[number + 1 :]))
                for other in axis.entries
                if other is not entries[number]
            )
            if any(_error(_values(changed)) is None for changed in others):
                found.append(merged[axis.name].place)
        if not found:
            # where nothing helps alone, the two texts do not fit, or the task fits no stack at all
            alone = _error(values | {"architecture": "full"}) is not None
            found = [merged[name].place for name in (NEEDED[1:] if alone else NEEDED)]
        first, *rest = dict.fromkeys(found)
        return f"{first}, with {' and '.join(map(within, rest))}" if rest else first


def _values(entry: Entry) -> dict[str, Any]:
    return {name: given.value for name, given in entry.items()}


def _error(values: Mapping[str, Any]) -> SeparatrixError | None:
    try:
        Run(**values, seed=0).check()
    except SeparatrixError as error:
        return error
    return None


def _grid(node: Node, baseline: Entry) -> Grid:
    if node.fields is None:
        refuse(node.place, "a grid is a mapping of fields to lists, such as `width: [32, 64]`")
    for name, inner in node.fields.items():
        _check_field(name, inner, "grid")
    axes = [_axis(name, inner) for name, inner in node.fields.items()]
    owner: dict[str, str] = {}
    given = set(baseline)
    for axis in axes:
        given |= set.intersection(*map(set, axis.entries))
        for name in set().union(*axis.entries):
            if (other := owner.setdefault(name, axis.name)) != axis.name:
                refuse(
                    axis.place,
                    f"the entries of {axis.name} set {name}, which those of {other} set"
                    " as well; a field varies in one place",
                )
    _check_needed(given, node, "as a list here")
    return Grid(baseline, axes)


def _check_needed(given: set[str] | Entry, node: Node, where: str) -> None:
    for name in NEEDED:
        if name not in given:
            refuse(node.place, f"{name} is not set; put it under `baseline:` or {where}")


def _axis(name: str, node: Node) -> Axis:
    if node.items is None:
        advice = (
            f"; write {name}: [{node.text[:60]}], or put it under `baseline:`" if node.text else ""
        )
        refuse(node.place, f"in a grid {name} has a list of values{advice}")
    if not node.items:
        refuse(node.place, f"{name} is an empty list: the grid has no run")
    entries: list[Entry] = []
    places: dict[frozenset[tuple[str, Any]], str] = {}
    for inner in node.items:
        entry = _axis_entry(name, inner, flow=node.bare)
        what = frozenset(_values(entry).items())
        if what in places:
            first = within(places[what])
            refuse(inner.place, f"this entry of {name} stands twice; it is in {first} already")
        places[what] = inner.place
        entries.append(entry)
    return Axis(name, node.place, entries)


def _axis_entry(name: str, node: Node, *, flow: bool) -> Entry:
    if node.fields is not None:
        entry = _entry(node, f"an entry of {name}")
        if name not in entry:
            refuse(node.place, f"an entry of {name} sets other fields, but not {name} itself")
        return entry
    try:
        return {name: Given(value(name, node), node.place)}
    except SeparatrixError as error:
        # of "full @ heads=1, head_dim=16" the second half begins with "head_dim=16"
        text = node.text or ""
        open_bracket = text.count("(") != text.count(")")
        cut = name in NEEDED and (open_bracket or ("=" in text and "(" not in text))
        if not (cut and flow and node.bare):
            raise
        said = str(error).removesuffix(".")
        raise type(error)(f"{said}. Inside [...] a text with commas needs quotes") from None


def _entry(node: Node, where: str) -> Entry:
    fields = node.fields or {}
    for name, inner in fields.items():
        _check_field(name, inner, where)
    return {name: Given(value(name, inner), inner.place) for name, inner in fields.items()}


# ---- fields


def _check_field(name: str, node: Node, where: str) -> None:
    """Raises UnknownNameError for a name that is no field of a run."""
    if name in ("seed", "seeds"):
        said = "seeds stand beside `baseline:` and `grid:`, as `seeds:` with a count or list"
        refuse(node.named, said)
    with placed(node.named):
        if name in FAMILIAR:
            raise UnknownNameError(
                f"unknown field '{name}' in {where}. Did you mean '{FAMILIAR[name]}'?"
            )
        if name not in FIELDS:
            raise UnknownNameError.of("field", name[:60], FIELDS, where=f" in {where}")


def value(name: str, node: Node) -> Any:
    """The value of a field, as the run reads it. Raises SpecError, SizeError or UnknownNameError,
    with the place, for one of another type, one out of its range, and a text that does not parse.
    """
    known: dict[str, Any] = {"architecture": "full", "task": "eva:n=4,V=4", "seed": 0}
    with placed(node.place):
        found = getattr(Run(**known | {name: _said(node, HINTS[name])}), name)
        if name == "architecture":
            Architecture.parse(found)
        if name == "task":
            parse_task(found)
    return found


def _said(node: Node, hint: Any) -> Any:
    """What stands there, as Python has it: a number where the field is one, and it is written as
    one.
    """
    if node.fields is not None:
        raise SpecError("a mapping stands here, where one value or a list is due")
    if node.items is not None:
        return tuple(_said(inner, None) for inner in node.items)
    text = node.text or ""
    if node.bare and len(text) <= MOST_DIGITS and hint in _NUMBERS:
        return hint(text) if _NUMBERS[hint].fullmatch(text) else text
    return text
