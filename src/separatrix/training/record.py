"""The record of several seeds of one run, held to Theorem A; needs no torch."""

from __future__ import annotations

from collections.abc import Sequence

from separatrix.core.evidence.outcome import Outcome
from separatrix.core.evidence.records import Measurement
from separatrix.models.stored.record import measured, tests
from separatrix.models.stored.run import Run
from separatrix.theory.fails.a_accuracy import check_answers


def measurement(run: Run, outcomes: Sequence[Outcome]) -> Measurement:
    """As `measured`. Raises CheckFailed, too, for an accuracy that no weights can have."""
    record = measured(run, outcomes)
    for several in zip(*(tests(run, outcome) for outcome in outcomes), strict=True):
        pairs = [(one.right, one.due) for one in several]
        check_answers(run.stack, several[0].task, pairs, run.tested)
    return record
