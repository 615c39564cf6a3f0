"""The units of work behind the table: each is plain data, runs alone in a process, and leaves a
JSON result that a later run picks up.
"""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from separatrix.core.errors import SeparatrixError
from separatrix.core.evidence.atomic import write_atomic
from separatrix.core.evidence.canonical import canonical, sha256
from separatrix.core.evidence.code import code_digest

if TYPE_CHECKING:
    from separatrix.training.run import Run

SEARCH_SECONDS = 120.0


@dataclass(frozen=True, kw_only=True)
class Job:
    """One piece of evidence to make: `construct` weights, `refute` a drawn model, `train` some
    seeds as one pack, and, where it is wanted, refute what the first of them gave.
    """

    do: Literal["construct", "refute", "train"]
    task: str
    architecture: str | None = None
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
    checkpoint(job, store).unlink(missing_ok=True)
    return result


Work = tuple[dict[str, Any], list[str]]


def _construct(job: Job, store: Path) -> Work:
    from separatrix.constructions import construct
    from separatrix.stacks.architecture import Architecture
    from separatrix.tasks import parse_task

    built = construct(
        parse_task(job.task),
        None if job.architecture is None else Architecture.parse(job.architecture),
    )
    built.save_weights(store)
    return {"records": [built.record.envelope()]}, [built.record.weights]


def _refute(job: Job, store: Path) -> Work:
    from separatrix.checks.refute import refute
    from separatrix.stacks.architecture import Architecture
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
    from separatrix.checks.refute import refute
    from separatrix.tasks import parse_task
    from separatrix.training.alone import saved
    from separatrix.training.packs import Pack

    pack = Pack(runs_of(job))
    trainer = saved(pack, checkpoint(job, store))
    # a clock would make two equal results differ
    outcomes = [replace(trainer.outcomes()[key], seconds=0.0) for key in pack.keys]
    result: dict[str, Any] = {"outcomes": [outcome.to_json() for outcome in outcomes]}
    if job.refuted:
        model = trainer.model(pack.keys[0])
        task = parse_task(job.task)
        result |= _found(refute(model, task, budget=SEARCH_SECONDS, seed=job.seeds[0]))
    return result, []


def _found(found: Any) -> dict[str, Any]:
    from separatrix.core.evidence.records import Certificate

    if isinstance(found, Certificate):
        return {"records": [found.envelope()]}
    return {"records": [], "not_found": str(found)}


def runs_of(job: Job) -> tuple[Run, ...]:
    """The runs of a job that trains, a seed each."""
    from separatrix.training.run import Run

    assert job.architecture is not None
    return tuple(
        Run(architecture=job.architecture, task=job.task, seed=seed, **dict(job.training))
        for seed in job.seeds
    )


def checkpoint(job: Job, store: Path) -> Path:
    """Where a job that trains saves what it has done, until it has ended."""
    return store / f"{job.key}.checkpoint"


_WORK = {
    "construct": _construct,
    "refute": _refute,
    "train": _train,
}
