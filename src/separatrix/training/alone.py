"""Training of a single model, and the folder that keeps it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from separatrix.core.errors import SizeError
from separatrix.core.evidence.atomic import write_atomic
from separatrix.core.evidence.canonical import canonical, sha256
from separatrix.core.evidence.code import code_version
from separatrix.core.evidence.folder import new_folder
from separatrix.core.evidence.outcome import Outcome
from separatrix.core.evidence.records import Measurement, enveloped
from separatrix.models.model import Model
from separatrix.models.stored.description import CONFIG, description
from separatrix.models.stored.trained import KIND, RECORD, TRAINING, WEIGHTS
from separatrix.models.stored.weights import weight_bytes
from separatrix.training.engine import Trainer
from separatrix.training.packs import Pack
from separatrix.training.record import measurement
from separatrix.training.run import Run

if TYPE_CHECKING:
    from separatrix.models.model import Model


def write_folder(out: Path, run: Run, outcome: Outcome, model: Model) -> None:
    """Writes a new folder, whole or not at all. Raises OutputError where `out` exists or cannot be
    written, and what the record of the outcome raises.
    """
    run = run.canonical()
    weights = weight_bytes(model.cpu())
    training = enveloped(
        KIND,
        {
            "run": run.to_json(),
            "outcome": outcome.to_json(),
            "version": code_version(),
            "weights_sha256": sha256(weights),
        },
    )
    record = measurement(run, [outcome])
    with new_folder(out) as folder:
        write_atomic(folder / WEIGHTS, weights)
        write_atomic(folder / CONFIG, canonical(description(model.config)) + "\n")
        write_atomic(folder / TRAINING, canonical(training) + "\n")
        write_atomic(folder / RECORD, canonical(record.envelope()) + "\n")


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
    def correct(self) -> int:
        """Right answers among `run.tested` fresh instances."""
        return self.outcome.correct

    @property
    def steps_done(self) -> int:
        return self.outcome.steps_done

    @property
    def parameters(self) -> int:
        return self.outcome.parameters

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
        write_folder(Path(folder), self.run, self.outcome, self.model)


def train(run: Run, *, progress: Progress | None = None, device: str = "cpu") -> Trained:
    """Trains one model. The same run on the same machine gives the same result.

    Raises what parsing the texts and building the model raise, SizeError when a loss or a parameter
    is no longer finite, and CheckFailed for an accuracy that no weights can have.
    """
    trainer = Trainer(Pack((run,)), device=device)
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
