"""What a sweep's file says: a name, a baseline, a grid and seeds; or the same in Python."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from separatrix.core.errors import SizeError, SpecError, UnknownNameError
from separatrix.training.run import Run
from separatrix.training.sweeps.nodes import Node, from_python, from_yaml, placed, refuse
from separatrix.training.sweeps.values import (
    HINTS,
    NEEDED,
    Entry,
    Grid,
    integer,
    read_baseline,
    read_grids,
    text,
)

KEYS = ("name", "baseline", "grid", "seeds")
SEEDS = 3
"""How many where nothing is said: with fewer, an interval says little of training."""
MOST_RUNS = 1_000_000
MOST_SEED = 2**63 - 1
LONGEST_NAME = 100


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
    runs = tuple(source)
    for number, run in enumerate(runs):
        if not isinstance(run, Run):
            raise SpecError(
                f"runs[{number}] is {repr(run)[:60]}; a sweep takes Run objects, or a mapping with"
                " baseline and grid"
            )
        with placed(f"runs[{number}]"):
            run.check()
    return _once(name, runs)


def _sweep(node: Node, name: str) -> Sweep:
    if node.fields is None:
        refuse(node.place, "a sweep is a mapping with `baseline:` and `grid:`")
    for key, (place, _) in node.fields.items():
        _check_key(key, place)
    given = {key: inner for key, (_, inner) in node.fields.items()}
    baseline = (
        read_baseline(given["baseline"]) if "baseline" in given else Entry(node.place, {}, {})
    )
    grids = read_grids(given["grid"], baseline) if "grid" in given else [_alone(baseline)]
    seeds = _seeds(given["seeds"]) if "seeds" in given else range(SEEDS)
    count = sum(grid.points for grid in grids) * len(seeds)
    if count > MOST_RUNS:
        place = given["grid" if "grid" in given else "seeds"].place
        raise SizeError(f"{place}: {count:,} runs; a sweep has {MOST_RUNS:,} at most")
    for grid in grids:
        grid.check()
    own = _name(given["name"]) if "name" in given else name
    return _once(own, [run for grid in grids for run in grid.runs(seeds)])


def _check_key(key: str, place: str) -> None:
    if key in HINTS:
        refuse(place, f"{key} is a field of the runs; put it under `baseline:` or `grid:`")
    if key not in KEYS:
        with placed(place):
            raise UnknownNameError.of("key", key[:60], KEYS, where=" of a sweep")


def _alone(baseline: Entry) -> Grid:
    """The baseline as a grid of one point."""
    for name in NEEDED:
        if name not in baseline.values:
            refuse(baseline.place, f"{name} is not set; put it under `baseline:` or `grid:`")
    return Grid(baseline, ())


def _seeds(node: Node) -> Sequence[int]:
    if node.items is None:
        count = integer("seeds", node)
        if not 1 <= count <= MOST_RUNS:
            raise SizeError(f"{node.place}: seeds is {count}; a count from 1 to {MOST_RUNS:,}")
        return range(count)
    seeds: dict[int, Node] = {}
    for inner in node.items:
        seed = integer("each seed", inner)
        if not 0 <= seed <= MOST_SEED:
            raise SizeError(f"{inner.place}: the seed is {seed}; it must be from 0 to 2^63 - 1")
        if seeds.setdefault(seed, inner) is not inner:
            refuse(inner.place, f"the seed {seed} stands twice")
    if not seeds:
        refuse(node.place, "seeds is an empty list: no run is left")
    return list(seeds)


def _name(node: Node) -> str:
    name = text("name", node)
    if len(name) > LONGEST_NAME or not name.isprintable():
        refuse(node.place, f"a name has {LONGEST_NAME} letters at most, all of which print")
    return name


def _once(name: str, runs: Sequence[Run]) -> Sweep:
    """Grids may overlap, and a text may be written in two ways: what is one run is trained once."""
    if not runs:
        raise SpecError("the sweep has no runs; give at least one")
    return Sweep(name, tuple({run.key: run for run in runs}.values()))
