"""Results of experiments as text: a line for each row, with every seed of its best rate."""

from __future__ import annotations

from collections import Counter
from fractions import Fraction
from statistics import median
from typing import TYPE_CHECKING, Any

from separatrix.experiments.base import ShownTable
from separatrix.experiments.lines import ceiling
from separatrix.numbers.accuracy import WHOLE, percent
from separatrix.numbers.amounts import format_share
from separatrix.practice.table import Row, Table, Trial
from separatrix.report.runs import NONE, ends, guessed

if TYPE_CHECKING:
    from separatrix.experiments.base import Experiment

STACK = "stack"


def shown_rows(experiment: Experiment, table: Table) -> ShownTable:
    """A line for each row. Labels that are the same everywhere stand in the title."""
    names = [
        *dict.fromkeys((*experiment.panels, *experiment.series, experiment.x)),
        *(name for name in experiment.labels),
        STACK,
    ]
    known = [name for name in dict.fromkeys(names) if table.values(name)]
    varied = [name for name in known if len(table.values(name)) > 1]
    fixed = ", ".join(f"{name} {table.values(name)[0]}" for name in known if name not in varied)
    longer = list(
        dict.fromkeys(one.size for row in table.rows for t in row.every for one in t.longer)
    )
    return ShownTable(
        title=f"Every row, at the best of its learning rates{f' ({fixed})' if fixed else ''}",
        columns=(
            *varied,
            "median",
            "every seed",
            "solved",
            *(f"at {size}" for size in longer),
            "chance",
            "at most",
            "rate",
            # "steps" alone is a label of some experiments: of what is composed
            "steps trained",
            "FLOPs",
        ),
        rows=tuple(
            (
                *(str(row.labels.get(name, NONE)) for name in varied),
                share(row.median),
                ", ".join(map(seed, row.trials)),
                f"{row.solved} of {len(row.trials)}",
                *(_longer(row, size) for size in longer),
                guessed(row.chance),
                at_most(row),
                f"{row.best_rate:g} of {len(row.rates)}",
                f"{int(median(trial.steps for trial in row.trials)):,}",
                operations(row),
            )
            for row in table.rows
        ),
    )


def seed(trial: Trial) -> str:
    """A seed's accuracy with its interval."""
    if trial.diverged:
        return f"diverged at {trial.steps:,}"
    low, high = (f"{float(end):.6f}" for end in trial.interval)
    return f"{share(trial.accuracy)} ({'-'.join(ends(low, high))})"


def share(accuracy: Fraction) -> str:
    return format_share(accuracy.numerator, accuracy.denominator)


def at_most(row: Row) -> str:
    """Theorem A's ceiling where it says something."""
    found = ceiling(row)
    return NONE if found is None or found.at_most == WHOLE else percent(found.at_most)


def operations(row: Row) -> str:
    """Floating-point operations of training one seed to the steps it did, in the middle."""
    from separatrix.experiments.running import recorded_run
    from separatrix.training.flops import training_flops

    rate = row.best_rate or 1.0
    counts = [
        training_flops(recorded_run(row, rate, one.seed), one.parameters, one.steps)
        for one in row.trials
    ]
    return f"{median(counts):.1e}"


def _longer(row: Row, size: str) -> str:
    found = [one.accuracy for trial in row.trials if (one := trial.at(size)) is not None]
    return share(median(found)) if found else NONE


def notes(table: Table) -> list[str]:
    """What a reader of the tables has to know, one sentence each."""
    every = [trial for row in table.rows for trial in row.every]
    if not every:
        return []
    grids = Counter(tuple(rate.learning_rate for rate in row.rates) for row in table.rows)
    rates = "; ".join(", ".join(f"{rate:g}" for rate in grid) for grid in grids)
    seeds = sorted({len(row.trials) for row in table.rows})
    many = f"{seeds[0]} to {seeds[-1]}" if len(seeds) > 1 else str(seeds[0])
    found = [
        f"{len(every):,} trainings, seeds of a row: {many}; rate: the best of {rates} by the median"
        " over the same seeds.",
        "In brackets: 95 % Wilson intervals over each seed's own test prompts, which count as one"
        " each however many answers they ask for.",
        "solved: seeds with at least 99 % of their answers right.",
    ]
    diverged = sum(trial.diverged for trial in every)
    if diverged:
        found.append(f"{diverged:,} of the trainings diverged; these count as 0 %.")
    if any(at_most(row) != NONE for row in table.rows):
        found.append("at most: no weights answer more of random questions (Theorem A).")
    return found


def data(experiment: Experiment, table: Table) -> dict[str, Any]:
    """A table and what is derived from it, as JSON has it."""
    return {
        "experiment": table.experiment,
        "scale": table.scale,
        "question": experiment.question,
        "findings": list(experiment.findings(table)),
        "provenance": vars(table.provenance),
        "rows": [_row_data(row) for row in table.rows],
    }


def _row_data(row: Row) -> dict[str, Any]:
    found = ceiling(row)
    return {
        "labels": row.labels,
        "run": row.run,
        "chance": str(row.chance),
        "at_most": None if found is None or found.at_most == WHOLE else found.at_most / WHOLE,
        "best_rate": row.best_rate,
        "median": float(row.median),
        "solved": row.solved,
        "flops_per_token": row.flops_per_token,
        "cache_bits": row.cache_bits,
        "rates": [
            {
                "learning_rate": rate.learning_rate,
                "seeds": [
                    vars(one)
                    | {
                        "accuracy": float(one.accuracy),
                        "interval": [float(end) for end in one.interval],
                        "longer": [other._asdict() for other in one.longer],
                        "formats": [other._asdict() for other in one.formats],
                    }
                    for one in rate.trials
                ],
            }
            for rate in row.rates
        ],
    }
