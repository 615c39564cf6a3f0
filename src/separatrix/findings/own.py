"""To which layouts a measured cell belongs: a number is the layout's own, or it is not said."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

from separatrix.cards.measured.table import read
from separatrix.findings.base import LEAST_SEEDS
from separatrix.findings.results import Cell, Results, of_table
from separatrix.stacks.architecture import Architecture, Layer
from separatrix.stacks.mechanisms import Mechanism
from separatrix.tasks import Task, parse_task
from separatrix.tasks.questions import Questions

STUDY = "study"
NEAR = 10
"""How many times as large a size may be, or as small, that a measured line is still said of."""
_HEADS = {"heads", "kv_heads", "key_heads", "head_dim", "value_dim", "width", "groups"}
_ROTATED = {"rope_base", "rope_dim"}
_COUNTS = {"L"}
"""Sizes of a task that are its form: with another number it is another task."""


@dataclass(frozen=True)
class Measured:
    """What the study holds of a layout."""

    layout: Architecture
    own: tuple[Cell, ...]
    unfinished: tuple[Cell, ...]
    """Its own, and not trained to the end: nothing is said of them."""
    nearest: str
    """Without own cells: the one that differs least; "" where there is none at all."""
    differs: tuple[str, ...]

    def lines(self) -> list[str]:
        """What there is, or that there is nothing, a sentence each."""
        if not self.own:
            said = "not measured for this layout"
            if self.unfinished:
                names = ", ".join(cell.name for cell in self.unfinished)
                return [f"{said} to the end, so that nothing follows from {names}"]
            if not self.nearest:
                return [said]
            differs = "; ".join(self.differs)
            return [f"{said}; nearest: {self.nearest} of the study (differs in {differs})"]
        return [told(cell) for cell in self.own]

    def to_json(self) -> dict[str, Any]:
        return {
            "architecture": self.layout.spec,
            "own": [cell.to_json() for cell in self.own],
            "unfinished": [cell.name for cell in self.unfinished],
            "nearest": self.nearest,
            "differs": list(self.differs),
        }


def told(cell: Cell) -> str:
    """A cell in one sentence: every seed, and under what it was trained."""
    layers, tokens = len(Architecture.parse(cell.stack)), parse_task(cell.task).length
    return (
        f"{cell.task}, {tokens} tokens: solved by {cell.solved} of {len(cell.seeds)} seeds,"
        f" {cell.spread}; every seed: {', '.join(cell.ends)} ({cell.name}: {layers} layers of width"
        f" {cell.width}, at most {cell.steps:,} steps)"
    )


@cache
def _study() -> tuple[Results, str]:
    table = read(STUDY)
    return (Results({}), "") if table is None else (of_table(table), table.provenance.date)


def recorded() -> str:
    """The day up to which the package has the study's rows; "" where it has none."""
    return _study()[1]


def measured(
    layout: Architecture,
    tokens: int,
    tasks: Sequence[Task] = (),
    results: Results | None = None,
) -> Measured:
    """What is measured of a layout on prompts of about so many tokens; on these tasks alone, where
    some are given. `results`: the study's, unless others are.
    """
    results = _study()[0] if results is None else results
    own: dict[object, Cell] = {}
    unfinished: list[Cell] = []
    others: list[tuple[bool, bool, int, int, str, tuple[str, ...]]] = []
    for number, cell in enumerate(results.cells.values()):
        # with fewer seeds it is still being trained, and those that end first are the quick ones
        if len(cell.seeds) < LEAST_SEEDS:
            continue
        each = [lacks(cell, layout, tokens, task) for task in tasks or (None,)]
        grey, differs = results.grey(cell), min(each, key=len)
        if not differs and grey:
            unfinished.append(cell)
        elif not differs:
            # two names of one stack and the same runs
            own.setdefault((cell.stack, cell.comparison, cell.seeds), cell)
        elif not grey:
            far = (differs[0].startswith("mechanisms"), any(x.startswith("task") for x in differs))
            others.append((*far, len(differs), number, cell.name, differs))
    nearest, differs = min(others)[4:] if others and not own else ("", ())
    return Measured(layout, tuple(own.values()), tuple(unfinished), nearest, differs)


def lacks(
    cell: Cell, layout: Architecture, tokens: int, task: Task | None = None
) -> tuple[str, ...]:
    """In what a measured cell is not a layout's own, its size before the layout's; () where it is.

    It has the same mechanisms with the same settings, as many of them read and at the same places,
    and it lies within `NEAR` times in layers, width, bits of state and tokens; of a task that is
    asked, it has the name and the form, and is as near in each of its sizes.
    """
    trained, of = Architecture.parse(cell.stack), parse_task(cell.task)
    sizes = {
        "layers": (len(trained), len(layout)),
        "width": (cell.width, _width(layout)),
        "bits of state": (_state(trained), _state(layout)),
        "tokens": (of.length, tokens if task is None else task.length),
    }
    return (
        *_other_layers(trained, layout),
        *([] if task is None else _other_task(of.task if isinstance(of, Questions) else of, task)),
        *(f"{name} {a:,}, here {b:,}" for name, (a, b) in sizes.items() if not _near(a, b)),
    )


def _other_task(trained: Task, asked: Task) -> list[str]:
    if trained.name != asked.name:
        return [f"task {trained.name}, here {asked.name}"]
    there, here = trained.sizes(), asked.sizes()
    return [
        f"{name}={there.get(name, 'none')}, here {here.get(name, 'none')}"
        for name in dict.fromkeys((*there, *here))
        if not _alike(there.get(name), here.get(name), exact=name in _COUNTS)
    ]


def _other_layers(trained: Architecture, layout: Architecture) -> list[str]:
    there, here = _parts(trained), _parts(layout)
    if there.keys() != here.keys():
        return [f"mechanisms {' and '.join(there)}, here {' and '.join(here)}"]
    found = [said for name, part in there.items() for said in _other_settings(part, here[name])]
    ratios = [(len(one.reading), len(one)) for one in (trained, layout)]
    if ratios[0][0] * ratios[1][1] != ratios[1][0] * ratios[0][1]:
        said = [f"{reads} of {many} layers reading" for reads, many in ratios]
        return [*found, f"{said[0]}, here {said[1]}"]
    if _cycle(trained) != _cycle(layout):
        found.append("where they stand")
    return found


def _parts(one: Architecture) -> dict[str, Mechanism]:
    """Its mechanisms by name; one that stands there twice with other settings has two names."""
    found: dict[str, Mechanism] = {}
    for part in (part for layer, _ in one.counted() for part in layer):
        first = found.setdefault(part.name, part)
        if _other_settings(first, part):
            found[f"another {part.name}"] = part
    return dict(sorted(found.items()))


def _other_settings(there: Mechanism, here: Mechanism) -> list[str]:
    """Options that differ, and numbers that are none of its width; number formats are left out."""
    left_out = {"accumulator", *_HEADS, *_ROTATED}
    sizes = here.sizes()
    return [
        f"{there.name} {name}={_word(value)}, here {_word(sizes[name])}"
        for name, value in there.sizes().items()
        if name not in left_out
        and "format" not in name
        and not _alike(value, sizes[name], exact=name in ("conv", *there.another_recurrence))
    ]


def _word(value: object) -> str:
    return str(value).lower()


def _alike(one: object, other: object, *, exact: bool) -> bool:
    if exact or type(one) is not int or type(other) is not int:
        return one == other
    return _near(one, other)


def _near(one: int, other: int) -> bool:
    return one <= NEAR * other and other <= NEAR * one


def _cycle(one: Architecture) -> tuple[tuple[str, ...], ...]:
    """The shortest cycle of layers, each by the names of its mechanisms, that gives the stack."""
    names = [tuple(part.name for part in layer) for layer in one]
    many = len(names)
    return next(
        tuple(names[:p]) for p in range(1, many + 1) if many % p == 0 and names[p:] == names[:-p]
    )


def _width(layout: Architecture) -> int:
    parts = [part for layer, _ in layout.counted() for part in layer]
    return max(part.model_width or part.inner_width for part in parts)


def _state(layout: Architecture) -> int:
    """Bits that one of its layers carries whatever the prompt's length, at most."""
    return max((_bounded(layer) for layer, _ in layout.counted()), default=0)


def _bounded(layer: Layer) -> int:
    return sum(part.cache_bits(1 << 20) for part in layer if not part.reading)
