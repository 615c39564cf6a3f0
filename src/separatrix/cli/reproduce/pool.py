"""Runs jobs in processes, saves each result at once, resumes where an interrupted run stopped."""

from __future__ import annotations

import time
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Any

from separatrix.cli.reproduce.jobs import Job, perform, stored
from separatrix.core.errors import EngineError
from separatrix.core.progress import told
from separatrix.training.sweeps.engines.base import Lost
from separatrix.training.sweeps.engines.pool import Processes

_HINT = "Ctrl-C saves and stops; the same command resumes"


def run_jobs(
    jobs: Sequence[Job], store: Path, *, workers: int, show: bool = True
) -> dict[Job, dict[str, Any]]:
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
        told("reproduce", shown=show, hint=_HINT) as report,
        Processes(partial(perform, store=store), workers) as processes,
    ):
        left = {processes.submit(job): job for job in todo}
        while left:
            for ticket, back in processes.wait(1.0):
                job = left.pop(ticket)
                results[job] = _result(job, back)
            done = total - sum(job.cost for job in left.values())
            time_left = _eta(done, total, time.monotonic() - start, workers)
            report(done, total, (f"{len(results)}/{len(jobs)} jobs", time_left))
    return results


def _result(job: Job, back: dict[str, Any] | Exception | Lost) -> dict[str, Any]:
    if isinstance(back, Exception):
        raise back
    if isinstance(back, Lost):
        raise EngineError(
            f"{job.title}: {back.reason}; what is done is saved, and the same command goes on"
        )
    return back


def _eta(done: float, total: float, spent: float, workers: int) -> str:
    """Time left at the pace so far; before a twentieth is done, at the expected pace."""
    pace = spent / done if done > total / 20 else 1 / workers
    left = max(0.0, pace * total - spent) if done <= total / 20 else pace * (total - done)
    return f"about {int(left // 60)}:{int(left % 60):02d} left"
