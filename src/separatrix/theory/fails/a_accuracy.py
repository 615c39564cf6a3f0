"""Theorem A: the highest accuracy on random questions that a bounded cache allows, whatever the
weights; and that no trained model is said to have more. Theorem I says that some question is
answered wrongly; this one, how many are.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from separatrix.core.errors import CheckFailed
from separatrix.core.evidence.records import Verdict
from separatrix.core.numbers.accuracy import (
    WHOLE,
    facts_that_fit,
    highest_accuracy,
    luck,
    percent,
    stored_accuracy,
)
from separatrix.stacks.architecture import Architecture
from separatrix.tasks import Task
from separatrix.theory.base import FAILS, Theorem, number, size_in_words


class TheoremA(Theorem):
    key = "A"
    shows = FAILS
    anywhere = True
    after_thought = True
    grades = True

    def smallest(self, task: Task, verdict: Verdict) -> Task | None:
        # its n is the size that was asked, with the shift that a family leaves out
        return task if verdict.n == size_in_words(task)[1] else None

    def shown(self, verdict: Verdict, task: Task) -> dict[str, str]:
        numbers = verdict.numbers
        return super().shown(verdict, task) | {
            "too_many": more_than(numbers["ceiling_millionths"], task),
            "stored": percent(numbers["stored_millionths"], up=False),
        }

    def judge(self, architecture: Architecture, task: Task) -> Verdict | None:
        facts = task.facts()
        if facts is None:
            return None
        prefix = task.prefix_length
        cache = architecture.cache_bits(prefix)
        sign = facts.contents.compare_bits(cache)
        if not sign.positive:
            return None
        N, V = facts.number, facts.values
        ceiling = highest_accuracy(facts.contents, N, V, cache)
        sentence = (
            f"at {number(N)} {'different ' * facts.different}facts, each one of {number(V)} values,"
            f" no weights answer {more_than(ceiling, task)}, with or without chain of thought:"
            f" {number(cache)} bits of cache after {prefix:,} tokens, and {facts.contents}"
            f" lists of facts (log2 = {facts.contents.log2_str()})"
        )
        numbers = {
            "prefix": prefix,
            "cache_bits": cache,
            "facts": N,
            "values": V,
            "different": int(facts.different),
            "ceiling_millionths": ceiling,
            "stored_millionths": stored_accuracy(N, V, cache),
        }
        n = size_in_words(task)[1]
        return self.verdict(architecture, task, "FAILS", sentence, n=n, numbers=numbers, sign=sign)


def held_by_state(
    architecture: Architecture, values: int, tokens: int
) -> list[tuple[str, int, int]]:
    """Kinds of layers with recurrent states, how many there are, and how many facts of so many
    values their states alone tell after so many tokens, at the most: Theorem I with V^N lists of N
    facts.
    """
    kinds: dict[str, tuple[int, int]] = {}
    for layer, times in architecture.counted():
        for part in layer:
            bits = 0 if part.reading else part.handed_over(tokens).total
            if bits:
                layers, before = kinds.get(part.title, (0, 0))
                kinds[part.title] = layers + times, before + times * bits
    return [(kind, n, facts_that_fit(values, bits)) for kind, (n, bits) in kinds.items()]


def more_than(ceiling: int, task: Task) -> str:
    """What no weights do; an accuracy below 1 by less than a millionth is not told in figures."""
    facts = task.facts()
    asked = "random questions" if facts is None else f"random questions {facts.among}".rstrip()
    return f"all {asked}" if ceiling == WHOLE else f"more than {percent(ceiling)} of {asked}"


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
