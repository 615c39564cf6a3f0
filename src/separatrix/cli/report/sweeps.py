"""What a sweep shows, as tables for a terminal and as data."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from separatrix.cli.printing import rows_table
from separatrix.cli.report.notation import theorem_name
from separatrix.core.document import Document, Heading, Line, Part
from separatrix.core.document.cells import NONE, ends, guessed
from separatrix.core.evidence.outcome import Outcome
from separatrix.core.numbers.accuracy import percent
from separatrix.core.numbers.amounts import format_share
from separatrix.core.numbers.seeds import Spread
from separatrix.training.sweeps.reading import Stored
from separatrix.training.sweeps.statistics import Interval, Measured, Rate, Summary

CHOSEN = "*"
"""Marks the learning rate that is the best of its cell."""
_NAMED = 5
"""Damaged runs that a note names."""
Row = dict[str, str]


def best_rows(summary: Summary) -> list[Row]:
    """A row for each cell: the best of its learning rates, and what is proved of it. Columns that
    say nothing of any cell are left out.
    """
    cells = summary.cells
    longer = list(dict.fromkeys(size for cell in cells for size in cell.run.longer))
    formats = list(dict.fromkeys(name for cell in cells for name in cell.run.formats))
    several = any(cell.several for cell in cells)
    unequal = len({cell.parameters for cell in cells} - {None}) > 1
    ceilings = [proved.ceiling for cell in cells if (proved := cell.proved)]
    rows: list[Row] = []
    for cell in cells:
        best, run, proved = cell.best, cell.run, cell.proved
        row = {"cell": cell.label}
        if unequal:
            row["parameters"] = NONE if cell.parameters is None else f"{cell.parameters:,}"
        row["rate"] = NONE if best is None else f"{best.learning_rate:g}"
        row["median"] = _median(best and best.accuracy)
        if several:
            row["whole prompts"] = _median(best and best.whole)
        row |= {"seeds": _seeds(best, cell), "solved": _solved(best)}
        for name in formats:
            row[f"in {name}"] = _median(
                best and best.rounded(name) if name in run.formats else None
            )
        for size in longer:
            place = run.longer.index(size) if size in run.longer else None
            at = None if best is None or place is None else best.longer(place)
            row[f"at {size}"] = _median(at)
        row["chance"] = guessed(cell.chance)
        if any(ceilings):
            at_most = proved and proved.ceiling
            row["at most"] = NONE if at_most is None else percent(at_most)
        by = proved and f"{proved.status} ({theorem_name(proved.theorem)})"
        rows.append(row | {"proved": by or NONE})
    return rows


def seed_rows(summary: Summary) -> list[Row]:
    """A row for each cell and learning rate: what every seed gave, with its own interval."""
    every = (rate.counts.seeds for cell in summary.cells for rate in cell.rates)
    seeds = sorted({int(seed) for own in every for seed in own})
    found: list[Row] = []
    for cell in summary.cells:
        for place, rate in enumerate(cell.rates):
            runs = {one.run.seed: one for one in rate.runs}
            # said once for all of its rates
            label = cell.label if place == 0 else ""
            mark = CHOSEN if rate is cell.best and len(cell.rates) > 1 else ""
            row = {"cell": label, "rate": f"{rate.learning_rate:g}{mark}"}
            row |= {f"seed {seed}": _seed(runs[seed]) if seed in runs else "" for seed in seeds}
            found.append(row)
    return found


def notes(summary: Summary) -> Iterator[str]:
    """What these runs leave open, one sentence each; docs/runs.md says what each column means."""
    if any(len(cell.rates) > 1 for cell in summary.cells):
        yield "rate: the best of its cell by the median over the same seeds, which flatters it."
    words = ("diverged", "failed", "running", "waiting")
    left = [f"{count:,} {word}" for word in words if (count := summary.count(word))]
    if left:
        end = "." if summary.complete else ", and the choice may still change."
        yield (
            f"{', '.join(left)}. A diverged seed counts as 0 %; failed and unfinished ones are left"
            f" out of every other number{end}"
        )
    for cell in summary.cells:
        if cell.needed:
            yield (
                f"{cell.label}: {cell.run.steps:,} steps, and the rule of stopping asks for"
                f" {cell.needed:,}: what is not solved says nothing yet."
            )
    if damaged := summary.damaged:
        named = ", ".join(key[:12] for key in damaged[:_NAMED])
        more = f" and {len(damaged) - _NAMED:,} more" if len(damaged) > _NAMED else ""
        yield (
            f"Damaged and not used, since the hash of the outcome is another: {named}{more};"
            " `separatrix train GRID.yaml --retry` trains them again."
        )
    yield from (f"{text}." for text in dict.fromkeys(c.repeats for c in summary.cells) if text)
    if len(summary.versions) > 1:
        yield f"The runs were ended by different code: {', '.join(summary.versions)}."


def document(summary: Summary) -> Document:
    """Both tables and the notes."""
    parts: list[Part] = [rows_table(best_rows(summary))]
    if rows := seed_rows(summary):
        parts += [Heading(), rows_table(rows)]
    return Document(*parts, Heading(), *map(Line, notes(summary)))


def data(summary: Summary) -> dict[str, Any]:
    """The same, and all that it is computed from, as JSON has it."""
    return {
        "sweep": summary.name,
        "complete": summary.complete,
        "versions": list(summary.versions),
        "cells": [_cell_data(cell) for cell in summary.cells],
        "notes": list(notes(summary)),
    }


def _cell_data(cell: Measured) -> dict[str, Any]:
    best = cell.best
    return {
        "label": cell.label,
        "run": {k: v for k, v in cell.run.to_json().items() if k not in ("seed", "learning_rate")},
        "parameters": cell.parameters,
        "chance": str(cell.chance),
        "proved": None if cell.proved is None else vars(cell.proved),
        "repeats": cell.repeats,
        "rates": [_rate_data(cell, rate) for rate in cell.rates],
        "best": None
        if best is None
        else {
            "learning_rate": best.learning_rate,
            "chosen_from": [rate.learning_rate for rate in cell.rates],
            "chosen_by": "median accuracy over the same seeds",
        },
    }


def _rate_data(cell: Measured, rate: Rate) -> dict[str, Any]:
    return {
        "learning_rate": rate.learning_rate,
        "accuracy": _spread_data(rate.accuracy),
        "solved": rate.solved,
        "ended": rate.seeds,
        "solved_interval": rate.solved_interval,
        "diverged": rate.count("diverged"),
        "failed": rate.count("failed"),
        "unfinished": rate.unfinished,
        "longer": {
            size: _spread_data(rate.longer(place)) for place, size in enumerate(cell.run.longer)
        },
        "seeds": [_seed_data(one) for one in rate.runs],
    }


def _seed_data(one: Stored) -> dict[str, Any]:
    """A seed's outcome; of one that has not ended its steps so far, and nothing right."""
    o = one.outcome
    begun = {"seed": one.run.seed, "steps_done": one.step, "seconds": one.seconds}
    told = o or Outcome(**begun, correct=0, tested=0, parameters=0)
    return (
        {"key": one.key}
        | told.to_json()
        | {
            "status": one.status,
            "stopped": o.stopped if o else "",
            "accuracy": float(o.accuracy) if o else None,
            "interval": told.interval,
        }
    )


def _spread_data(spread: Spread | None) -> dict[str, float] | None:
    return None if spread is None else {name: float(value) for name, value in vars(spread).items()}


def _seeds(best: Rate | None, cell: Measured) -> str:
    """The least and the most over seeds, and how many of them ended."""
    if best is None or best.accuracy is None:
        return f"0 of {sum(len(rate.counts.seeds) for rate in cell.rates)}"
    ends = dict.fromkeys(map(format_share, (best.accuracy.least, best.accuracy.most)))
    span = " to ".join(ends).replace(" % to ", " to ")
    return f"{span} ({best.seeds} of {len(best.counts.seeds)})"


def _solved(best: Rate | None) -> str:
    if best is None or not best.seeds:
        return NONE
    over = "" if best.solved_interval is None else f" ({_span(best.solved_interval)})"
    return f"{best.solved} of {best.seeds}{over}"


def _seed(one: Stored) -> str:
    o = one.outcome
    if o is None or (interval := o.interval) is None:
        return one.status if o is None else f"diverged at {o.steps_done:,}"
    return f"{format_share(o.accuracy)} ({_span(interval)})"


def _span(interval: Interval) -> str:
    return "-".join(ends(*interval))


def _median(spread: Spread | None) -> str:
    return NONE if spread is None else format_share(spread.median)
