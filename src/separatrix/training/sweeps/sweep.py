"""A sweep from its file to its last run: what the store does not have yet is trained."""

from __future__ import annotations

import os
import socket
import sys
import uuid
from collections.abc import Callable, Mapping, Sequence
from contextlib import nullcontext
from functools import partial
from pathlib import Path
from typing import Any

from separatrix.core.errors import SizeError, SpecError, UnknownNameError
from separatrix.models.stored.run import Run
from separatrix.training.packs import Pack, remaining
from separatrix.training.sweeps.engines.base import Engine
from separatrix.training.sweeps.engines.pool import cores
from separatrix.training.sweeps.file import Sweep, python_sweep, read_sweep
from separatrix.training.sweeps.live import watching
from separatrix.training.sweeps.planning import Plan, plan
from separatrix.training.sweeps.schedule import run_sweep
from separatrix.training.sweeps.statistics import Summary, summary
from separatrix.training.sweeps.store import Store

Source = Path | str | Mapping[str, Any] | Sequence[Run]
"""A sweep's file, the same as a mapping, or runs."""
ENGINES = ("local", "ray")
SLICE = 20.0
"""Seconds of training between two checkpoints."""


def sweep(
    source: Source,
    *,
    store: Path | str = "sweeps.sqlite",
    name: str = "",
    engine: str | Engine = "local",
    workers: int | None = None,
    device: str = "cpu",
    address: str = "",
    imports: Sequence[str] = (),
    slice_seconds: float = SLICE,
    retry: bool = False,
    show: bool = True,
) -> Summary:
    """Trains what the store does not have yet of a sweep, and returns what all its runs show.

    Interrupted, or killed, the same call goes on. `retry` tries failed runs again. An
    `engine` of one's own stays open.

    Raises SpecError, UnknownNameError or SizeError for a sweep that is wrong, StoreError for a
    store that cannot be used, and EngineError where there is nothing to compute with.
    """
    if not slice_seconds > 0:
        raise SizeError(f"slice_seconds is {slice_seconds}; it must be above 0")
    # a wrong word is told at once, even where nothing is left to do
    opened = (
        opener(engine, workers=workers, device=device, address=address)
        if isinstance(engine, str)
        else partial(nullcontext, engine)
    )
    modules = imported(imports)
    wanted = read(source, name)
    # no other process has this name, and no other sweep of this one
    owner = f"{socket.gethostname()}:{os.getpid()}:{uuid.uuid4().hex[:6]}"
    with Store.create(store) as kept:
        keys = [run.key for run in wanted.runs]
        if retry:
            kept.retry(keys)
        kept.add(wanted.name, wanted.runs)
        ended, begun = progress(kept, wanted)
        if show:
            _say(kept.path, wanted, len(ended))
        if len(ended) < len(keys):
            with opened() as there, watching(wanted.name, shown=show) as told:
                run_sweep(
                    kept,
                    remaining(wanted.runs, ended, begun, device=device, least=there.workers),
                    there,
                    owner=owner,
                    slice_seconds=slice_seconds,
                    told=told,
                    watched=wanted.runs,
                    imports=modules,
                )
        return summary(wanted.name, kept.path, keys)


def planned(
    source: Source,
    *,
    store: Path | str,
    name: str = "",
    workers: int | None = None,
    device: str = "cpu",
) -> Plan:
    """What a sweep would take on this machine. No store is made or changed. Raises what `sweep`
    raises.
    """
    opener("local", workers=workers, device=device, address="")
    wanted = read(source, name)
    many = workers or cores()
    ended: set[str] = set()
    begun: list[Pack] = []
    if Path(store).exists():
        with Store.read(store) as kept:
            ended, begun = progress(kept, wanted)
    packs = remaining(wanted.runs, ended, begun, device=device, least=many)
    return plan(wanted, packs, ended, workers=many, device=device)


def progress(store: Store, wanted: Sweep) -> tuple[set[str], list[Pack]]:
    """The runs of a sweep that have ended, and the packs with a checkpoint that are still to train:
    these stay as they were.
    """
    ended = store.ended([run.key for run in wanted.runs])
    return ended, store.packs([run.key for run in wanted.runs if run.key not in ended])


def read(source: Source, name: str = "") -> Sweep:
    """The sweep that a file, a mapping or runs stand for; `name` wins over the file's own."""
    if isinstance(source, Path | str):
        found = read_sweep(Path(source))
    else:
        found = python_sweep(source, name="sweep")
    return Sweep(name or found.name, found.runs)


def imported(modules: Sequence[str]) -> tuple[str, ...]:
    """The modules as every worker finds them, imported here, too."""
    if not modules:
        # the room of plugins loads torch
        return ()
    from separatrix.mixers.plugins.probe import import_module

    found = tuple(
        str(Path(name).expanduser().resolve()) if name.endswith(".py") else name for name in modules
    )
    for name in found:
        import_module(name)
    return found


def _say(store: Path, wanted: Sweep, ended: int) -> None:
    left = len(wanted.runs) - ended
    before = f", {ended:,} of which have ended before" if ended else ""
    todo = f"; {left:,} to do" if ended and left else "" if left else "; nothing to do"
    said = f"{wanted.name}: {len(wanted.runs):,} runs in {store}{before}{todo}"
    print(said, file=sys.stderr)


def opener(name: str, *, workers: int | None, device: str, address: str) -> Callable[[], Engine]:
    """What opens the engine of that name, with its workers at hand; raises what the engine raises.

    At once, and starting nothing, raises UnknownNameError for an unknown engine, SpecError for
    settings of another one, and EngineError for a device that is not on this machine.
    """
    if name not in ENGINES:
        raise UnknownNameError.of("engine", name, ENGINES)
    if name == "local":
        if address:
            raise SpecError("an address is of a Ray cluster: take --engine ray with it")
        from separatrix.training.sweeps.engines.pool import LocalEngine, devices

        devices(device)
        return partial(LocalEngine, workers, device=device)
    if workers is not None:
        raise SpecError(
            "a Ray cluster has one worker for each of its CPUs or GPUs; leave --workers out"
        )
    from separatrix.training.sweeps.engines.ray import RayEngine

    return partial(RayEngine, address or "auto", device=device)
