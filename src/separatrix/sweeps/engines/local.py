"""The engine of one machine: worker processes, one for each core or each GPU."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import partial

from separatrix.sweeps.engines.base import Engine, Failed, Lost, Result, Work, attempted, described
from separatrix.sweeps.engines.processes import Died, Done, Processes, Raised
from separatrix.training.slices import Slice, Update


class LocalEngine(Engine):
    """Processes of this machine. On `cuda` they share its devices in turn, one each unless
    `processes` says otherwise.

    Raises SizeError for fewer than one process, and BackendError for a device that is not there.
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
