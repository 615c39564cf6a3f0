"""One run in words: what a training gave, and how a run of a store stands."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import fields
from typing import Any

from separatrix.cli.report.notation import theorem_name
from separatrix.core.document import Document, Heading, Part, Table
from separatrix.core.document.cells import duration, guessed, moment, share
from separatrix.core.errors import SeparatrixError, first_line
from separatrix.core.evidence.outcome import Outcome
from separatrix.core.numbers.accuracy import percent
from separatrix.core.numbers.wilson import wilson
from separatrix.models.stored.run import Run
from separatrix.tasks import parse_task
from separatrix.training.packs import Metric
from separatrix.training.sweeps.cells import proved
from separatrix.training.sweeps.reading import COLUMNS, Stored

_SHOWN = 10
"""Steps of a curve that are shown beside its first."""
_STOPPED = {
    "solved": "solved: right on {stop_at:.1%} of the answers of 20 steps",
    "plateau": "its loss made no progress for {plateau:,} steps",
    "steps": "all its steps were done",
    "seconds": "its {seconds:g} seconds were over",
    "diverged": "its numbers were no longer finite",
}


def measured_rows(run: Run, outcome: Outcome | None) -> Iterator[tuple[str, str]]:
    """What a training reached on fresh prompts; nothing of one that diverged and was not tested."""
    if outcome is None or not outcome.tested:
        return
    task = parse_task(run.task)
    tested = outcome.tested
    yield "accuracy", f"{share(*outcome.answers, tested)}, chance {guessed(task.chance)}"
    if task.several:
        yield "whole prompts", share(outcome.correct, tested, tested)
    yield "bits", f"{outcome.bits:.3f} left for each answer"
    for place, (size, larger) in enumerate(zip(run.longer, run.longer_tasks, strict=True)):
        reached = share(*outcome.longer_answers(place), tested)
        yield f"at {size}", f"{reached}, chance {guessed(larger.chance)}"
    for each in outcome.formats:
        yield f"in {each.format}", f"{share(each.right, each.due, tested)}, states rounded"
    yield "parameters", f"{outcome.parameters:,}"


def ended(run: Run, outcome: Outcome, seconds: float) -> str:
    """After how many steps a training ended, and why."""
    why = _STOPPED[outcome.stopped].format(**run.to_json())
    steps = f"{outcome.steps_done:,} of {run.steps:,} steps"
    return f"after {steps} and {duration(seconds)}; {why}"


def description(row: Stored, metrics: Sequence[Metric]) -> Document:
    """One run of a store: what was trained, what came of it, what is proved beside it, and how it
    went.
    """
    run = row.run
    # every field, so that nobody has to know the defaults
    names = [field.name for field in fields(Run) if field.name not in ("architecture", "task")]
    settings = ", ".join(f"{name} {_value(getattr(run, name))}" for name in names)
    rows = [
        ("architecture", run.architecture),
        ("task", run.task),
        ("settings", settings),
        ("sweep", f"{row.sweep}    added {moment(row.created)}"),
        ("status", _status(row)),
        *measured_rows(run, row.outcome),
        *_beside(run),
    ]
    if row.version:
        rows.append(("ended", f"{moment(row.ended)} on {row.host}, by version {row.version}"))
    table = Table([(f"  {label}", text) for label, text in rows], labels=True, turns=True)
    return Document(Heading(row.key), table, *_curve(metrics))


def plain(row: Stored, metrics: Sequence[Metric]) -> dict[str, Any]:
    """The same as data, with the intervals over its test prompts."""
    run, outcome = row.run, row.outcome
    # what diverged was not tested
    tested = outcome if outcome is not None and outcome.tested else None
    try:
        beside: dict[str, Any] | None = vars(proved(run.architecture, run.task))
    except SeparatrixError:
        beside = None
    return {
        **{name: getattr(row, name) for name in COLUMNS if name not in ("specification", "result")},
        "run": run.to_json(),
        "outcome": outcome and outcome.to_json(),
        "interval": tested and wilson(tested.correct, tested.tested),
        "interval_of_answers": tested and tested.interval,
        "chance": str(parse_task(run.task).chance),
        "proved": beside,
        "metrics": [
            {n: v if math.isfinite(v) else None for n, v in vars(metric).items() if n != "key"}
            for metric in metrics
        ],
    }


def _value(value: object) -> str:
    if isinstance(value, tuple):
        return " ".join(map(str, value)) or "none"
    return f"{value:g}" if isinstance(value, float) else str(value)


def _status(row: Stored) -> str:
    if row.status in ("failed", "damaged"):
        return f"{row.status}: {row.error}"
    if row.outcome is None:
        at = f" at step {row.step:,} of {row.run.steps:,}" if row.step else ""
        return f"{row.status}{at}"
    return f"{row.status} {ended(row.run, row.outcome, row.seconds)}"


def _beside(run: Run) -> Iterator[tuple[str, str]]:
    """What is proved of the stack on this task; why nothing is, where its mixer is not loaded."""
    try:
        found = proved(run.architecture, run.task)
    except SeparatrixError as error:
        yield "proved", f"unknown here: {first_line(error)}"
        return
    yield "proved", f"{found.status} ({theorem_name(found.theorem)}): {found.statement}"
    if found.ceiling is not None:
        most = percent(found.ceiling)
        yield "ceiling", f"no weights answer more than {most} of random questions (Theorem A)"


def _curve(metrics: Sequence[Metric]) -> Iterator[Part]:
    """Accuracy and loss in training over its steps; nothing of a run that has told nothing."""
    places = dict.fromkeys(round(k * (len(metrics) - 1) / _SHOWN) for k in range(_SHOWN + 1))
    told = [metrics[place] for place in places] if metrics else []
    cells = [(f"{m.step:,}", f"{100 * m.accuracy:.1f} %", f"{m.loss:.3g}") for m in told]
    if cells:
        yield Heading()
        yield Table(cells, ("step", "accuracy in training", "loss"))
