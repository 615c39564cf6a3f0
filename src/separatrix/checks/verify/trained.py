"""Checks a trained model's folder: its record, and, once more, how often its weights answer right.

The training itself is not run again; what is left of it is the model, which has the accuracy or
has it not.
"""

from __future__ import annotations

from math import log

from separatrix.checks.verify.budget import Cost, answering
from separatrix.checks.verify.measurement import (
    NOT_RUN,
    read_run,
    run_of,
    same_record,
    verify_measurement,
)
from separatrix.core.errors import CheckFailed, SeparatrixError
from separatrix.core.evidence.outcome import Outcome
from separatrix.models.model import Model
from separatrix.models.stored.accuracy import margin, prompt_stream, tally
from separatrix.models.stored.record import Test, tests
from separatrix.models.stored.trained import RECORD, TRAINING, Stored


def run_again(model: Model, told: Test, seed: int, total: int) -> list[str]:
    """Sentences on the right answers of the weights, counted once more. Raises CheckFailed for
    other numbers than those said, unless rounding explains them.
    """
    found = tally(model, told.task, total, prompt_stream(seed, told.place), rounded=told.format)
    size = f" of {told.task.spec}" if told.place else ""
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


def trained_cost(stored: Stored) -> Cost:
    """What running the weights again takes. Raises SeparatrixError for sizes that are none."""
    run = run_of(stored.record)
    # the longest is at most as long as the model reads
    lengths = [stored.task.length, *(stored.config.length for _ in run.longer)]
    streamed = [stored.task.length for _ in run.formats]
    return answering(stored.config.to_json(), run.stack, lengths, run.tested, streamed=streamed)


def verify_trained(stored: Stored) -> list[str]:
    """What was checked, in sentences. Raises EvidenceError where the files contradict each other,
    or the weights are right more or less often than is said.
    """
    said = [sentence for sentence in verify_measurement(stored.record) if sentence != NOT_RUN]
    try:
        run = read_run(stored.run, "its run")
        outcome = Outcome.from_json(stored.outcome)
        same_record(stored.record, run, [outcome])
    except SeparatrixError as error:
        raise CheckFailed(f"{TRAINING} is about another training than {RECORD}: {error}") from None
    if outcome.diverged:
        raise CheckFailed(f"{TRAINING}: a training that diverged leaves no folder")
    model = stored.model()
    again = [run_again(model, test, run.seed, run.tested) for test in tests(run, outcome)]
    return [
        *said,
        "run, outcome, description and weights belong to one training",
        *(sentence for said in again for sentence in said),
        # on one line: a text of the folder's writer may look like a check
        f"not checked: that code version {' '.join(stored.version[:40].split())!r} trained it, and"
        " that this training leads to these weights; it was not run again",
    ]
