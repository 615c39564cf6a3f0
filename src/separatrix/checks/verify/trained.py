"""Checks a trained model's folder: its record, and, once more, how often its weights answer right.

The training itself is not run again; what is left of it is the model, which has the accuracy or
has it not.
"""

from __future__ import annotations

from math import log
from typing import Any, NamedTuple

from separatrix.checks.verify.budget import Cost, answering
from separatrix.checks.verify.measurement import NOT_RUN, counted, verify_measurement
from separatrix.core.errors import CheckFailed, SpecError
from separatrix.core.evidence.canonical import canonical, json_list
from separatrix.core.evidence.outcome import Outcome
from separatrix.models.model import Model
from separatrix.models.stored.accuracy import margin, prompt_stream, tally
from separatrix.models.stored.trained import RECORD, TRAINING, Stored
from separatrix.stacks.architecture import Architecture
from separatrix.tasks import Task, parse_task


class Told(NamedTuple):
    """What is said of one test of a model."""

    task: Task
    number: int
    """0 of the task itself, else the place of the longer size."""
    correct: int
    """Prompts right as a whole."""
    right: int
    """Answers right."""
    due: int
    bits: float | None = None
    """Mean of -log2 p of the right answers."""
    format: str = ""
    """What states were rounded to; "" where they were not."""


def run_again(model: Model, told: Told, seed: int, total: int) -> list[str]:
    """Sentences on the right answers of the weights, counted once more. Raises CheckFailed for
    other numbers than those said, unless rounding explains them.
    """
    found = tally(model, told.task, total, prompt_stream(seed, told.number), rounded=told.format)
    size = f" of {told.task.spec}" if told.number else ""
    size += f" with states in {told.format}" if told.format else ""
    prompts = f"the {total:,} test prompts of seed {seed}{size}"
    said = [_compared(found.correct, told.correct, found.close, prompts, told.format)]
    if found.due != told.due:
        raise CheckFailed(
            f"in {prompts} {found.due:,} answers are due, and not {told.due:,} as recorded"
        )
    answers = f"the {told.due:,} answers due in {prompts}"
    same = _compared(found.right, told.right, found.close_answers, answers, told.format)
    # where one answer is due in each prompt, it says the same twice
    said += [same] if told.task.several else []
    # a lead that changes by so much changes -log p by no more
    apart = margin(told.format) / log(2)
    if told.bits is not None and abs(found.bits - told.bits) > apart:
        raise CheckFailed(
            f"in {prompts} the weights leave {found.bits:.6f} bits for each answer, and not"
            f" {told.bits:.6f} as recorded"
        )
    return said


def _compared(found: int, told: int, close: int, of: str, rounded: str) -> str:
    if found == told:
        return f"the weights run again: {told:,} of {of} answered right, exactly as recorded"
    # on another machine sums are rounded otherwise
    if abs(found - told) <= close:
        return (
            f"the weights run again: {found:,} of {of} answered right, {told:,} as recorded;"
            f" rounding explains it: on {close:,} of them the two best answers lie within"
            f" {margin(rounded):g} of each other"
        )
    raise CheckFailed(f"the weights answer {found:,} of {of} right, and not {told:,} as recorded")


_OF_OUTCOME = ("steps_done", "stopped", "parameters")
"""Entries of a record's budget that are an outcome's."""
_MOST_FORMATS = 16
"""A record with more of them is refused before any weights run."""


def trained_cost(stored: Stored) -> Cost:
    """What running the weights again takes. Raises SeparatrixError for sizes that are none."""
    counted(stored.record)
    architecture = Architecture.parse(stored.record.architecture)
    # the longest is at most as long as the model reads
    lengths = [stored.task.length, *(stored.config.length for _ in stored.record.longer)]
    model = stored.config.to_json()
    rounded = json_list(stored.record.budget.get("formats")) or []
    streamed = [stored.task.length for _ in rounded[:_MOST_FORMATS]]
    return answering(model, architecture, lengths, stored.record.total, streamed=streamed)


def verify_trained(stored: Stored) -> list[str]:
    """What was checked, in sentences. Raises EvidenceError where the files contradict each other,
    or the weights are right more or less often than is said.
    """
    said = [sentence for sentence in verify_measurement(stored.record) if sentence != NOT_RUN]
    outcome = _outcome(stored)
    tests = _tests(stored, outcome)
    _same(stored, outcome, tests)
    model = stored.model()
    seed = stored.record.seeds[0]
    again = [run_again(model, test, seed, stored.record.total) for test in tests]
    return [
        *said,
        f"run, outcome, description and weights belong to one training, by code version"
        f" {stored.version[:40]}",
        *(sentence for said in again for sentence in said),
        "not checked: that this training leads to these weights; it was not run again",
    ]


def _outcome(stored: Stored) -> Outcome:
    """Raises CheckFailed for an outcome of another form than outcomes have."""
    try:
        return Outcome.from_json(stored.outcome)
    except SpecError as error:
        raise CheckFailed(f"{TRAINING}: {error}") from None


def _tests(stored: Stored, outcome: Outcome) -> list[Told]:
    """What was measured: the task, its longer sizes, and the task with rounded states. Raises
    CheckFailed where the outcome is not of these.
    """
    record = stored.record
    longer = [(parse_task(said["task"]), said["correct"][0]) for said in record.longer]
    counts = map(len, (outcome.longer, outcome.longer_right, outcome.longer_due))
    if any(count != len(longer) for count in counts):
        raise CheckFailed(
            f"{RECORD} is about {len(longer)} longer sizes, {TRAINING} about another number"
        )
    rounded = [each.format for each in outcome.formats]
    if rounded != stored.run.get("formats", []):
        raise CheckFailed(
            f"{TRAINING} has a run that rounds states otherwise than its outcome, to"
            f" {', '.join(rounded) or 'nothing'}"
        )
    own = Told(stored.task, 0, record.correct[0], outcome.right, outcome.due, outcome.bits)
    further = [
        Told(task, place + 1, right, *outcome.longer_answers(place))
        for place, (task, right) in enumerate(longer)
    ]
    tested = [
        Told(stored.task, 0, each.correct, each.right, each.due, each.bits, each.format)
        for each in outcome.formats
    ]
    return [own, *further, *tested]


def _same(stored: Stored, outcome: Outcome, tests: list[Told]) -> None:
    """Raises CheckFailed where the run or its outcome are others than the record says."""
    record = stored.record
    run = {*record.budget} - {*_OF_OUTCOME} | {"architecture", "task", "seed"}
    odd = run ^ {*stored.run}
    if odd:
        raise CheckFailed(
            f"{TRAINING} has missing or unknown entries: {', '.join(sorted(odd))[:80]}"
        )
    # a training that diverged leaves no folder
    said = {
        **stored.run,
        "seed": outcome.seed,
        "status": outcome.status,
        "tested": outcome.tested,
        "steps_done": [outcome.steps_done],
        "stopped": [outcome.stopped],
        "parameters": outcome.parameters,
        "right answers at longer sizes": list(outcome.longer),
        "single answers": [_of_answers(test, outcome) for test in tests],
    }
    wanted = record.budget | {
        "seed": record.seeds[0],
        "status": "done",
        "tested": record.total,
        "right answers at longer sizes": [one["correct"][0] for one in record.longer],
    }
    if record.answers:
        wanted["single answers"] = [_first(one) for one in record.answers]
    for name, value in wanted.items():
        if name not in said or canonical(said[name]) != canonical(value):
            raise CheckFailed(
                f"{RECORD} says {name[:40]} {canonical(value)[:60]}, {TRAINING}"
                f" {canonical(said.get(name))[:60]}"
            )


def _of_answers(test: Told, outcome: Outcome) -> dict[str, object]:
    """What an outcome says of the answers of one of its tests, as a record has it."""
    said: dict[str, object] = {"right": test.right, "due": test.due}
    if test.bits is not None:
        said["bits"] = test.bits
    if test.format:
        return said | {"format": test.format, "correct": test.correct}
    return said if test.number else said | {"bits_squares": outcome.bits_squares}


def _first(said: dict[str, Any]) -> dict[str, object]:
    """What a record of one seed says of answers, but for what follows from it."""
    named = {name: value for name, value in said.items() if name not in ("task", "intervals")}
    return {name: value if name == "format" else value[0] for name, value in named.items()}
