"""What a prompt says where a task asks for one of its facts."""

from __future__ import annotations

from typing import NamedTuple

from separatrix.numbers.binomials import Arrangements
from separatrix.numbers.counts import Count, Power


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
