"""Tables of results for tests: nothing is trained."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from separatrix.cards.measured.table import Label, Provenance, Rate, Row, Table
from separatrix.core.evidence.outcome import Outcome

PROVENANCE = Provenance(
    commit="0123456789abcdef0123456789abcdef01234567",
    version="0.0+00000000",
    command="separatrix experiment toy",
    date="2026-01-31",
    seconds=60.0,
    cores=2,
    device="cpu",
)


def trial(seed: int, right: int, *, due: int = 1000, bits: float = 1.5, **changed: Any) -> Outcome:
    """A seed with so many right answers of those due, in 250 prompts."""
    given: dict[str, Any] = {
        "seed": seed,
        "stopped": "steps",
        "steps_done": 500,
        "correct": right * 250 // max(due, 1),
        "tested": 250,
        "right": right,
        "due": due,
        "bits": bits,
        "bits_squares": bits**2 + 0.25,
        "parameters": 12_345,
        "seconds": 2.5,
    }
    return Outcome(**given | changed)


def diverged(seed: int) -> Outcome:
    return trial(
        seed,
        0,
        due=0,
        bits=0.0,
        status="diverged",
        stopped="diverged",
        correct=0,
        tested=0,
        bits_squares=0.0,
    )


def row(
    labels: Mapping[str, Label],
    rates: Mapping[float, Sequence[Outcome]],
    *,
    architecture: str = "gdn*2",
    task: str = "eva:n=16,V=16",
    **fields: Any,
) -> Row:
    run = {"architecture": architecture, "task": task, "steps": 500, "batch": 64} | fields
    return Row(
        labels=dict(labels),
        run=run,
        rates=tuple(Rate(learning_rate=rate, trials=tuple(rates[rate])) for rate in sorted(rates)),
        cache_bits=8_192,
    )


def table(name: str, *rows: Row) -> Table:
    return Table(experiment=name, provenance=PROVENANCE, rows=rows)
