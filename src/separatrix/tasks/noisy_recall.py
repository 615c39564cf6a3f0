from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import ClassVar

from separatrix.core.numbers.lazy import np
from separatrix.tasks.base.described import ladder
from separatrix.tasks.base.layout import Growth, Layout, Table
from separatrix.tasks.base.task import PLAIN, Batch, Task, Tokens
from separatrix.tasks.drawing.distinct import distinct, evenly, other, share, smallest, zipf


@dataclass(frozen=True, kw_only=True)
class NoisyRecall(Task):
    """Noisy recall: pairs of key and value between pairs of noise, then a key; answer its value.

        n = 2, noise = 1, V = 2, K = 3, N = 4:   position   0   1   2   3   4   5   6
                                                 input      3   1   8   6   2   0   3
                                                 target     .   .   .   .   .   .   1

    Values are the ids 0..V-1, keys the ids V..V+K-1, noise the N ids behind. A slot of two tokens
    holds a pair of a key and its value, or two of noise; n slots hold pairs, the others noise. The
    keys of a prompt differ, and the last token is one of them.

    Drawn: n >= 2 pairs, noise >= 0 slots of noise, V >= 2 values, K >= n keys, N >= 1 ids of noise
    (16 unless given). Which slots hold pairs is a uniform set, noise and keys are uniform, values
    stand equally often, or as nearly so as n allows, in uniform order. One of the pairs, uniform,
    is asked for.

    All pairs are alike, so any one value is the one asked for with probability 1/n, and else holds
    the same value in (n/V - 1)/(n - 1) of the cases: together 1/V exactly, where V divides n, and
    so is a guess at any other value. So counts and places say nothing. The value beside another key
    is not the answer: of the others, n/V of n - 1 hold the likeliest value, which no sampler avoids
    whose counts say nothing.

    Counted: V^n, for the pairs and the noise (a promise: what is asked for is there). With the same
    keys, different values are told apart. No larger set is told apart two by two: each prompt fixes
    n of all assignments of values to keys, a V^-n part of them, and two that are told apart differ
    at a key of both, so that their parts are disjoint (theory.md, section 3).

    From: noisy in-context recall of MAD, arXiv 2403.17844: pairs and noise from a vocabulary of its
    own, two tokens each, with a share of noise of 0.2 unless told. There a key may stand again,
    with the same value, values are independent, and a mark stands before the last key
    """

    name = "noisy-recall"
    title = (
        "noisy recall: n pairs of key and value amid slots of noise, then a key; answer its value"
    )
    usage = "n (pairs), noise (slots), K (keys), V (values), N (ids of noise, default 16)"
    source = "arXiv 2403.17844"
    shifts: ClassVar[dict[str, str]] = {
        "zipf": "pairs are asked for by Zipf's law, the first most often; values are independent"
    }
    grid = ladder("""
        n=48,noise=32,K=128,V=4 n=48,noise=96,K=256,V=6 n=64,noise=64,K=256,V=8
        n=256,noise=256,K=1024,V=32 n=512,noise=1536,K=4096,V=64
    """)

    n: int
    noise: int
    K: int
    V: int
    N: int = 16
    shift: str = PLAIN

    def __post_init__(self) -> None:
        self._require(n=2, noise=0, K=self.n, V=2, N=1)

    @property
    def slots(self) -> int:
        return self.n + self.noise

    def layout(self) -> Layout:
        """All pairs may stand before all noise, which says nothing."""
        more = self.K - self.n
        kept = f"V = {self.V:,}, noise = {self.noise:,}, K = n + {more:,}"
        return Layout.listing(
            Table(self.n, self.V, tokens=2, shared=2 * self.noise),
            {"value": self.V, "key": self.K, "noise": self.N},
            written={"key": "k{}", "noise": "x{}"},
            spelling=f"Key j, id {self.V} + j, is written kj, noise as x and a number.",
            grows=Growth(kept, 2, {"K": (1, more)}),
        )

    def level(self, probe: str) -> Fraction:
        """Where V does not divide n, a value that stands once more is told by counts, or by any
        token beside it. The value of another key is the likeliest other one.
        """
        if probe == "nearest key":
            return other(self.n, self.V)
        return self.chance if probe == "constant" else share(self.n, self.V)

    def draw(self, batch: int, rng: np.random.Generator) -> Batch:
        rows = np.arange(batch)
        keys = distinct(batch, self.n, self.K, rng)
        values = evenly(batch, self.n, self.V, rng, shift=self.shift)
        asked = (
            rng.integers(self.n, size=batch) if self.shift == PLAIN else zipf(self.n, batch, rng)
        )
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
        if tokens.size and not ((keys >= self.V) & (pairs == (values < self.V))).all():
            raise self.refused(
                f"a slot holds a key ({self.V} to {first - 1}) and a value below {self.V}, or two"
                f" ids of noise from {first} on"
            )
        if tokens.size and not ((values < self.V) | (values >= first)).all():
            raise self.refused("a key stands where a value or noise belongs")
        if (pairs.sum(axis=1) != self.n).any():
            raise self.refused(f"exactly {self.n} slots hold pairs")
        # noise, which may repeat, becomes ids that differ from all others and among themselves
        apart = np.where(pairs, keys, -1 - np.arange(self.slots))
        self._differ(apart, "a key is paired twice; the keys of a prompt must differ")
        found = keys == tokens[:, -1:]
        if tokens.size and not (found & pairs).any(axis=1).all():
            raise self.refused("the last token is no key of the prompt")
        return values[np.arange(len(tokens)), found.argmax(axis=1)]
