"""Tables of experiments as if their cells had been trained, with the same numbers every time."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from separatrix.experiments.base import Cell, Experiment
from separatrix.practice.table import Longer, Rate, Rounded, Row, Scale, Table, Trial
from separatrix.tasks import Task
from separatrix.training.run import Run
from support.practice_tables import table as made

Level = Callable[[Run], float]
"""How much above chance a run ends, from 0 to 1."""


def uneven(run: Run) -> float:
    """Something between, which differs from run to run."""
    return int(run.key[:6], 16) / 16**6


def table(experiment: Experiment, scale: Scale, level: Level = uneven) -> Table:
    """All cells, every seed at every rate."""
    rows = [row(cell, level) for cell in experiment.cells(scale)]
    return replace(made(experiment.name, *rows), scale=scale)


def row(cell: Cell, level: Level) -> Row:
    first = cell.runs[0].canonical()
    rates: dict[float, list[Trial]] = {}
    for run in cell.runs:
        rates.setdefault(run.learning_rate, []).append(_trial(run, level(run)))
    hidden = ("seed", "learning_rate")
    return Row(
        labels=dict(cell.labels),
        run={name: value for name, value in first.to_json().items() if name not in hidden},
        rates=tuple(Rate(learning_rate=rate, trials=tuple(rates[rate])) for rate in sorted(rates)),
        flops_per_token=30_000,
        cache_bits=first.stack.cache_bits(first.trained.length + 1),
    )


def _trial(run: Run, level: float) -> Trial:
    tested = run.tested
    right = _right(run.trained, tested, level)
    bits = (1 - level) * (run.trained.answers - 1).bit_length()
    return Trial(
        seed=run.seed,
        stopped="steps",
        steps=run.steps,
        correct=right,
        tested=tested,
        right=right,
        due=tested,
        bits=bits,
        bits_squares=bits**2 + 0.25,
        longer=tuple(
            Longer(size, counted, counted, tested)
            for size, task in zip(run.longer, run.longer_tasks, strict=True)
            for counted in [_right(task, tested, level)]
        ),
        formats=tuple(Rounded(name, right, right, tested, bits) for name in run.formats),
        parameters=100_000,
        seconds=1.0,
    )


def _right(task: Task, tested: int, level: float) -> int:
    chance = float(task.chance)
    return round(tested * (chance + level * (1 - chance)))
