"""A question of a capability card: a family of tasks that is put to `judge`, and the sentences that
say what an answer means; its lines, and the bound that lies beyond the context. The reason behind
an answer is told by the theorem that gives it.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from decimal import Decimal, InvalidOperation
from typing import NamedTuple

from separatrix.core.evidence.records import Status, Verdict
from separatrix.core.numbers.amounts import LONGEST_CONTEXT, format_times
from separatrix.stacks.architecture import Architecture
from separatrix.tasks import Task
from separatrix.theory.base import Theorem, number
from separatrix.theory.judge import THEOREMS, graded, judge
from separatrix.theory.nothing import NothingKnown
from separatrix.theory.words import Words


@dataclass(frozen=True)
class Bound:
    """A failure that a theorem shows only at sizes beyond the one that was asked."""

    theorem: str
    n: int | None
    """None for an asymptotic theorem, which shows no failure at any n that it could name."""
    asked: int
    """The same size at the context."""
    log2_n: str = ""
    """Of an asymptotic theorem: the base-2 logarithm of the n at which it would bite."""
    verdict: Verdict | None = None
    """The record of the failure, where a task of that size can be written."""
    beyond: int = 0
    """Where no n was searched for: a length up to which the theorem surely shows no failure."""

    @property
    def out_of_reach(self) -> bool:
        """Whether no prompt is that long: none here has more than 10^12 tokens."""
        if self.n is not None:
            return self.n > LONGEST_CONTEXT
        if self.beyond:
            return self.beyond >= LONGEST_CONTEXT
        try:
            return Decimal(self.log2_n) > LONGEST_CONTEXT.bit_length()
        except InvalidOperation:
            # a formula, where the number is too long to write
            return True

    @property
    def said(self) -> str:
        """How far away it is: "the bound bites at 937 times this size"."""
        if self.out_of_reach:
            return "the bound is out of reach"
        if self.n is None:
            return "the bound is asymptotic"
        return f"the bound bites at {format_times(self.n, self.asked)} this size"

    @property
    def where(self) -> str:
        """Where it bites: "from n = 7,675,932 on"; "" where its n is too large to write."""
        if self.beyond:
            return f"at no n up to {self.beyond:,}"
        return "" if self.n is None else THEOREMS[self.theorem].failing(self.n)


class Grade(NamedTuple):
    """The highest accuracy on random questions: in words, why, in millionths, and its record."""

    said: str
    why: str
    ceiling: int
    verdict: Verdict


@dataclass(frozen=True)
class CardLine:
    """One question and its answer at the context: FAILS only where a prompt within the context is
    answered wrongly whatever the weights.
    """

    question: str
    status: Status
    n: int | None
    """FAILS: the n of its verdict; None for everything else."""
    text: str
    theorem: str
    verdict: Verdict | None = None
    """The record that answers at the context, where a task record exists."""
    explain: str = ""
    """Two plain sentences: what the line means to someone who designs a model, and why."""
    bound: Bound | None = None
    """OPEN: a failure shown beyond the context, by the theorem of the line."""
    grade: Grade | None = None
    """FAILS: how many of random questions are answered at the context, at the most."""
    key: str = ""
    """The question's name: "recall"; see `ASKED`."""
    missing: str = ""
    """OPEN, and no bound: what is missing, in a few words."""
    thought: bool = False
    """Whether the model may write a chain of thought first."""
    steps: tuple[int, int] = (0, 0)
    """Of composition, the fewest that it is about, 0 for all up to the most, and the most."""

    @property
    def where(self) -> str:
        """Where its theorem shows failure: "from n = 58 on", "at n = 282"; "" where none does."""
        if self.bound is not None:
            return self.bound.where
        return "" if self.n is None else THEOREMS[self.theorem].failing(self.n)

    @property
    def reason(self) -> str:
        """The text, and how far away the bound is where there is one."""
        if self.bound is None:
            return self.text
        said = ", ".join(filter(None, (self.bound.said, self.bound.where)))
        return f"{said}: {self.text}"

    @property
    def record(self) -> Verdict | None:
        """What stands behind its text: the failure beyond the context, or the answer at it."""
        return (self.bound and self.bound.verdict) or self.verdict


BEYOND = "At this context no theorem here rules it out."
UNDECIDED = Words(
    "",
    "Neither a bound nor a construction of this program covers it. That is a statement about the"
    " theory, not about the model.",
)


@dataclass(frozen=True, kw_only=True)
class Question:
    """One question about a model at a context."""

    title: str
    size: int
    """The n at the context, as verdicts count it."""
    at: Callable[[int], Task]
    """The task at an n."""
    solved: str
    """What SOLVABLE means: that some weights do so."""
    failed: str
    """What FAILS from n on means, whatever the weights: that the model does so. "{n}" is the n,
    "{s}" its plural, "{half}" its half, "{most}" n where it may be too long to write.
    """
    here: Task | None = None
    """The task at the context, where it is another one than `at` gives."""
    least: Task | None = None
    """A task like it, which is asked for the n from which the model fails; None for itself."""
    unknown: Words = UNDECIDED
    """What is said where no theorem decides: before what the stack lacks, why, and in short."""
    after_thought: str = ""
    """The title of the same question with a chain of thought first, which is asked as well where
    the theorem that says FAILS speaks of those.
    """
    alone: bool = False
    """Whether it is asked at its own size only: a bound on more of the kind is another question."""
    steps: tuple[int, int] = (0, 0)
    """Of its lines."""

    @property
    def task(self) -> Task:
        """The task at the context."""
        return self.here or self.at(self.size)

    def fails(self, n: int, theorem: Theorem) -> str:
        """What FAILS from n on means."""
        half, most = number(n // 2), theorem.n_shown(n)
        failed = self.failed.format(n=number(n), s="" if n == 1 else "s", half=half, most=most)
        return f"Whatever its weights, the model {failed}"

    def answer(self, architecture: Architecture) -> list[CardLine]:
        """The lines that answer it at the context: SOLVABLE, or FAILS where a prompt within it
        fails, or else the bound that lies beyond.
        """
        return [replace(line, steps=self.steps) for line in self._lines(architecture)]

    def _lines(self, architecture: Architecture) -> list[CardLine]:
        here = judge(architecture, self.task)[0]
        if here.status == "SOLVABLE":
            words = THEOREMS[here.theorem].told(here, self.task, architecture)
            why = f"Some weights {self.solved} {words.why}"
            return [CardLine(self.title, "SOLVABLE", None, words.text, here.theorem, here, why)]
        if self.alone and here.n is not None and here.status == "OPEN":
            fits = f"what it keeps has room for {self.size:,}, and no weights are known"
            short = f"room for {self.size:,} facts; no weights are known"
            return [CardLine(self.title, "OPEN", None, fits, "none", here, BEYOND, missing=short)]
        # whether some weights do it at the least size is nothing to this
        least = judge(architecture, self.least or self.task, among=Theorem.fails_at_once)
        for n in (verdict.n for verdict in (*least[:1], here) if verdict.n is not None):
            if (record := failure(architecture, self.at(n))) is not None:
                return self._told(architecture, n, self.at(n), record, here)
        if here.status == "FAILS":
            return self._told(architecture, self.size, self.task, here, here)
        return [self._open(architecture, here)]

    def _told(
        self, architecture: Architecture, n: int, task: Task, record: Verdict, here: Verdict
    ) -> list[CardLine]:
        """The lines of a failure: within the context, or beyond it."""
        theorem = THEOREMS[record.theorem]
        far = n > self.size and here.status != "FAILS"
        bound = Bound(theorem.key, n, self.size, verdict=record)

        def line(title: str, means: str, *, thought: bool = False) -> CardLine:
            words = theorem.told(record, task, architecture, thought=thought)
            why = f"{means} {words.why}"
            if far:
                return beyond(title, bound, here, words, why)
            return CardLine(title, "FAILS", n, words.text, theorem.key, record, why)

        first = line(self.title, self.fails(n, theorem))
        lines = [first if far else replace(first, grade=grade(architecture, self.task))]
        if self.after_thought and theorem.after_thought:
            means = "The bound is the same if the model writes first."
            lines.append(replace(line(self.after_thought, means, thought=True), thought=True))
        return lines

    def _open(self, architecture: Architecture, here: Verdict) -> CardLine:
        words = THEOREMS[here.theorem].told(here, self.task, architecture)
        if here.theorem != NothingKnown.key:
            bound = Bound(here.theorem, None, self.size, log2_n=here.log2_n or "")
            return beyond(self.title, bound, here, words, words.why)
        text, own = words.text, self.unknown
        if own.text:
            text = f"{own.text}; {text.removeprefix(f'{NothingKnown.title}: ')}"
        line = CardLine(self.title, "OPEN", None, text, here.theorem, here, own.why)
        # what a question says of its own stands before what is said of any
        known = (own.short, words.short) if words.general else (words.short,)
        return replace(line, missing=next(filter(None, known), ""))


def beyond(title: str, bound: Bound, here: Verdict | None, words: Words, why: str) -> CardLine:
    """The line of a question that nothing decides at the context, with the bound beyond it."""
    explain = f"{BEYOND} {why}"
    return CardLine(title, "OPEN", None, words.text, bound.theorem, here, explain, bound)


def grade(architecture: Architecture, task: Task) -> Grade | None:
    """How many of random questions are answered at the most, where a theorem says so."""
    verdict = graded(architecture, task)
    if verdict is None:
        return None
    words = THEOREMS[verdict.theorem].told(verdict, task, architecture)
    return Grade(words.text, words.why, verdict.numbers["ceiling_millionths"], verdict)


def failure(architecture: Architecture, task: Task) -> Verdict | None:
    """The strongest verdict that says FAILS, or None."""
    return next((said for said in judge(architecture, task) if said.status == "FAILS"), None)
