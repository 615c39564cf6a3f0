"""A stranger's experiment, in one small file: does one layer of linear attention keep n facts?"""

from __future__ import annotations

from typing import ClassVar

from separatrix.experiments.base import Cell, Experiment, cell, claimed
from separatrix.practice.table import Scale, Table
from separatrix.training.run import Run
from support.practice_tables import row, trial
from support.practice_tables import table as made

STACKS = ("full", "linear")
SMALL = "linear @ heads=1, head_dim=2"


class Toy(Experiment):
    """Facts kept by a tiny state."""

    name = "toy"
    title = "Facts in a small state"
    question = "How many facts does a small state keep?"
    says = "Theorem A bounds it."
    labels: ClassVar[dict[str, str]] = {
        "mechanism": "the token mixer",
        "n": "facts in the prompt",
    }
    x = "n"
    x_title = "facts"
    series = ("mechanism",)

    def cells(self, scale: Scale) -> tuple[Cell, ...]:
        steps = {"smoke": 3, "laptop": 40, "gpu": 4000}[scale]
        seeds = {"smoke": 1, "laptop": 3, "gpu": 5}[scale]
        return tuple(
            cell(
                {"mechanism": name, "n": n},
                Run(
                    architecture=f"{name} @ heads=1, head_dim=4",
                    task=f"eva:n={n},V=4",
                    seed=0,
                    steps=steps,
                    batch=8,
                    width=8,
                    hidden=8,
                    tested=64,
                ),
                seeds=seeds,
                rates=(1e-3, 3e-3),
            )
            for name in STACKS
            for n in (2, 4)
        )

    def findings(self, table: Table) -> tuple[str, ...]:
        one, other = (table.one(mechanism=name, n=4) for name in STACKS)
        if one is None or other is None or not claimed([one, other]):
            return ()
        return (f"Full attention: {float(one.median):.2f}, linear: {float(other.median):.2f}.",)


def table() -> Table:
    """As if it had been trained: full attention keeps everything, a state of 2 bits does not."""
    rights = {("full", 16): 1000, ("full", 32): 995, ("linear", 16): 700, ("linear", 32): 200}
    stacks = {"full": "full @ heads=1, head_dim=16", "linear": SMALL}
    return made(
        "toy",
        *(
            row(
                {"mechanism": name, "n": n, "stack": stacks[name]},
                {
                    3e-3: [trial(seed, max(0, right - 5 * seed)) for seed in range(3)],
                    1e-2: [trial(seed, 100) for seed in range(3)],
                },
                architecture=stacks[name],
                task=f"eva:n={n},V=16",
                width=16,
                hidden=32,
            )
            for (name, n), right in rights.items()
        ),
    )
