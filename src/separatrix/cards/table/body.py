"""The whole body of a bundle, derived from its settings and its records alone."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any

from separatrix.cards.table.cell import Found, entry, find
from separatrix.cards.table.models import DEFAULT_MODELS, Source, model_entry
from separatrix.cards.table.plan import COLUMNS, KINDS, ROWS, Cell, Kind
from separatrix.core.errors import EvidenceError
from separatrix.core.evidence.records import Evidence

TITLE = "Separatrix: what attention stacks can and cannot compute"
MOST_MODELS = 20
OPTIMISERS = {"muon": "Muon", "adamw": "AdamW"}
MOST_APART = 0.03
"""The parameters of two stacks of a column differ by at most this share."""


@dataclass(frozen=True)
class Settings:
    """What whoever makes a report chooses: its kind, the first seed, and the real models."""

    kind: str = "full"
    seed: int = 0
    models: tuple[Source, ...] = DEFAULT_MODELS

    def __post_init__(self) -> None:
        if self.kind not in KINDS:
            raise EvidenceError(f"a report is {' or '.join(KINDS)}, not {self.kind[:20]!r}")
        if not 0 <= self.seed < 1 << 32:
            raise EvidenceError("the seed of a report is an integer from 0 to 2^32 - 1")
        if len(set(self.models)) != len(self.models) or len(self.models) > MOST_MODELS:
            raise EvidenceError(f"a report has each real model once, and at most {MOST_MODELS}")

    @property
    def of(self) -> Kind:
        return KINDS[self.kind]


def table_cells(settings: Settings) -> list[Cell]:
    """Every cell of the report, row by row."""
    kind = settings.of
    return [Cell(row, column, kind) for row in kind.rows for column in kind.columns]


def derive(settings: Settings, records: Mapping[str, Evidence]) -> dict[str, Any]:
    """The body: every cell from the records of its stack and tasks, every model from its source.

    `records` maps digests to what trainings, searches and constructions gave; verdicts are derived
    here. Raises EvidenceError for a record that is missing, or that belongs nowhere.
    """
    known = dict(records)
    every = table_cells(settings)
    for cell in every:
        known |= {verdict.digest: verdict for verdict in cell.verdicts()}
    found = {cell: find(cell, settings.seed, known.values()) for cell in every}
    used = {record.digest: record for mine in found.values() for record in mine.all}
    models = [_model(source) for source in settings.models]
    for _, behind in models:
        used |= behind
    known |= used
    unused = sorted(set(known) - set(used))
    if unused:
        raise EvidenceError(
            f"record {unused[0][:12]} belongs to no cell and no model of this report"
        )
    return {
        "title": TITLE,
        "settings": {
            "kind": settings.kind,
            "seed": settings.seed,
            "models": [source.plain() for source in settings.models],
        },
        "rows": [{"key": key, "title": ROWS[key]} for key in settings.of.rows],
        "columns": [_column(key, found) for key in settings.of.columns],
        "cells": [entry(cell, mine) for cell, mine in found.items()],
        "models": [entry for entry, _ in models],
        "records": {digest: used[digest].envelope() for digest in sorted(used)},
    }


@cache
def _model(source: Source) -> tuple[dict[str, Any], dict[str, Evidence]]:
    behind: dict[str, Evidence] = {}
    return model_entry(source, behind), behind


def _column(key: str, found: Mapping[Cell, Found]) -> dict[str, Any]:
    """A column with what its stacks share. Raises EvidenceError where their parameters are not
    about equally many at every size.
    """
    column = COLUMNS[key]
    mine = [measured for cell, measured in found.items() if cell.column == key]
    counts = [
        [measured.budget["parameters"] for measured in same]
        for same in zip(*(one.measurements for one in mine), strict=True)
    ]
    apart = max((max(same) - min(same)) / max(same) for same in counts)
    if apart > MOST_APART:
        raise EvidenceError(
            f"column {key}: the trained stacks differ by {apart:.1%} in their parameters; at most"
            f" {MOST_APART:.0%}"
        )
    low = min(map(min, counts))
    high = max(map(max, counts))
    return {
        "key": key,
        "title": column.title,
        "size_class": column.size_class,
        "training": (
            f"{low:,} to {high:,} parameters (at each n, all stacks within {apart:.1%}), trained"
            f" alike: at most {mine[0].measurements[0].budget['steps']:,} steps of"
            f" {column.batch} prompts with {OPTIMISERS[column.optimiser]},"
            f" {len(mine[0].measurements[0].seeds)} seeds"
        ),
    }
