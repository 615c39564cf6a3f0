"""The leak audit: whether anything but solving a task beats what the task says a guess may
reach.
"""

from __future__ import annotations

from separatrix.audits.printed import legend, outcome, summary, table
from separatrix.audits.rows import BOUND, Audit, Row
from separatrix.audits.run import MOST_ANSWERS, audit
from separatrix.audits.texts import accuracies, audit_texts
from separatrix.tasks import AUDITED

__all__ = [
    "AUDITED",
    "BOUND",
    "MOST_ANSWERS",
    "Audit",
    "Row",
    "accuracies",
    "audit",
    "audit_texts",
    "legend",
    "outcome",
    "summary",
    "table",
]
