"""Checks the table of a bundle: every cell and every real model says what its records and its
architecture say.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from separatrix.architecture import Architecture
from separatrix.cards.summary import bound_curve, decisive, in_todays_words, model_summary
from separatrix.errors import CheckFailed
from separatrix.evidence.records import Evidence, Measurement, Verdict


def verify_table(body: dict[str, Any], records: dict[str, Evidence]) -> None:
    """Raises CheckFailed when a cell has no evidence, refers to a record that is not there, or
    claims what its verdicts do not.

    The prose of a cell (its story and the paper's entry) is covered by the content hash alone.
    """
    used: set[str] = set()
    for cell in body["cells"]:
        where = f"cell {cell['row']} x {cell['column']}"
        missing = [digest for digest in cell["records"] if digest not in records]
        if missing:
            raise CheckFailed(f"{where}: its record {missing[0][:12]} is not in the bundle")
        if not cell["records"]:
            raise CheckFailed(f"{where}: no evidence")
        mine = [records[digest] for digest in cell["records"]]
        used.update(cell["records"])
        main = next(
            (
                v
                for v in mine
                if isinstance(v, Verdict)
                and (v.status, v.statement) == (cell["status"], cell["headline"])
            ),
            None,
        )
        if main is None:
            raise CheckFailed(
                f"{where} says {cell['status']}: '{cell['headline'][:80]}', but no verdict of it"
                " says so"
            )
        if cell["number"] != decisive(main) or (
            cell["bound"] is not None and cell["bound"] != bound_curve(main)
        ):
            raise CheckFailed(
                f"{where}: its number '{cell['number']}' or its curve is not that of its verdict"
            )
        if not any(isinstance(record, Measurement) for record in mine):
            raise CheckFailed(f"{where}: no measurement")
    for model in body["models"]:
        derived: dict[str, Evidence] = {}
        architecture = replace(
            Architecture.parse(model["spec"]),
            vocabulary=model["vocabulary"],
            notes=tuple(model["notes"]),
        )
        again = model_summary(architecture, model["context"], derived)
        again["assumptions"] = list(architecture.assumptions)
        said = in_todays_words(model)
        wrong = [name for name, value in again.items() if said[name] != value]
        if wrong:
            raise CheckFailed(
                f"model {model['name']}: its {wrong[0]} is not what its architecture gives"
            )
        used.update(derived)
    unused = sorted(set(records) - used)
    if unused:
        raise CheckFailed(
            f"record {unused[0][:12]} belongs to no cell and no model: the bundle was edited"
        )
