"""The words of the report on a proof object, a certificate's details and a training budget."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from separatrix.cli.report import notation
from separatrix.core.evidence.records import Certificate, Construction

_FIRST = (
    "layer",
    "part",
    "mechanism",
    "carries",
    "fetches",
    "queries",
    "keys",
    "score_gap",
    "off_target_mass",
    "score_error",
)
FORMS = {
    "collision": (
        "Two prompts leave the same cache behind, so the model gives both the same answer. The"
        " right answers differ."
    ),
    "block_swap": (
        "Two prompts differ inside one block that is not opened, and both versions send the same"
        " message. The right answers differ."
    ),
    "two_runs": (
        "The model answers two prompts alike, runs of equal tokens that differ in one token where"
        " they meet. The right answers differ."
    ),
    "wrong_answer": "The model answers this prompt wrongly.",
}


def proof_parts(
    construction: Construction,
) -> tuple[dict[str, Any], list[tuple[str, list[str], list[dict[str, Any]]]]]:
    """A proof object as (single values, tables): a list of objects becomes a table (name,
    columns, rows), a nested object is flattened. Layers are counted from one.
    """
    values: dict[str, Any] = {}
    tables = []
    for key, value in construction.proof.items():
        if isinstance(value, list) and value and all(isinstance(item, dict) for item in value):
            names = dict.fromkeys(name for item in value for name in item)
            tables.append(
                (
                    key,
                    sorted(
                        names,
                        key=lambda name: _FIRST.index(name) if name in _FIRST else len(_FIRST),
                    ),
                    [from_one(item) for item in value],
                )
            )
        else:
            values |= _flat(key, value)
    return values, tables


def from_one(row: Mapping[str, Any]) -> dict[str, Any]:
    """A row of a proof with layers, and the parts of a layer, counted from one as people do;
    records count them from zero.
    """
    return {
        key: value + 1 if key in ("layer", "part") and isinstance(value, int) else value
        for key, value in row.items()
    }


def certificate_facts(certificate: Certificate) -> dict[str, Any]:
    """The details of a certificate, nested objects flattened, long lists counted."""
    return _flat("", certificate.details)


def _flat(key: str, value: Any) -> dict[str, Any]:
    if isinstance(value, dict):
        flat: dict[str, Any] = {}
        for name, inner in value.items():
            flat |= _flat(f"{key} {name}".strip(), inner)
        return flat
    if isinstance(value, list):
        return {
            key: (
                ", ".join(notation.number(x) for x in value)
                if len(value) <= 12
                else f"{len(value):,} entries"
            )
        }
    return {key: value}


_OPTIMISERS = {"adamw": "AdamW", "muon": "Muon"}


def budget_words(budget: Mapping[str, Any]) -> str:
    """What a training run was allowed, in a few words: steps, batch, optimiser and its rate, what
    was trained before the task itself, and parameters.
    """
    words = []
    if "steps" in budget:
        done = budget.get("steps_done")
        taken = (
            ", ".join(notation.number(x) for x in done) + " of at most "
            if isinstance(done, list)
            else ""
        )
        words.append(f"{taken}{notation.number(budget['steps'])} steps")
    if "batch" in budget:
        words.append(f"batch {notation.number(budget['batch'])}")
    if "optimiser" in budget and "learning_rate" in budget:
        name = str(budget["optimiser"]).lower()
        words.append(f"{_OPTIMISERS.get(name, name)} at {budget['learning_rate']}")
    if budget.get("curriculum"):
        words.append(f"first {', '.join(budget['curriculum'])}")
    if "parameters" in budget:
        words.append(f"{notation.number(budget['parameters'])} parameters")
    return "; ".join(words)
