"""Training: what gradient descent finds, measured with seeds, budget, interval and chance."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from separatrix.training.alone import Progress, Trained
    from separatrix.training.run import Run


def train(run: Run, *, progress: Progress | None = None, device: str = "cpu") -> Trained:
    """`separatrix.training.alone.train`; what needs no torch here does not wait for it."""
    from separatrix.training import alone

    return alone.train(run, progress=progress, device=device)
