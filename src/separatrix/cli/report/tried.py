"""What is measured of layouts, and the trial that measures what is not."""

from __future__ import annotations

import shlex
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import islice
from typing import NamedTuple

from separatrix.cards.design.search import DesignResult, Point
from separatrix.cards.design.space import Layout
from separatrix.cards.question import failure
from separatrix.core.document import Document, Heading, Line, Part, Plot
from separatrix.core.errors import SeparatrixError
from separatrix.findings.own import Measured, measured, recorded
from separatrix.findings.scaling import unplaced
from separatrix.findings.trial import trial
from separatrix.stacks.architecture import Architecture, mechanism
from separatrix.stacks.mechanisms import Mechanism

MOST = 3
ALIKE = {"eva": "recall"}
"""Task -> the one that a trial trains in its place."""
TRIED = ("recall", "seqcomp")
"""Tasks of a trial where none is asked for."""
_PLACEMENTS = 3
_FIRST = 8


class Tried(NamedTuple):
    """A trial that can be run, or why there is none of these layouts ("" where there is one)."""

    command: str
    why: str


def measured_parts(found: Sequence[Measured], small: Tried) -> list[Part]:
    """What there is of some layouts, every seed; then what there is not, and the command that would
    measure it.
    """
    known = Heading(f"Measured: every seed, in steps to solve it (rows until {recorded()})")
    beside = [one.layout for one in found]
    parts: list[Part] = []
    for heading, said in ((known, True), (Heading("Not measured"), False)):
        of = [one for one in found if bool(one.own) is said]
        parts += [heading] if of else []
        for one in of:
            name = next(_bared([one.layout], beside), one.layout).spec
            first, *more = one.lines()
            parts += [Line(f"  {name}: {first}"), *(Line(f"  {name}: {line}") for line in more)]
    if small.command:
        told = "this trains small ones beside each other:"
        # a command is copied, so it is not broken into lines
        return [*parts, Line(f"  {told}"), Plot("a trial", [f"    {small.command}"])]
    return [*parts, *([Line(f"  no trial: {small.why}")] if small.why else [])]


def measured_document(layouts: Sequence[Architecture], tokens: int) -> Document:
    """The same of models beside each other, whatever the task."""
    return Document(*measured_parts(*_of(layouts, tokens)))


def measured_json(layouts: Sequence[Architecture], tokens: int) -> dict[str, object]:
    """The same as plain data."""
    found, small = _of(layouts, tokens)
    return {"measured": [one.to_json() for one in found], "trial": small.command}


def _of(layouts: Sequence[Architecture], tokens: int) -> tuple[list[Measured], Tried]:
    first = layouts[0]
    full = all(part.name == "full" for layer in first for part in layer)
    places = " @ positions=none" if unplaced(first) else ""
    beside = Architecture.parse(f"{'gdn' if full else 'full'}*{len(first)}{places}")
    every = [*layouts, beside]
    return [measured(one, tokens) for one in layouts], _command(every, TRIED)


def designed(result: DesignResult) -> list[Measured]:
    """What is measured of the layouts that a design names first."""
    layouts = [point.layout.architecture for point in islice(_points(result), MOST)]
    of = dict.fromkeys(layouts)
    return [measured(one, result.context, result.tasks) for one in of]


def tried(result: DesignResult) -> Tried:
    """The command, for layouts that no theorem forbids and a task that a trial trains: the cheapest
    proved one, cheaper ones that are open, other placements; then others of the space.
    """
    points = [*_points(result)]
    layouts = [point.layout for point in points]
    layouts += [layout for point in points for layout in islice(point.layouts, 1, _PLACEMENTS)]
    stacks = [layout.architecture for layout in layouts]
    tasks = dict.fromkeys(ALIKE.get(task.name, task.name) for task in result.tasks)
    found = _command(stacks, tasks)
    if found.command or not stacks:
        return found
    # what costs more than the front was not judged
    first = islice(result.space.arrangements(), _FIRST)
    even = (Layout(one, one.named("even")).architecture for one in first)
    left = (one for one in even if not any(failure(one, task) for task in result.tasks))
    return _command((*stacks, *left), tasks)


def _points(result: DesignResult) -> Iterator[Point]:
    yield from result.proved[:1] or ([result.beyond_proved] if result.beyond_proved else [])
    yield from result.not_excluded


def _command(layouts: Iterable[Architecture], tasks: Iterable[str]) -> Tried:
    why = ""
    given = [*layouts]
    own = [*_bared(given, given)]
    for task in tasks:
        found: dict[str, Architecture] = {}
        for one in own:
            more = {**found, one.spec: one}
            if len(found) == MOST or len(more) == len(found):
                continue
            lacks = "" if not found else _untrained(more, task)
            why = why or lacks
            found = found if lacks else more
        if len(found) > 1:
            return Tried(shlex.join(["separatrix", "trial", *found, "--task", task]), "")
    return Tried("", why)


def _bared(
    layouts: Iterable[Architecture], beside: Sequence[Architecture]
) -> Iterator[Architecture]:
    """What of layouts a trial keeps: layers in order, their convolutions, what makes another
    recurrence, and that nothing tells places, where that is so of all that stand beside them.
    """
    places = {"positions": "none"} if all(map(unplaced, beside)) else {}
    for one in layouts:
        try:
            yield Architecture(tuple(tuple(_bare(part, places) for part in layer) for layer in one))
        except SeparatrixError:
            # a size that its mechanism needs: it has no rule by which a trial scales it
            continue


def _bare(part: Mechanism, places: Mapping[str, str]) -> Mechanism:
    kept = {name: getattr(part, name) for name in part.another_recurrence}
    kept |= {name: value for name, value in places.items() if hasattr(part, name)}
    if conv := getattr(part, "conv", 0):
        kept["conv"] = conv
    return mechanism(part.name, **kept)


def _untrained(layouts: Mapping[str, Architecture], task: str) -> str:
    """Why there is no trial of these; "" where it can be run."""
    try:
        trial(layouts, task, seeds=1)
    except SeparatrixError as error:
        return str(error)
    return ""
