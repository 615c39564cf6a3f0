"""Real models in the report: the card's lines at the model's own context, each with its record."""

from __future__ import annotations

from typing import Any

from separatrix.architecture import Architecture
from separatrix.evidence import Evidence
from separatrix.theory import card
from separatrix.theory._base import number

DEFAULT_CONTEXT = 8192
KINDS = {"state": "recurrent state", "convolution": "convolution buffers", "window": "windows", "kv": "keys and values"}


def model_entry(architecture: Architecture, records: dict[str, Evidence]) -> dict[str, Any]:
    """A model as the bundle holds it; the verdicts behind its lines are added to `records`."""
    context = architecture.context or DEFAULT_CONTEXT
    lines = []
    for line in card(architecture, context):
        if line.verdict is not None:
            records[line.verdict.digest] = line.verdict
        lines.append(
            {
                "question": line.question,
                "status": line.status,
                "n": "" if line.n is None else number(line.n),
                "text": line.text,
                "theorem": line.theorem,
                "record": None if line.verdict is None else line.verdict.digest,
            }
        )
    return {
        "name": architecture.name or architecture.spec,
        "spec": architecture.spec,
        "pattern": " ".join("|".join(part.symbol for part in layer) for layer in architecture),
        "context": context,
        "memory": _memory(architecture, context),
        "lines": lines,
        "assumptions": list(architecture.assumptions),
    }


def _memory(architecture: Architecture, context: int) -> list[list[str]]:
    """What is carried after `context` tokens, by kind, in bits and MiB, and how it grows."""
    rows = []
    cache, doubled = architecture.cache(context), architecture.cache(2 * context)
    for kind, title in KINDS.items():
        if kind in cache and cache[kind].total:
            grows = "grows" if doubled[kind] > cache[kind] else "does not grow"
            rows.append([title, f"{cache[kind].total:,} bits = {cache[kind].total / 8 / 2**20:,.1f} MiB, {grows}"])
    return rows
