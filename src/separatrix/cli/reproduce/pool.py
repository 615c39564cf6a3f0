"""Runs jobs in processes, saves each result at once, resumes where an interrupted run stopped."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any

from separatrix.cli.reproduce.jobs import Job, perform, stored
from separatrix.core.errors import EngineError
from separatrix.core.progress import lines
from separatrix.training.sweeps.engines.pool import Died, Done, Processes, Raised

_TITLE = "reproduce"
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
    with (
        _shown(total, len(jobs), len(results), workers, show) as report,
        Processes(partial(perform, store=store), workers) as processes,
    ):
        left = {processes.submit(job): job for job in todo}
        while left:
            for ticket, back in processes.wait(1.0):
                job = left.pop(ticket)
                results[job] = _result(job, back)
            report(total - sum(job.cost for job in left.values()), len(results))
    return results


def _result(job: Job, back: Done[dict[str, Any]] | Raised | Died) -> dict[str, Any]:
    match back:
        case Done():
            return back.value
        case Raised():
            raise back.error
        case Died():
            raise EngineError(
                f"{job.title}: {back.reason}; what is done is saved, and the same command goes on"
            )


@contextmanager
def _shown(
    total: float, jobs: int, before: int, workers: int, show: bool
) -> Iterator[Callable[[float, int], None]]:
    """A progress bar with time left on a terminal; a line now and then elsewhere."""
    if not show:
        yield lambda seconds, done: None
    elif not sys.stderr.isatty():
        yield _lines(total, jobs, before, workers)
    else:
        from rich.progress import TextColumn

        columns = (TextColumn("{task.percentage:>3.0f} %"), TextColumn("{task.fields[jobs]}"))
        with lines(*columns, left=TextColumn("{task.fields[left]}")) as bars:
            bars.console.print(_HINT)
            bar = bars.add_task(_TITLE, total=total, jobs=f"{before}/{jobs} jobs", left="")
            start = time.monotonic()

            def update(seconds: float, done: int) -> None:
                left = _eta(seconds, total, time.monotonic() - start, workers)
                bars.update(bar, completed=seconds, jobs=f"{done}/{jobs} jobs", left=left)

            yield update


def _eta(done: float, total: float, spent: float, workers: int) -> str:
    """Time left at the pace so far; before a twentieth is done, at the expected pace."""
    pace = spent / done if done > total / 20 else 1 / workers
    left = max(0.0, pace * total - spent) if done <= total / 20 else pace * (total - done)
    return f"about {int(left // 60)}:{int(left % 60):02d} left"


def _lines(total: float, jobs: int, before: int, workers: int) -> Callable[[float, int], None]:
    start = time.monotonic()
    said = [time.monotonic()]

    def update(seconds: float, done: int) -> None:
        now = time.monotonic()
        if now - said[0] >= 20 or done == jobs:
            said[0] = now
            left = _eta(seconds, total, now - start, workers)
            print(f"{_TITLE}: {done}/{jobs} jobs {left}", file=sys.stderr, flush=True)

    if before:
        saved = f"{_TITLE}: {before} of {jobs} jobs were saved by an earlier run"
        print(saved, file=sys.stderr, flush=True)
    return update
