"""Models in folders, as commands take them: what `separatrix train` and `construct` write."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from separatrix.models.model import Model

CONSTRUCTED = "construction.json"


@dataclass(frozen=True, kw_only=True)
class FromFolder:
    """A model, and the task that it was made for."""

    model: Model
    task: str
    trained: bool


def holds_model(text: str) -> bool:
    """Whether a text names a folder with a model of this program."""
    from separatrix.models.stored.trained import is_trained

    folder = Path(text).expanduser()
    try:
        return folder.is_dir() and (is_trained(folder) or (folder / CONSTRUCTED).exists())
    except (OSError, ValueError):
        # a spec may be no path at all
        return False


def from_folder(text: str) -> FromFolder:
    """The model in a folder. Raises EvidenceError for one that is damaged, edited or half there."""
    from separatrix.models.stored.trained import is_trained, read_stored

    folder = Path(text).expanduser()
    if is_trained(folder):
        stored = read_stored(folder)
        return FromFolder(model=stored.model(), task=stored.record.task, trained=True)
    from separatrix.constructions import load

    record, model = load(folder)
    return FromFolder(model=model, task=record.task, trained=False)
