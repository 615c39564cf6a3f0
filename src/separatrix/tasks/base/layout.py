"""What prompts are made of, declared once: ids, answers, spelling, counts, how a task grows."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import accumulate, groupby
from typing import Any, Generic, NamedTuple, Self, TypeVar

from separatrix.core.errors import SizeError
from separatrix.core.numbers.binomials import Arrangements
from separatrix.core.numbers.counts import Count, Power
from separatrix.core.numbers.first_size import first_size
from separatrix.core.numbers.lazy import Ints, np


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


LARGEST_SIZE = 10**12
"""Largest size of a task text, where a task does not say otherwise."""

Member = TypeVar("Member", covariant=True)


@dataclass(frozen=True)
class Family(Generic[Member]):
    """Tasks of one kind: `described` tells people what stays the same, and `at` gives the task of a
    size n.

    `at` raises SizeError where there is none; `smallest` is the first n that has one, and `grows`
    the spelling of n in a task's text.
    """

    described: str
    at: Callable[[int], Member]
    smallest: int = 1
    grows: str = "n"
    keeps_prefixes: bool = True
    """Whether a larger member tells a smaller one's prefixes apart at the same place."""

    def takes(self, n: int) -> bool:
        try:
            self.at(n)
        except SizeError:
            return False
        return True

    def begun(self, own: int) -> Self:
        """From the first size that there is, which `own` is at the latest."""
        first = first_size(self.takes, self.smallest, limit=own)
        return replace(self, smallest=own if first is None else first)

    @property
    def largest(self) -> int:
        """The largest n that `at` takes."""
        beyond = first_size(lambda n: not self.takes(n), self.smallest, limit=LARGEST_SIZE + 1)
        return LARGEST_SIZE if beyond is None else beyond - 1


_MOST_SHOWN = 12


class TwoRuns(NamedTuple):
    """a^j b^(m-j) and a^(j+1) b^(m-j-1), then one and the same end; their answers differ."""

    a: int
    b: int
    j: int
    m: int
    end: tuple[tuple[tuple[int, ...], int], ...] = ()
    """What follows, as patterns of tokens and how often each is repeated."""

    @classmethod
    def halves(cls, m: int, end: tuple[tuple[tuple[int, ...], int], ...] = ()) -> TwoRuns:
        """Runs of ones, then of zeros, that meet in the middle of m tokens."""
        return cls(1, 0, m // 2, m, end)

    @property
    def shorter(self) -> int:
        """The length of the shortest run: of a in the first prompt, or of b in the second."""
        return min(self.j, self.m - self.j - 1)

    @property
    def shown(self) -> str:
        """Both prompts without their end, as people write them."""
        first = f"{self.a}^{self.j:,} {self.b}^{self.m - self.j:,}"
        return f"{first} and {self.a}^{self.j + 1:,} {self.b}^{self.m - self.j - 1:,}"

    def prompts(self) -> Ints:
        """Both prompts, token by token (2, length)."""
        end = [np.tile(np.array(pattern, np.int64), times) for pattern, times in self.end]
        rows = [
            np.concatenate([np.repeat([self.a, self.b], [times, self.m - times]), *end])
            for times in (self.j, self.j + 1)
        ]
        return np.stack(rows).astype(np.int64)


def in_runs(prompt: Sequence[int]) -> str:
    """A prompt as runs of equal tokens: "1 x 37, 0 x 63"; of many runs the first and the last."""
    runs = [f"{token} x {len([*run]):,}" for token, run in groupby(prompt)]
    if len(runs) > _MOST_SHOWN:
        left = f"... {len(runs) - _MOST_SHOWN + 1} runs ..."
        runs = [*runs[: _MOST_SHOWN - 3], left, *runs[-2:]]
    return ", ".join(runs)


YES_OR_NO: Mapping[str, int] = {"no or yes": 2}


class Part(NamedTuple):
    """Tokens of one meaning at places that are the same in every prompt."""

    meaning: str
    places: slice | int
    number: int | None = None
    """How many of the ids of that meaning; all unless told."""
    different: str = ""
    """What is said where two of them are the same; nothing where they may be."""


class Growth(NamedTuple):
    """How a task grows: `described` tells what stays the same, where not all sizes but n do."""

    described: str = ""
    others: Mapping[str, tuple[int, int]] = {}
    """Sizes that follow n -> (a, b) of a n + b."""
    alone: bool = False
    """Whether n alone may grow, too, and keeps prefixes."""


class Layout(NamedTuple):
    """The prompts of a task at a size, as far as they are known before one is drawn."""

    length: int
    ids: Mapping[str, int]
    """What token ids stand for, in their order -> how many ids that has. A size that gives all ids
    another meaning stands in the words.
    """
    answers: Mapping[str, int]
    """What answers stand for, likewise. Those named as ids are tokens; the others are ids behind
    those of the prompt, where a model writes them from its vocabulary.
    """
    prefix: int
    classes: Count | None = None
    """How many prefixes are told apart; None where no count is known."""
    table: Table | None = None
    runs: TwoRuns | None = None
    steps: int = 0
    grows: Growth = Growth()
    parts: Mapping[str, Part] = {}
    """What stands where, as errors name it, in the order in which prompts are made of it."""
    written: Mapping[str, str] = {}
    """What ids stand for -> how the j-th of them is written, as "k{}"; the others are written j."""
    spelling: str = ""

    @classmethod
    def listing(
        cls, table: Table, ids: Mapping[str, int], *, answers: str = "value", **others: Any
    ) -> Layout:
        """Of facts: V^n prefixes, told apart by asking for a fact (theory.md, section 3)."""
        told: dict[str, Any] = {
            "length": table.answered,
            "prefix": table.asked,
            "answers": {answers: table.values},
            "classes": Power(table.values, table.number),
        }
        return cls(ids=ids, table=table, **told | others)

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
