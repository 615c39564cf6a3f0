from __future__ import annotations

import itertools
from fractions import Fraction

from separatrix.core.numbers.lazy import Bools, np
from separatrix.tasks.base.described import ladder, size
from separatrix.tasks.base.layout import Layout
from separatrix.tasks.base.task import LARGEST_SIZE, NO_ANSWER, Batch, Task, Tokens
from separatrix.tasks.drawing.distinct import balanced, distinct, share, shown

_LONGEST = 8
Key = tuple[int, ...]
"""Or a value: its tokens."""


class FuzzyRecall(Task):
    """Fuzzy recall: keys and values of several tokens each, then a key; answer its value.

        n = 3, a = b = 2, K = 2, V = 2:   position   0   1   2   3   4   5   6   7   8   9   10  11
                                          input      3   1   3   2   1   0   2   2   0   3   2   _
                                          target     .   .   .   .   .   .   .   .   .   .   1   0
        the keys 3, 3 2 and 2 2 have the values 1, 1 0 and 0

        n keys of 1 to a tokens, each before its value of 1 to b tokens; then a key of the prompt
        and blanks up to the end

    Values are written with the ids 0..V-1, keys with the ids V..V+K-1, a blank _ is V + K. The n
    keys of a prompt differ, as strings. The prompt ends with one of them and at least b - 1 blanks.
    The first token of its value is due after the key's last token, the second after the first
    blank, and so on. All prompts have one length: that of the lengths drawn, below, and a + b - 1
    more.

    Drawn: Of the strings of up to a of the K ids each length has its share: floor(n K^l / all) keys
    of l tokens, and the rest as long as there are strings for it. Keys of a length are different
    uniform strings; lengths of values are 1, 2, ..., b, 1, 2, ... in uniform order. Of the S tokens
    of all values each of the V ids is as frequent as any other, or as nearly so as S allows, in
    uniform order. One of the pairs, uniform, is asked for.

    Any token of a value is the one asked for with probability 1/n at most: pairs stand in uniform
    order, and wherever a place lies, before it stand r pairs for one r at most. All other tokens of
    values are like it in no more cases than any two of the S. Blanks stand where the value would be
    written, so that its tokens do not tell one another.

    A part of a key tells what it leaves of the keys, so the sizes of the grid use nearly all
    strings there are: the last token of the key leaves about n/K of them, all tokens but the first
    about K + 1, all in any order a few ("parts of keys"). With many ids and few keys a single token
    would tell the key.

    Counted: Not counted.

    From: fuzzy in-context recall of MAD, arXiv 2403.17844: keys and values of up to three adjacent
    tokens from vocabularies of their own, the key asked for last with its value behind it. There
    the tokens of a key differ, keys may stand again, and tests ask for the longest keys alone
    """

    name = "fuzzy-recall"
    title = (
        "fuzzy recall: n keys of up to a tokens, values of up to b, then a key; answer its value"
    )
    source = "arXiv 2403.17844"
    several = True
    shortcuts = measured = ("parts of keys",)
    grid = ladder("""
        n=24,K=2,V=6,a=4,b=2 n=30,K=2,V=5,a=4,b=2 n=36,K=3,V=8,a=3,b=3 n=120,K=3,V=16,a=4,b=3
        n=336,K=4,V=32,a=4,b=3 n=1024,K=4,V=64,a=5,b=4
    """)

    n: int = size(2, lambda task: min(LARGEST_SIZE, sum(task.strings)), told="pairs")
    K: int = size(2, 1 << 32, told="ids of keys")
    V: int = size(2, told="ids of values")
    a: int = size(1, _LONGEST, default=3, told="longest key")
    b: int = size(1, _LONGEST, default=3, told="longest value")

    def drawn_from(self, size: str) -> int:
        """From so long a key on there are n of them."""
        lengths = range(1, _LONGEST) if size == "a" and self.K > 1 else ()
        keys = itertools.accumulate(self.K**length for length in lengths)
        return next((a for a, number in enumerate(keys, 1) if number >= self.n), len(lengths))

    @property
    def strings(self) -> list[int]:
        """How many there are of 1, ..., a ids of keys."""
        return [self.K**length for length in range(1, self.a + 1)]

    @property
    def key_lengths(self) -> list[int]:
        """How many keys have 1, ..., a tokens."""
        strings = self.strings
        counts = [self.n * each // sum(strings) for each in strings]
        # at most a keys are left over: to the longest that there is a string for
        for length in reversed(range(self.a)):
            counts[length] += min(strings[length] - counts[length], self.n - sum(counts))
        return counts

    @property
    def _written(self) -> int:
        """S: tokens of all values."""
        rounds, more = divmod(self.n, self.b)
        return rounds * self.b * (self.b + 1) // 2 + more * (more + 1) // 2

    @property
    def pairs(self) -> int:
        """Tokens of all keys and values."""
        keys = sum((place + 1) * count for place, count in enumerate(self.key_lengths))
        return keys + self._written

    def layout(self) -> Layout:
        return Layout(
            length=self.pairs + self.a + self.b - 1,
            ids={"letter of values": self.V, "letter of keys": self.K, "blank": 1},
            answers={"letter of values": self.V},
            prefix=self.pairs,
            written={"letter of keys": "k{}", "blank": "_"},
            spelling=f"Id {self.V} + j, of keys, is written kj, a blank _.",
        )

    def level(self, probe: str) -> Fraction:
        """Of counts, the share of the most frequent id of values; else as `words.drawn` derives."""
        if probe == "constant":
            return self.chance
        if probe == "counts":
            return share(self._written, self.V)
        return shown(Fraction(1, self.n), self._written, self.V)

    def draw(self, batch: int, rng: np.random.Generator) -> Batch:
        every = np.broadcast_to(np.arange(self.n), (batch, self.n))
        keys, lengths = self._keys(batch, rng)
        # value lengths in an order of their own, so that key and value lengths are independent
        long = rng.permuted(1 + every % self.b, axis=1)
        order = rng.permuted(every, axis=1)
        keys = np.take_along_axis(keys, order[:, :, None], axis=1)
        lengths = np.take_along_axis(lengths, order, axis=1)
        held = np.arange(self.b) < long[:, :, None]
        values = np.zeros((batch, self.n, self.b), np.int64)
        values[held] = balanced(batch, self._written, self.V, rng).reshape(-1)
        asked = rng.integers(self.n, size=batch)
        return self._laid(
            np.concatenate((self.V + keys, values), axis=2),
            np.concatenate((np.arange(self.a) < lengths[:, :, None], held), axis=2),
            asked,
        )

    def _keys(self, batch: int, rng: np.random.Generator) -> tuple[Tokens, Tokens]:
        """Different keys (batch, n, a), written from the first place on, and their lengths."""
        counts = self.key_lengths
        lengths = np.repeat(np.arange(1, self.a + 1), counts)
        keys = np.zeros((batch, self.n, self.a), np.int64)
        start = 0
        for length, count in enumerate(counts, start=1):
            if count:
                # beyond 2^62 strings some are never drawn
                number = distinct(batch, count, min(self.K**length, 1 << 62), rng)
                for place in range(length):
                    keys[:, start : start + count, place] = number // self.K**place % self.K
            start += count
        return keys, np.broadcast_to(lengths, (batch, self.n))

    def _laid(self, pairs: Tokens, held: Bools, asked: Tokens) -> Batch:
        """Prompts of what is `held` of pairs (batch, n, a + b), then of the pair asked for."""
        rows = np.arange(len(pairs))
        tokens = np.full((len(pairs), self.length), self.V + self.K, np.int64)
        targets = np.full(tokens.shape, NO_ANSWER, np.int64)
        tokens[:, : self.pairs] = pairs[held].reshape(-1, self.pairs)
        pair, there = pairs[rows, asked], held[rows, asked]
        last = self.pairs + there[:, : self.a].sum(axis=1) - 1
        row, place = np.nonzero(there[:, : self.a])
        tokens[row, self.pairs + place] = pair[row, place]
        row, place = np.nonzero(there[:, self.a :])
        targets[row, last[row] + place] = pair[row, self.a + place]
        return Batch(tokens, targets)

    def answer(self, tokens: Tokens) -> Tokens:
        tokens = self._checked(tokens)
        targets = np.full(tokens.shape, NO_ANSWER, np.int64)
        for row, prompt in enumerate(tokens.tolist()):
            value, at = self._value(prompt)
            targets[row, at : at + len(value)] = value
        return targets

    def told(self, prompt: list[int]) -> tuple[list[Key], list[Key], Key]:
        """Keys and values in the order of a prompt, and what stands before its first blank."""
        pairs, asked = prompt[: self.pairs], prompt[self.pairs :]
        runs = [tuple(run) for _, run in itertools.groupby(pairs, lambda token: token < self.V)]
        key = tuple(itertools.takewhile(lambda token: token < self.V + self.K, asked))
        return runs[::2], runs[1::2], key

    def _value(self, prompt: list[int]) -> tuple[list[int], int]:
        """The value asked for, and where its first token is due. Raises SizeError."""
        blank = self.V + self.K
        pairs = prompt[: self.pairs]
        keys, values, asked = self.told(prompt)
        found = dict(zip(keys, values, strict=False))
        if (
            pairs[0] < self.V
            or blank in pairs
            or not len(keys) == len(values) == len(found) == self.n
            or max(map(len, keys)) > self.a
            or max(map(len, values)) > self.b
            or asked not in found
            or any(token != blank for token in prompt[self.pairs + len(asked) :])
        ):
            raise self.refused(
                f"a prompt holds {self.n} different keys of 1 to {self.a} tokens, each before a"
                f" value of 1 to {self.b}, in {self.pairs} tokens, then one of the keys and blanks,"
                f" {blank}"
            )
        return list(found[asked]), self.pairs + len(asked) - 1
