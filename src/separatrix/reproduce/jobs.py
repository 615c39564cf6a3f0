"""The units of work behind the table: each is plain data, runs alone in a process, and leaves a
JSON result that a later run picks up.
"""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Literal

from separatrix.errors import SeparatrixError
from separatrix.evidence.atomic import write_atomic
from separatrix.evidence.canonical import canonical, sha256
from separatrix.evidence.code import code_digest

SEARCH_SECONDS = 120.0


@dataclass(frozen=True, kw_only=True)
class Job:
    """One piece of evidence to make: `construct` weights, `refute` a drawn model, `train` one
    seed, `refute_trained` a run's model.
    """

    do: Literal["construct", "refute", "train", "refute_trained"]
    task: str
    architecture: str | None = None
    seed: int = 0
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
        return f"{self.do.replace('_', ' ')} {self.architecture or ''} {self.task}".replace(
            "  ", " "
        )


def stored(job: Job, store: Path) -> dict[str, Any] | None:
    """The saved result of a job, or None when there is none (or it was cut off)."""
    try:
        data = json.loads((store / f"{job.key}.json").read_text())
        assert data["job"] == job.key
        assert all((store / name).is_file() for name in data["files"])
        return data["result"]
    except (OSError, ValueError, KeyError, TypeError, AssertionError):
        return None


def perform(job: Job, store: Path) -> dict[str, Any]:
    """Does a job and saves its result under its key. Raises what the work raises, naming the
    job.
    """
    try:
        result, files = _WORK[job.do](job, store)
    except SeparatrixError as error:
        raise type(error)(f"{job.title}: {error}") from None
    write_atomic(
        store / f"{job.key}.json",
        canonical({"job": job.key, "result": result, "files": files}) + "\n",
    )
    return result


Work = tuple[dict[str, Any], list[str]]


def _construct(job: Job, store: Path) -> Work:
    from separatrix.architecture import Architecture
    from separatrix.constructions import construct
    from separatrix.tasks import parse_task

    built = construct(
        parse_task(job.task),
        None if job.architecture is None else Architecture.parse(job.architecture),
    )
    built.save_weights(store)
    return {"records": [built.record.envelope()]}, [built.record.weights]


def _refute(job: Job, store: Path) -> Work:
    from separatrix.architecture import Architecture
    from separatrix.searches import refute
    from separatrix.tasks import parse_task

    assert job.architecture is not None
    architecture = Architecture.parse(job.architecture)
    found = refute(
        architecture,
        parse_task(job.task),
        budget=SEARCH_SECONDS,
        seed=job.seed,
    )
    return _found(found), []


def _train(job: Job, store: Path) -> Work:
    from separatrix.training.loop import train

    run = run_of(job)
    trained = train(run)
    return {
        "correct": trained.correct,
        "tested": run.tested,
        # the loop ends early for nothing else
        "stopped": "steps" if trained.steps_done == run.steps else "solved",
        "steps_done": trained.steps_done,
        "parameters": trained.parameters,
    }, []


def _refute_trained(job: Job, store: Path) -> Work:
    from separatrix.searches import refute
    from separatrix.tasks import parse_task
    from separatrix.training.loop import train

    return (
        _found(
            refute(
                train(run_of(job)).model, parse_task(job.task), budget=SEARCH_SECONDS, seed=job.seed
            )
        ),
        [],
    )


def _found(found: Any) -> dict[str, Any]:
    from separatrix.evidence.records import Certificate

    if isinstance(found, Certificate):
        return {"records": [found.envelope()]}
    return {"records": [], "not_found": str(found)}


def run_of(job: Job) -> Any:
    """The `training.Run` of a job that trains."""
    from separatrix.training.run import Run

    assert job.architecture is not None
    return Run(
        architecture=job.architecture,
        task=job.task,
        seed=job.seed,
        **dict(job.training),
    )


_WORK = {
    "construct": _construct,
    "refute": _refute,
    "train": _train,
    "refute_trained": _refute_trained,
}
