"""Results of experiments written by hand, laid out as the package's own are: what a card and
`design` say of them is known.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from pathlib import Path

import pytest

from separatrix.practice import capacity, lookups
from separatrix.practice import table as tables
from separatrix.practice.table import Row, Table
from support.practice_tables import row, table, trial

DUE = 1000
"""Answers due in the test prompts of a seed, so that right answers are thousandths."""


def seeds(*right: int, due: int = DUE) -> dict[float, Sequence[tables.Trial]]:
    """Seeds with so many right answers, at one learning rate."""
    return {3e-3: [trial(number, value, due=due) for number, value in enumerate(right)]}


def depth() -> Table:
    """Two steps are found by three full layers, and by two behind a recurrent one."""
    laid_out = {
        (1, 1, "before"): ("gdn + full", (310, 300, 320)),
        (2, 1, "before"): ("gdn + full*2", (998, 996, 999)),
        (2, 1, "after"): ("full*2 + gdn", (340, 330, 520)),
        (3, 0, "none"): ("full*3", (1000, 999, 400)),
    }
    rows: list[Row] = []
    for (full, recurrent, where), (stack, right) in laid_out.items():
        for steps, share in ((2, right), (3, (60, 70, 65))):
            rows.append(
                row(
                    {
                        "full": full,
                        "recurrent": recurrent,
                        "where": where,
                        "steps": steps,
                        "mechanism": "gdn" if recurrent else "none",
                    },
                    seeds(*share),
                    architecture=stack,
                    # 2 of (8 + 4 + 2), 3 of (16 + 8 + 4 + 2) tokens
                    task=f"seqcomp:L={steps},m=4,{'n_1=2' if steps == 2 else 'n_1=2,n_2=2'}",
                )
            )
    return table("depth", *rows)


def ratio() -> Table:
    """Recall falls as full layers become rare; composition alike."""
    found = {-1: 250, 1: 999, 3: 990, 7: 930}
    rows = [
        row(
            {"mechanism": "gdn", "ratio": value, "layers": 8, "task": task},
            seeds(right - 2, right, right + 1),
            architecture="gdn*8" if value < 0 else f"(gdn*{value} + full)*{8 // (value + 1)}",
            task="eva:n=63,V=16" if task == "recall" else "seqcomp:L=2,m=4,n_1=2",
        )
        for task in ("recall", "composition")
        for value, right in found.items()
    ]
    return table("ratio", *rows)


def placement() -> Table:
    """Two full layers of eight: spread is best, at the start worst."""
    stacks = {
        "first": ("full*2 + gdn*6", 700),
        "middle": ("gdn*3 + full*2 + gdn*3", 900),
        "last": ("gdn*6 + full*2", 960),
        "spread": ("(gdn*3 + full)*2", 980),
    }
    rows = [
        row(
            {"mechanism": "gdn", "layers": 8, "full": 2, "where": where, "task": "recall"},
            seeds(right, right - 10, right + 10),
            architecture=stack,
            task="eva:n=63,V=16",
        )
        for where, (stack, right) in stacks.items()
    ]
    return table("placement", *rows)


def tracking() -> Table:
    """Turned states follow parity and S_5, also at twice the length; nothing else does."""
    found = {"gdn": 510, "gdn(negative=true)": 1000, "full": 500}
    rows = [
        row(
            {"mechanism": kind, "group": group, "length": 32},
            {
                3e-3: [
                    trial(number, right, due=DUE, longer=(tables.Longer(longer, 0, right, DUE),))
                    for number in range(3)
                ]
            },
            architecture=f"{kind}*2",
            task=task,
        )
        for group, task, longer in (
            ("parity", "parity:n=32", "n=64"),
            ("S5", "permutation:n=32,k=5", "n=64"),
        )
        for kind, right in found.items()
    ]
    return table("state-tracking", *rows)


def length() -> Table:
    """A turned state learns parity and follows it four times as far, less well; attention never
    learned it.
    """
    found = {"gdn(negative=true)": (1000, 640), "full": (530, 270)}
    rows = [
        row(
            {"mechanism": kind, "task": "state tracking", "trained": 18},
            {
                3e-3: [
                    trial(seed, trained, longer=(tables.Longer("n=72", 0, far, DUE),))
                    for seed in range(3)
                ]
            },
            architecture=f"{kind}*2",
            task="parity:n=18",
        )
        for kind, (trained, far) in found.items()
    ]
    return table("length", *rows)


def held() -> Table:
    """A Gated DeltaNet state of 64 numbers keeps 20 facts of 16 values, but for 0.16 bits each:
    20 (4 - 0.16) = 76.8 bits, 1.2 per number. RG-LRU keeps 0.5 and a window of 8 tokens 0.25.
    """
    states = {
        "gdn": ("gdn(heads=1, head_dim=8)", 20, 0.16),
        "rglru": ("rglru(width=16)", 4, 2.0),
        "window": ("window(size=8, heads=1, head_dim=8)", 16, 2.0),
    }
    rows = [
        row(
            {"mechanism": kind, "values": 16, "facts": facts, "state": "fp32"},
            {3e-3: [trial(seed, 900, bits=bits, bits_squares=bits**2 + 0.01) for seed in range(3)]},
            architecture=stack,
            task=f"eva:n={facts},V=16",
        )
        for kind, (stack, facts, bits) in states.items()
    ]
    return table("capacity", *rows)


SAMPLES = (held, length, depth, ratio, placement, tracking)


def install(monkeypatch: pytest.MonkeyPatch, folder: Path, *made: Table) -> None:
    """Puts tables in the place of the package's own for a test; none for an empty package."""
    folder.mkdir(exist_ok=True)
    for one in made:
        (folder / f"{one.experiment}.json").write_text(one.text(), encoding="utf-8")
    monkeypatch.setattr(tables, "RESULTS", folder)
    # a cache of the test's own: the other outlives it
    read = cache(tables.read.__wrapped__)
    for reader in (lookups, capacity):
        monkeypatch.setattr(reader, "read", read)
