"""A stranger's experiment, in one small page: does one layer of linear attention keep n facts?"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from separatrix.cards.measured.table import Table
from separatrix.core.evidence.outcome import Outcome
from separatrix.findings.base import Experiment, read_page
from support.practice_tables import row, trial
from support.practice_tables import table as made

PAGE = """\
---
title: Facts in a small state
question: How many facts does a small state keep?
baseline: {steps: 3, batch: 8, width: 8, hidden: 8, tested: 64}
grid:
  task: ["eva:n=2,V=4", "eva:n=4,V=4"]
  learning_rate: [0.001, 0.003]
seeds: 1
layouts:
  full: full @ heads=1, head_dim=4
  linear: {architecture: "linear @ heads=1, head_dim=4", weight_decay: 0.0}
---

"""
WORDS = """\
---
title: Facts in a small state
question: How many facts does a small state keep?
baseline: {task: "eva:n=4,V=16", steps: 4000}
layouts: {full: full, linear: linear}
contrasts:
  - [full, linear]
pictures:
  steps: {title: Steps, cells: [full, linear]}
---

Full attention keeps all. {{median("full") > median("linear")}}

- It solved it with {{solved("full")}} of {{seeds("full")}} seeds, in {{steps("full")}} steps.

{{table}}

{{picture steps}}

{{contrasts}}
"""
TASK = "eva:n=4,V=16"


def toy(folder: Path, text: str = PAGE) -> Experiment:
    """The experiment of a page with this text."""
    path = folder / "toy.md"
    path.write_text(text, encoding="utf-8")
    return read_page(path)


def ended(seed: int, steps: int | None, right: int = 998) -> Outcome:
    """A seed that solved it after so many steps; None: that did not, in 4,000."""
    if steps is None:
        return trial(seed, min(right, 400), steps_done=4000)
    return trial(seed, right, steps_done=steps, stopped="solved")


def table(
    cells: Mapping[str, Sequence[int | None]] | None = None,
    *,
    stop_at: float = 0.995,
    task: str = TASK,
    steps: int = 4000,
) -> Table:
    """As if it had been trained: cells, and the steps until each of their seeds solved it."""
    if cells is None:
        cells = {"full": tuple(range(100, 180, 10)), "linear": (None,) * 8}
    return made(
        "toy",
        *(
            row(
                {"cell": name, "stack": name},
                {3e-3: [ended(seed, value) for seed, value in enumerate(values)]},
                architecture=f"{'linear' if 'linear' in name else 'full'} @ heads=1, head_dim=16",
                task=task,
                stop_at=stop_at,
                steps=steps,
                width=16,
                hidden=32,
            )
            for name, values in cells.items()
        ),
    )
