"""The main job: the paper's table of results with evidence in every cell, and the same questions
asked of real models.
"""

from __future__ import annotations

import shutil
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from separatrix.architecture import Architecture
from separatrix.architecture.resolve import resolve
from separatrix.cards.summary import bound_curve, decisive
from separatrix.errors import SizeError
from separatrix.evidence.atomic import write_atomic
from separatrix.evidence.bundles import bundle_envelope
from separatrix.evidence.canonical import canonical
from separatrix.evidence.records import Evidence, from_envelope
from separatrix.reproduce.cells import CELLS, COLUMNS, ROWS, Cell, task_at
from separatrix.reproduce.jobs import Job
from separatrix.reproduce.models import model_entry
from separatrix.reproduce.pool import run_jobs
from separatrix.tasks import parse_task
from separatrix.theory import judge

DEFAULT_MODELS = ("qwen3-next-80b", "nemotron-h-8b", "recurrentgemma-2b")


@dataclass(frozen=True)
class Effort:
    """How much is trained: sizes per column, seeds, steps."""

    quick: bool = False
    seed: int = 0

    @property
    def seeds(self) -> tuple[int, ...]:
        return (self.seed,) if self.quick else (self.seed, self.seed + 1)

    def trained_sizes(self, column: str) -> tuple[int, ...]:
        if self.quick:
            return (8, 16) if column == "eva" else (4, 8)
        return (8, 16, 32) if column == "eva" else (4, 8, 16)

    def training(self, column: str) -> dict[str, Any]:
        """Settings of `training.Run`; 2-Sum needs larger batches, composition more steps."""
        steps = {"eva": (300, 800), "twosum": (800, 1600), "seqcomp": (500, 2000)}[column][
            not self.quick
        ]
        return {"steps": steps, "batch": 256 if column == "twosum" else 128}


def reproduce_table(
    effort: Effort,
    out: Path,
    *,
    models: Sequence[str] | None = None,
    workers: int = 2,
    fresh: bool = False,
    show: bool = True,
) -> dict[str, Any]:
    """Makes all evidence, writes evidence.json, the constructions' weights and report.html into
    `out`, and returns the bundle's body.

    Finished jobs are kept under `out`/.saved, so that an interrupted run resumes. Raises SizeError
    for no workers, MissingExtraError without the extra 'report', OutputError for a folder that
    cannot be written, what reading the models raises, and what a job raises.
    """
    if workers < 1:
        raise SizeError(f"workers is {workers}; it must be at least 1")
    from separatrix.report.html import require_libraries, write_report

    require_libraries()  # before minutes of training, not after
    architectures = [resolve(text) for text in models or DEFAULT_MODELS]
    store = out / ".saved"
    write_atomic(
        store / "README",
        "Results of finished jobs; `separatrix reproduce` picks them up. Safe to delete.\n",
    )
    if fresh:
        shutil.rmtree(store, ignore_errors=True)
    plan = {cell: _plan(cell, effort) for cell in CELLS}
    results = run_jobs(
        [job for jobs in plan.values() for job in jobs], store, workers=workers, show=show
    )
    records: dict[str, Evidence] = {}
    cells = [_entry(cell, effort, plan[cell], results, records) for cell in CELLS]
    body = {
        "title": "Separatrix: what attention stacks can and cannot compute",
        "settings": asdict(effort),
        "rows": [{"key": key, "title": title} for key, title in ROWS.items()],
        "columns": [{"key": key, "title": title} for key, title in COLUMNS.items()],
        "cells": cells,
        "models": [model_entry(architecture, records) for architecture in architectures],
        "records": {digest: record.envelope() for digest, record in sorted(records.items())},
    }
    envelope = bundle_envelope(body)
    for record in records.values():
        weights = getattr(record, "weights", None)
        if isinstance(weights, str):
            write_atomic(out / weights, (store / weights).read_bytes())
    write_atomic(out / "evidence.json", canonical(envelope) + "\n")
    write_report(envelope["body"], out / "report.html")
    return envelope["body"]


def _plan(cell: Cell, effort: Effort) -> list[Job]:
    """Every job of a cell. Cells share trainings; equal jobs are done once."""
    jobs = [
        Job(do="construct", task=parse_task(task).spec, architecture=architecture, cost=8.0)
        for task, architecture in cell.built
    ]
    jobs += [
        Job(
            do="refute", task=task, architecture=spec, cache_format=form, seed=effort.seed, cost=1.0
        )
        for spec, task, form in cell.refuted
    ]
    jobs += [job for jobs in _trainings(cell, effort).values() for job in jobs]
    if cell.wrong:
        size = effort.trained_sizes(cell.column)[-1]
        jobs.append(
            _training(cell.non_solver, cell.column, size, effort.seed, effort, do="refute_trained")
        )
    return jobs


def _trainings(cell: Cell, effort: Effort) -> dict[tuple[str, int], list[Job]]:
    """The training jobs of a cell by (role, size), one for each seed."""
    roles: tuple[tuple[str, str], ...] = (("solver", cell.solver), ("non-solver", cell.non_solver))
    sizes = effort.trained_sizes(cell.column)
    return {
        (role, n): [_training(spec, cell.column, n, s, effort) for s in effort.seeds]
        for role, spec in roles
        for n in sizes
    }


def _training(
    spec: str, column: str, size: int, seed: int, effort: Effort, *, do: Any = "train"
) -> Job:
    training = effort.training(column)
    layers = len(Architecture.parse(spec))
    cost = 1.5 + training["steps"] * training["batch"] * layers * (size + 10) * 4e-7
    return Job(
        do=do,
        task=task_at(column, size),
        architecture=spec,
        seed=seed,
        training=tuple(sorted(training.items())),
        cost=cost,
    )


def _entry(
    cell: Cell,
    effort: Effort,
    jobs: list[Job],
    results: dict[Job, dict[str, Any]],
    records: dict[str, Evidence],
) -> dict[str, Any]:
    """The cell as the bundle holds it; its records are added to `records`."""
    verdicts = [
        judge(Architecture.parse(pair.architecture), parse_task(pair.task)) for pair in cell.judged
    ]
    main = verdicts[0][0]
    mine: list[Evidence] = [verdict for found in verdicts for verdict in found]
    mine += [
        from_envelope(envelope) for job in jobs for envelope in results[job].get("records", ())
    ]
    mine += [_measurement(jobs, results) for jobs in _trainings(cell, effort).values()]
    records.update({record.digest: record for record in mine})
    return {
        "row": cell.row,
        "column": cell.column,
        "status": main.status,
        "paper": cell.paper,
        "number": decisive(main),
        "headline": main.statement,
        "story": cell.story,
        "records": list(dict.fromkeys(record.digest for record in mine)),
        "bound": bound_curve(main) if cell.bound else None,
    }


def _measurement(jobs: Sequence[Job], results: dict[Job, dict[str, Any]]) -> Evidence:
    from separatrix.training.record import Outcome, measurement

    outcomes = [
        Outcome(
            seed=job.seed, **{k: results[job][k] for k in ("correct", "steps_done", "parameters")}
        )
        for job in jobs
    ]
    first = jobs[0]
    assert first.architecture is not None
    return measurement(first.architecture, first.task, dict(first.training), outcomes)
