"""L-SeqComp asked from several starts: the functions once, then one question after another."""

from __future__ import annotations

from fractions import Fraction
from typing import Any, Self

from separatrix.core.errors import SizeError
from separatrix.core.numbers.lazy import np
from separatrix.tasks.base.described import require
from separatrix.tasks.base.layout import Facts, Layout
from separatrix.tasks.base.levels import share_of_the_mode
from separatrix.tasks.base.task import NO_ANSWER, Batch, Tokens
from separatrix.tasks.drawing.distinct import distinct
from separatrix.tasks.questions.base import TWICE, Questions
from separatrix.tasks.seqcomp import PERMUTATIONS, SeqComp


class Starts(Questions):
    """L-SeqComp asked from several starts, one question after another.

        split=0:  position   0 ... n-3   n-2   n-1   n      ...
                  input      z_L ... z_1 w     z_0   z_0'   ...
                  target     .           .     i_L   i_L'   ...

        split=1:  position   0 ... n-3   n-2   n-1   n      n+1    ...
                  input      z_L ... z_1 z_0   w     z_0'   w'     ...
                  target     .           .     i_L   .      i_L'   ...
        stages=1: target     .           i_1   i_L   i_1'   i_L'   ...

    n is the length of a prompt with one question. split=0: w stands once, then different z_0; i_L
    is due at each: k of the m with queries=k, each once with queries=all. split=1: each question is
    a z_0 and a w of its own, no two questions alike; i_L is due at the w: of m n_1 ... n_{L-1}
    questions k, or all. stages=1 (with split=1 and L >= 2): i_1 is due at each z_0, too; it is
    numbered as i_L is.

    Drawn: Functions are drawn as for one question. Every set of k questions in every order is as
    likely as any other, whatever the functions, so that each answer asks from a uniform start:
    chance and levels are those of one question.

    stages=1: half of the answers are i_1, uniform on [m] unless the functions are Zipf-distributed.
    So a constant guess below m is right with probability (1/m + 1/N)/2, and levels are the mean of
    those of i_L and of i_1: of uniform functions counts may name the most frequent value of z_1, a
    place or what stands behind a nearest key one of its entries. At the first z_0 the last tokens
    hold two entries of z_1 and the place asked for: 2/m + (1 - 2/m)/m there (of permutations 3/m),
    1/m later.

    Counted: Those of the task: what is asked for first is any entry of z_L.

    From: seqcomp; intermediate answers are what makes it trainable at small sizes [here]
    """

    own = ("queries", "split", "stages")
    own_usage = "queries=all|k, split=0|1, stages=0|1"

    task: SeqComp
    split: int = 0
    stages: int = 0

    def __post_init__(self) -> None:
        name = self.task.name
        require(name, "split", self.split, 0, 1)
        require(name, "stages", self.stages, 0, 1)
        if self.stages and not (self.split and self.task.L > 1):
            raise SizeError(
                f"{name}: stages=1 asks for i_1 at a z_0 before its w, of L >= 2 functions; add"
                " split=1, or leave stages out"
            )
        super().__post_init__()

    @classmethod
    def of(cls, task: Any, own: dict[str, Any]) -> Self:
        if "queries" not in own:
            raise SizeError(
                f"{task.name}: {' and '.join(own)} say how several questions stand in a prompt; add"
                " queries=all or queries=k"
            )
        return super().of(task, own)

    def _own(self) -> dict[str, Any]:
        return super()._own() | {"split": self.split, "stages": self.stages}

    @property
    def most(self) -> int:
        return self.task.N(self.task.L - 1) if self.split else self.task.m

    @property
    def told(self) -> str:
        asked = "z_0 and w" if self.split else "z_0, behind one w"
        first = ", i_1 at each z_0" if self.stages else ""
        return f"asked from several {asked}, one after another{first}"

    @property
    def _before(self) -> int:
        return self.task.length - 2

    def layout(self) -> Layout:
        asked = 2 * self.number if self.split else 1 + self.number
        return super().layout()._replace(length=self._before + asked)

    @property
    def chance(self) -> Fraction:
        last = self.task.chance
        return (self.task.law(1)[0][1] + last) / 2 if self.stages else last

    def level(self, probe: str) -> Fraction:
        """That of one question; with stages as `words.drawn` has it."""
        last = self.task.level(probe)
        if self.stages and probe != "constant":
            return max(self.chance, (last + self._level_of_first(probe)) / 2)
        return max(self.chance, last)

    def _level_of_first(self, probe: str) -> Fraction:
        m = self.task.m
        chance = Fraction(1, m)
        different = self.task.values == PERMUTATIONS
        if probe == "last tokens":
            # the two entries in sight are asked for, or ruled out where values differ
            seen = Fraction(3, m) if different else Fraction(2, m) + Fraction(m - 2, m * m)
            return (min(Fraction(1), seen) + (self.number - 1) * chance) / self.number
        if different:
            return 2 * chance if probe == "nearest key" else chance
        if probe == "counts":
            return share_of_the_mode(m, m)
        return chance + (1 - chance) / m

    def facts(self) -> Facts | None:
        """Those of the task, which i_1 does not ask for."""
        return None if self.stages else self.task.facts()

    def draw(self, batch: int, rng: np.random.Generator) -> Batch:
        functions = self.task.draw(batch, rng).tokens[:, : self._before]
        asked = distinct(batch, self.number, self.most, rng)
        if self.split:
            w, z_0 = np.divmod(asked, self.task.m)
            questions = np.stack((z_0, w), axis=2).reshape(batch, -1)
        else:
            z_0 = asked
            one = rng.integers(self.task.w_values, size=(batch, 1))
            w = np.broadcast_to(one, z_0.shape)
            questions = np.concatenate((one, z_0), axis=1)
        tokens = np.concatenate((functions, questions), axis=1)
        chain = self.task.composed(functions, z_0, w)
        targets = np.full(tokens.shape, NO_ANSWER, np.int64)
        step = 1 + self.split
        targets[:, self._before + 1 :: step] = chain[-1]
        if self.stages:
            targets[:, self._before :: step] = chain[0]
        return Batch(tokens, targets)

    def answer(self, tokens: Tokens) -> Tokens:
        tokens = self._checked(tokens)
        before = self._before
        targets = np.full(tokens.shape, NO_ANSWER, np.int64)
        if self.split:
            places = [(at, at + 1) for at in range(before, self.length, 2)]
        else:
            places = [(at, before) for at in range(before + 1, self.length)]
        met: list[Tokens] = []
        for z_0, w in places:
            # each question alone is one of the task
            alone = np.concatenate((tokens[:, :before], tokens[:, [z_0, w]]), axis=1)
            chain = self.task.chain(alone)
            targets[:, max(z_0, w)] = chain[:, -1]
            if self.stages:
                targets[:, z_0] = chain[:, 0]
            met.append(tokens[:, z_0] + self.task.m * tokens[:, w])
        self._differ(np.column_stack(met), TWICE)
        return targets

    def alone(self, front: Tokens, back: Tokens) -> Tokens:
        before = self._before
        last = back[:, -1]
        if not self.split:
            return np.column_stack((front[:, :before], last, front[:, before]))
        # a row that ends in a z_0 has no w yet
        started = ((front < self.vocabulary).sum(axis=1) - before) % 2 == 1
        z_0 = np.where(started, last, back[:, -2])
        return np.column_stack((front[:, :before], z_0, np.where(started, 0, last)))
