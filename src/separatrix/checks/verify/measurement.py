"""Checks a measurement: derives the whole record again from the run and the counts of its seeds,
and that no theorem rules its accuracy out. The training itself is not run again.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from separatrix.checks.verify.same import difference, holding, told_by
from separatrix.core.errors import EvidenceError, SeparatrixError, first_line
from separatrix.core.evidence.canonical import canonical
from separatrix.core.evidence.outcome import Outcome
from separatrix.core.evidence.records import Measurement
from separatrix.core.evidence.rule import WINDOW
from separatrix.core.numbers.accuracy import WHOLE, percent
from separatrix.models.model import parameter_count, trained_config
from separatrix.models.stored.record import AFTER, Test, measured, says_answers, tests
from separatrix.models.stored.run import Run
from separatrix.theory.fails.a_accuracy import check_answers, check_trained

NOT_RUN = (
    "not checked: how many test prompts the trained model answered; the training was not run again"
    " (measured, not proved)"
)
FORGOTTEN = 0.1
"""What a test may fall short of the accuracy that ended training: 0.034 at most in 346 runs."""
ROUNDING = 1e-5
"""Largest rounding of a mean of float32 numbers of a few bits."""


@holding("this measurement")
def verify_measurement(record: Measurement) -> list[str]:
    """What was checked, in sentences. Raises CheckFailed when the parts contradict each other, or
    no weights can have the accuracy.
    """
    told_by(record)
    run = run_of(record)
    outcomes = [_outcome(record, run, place) for place in range(len(record.seeds))]
    for outcome in outcomes:
        _ended(run, outcome)
    same_record(record, run, outcomes)
    _same_parameters(run, outcomes[0].parameters)
    of_tests = [*zip(*(tests(run, outcome) for outcome in outcomes), strict=True)]
    for several in of_tests:
        for test, outcome in zip(several, outcomes, strict=True):
            if not _possible(test, outcome.tested, bits=says_answers(run)):
                raise EvidenceError(
                    f"{test.right:,} of {test.due:,} answers right in {run.tested:,} prompts of"
                    f" {test.task.spec}, {test.correct:,} of them wholly, is impossible, or so few"
                    " bits an answer are"
                )
    for outcome in outcomes:
        _solved(run, outcome)
    said: list[str] = []
    for several in of_tests:
        task = several[0].task
        check_trained(run.stack, task, [one.correct for one in several], record.total)
        pairs = [(one.right, one.due) for one in several]
        ceiling = check_answers(run.stack, task, pairs, record.total)
        if ceiling is not None and ceiling.at_most != WHOLE and not several[0].format:
            where = f" on {task.spec}" * bool(several[0].place)
            said.append(
                f"no seed is right so often{where} that no weights could be: Theorem A allows"
                f" {percent(ceiling.at_most)} of random questions"
            )
    diverged = [str(outcome.seed) for outcome in outcomes if outcome.diverged]
    if diverged:
        said.append(
            f"{len(diverged)} of {len(outcomes)} seeds diverged and count with no answer right:"
            f" {', '.join(diverged)}"
        )
    return [
        "counts, chance level, Wilson intervals and the model's parameters belong together",
        *said,
        *([record.repeats] if record.repeats else []),
        # nothing else here can tell: a model may be said to solve what it is proved to fail
        NOT_RUN,
    ]


def run_of(record: Measurement) -> Run:
    """The run that a record is about, with its first seed. Raises EvidenceError where its budget
    is that of no run.
    """
    if not record.seeds:
        raise EvidenceError("a measurement has at least one seed")
    budget = {name: value for name, value in record.budget.items() if name not in AFTER}
    named = {"architecture": record.architecture, "task": record.task, "seed": record.seeds[0]}
    return read_run(budget | named, "the budget")


def read_run(given: Mapping[str, Any], where: str) -> Run:
    """Raises EvidenceError for what is no run that can be trained, or not as runs are written."""
    try:
        run = Run.from_json(given).canonical()
        run.check()
    except SeparatrixError as error:
        raise EvidenceError(f"{where} is that of no run: {error}") from None
    if canonical(run.to_json()) != canonical(given):
        raise EvidenceError(
            f"{difference(run.to_json(), given, where)}: it lacks an entry, or was edited"
        )
    return run


def _outcome(record: Measurement, run: Run, place: int) -> Outcome:
    """What a record says of one of its seeds. Raises EvidenceError where it says too little, or a
    value of another type or range.
    """
    budget = record.budget
    try:
        stopped = budget["stopped"][place]
        diverged = stopped == "diverged"
        longer = [said["correct"][place] for said in record.longer]
        given: dict[str, Any] = {
            "seed": record.seeds[place],
            "status": "diverged" if diverged else "done",
            "stopped": stopped,
            "correct": record.correct[place],
            "tested": 0 if diverged else record.total,
            "longer": longer,
            "steps_done": budget["steps_done"][place],
            "parameters": budget["parameters"],
            "seconds": 0.0,
            "rule": run.rule,
        }
        if says_answers(run):
            own, *others = record.answers
            further, rounded = others[: len(longer)], others[len(longer) :]
            given |= {name: own[name][place] for name in ("right", "due", "bits", "bits_squares")}
            given["longer_right"] = [said["right"][place] for said in further]
            given["longer_due"] = [said["due"][place] for said in further]
            given["formats"] = [
                {"format": said["format"]}
                | {name: said[name][place] for name in ("correct", "right", "due", "bits")}
                for said in ([] if diverged else rounded)
            ]
        else:
            given |= {"right": given["correct"], "due": given["tested"], "longer_right": longer}
            given |= {"longer_due": [given["tested"]] * len(longer), "formats": []}
            given |= {"bits": 0.0, "bits_squares": 0.0}
        return Outcome.from_json(given)
    except (KeyError, IndexError, TypeError, ValueError, SeparatrixError) as error:
        raise EvidenceError(
            f"counts, answers or budget of its seeds lack or garble something ({error!r:.80})"
        ) from None


def same_record(record: Measurement, run: Run, outcomes: list[Outcome]) -> None:
    """Raises EvidenceError unless a record is what a run and its outcomes give, to the letter."""
    again = measured(run, outcomes)
    if again.digest != record.digest:
        raise EvidenceError(
            "does not follow from the run and its counts:"
            f" {difference(again.body(), record.body(), 'the measurement')}"
        )


def _ended(run: Run, outcome: Outcome) -> None:
    """Raises EvidenceError where the steps of a seed do not allow what is said to have ended it."""
    steps = outcome.steps_done
    before = run.stages[-1].until if run.stages else 0
    possible = {
        "solved": steps >= before + WINDOW and run.stop_at <= 1,
        "plateau": 0 < run.plateau <= steps,
        "steps": steps == run.steps,
        "seconds": run.seconds > 0,
        "diverged": outcome.correct == 0,
    }
    if not possible[outcome.stopped]:
        raise EvidenceError(
            f"seed {outcome.seed} is said to have ended as '{outcome.stopped}' after {steps:,}"
            f" steps with {outcome.correct:,} right answers, which its budget does not allow"
        )


def _possible(test: Test, total: int, *, bits: bool) -> bool:
    """Whether counts of answers fit a count of prompts, and bits fit them: a prompt that is not
    right as a whole has a wrong answer at least; the right answer to a question answered wrongly
    has a probability of 1/2 at most, a bit or more.
    """
    most = total * (test.task.length if test.task.several else 1)
    wrong = test.due - test.right
    return (
        test.due <= most
        and (test.task.several or test.due == total)
        and total - test.correct <= wrong
        and (wrong == 0 or test.correct < total)
        and (not bits or test.bits is None or test.bits * test.due + ROUNDING * test.due >= wrong)
    )


def _solved(run: Run, outcome: Outcome) -> None:
    """Raises EvidenceError where a seed whose training ended as solved is right much less often in
    its test.
    """
    least = run.stop_at - FORGOTTEN
    interval = outcome.interval
    if outcome.stopped == "solved" and interval is not None and float(interval[1]) < least:
        right, due = outcome.answers
        raise EvidenceError(
            f"seed {outcome.seed} is said to have ended as 'solved', right on {run.stop_at:.1%} of"
            f" what it trained on last, and {right:,} of {due:,} answers of its test are right:"
            " these contradict each other"
        )


def _same_parameters(run: Run, said: int) -> None:
    """Raises EvidenceError unless the model trained has as many parameters as is said."""
    config = trained_config(
        run.architecture, run.trained, width=run.width, hidden=run.hidden, length=run.length
    )
    try:
        found = parameter_count(config)
    except (RuntimeError, OverflowError) as error:
        raise EvidenceError(f"the model trained cannot be built: {first_line(error)}") from None
    if found != said:
        raise EvidenceError(f"the model trained has {found:,} parameters; the budget says {said:,}")
