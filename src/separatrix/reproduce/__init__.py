"""The main job: the paper's table of results with evidence in every cell, and the same questions
asked of real models.
"""

from __future__ import annotations

import shutil
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from separatrix.errors import EvidenceError, SizeError
from separatrix.evidence.atomic import write_atomic
from separatrix.evidence.bundles import bundle_envelope
from separatrix.evidence.canonical import canonical
from separatrix.evidence.records import Construction, Evidence, Measurement, from_envelope
from separatrix.reproduce.jobs import Job, run_of
from separatrix.reproduce.pool import run_jobs
from separatrix.table.body import Settings, derive, table_cells
from separatrix.table.classes import COLUMNS
from separatrix.table.plan import Cell, Witness


def reproduce_table(
    settings: Settings,
    out: Path,
    *,
    workers: int = 2,
    fresh: bool = False,
    show: bool = True,
) -> dict[str, Any]:
    """Makes all evidence, writes evidence.json, the constructions' weights and report.html into
    `out`, and returns the bundle's body.

    Finished jobs are kept under `out`/.saved, so that an interrupted run resumes. Raises SizeError
    for no workers, MissingExtraError without the extra 'report', OutputError for a folder that
    cannot be written, and what a job raises.
    """
    if workers < 1:
        raise SizeError(f"workers is {workers}; it must be at least 1")
    from separatrix.report.html import require_libraries, write_report

    require_libraries()  # before minutes of training, not after
    store = out / ".saved"
    write_atomic(
        store / "README",
        "Results of finished jobs; `separatrix reproduce` picks them up. Safe to delete.\n",
    )
    if fresh:
        shutil.rmtree(store, ignore_errors=True)
    plan = {cell: _plan(cell, settings) for cell in table_cells(settings)}
    results = run_jobs(
        [job for jobs in plan.values() for job in jobs], store, workers=workers, show=show
    )
    records: dict[str, Evidence] = {}
    for cell, jobs in plan.items():
        for record in _records(cell, jobs, settings, results):
            records[record.digest] = record
            if isinstance(record, Construction):
                write_atomic(out / record.weights, (store / record.weights).read_bytes())
    envelope = bundle_envelope(derive(settings, records))
    write_atomic(out / "evidence.json", canonical(envelope) + "\n")
    write_report(envelope["body"], out / "report.html")
    return envelope["body"]


def _plan(cell: Cell, settings: Settings) -> list[Job]:
    """Every job of a cell."""
    return [
        *(
            Job(do="construct", task=pair.task, architecture=pair.architecture, cost=6.0)
            for pair in cell.built()
        ),
        *(_witness_job(cell, wanted, settings) for wanted in cell.witnesses()),
        *(job for jobs in _trainings(cell, settings) for job in jobs),
    ]


def _witness_job(cell: Cell, wanted: Witness, settings: Settings) -> Job:
    """The search for a failure: of a model drawn at random, or of a trained one."""
    if wanted.form == "wrong_answer":
        return _training(cell, cell.sizes[-1], settings.seed, do="refute_trained")
    return Job(
        do="refute",
        task=wanted.task,
        architecture=wanted.architecture,
        seed=settings.seed,
        cost=1.0,
    )


def _trainings(cell: Cell, settings: Settings) -> list[list[Job]]:
    """The training jobs of a cell, one for each seed, size by size."""
    seeds = range(settings.seed, settings.seed + cell.kind.seeds)
    return [[_training(cell, size, seed) for seed in seeds] for size in cell.sizes]


def _training(cell: Cell, size: int, seed: int, *, do: Any = "train") -> Job:
    training = cell.training()
    column = COLUMNS[cell.column]
    return Job(
        do=do,
        task=cell.task_at(size),
        architecture=cell.stack,
        seed=seed,
        training=tuple(sorted(training.items())),
        cost=1.0 + training["steps"] * column.layers * (40 + training["batch"] * size / 16) * 1e-4,
    )


def _records(
    cell: Cell, jobs: Sequence[Job], settings: Settings, results: dict[Job, dict[str, Any]]
) -> list[Evidence]:
    """What the jobs of a cell gave. Raises EvidenceError for a search that found nothing."""
    for job in jobs:
        if "not_found" in results[job]:
            raise EvidenceError(
                f"{job.title}: {results[job]['not_found']}; another --seed may find one"
            )
    return [
        *(from_envelope(envelope) for job in jobs for envelope in results[job].get("records", ())),
        *(_measurement(same, results) for same in _trainings(cell, settings)),
    ]


def _measurement(jobs: Sequence[Job], results: dict[Job, dict[str, Any]]) -> Measurement:
    from separatrix.training.record import Outcome, measurement

    known = ("correct", "tested", "stopped", "steps_done", "parameters")
    outcomes = [Outcome(seed=job.seed, **{k: results[job][k] for k in known}) for job in jobs]
    return measurement(run_of(jobs[0]), outcomes)
