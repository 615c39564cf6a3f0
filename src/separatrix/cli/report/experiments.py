"""Experiments and what the package holds of them, for `list experiments`."""

from __future__ import annotations

from typing import Any

from separatrix.cards.measured.table import read
from separatrix.findings import EXPERIMENTS

SPARED = ("recorded",)


def rows() -> list[dict[str, Any]]:
    """Every experiment: what it asks, and what is recorded."""
    found: list[dict[str, Any]] = []
    for name, one in EXPERIMENTS.items():
        table = read(name)
        trained = 0 if table is None else sum(len(row.every) for row in table.rows)
        held = "-" if table is None else f"{trained:,} trainings, {table.provenance.date}"
        found.append({"experiment": name, "question": one.question, "recorded": held})
    return found
