"""One line of a capability card."""

from __future__ import annotations

from dataclasses import dataclass

from separatrix.evidence.records import Status, Verdict


@dataclass(frozen=True)
class CardLine:
    """One question and its answer; `n` is the smallest n of a FAILS, `verdict` the record behind
    the line where a task record exists.
    """

    question: str
    status: Status
    n: int | None
    text: str
    theorem: str
    verdict: Verdict | None = None
    explain: str = ""
    """Two sentences of plain English: what the line means to someone who designs a model, and
    why it is so.
    """
