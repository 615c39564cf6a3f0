"""Checks the table of a bundle: every cell and model line says what its records say."""

from __future__ import annotations

from typing import Any

from separatrix.errors import CheckFailed
from separatrix.evidence import Evidence, Measurement, Verdict


def verify_table(body: dict[str, Any], records: dict[str, Evidence]) -> None:
    """Raises CheckFailed when a cell has no evidence, refers to a record that is not there, or claims what its verdicts do not."""
    used: set[str] = set()
    for cell in body["cells"]:
        where = f"cell {cell['row']} x {cell['column']}"
        missing = [digest for digest in cell["records"] if digest not in records]
        if missing or not cell["records"]:
            raise CheckFailed(f"{where}: {'no evidence' if not missing else f'its record {missing[0][:12]} is not in the bundle'}")
        mine = [records[digest] for digest in cell["records"]]
        used.update(cell["records"])
        verdicts = [record for record in mine if isinstance(record, Verdict)]
        if not any(verdict.status == cell["status"] and verdict.statement == cell["headline"] for verdict in verdicts):
            raise CheckFailed(f"{where} says {cell['status']}: '{cell['headline'][:80]}', but no verdict of it says so")
        if not any(isinstance(record, Measurement) for record in mine):
            raise CheckFailed(f"{where}: no measurement")
    for model in body["models"]:
        for line in model["lines"]:
            if line["record"] is None:
                continue
            verdict = records.get(line["record"])
            used.add(line["record"])
            if not isinstance(verdict, Verdict) or (verdict.status, verdict.theorem) != (line["status"], line["theorem"]):
                raise CheckFailed(f"model {model['name']}, '{line['question']}': the line and its record disagree")
    unused = sorted(set(records) - used)
    if unused:
        raise CheckFailed(f"record {unused[0][:12]} belongs to no cell and no model: the bundle was edited")
