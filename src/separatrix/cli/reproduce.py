"""The main job: the paper's table of results with evidence in every cell, and the same questions
asked of real models. Its units of work are plain data, run alone in processes, and leave JSON
results at once that a later run picks up.
"""

from __future__ import annotations

import json
import time
from collections.abc import Sequence
from contextlib import closing
from dataclasses import asdict, dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any, Literal

from separatrix.cards.table.body import Settings, derive, table_cells
from separatrix.cards.table.plan import Cell
from separatrix.checks.refute import refute
from separatrix.constructions import construct
from separatrix.core.errors import EngineError, EvidenceError, SeparatrixError, SizeError
from separatrix.core.evidence.bundles import bundle_envelope
from separatrix.core.evidence.canonical import canonical, code_digest, sha256
from separatrix.core.evidence.folder import write_atomic
from separatrix.core.evidence.records import (
    Certificate,
    Construction,
    Evidence,
    from_envelope,
)
from separatrix.core.progress import HINT, clock, told
from separatrix.models.model import Model
from separatrix.models.stored.run import Run
from separatrix.stacks.architecture import Architecture
from separatrix.tasks import parse_task
from separatrix.training.alone import measurement, saved
from separatrix.training.packs import Pack
from separatrix.training.sweeps.engines.base import Failed, Lost
from separatrix.training.sweeps.engines.pool import Processes


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
    jobs = [job for cell in table_cells(settings) for job in _plan(cell, settings.seed)]
    records: dict[str, Evidence] = {}
    for envelopes in run_jobs(jobs, store, workers=workers, show=show).values():
        for record in map(from_envelope, envelopes):
            records[record.digest] = record
            if isinstance(record, Construction):
                write_atomic(out / record.weights, (store / record.weights).read_bytes())
    envelope = bundle_envelope(derive(settings, records))
    write_atomic(out / "evidence.json", canonical(envelope) + "\n")
    write_report(envelope["body"], out / "report.html")
    return envelope["body"]


def _plan(cell: Cell, seed: int) -> list[Job]:
    """Every job of a cell; of its trainings one for each size, all seeds together."""
    made = [
        Job(do="construct", task=task, architecture=stack, cost=6.0) for stack, task in cell.built()
    ]
    # of a model that is only known to fail, a wrong answer is looked for after its training
    wrong: set[str] = set()
    for form, stack, task, _ in cell.witnesses():
        if form == "wrong_answer":
            wrong.add(task)
        else:
            made.append(Job(do="refute", task=task, architecture=stack, seed=seed))
    training = cell.training()
    seeds = tuple(range(seed, seed + cell.kind.seeds))
    for size in cell.sizes:
        task = cell.task_at(size)
        step = cell.of.layers * (40 + training["batch"] * size / 16) * 1e-4
        made.append(
            Job(
                do="train",
                task=task,
                architecture=cell.stack,
                seeds=seeds,
                refuted=task in wrong,
                training=tuple(sorted(training.items())),
                cost=1.0 + training["steps"] * len(seeds) * step,
            )
        )
    return made


SEARCH_SECONDS = 120.0


@dataclass(frozen=True, kw_only=True)
class Job:
    """One piece of evidence to make: `construct` weights, `refute` a drawn model, `train` some
    seeds as one pack, and, where it is wanted, refute what the first of them gave.
    """

    do: Literal["construct", "refute", "train"]
    task: str
    architecture: str
    seed: int = 0
    seeds: tuple[int, ...] = ()
    """Of the models that are trained."""
    refuted: bool = False
    """Whether a wrong answer of the first trained model is looked for, too."""
    training: tuple[tuple[str, Any], ...] = ()
    """Settings of `training.Run` besides architecture, task and seed."""
    cost: float = 1.0
    """Expected seconds; orders the work and drives the time left."""

    @property
    def key(self) -> str:
        """Identity of the result: the job and the code that runs it, so that results of another
        version are never picked up.
        """
        job = {k: v for k, v in asdict(self).items() if k != "cost"}
        return sha256(canonical([job, code_digest()]))

    @property
    def title(self) -> str:
        return f"{self.do} {self.architecture} {self.task}"


Envelopes = list[dict[str, Any]]
"""What a job gives: its records as files hold them."""


def stored(job: Job, store: Path) -> Envelopes | None:
    """The saved result of a job, or None when there is none (or it was cut off)."""
    try:
        data = json.loads((store / f"{job.key}.json").read_text())
        assert data["job"] == job.key
        assert all((store / name).is_file() for name in data["files"])
        return data["result"]
    except (OSError, ValueError, KeyError, TypeError, AssertionError):
        return None


def perform(job: Job, store: Path) -> Envelopes:
    """Does a job and saves its result under its key. Raises what the work raises, naming the
    job.
    """
    try:
        records = _WORK[job.do](job, store)
    except SeparatrixError as error:
        raise type(error)(f"{job.title}: {error}") from None
    result = [record.envelope() for record in records]
    files = [record.weights for record in records if isinstance(record, Construction)]
    write_atomic(
        store / f"{job.key}.json",
        canonical({"job": job.key, "result": result, "files": files}) + "\n",
    )
    checkpoint(job, store).unlink(missing_ok=True)
    return result


def _construct(job: Job, store: Path) -> list[Evidence]:
    built = construct(parse_task(job.task), Architecture.parse(job.architecture))
    built.save_weights(store)
    return [built.record]


def _refute(job: Job, store: Path) -> list[Evidence]:
    return [_failure(Architecture.parse(job.architecture), job.task, job.seed)]


def _train(job: Job, store: Path) -> list[Evidence]:
    pack = Pack(runs_of(job))
    trainer = saved(pack, checkpoint(job, store))
    # a clock would make two equal results differ
    outcomes = [replace(trainer.outcomes()[key], seconds=0.0) for key in pack.keys]
    made: list[Evidence] = [measurement(runs_of(job)[0], outcomes)]
    if job.refuted:
        made.append(_failure(trainer.model(pack.keys[0]), job.task, job.seeds[0]))
    return made


def _failure(subject: Architecture | Model, task: str, seed: int) -> Certificate:
    """A certificate. Raises EvidenceError for a search that found nothing."""
    found = refute(subject, parse_task(task), budget=SEARCH_SECONDS, seed=seed)
    if not isinstance(found, Certificate):
        raise EvidenceError(f"{found}; another --seed may find one")
    return found


def runs_of(job: Job) -> tuple[Run, ...]:
    """The runs of a job that trains, a seed each."""
    return tuple(
        Run(architecture=job.architecture, task=job.task, seed=seed, **dict(job.training))
        for seed in job.seeds
    )


def checkpoint(job: Job, store: Path) -> Path:
    """Where a job that trains saves what it has done, until it has ended."""
    return store / f"{job.key}.checkpoint"


_WORK = {"construct": _construct, "refute": _refute, "train": _train}


def run_jobs(
    jobs: Sequence[Job], store: Path, *, workers: int, show: bool = True
) -> dict[Job, Envelopes]:
    """Every job's result, by job; saved results are taken from `store`. An interrupt or error
    stops the workers; what is done stays saved.
    """
    jobs = list(dict.fromkeys(jobs))
    results = {job: result for job in jobs if (result := stored(job, store)) is not None}
    todo = sorted((job for job in jobs if job not in results), key=lambda job: -job.cost)
    if not todo:
        return results
    workers = min(workers, len(todo))
    total = sum(job.cost for job in todo)
    start = time.monotonic()
    with (
        told("reproduce", shown=show, hint=HINT) as report,
        closing(Processes(partial(perform, store=store), workers)) as processes,
    ):
        left = {processes.submit(job): job for job in todo}
        while left:
            for ticket, back in processes.wait(1.0):
                job = left.pop(ticket)
                results[job] = _result(job, back)
            done = total - sum(job.cost for job in left.values())
            # at the pace so far; before a twentieth is done, at the expected one
            pace = (time.monotonic() - start) / done if done > total / 20 else 1 / workers
            left_said = f"about {clock(pace * (total - done))} left"
            report(done, total, (f"{len(results)}/{len(jobs)} jobs", left_said))
    return results


def _result(job: Job, back: Envelopes | Failed | Lost) -> Envelopes:
    if isinstance(back, Failed | Lost):
        why = back.error if isinstance(back, Failed) else back.reason
        said = f"{job.title}: {why}; what is done is saved, and the same command goes on"
        raise EngineError(said)
    return back
