"""The main job: the paper's table of results with evidence in every cell, and the same questions
asked of real models.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from separatrix.cards.table.body import Settings, derive, table_cells
from separatrix.cards.table.plan import COLUMNS, Cell
from separatrix.cli.reproduce.jobs import Job, run_jobs, runs_of
from separatrix.core.errors import EvidenceError, SizeError
from separatrix.core.evidence.bundles import bundle_envelope
from separatrix.core.evidence.canonical import canonical
from separatrix.core.evidence.folder import write_atomic
from separatrix.core.evidence.outcome import Outcome
from separatrix.core.evidence.records import Construction, Evidence, Measurement, from_envelope
from separatrix.training.record import measurement


def reproduce_table(
    settings: Settings,
    out: Path,
    *,
    workers: int = 2,
    show: bool = True,
) -> dict[str, Any]:
    """Makes all evidence, writes evidence.json, the constructions' weights and report.html into
    `out`, and returns the bundle's body.

    Finished jobs are kept under `out`/.saved, so that an interrupted run resumes. Raises SizeError
    for no workers, OutputError for a folder that cannot be written, and what a job raises.
    """
    if workers < 1:
        raise SizeError(f"workers is {workers}; it must be at least 1")
    from separatrix.cli.report.html import write_report

    store = out / ".saved"
    write_atomic(
        store / "README",
        "Results of finished jobs; `separatrix reproduce` picks them up. Safe to delete.\n",
    )
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
        *(
            Job(
                do="refute",
                task=wanted.task,
                architecture=wanted.architecture,
                seed=settings.seed,
                cost=1.0,
            )
            for wanted in cell.witnesses()
            if wanted.form != "wrong_answer"
        ),
        *_trainings(cell, settings),
    ]


def _trainings(cell: Cell, settings: Settings) -> list[Job]:
    """The trainings of a cell: at each size, all seeds together."""
    # of a model that is only known to fail, a wrong answer is looked for after its training
    wrong = {wanted.task for wanted in cell.witnesses() if wanted.form == "wrong_answer"}
    return [
        _training(cell, size, settings, refuted=cell.task_at(size) in wrong) for size in cell.sizes
    ]


def _training(cell: Cell, size: int, settings: Settings, *, refuted: bool) -> Job:
    training = cell.training()
    column = COLUMNS[cell.column]
    seeds = tuple(range(settings.seed, settings.seed + cell.kind.seeds))
    step = column.layers * (40 + training["batch"] * size / 16) * 1e-4
    return Job(
        do="train",
        task=cell.task_at(size),
        architecture=cell.stack,
        seeds=seeds,
        refuted=refuted,
        training=tuple(sorted(training.items())),
        cost=1.0 + training["steps"] * len(seeds) * step,
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
        *(_measurement(job, results[job]) for job in _trainings(cell, settings)),
    ]


def _measurement(job: Job, result: dict[str, Any]) -> Measurement:
    return measurement(
        runs_of(job)[0], [Outcome.from_json(outcome) for outcome in result["outcomes"]]
    )
