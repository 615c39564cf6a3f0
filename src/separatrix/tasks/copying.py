"""Copying: a string, a mark, then the string again; or of values scattered among blanks."""

from __future__ import annotations

from fractions import Fraction

from separatrix.core.numbers.lazy import np
from separatrix.tasks.base.described import ladder, size
from separatrix.tasks.base.layout import Growth, Layout, Table
from separatrix.tasks.base.task import NO_ANSWER, Batch, Task, Tokens
from separatrix.tasks.drawing.distinct import balanced, other, share, shown, smallest


class Copying(Task):
    """Copying: a string, a mark, then the string again, token by token.

        n = 4, V = 3, length 3:   position   0   1   2   3   4   5   6   7   8
                                  input      2   0   2   |   _   _   _   .   .
                                  target     .   .   .   .   2   0   2   .   .

        length m <= n:            position   0     ...   m-1   m   m+1   ...   2m    2m+1   ...   2n
                                  input      x_1   ...   x_m   |   _     ...   _     .      ...   .
                                  target     .     ...   .     .   x_1   ...   x_m   .      ...   .

    Values are the ids 0..V-1, the mark | is V, a blank _ is V + 1, what fills the rest is V + 2.
    The string has 1 to n values. After the i-th blank behind the mark its i-th value is due. Blanks
    stand where a copy would be written, so that no answer is told by the ones before it.

    Drawn: The length m is uniform between ceil(n/2) and n. Values stand equally often, or as nearly
    so as m allows, in uniform order.

    Any one value says nothing: the values asked for are uniform, whichever values stand in the
    prompt, and where V divides m so is one of them given all counts. With lengths that differ, no
    place counted from either end holds the answer: m + 1 places back is right for one length of M =
    n - ceil(n/2) + 1, and the i-th place for one of m values at most. What stands most often where
    it may tells more ("expected place"). (A string of fixed length would be copied by one fixed
    look back, with nothing counted.)

    Counted: V^n, for the first n tokens [here]: two strings of n values differ at a place, which is
    asked for. (Shorter strings go on in other ways than longer ones, and are fewer.)

    From: the copying tasks of Arjovsky, Shah, Bengio, arXiv 1511.06464, and Jelassi et al., arXiv
    2402.01032. Blanks instead of the copy itself and a length that differs are ours
    """

    name = "copying"
    title = "copying: a string of at most n values, a mark; answer the string again"
    source = "arXiv 1511.06464; arXiv 2402.01032"
    several = True
    shortcuts = measured = ("expected place",)
    grid = ("n=24,V=4", "n=32,V=8", "n=48,V=6", "n=128,V=16", "n=512,V=32", "n=2048,V=64")

    n: int = size(2)
    V: int = size(2)

    def layout(self) -> Layout:
        """Behind the mark and a blank the string's first value is due, the others later."""
        return Layout.listing(
            Table(self.n, self.V, shared=1),
            {"value": self.V, "mark": 1, "blank": 1, "filling": 1},
            length=2 * self.n + 1,
            prefix=self.n,
            written={"mark": "|", "blank": "_", "filling": "."},
            spelling="The mark is written |, a blank _, what fills the rest a dot.",
        )

    @property
    def shortest(self) -> int:
        return (self.n + 1) // 2

    def level(self, probe: str) -> Fraction:
        """Of counts the most frequent value; of places what one entry says of another."""
        if probe in ("constant", "nearest key"):
            return self.chance
        shortest = self.shortest
        if probe == "counts":
            # of longer strings those one longer than a multiple of V have the largest share
            longer = -(-shortest // self.V) * self.V + 1
            return max(share(m, self.V) for m in (shortest, min(self.n, longer)))
        if probe == "last tokens":
            return other(shortest, self.V)
        return shown(Fraction(1, min(shortest, self.n - shortest + 1)), shortest, self.V)

    def draw(self, batch: int, rng: np.random.Generator) -> Batch:
        lengths = rng.integers(self.shortest, self.n + 1, size=batch)
        strings = np.zeros((batch, self.n), np.int64)
        for length in np.unique(lengths).tolist():
            rows = np.flatnonzero(lengths == length)
            strings[rows, :length] = balanced(len(rows), length, self.V, rng)
        return self._laid(strings, lengths)

    def _laid(self, strings: Tokens, lengths: Tokens) -> Batch:
        shape = (len(strings), self.length)
        place = np.arange(self.length)
        m = lengths[:, None]
        tokens = np.full(shape, self.V + 2, np.int64)
        tokens[:, : self.n] = strings
        tokens = np.where(place >= m, np.where(place > 2 * m, self.V + 2, self.V + 1), tokens)
        tokens[np.arange(len(strings)), lengths] = self.V
        targets = np.full(shape, NO_ANSWER, np.int64)
        due = (place > m) & (place <= 2 * m)
        # due places and values follow one another in the same order
        targets[due] = strings[np.arange(self.n) < m]
        return Batch(tokens, targets)

    def answer(self, tokens: Tokens) -> Tokens:
        tokens = self._checked(tokens)
        marks = tokens == self.V
        lengths = marks.argmax(axis=1)
        strings = tokens[:, : self.n]
        held = np.arange(self.n) < lengths[:, None]
        laid = self._laid(np.where(held, strings, 0), np.minimum(lengths, self.n))
        if (
            (marks.sum(axis=1) != 1).any()
            or (lengths < 1).any()
            or (strings[held] >= self.V).any()
            or (laid.tokens != tokens).any()
        ):
            raise self.refused(
                f"a prompt is a string of 1 to {self.n} values below {self.V}, the mark {self.V},"
                f" as many blanks, {self.V + 1}, and then only {self.V + 2}"
            )
        return laid.targets


class SelectiveCopying(Task):
    """Selective copying: values scattered among blanks, then all of them in order.

        n = 3, T = 6, V = 4:   position   0   1   2   3   4   5   6   7   8
                               input      _   2   _   _   0   3   ?   ?   ?
                               target     .   .   .   .   .   .   2   0   3

    Values are the ids 0..V-1, a blank _ is V, a question ? is V + 1. Of the first T tokens n are
    values, then stand n questions. After the i-th question the i-th value is due.

    Drawn: The places of the values are a uniform set; the values stand equally often, or as nearly
    so as n allows, in uniform order.

    Any one value says nothing, and where V divides n, nor do the counts. The value asked for stands
    at no fixed place: counted from the end it is as many places back as there are tokens up to it,
    which is n and the blanks behind the i-th value; of a uniform value these are uniform from 0 to
    T - n. So one place is right with probability 1/(T - n + 1) for itself; by the number of the
    question, i, one place is with probability n/T at most, and all places, each by how likely it
    is, tell more ("expected place").

    Counted: V^n, for the first T tokens [here]: where the values stand makes no difference to what
    is answered, and two strings that differ at a place are told apart there.

    From: Arjovsky, Shah, Bengio, arXiv 1511.06464, with random places as in Gu and Dao, arXiv
    2312.00752; MAD's selective copying, arXiv 2403.17844, is the same with a mark at each end
    """

    name = "selective-copying"
    title = "selective copying: n values scattered among T tokens; answer all of them in order"
    source = "arXiv 1511.06464; arXiv 2312.00752; arXiv 2403.17844"
    several = True
    shortcuts = measured = ("expected place",)
    grid = ladder("""
        n=8,T=64,V=4 n=12,T=96,V=6 n=16,T=128,V=8 n=16,T=256,V=16 n=16,T=4096,V=16 n=256,T=4096,V=64
    """)

    n: int = size(2, told="values")
    T: int = size(lambda task: task.n, told="tokens they stand among")
    V: int = size(2)

    def layout(self) -> Layout:
        """All values may stand before the blanks; the first is due first, the others later."""
        blanks = self.T - self.n
        return Layout.listing(
            Table(self.n, self.V, shared=blanks),
            {"value": self.V, "blank": 1, "question": 1},
            length=self.T + self.n,
            written={"blank": "_", "question": "?"},
            spelling="A blank is written _, a question ?.",
            grows=Growth(f"V = {self.V:,}, T = n + {blanks:,}", {"T": (1, blanks)}),
        )

    def level(self, probe: str) -> Fraction:
        """The most frequent value also behind the last blank; else as in copying."""
        if probe == "constant":
            return self.chance
        if probe in ("counts", "nearest key"):
            return share(self.n, self.V)
        if probe == "last tokens" and self.n > 3:
            return other(self.n, self.V)
        return shown(Fraction(1, self.T - self.n + 1), self.n, self.V)

    def draw(self, batch: int, rng: np.random.Generator) -> Batch:
        tokens = np.full((batch, self.length), self.V, np.int64)
        tokens[:, self.T :] = self.V + 1
        values = balanced(batch, self.n, self.V, rng)
        chosen = smallest(lambda: rng.random((batch, self.T)), self.n)
        np.put_along_axis(tokens, chosen, values, axis=1)
        return Batch(tokens, self.targets(batch, slice(self.T, None), values))

    def answer(self, tokens: Tokens) -> Tokens:
        tokens = self._checked(tokens)
        front = tokens[:, : self.T]
        held = front < self.V
        if (front > self.V).any() or (held.sum(axis=1) != self.n).any():
            raise self.refused(
                f"the first {self.T} tokens must be {self.n} values below {self.V} and blanks,"
                f" {self.V}"
            )
        if (tokens[:, self.T :] != self.V + 1).any():
            raise self.refused(f"the last {self.n} tokens must be {self.V + 1}")
        return self.targets(len(tokens), slice(self.T, None), front[held].reshape(-1, self.n))
