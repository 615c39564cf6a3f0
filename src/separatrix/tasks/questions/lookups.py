"""Several questions behind one prompt: to functions and their compositions, to pairs, to sums."""

from __future__ import annotations

from fractions import Fraction
from typing import Any, Self

from separatrix.core.errors import SizeError
from separatrix.core.numbers.lazy import np
from separatrix.tasks.base.described import require
from separatrix.tasks.base.layout import Facts, Layout, TwoRuns
from separatrix.tasks.base.task import NO_ANSWER, Batch, Tokens
from separatrix.tasks.drawing.distinct import (
    avoiding,
    distinct,
    independent,
    lookup_chance,
    near,
    repeated,
)
from separatrix.tasks.lookups import Eva
from separatrix.tasks.questions.base import TWICE, Lookups, Questions
from separatrix.tasks.recall import PROMISED, Recall
from separatrix.tasks.seqcomp import SeqComp
from separatrix.tasks.sums import TwoSum, alike, hidden

_LISTED = 1024
"""Most questions that the two runs' prompts are written out for."""


class Arguments(Lookups):
    """Function evaluation at several arguments, one after another.

        position   0      1      ...   n-1      n        n+1      ...
        input      f(0)   f(1)   ...   f(n-1)   x_1      x_2      ...
        target     .      .      ...   .        f(x_1)   f(x_2)   ...

        n = 3, V = 4, queries=2:   position   0   1   2   3   4
                                   input      3   0   2   2   0
                                   target     .   .   .   2   3

    Behind f stand different arguments: k of the n with queries=k, each once with queries=all (with
    shift=local those of the last ceil(sqrt(n))). The value of each is due after it.

    Drawn: Every set of k arguments in every order is as likely as any other, whatever f: each
    answer asks for a uniform entry, and what was asked before says nothing about it. Chance and
    levels are those of one question.

    Counted: Those of the task: every entry may be asked for first.

    From: [Ye26], asked again
    """

    task: Eva

    @property
    def most(self) -> int:
        return near(self.task.n, self.task.shift)

    others = "arguments"

    def layout(self) -> Layout:
        return super().layout()._replace(runs=self._runs())

    def _runs(self) -> TwoRuns | None:
        runs = self.task.two_runs()
        if runs is None or not isinstance(self.queries, int) or self.queries > _LISTED:
            return None
        others = (place for place in range(self.queries) if place != runs.j)
        asked = (runs.j, *others)[: self.queries]
        return runs._replace(end=tuple(((place,), 1) for place in asked))

    def draw(self, batch: int, rng: np.random.Generator) -> Batch:
        n = self.task.n
        f = independent(batch, n, self.task.V, self.task.shift, rng)
        asked = n - self.most + distinct(batch, self.number, self.most, rng)
        return self._joined(f, asked, np.take_along_axis(f, asked, axis=1))


class Keys(Lookups):
    """Associative recall asked for several keys, one after another.

        position   0     1     ...   2n-2   2n-1   2n        2n+1      ...
        input      k_1   v_1   ...   k_n    v_n    q_1       q_2       ...
        target     .     .     ...   .      .      its value its value ...

        n = 2, K = 3, V = 2, queries=all:   position   0   1   2   3   4   5
                                            input      4   1   2   0   2   4
                                            target     .   .   .   .   0   1

    Behind the pairs stand different keys of them: k of the n with queries=k, each once with
    queries=all. The value of each is due after it. Taken by form=present and form=independent.

    Drawn: Every set of k keys in every order is as likely as any other, whatever the values: each
    answer asks for a uniform key, and what was asked before says nothing about it.

    form=independent: levels are those of one question. form=present: the answer cannot be drawn
    first, since all values may be asked for. With V <= n every value stands there once, and n - V
    more are uniform, so that some stand more often than others.

    A model may forget what was asked. It answers none the better for it: the facts were read
    before, and the order of questions does not depend on them.

    Counted: Those of the task: every key may be asked for first.

    From: [Aro24], whose mqar spreads its questions amid filler
    """

    measured = ("counts", "position", "last tokens", "nearest key")

    task: Recall

    def __post_init__(self) -> None:
        if self.task.form not in PROMISED:
            raise self.task.refused(
                f"queries= asks for keys that are there; take form={' or form='.join(PROMISED)}"
            )
        if self.task.question == "first":
            raise self.task.refused("queries= asks behind the pairs; leave out question")
        super().__post_init__()

    others = "keys of these"

    @property
    def chance(self) -> Fraction:
        return lookup_chance(self.task.V, self.shift)

    def level(self, probe: str) -> Fraction:
        if self.task.form == "independent":
            return self.task.level(probe)
        return self.chance if probe == "constant" else Fraction(1)

    def draw(self, batch: int, rng: np.random.Generator) -> Batch:
        n = self.task.n
        keys = self.task.V + distinct(batch, n, self.task.K, rng)
        values = self.task.values(batch, rng)
        which = distinct(batch, self.number, n, rng)
        pairs = np.stack((keys, values), axis=2).reshape(batch, -1)
        return self._joined(
            pairs, np.take_along_axis(keys, which, 1), np.take_along_axis(values, which, 1)
        )


class Sums(Lookups):
    """2-Sum modulo M asked for several values, one after another.

        position   0     1     ...   n-1   n        n+1      ...
        input      x_1   x_2   ...   x_n   q_1      q_2      ...
        target     .     .     ...   .     0 or 1   0 or 1   ...

        n = 3, M = 11, queries=2:   position   0   1   2   3   4
                                    input      4   9   1   7   3
                                    target     .   .   .   1   0

    Behind the n values stand different values q: k of them with queries=k, n with queries=all. Each
    is answered 1 when some x_j + q = 0 mod M; the other questions do not count. form=query takes
    them.

    Drawn: As for one question, k times over: k pairs of values that are equal modulo D (of the
    task) and of 2k different classes, either of a pair as likely the one as the other; the
    negatives of the first ones are put at different uniform places, and the other x's avoid all of
    both classes but these negatives. Then a fair coin for each question chooses q: the first of its
    pair (1) or the second (0). So the x's are independent of all coins, and so are the q's by
    themselves. M > 4 (k - 1) + 2 + 2D, so that there are as many classes.

    Levels are those of one question, but that the last tokens show an x at the first two questions
    only.

    Counted: Those of the task: any value may be asked for first.

    From: [San23] (Match2) has a question for every token
    """

    task: TwoSum

    def __post_init__(self) -> None:
        if self.task.form != "query":
            raise self.task.refused("queries= asks for values behind the others; take form=query")
        super().__post_init__()
        least = 4 * (self.number - 1) + 3 + 2 * hidden(self.task.M)
        if least > self.task.M:
            raise self.task.refused(
                f"{self.number:,} questions of different classes that say nothing by their residues"
                f" need a larger M than {self.task.M:,}; ask fewer, or take M ="
                f" {16 * self.number + 8:,}"
            )

    others = "values"
    whose = ", each for the first n"

    def level(self, probe: str) -> Fraction:
        one = self.task.level(probe)
        if probe != "last tokens":
            return one
        seen = min(2, self.number)
        return (seen * one + (self.number - seen) * self.chance) / self.number

    def draw(self, batch: int, rng: np.random.Generator) -> Batch:
        M = self.task.M
        k = self.number
        one, two = self._pairs(batch, rng)
        tokens = avoiding(M, np.concatenate((one, two, M - two), axis=1), self.task.n, rng)
        np.put_along_axis(tokens, distinct(batch, k, self.task.n, rng), M - one, axis=1)
        labels = rng.integers(2, size=(batch, k))
        return self._joined(tokens, np.where(labels == 1, one, two), labels)

    def _pairs(self, batch: int, rng: np.random.Generator) -> tuple[Tokens, Tokens]:
        M = self.task.M
        D = hidden(M)
        size = (batch, self.number)
        one, two = (drawn.reshape(size) for drawn in alike(batch * self.number, M, D, rng))
        while True:
            classes = np.stack((np.minimum(one, M - one), np.minimum(two, M - two)), axis=2)
            row, place = repeated(classes.reshape(batch, -1), M)
            if not len(row):
                return one, two
            # of two pairs that share a class the later one is drawn again
            again = np.unique(row * self.number + place // 2)
            one.flat[again], two.flat[again] = alike(len(again), M, D, rng)


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
    So a constant guess below m is right with probability (1/m + 1/N)/2, and shortcuts to i_1 count
    for half.

    Counted: Those of the task: what is asked for first is any entry of z_L.

    From: seqcomp; intermediate answers are what makes it trainable at small sizes [here]
    """

    measured = Keys.measured
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
        if self.stages:
            return self.chance if probe == "constant" else Fraction(1)
        return max(self.chance, self.task.level(probe))

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
