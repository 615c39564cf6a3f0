"""What an evidence.json claims: settings, cells, models and records."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from unchanged.pieces import Piece, canonical


def evidence(path: Path) -> Iterator[Piece]:
    """What an evidence.json claims: settings, cells, models, and each record by its subject."""
    bundle = json.loads(path.read_text(encoding="utf-8"))
    body = bundle["body"]
    yield "whole", canonical(bundle)
    for key in ("title", "settings", "rows", "columns"):
        yield key, canonical(body[key])
    for cell in body["cells"]:
        yield f"cell/{cell['row']} {cell['column']}", canonical(cell)
    for model in body["models"]:
        yield f"model/{model['name']}", canonical(model)
    met: Counter[str] = Counter()
    for record in body["records"].values():
        name = record_name(record)
        met[name] += 1
        yield f"{name} #{met[name]}", canonical(record)


def record_name(record: Mapping[str, Any]) -> str:
    """What a record is about."""
    body = record["body"]
    own = next(body[key] for key in ("theorem", "name", "form", "total") if key in body)
    return f"{record['kind']}/{own}/{body['architecture']} on {body['task']}"
