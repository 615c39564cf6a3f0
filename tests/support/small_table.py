"""A bundle of four cells for tests that forge tables: its verdicts are real, its counts and
certificates are made up, and nothing is trained or searched.
"""

from __future__ import annotations

from typing import Any

from separatrix.cards.table.body import Settings, derive, table_cells
from separatrix.cards.table.plan import Cell, Kind
from separatrix.core.evidence.records import Certificate, Evidence
from separatrix.models.model import build
from separatrix.models.stored.run import Run
from separatrix.stacks.architecture import Architecture
from separatrix.tasks import parse_task
from separatrix.training.alone import measurement
from support.outcomes import singly

KIND = Kind(
    rows=("linear", "loglinear"),
    columns=("eva", "twosum"),
    trained={"eva": (4, 8), "twosum": (4, 8)},
    steps={"eva": 10, "twosum": 10},
    seeds=3,
    tested=100,
    beside=False,
)


def small_settings() -> Settings:
    """Its settings; `KIND` has to be known as the kind "small" first."""
    return Settings(kind="small", models=("full + linear", "full"))


def small_body() -> dict[str, Any]:
    """The body of the bundle."""
    settings = small_settings()
    made: list[Evidence] = []
    for place, cell in enumerate(table_cells(settings)):
        made += _certificates(cell)
        made += [_measured(cell, size, place) for size in cell.sizes]
    return derive(settings, {record.digest: record for record in made})


def _certificates(cell: Cell) -> list[Evidence]:
    """Certificates as the plan wants them, but empty inside: the table looks at no weights."""
    return [
        Certificate(
            architecture=wanted.architecture,
            task=wanted.task,
            form=wanted.form,
            model={},
            weights={},
            cache_format=f"{wanted.rounded}:step=2^2",
            inputs=[[0], [1]],
            answers=[0, 1],
            output=0,
        )
        for wanted in cell.witnesses()
    ]


def _measured(cell: Cell, size: int, place: int) -> Evidence:
    training = cell.training()
    task = parse_task(cell.task_at(size))
    model = build(
        Architecture.parse(cell.stack),
        task,
        width=training["width"],
        hidden=training["hidden"],
        seed=0,
    )
    parameters = sum(parameter.numel() for parameter in model.parameters())
    outcomes = [
        singly(
            seed=seed,
            correct=99 - place - seed,
            tested=training["tested"],
            steps_done=training["steps"],
            parameters=parameters,
        )
        for seed in range(3)
    ]
    return measurement(Run(architecture=cell.stack, task=task.spec, seed=0, **training), outcomes)
