"""Runs an experiment: its cells as one sweep, and a table of what came of them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from separatrix.cards.measured.table import Label, Longer, Rate, Rounded, Row, Table, Trial
from separatrix.core.errors import SpecError
from separatrix.core.evidence.outcome import Outcome
from separatrix.findings.base import SCALE, Experiment, Planned
from separatrix.findings.results import Cell, Results
from separatrix.training.flops import forward_flops
from separatrix.training.run import Run
from separatrix.training.sweeps.engines.base import Engine
from separatrix.training.sweeps.engines.pool import cores
from separatrix.training.sweeps.planning import Plan
from separatrix.training.sweeps.store import Store
from separatrix.training.sweeps.stored import Stored
from separatrix.training.sweeps.sweep import planned, sweep

BESIDE = ("seed", "learning_rate")
"""Fields in which the runs of a row differ."""


def sweep_name(experiment: Experiment) -> str:
    """What the runs of an experiment are called in a store."""
    return f"{experiment.name}-{SCALE}"


def runs_of(cells: Iterable[Planned]) -> list[Run]:
    return [run for cell in cells for run in cell.runs]


def plan(
    experiment: Experiment,
    *,
    store: Path,
    workers: int | None = None,
    device: str = "cpu",
) -> Plan:
    """What it would take on this machine, with the store as it is. Raises what `sweep` raises."""
    return planned(
        runs_of(experiment.cells()),
        name=sweep_name(experiment),
        store=store,
        workers=workers,
        device=device,
    )


def run(
    experiment: Experiment,
    *,
    store: Path | str,
    engine: str | Engine = "local",
    workers: int | None = None,
    device: str = "cpu",
    address: str = "",
    show: bool = True,
) -> Table:
    """Trains what the store does not have yet of an experiment, and returns the table of all of it.
    Interrupted, the same call goes on. A run that failed is missing in the table.

    Raises what `sweep` raises.
    """
    cells = experiment.cells()
    runs = runs_of(cells)
    sweep(
        runs,
        store=store,
        name=sweep_name(experiment),
        engine=engine,
        workers=workers,
        device=device,
        address=address,
        show=show,
    )
    with Store.read(store) as kept:
        rows = {row.key: row for row in kept.rows(sweep_name(experiment))}
    return tabled(experiment, cells, rows, cores=workers or cores(), device=device)


def with_curves(experiment: Experiment, results: Results, store: Path) -> Results:
    """The cells with the running accuracies of every seed, as a store keeps them."""
    found: list[Cell] = []
    with Store.read(store) as kept:
        for planned in experiment.cells():
            cell = results.cells.get(str(planned.labels["cell"]))
            if cell is None:
                continue
            keys = {run.seed: run.key for run in planned.runs if run.learning_rate == cell.rate}
            curves = {
                seed: tuple((one.step, one.accuracy) for one in kept.metrics(key))
                for seed, key in keys.items()
            }
            seeds = tuple(one._replace(curve=curves[one.seed]) for one in cell.seeds)
            found.append(replace(cell, seeds=seeds))
    return Results.of(found)


def tabled(
    experiment: Experiment,
    cells: Sequence[Planned],
    stored: Mapping[str, Stored],
    *,
    cores: int,
    device: str,
) -> Table:
    """The table of what a store has of some cells. A cell of which nothing has ended is left
    out.
    """
    from separatrix.findings.provenance import provenance

    rows = [row for cell in cells if (row := _row(cell, stored)) is not None]
    trials = [trial for row in rows for trial in row.every]
    return Table(
        experiment=experiment.name,
        scale=SCALE,
        provenance=provenance(
            f"separatrix train {experiment.name}",
            versions={row.version for row in stored.values() if row.version},
            seconds=sum(trial.seconds for trial in trials),
            cores=cores,
            device=device,
        ),
        rows=tuple(rows),
    )


def _row(cell: Planned, stored: Mapping[str, Stored]) -> Row | None:
    pairs = [
        (run, outcome)
        for run in cell.runs
        if run.key in stored and (outcome := stored[run.key].outcome) is not None
    ]
    return tabled_row(cell.labels, pairs) if pairs else None


def tabled_row(labels: Mapping[str, Label], pairs: Sequence[tuple[Run, Outcome]]) -> Row:
    """A cell's row, of its runs that have ended, one at least."""
    rates: dict[float, list[Trial]] = {}
    for run, outcome in pairs:
        rates.setdefault(run.learning_rate, []).append(trial(run, outcome))
    first = pairs[0][0].canonical()
    # the start token is one more
    tokens = first.trained.length + 1
    return Row(
        labels=dict(labels),
        run={name: value for name, value in first.to_json().items() if name not in BESIDE},
        rates=tuple(
            Rate(
                learning_rate=rate,
                trials=tuple(sorted(rates[rate], key=lambda one: one.seed)),
            )
            for rate in sorted(rates)
        ),
        flops_per_token=forward_flops(first, pairs[0][1].parameters).total // tokens,
        cache_bits=first.stack.cache_bits(tokens),
    )


def trial(run: Run, outcome: Outcome) -> Trial:
    """A run's outcome as a table has it. Raises SpecError for one that a version of this program
    stored which did not count single answers.
    """
    if not outcome.diverged and not outcome.due:
        raise SpecError(
            f"{run.architecture} on {run.task}, seed {run.seed}: the store has an outcome without"
            " counts of single answers, of an earlier version; train it again in another --store"
        )
    counts = zip(run.longer, outcome.longer, outcome.longer_right, outcome.longer_due, strict=False)
    return Trial(
        seed=outcome.seed,
        stopped=outcome.stopped,
        steps=outcome.steps_done,
        correct=outcome.correct,
        tested=outcome.tested,
        right=outcome.right,
        due=outcome.due,
        bits=outcome.bits,
        bits_squares=outcome.bits_squares,
        longer=tuple(Longer(*one) for one in counts),
        formats=tuple(
            Rounded(one.format, one.correct, one.right, one.due, one.bits)
            for one in outcome.formats
        ),
        parameters=outcome.parameters,
        seconds=round(outcome.seconds, 3),
    )
