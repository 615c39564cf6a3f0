"""What a sweep would take: runs, packs, parameters and time, before it begins."""

from __future__ import annotations

import time
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from separatrix.core.document.cells import duration
from separatrix.models.stored.run import Run
from separatrix.theory.words import counted_as
from separatrix.training.packs import Pack, cost
from separatrix.training.sweeps.file import Sweep

MEASURED = 4
"""Packs of which some steps are done to see what they take: those that cost most."""
MOMENT = 0.5
"""Seconds of steps that each of them is given."""


@dataclass(frozen=True, kw_only=True)
class Plan:
    """What is still to do."""

    name: str
    runs: int
    ended: int
    packs: int
    members: tuple[int, int]
    """Of the smallest and of the largest pack."""
    parameters: tuple[int, int]
    """Of the smallest and of the largest model."""
    workers: int
    device: str
    seconds: float | None
    """If none stops early; None where nothing is to do."""

    def to_json(self) -> dict[str, Any]:
        return asdict(self)

    def rows(self) -> list[tuple[str, str]]:
        """As a person reads it: names and what they are."""
        before = f", {self.ended:,} of which have ended before" if self.ended else ""
        rows = [("runs", f"{self.runs:,}{before}")]
        if self.seconds is None:
            return [*rows, ("to do", "nothing")]
        workers = f"{counted_as(self.workers, 'worker')} on {self.device}"
        return [
            *rows,
            ("packs", f"{self.packs:,} of {_span(self.members)} models trained together"),
            ("parameters", f"{_span(self.parameters)} a model"),
            ("time", f"about {duration(self.seconds)} with {workers} if no run stops early"),
        ]


def plan(
    wanted: Sweep, packs: Sequence[Pack], ended: set[str], *, workers: int, device: str
) -> Plan:
    """What `packs` of a sweep would take with so many workers like this machine's. Trains a little
    to see how quick it is. Raises what building the models raises.
    """
    shapes = {run.shape for pack in packs for run in pack.runs if run.key not in ended}
    return Plan(
        name=wanted.name,
        runs=len(wanted.runs),
        ended=len(ended),
        packs=len(packs),
        members=_ends(len(pack.runs) for pack in packs),
        parameters=_ends(map(_parameters, shapes)),
        workers=workers,
        device=device,
        seconds=_seconds(packs, workers, device) if packs else None,
    )


def _parameters(run: Run) -> int:
    """Of the model that a run trains."""
    from separatrix.models.model import parameter_count, trained_config

    sizes = {"width": run.width, "hidden": run.hidden, "length": run.length}
    return parameter_count(trained_config(run.stack.spec, run.trained, **sizes))


def _seconds(packs: Sequence[Pack], workers: int, device: str) -> float:
    """What all packs take; of shapes that are not tried, what the others take for their cost."""
    by_shape: defaultdict[Run, list[Pack]] = defaultdict(list)
    for pack in packs:
        by_shape[pack.runs[0].shape].append(pack)
    costs = {shape: sum(map(cost, own)) for shape, own in by_shape.items()}
    tried = [by_shape[shape][0] for shape in sorted(costs, key=costs.__getitem__)[-MEASURED:]]
    taken = {pack.runs[0].shape: _all_steps(pack, device) / cost(pack) for pack in tried}
    known = sum(taken[pack.runs[0].shape] * cost(pack) for pack in tried) / sum(map(cost, tried))
    total = sum(amount * taken.get(shape, known) for shape, amount in costs.items())
    return max(total / workers, known * max(map(cost, packs)))


def _all_steps(pack: Pack, device: str) -> float:
    """Seconds of all steps of a pack, from some of them."""
    from separatrix.training.engine import Trainer

    trainer = Trainer(pack, device=device)
    # what is done once is no part of a step
    trainer.advance(1)
    start = time.perf_counter()
    before = trainer.step
    while time.perf_counter() - start < MOMENT and trainer.active:
        trainer.advance(1)
    done = max(1, trainer.step - before)
    return (time.perf_counter() - start) / done * pack.runs[0].steps


def _ends(sizes: Iterable[int]) -> tuple[int, int]:
    found = sorted(sizes) or [0]
    return found[0], found[-1]


def _span(ends: tuple[int, int]) -> str:
    low, high = ends
    return f"{low:,}" if low == high else f"{low:,} to {high:,}"
