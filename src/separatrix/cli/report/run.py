"""One run of a store in words: what was trained, its curve, what came of it, and what is proved
beside it.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import fields
from typing import Any, TypeGuard

from separatrix.cli.report.statuses import theorem_name
from separatrix.cli.report.text_plot import text_plot
from separatrix.core.document.cells import NONE, accuracy, duration, ends, guessed, moment
from separatrix.core.errors import SeparatrixError, first_line
from separatrix.core.evidence.outcome import Outcome
from separatrix.core.numbers.accuracy import percent
from separatrix.core.numbers.wilson import wilson, wilson_of_answers
from separatrix.tasks import parse_task
from separatrix.training.packs import Metric
from separatrix.training.run import Run
from separatrix.training.sweeps.proved import proved
from separatrix.training.sweeps.stored import Stored

_BEFORE = ("architecture", "task")
"""Fields of a run that have a line of their own."""
_STOPPED = {
    "solved": "solved: right on {stop_at:.1%} of the answers of 20 steps",
    "plateau": "its loss made no progress for {plateau:,} steps",
    "steps": "all its steps were done",
    "seconds": "its {seconds:g} seconds were over",
    "diverged": "its numbers were no longer finite",
}


def description(
    row: Stored, metrics: Sequence[Metric], earlier: Sequence[Stored], most: int
) -> list[str]:
    """Lines of at most `most` columns, but for long texts."""
    run = row.run
    lines = [
        f"{row.key}",
        f"  architecture  {run.architecture}",
        f"  task          {run.task}",
        f"  settings      {_settings(run)}",
        f"  sweep         {row.sweep}    added {moment(row.created)}",
        f"  status        {_status(row)}",
        *(f"  {line}" for line in _measured(row)),
        *(f"  {line}" for line in _beside(run)),
    ]
    if row.version:
        lines.append(f"  ended         {moment(row.ended)} on {row.host}, by version {row.version}")
    for old in earlier:
        lines.append(
            f"  earlier       {_status(old)}; version {old.version},"
            f" {moment(old.ended)}: {_right(old.outcome)}"
        )
    return [*lines, *_curve(run, metrics, most)]


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
            {
                "step": metric.step,
                "loss": metric.loss if math.isfinite(metric.loss) else None,
                "accuracy": metric.accuracy if math.isfinite(metric.accuracy) else None,
                "learning_rate": metric.learning_rate,
            }
            for metric in metrics
        ],
    }


def _ended(row: Stored) -> dict[str, Any]:
    outcome = row.outcome
    return {
        "key": row.key,
        "status": row.status,
        "outcome": None if outcome is None else outcome.to_json(),
        "interval": list(wilson(outcome.correct, outcome.tested)) if _tested(outcome) else None,
        "interval_of_answers": list(wilson_of_answers(*outcome.answers, outcome.tested))
        if _tested(outcome)
        else None,
        "error": row.error,
        "version": row.version,
        "host": row.host,
        "ended": row.ended,
        "seconds": row.seconds,
    }


def _settings(run: Run) -> str:
    """Every field, so that nobody has to know the defaults."""
    names = (field.name for field in fields(Run) if field.name not in _BEFORE)
    return ", ".join(f"{name} {_said(getattr(run, name))}" for name in names)


def _said(value: object) -> str:
    if isinstance(value, tuple):
        return " ".join(map(str, value)) or "none"
    return f"{value:g}" if isinstance(value, float) else str(value)


def _status(row: Stored) -> str:
    run = row.run
    outcome = row.outcome
    if row.status in ("failed", "damaged"):
        return f"{row.status}: {row.error}"
    if outcome is None:
        at = f" at step {row.step:,} of {run.steps:,}" if row.step else ""
        return f"{row.status}{at}"
    why = _STOPPED[outcome.stopped].format(**run.to_json())
    return (
        f"{row.status} after {outcome.steps_done:,} of {run.steps:,} steps and"
        f" {duration(row.seconds)}; {why}"
    )


def _measured(row: Stored) -> list[str]:
    outcome = row.outcome
    if not _tested(outcome):
        return []
    run = row.run
    task = parse_task(run.task)
    whole = _share(outcome.correct, outcome.tested, outcome.tested)
    return [
        f"accuracy      {_right(outcome)}, chance {guessed(task.chance)}",
        *([f"whole prompts {whole}"] if task.several else []),
        *([f"bits          {outcome.bits:.3f} left for each answer"] if outcome.due else []),
        *(
            f"at {size:10} {_share(*outcome.longer_answers(place), outcome.tested)}"
            for place, size in enumerate(run.longer)
        ),
        *(
            f"in {each.format:11}{_share(each.right, each.due, outcome.tested)}, states rounded"
            for each in outcome.formats
        ),
        f"parameters    {outcome.parameters:,}",
    ]


def _tested(outcome: Outcome | None) -> TypeGuard[Outcome]:
    """Whether there is an accuracy: what diverged was not tested."""
    return outcome is not None and outcome.tested > 0


def _right(outcome: Outcome | None) -> str:
    return _share(*outcome.answers, outcome.tested) if _tested(outcome) else NONE


def _share(right: int, due: int, prompts: int) -> str:
    low, high = ends(*wilson_of_answers(right, due, prompts))
    return f"{accuracy(right, due)} ({right:,} of {due:,}; 95 % interval {low} to {high} %)"


def _beside(run: Run) -> list[str]:
    """What is proved of the stack on this task; why nothing is, where its mixer is not loaded."""
    try:
        found = proved(run.architecture, run.task)
    except SeparatrixError as error:
        return [f"proved        unknown here: {first_line(error)}"]
    lines = [f"proved        {found.status} ({theorem_name(found.theorem)}): {found.statement}"]
    if found.ceiling is not None:
        lines.append(
            f"ceiling       no weights answer more than {percent(found.ceiling)} of random"
            " questions (Theorem A)"
        )
    return lines


def _curve(run: Run, metrics: Sequence[Metric], most: int) -> list[str]:
    """Accuracy and loss over steps; nothing of a run that has told nothing."""
    if not metrics:
        return []
    steps = [metric.step for metric in metrics]
    chance = float(parse_task(run.task).chance)
    lines = [
        "",
        "accuracy in training (dots: chance)",
        *text_plot(
            steps,
            [metric.accuracy for metric in metrics],
            low=0.0,
            high=1.0,
            labels=("100 %", "0 %"),
            most=most,
            line=chance,
        ),
    ]
    losses = [metric.loss for metric in metrics]
    finite = [loss for loss in losses if math.isfinite(loss)]
    if finite:
        high = max(finite)
        lines += ["", "loss"]
        lines += text_plot(
            steps, losses, low=0.0, high=high, labels=(f"{high:.3g}", "0"), most=most
        )
    return lines
