"""Engines by name."""

from __future__ import annotations

from separatrix.errors import SpecError, UnknownNameError
from separatrix.sweeps.engines.base import Engine

ENGINES = ("local", "ray")


def chosen(name: str, *, workers: int | None, device: str, address: str) -> Engine:
    """The engine of that name, with its workers at hand. Raises UnknownNameError, SpecError for
    settings of another engine, and what the engine itself raises.
    """
    if name == "local":
        if address:
            raise SpecError("an address is of a Ray cluster: take --engine ray with it")
        from separatrix.sweeps.engines.local import LocalEngine

        return LocalEngine(workers, device=device)
    if name == "ray":
        if workers is not None:
            raise SpecError(
                "a Ray cluster has one worker for each of its CPUs or GPUs; leave --workers out"
            )
        from separatrix.sweeps.engines.ray import RayEngine

        return RayEngine(address or "auto", device=device)
    raise UnknownNameError.of("engine", name, ENGINES)
