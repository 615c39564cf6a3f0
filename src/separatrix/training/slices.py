"""What goes to whoever trains a pack for a while, and what comes back: plain data that travels
between processes and machines. Needs no torch.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from separatrix.core.evidence.outcome import Outcome
    from separatrix.training.packs import Pack


@dataclass(frozen=True)
class Metric:
    """How one run stands after a step: means over the steps since the metric before."""

    key: str
    """The run's."""
    step: int
    loss: float
    accuracy: float
    learning_rate: float


@dataclass(frozen=True, kw_only=True)
class Slice:
    """A piece of a pack's training: from a checkpoint on, for some seconds."""

    pack: Pack
    checkpoint: bytes | None
    """None at the start."""
    seconds: float
    """Most seconds of training; some steps are done in any case."""
    device: str = "cpu"
    compile: bool = False
    imports: tuple[str, ...] = ()
    """Modules to import first, which register mechanisms of one's own."""


@dataclass(frozen=True, kw_only=True)
class Update:
    """What a slice gave."""

    metrics: tuple[Metric, ...]
    finished: tuple[tuple[str, Outcome], ...]
    """The runs that ended in this slice, by key."""
    checkpoint: bytes | None
    """Where to go on; None once every run has ended, and where the pack is halved."""
    step: int
    """Steps done since the pack's start."""
    seconds: float
    """What this slice took."""
    halves: tuple[Pack, Pack] | None = None
    """The two packs to go on with, where the device's memory was too small for one."""
    half_checkpoints: tuple[bytes | None, bytes | None] = (None, None)
    """Where each of the halves goes on."""
