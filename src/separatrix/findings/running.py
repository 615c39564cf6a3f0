"""Runs an experiment: its cells as one sweep, and a table of what came of them and what made it."""

from __future__ import annotations

import subprocess
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from separatrix.cards.measured.table import RESULTS, Label, Provenance, Rate, Row, Table
from separatrix.core.evidence.canonical import code_version
from separatrix.core.evidence.outcome import Outcome
from separatrix.findings.base import BESIDE, Experiment, Planned
from separatrix.findings.results import Results
from separatrix.models.stored.run import Run
from separatrix.training.sweeps.engines.pool import cores
from separatrix.training.sweeps.reading import Stored
from separatrix.training.sweeps.store import Store
from separatrix.training.sweeps.sweep import sweep

UNKNOWN = "unknown"
PACKAGE = Path(__file__).resolve().parent.parent


def runs_of(cells: Iterable[Planned]) -> list[Run]:
    return [run for cell in cells for run in cell.runs]


def run(
    experiment: Experiment,
    *,
    store: Path | str,
    workers: int | None = None,
    device: str = "cpu",
    **where: Any,
) -> Table:
    """Trains what the store does not have yet of an experiment, and returns the table of all of it.
    Interrupted, the same call goes on. A run that failed is missing in the table.

    Takes and raises what `sweep` does.
    """
    cells = experiment.cells()
    own = {"store": store, "name": experiment.name, "workers": workers, "device": device}
    sweep(runs_of(cells), **own, **where)
    with Store.read(store) as kept:
        rows = {row.key: row for row in kept.rows(experiment.name)}
    return tabled(experiment, cells, rows, cores=workers or cores(), device=device)


def with_curves(experiment: Experiment, results: Results, store: Path) -> Results:
    """The cells with the running accuracies of every seed, as a store keeps them."""
    found = dict(results.cells)
    with Store.read(store) as kept:
        for planned in experiment.cells():
            if cell := found.get(str(planned.labels["cell"])):
                curves = {
                    run.seed: tuple((one.step, one.accuracy) for one in kept.metrics(run.key))
                    for run in planned.runs
                    if run.learning_rate == cell.rate
                }
                found[cell.name] = replace(cell, curves=curves)
    return Results(found)


def tabled(
    experiment: Experiment,
    cells: Sequence[Planned],
    stored: Mapping[str, Stored],
    *,
    cores: int,
    device: str,
) -> Table:
    """The table of what a store has of some cells. A cell of which nothing has ended is left out,
    and where other code than this has trained, the commit is unknown.
    """
    rows: list[Row] = []
    # a store may hold other trials, which other code has trained
    versions: set[str] = set()
    for cell in cells:
        own = [(run, stored[run.key]) for run in cell.runs if run.key in stored]
        versions |= {row.version for _, row in own if row.version}
        if pairs := [(run, row.outcome) for run, row in own if row.outcome is not None]:
            rows.append(tabled_row(cell.labels, pairs))
    made = Provenance(
        commit=commit() if versions <= {code_version()} else UNKNOWN,
        version=", ".join(sorted(versions)) or code_version(),
        command=f"separatrix train {experiment.name}",
        date=f"{datetime.now(UTC):%Y-%m-%d}",
        seconds=round(sum(trial.seconds for row in rows for trial in row.every), 1),
        cores=cores,
        device=device,
    )
    return Table(experiment=experiment.name, provenance=made, rows=tuple(rows))


def tabled_row(labels: Mapping[str, Label], pairs: Sequence[tuple[Run, Outcome]]) -> Row:
    """A cell's row, of its runs that have ended, one at least."""
    rates: dict[float, list[Outcome]] = {}
    for run, outcome in pairs:
        kept = replace(outcome, seconds=round(outcome.seconds, 3))
        rates.setdefault(run.learning_rate, []).append(kept)
    first = pairs[0][0].canonical()
    # the start token is one more
    tokens = first.trained.length + 1
    return Row(
        labels=dict(labels),
        run={name: value for name, value in first.to_json().items() if name not in BESIDE},
        rates=tuple(
            Rate(learning_rate=rate, trials=tuple(sorted(rates[rate], key=lambda one: one.seed)))
            for rate in sorted(rates)
        ),
        cache_bits=first.stack.cache_bits(tokens),
    )


def commit(package: Path = PACKAGE) -> str:
    """The commit of the checkout that the package is run from; "unknown" where it is run from none,
    or its sources differ from the commit. Recorded results may have changed.
    """

    def git(*words: str) -> list[str]:
        command = ["git", "-C", str(package), *words]
        return subprocess.check_output(command, text=True, stderr=subprocess.DEVNULL).splitlines()

    try:
        head, *inside = git("rev-parse", "HEAD", "--show-prefix")
        results = Path("cards", "measured", RESULTS.name)
        changed = git("status", "--porcelain", "--", ".", f":(exclude){results}")
    except (OSError, subprocess.CalledProcessError):
        # git is not installed or refuses
        return UNKNOWN
    # a package installed inside of another project's checkout is none of its commits
    return UNKNOWN if changed or inside != ["src/separatrix/"] else head
