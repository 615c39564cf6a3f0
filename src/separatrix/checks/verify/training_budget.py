"""Checks the budget of a measurement: that every entry is possible by its type and range, and that
the entries can belong to one training.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

from separatrix.core.errors import EvidenceError
from separatrix.core.evidence.canonical import json_list
from separatrix.core.evidence.records import Measurement
from separatrix.core.evidence.rule import WINDOW, broken
from separatrix.tasks import Task
from separatrix.tasks.resized import read_longer, read_stages

MOST = 10**12
"""Nothing that is counted in a training run is more."""
COUNTED = {"hidden": 0, "plateau": 0} | dict.fromkeys(
    ("steps", "batch", "width", "tested", "parameters"), 1
)
"""Integers of the budget, each with the smallest that is possible."""
REAL = {"learning_rate": (0.0, 1e6), "weight_decay": (0.0, 1e6)} | {
    "stop_at": (0.0, 2.0),
    "seconds": (0.0, 1e9),
}
"""Other numbers of the budget, each with the range it lies in. Accuracies are at most 1, so that
training never stops early at 2.
"""
ZERO = ("weight_decay", "seconds")
"""Those that may be 0."""
WORDS = {
    "optimiser": ("muon", "adamw"),
    "schedule": ("cosine", "constant", "linear"),
    "precision": ("fp32", "bf16"),
}
"""Words of the budget, each with those that are known."""
STOPPED = ("solved", "plateau", "steps", "seconds", "diverged")
"""What ends a training."""
TEXTS = ("curriculum", "longer")
BUDGET = {*COUNTED, *REAL, *WORDS, *TEXTS, "steps_done", "stopped"}
LATER = {"warmup", "rule", "formats"}
"""What a budget says only where it is not as it always was."""
FORMATS = ("bf16", "fp16")
"""What states may be rounded to in further tests, which a budget names where there are any."""


class Trained(NamedTuple):
    """What a budget says of the training."""

    length: int
    """Tokens of the longest prompt that the model has places for."""
    longer: tuple[Task, ...]
    """The tasks at longer sizes that it was tested on."""
    stopped: tuple[str, ...]
    """What ended each seed."""
    drawn: int
    """Prompts of the task itself that each seed that was tested has trained on, at least."""
    formats: tuple[str, ...] = ()
    """What states were rounded to in further tests."""

    @property
    def diverged(self) -> tuple[int, ...]:
        """The places of the seeds that diverged."""
        return tuple(place for place, why in enumerate(self.stopped) if why == "diverged")


def read_budget(record: Measurement, task: Task) -> Trained:
    """Raises EvidenceError where an entry of the budget is missing, unknown or impossible, and
    SeparatrixError for sizes that the task does not have.
    """
    budget = record.budget
    if set(budget) - LATER != BUDGET or budget["tested"] != record.total:
        raise EvidenceError(
            "the budget has missing or unknown entries, or another number of test instances than"
            " the counts"
        )
    _numbers(budget)
    done = _done(record)
    for name, known in WORDS.items():
        if budget[name] not in [*known]:
            raise EvidenceError(
                f"{name} is {str(budget[name])[:40]!r}; it must be one of {', '.join(known)}"
            )
    stages = read_stages(task, _texts(budget, "curriculum"))
    trained = max((task.length, *(stage.task.length for stage in stages)))
    longer = read_longer(task, _texts(budget, "longer"), trained)
    before = stages[-1].until if stages else 0
    if (
        [stage.text for stage in stages] != budget["curriculum"]
        or [other.text for other in longer] != budget["longer"]
        or before >= budget["steps"]
    ):
        raise EvidenceError(
            "curriculum or longer sizes are not in canonical form, or leave no step for the task;"
            " the file was edited"
        )
    stopped = _stopped(record, done, before)
    tested = [steps for steps, why in zip(done, stopped, strict=True) if why != "diverged"]
    return Trained(
        length=max((trained, *(other.task.length for other in longer))),
        longer=tuple(other.task for other in longer),
        stopped=stopped,
        drawn=budget["batch"] * max(0, min(tested, default=0) - before),
        formats=_formats(budget),
    )


def _numbers(budget: Mapping[str, Any]) -> None:
    counted = COUNTED | ({"warmup": 1} if "warmup" in budget else {})
    for name, least in counted.items():
        value = budget[name]
        # a bool is an int to isinstance, but no count
        if type(value) is not int or not least <= value <= MOST:
            raise EvidenceError(
                f"{name} is {str(value)[:40]!r}; it must be an integer from {least} to 10^12"
            )
    for name, (low, high) in REAL.items():
        value = budget[name]
        positive = name not in ZERO
        if type(value) not in (int, float) or not low <= value <= high or (positive and not value):
            raise EvidenceError(
                f"{name} is {str(value)[:40]!r}; it must be a number"
                f" {'above' if positive else 'from'} {low:g} to {high:g}"
            )
    if budget.get("warmup", 0) > budget["steps"]:
        raise EvidenceError("the warm-up has more steps than the training; the file was edited")
    if "rule" in budget and (budget["rule"] != "study" or broken({"warmup": 0} | {**budget})):
        raise EvidenceError("the rule of stopping is unknown, or not kept; the file was edited")


def _done(record: Measurement) -> list[int]:
    """The steps that each seed did."""
    most = record.budget["steps"]
    done = json_list(record.budget["steps_done"])
    if (
        done is None
        or len(done) != len(record.seeds)
        or not all(type(steps) is int and 1 <= steps <= most for steps in done)
    ):
        raise EvidenceError(
            f"steps done {str(record.budget['steps_done'])[:60]} do not fit {len(record.seeds)}"
            f" seeds of at most {most} steps"
        )
    return done


def _texts(budget: Mapping[str, Any], name: str) -> list[str]:
    texts = json_list(budget[name])
    if texts is None or not all(isinstance(text, str) for text in texts):
        raise EvidenceError(f"{name} is {str(budget[name])[:40]!r}; it must be a list of texts")
    return texts


def _formats(budget: Mapping[str, Any]) -> tuple[str, ...]:
    if "formats" not in budget:
        return ()
    found = _texts(budget, "formats")
    if not found or len(set(found)) < len(found) or not set(found) <= {*FORMATS}:
        raise EvidenceError(
            f"formats is {str(found)[:60]}; where it stands it names some of {', '.join(FORMATS)},"
            " each once"
        )
    return tuple(found)


def _stopped(record: Measurement, done: list[int], before: int) -> tuple[str, ...]:
    """What ended each seed, where its steps allow that. Raises EvidenceError where they do not."""
    budget = record.budget
    stopped = json_list(budget["stopped"])
    if stopped is None or len(stopped) != len(done) or not all(why in STOPPED for why in stopped):
        raise EvidenceError(
            f"stopped is {str(budget['stopped'])[:60]}; it must say for each seed one of"
            f" {', '.join(STOPPED)}"
        )
    for seed, why, steps, right in zip(record.seeds, stopped, done, record.correct, strict=True):
        possible = {
            "solved": steps >= before + WINDOW and budget["stop_at"] <= 1,
            "plateau": 0 < budget["plateau"] <= steps,
            "steps": steps == budget["steps"],
            "seconds": budget["seconds"] > 0,
            "diverged": right == 0,
        }
        if not possible[why]:
            raise EvidenceError(
                f"seed {seed} is said to have ended as '{why}' after {steps:,} steps with"
                f" {right:,} right answers, which its budget does not allow"
            )
    return tuple(stopped)
