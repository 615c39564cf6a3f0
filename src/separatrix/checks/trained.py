"""Checks a trained model's folder: its record, and, once more, how often its weights answer right.

The training itself is not run again; what is left of it is the model, which has the accuracy or
has it not.
"""

from __future__ import annotations

import math

from separatrix.architecture import Architecture
from separatrix.checks.budget import Cost, answering
from separatrix.checks.measurement import NOT_RUN, verify_measurement
from separatrix.errors import CheckFailed
from separatrix.evidence.canonical import canonical
from separatrix.model import Model
from separatrix.stored.accuracy import prompt_stream, tally
from separatrix.stored.trained import RECORD, TRAINING, Stored
from separatrix.tasks import Task, parse_task

_OF_OUTCOME = ("steps_done", "stopped", "parameters")
"""Entries of a record's budget that are an outcome's."""
_OUTCOME = {"seed", "status", "correct", "tested", "longer", "seconds", *_OF_OUTCOME}
"""What an outcome says."""
_ANSWERS = {"right", "due", "bits", "bits_squares", "longer_right", "longer_due", "formats"}
"""What it says of single answers; nothing where an earlier version wrote it."""


def trained_cost(stored: Stored) -> Cost:
    """What running the weights again takes. Raises SeparatrixError for sizes that are none."""
    architecture = Architecture.parse(stored.record.architecture)
    # the longest is at most as long as the model reads
    lengths = [stored.task.length, *(stored.config.length for _ in stored.record.longer)]
    return answering(stored.config.to_json(), architecture, lengths, stored.record.total)


def verify_trained(stored: Stored) -> list[str]:
    """What was checked, in sentences. Raises EvidenceError where the files contradict each other,
    or the weights are right more or less often than is said.
    """
    said = [sentence for sentence in verify_measurement(stored.record) if sentence != NOT_RUN]
    _same(stored)
    model = stored.model()
    again = [
        _again(model, task, stored, number, right)
        for number, (task, right) in enumerate(_counts(stored))
    ]
    return [
        *said,
        f"run, outcome, description and weights belong to one training, by code version"
        f" {stored.version[:40]}",
        *again,
        "not checked: that this training leads to these weights; it was not run again",
    ]


def _counts(stored: Stored) -> list[tuple[Task, int]]:
    """What was measured: the task, then its longer sizes, each with the right answers."""
    record = stored.record
    beyond = [(parse_task(said["task"]), said["correct"][0]) for said in record.longer]
    return [(stored.task, record.correct[0]), *beyond]


def _same(stored: Stored) -> None:
    """Raises CheckFailed where the run or its outcome are others than the record says."""
    record = stored.record
    outcome = stored.outcome
    run = {*record.budget} - {*_OF_OUTCOME} | {"architecture", "task", "seed"}
    own = _OUTCOME | _ANSWERS if _ANSWERS & {*outcome} else _OUTCOME
    odd = run ^ {*stored.run} | own ^ {*outcome}
    if odd:
        raise CheckFailed(
            f"{TRAINING} has missing or unknown entries: {', '.join(sorted(odd))[:80]}"
        )
    seconds = outcome["seconds"]
    if type(seconds) not in (int, float) or not 0 <= seconds < math.inf:
        raise CheckFailed(f"{TRAINING} says seconds {canonical(seconds)[:60]}")
    # a training that diverged leaves no folder
    ended = {"seed": record.seeds[0], "status": "done", "tested": record.total}
    for name, value in ended.items():
        if canonical(outcome[name]) != canonical(value):
            raise CheckFailed(
                f"{TRAINING} says {name} {canonical(outcome[name])[:60]} of an outcome that can"
                f" only have {canonical(value)}"
            )
    said = {
        **stored.run,
        "steps_done": [outcome.get("steps_done")],
        "stopped": [outcome.get("stopped")],
        "parameters": outcome.get("parameters"),
        "right answers at longer sizes": outcome.get("longer"),
    }
    wanted = record.budget | {
        "right answers at longer sizes": [right for _, right in _counts(stored)[1:]]
    }
    for name, value in wanted.items():
        if name not in said or canonical(said[name]) != canonical(value):
            raise CheckFailed(
                f"{RECORD} says {name[:40]} {canonical(value)[:60]}, {TRAINING}"
                f" {canonical(said.get(name))[:60]}"
            )


def _again(model: Model, task: Task, stored: Stored, number: int, right: int) -> str:
    """A sentence on the right answers of the weights, counted once more. Raises CheckFailed for
    another count than the one said, unless rounding explains it.
    """
    seed = stored.record.seeds[0]
    total = stored.record.total
    found = tally(model, task, total, prompt_stream(seed, number))
    of = f"of the {total:,} test prompts of seed {seed}"
    size = f" of {task.spec}" if number else ""
    if found.right == right:
        return f"the weights run again: {right:,} {of}{size} answered right, exactly as recorded"
    # on another machine sums are rounded otherwise
    if abs(found.right - right) <= found.close:
        return (
            f"the weights run again: {found.right:,} {of}{size} answered right, {right:,} as"
            f" recorded; rounding explains it: on {found.close:,} of them the two best answers"
            " lie within 1e-4 of each other"
        )
    raise CheckFailed(
        f"the weights answer {found.right:,} {of}{size} right, and not {right:,} as recorded"
    )
