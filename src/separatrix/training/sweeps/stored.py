"""A run as a store keeps it."""

from __future__ import annotations

import json
from dataclasses import dataclass, fields
from functools import cached_property
from typing import TYPE_CHECKING, Any, Literal

from separatrix.core.errors import SeparatrixError, StoreError, first_line

if TYPE_CHECKING:
    from separatrix.core.evidence.outcome import Outcome
    from separatrix.models.stored.run import Run

Status = Literal["waiting", "running", "done", "diverged", "failed", "damaged"]


@dataclass(frozen=True)
class Stored:
    """A run, how far it is, and what came of it."""

    key: str
    sweep: str
    """The one asked for; else the first that had this run."""
    specification: str
    """The run as canonical JSON."""
    status: Status
    result: str | None
    """The outcome as JSON."""
    error: str
    """Why it failed or is damaged, in one line."""
    version: str
    """Of the code that ended it."""
    created: float
    """Seconds since 1970, as `ended`."""
    ended: float | None
    seconds: float
    """What its training took so far, or in all."""
    completions: int
    """How often somebody ended it: 1 for every run that is done or diverged."""
    step: int
    owner: str | None
    """Who trains it now."""
    host: str
    """The machine of the store's writer when it ended."""

    @cached_property
    def run(self) -> Run:
        # lists of many runs do without reading stacks and tasks
        from separatrix.models.stored.run import Run

        return self._read(Run, "specification", self.specification)

    @cached_property
    def outcome(self) -> Outcome | None:
        from separatrix.core.evidence.outcome import Outcome

        return None if self.result is None else self._read(Outcome, "outcome", self.result)

    def _read(self, kind: type[Any], what: str, text: str) -> Any:
        try:
            return kind.from_json(json.loads(text))
        except (SeparatrixError, ValueError, TypeError) as error:
            raise StoreError(
                f"run {self.key[:12]}, by version {self.version or '?'}: its {what} cannot be read"
                f" here: {first_line(error)}"
            ) from error


COLUMNS = tuple(field.name for field in fields(Stored))
