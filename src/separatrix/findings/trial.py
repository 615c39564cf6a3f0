"""Layouts of one's own, scaled down and trained to the end beside each other.

First each layout's learning rate is chosen on two seeds that nothing else uses; then all are
trained with the same seeds and steps. What is proved of a layout at its own size is asked again at
the small one: where the two differ, that is lost, and said.
"""

from __future__ import annotations

import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from itertools import combinations
from math import ceil
from pathlib import Path
from typing import Any

from separatrix.cards.measured.table import Rate, Row, Table
from separatrix.core.errors import SizeError, SpecError
from separatrix.findings.base import LEAST_SEEDS, Contrast, Experiment, Picture
from separatrix.findings.page import proved
from separatrix.findings.results import Results
from separatrix.findings.running import run, runs_of
from separatrix.findings.scaling import WIDTH, left_out, scaled
from separatrix.stacks.architecture import Architecture
from separatrix.tasks import Task, parse_task
from separatrix.theory.words import counted_as
from separatrix.training.sweeps.planning import Plan
from separatrix.training.sweeps.sweep import planned

HIDDEN, BATCH, TESTED = 64, 32, 1024
TOKENS = 128
"""Most of a prompt."""
RATES, RATE_SEEDS = (1.5e-3, 3e-3, 6e-3), (100, 101)
STEPS = 3000
WARMUP = 50
"""Steps, whatever N is; fewer where all of a trial are hardly more."""
SMALL = {
    "recall": ("recall:n=16,K=16,V=16,form=independent,queries=all", STEPS),
    "seqcomp": ("seqcomp:L=2,m=4,n_1=3,queries=all,split=1,stages=1", STEPS),
    "seqcomp:L=3": ("seqcomp:L=3,m=4,n_1=2,n_2=2,queries=8,split=1,stages=1", 2 * STEPS),
    "parity": ("parity:n=40,queries=all", 9600),
}
"""Task (and steps, if not two) -> what stands for too long prompts of it, and training steps."""
_PROCESS = 300 << 20
"""Bytes of a worker before it has a model."""


@dataclass(frozen=True, kw_only=True)
class Trial:
    """Layouts beside each other on one task."""

    own: Mapping[str, Architecture]
    small: Mapping[str, Architecture]
    asked: Task
    task: Task
    """The small one."""
    steps: int
    seeds: int

    @property
    def searched(self) -> int:
        return max(1, self.steps // 2)

    def rules(self) -> list[str]:
        """How all was scaled, and what that lost, a sentence each."""
        small = "" if self.asked == self.task else f" as {self.task.spec}"
        rates = ", ".join(f"{rate:g}" for rate in RATES)
        said = [
            f"task: {self.asked.spec}{small}, {self.task.length:,} tokens",
            f"every model: width {WIDTH}, MLP {HIDDEN}, batch {BATCH}, Muon, at most {self.steps:,}"
            f" steps, {self.seeds} seeds; rate among {rates}, chosen on {len(RATE_SEEDS)} other"
            f" seeds in at most {counted_as(self.searched, 'step')}",
        ]
        ids = {name: own.vocabulary for name, own in self.own.items() if own.vocabulary is not None}
        if len(set(ids.values())) > 1:
            told = ", ".join(f"{name} {many:,}" for name, many in ids.items())
            said.append(
                f"vocabularies ({told}) are not kept: every model has the task's"
                f" {self.task.vocabulary:,} token ids"
            )
        for name, own in self.own.items():
            small = self.small[name]
            dropped = f"; without {', '.join(without)}" if (without := left_out(own)) else ""
            layers = counted_as(len(own), "layer")
            said.append(f"{name}: {layers} as {len(small)}: {small.spec}{dropped}")
            bare = sum(not any(getattr(part, "conv", 0) for part in layer) for layer in small)
            if 0 < bare < len(small):
                said.append(
                    f"{name}: {bare} of {len(small)} layers have no short convolution,"
                    " which the others have: what a place shows may be the convolution's"
                )
            before, after = proved(own, self.asked), proved(small, self.task)
            lost = f"{before} at its own size, {after} here, which scaling did not keep"
            told = f"{before} at both sizes" if before == after else lost
            said.append(f"{name}, proved of one question: {told}")
        return said

    def remarks(self, table: Table, results: Results) -> list[str]:
        """What a reader has to know of the rows, and what they do not show, a sentence each."""
        said: list[str] = []
        if results.needed() > self.steps and any(map(results.grey, results.cells.values())):
            said.append(f"Too few steps to compare: give --steps {results.needed()}.")
        if not results.needed():
            said.append("No seed solved it, so that nothing is compared: give more --steps.")
        if ", " in (code := table.provenance.version):
            said.append(f"Differing code trained these ({code}): what differs may be the code's.")
        ends = [x.name for x in results.cells.values() if x.rate in (RATES[0], RATES[-1])]
        if ends:
            said.append(f"The best rate lies at the end of those tried: {', '.join(ends)}.")
        here, there = (max(map(len, each.values())) for each in (self.small, self.own))
        said.append(
            f"Measured: depth {here}, width {WIDTH}, prompts of {self.task.length:,} tokens."
            f" Nothing here says that it holds at depth {there} and {self.asked.length:,} tokens"
            " in a model of real width."
        )
        return said

    def search(self) -> Experiment:
        """The runs that choose rates."""
        axes = {"grid": {"learning_rate": list(RATES)}, "seeds": list(RATE_SEEDS)}
        return self._experiment("trial-rates", self.searched, {}, axes)

    def compared(self, rates: Mapping[str, float]) -> Experiment:
        """The runs that are compared, each layout at its own rate; every pair is a contrast."""
        return self._experiment("trial", self.steps, rates, {"seeds": self.seeds})

    def _experiment(
        self, name: str, steps: int, rates: Mapping[str, float], axes: Mapping[str, Any]
    ) -> Experiment:
        sizes = {"width": WIDTH, "hidden": HIDDEN, "batch": BATCH, "tested": TESTED}
        warmup = max(1, min(WARMUP, self.steps // 4))
        own = {"task": self.task.spec, "steps": steps, "warmup": warmup, "rule": "study"}
        return Experiment(
            name=name,
            title=f"{' against '.join(self.small)} on {self.task.spec}",
            question="Which of these layouts learns it, by how many seeds, and how soon?",
            layouts={
                name: {"architecture": one.spec}
                | ({"learning_rate": rates[name]} if name in rates else {})
                for name, one in self.small.items()
            },
            sweep={"baseline": {**sizes, **own}, **axes},
            contrasts=tuple(Contrast(*two) for two in combinations(self.small, 2)),
            text="{{table}}\n\n{{contrasts}}\n\n{{picture}}\n\n{{picture curves}}",
            pictures={"": Picture(self.task.spec), "curves": Picture(self.task.spec, curves=True)},
        )

    def plan(self, *, store: Path, workers: int | None, device: str) -> Plan:
        """What all of it takes here, if no run stops early."""
        usual = self.compared(dict.fromkeys(self.small, RATES[1]))
        runs = [*runs_of(self.search().cells()), *runs_of(usual.cells())]
        return planned(runs, name="trial", store=store, workers=workers, device=device)

    def memory(self, plan: Plan) -> int:
        """Bytes of all workers together, about, at most: weights, gradients and what the optimiser
        keeps, and what layers keep of a batch until the gradients are there.
        """
        tokens = self.task.length + 1
        layers = max(map(len, self.small.values()))
        kept = BATCH * tokens * layers * (40 * WIDTH + 2 * tokens)
        return plan.workers * (_PROCESS + plan.members[1] * 4 * (4 * plan.parameters[1] + kept))

    def short(self, plan: Plan, hours: float) -> str:
        """Why so many hours do not suffice, and what would; "" where they do, and for a trial that
        was begun.
        """
        if plan.seconds is None or plan.ended or plan.seconds <= 3600 * hours:
            return ""
        # a search has half of the steps
        search = len(RATES) * len(RATE_SEEDS) / 2
        seed = plan.seconds / 3600 / (search + self.seeds)
        fewer = max(1, int(hours / seed - search))
        fit, every = (ceil(100 * seed * (search + many)) / 100 for many in (fewer, self.seeds))
        return (
            f"--hours {hours:g} do not suffice: --seeds {self.seeds} may take {every:g} hours, and"
            f" --seeds {fewer} {fit:g}; with fewer than {LEAST_SEEDS} no difference can be shown"
        )

    def train(self, *, store: Path, show: bool = True, **where: Any) -> tuple[Experiment, Table]:
        """Chooses rates and trains all; what the store has is not trained again. `where`:
        what else `sweep` takes. Raises what `sweep` raises, and SpecError where no run of a
        layout ended.
        """
        rows = run(self.search(), store=store, show=show, **where).rows
        found = self.compared({name: chosen(name, rows) for name in self.small})
        table = run(found, store=store, show=show, **where)
        asked = ["--task", self.asked.spec, "--seeds", str(self.seeds), "--steps", str(self.steps)]
        command = shlex.join(["separatrix", "trial", *self.own, *asked])
        return found, replace(table, provenance=replace(table.provenance, command=command))


def chosen(name: str, rows: Sequence[Row]) -> float:
    """A layout's rate: the one that solved most seeds, then soonest, then with the best answers.
    Raises SpecError where no run ended.
    """
    found = [rate for row in rows if row.labels["layout"] == name for rate in row.rates]
    if not found:
        raise SpecError(f"no run of {name} ended; `separatrix runs list --status failed` says why")

    def merit(rate: Rate) -> tuple[int, float, Fraction]:
        steps = [seed.steps_done for seed in rate.trials if seed.solved]
        answers = sum((seed.accuracy for seed in rate.trials), Fraction(0))
        return len(steps), -sum(steps) / len(steps) if steps else 0.0, answers / len(rate.trials)

    return max(found, key=merit).learning_rate


def trial(layouts: Mapping[str, Architecture], task: str, *, seeds: int, steps: int = 0) -> Trial:
    """The trial of layouts by name; with 0 steps, as many as the task usually takes. Raises
    SpecError, SizeError or UnknownNameError for what cannot be scaled or trained.
    """
    if len(layouts) not in (2, 3):
        raise SpecError("a trial compares layouts: give two or three different ones")
    known = task.partition(":")[0].casefold()
    if ":" in task and (hops := parse_task(task).sizes().get("L", 2)) != 2:
        known += f":L={hops}"
    usual, most = SMALL.get(known, (task, STEPS))
    asked = parse_task(task if ":" in task else usual)
    if asked.length > TOKENS and known not in SMALL:
        raise SizeError(
            f"{asked.spec} has {asked.length:,} tokens, of which a trial trains {TOKENS} at most;"
            f" give smaller sizes, or one of {', '.join(SMALL)}, of which a small size is known"
        )
    found = Trial(
        own=layouts,
        small=scaled(layouts),
        asked=asked,
        task=parse_task(usual) if asked.length > TOKENS else asked,
        steps=steps or most,
        seeds=seeds,
    )
    # what cannot be trained is told before anything is
    found.search().cells()
    return found
