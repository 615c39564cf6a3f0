"""What Theorem A says of trained models: the accuracy that no training exceeds, and a check that
none is said to have done so.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from separatrix.core.errors import CheckFailed
from separatrix.core.numbers.accuracy import WHOLE, highest_accuracy, luck, percent, stored_accuracy
from separatrix.stacks.architecture import Architecture
from separatrix.tasks import Task

TRAINED_BITS = 32
"""Models are trained in float32, whatever formats their spec declares."""
_UNLUCKY = 30
"""A measurement is too good where luck gives it in fewer than one of 2^30 cases."""


class Ceiling(NamedTuple):
    """Accuracies in millionths: what no weights exceed, and what storing facts reaches."""

    at_most: int
    stored: int


def trained_ceiling(architecture: Architecture, task: Task) -> Ceiling | None:
    """The ceiling of models trained here, which start with a token of their own and keep float32;
    None for tasks of which Theorem A speaks not at all, or of some questions only. Raises Undecided
    as comparisons do.
    """
    facts = task.facts()
    if facts is None or facts.among:
        return None
    carried = architecture.cache(task.prefix_length + 1).values()
    bits = sum(count * max(width, TRAINED_BITS) for kind in carried for count, width in kind.parts)
    return Ceiling(
        highest_accuracy(facts.contents, facts.number, facts.values, bits),
        stored_accuracy(facts.number, facts.values, bits),
    )


def check_answers(
    architecture: Architecture, task: Task, answers: Sequence[tuple[int, int]], prompts: int
) -> Ceiling | None:
    """As `check_trained`, of answers right and due, one pair for each seed, in so many prompts.

    Answers of one prompt depend on each other. The bound on luck holds for the mean of independent
    numbers in [0, 1], too: here of each prompt's share.
    """
    shares = [right * prompts // due if due else 0 for right, due in answers]
    return check_trained(architecture, task, shares, prompts)


def check_trained(
    architecture: Architecture, task: Task, correct: Sequence[int], total: int
) -> Ceiling | None:
    """The ceiling of right answers, one count for each seed, of `total` each. Where the task asks
    several questions at once and whole prompts are counted, fewer still are right.

    Raises CheckFailed where a seed, or all of them together, lies so far above the ceiling that
    luck does not explain it: then a mixer carries more than it declares, or this program is wrong.
    """
    ceiling = trained_ceiling(architecture, task)
    if ceiling is None or ceiling.at_most == WHOLE:
        return ceiling
    together = (sum(correct), total * len(correct))
    for right, tested in (*((count, total) for count in correct), together):
        if luck(right, tested, ceiling.at_most) >= _UNLUCKY:
            raise CheckFailed(
                f"{architecture.spec} on {task.spec}: {right:,} of {tested:,} answers are"
                f" said to be right, but no weights answer more than {percent(ceiling.at_most)} of"
                " random questions (Theorem A). Either a mixer carries more than it declares, or"
                " this program is wrong: please report this"
            )
    return ceiling
