"""Real models in the report: the card's lines at the model's own context, each with its record."""

from __future__ import annotations

from typing import Any

from separatrix.architecture import Architecture
from separatrix.cards.summary import model_summary
from separatrix.evidence.records import Evidence

DEFAULT_CONTEXT = 8192


def model_entry(architecture: Architecture, records: dict[str, Evidence]) -> dict[str, Any]:
    """A model as the bundle holds it; the verdicts behind its lines are added to `records`."""
    summary = model_summary(architecture, architecture.context or DEFAULT_CONTEXT, records)
    return summary | {
        "name": architecture.name or architecture.spec,
        "assumptions": list(architecture.assumptions),
        "notes": list(architecture.notes),
    }
