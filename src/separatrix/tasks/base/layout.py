"""What prompts of a task are made of, declared once: sizes in ids and tokens, what answers are, how
both are written, and what of it all is known by counting.
"""

from __future__ import annotations

from collections.abc import Mapping
from itertools import accumulate
from types import MappingProxyType
from typing import NamedTuple

from separatrix.core.numbers.counts import Count
from separatrix.core.numbers.lazy import Ints, np
from separatrix.tasks.base.facts import Table
from separatrix.tasks.base.runs import TwoRuns

YES_OR_NO: Mapping[str, int] = MappingProxyType({"no or yes": 2})
"""Answers 0 and 1."""


class Layout(NamedTuple):
    """The prompts of a task at a size, as far as they are known before one is drawn."""

    length: int
    """Tokens of a prompt, query included."""
    ids: Mapping[str, int]
    """What token ids stand for, in their order -> how many ids that has. A size that gives all ids
    another meaning stands in the words.
    """
    answers: Mapping[str, int]
    """What answers stand for, likewise. Those named as ids are tokens; the others are ids behind
    those of the prompt, where a model writes them from its vocabulary.
    """
    prefix: int
    """Tokens of the prefixes that `classes` counts."""
    classes: Count | None = None
    """How many prefixes are told apart; None where no count is known."""
    table: Table | None = None
    runs: TwoRuns | None = None
    steps: int = 0
    """Values of the chain that leads to the answer, the answer included."""
    written: Mapping[str, str] = MappingProxyType({})
    """What ids stand for -> how the j-th of them is written, as "k{}"; the others are written j."""
    spelling: str = ""
    """A sentence on that."""

    @property
    def vocabulary(self) -> int:
        return sum(self.ids.values())

    def labels(self, answers: Ints) -> Ints:
        """The token ids of answers."""
        labels = np.array(answers)
        known = ranges(self.ids)
        beyond = self.vocabulary
        for meaning, ids in ranges(self.answers).items():
            within = (answers >= ids.start) & (answers < ids.stop)
            first = known[meaning].start if meaning in known else beyond
            labels[within] += first - ids.start
            beyond += 0 if meaning in known else ids.stop - ids.start
        return labels

    def word(self, token: int) -> str:
        """A token as it is written for people and language models."""
        for meaning, ids in ranges(self.ids).items():
            if token in ids:
                return self.written.get(meaning, "{}").format(token - ids.start)
        return str(token)


def ranges(sizes: Mapping[str, int]) -> dict[str, range]:
    """Ids of each kind, one kind behind the other."""
    ends = accumulate(sizes.values())
    return {
        meaning: range(end - size, end)
        for (meaning, size), end in zip(sizes.items(), ends, strict=True)
    }
