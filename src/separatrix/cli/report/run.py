"""One run in words: what a training gave, and how a run of a store stands."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import fields
from typing import Any

from separatrix.cli.report.notation import theorem_name
from separatrix.core.document import Document, Heading, Part, Plot, Table
from separatrix.core.document.cells import NONE, duration, guessed, moment, share
from separatrix.core.errors import SeparatrixError, first_line
from separatrix.core.evidence.outcome import Outcome
from separatrix.core.numbers.accuracy import percent
from separatrix.core.numbers.wilson import wilson, wilson_of_answers
from separatrix.tasks import parse_task
from separatrix.training.packs import Metric
from separatrix.training.run import Run
from separatrix.training.sweeps.cells import proved
from separatrix.training.sweeps.stored import Stored

_HEIGHT = 8
_AXIS = 9
"""Columns of the numbers on the left."""
_LEAST_WIDTH = 20
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
    if outcome.due:
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


def description(
    row: Stored, metrics: Sequence[Metric], earlier: Sequence[Stored], most: int
) -> Document:
    """One run of a store: what was trained, what came of it, what is proved beside it, and its
    curve in a plot of at most `most` columns.
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
    for old in earlier:
        reached = dict(measured_rows(run, old.outcome)).get("accuracy", NONE)
        when = f"version {old.version}, {moment(old.ended)}"
        rows.append(("earlier", f"{_status(old)}; {when}: {reached}"))
    table = Table([(f"  {label}", text) for label, text in rows], labels=True, turns=True)
    return Document(Heading(row.key), table, *_curve(run, metrics, most))


def plain(row: Stored, metrics: Sequence[Metric], earlier: Sequence[Stored]) -> dict[str, Any]:
    """The same as data."""
    run = row.run
    try:
        beside: dict[str, Any] | None = vars(proved(run.architecture, run.task))
    except SeparatrixError:
        beside = None
    return {
        **_ended(row),
        "sweep": row.sweep,
        "run": run.to_json(),
        "step": row.step,
        "completions": row.completions,
        "created": row.created,
        "chance": str(parse_task(run.task).chance),
        "proved": beside,
        "earlier": [_ended(old) for old in earlier],
        "metrics": [
            {n: v if math.isfinite(v) else None for n, v in vars(metric).items() if n != "key"}
            for metric in metrics
        ],
    }


def _ended(row: Stored) -> dict[str, Any]:
    outcome = row.outcome
    # what diverged was not tested
    tested = outcome if outcome is not None and outcome.tested > 0 else None
    whole = tested and list(wilson(tested.correct, tested.tested))
    answers = tested and list(wilson_of_answers(*tested.answers, tested.tested))
    return {
        "key": row.key,
        "status": row.status,
        "outcome": None if outcome is None else outcome.to_json(),
        "interval": whole,
        "interval_of_answers": answers,
        "error": row.error,
        "version": row.version,
        "host": row.host,
        "ended": row.ended,
        "seconds": row.seconds,
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


def _curve(run: Run, metrics: Sequence[Metric], most: int) -> Iterator[Part]:
    """Accuracy and loss over steps; nothing of a run that has told nothing."""
    if not metrics:
        return
    steps = [metric.step for metric in metrics]
    right, chance = [m.accuracy for m in metrics], float(parse_task(run.task).chance)
    labels = ("100 %", "0 %")
    drawn = text_plot(steps, right, low=0.0, high=1.0, labels=labels, most=most, line=chance)
    yield Heading("", "accuracy in training (dots: chance)")
    yield Plot("accuracy over steps", drawn)
    losses = [metric.loss for metric in metrics]
    if finite := [loss for loss in losses if math.isfinite(loss)]:
        high = max(finite)
        labels = (f"{high:.3g}", "0")
        yield Heading("", "loss")
        drawn = text_plot(steps, losses, low=0.0, high=high, labels=labels, most=most)
        yield Plot("loss over steps", drawn)


def text_plot(
    xs: Sequence[int],
    ys: Sequence[float],
    *,
    low: float,
    high: float,
    labels: tuple[str, str],
    most: int,
    line: float | None = None,
) -> list[str]:
    """The points as stars, of those that share a column their mean; `labels` stand at the top and
    at the foot, and a dotted line at `line`. Points that are no numbers are left out.
    """
    width = max(_LEAST_WIDTH, min(64, most - _AXIS - 2))
    columns: list[list[float]] = [[] for _ in range(width)]
    span = max(xs[-1] - xs[0], 1)
    for x, y in zip(xs, ys, strict=True):
        if math.isfinite(y):
            columns[(x - xs[0]) * (width - 1) // span].append(y)
    field = [[" "] * width for _ in range(_HEIGHT)]
    if line is not None:
        field[_row(line, low, high)] = ["."] * width
    for place, values in enumerate(columns):
        if values:
            field[_row(sum(values) / len(values), low, high)][place] = "*"
    names = [labels[0], *[""] * (_HEIGHT - 2), labels[1]]
    lines = [
        f"{name:>{_AXIS}} |{''.join(row)}".rstrip() for name, row in zip(names, field, strict=True)
    ]
    foot = f"{xs[0]:<{width // 2}}{xs[-1]:>{width - width // 2}}"
    return [*lines, f"{'':{_AXIS}} +{'-' * width}", f"{'step':>{_AXIS}}  {foot}"]


def _row(y: float, low: float, high: float) -> int:
    """The row of a value, the highest at the top; what lies outside is on the border."""
    share = (y - low) / (high - low) if high > low else 0.5
    return round((_HEIGHT - 1) * (1 - min(1.0, max(0.0, share))))
