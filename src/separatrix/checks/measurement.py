"""Checks a measurement: that its counts, interval, chance and budget belong together. The
training itself is not run again.
"""

from __future__ import annotations

from separatrix.architecture import Architecture
from separatrix.errors import EvidenceError
from separatrix.evidence.records import Measurement
from separatrix.numbers.wilson import wilson
from separatrix.tasks import parse_task

SETTINGS = {
    "steps",
    "batch",
    "learning_rate",
    "width",
    "hidden",
    "weight_decay",
    "tested",
    "stop_at",
}
OUTCOME = {"optimiser", "steps_done", "parameters"}


def verify_measurement(record: Measurement) -> list[str]:
    """What was checked, in sentences. Raises EvidenceError when the parts contradict each other."""
    if Architecture.parse(record.architecture).spec != record.architecture:
        raise EvidenceError(
            f"architecture '{record.architecture}' is not in canonical form; the file was edited"
        )
    task = parse_task(record.task)
    if task.spec != record.task:
        raise EvidenceError(f"task '{record.task}' is not in canonical form; the file was edited")
    if str(task.chance) != record.chance:
        raise EvidenceError(f"chance is {record.chance}, but the task's is {task.chance}")
    if (
        not record.seeds
        or len(record.seeds) != len(record.correct)
        or len(set(record.seeds)) != len(record.seeds)
    ):
        raise EvidenceError(
            f"{len(record.seeds)} seeds and {len(record.correct)} counts: need one count for each"
            " different seed"
        )
    if not all(0 <= count <= record.total for count in record.correct):
        raise EvidenceError(
            f"counts {list(record.correct)} do not lie between 0 and {record.total}"
        )
    if record.confidence != "0.95" or len(record.intervals) != len(record.correct):
        raise EvidenceError("a measurement has a 95 % interval for each seed, and no other")
    for count, interval in zip(record.correct, record.intervals, strict=True):
        if wilson(count, record.total) != interval:
            raise EvidenceError(
                f"interval {list(interval)} is not the 95 % Wilson interval of {count} right of"
                f" {record.total}"
            )
    if set(record.budget) != SETTINGS | OUTCOME or record.budget["tested"] != record.total:
        raise EvidenceError(
            "the budget has missing or unknown entries, or another number of test instances than"
            " the counts"
        )
    done = record.budget["steps_done"]
    most = record.budget["steps"]
    if (
        not isinstance(done, list)
        or len(done) != len(record.seeds)
        or not all(type(s) is int and 1 <= s <= most for s in done)
    ):
        raise EvidenceError(
            f"steps done {done} do not fit {len(record.seeds)} seeds of at most {most} steps"
        )
    return [
        "counts, chance level and Wilson intervals belong together (measured, not proved: the"
        " training was not run again)"
    ]
