"""One line of a capability card, and the bound that lies beyond the context it answers at."""

from __future__ import annotations

from dataclasses import dataclass
from decimal import Decimal, InvalidOperation
from typing import NamedTuple

from separatrix.core.evidence.records import Status, Verdict
from separatrix.core.numbers.amounts import LONGEST_CONTEXT, format_times
from separatrix.theory.judge import THEOREMS


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
    """The highest accuracy on random questions: in words, why, in millionths, and the record of
    it.
    """

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
    """Two sentences of plain English: what the line means to someone who designs a model, and
    why it is so.
    """
    bound: Bound | None = None
    """OPEN: a failure shown beyond the context, by the theorem of the line."""
    grade: Grade | None = None
    """FAILS: how many of random questions are answered at the context, at the most."""
    key: str = ""
    """The question's name: "recall"; see `cards.short`."""
    missing: str = ""
    """OPEN, and no bound: what is missing, in a few words."""

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
        beyond = None if self.bound is None else self.bound.verdict
        return beyond or self.verdict
