"""The leak audit: whether anything but solving a task beats what the task says a guess may
reach.
"""

from __future__ import annotations

from separatrix.tasks import AUDITED
from separatrix.tasks.audits.rows import BOUND, Audit, Row, legend, outcome, table
from separatrix.tasks.audits.run import MOST_ANSWERS, accuracies, audit, audit_texts

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
    "table",
]
