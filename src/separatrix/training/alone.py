"""Training of a single model, the folder that keeps it, and a training that may stop at any moment:
it saves what it has done, and goes on from there.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from separatrix.core.errors import EvidenceError, OutputError, SizeError, SpecError
from separatrix.core.evidence.canonical import canonical, code_version, sha256
from separatrix.core.evidence.folder import new_folder, write_atomic
from separatrix.core.evidence.outcome import Outcome
from separatrix.core.evidence.records import Measurement, enveloped
from separatrix.models.model import Model
from separatrix.models.stored.description import CONFIG, description
from separatrix.models.stored.record import measured, tests
from separatrix.models.stored.run import Run
from separatrix.models.stored.trained import KIND, RECORD, TRAINING, WEIGHTS
from separatrix.models.stored.weights import weight_bytes
from separatrix.stacks.architecture.resolve import Stack, stack_of
from separatrix.tasks import Task, task_of
from separatrix.theory.fails.a_accuracy import check_answers
from separatrix.training.engine import Trainer
from separatrix.training.packs import Pack
from separatrix.training.sweeps.engines.pool import devices
from separatrix.training.sweeps.processes import Stopping


def measurement(run: Run, outcomes: Sequence[Outcome]) -> Measurement:
    """The record of several seeds of one run, held to Theorem A: `measured`. Raises CheckFailed,
    too, for an accuracy that no weights can have.
    """
    record = measured(run, outcomes)
    for several in zip(*(tests(run, outcome) for outcome in outcomes), strict=True):
        pairs = [(one.right, one.due) for one in several]
        check_answers(run.stack, several[0].task, pairs, run.tested)
    return record


Progress = Callable[[int, int], None]
"""Called with (steps done, steps in all)."""
_STEPS = 5
"""Steps from one report of progress to the next."""


@dataclass(frozen=True, kw_only=True)
class Trained:
    """What one run gave: its outcome, and the model."""

    run: Run
    outcome: Outcome
    model: Model = field(repr=False)

    @property
    def measurement(self) -> Measurement:
        """The accuracy as a record of evidence. Raises CheckFailed for one that no weights can
        have.
        """
        return measurement(self.run, [self.outcome])

    def save(self, folder: Path | str) -> None:
        """Writes model, training and measurement into a new folder, which `refute`, `verify` and
        `evaluate` take. Raises OutputError where it exists or cannot be written.
        """
        run = self.run.canonical()
        weights = weight_bytes(self.model.cpu())
        training = {
            "run": run.to_json(),
            "outcome": self.outcome.to_json(),
            "version": code_version(),
            "weights_sha256": sha256(weights),
        }
        record = measurement(run, [self.outcome]).envelope()
        with new_folder(Path(folder)) as new:
            write_atomic(new / WEIGHTS, weights)
            write_atomic(new / CONFIG, canonical(description(self.model.config)) + "\n")
            write_atomic(new / TRAINING, canonical(enveloped(KIND, training)) + "\n")
            write_atomic(new / RECORD, canonical(record) + "\n")


def train(
    run: Run | Stack,
    task: str | Task | None = None,
    *,
    progress: Progress | None = None,
    device: str = "cpu",
    **settings: Any,
) -> Trained:
    """Trains one model: a run, or a stack on a task with fields of `Run` as `settings` (steps=500;
    seed 0 unless told). The same run on the same machine gives the same result.

    Raises SpecError for a stack without a task, or a run with one, what reading the texts and
    building the model raise, SizeError when a loss or a parameter is no longer finite,
    EngineError for a device that is not there, and CheckFailed for an accuracy that no weights can
    have.
    """
    if not isinstance(run, Run):
        if task is None or "architecture" in settings:
            raise SpecError("train takes a Run, or a stack and a task: train('full', 'eva:n=8')")
        texts = {"architecture": stack_of(run).spec, "task": task_of(task).spec, "seed": 0}
        run = Run.from_json(texts | settings).canonical()
        run.check()
    elif task is not None or settings:
        raise SpecError("a Run says its task and its settings itself: train(run)")
    trainer = Trainer(Pack((run,)), device=devices(device)[0])
    while trainer.active:
        trainer.advance(_STEPS)
        if progress is not None:
            progress(trainer.step, run.steps)
    return ended(trainer, device)


def ended(trainer: Trainer, device: str = "cpu") -> Trained:
    """What the training of a single model gave, once it has ended. Raises SizeError where it
    diverged.
    """
    (run,) = trainer.pack.runs
    ((key, outcome),) = trainer.outcomes().items()
    if outcome.status == "diverged":
        raise SizeError(
            f"training of {run.architecture} on {run.task} diverged at step"
            f" {outcome.steps_done} (seed {run.seed}); lower learning_rate={run.learning_rate}"
        )
    return Trained(run=run, outcome=outcome, model=trainer.model(key).to(device))


SAVE_EVERY = 10.0
"""Seconds of training that whoever kills the process loses at most."""
Told = Callable[[Trainer], None]


def saved(pack: Pack, file: Path, *, device: str = "cpu", told: Told | None = None) -> Trainer:
    """Trains a pack to its end, from the checkpoint in `file` on where there is one. The file stays
    until whoever has written what came out removes it.

    Ctrl-C, or being told to end, waits for the end of a step and saves, then raises
    KeyboardInterrupt, or SystemExit; a second time does not wait. Raises OutputError where the file
    cannot be written, EvidenceError where it holds no checkpoint of this pack and this version of
    the code, and what training raises.
    """
    trainer = _begun(pack, file, device)
    if trainer.active:
        # before hours of training, not after
        write_atomic(file, trainer.checkpoint())
    last = time.monotonic()
    with Stopping() as stopping:
        while trainer.active:
            trainer.advance(1)
            if told is not None:
                told(trainer)
            if stopping.asked or time.monotonic() - last >= SAVE_EVERY:
                write_atomic(file, trainer.checkpoint())
                last = time.monotonic()
            stopping.heed()
    # tested already: what comes next is not done twice either
    write_atomic(file, trainer.checkpoint())
    return trainer


def _begun(pack: Pack, file: Path, device: str) -> Trainer:
    try:
        data = file.read_bytes()
    except FileNotFoundError:
        return Trainer(pack, device=device)
    except OSError as error:
        raise OutputError(f"{file}: cannot be read: {error.strerror or error}") from None
    try:
        return Trainer.resumed(pack, data, device=device)
    except EvidenceError as error:
        raise EvidenceError(f"{file}: {error}; remove it, or give another --out") from None
