"""What a sweep's file says: a name, a baseline, a grid and seeds; or the same in Python.

Scalars stay texts: what one means is decided by the type of the field it is for, never by YAML's
guesses, to which `1e-3` is a text, `no` false and `010` eight. Axes are counted before they are
multiplied.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from itertools import product
from pathlib import Path
from typing import Any, NoReturn, get_type_hints

from separatrix.core.errors import (
    SeparatrixError,
    SizeError,
    SpecError,
    UnknownNameError,
    first_line,
)
from separatrix.models.stored.run import Run
from separatrix.stacks.architecture import Architecture
from separatrix.tasks import parse_task
from separatrix.tasks.base.described import shown

KEYS = ("name", "baseline", "grid", "seeds")
HINTS = get_type_hints(Run)
FIELDS = [name for name in HINTS if name != "seed"]
"""What a file may set of a run; seeds stand apart."""
NEEDED = ("architecture", "task")
"""Fields that have no default."""
SEEDS = 3
"""How many where nothing is said: with fewer, an interval says little of training."""
MOST_RUNS = 1_000_000
MOST_LETTERS = 200_000
MOST_DEPTH = 8
"""Lists and mappings inside each other; a sweep needs five."""
MOST_SHOWN = 60
"""Letters of a value that an error quotes."""
LONGEST_NAME = 100
MOST_DIGITS = 40
_NUMBERS = {
    # 010 is ten to some readers and eight to others
    int: re.compile(r"[-+]?(0|[1-9][0-9]*(_[0-9]+)*)"),
    float: re.compile(r"[-+]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][-+]?[0-9]+)?"),
}
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
    return _sweep(_from_yaml(words, where), name)


def python_sweep(source: Mapping[str, Any] | Sequence[Run], *, name: str) -> Sweep:
    """The sweep of a mapping with the keys of a file, or of runs. Raises what a file raises, with
    places such as sweep.grid.width[1].
    """
    if isinstance(source, Mapping):
        return _sweep(_from_python(source, "sweep"), name)
    for number, run in enumerate(source):
        if not isinstance(run, Run):
            raise SpecError(
                f"runs[{number}] is {repr(run)[:MOST_SHOWN]}; a sweep takes Run objects, or a"
                " mapping with baseline and grid"
            )
        with _placed(f"runs[{number}]"):
            run.check()
    return _once(name, source)


def _once(name: str, runs: Sequence[Run]) -> Sweep:
    """Grids may overlap, and a text may be written in two ways: what is one run is trained once."""
    if not runs:
        raise SpecError("the sweep has no runs; give at least one")
    return Sweep(name, tuple({run.key: run for run in runs}.values()))


# ---- a tree in which every value knows its place


@dataclass(frozen=True)
class Node:
    """A text, a list (`items`) or a mapping (`fields`)."""

    place: str
    """What an error begins with: "sweep.yaml, line 3, column 5"."""
    text: str | None = None
    items: tuple[Node, ...] | None = None
    fields: Mapping[str, Node] | None = None
    bare: bool = False
    """A text without quotes."""
    named: str = ""
    """In a mapping, the place of its name."""


def _refuse(place: str, message: str) -> NoReturn:
    raise SpecError(f"{place}: {message}")


@contextmanager
def _placed(place: str) -> Iterator[None]:
    """An error of what is done inside names the place first."""
    try:
        yield
    except SeparatrixError as error:
        # a run does not know that it stands in a sweep
        raise type(error)(f"{place}: {str(error).removeprefix('training: ')}") from None


def _from_yaml(text: str, where: str) -> Node:
    """The tree of a file's text; `where` names it in errors."""
    if len(text) > MOST_LETTERS:
        raise SpecError(
            f"{where} has {len(text):,} letters; a sweep's file has {MOST_LETTERS:,} at most."
            " A sweep of very many runs is easier said in Python: sx.sweep(runs, store=...)"
        )
    return _tree(
        text, where, lambda mark, path: f"{where}, line {mark.line + 1}, column {mark.column + 1}"
    )


def _tree(text: str, where: str, place: Callable[[Any, str], str]) -> Node:
    """The tree of a YAML text, with the places of marks and paths. Raises SpecError for what is not
    YAML, or is more than a sweep needs: anchors, tags, several documents, deep nesting.
    """
    import yaml

    def tree(node: Any, path: str = "") -> Node:
        at = place(node.start_mark, path)
        if isinstance(node, yaml.ScalarNode):
            return Node(at, text=node.value, bare=node.style is None)
        if isinstance(node, yaml.SequenceNode):
            items = (tree(one, f"{path}[{number}]") for number, one in enumerate(node.value))
            return Node(at, items=tuple(items))
        fields: dict[str, Node] = {}
        for key, value in node.value:
            named = place(key.start_mark, path)
            if not isinstance(key, yaml.ScalarNode):
                _refuse(named, "a list or mapping stands where a name is due")
            said = key.value[:MOST_SHOWN]
            if key.value in fields:
                before = _line(fields[key.value].named)
                _refuse(named, f"'{said}' stands twice; it is in {before} already")
            fields[key.value] = replace(tree(value, f"{path}.{said}"), named=named)
        return Node(at, fields=fields)

    try:
        depth = 0
        # before a tree is made: no alias is followed, and no depth is too deep for Python
        for event in yaml.parse(text, Loader=yaml.SafeLoader):
            depth += isinstance(event, yaml.CollectionStartEvent)
            depth -= isinstance(event, yaml.CollectionEndEvent)
            if depth > MOST_DEPTH:
                said = f"lists in lists, more than {MOST_DEPTH} deep; a sweep needs five"
                _refuse(place(event.start_mark, ""), said)
            if isinstance(event, yaml.NodeEvent) and (event.anchor or getattr(event, "tag", None)):
                _refuse(
                    place(event.start_mark, ""),
                    "an anchor (&), an alias (*) or a tag (!) stands here; write the value itself,"
                    " and put a text that begins so into quotes",
                )
        root = yaml.compose(text, Loader=yaml.SafeLoader)
    except yaml.MarkedYAMLError as error:
        mark, said = error.problem_mark, str(error.problem or error.context)
        _refuse(place(mark, "") if mark else where, f"not YAML: {said}")
    except yaml.reader.ReaderError as error:
        line = text.count("\n", 0, error.position) + 1
        _refuse(f"{where}, line {line}", "a character that no text has; save the file as UTF-8")
    if root is None:
        _refuse(where, "the file is empty; a sweep has `baseline:` and `grid:`")
    return tree(root)


def _from_python(value: object, where: str) -> Node:
    """The tree of Python data: mappings, lists, texts and numbers. Raises SpecError for others."""

    def plain(other: Any) -> Any:
        if isinstance(other, Mapping):
            return dict(other)
        if isinstance(other, Sequence):
            return list(other)
        if not hasattr(other, "tolist"):
            raise TypeError(f"{repr(other)[:MOST_SHOWN]} is no text, number, list or mapping")
        # arrays of numpy, and its numbers
        return other.tolist()

    try:
        # JSON is YAML
        text = json.dumps(value, default=plain)
    except (TypeError, ValueError, RecursionError) as error:
        _refuse(where, first_line(error))
    return _tree(text, where, lambda mark, path: f"{where}{path}")


# ---- grids


Entry = dict[str, tuple[Any, str]]
"""Fields that are set together, each with its value and where that stands."""
Axes = Sequence[Sequence[Entry]]
"""What changes a baseline; of the entries of each a run takes one."""


def _runs(place: str, baseline: Entry, axes: Axes, seeds: Sequence[int]) -> Iterator[Run]:
    """Every combination with every seed, the last axis and then the seeds changing fastest.

    Raises what an impossible combination raises, with the lines of its task and stack; each one of
    what matters is tried once: learning rates do not.
    """
    tried: set[tuple[Any, ...]] = set()
    for entries in product(*axes):
        given = dict(baseline)
        for entry in entries:
            given |= entry
        values = {name: value for name, (value, _) in given.items()}
        for name in NEEDED:
            if name not in values:
                _refuse(
                    place,
                    f"{name} is not set; put it under `baseline:`, or as a list under `grid:`",
                )
        what = tuple(values.get(name) for name in FIELDS if name not in _HARMLESS)
        if what not in tried:
            tried.add(what)
            with _placed(f"{given['task'][1]}, with {_line(given['architecture'][1])}"):
                Run(**values, seed=0).check()
        yield from (Run(**values, seed=seed) for seed in seeds)


def _line(place: str) -> str:
    """A place for whoever knows the file already: "line 3"."""
    _, comma, line = place.rpartition(", line ")
    return f"line {line.partition(',')[0]}" if comma else place


def _sweep(node: Node, name: str) -> Sweep:
    if node.fields is None:
        _refuse(node.place, "a sweep is a mapping with `baseline:` and `grid:`")
    for key, inner in node.fields.items():
        if key in FIELDS:
            _refuse(
                inner.named, f"{key} is a field of the runs; put it under `baseline:` or `grid:`"
            )
        if key not in KEYS:
            with _placed(inner.named):
                raise UnknownNameError.of("key", key[:MOST_SHOWN], KEYS, where=" of a sweep")
    baseline, grid, seeded, named = map(node.fields.get, ("baseline", "grid", "seeds", "name"))
    if baseline is not None and baseline.fields is None:
        _refuse(baseline.place, "baseline is a mapping of fields, such as `width: 32`")
    same = {} if baseline is None else _entry(baseline, "baseline")
    if grid is None:
        grids: list[tuple[str, Axes]] = [((baseline or node).place, ())]
    elif grid.items is not None and not grid.items:
        _refuse(grid.place, "grid is an empty list; leave it out, or name fields with lists")
    else:
        grids = [(part.place, _axes(part)) for part in grid.items or (grid,)]
    seeds = range(SEEDS) if seeded is None else _seeds(seeded)
    count = sum(math.prod(map(len, axes)) for _, axes in grids) * len(seeds)
    if count > MOST_RUNS:
        place = (grid or seeded or node).place
        raise SizeError(f"{place}: {count:,} runs; a sweep has {MOST_RUNS:,} at most")
    if named is not None:
        name = named.text or ""
        if not 0 < len(name.strip()) <= len(name) <= LONGEST_NAME or not name.isprintable():
            _refuse(named.place, f"a name has 1 to {LONGEST_NAME} letters, all of which print")
    return _once(name, [run for place, axes in grids for run in _runs(place, same, axes, seeds)])


def _seeds(node: Node) -> Sequence[int]:
    if node.items is None:
        with _placed(node.place):
            count = _said(node, int)
        if type(count) is not int or not 1 <= count <= MOST_RUNS:
            raise SizeError(
                f"{node.place}: seeds is {shown(count)}; a count from 1 to {MOST_RUNS:,}, or a list"
            )
        return range(count)
    if not node.items:
        _refuse(node.place, "seeds is an empty list: no run is left")
    return [value("seed", inner) for inner in node.items]


def _axes(node: Node) -> Axes:
    if node.fields is None:
        _refuse(node.place, "a grid is a mapping of fields to lists, such as `width: [32, 64]`")
    axes: list[list[Entry]] = []
    owner: dict[str, str] = {}
    for name, inner in node.fields.items():
        _check_field(name, inner, "grid")
        axes.append(_axis(name, inner))
        for field in set().union(*axes[-1]):
            if (other := owner.setdefault(field, name)) != name:
                _refuse(
                    inner.place,
                    f"the entries of {name} set {field}, which those of {other} set"
                    " as well; a field varies in one place",
                )
    return axes


def _axis(name: str, node: Node) -> list[Entry]:
    if node.items is None:
        advice = (
            f"; write {name}: [{node.text[:MOST_SHOWN]}], or put it under `baseline:`"
            if node.text
            else ""
        )
        _refuse(node.place, f"in a grid {name} has a list of values{advice}")
    if not node.items:
        _refuse(node.place, f"{name} is an empty list: the grid has no run")
    return [_axis_entry(name, inner) for inner in node.items]


def _axis_entry(name: str, node: Node) -> Entry:
    if node.fields is not None:
        entry = _entry(node, f"an entry of {name}")
        if name not in entry:
            _refuse(node.place, f"an entry of {name} sets other fields, but not {name} itself")
        return entry
    return {name: (value(name, node), node.place)}


def _entry(node: Node, where: str) -> Entry:
    fields = node.fields or {}
    for name, inner in fields.items():
        _check_field(name, inner, where)
    return {name: (value(name, inner), inner.place) for name, inner in fields.items()}


# ---- fields


def _check_field(name: str, node: Node, where: str) -> None:
    """Raises UnknownNameError for a name that is no field of a run."""
    if name in ("seed", "seeds"):
        said = "seeds stand beside `baseline:` and `grid:`, as `seeds:` with a count or list"
        _refuse(node.named, said)
    with _placed(node.named):
        if name not in FIELDS:
            raise UnknownNameError.of("field", name[:MOST_SHOWN], FIELDS, where=f" in {where}")


def value(name: str, node: Node) -> Any:
    """The value of a field, as the run reads it. Raises SpecError, SizeError or UnknownNameError,
    with the place, for one of another type, one out of its range, and a text that does not parse.
    """
    known: dict[str, Any] = {"architecture": "full", "task": "eva:n=4,V=4", "seed": 0}
    with _placed(node.place):
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
