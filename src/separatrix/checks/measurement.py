"""Checks a measurement: that its counts, interval, chance and budget belong together, and that no
theorem rules its accuracy out. The training itself is not run again.
"""

from __future__ import annotations

import torch

from separatrix.architecture import Architecture
from separatrix.errors import EvidenceError, first_line
from separatrix.evidence.records import Measurement
from separatrix.model import Model, ModelConfig
from separatrix.numbers.accuracy import WHOLE, percent
from separatrix.numbers.wilson import wilson
from separatrix.tasks import Task, parse_task
from separatrix.theory.trained import Ceiling, check_trained

MOST = 10**12
"""Nothing that is counted in a training run is more."""
COUNTED = {"steps": 1, "batch": 1, "width": 1, "hidden": 0, "tested": 1, "parameters": 1}
"""Integers of the budget, each with the smallest that is possible."""
REAL = {"learning_rate": (0.0, 1e6), "weight_decay": (0.0, 1e6), "stop_at": (0.0, 2.0)}
"""Other numbers of the budget, each with the range it lies in. Accuracies are at most 1, so that
training never stops early at 2.
"""
OPTIMISER = "AdamW"
BUDGET = {*COUNTED, *REAL, "optimiser", "steps_done"}


def verify_measurement(record: Measurement) -> list[str]:
    """What was checked, in sentences. Raises EvidenceError when the parts contradict each other, or
    no weights can have the accuracy.
    """
    architecture = Architecture.parse(record.architecture)
    if architecture.spec != record.architecture:
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
    if not all(0 <= seed < 1 << 63 for seed in record.seeds):
        raise EvidenceError(f"seeds {str(record.seeds)[:60]} do not all lie between 0 and 2^63")
    if not 1 <= record.total <= MOST:
        raise EvidenceError(f"{str(record.total)[:40]} tests; a measurement has 1 to 10^12")
    if not all(0 <= count <= record.total for count in record.correct):
        raise EvidenceError(
            f"counts {str(list(record.correct))[:60]} do not lie between 0 and {record.total}"
        )
    if record.confidence != "0.95" or len(record.intervals) != len(record.correct):
        raise EvidenceError("a measurement has a 95 % interval for each seed, and no other")
    for count, interval in zip(record.correct, record.intervals, strict=True):
        if wilson(count, record.total) != interval:
            raise EvidenceError(
                f"interval {list(interval)} is not the 95 % Wilson interval of {count} right of"
                f" {record.total}"
            )
    _budget(record, task)
    ceiling = check_trained(architecture, task, record.correct, record.total)
    return [
        "counts, chance level, Wilson intervals and the model's parameters belong together",
        *_ceiling_said(ceiling),
        # nothing else here can tell: a model may be said to solve what it is proved to fail
        "not checked: how many test prompts the trained model answered; the training was not run"
        " again (measured, not proved)",
    ]


def _ceiling_said(ceiling: Ceiling | None) -> list[str]:
    if ceiling is None or ceiling.at_most == WHOLE:
        return []
    return [
        f"no seed is right so often that no weights could be: Theorem A allows"
        f" {percent(ceiling.at_most)} of random questions"
    ]


def _budget(record: Measurement, task: Task) -> None:
    """Raises EvidenceError where an entry of the budget is missing, unknown or impossible."""
    budget = record.budget
    if set(budget) != BUDGET or budget["tested"] != record.total:
        raise EvidenceError(
            "the budget has missing or unknown entries, or another number of test instances than"
            " the counts"
        )
    for name, least in COUNTED.items():
        value = budget[name]
        # a bool is an int to isinstance, but no count
        if type(value) is not int or not least <= value <= MOST:
            raise EvidenceError(
                f"{name} is {str(value)[:40]!r}; it must be an integer from {least} to 10^12"
            )
    for name, (low, high) in REAL.items():
        value = budget[name]
        positive = name != "weight_decay"
        if type(value) not in (int, float) or not low <= value <= high or (positive and not value):
            raise EvidenceError(
                f"{name} is {str(value)[:40]!r}; it must be a number"
                f" {'above' if positive else 'from'} {low:g} to {high:g}"
            )
    if budget["optimiser"] != OPTIMISER:
        raise EvidenceError(
            f"the optimiser is {str(budget['optimiser'])[:40]!r}; runs here use {OPTIMISER}"
        )
    done = budget["steps_done"]
    if (
        not isinstance(done, list)
        or len(done) != len(record.seeds)
        or not all(type(steps) is int and 1 <= steps <= budget["steps"] for steps in done)
    ):
        raise EvidenceError(
            f"steps done {str(done)[:60]} do not fit {len(record.seeds)} seeds of at most"
            f" {budget['steps']} steps"
        )
    count_parameters(record, task)


def count_parameters(record: Measurement, task: Task) -> None:
    """Raises EvidenceError unless the model trained has as many parameters as the budget says."""
    config = ModelConfig(
        architecture=record.architecture,
        vocabulary=task.vocabulary,
        length=task.length,
        answers=task.answers,
        width=record.budget["width"],
        hidden=record.budget["hidden"],
        norm=True,
        bos=True,
    )
    try:
        # shapes only: no numbers are drawn
        with torch.device("meta"):
            found = sum(p.numel() for p in Model(config).parameters())
    except (RuntimeError, OverflowError) as error:
        raise EvidenceError(f"the model trained cannot be built: {first_line(error)}") from None
    if found != record.budget["parameters"]:
        raise EvidenceError(
            f"the model trained has {found:,} parameters; the budget says"
            f" {record.budget['parameters']:,}"
        )
