"""Associative recall: pairs of key and value, then a key; in a list of them, and amid noise."""

from __future__ import annotations

from fractions import Fraction
from typing import Any, ClassVar, Literal

from separatrix.core.numbers.binomials import Binomial, BinomialSum
from separatrix.core.numbers.counts import Count, Power, Product
from separatrix.core.numbers.lazy import np
from separatrix.tasks.base.described import choice, ladder, size
from separatrix.tasks.base.layout import Facts, Growth, Layout, Part, Table
from separatrix.tasks.base.levels import lookup_level
from separatrix.tasks.base.task import LARGEST_SIZE, Batch, Task, Tokens
from separatrix.tasks.drawing.distinct import (
    FEW,
    balanced,
    check_zipf,
    distinct,
    independent,
    lookup_chance,
    occurring,
    one_of,
    other,
    share,
    smallest,
    spread,
)

Form = Literal["present", "absent", "last", "independent"]
Place = Literal["last", "first"]
USUAL = ("question", "last")
PROMISED = ("present", "independent")
"""The forms in which the key asked for is there."""


class Recall(Task):
    """Associative recall with one query: pairs of key and value, then a key; answer its value.

        position   0     1     2     3     ...   2n-2   2n-1   2n
        input      k_1   v_1   k_2   v_2   ...   k_n    v_n    q
        target     .     .     .     .     .     .      .      value of q

        n = 3, K = 3, V = 2, form=last:   position   0   1   2   3   4   5   6
                                          input      3   0   2   1   3   1   3
                                          target     .   .   .   .   .   .   1
        key 3 was written twice; query 4 would be answered 2, "none"

        question=first:   position   0   1     2     ...   2n-1   2n
                          input      q   k_1   v_1   ...   k_n    v_n
                          target     .   .     .     ...   .      value of q

    Values are the ids 0..V-1, keys the ids V..V+K-1; the answer "none" is V. form=present: keys
    differ and the one asked for is there. form=absent: keys differ; one that is not there is
    answered "none". form=last: keys may repeat and the last value counts; one that is not there is
    answered "none". form=independent: as present, but values are drawn independently of each other.

    Drawn: n pairs, K keys, V >= 2 values.

    First the pairs are drawn; then the answer, without a look at them; then a key that has it. So
    the pairs alone say nothing about the answer. There are D keys in the prompt: n, or for
    form=last, where every key is written at least twice, V or n/3 or as near to the larger as n/2
    and an absent key allow (at least 2, so that for n = 3 one of them is written once). Their m =
    min(V, D) different values are as many as can be: where V < D values repeat, else the keys of a
    prompt have different ones. The answer is uniform over these, or "none" with probability
    1/(V+1): then all answers are equally likely. Overwritten values come from the same m.

    What was written first (form=last) is overwritten for n >= 4; the value written most often
    ("most writes") is right more often than others.

    Where V > D, values that do not stand in the prompt are no answer, whatever the sampler: naming
    one that does is right with probability 1/D (given that it is not "none"). And the value of
    another key is the answer less often than others, which cannot be helped while the values of the
    prompt are to say nothing: of D keys, D/V on average have the answer, one of them the key asked
    for, which leaves others (D/V - 1)/(D - 1), below 1/V.

    form=independent is drawn like a table: different keys, independent uniform values, any of the
    keys asked for. So every fact holds log2 V bits whatever the others are, which is what a count
    of facts held needs; and levels are those of eva.

    question=first puts the key asked for before the pairs, and changes nothing else: the answer is
    due after the last pair.

    Boosted trees look keys up in small sizes, not at n = 32, K = 64, V = 16, nor for form=last at n
    = K = 128, V = 8.

    Counted: What asking for every key tells (theory.md, section 3). present and independent: V^n,
    since with the same keys different values are told apart, and of prefixes told apart two by two
    each fixes a V^-n part of all assignments, disjoint from the others' (they differ at a key of
    both). absent: binom(K, n) V^n, the keys and their values. last: the sum of binom(K, j) V^j over
    j = 1..min(n, K), for j different keys. None is known with question=first: a key and a value are
    all that need be kept.

    From: [Bha24], [Wen25]; theory.md, section 3
    """

    name = "recall"
    title = "associative recall: k_1, v_1, ..., k_n, v_n, q; answer the value of q"
    source = "[Bha24], [Wen25]"
    shifts: ClassVar[dict[str, str]] = {
        "zipf": "values are Zipf-distributed and all keys are asked for alike",
        "few": f"values are among the first {FEW} only and all keys are asked for alike",
    }
    shortcuts = measured = ("most writes",)
    grid = ladder("""
        n=8,K=16,V=4 n=8,K=12,V=6,form=absent n=16,K=12,V=4,form=last n=32,K=64,V=16
        n=64,K=256,V=32,form=absent n=256,K=256,V=64,form=last n=256,K=1024,V=256
    """)

    n: int = size(lambda task: 3 if task.form == "last" else 2)
    K: int = size(
        lambda task: 3 if task.form == "last" else task.n + (task.form == "absent"),
        2 * LARGEST_SIZE,
    )
    V: int = size(2)
    form: Form = choice(Form, default="present")
    question: Place = choice(Place, default="last")

    def __post_init__(self) -> None:
        super().__post_init__()
        check_zipf(self.name, "V with shift=zipf", self.V, self.shift)
        if self.form != "last":
            # keys are written once: what was written first is what is asked for, and no shortcut
            object.__setattr__(self, "shortcuts", ())

    def sizes(self) -> dict[str, Any]:
        """Where the question stands is told only where it stands first."""
        sizes = super().sizes()
        return {name: value for name, value in sizes.items() if (name, value) != USUAL}

    def layout(self) -> Layout:
        none = {} if self.form in PROMISED else {"none": 1}
        unsaid = f" Answer {self.V} if the key was not written." if none else ""
        first = self.question == "first"
        twice = f"a key stands twice; with form={self.form} keys must differ"
        end = 2 * self.n + first
        listed = Layout.listing(
            Table(self.n, self.V, tokens=2),
            {"value": self.V, "key": self.K},
            written={"key": "k{}"},
            spelling=f"Id {self.V} + j, a key, is written kj.{unsaid}",
            grows=self._growth(),
            parts={
                "a value": Part("value", slice(1 + first, end, 2)),
                "a key": Part(
                    "key", slice(first, end, 2), different="" if self.form == "last" else twice
                ),
                "the query": Part("key", 0 if first else -1),
            },
        )
        return listed._replace(
            answers={"value": self.V} | none,
            classes=None if first else self._classes(),
            table=None if first or self.form == "last" else listed.table,
        )

    def _classes(self) -> Count:
        if self.form == "last":
            return BinomialSum(self.K, min(self.n, self.K), self.V)
        values = Power(self.V, self.n)
        return values if self.form in PROMISED else Product((Binomial(self.K, self.n), values))

    def _growth(self) -> Growth:
        """V stays, and K/n where it is a whole number, else K - n, or for form=last K."""
        ratio, more = divmod(self.K, self.n)
        V = f"V = {self.V:,}"
        if more == 0 and ratio > 0:
            times = ratio if ratio > 1 else ""
            return Growth(f"K = {times}n, {V}", {"K": (ratio, 0)}, alone=self.form == "last")
        if self.form == "last":
            return Growth(f"K = {self.K:,}, {V}")
        beyond = self.K - self.n
        return Growth(f"K = n + {beyond:,}, {V}", {"K": (1, beyond)})

    @property
    def written(self) -> int:
        """D, the different keys of a prompt that is drawn."""
        if self.form != "last":
            return self.n
        return max(2, min(max(self.V, self.n // 3), self.n // 2, self.K - 1))

    @property
    def _each(self) -> int:
        return 2 if self.form == "last" and self.n >= 2 * self.written else 1

    @property
    def _asked(self) -> Fraction:
        return Fraction(self.V, self.answers)

    @property
    def chance(self) -> Fraction:
        return max(1 - self._asked, self._asked * lookup_chance(self.V, self.shift))

    def level(self, probe: str) -> Fraction:
        """The nearest key: with V <= D each of the V - 1 other values shares what the one behind it
        lacks. With V > D that one is not the answer, and where the nearest token is a value, the
        smallest key is asked for, and that value is one of the D.

        Counts know "none" for sure, whatever the sampler: one more different key stands in the
        whole prompt then.
        """
        D = self.written
        V = self.V
        if probe == "constant":
            return self.chance
        if self.form == "independent":
            return lookup_level(probe, D, V)
        known = 1 - self._asked if probe == "counts" else Fraction(0)
        hit = Fraction(1, min(V, D))
        # no probe knows a key that is asked first: each names a value that stands there, or any
        last = self.question == "last"
        if last and probe == "nearest key":
            smallest = Fraction(1, D * D) + Fraction(D - 1, D * (V - 1))
            hit = Fraction(D, V * (D - 1)) if V <= D else smallest
        found = known + self._asked * hit
        return found if last and V > D else max(self.chance, found)

    def facts(self) -> Facts | None:
        """The values of the pairs where keys differ and the place asked for is uniform."""
        if self.table() is None or self.shift == "zipf":
            return None
        among = "whose key is there" if self.form == "absent" else ""
        if self.shift == "few":
            return Facts(self.n, occurring(self.V, self.shift), among=among)
        if self.form == "independent":
            return Facts(self.n, self.V)
        return Facts(self.n, self.V, different=True, among=among) if self.n < self.V else None

    def draw(self, batch: int, rng: np.random.Generator) -> Batch:
        D = self.written
        rows = np.arange(batch)
        absent = rng.integers(self.answers, size=batch) == self.V
        keys = distinct(batch, D + (self.form not in PROMISED), self.K, rng)
        values = self.values(batch, rng)
        if self._independent or self.V > D:
            asked = rng.integers(D, size=batch)
        else:
            # the answer is drawn first and so is uniform, though some values stand more than once
            asked = one_of(values == rng.integers(self.V, size=batch)[:, None], rng)
        which, written = self._writes(values, rng)
        query = keys[rows, np.where(absent, D, asked)]
        tokens = self.write(written, np.take_along_axis(keys, which, axis=1), query)
        return Batch(tokens, np.where(absent, self.V, values[rows, asked]))

    @property
    def _independent(self) -> bool:
        return self.form == "independent" or self.shift in ("zipf", "few")

    def values(self, batch: int, rng: np.random.Generator) -> Tokens:
        """(batch, D): the values that count, as many different as can be, or independent."""
        if self._independent:
            return independent(batch, self.written, self.V, self.shift, rng)
        return spread(batch, self.written, self.V, rng)

    def _writes(self, values: Tokens, rng: np.random.Generator) -> tuple[Tokens, Tokens]:
        """The key each pair writes, and its value, (batch, n); the last of a key counts."""
        batch, D = values.shape
        if self.n == D:
            return np.broadcast_to(np.arange(D), (batch, D)), values
        every = np.broadcast_to(np.arange(D), (batch, D))
        which = rng.permuted(
            np.concatenate(
                (*[every] * self._each, rng.integers(D, size=(batch, self.n - self._each * D))),
                axis=1,
            ),
            axis=1,
        )
        if self.shift in ("zipf", "few"):
            written = independent(batch, self.n, self.V, self.shift, rng)
        elif self.V > D:
            # outdated values are among those that count: D different ones stand in the prompt
            written = np.take_along_axis(values, rng.integers(D, size=which.shape), axis=1)
        else:
            written = rng.integers(self.V, size=which.shape)
        last = np.zeros_like(values)
        # of equal places the last one stays
        np.put_along_axis(last, which, np.broadcast_to(np.arange(self.n), which.shape), axis=1)
        np.put_along_axis(written, last, values, axis=1)
        return which, written

    def answer(self, tokens: Tokens) -> Tokens:
        values, keys, query = self.read(tokens)
        met = keys == query[:, None]
        found = met.any(axis=1)
        if self.form in PROMISED and not found.all():
            raise self.refused(f"the key asked for is not there; with form={self.form} it must be")
        last = self.n - 1 - met[:, ::-1].argmax(axis=1)
        return np.where(found, values[np.arange(len(values)), last], self.V)


class NoisyRecall(Task):
    """Noisy recall: pairs of key and value between pairs of noise, then a key; answer its value.

        n = 2, noise = 1, V = 2, K = 3, N = 4:   position   0   1   2   3   4   5   6
                                                 input      3   1   8   6   2   0   3
                                                 target     .   .   .   .   .   .   1

    Values are the ids 0..V-1, keys the ids V..V+K-1, noise the N ids behind. A slot of two tokens
    holds a pair of a key and its value, or two of noise; n slots hold pairs, the others noise. The
    keys of a prompt differ, and the last token is one of them.

    Drawn: Which slots hold pairs is a uniform set, noise and keys are uniform, values stand equally
    often, or as nearly so as n allows, in uniform order. One of the pairs, uniform, is asked for.

    All pairs are alike, so any one value is the one asked for with probability 1/n, and else holds
    the same value in (n/V - 1)/(n - 1) of the cases: together 1/V exactly, where V divides n, and
    so is a guess at any other value. So counts and places say nothing. The value beside another key
    is not the answer: of the others, n/V of n - 1 hold the likeliest value, which no sampler avoids
    whose counts say nothing.

    Counted: V^n, for the pairs and the noise (a promise: what is asked for is there), by the
    argument that recall has for form=present (theory.md, section 3).

    From: noisy in-context recall of MAD, arXiv 2403.17844: pairs and noise from a vocabulary of its
    own, two tokens each, with a share of noise of 0.2 unless told. There a key may stand again,
    with the same value, values are independent, and a mark stands before the last key
    """

    name = "noisy-recall"
    title = (
        "noisy recall: n pairs of key and value amid slots of noise, then a key; answer its value"
    )
    source = "arXiv 2403.17844"
    grid = ladder("""
        n=48,noise=32,K=128,V=4 n=48,noise=96,K=256,V=6 n=64,noise=64,K=256,V=8
        n=256,noise=256,K=1024,V=32 n=512,noise=1536,K=4096,V=64
    """)

    n: int = size(2, told="pairs")
    noise: int = size(0, told="slots")
    K: int = size(lambda task: task.n, told="keys")
    V: int = size(2, told="values")
    N: int = size(1, default=16, told="ids of noise")

    @property
    def slots(self) -> int:
        return self.n + self.noise

    def layout(self) -> Layout:
        more = self.K - self.n
        kept = f"V = {self.V:,}, noise = {self.noise:,}, K = n + {more:,}"
        return Layout.listing(
            Table(self.n, self.V, tokens=2, shared=2 * self.noise),
            {"value": self.V, "key": self.K, "noise": self.N},
            written={"key": "k{}", "noise": "x{}"},
            spelling=f"Key j, id {self.V} + j, is written kj, noise as x and a number.",
            grows=Growth(kept, {"K": (1, more)}),
        )

    def level(self, probe: str) -> Fraction:
        """Where V does not divide n, counts or any token tell of a value that stands once more."""
        if probe == "nearest key":
            return other(self.n, self.V)
        return self.chance if probe == "constant" else share(self.n, self.V)

    def draw(self, batch: int, rng: np.random.Generator) -> Batch:
        rows = np.arange(batch)
        keys = distinct(batch, self.n, self.K, rng)
        values = balanced(batch, self.n, self.V, rng)
        asked = rng.integers(self.n, size=batch)
        slots = smallest(lambda: rng.random((batch, self.slots)), self.n)
        tokens = np.empty((batch, self.length), np.int64)
        tokens[:] = self.V + self.K + rng.integers(self.N, size=tokens.shape)
        np.put_along_axis(tokens, 2 * slots, self.V + keys, axis=1)
        np.put_along_axis(tokens, 2 * slots + 1, values, axis=1)
        tokens[:, -1] = self.V + keys[rows, asked]
        return Batch(tokens, values[rows, asked])

    def answer(self, tokens: Tokens) -> Tokens:
        tokens = self._checked(tokens)
        first = self.V + self.K
        keys = tokens[:, :-1:2]
        values = tokens[:, 1::2]
        pairs = keys < first
        alike = np.where(pairs, (keys >= self.V) & (values < self.V), values >= first)
        if not alike.all() or (pairs.sum(axis=1) != self.n).any():
            raise self.refused(
                f"exactly {self.n} slots hold a key ({self.V} to {first - 1}) and a value below"
                f" {self.V}, the others two ids of noise from {first} on"
            )
        # noise, which may repeat, becomes ids that differ from all others and among themselves
        apart = np.where(pairs, keys, -1 - np.arange(self.slots))
        self._differ(apart, "a key is paired twice; the keys of a prompt must differ")
        found = keys == tokens[:, -1:]
        if tokens.size and not (found & pairs).any(axis=1).all():
            raise self.refused("the last token is no key of the prompt")
        return values[np.arange(len(tokens)), found.argmax(axis=1)]
