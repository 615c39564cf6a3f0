"""2-Sum on a capability card: does some earlier token cancel the last one, and do any two
cancel?
"""

from __future__ import annotations

from dataclasses import dataclass

from separatrix.cards.question import Question
from separatrix.tasks import TwoSum
from separatrix.tasks.base.task import LARGEST_SIZE
from separatrix.tasks.twosum import Form
from separatrix.theory.base import number

RATIO = 1024
"""M / n: values are drawn from many more than there are tokens."""


@dataclass(frozen=True)
class TwoSumOf(Question):
    """2-Sum of n values modulo M = 1,024 n, per query or of any pair."""

    context: int
    form: Form

    @property
    def title(self) -> str:
        asked = "per query" if self.form == "query" else "of any pair"
        return f"2-Sum {asked} (M = {RATIO:,} n)"

    @property
    def task(self) -> TwoSum:
        # asked per query, the last token is the query
        n = self.context - (self.form == "query")
        return self.at(max(2, min(n, LARGEST_SIZE // RATIO)))

    def at(self, n: int) -> TwoSum:
        return TwoSum(n=n, M=RATIO * n, form=self.form)

    def solved(self) -> str:
        n = f"{self.task.n:,}"
        if self.form == "decision":
            return f"Some weights tell whether any two of {n} tokens cancel."
        return f"Some weights tell, for each new token, whether an earlier one of {n} cancels it."

    def failed(self, n: int) -> str:
        return (
            "Whatever its weights, the model misses a match, or sees one that is not there, in some"
            f" prompt of {number(n)} {'value' if n == 1 else 'values'}."
        )
