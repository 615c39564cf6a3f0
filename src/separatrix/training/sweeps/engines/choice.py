"""Engines by name."""

from __future__ import annotations

from separatrix.core.errors import SpecError, UnknownNameError
from separatrix.training.sweeps.engines.base import Engine

ENGINES = ("local", "ray")


def check_choice(name: str, *, workers: int | None, device: str, address: str) -> None:
    """Raises UnknownNameError for an unknown engine, SpecError for settings of another one, and
    EngineError for a device that is not on this machine; starts nothing.
    """
    if name not in ENGINES:
        raise UnknownNameError.of("engine", name, ENGINES)
    if name == "local":
        if address:
            raise SpecError("an address is of a Ray cluster: take --engine ray with it")
        from separatrix.training.sweeps.engines.local import devices

        devices(device)
    if name == "ray" and workers is not None:
        raise SpecError(
            "a Ray cluster has one worker for each of its CPUs or GPUs; leave --workers out"
        )


def chosen(name: str, *, workers: int | None, device: str, address: str) -> Engine:
    """The engine of that name, with its workers at hand. Raises what `check_choice` and the engine
    itself raise.
    """
    check_choice(name, workers=workers, device=device, address=address)
    if name == "local":
        from separatrix.training.sweeps.engines.local import LocalEngine

        return LocalEngine(workers, device=device)
    from separatrix.training.sweeps.engines.ray import RayEngine

    return RayEngine(address or "auto", device=device)
