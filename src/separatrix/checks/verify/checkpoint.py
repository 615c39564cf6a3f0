"""Checks the config.json that stands beside a construction, and the checkpoint of a stock
architecture where it describes one.
"""

from __future__ import annotations

from pathlib import Path

from separatrix.core.errors import CheckFailed, SeparatrixError
from separatrix.core.evidence.bundles import read_json
from separatrix.core.evidence.canonical import canonical, json_object
from separatrix.core.evidence.records import Construction
from separatrix.models.model import Model
from separatrix.models.stock import STOCK, stock_checkpoint
from separatrix.models.stock.checkpoint import WEIGHTS
from separatrix.models.stored.description import CONFIG, WEIGHTS_FIELD, described_by
from separatrix.models.stored.plain_file import read_plain


def verify_checkpoint(record: Construction, folder: Path, model: Model) -> list[str]:
    """What was checked of the files that transformers reads; nothing where there are none.

    Raises CheckFailed where they are not those of the record.
    """
    path = folder / CONFIG
    if not path.exists():
        return []
    data = read_json(path)
    fields = json_object(data) or {}
    kind = str(fields.get("model_type"))
    if kind in STOCK:
        return _stock(folder, model, kind, data)
    try:
        same = described_by(data).to_json() == record.model
    except SeparatrixError as error:
        raise CheckFailed(f"{path}: {error}") from None
    if not same or fields.get(WEIGHTS_FIELD) != record.weights:
        raise CheckFailed(f"{path}: describes another model, or names other weights")
    return [f"{CONFIG} describes this model"]


def _stock(folder: Path, model: Model, kind: str, data: object) -> list[str]:
    """The checkpoint, written again from the weights of the record and compared."""
    again = stock_checkpoint(model, kind)
    if canonical(data) != canonical(again.config):
        raise CheckFailed(f"{folder / CONFIG}: is not what these weights give as {kind}")
    wanted = again.bytes()
    if read_plain(folder / WEIGHTS, least=len(wanted), most=len(wanted)) != wanted:
        raise CheckFailed(
            f"{folder / WEIGHTS}: is not what these weights give as {kind}: it was changed"
        )
    return [
        f"{WEIGHTS} is this model as {kind}, written again from the weights: bit for bit the same",
        *again.remarks,
    ]
