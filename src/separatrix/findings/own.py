"""To which layouts a measured cell belongs: a number is the layout's own, or it is not said."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from itertools import chain
from typing import Any

from separatrix.cards.design.space import period
from separatrix.cards.measured.table import read
from separatrix.findings.base import LEAST_SEEDS
from separatrix.findings.results import Cell, Results, of_table
from separatrix.stacks.architecture import Architecture
from separatrix.stacks.mechanisms import Mechanism
from separatrix.tasks import Questions, Task, parse_task

STUDY = "study"
NEAR = 10
"""How many times as large a size may be, or as small, that a measured line is still said of."""
_LEFT_OUT = {"accumulator", "heads", "kv_heads", "key_heads", "head_dim", "value_dim", "width"}
_LEFT_OUT |= {"groups", "rope_base", "rope_dim"}
"""Settings that are sizes (bits of state say how near they are) or of numbers alone."""
_MOST_TOLD = 3
"""Differences that a sentence tells."""
_EXACT = ("conv", "size", "block", "topk")
"""Numbers of tokens that a layer reads: with others it is another mechanism."""


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
        if self.own:
            return [told(cell) for cell in self.own]
        if self.unfinished:
            names = ", ".join(cell.name for cell in self.unfinished)
            return [f"not trained to the end, so that nothing follows from {names}"]
        differs, left = [*self.differs[:_MOST_TOLD]], len(self.differs) - _MOST_TOLD
        differs += [f"and {left} more, which --json lists"] if left > 0 else []
        nearest = f"nearest is {self.nearest} of the study (differs in {'; '.join(differs)})"
        return [nearest if self.nearest else "nothing near it in the study"]

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
    others: dict[str, tuple[str, ...]] = {}
    for cell in results.cells.values():
        grey = results.grey(cell) or len(cell.seeds) < LEAST_SEEDS
        differs = min((lacks(cell, layout, tokens, task) for task in tasks or (None,)), key=len)
        if differs and not grey:
            others[cell.name] = differs
        elif not differs and grey:
            unfinished.append(cell)
        elif not differs:
            # two names of one stack and the same runs
            own.setdefault((cell.stack, cell.comparison, cell.to_solve), cell)

    def far(name: str) -> tuple[bool, bool, int]:
        said = others[name]
        return said[0].startswith("mechanisms"), any(x.startswith("task") for x in said), len(said)

    nearest = "" if own else min(others, key=far, default="")
    differs = others.get(nearest, ())
    return Measured(layout, tuple(own.values()), tuple(unfinished), nearest, differs)


def lacks(
    cell: Cell, layout: Architecture, tokens: int, task: Task | None = None
) -> tuple[str, ...]:
    """In what a measured cell is not a layout's own, its size before the layout's; () where it is.

    It has the same mechanisms with the same settings, as many of them read and at the same places,
    and it lies within `NEAR` times in layers, width, bits of state and tokens; of a task that is
    asked, it has the name and the form, and is as near in each of its sizes. Of a shallower layout
    nothing is said: with fewer layers it may be unable to do what a deeper one learned.
    """
    trained, of = Architecture.parse(cell.stack), parse_task(cell.task)
    deep = (len(trained), len(layout))
    sizes = {
        "width": (cell.width, _width(layout)),
        "bits of state": (_state(trained), _state(layout)),
        "tokens": (of.length, tokens if task is None else task.length),
    }
    far = {} if deep[0] <= deep[1] <= NEAR * deep[0] else {"layers": deep}
    far |= {name: two for name, two in sizes.items() if not _near(*two)}
    return (
        *_other_layers(trained, layout),
        *([] if task is None else _other_task(one_question(of), one_question(task))),
        *(f"{name} {there:,}, here {here:,}" for name, (there, here) in far.items()),
    )


def one_question(task: Task) -> Task:
    """A task whatever number of its questions is asked at once."""
    return task.task if isinstance(task, Questions) else task


def _other_task(trained: Task, asked: Task) -> list[str]:
    if trained.name != asked.name:
        return [f"task {trained.name}, here {asked.name}"]
    # another number of steps is another task
    return _others("", trained.sizes(), asked.sizes(), ("L",))


def _other_layers(trained: Architecture, layout: Architecture) -> list[str]:
    cycles = [[*one][: period([*one])] for one in (trained, layout)]
    there, here = ({part.name: part for part in chain(*one)} for one in cycles)
    if there.keys() != here.keys():
        return [f"mechanisms {' and '.join(sorted(there))}, here {' and '.join(sorted(here))}"]
    names = [[[part.name for part in layer] for layer in one] for one in cycles]
    pairs = [(there[name], here[name]) for name in sorted(there)]
    if names[0] == names[1]:
        pairs = [*zip(*(chain(*one) for one in cycles), strict=True)]
    said = (
        _others(f"{a.name} ", _settings(a), _settings(b), (*_EXACT, *a.another_recurrence))
        for a, b in pairs
    )
    found = [*dict.fromkeys(chain(*said))]
    (reads, many), (read, of) = ((len(one.reading), len(one)) for one in (trained, layout))
    if reads * of != read * many:
        return [*found, f"{reads} of {many} layers reading, here {read} of {of} layers reading"]
    return found if names[0] == names[1] else [*found, "where they stand"]


def _settings(part: Mechanism) -> dict[str, Any]:
    sizes = part.sizes().items()
    return {name: x for name, x in sizes if name not in _LEFT_OUT and "format" not in name}


def _others(
    what: str, there: dict[str, Any], here: dict[str, Any], exact: Sequence[str]
) -> list[str]:
    """Sizes and options that differ; numbers that are near are alike, but for `exact` ones."""
    found: list[str] = []
    for name in dict.fromkeys((*there, *here)):
        one, other = there.get(name, "none"), here.get(name, "none")
        numbers = name not in exact and type(one) is int and type(other) is int
        if one != other and not (numbers and _near(one, other)):
            found.append(f"{what}{name}={f'{one}, here {other}'.lower()}")
    return found


def _near(one: int, other: int) -> bool:
    return one <= NEAR * other and other <= NEAR * one


def _width(layout: Architecture) -> int:
    parts = [part for layer, _ in layout.counted() for part in layer]
    return max(part.model_width or part.inner_width for part in parts)


def _state(layout: Architecture) -> int:
    """Bits that one of its layers carries whatever the prompt's length, at most."""
    kinds = [layer for layer, _ in layout.counted()]
    return max(sum(p.cache_bits(1 << 20) for p in layer if not p.reading) for layer in kinds)
