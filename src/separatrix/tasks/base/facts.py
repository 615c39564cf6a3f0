"""What a prompt says where a task asks for one of its facts."""

from __future__ import annotations

from typing import NamedTuple

from separatrix.core.numbers.binomials import Arrangements
from separatrix.core.numbers.counts import Count, Power


class Table(NamedTuple):
    """Facts that stand one behind the other from the first token on, any of which a question right
    behind them may ask for, whatever their values are.
    """

    number: int
    values: int
    tokens: int = 1
    """Tokens of a fact: 2 for a key and its value."""
    shared: int = 0
    """Tokens behind the facts that can be the same whichever of them is asked for."""
    question: int = 1
    """Tokens of the question; the answer is due after the last."""

    @property
    def length(self) -> int:
        """Tokens of the facts."""
        return self.number * self.tokens

    @property
    def asked(self) -> int:
        """Tokens before the question."""
        return self.length + self.shared

    @property
    def answered(self) -> int:
        """The token after which the answer is due."""
        return self.asked + self.question


class Facts(NamedTuple):
    """The facts among which `Task.sample` asks for one, when a prefix of `prefix_length` tokens
    has been read.

    A task that declares them promises four things of its sampler. Given what else the prefix says,
    the list of facts is uniform over `contents`. The fact asked for is each of them with the same
    probability, whatever the prefix says. All else that follows the prefix does not depend on the
    facts, nor on the prefix but for what else it says. The right answer tells the fact asked for.
    """

    number: int
    values: int
    """Values of a fact that are drawn."""
    different: bool = False
    """Whether no two facts of a prompt are the same."""
    among: str = ""
    """Where some questions ask for no fact: which ones do, as in "questions whose key is there".
    Whether one does is independent of all else, and the promises hold for those that do.
    """

    @property
    def contents(self) -> Count:
        """The lists that are drawn, all equally likely."""
        if self.different:
            return Arrangements(self.values, self.number)
        return Power(self.values, self.number)
