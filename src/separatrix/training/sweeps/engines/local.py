"""The engine of one machine: worker processes, one for each core or each GPU."""

from __future__ import annotations

from dataclasses import replace
from functools import partial

from separatrix.core.errors import EngineError
from separatrix.training.packs import Slice, Update
from separatrix.training.sweeps.engines.base import (
    Engine,
    Failed,
    Lost,
    Result,
    Work,
    attempted,
    described,
)
from separatrix.training.sweeps.engines.pool import Died, Done, Processes, Raised


class LocalEngine(Engine):
    """Processes of this machine. On `cuda` they share its devices in turn, one each unless
    `processes` says otherwise.

    Raises SizeError for fewer than one process, and EngineError for a device that is not there.
    """

    def __init__(
        self, processes: int | None = None, *, device: str = "cpu", work: Work | None = None
    ) -> None:
        self._devices = devices(device)
        if processes is None and self._devices != ["cpu"]:
            processes = len(self._devices)
        self._processes: Processes[Slice, Update | Failed] = Processes(
            partial(attempted, train if work is None else work),
            processes,
            first=load if work is None else None,
        )

    @property
    def workers(self) -> int:
        return self._processes.most

    def submit(self, piece: Slice) -> int:
        def placed(worker: int) -> Slice:
            return replace(piece, device=self._devices[worker % len(self._devices)])

        return self._processes.submit_for(placed, piece.pack.key)

    def wait(self, timeout: float) -> list[tuple[int, Result]]:
        return [(ticket, _result(back)) for ticket, back in self._processes.wait(timeout)]

    def close(self) -> None:
        self._processes.close()


def devices(device: str) -> list[str]:
    """What workers compute on, in turn: a device as it was named, or each of `cuda`. Raises
    EngineError for one that is not there.
    """
    if device == "cpu":
        return [device]
    if not device.startswith("cuda"):
        raise EngineError(f"there is no device '{device[:60]}'; take cpu, cuda or cuda:1")
    import torch

    there = [f"cuda:{number}" for number in range(torch.cuda.device_count())]
    if device == "cuda" and there:
        return there
    if device not in there:
        known = ", ".join(there) or "no CUDA device; take --device cpu"
        raise EngineError(f"there is no device '{device}' on this machine; there is {known}")
    return [device]


def load() -> None:
    """Loads what training takes, once for each worker."""
    import separatrix.training.work  # noqa: F401


def train(piece: Slice) -> Update:
    """One slice of training."""
    from separatrix.training.work import work

    return work(piece)


def _result(back: Done[Update | Failed] | Raised | Died) -> Result:
    match back:
        case Done():
            return back.value
        case Raised():
            return Failed(described(back.error))
        case Died():
            return Lost(back.reason)
