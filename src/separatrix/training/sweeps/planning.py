"""What a sweep would take: runs, packs, parameters, operations and time, before it begins."""

from __future__ import annotations

import time
from collections import Counter, defaultdict
from collections.abc import Collection, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from separatrix.core.document.cells import duration
from separatrix.models.stored.run import Run
from separatrix.theory.words import counted_as
from separatrix.training.flops import training_flops
from separatrix.training.packs import Pack, cost
from separatrix.training.sweeps.cells import cells, varied
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
    cells: int
    varied: tuple[str, ...]
    """The fields in which cells differ."""
    seeds: int
    learning_rates: int
    packs: int
    members: tuple[int, int]
    """Of the smallest and of the largest pack."""
    parameters: tuple[int, int]
    """Of the smallest and of the largest model."""
    steps: int
    """Model-steps: steps, summed over models, if none stops early."""
    flops: int
    """Floating-point operations of these."""
    workers: int
    device: str
    seconds: float | None
    """If none stops early; None where nothing was measured."""
    measured: int
    """Packs of which some steps were done."""

    def to_json(self) -> dict[str, Any]:
        return asdict(self)

    def rows(self) -> list[tuple[str, str]]:
        """As a person reads it: names and what they are."""
        before = f", {self.ended:,} of which have ended before" if self.ended else ""
        differ = f" ({', '.join(self.varied)})" if self.varied else ""
        every = (
            f"{self.runs:,}{before}: {counted_as(self.cells, 'cell')}{differ},"
            f" {counted_as(self.learning_rates, 'learning rate')}, {counted_as(self.seeds, 'seed')}"
        )
        if self.runs == self.ended:
            return [("runs", every), ("to do", "nothing")]
        time = "not measured"
        if self.seconds is not None:
            time = (
                f"about {duration(self.seconds)} with {counted_as(self.workers, 'worker')} on"
                f" {self.device} if no run stops early; from some steps of"
                f" {counted_as(self.measured, 'pack')}, here and now"
            )
        return [
            ("runs", every),
            ("packs", f"{self.packs:,} of {_span(self.members)} models trained together"),
            ("parameters", f"{_span(self.parameters)} a model"),
            ("steps", f"at most {self.steps:,} model-steps, {self.flops:.1e} FLOPs"),
            ("time", time),
        ]


def plan(
    wanted: Sweep, packs: Sequence[Pack], ended: set[str], *, workers: int, device: str
) -> Plan:
    """What `packs` of a sweep would take with so many workers like this machine's. Trains a little
    to see how quick it is. Raises what building the models raises.
    """
    found = cells(wanted.runs)
    left = [run for pack in packs for run in pack.runs if run.key not in ended]
    many = Counter(run.shape for run in left)
    parameters = {shape: _parameters(shape) for shape in many}
    seconds, measured = _seconds(packs, workers, device)
    return Plan(
        name=wanted.name,
        runs=len(wanted.runs),
        ended=len(ended),
        cells=len(found),
        varied=varied(found),
        seeds=len({run.seed for run in wanted.runs}),
        learning_rates=len({run.learning_rate for run in wanted.runs}),
        packs=len(packs),
        members=_ends([len(pack.runs) for pack in packs]),
        parameters=_ends(parameters.values()),
        steps=sum(run.steps for run in left),
        flops=sum(many[shape] * training_flops(shape, parameters[shape]) for shape in many),
        workers=workers,
        device=device,
        seconds=seconds,
        measured=measured,
    )


def _parameters(run: Run) -> int:
    """Of the model that a run trains."""
    from separatrix.models.model import parameter_count, trained_config

    sizes = {"width": run.width, "hidden": run.hidden, "length": run.length}
    return parameter_count(trained_config(run.stack.spec, run.trained, **sizes))


def _seconds(packs: Sequence[Pack], workers: int, device: str) -> tuple[float | None, int]:
    """Seconds that all packs take, and of how many some steps were done for that."""
    costs = {pack: cost(pack) for pack in packs}
    by_shape: defaultdict[Run, float] = defaultdict(float)
    first: dict[Run, Pack] = {}
    for pack, amount in costs.items():
        by_shape[pack.runs[0].shape] += amount
        first.setdefault(pack.runs[0].shape, pack)
    dear = sorted(by_shape, key=lambda shape: -by_shape[shape])[:MEASURED]
    if not dear:
        return None, 0
    taken = {shape: _all_steps(first[shape], device) for shape in dear}
    tried = {shape: costs[first[shape]] for shape in dear}
    # of shapes that were not tried: what the others took for their cost
    known = sum(taken.values()) / sum(tried.values())
    paces = {shape: taken[shape] / tried[shape] for shape in dear}
    total = sum(amount * paces.get(shape, known) for shape, amount in by_shape.items())
    longest = max(known * amount for amount in costs.values())
    return max(total / workers, longest), len(dear)


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


def _ends(sizes: Collection[int]) -> tuple[int, int]:
    return (min(sizes, default=0), max(sizes, default=0))


def _span(ends: tuple[int, int]) -> str:
    low, high = ends
    return f"{low:,}" if low == high else f"{low:,} to {high:,}"
