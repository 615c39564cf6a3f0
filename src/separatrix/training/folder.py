"""What `separatrix train` writes of a model: its weights, its description, its training and what
was measured of it.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from separatrix.core.evidence.atomic import write_atomic
from separatrix.core.evidence.canonical import canonical, sha256
from separatrix.core.evidence.code import code_version
from separatrix.core.evidence.folder import new_folder
from separatrix.core.evidence.outcome import Outcome
from separatrix.core.evidence.records import enveloped
from separatrix.models.stored.description import CONFIG, description
from separatrix.models.stored.trained import KIND, RECORD, TRAINING, WEIGHTS
from separatrix.models.stored.weights import weight_bytes
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
