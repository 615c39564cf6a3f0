"""Associative recall asked for several keys, or for all."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import ClassVar

from separatrix.core.errors import SizeError
from separatrix.core.numbers.lazy import np
from separatrix.tasks.base.levels import share_of_the_mode
from separatrix.tasks.base.task import Batch
from separatrix.tasks.base.words import Words
from separatrix.tasks.drawing.distinct import distinct, lookup_chance
from separatrix.tasks.questions.base import Lookups
from separatrix.tasks.recall import PROMISED, Recall

WORDS = Words(
    asks="Associative recall asked for several keys, one after another.",
    table="""
        position   0     1     ...   2n-2   2n-1   2n        2n+1      ...
        input      k_1   v_1   ...   k_n    v_n    q_1       q_2       ...
        target     .     .     ...   .      .      its value its value ...

        n = 2, K = 3, V = 2, queries=all:   position   0   1   2   3   4   5
                                            input      4   1   2   0   2   4
                                            target     .   .   .   .   0   1
    """,
    rules="""
        Behind the pairs stand different keys of them: k of the n with queries=k, each once with
        queries=all. The value of each is due after it. Taken by form=present and form=independent.
    """,
    drawn="""
        Every set of k keys in every order is as likely as any other, whatever the values: each
        answer asks for a uniform key, and what was asked before says nothing about it.

        form=independent: levels are those of one question. form=present: the answer cannot be drawn
        first, since all values may be asked for. With V <= n every value stands there once, and r =
        n - V more are uniform: naming the most frequent is right with probability (1 + E[mode of r
        uniform values])/n, naming any one of them with E[sum of squared multiplicities]/n^2. With V
        > n, when values differ, an entry named is right with probability 1/n.

        A model may forget what was asked. It answers none the better for it: the facts were read
        before, and the order of questions does not depend on them.
    """,
    counted="Those of the task: every key may be asked for first.",
    origin="[Aro24], whose mqar spreads its questions amid filler",
)


@dataclass(frozen=True, kw_only=True)
class Keys(Lookups):
    """Values of several different keys, in a random order."""

    words: ClassVar[Words] = WORDS

    task: Recall

    def __post_init__(self) -> None:
        if self.task.form not in PROMISED:
            raise SizeError(
                f"{self.task.spec}: queries= asks for keys that are there; take"
                f" form={' or form='.join(PROMISED)}"
            )
        if self.task.question == "first":
            raise SizeError(f"{self.task.spec}: queries= asks behind the pairs; leave out question")
        super().__post_init__()
        # keys are written once
        object.__setattr__(self, "shortcuts", ())

    @property
    def most(self) -> int:
        return self.task.n

    @property
    def told(self) -> str:
        return "then other keys of these, one after another"

    @property
    def chance(self) -> Fraction:
        return lookup_chance(self.task.V, self.shift)

    def level(self, probe: str) -> Fraction:
        """Those of one question where values are independent. Else as `words.drawn` has it. The
        value behind the nearest key is that of another key: with P the probability that two keys
        have one value, the answer is it, or each other value, with probability P or (1 - P)/(V -
        1). Only the smallest key, one of n, may have a value for its nearest, and that is one of
        those that stand there.
        """
        n = self.task.n
        V = self.task.V
        if self.task.form == "independent":
            return self.task.level(probe)
        if probe == "constant":
            return self.chance
        if n < V:
            one = Fraction(1, n)
            return one if probe != "nearest key" else one * one + (1 - one) / (V - 1)
        more = n - V
        squares = Fraction(V * (V + 2 * more) + more * (V - 1) + more * more, V * n * n)
        alike = (squares - Fraction(1, n)) * Fraction(n, n - 1)
        match probe:
            case "counts":
                return (1 + (more * share_of_the_mode(more, V) if more else 0)) * Fraction(1, n)
            case "nearest key":
                return max(alike, (1 - alike) / (V - 1))
            case _:
                return squares

    def draw(self, batch: int, rng: np.random.Generator) -> Batch:
        batch = self._batch(batch)
        n = self.task.n
        keys = self.task.V + distinct(batch, n, self.task.K, rng)
        values = self.task.values(batch, rng)
        which = distinct(batch, self.number, n, rng)
        pairs = np.stack((keys, values), axis=2).reshape(batch, -1)
        return self._joined(
            pairs, np.take_along_axis(keys, which, 1), np.take_along_axis(values, which, 1)
        )
