"""Hybrids with and without chain of thought: steps written down against layers."""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction
from statistics import median
from typing import ClassVar

from separatrix.evidence.records import SOLVED
from separatrix.experiments.base import Cell, Experiment, ShownTable, cell, claimed
from separatrix.experiments.saying import full_layers
from separatrix.experiments.showing import share
from separatrix.experiments.stacks import RECURRENT, beside
from separatrix.practice.table import Row, Scale, Table, Trial
from separatrix.sweeps.proved import proved
from separatrix.tasks import parse_task
from separatrix.tasks.chain_of_thought import Thought
from separatrix.training.run import Run

SIZES = {"smoke": 4, "laptop": 6, "gpu": 12}
STEPS = {"smoke": 60, "laptop": 350, "gpu": 4000}
SEEDS = {"smoke": 1, "laptop": 3, "gpu": 5}
RATES = {"smoke": (1e-2,), "laptop": (5e-3, 1e-2), "gpu": (3e-3, 5e-3, 1e-2)}
STACKS = {
    "smoke": ((1, 1),),
    "laptop": ((1, 1), (2, 0)),
    "gpu": ((1, 0), (1, 1), (2, 0), (2, 1), (3, 0), (3, 1)),
}
"""Full layers, and recurrent ones before them."""
LENGTHS = {"smoke": (2,), "laptop": (3,), "gpu": (2, 3, 4, 6)}
FORMS = ("none", "values")


class ChainOfThought(Experiment):
    """SeqComp, its answer at once or step by step."""

    name: ClassVar[str] = "cot"
    title: ClassVar[str] = "Hybrids with and without chain of thought"
    question: ClassVar[str] = (
        "Does writing the steps down make up for layers, and does a hybrid need fewer of them?"
    )
    says: ClassVar[str] = (
        "With its chain written in pairs, one full layer solves L-SeqComp for every L (theory.md,"
        " section 6). Here plain values are written: w takes a single value, so that they say as"
        " much to a layer that is told z_0, but no theorem here says so. Without a chain, layers"
        " must grow with L from some prompt length on (theorems III to VII), far beyond these"
        " prompts. A written chain does not help bounded caches (Theorem I)."
    )
    labels: ClassVar[dict[str, str]] = {
        "full": "number of full layers",
        "recurrent": "number of recurrent layers before them",
        "steps": "L, the number of functions composed",
        "thought": "what is written before the answer: none, or the values of the chain",
        "mechanism": "what the recurrent layers are",
    }
    x: ClassVar[str] = "steps"
    x_title: ClassVar[str] = "functions composed, L"
    series: ClassVar[tuple[str, ...]] = ("full", "recurrent")
    panels: ClassVar[tuple[str, ...]] = ("thought",)

    def cells(self, scale: Scale) -> tuple[Cell, ...]:
        return tuple(
            cell(
                {
                    "full": full,
                    "recurrent": recurrent,
                    "steps": steps,
                    "thought": form,
                    "mechanism": RECURRENT if recurrent else "none",
                },
                _run(beside(full, recurrent, "before"), steps, form, scale),
                seeds=SEEDS[scale],
                rates=RATES[scale],
            )
            for full, recurrent in STACKS[scale]
            for steps in LENGTHS[scale]
            for form in FORMS
        )

    def tables(self, table: Table) -> list[ShownTable]:
        """Whole chains, then single answers."""
        whole = ShownTable(
            title="Prompts of which every value is right: what a model gets that writes by itself",
            columns=(*self.series, "steps", "thought", "proved", "median", "every seed"),
            rows=tuple(
                (
                    *(str(row.labels[name]) for name in (*self.series, "steps", "thought")),
                    _proved(row).lower(),
                    share(median(map(chain, row.trials))),
                    ", ".join(share(chain(trial)) for trial in row.trials),
                )
                for row in table.rows
            ),
        )
        return [whole, *super().tables(table)]

    def findings(self, table: Table) -> tuple[str, ...]:
        pairs = [
            (plain, written)
            for plain in table.where(thought="none")
            if (written := _beside(table, plain)) is not None and claimed([plain, written])
        ]
        return (*_worse(pairs), *_better(pairs), *_alike(pairs), *_untrained(table))


def chain(trial: Trial) -> Fraction:
    """Prompts with every value right. A chain is right whenever the model writes it itself exactly
    if each value is right behind the right ones before.
    """
    return Fraction(trial.correct, trial.tested) if trial.tested else Fraction(0)


def _run(stack: str, steps: int, form: str, scale: Scale) -> Run:
    size = parse_task(f"seqcomp:L={steps},m={SIZES[scale]},form=uniform,values=functions").spec
    return Run(
        architecture=stack,
        task=size if form == "none" else f"{size},thought={form}",
        seed=0,
        steps=STEPS[scale],
        batch=96,
        width=32,
        hidden=64,
        tested=1024,
    )


def _proved(row: Row) -> str:
    return proved(str(row.run["architecture"]), row.task.spec).status


def _beside(table: Table, plain: Row) -> Row | None:
    """The same stack and size with its chain written."""
    labels = {name: value for name, value in plain.labels.items() if name != "stack"}
    return table.one(**labels | {"thought": "values"})


def _middle(row: Row) -> Fraction:
    return median(map(chain, row.trials))


def _named(row: Row) -> str:
    labels = row.labels
    full = full_layers(row)
    if labels["recurrent"]:
        return f"{full} behind {labels['recurrent']} {labels['mechanism']}"
    return full


def _worse(pairs: list[tuple[Row, Row]]) -> Iterator[str]:
    for plain, written in pairs:
        if _middle(written) < _middle(plain):
            yield (
                f"Against expectation, {_named(plain)} did worse with its chain written at L ="
                f" {plain.labels['steps']}: {share(_middle(written))} of prompts wholly right,"
                f" {share(_middle(plain))} without (medians)."
            )


def _better(pairs: list[tuple[Row, Row]]) -> Iterator[str]:
    for plain, written in pairs:
        if _middle(written) > _middle(plain):
            yield (
                f"{_named(plain).capitalize()}, L = {plain.labels['steps']}:"
                f" {share(_middle(plain))} of prompts right at once, {share(_middle(written))} with"
                " the chain written (medians; written: every value right)."
            )


def _alike(pairs: list[tuple[Row, Row]]) -> Iterator[str]:
    for plain, written in pairs:
        if _middle(written) == _middle(plain):
            yield (
                f"{_named(plain).capitalize()}, L = {plain.labels['steps']}:"
                f" {share(_middle(plain))} of prompts right, with the chain written and without"
                " (medians)."
            )


def _untrained(table: Table) -> Iterator[str]:
    for row in table.rows:
        failed = sum(chain(trial) < SOLVED for trial in row.trials)
        if failed and claimed([row]) and _proved(row) == "SOLVABLE":
            how = isinstance(row.task, Thought)
            yield (
                f"Weights exist for {_named(row)} at L = {row.labels['steps']}"
                f" {'with' if how else 'without'} the chain; {failed} of {len(row.trials)} seeds"
                f" failed to train within {row.run['steps']:,} steps, which is no sign that they"
                " cannot."
            )
