from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction
from functools import lru_cache
from math import comb
from typing import ClassVar

from separatrix.core.numbers.counts import Count, Exact
from separatrix.core.numbers.lazy import np
from separatrix.tasks.base.described import require, size
from separatrix.tasks.base.layout import Layout
from separatrix.tasks.base.task import LARGEST_SIZE, PLAIN, Batch, Composition, Family, Task, Tokens


def path(
    start: Tokens, end: Tokens, V: int, k: int, rng: np.random.Generator
) -> tuple[Tokens, list[Fraction]]:
    """Letters (batch, k + 1) from `start` to `end`, neighbours unlike, all such ways equally
    likely; and P(letter b = end) for uniform start and end.

    There are e_r = ((V-1)^r + (V-1)(-1)^r)/V ways of r steps from a letter to itself and d_r =
    ((V-1)^r - (-1)^r)/V to another one. `start` and `end` differ if k = 1.
    """

    def same(steps: int) -> int:
        return ((V - 1) ** steps + (V - 1) * (-1) ** steps) // V

    def other(steps: int) -> int:
        return ((V - 1) ** steps - (-1) ** steps) // V

    chain = np.empty((len(start), k + 1), np.int64)
    chain[:, 0], chain[:, k] = start, end
    for b in range(1, k):
        before = chain[:, b - 1]
        rest = k - b
        # the end comes next in the share of the ways that lead from it back to itself
        home = rng.random(len(start)) < float(
            Fraction(same(rest), same(rest) + (V - 2) * other(rest))
        )
        back = (end - before) % V  # the step that would lead to the end
        # uniform among the steps to other letters, moved up past the one that leads to the end
        away = 1 + rng.integers(V - 1 - (back > 0))
        away += (back > 0) & (away >= back)
        chain[:, b] = np.where(home & (back > 0), end, (before + away) % V)
    # by cases, start = end or not: ways that are at the end after b steps, among all
    met = [Fraction(1, V)]
    for b in range(1, k):
        met.append(
            Fraction(same(b) * same(k - b), V * same(k))
            + Fraction((V - 1) * other(b) * same(k - b), V * other(k))
        )
    return chain, met


def with_pair(
    block: Tokens,
    first: Tokens,
    second: Tokens,
    end: Tokens,
    first_is_end: Fraction,
    second_is_end: Fraction,
    rng: np.random.Generator,
) -> Tokens:
    """Makes `second` stand right behind `first` in the permutations `block` (batch, V), in place;
    returns the places of `end`, uniform on the whole.

    The pair is uniform where `end` belongs to it, so that `end` is never last or never first then,
    with the probabilities given. Where it does not belong, its place is drawn first, with the
    probabilities that make up for this, and the pair is uniform beside it.
    """
    V = block.shape[1]
    batch = len(block)
    rest = 1 - first_is_end - second_is_end
    one = Fraction(1, V)
    # P(end at place 0) = first_is_end/(V-1) + rest at_first must be 1/V; likewise for the last
    at_first = (one - first_is_end / (V - 1)) / rest
    at_last = (one - second_is_end / (V - 1)) / rest
    drawn = rng.random(batch)
    place = np.where(
        drawn < float(at_first),
        0,
        np.where(drawn < float(at_first + at_last), V - 1, 1 + rng.integers(V - 2, size=batch)),
    )
    # the pair may begin anywhere but at the end's place and right before it
    inside = (place > 0) & (place < V - 1)
    pair = rng.integers(V - 2 - inside)
    pair += (pair >= np.maximum(place - 1, 0)) * (1 + inside)
    belongs = (first == end) | (second == end)
    pair = np.where(belongs, rng.integers(V - 1, size=batch), pair)
    _put(block, first, pair)
    _put(block, second, pair + 1)
    place = np.where(first == end, pair, np.where(second == end, pair + 1, place))
    # the end comes last: its place lies outside the pair or is its own in it, so the pair stays
    _put(block, end, place)
    return place


def with_end(
    block: Tokens, before: Tokens, end: Tokens, border: Tokens, rng: np.random.Generator
) -> None:
    """Makes `end` stand behind `before` in `block` (batch, V), or `before` last where `border`."""
    V = block.shape[1]
    place = rng.integers(1, V, size=len(block))
    _put(block, before, np.where(border, V - 1, place - 1))
    _put(block, end, np.where(border, place - 1, place))


def _put(block: Tokens, letter: Tokens, place: Tokens) -> None:
    rows = np.arange(len(block))
    old = (block == letter[:, None]).argmax(axis=1)
    block[rows, old] = block[rows, place]
    block[rows, place] = letter


MOST_LETTERS = 1024
MOST_HOPS = 64
MOST_RANDOM = 1 << 16


class KHop(Composition, Task):
    """k-hop induction heads: find the last token earlier in the prompt, step to the token behind
    it, and do so k times.

        k = 2:   position   0   1   2   3   4   5   6   7   8   9   10   11
                 input      b   a   e   b   c   a   b   e   b   d   e    a
                 target     .   .   .   .   .   .   .   .   .   .   .    c
        ids a = 0, ..., e = 4; from a to b (place 6), from there to c (place 4)

    From place i one hop leads to the latest place j <= i with X_{j-1} = X_i: the place behind the
    latest earlier occurrence of X_i. The answer is the letter k hops from the last place, or V,
    "none", where a hop finds nothing. (If X_{i-1} = X_i the hop stays at i.)

    Drawn: n >= (k + 1) V tokens of V >= 4 letters. Every letter has the same chance.

    Seen from its end a prompt is cut into blocks of V tokens, each a permutation of the letters
    (the oldest is a part of one). c_0, the last token, and the answer c_k are independent and
    uniform; c_1, ..., c_{k-1} is a uniform one of the ways from c_0 to c_k on which neighbours
    differ. In block b c_{b-1} stands right before c_b, b = 1..k. Every block holds each letter
    once, so that hop b leads there. Otherwise:

    - Block 0 ends in c_0 and is uniform. All letters stand in it, and it is independent of the
    answer: neither the last tokens nor the token behind a nearest key tell anything.
    - Counts are the same in all prompts but for the oldest, partial block, which no hop enters.
    - The answer stands at every place with probability 1/V, block k excepted: in block b < k its
    place is drawn first, so that it is uniform on the whole. If it comes first in block k-1,
    c_{k-1} ends block k, to be followed by it, and the answer stands anywhere before in block k.
    Else they are neighbours in block k. So the first place of block k holds the answer with
    probability 1/(V (V-1)) only, the last with 1/V, each other one with 1/(V-1), which a single
    place may reach. (Were the answer put first in block k whenever it comes first in block k-1, two
    places that agree would give it away, which is worse.)

    Pairs of neighbours are the steps that hops take, so that what they tell is a part of solving
    the task. k = 2: c_2 never stands behind c_0 where n = 3V, c_1 and at most one other letter do,
    and a letter that least follows c_0 is right with probability between 1/(V-1) and 1/(V-2). A
    walk of k steps along pairs of any age ("walks") reaches more than that for small k, which is
    why the sizes of the grid have k >= 7.

    k = 1: c_1 = c_0 would need X_{n-2} = X_{n-1}, which the last two tokens show. So the answer is
    a letter unlike the last token, and the last tokens and the token behind a nearest key may reach
    1/(V-1) too.

    "None" is never drawn ([San24] leave it out of their errors, G.1), but under the shift, which
    asks only for V >= 2 and n >= 2 (and n <= 65,536). There each token is uniform among the letters
    unlike the one before: a hop goes back by a geometric number of places, k hops succeed with
    probability P(Binomial(n-2, 1/(V-1)) >= k), and the letter they find is uniform.

    Counted: k = 1 and n >= 2V - 1: the sum over s = 1..V of binomial(V, s) s^(s-1) [here]. None
    else.

    What matters of t tokens is the set S of their letters, the last letter r, and for every other
    letter of S what stands behind its latest occurrence, its parent. The parent's latest occurrence
    is later than the letter's own, so that this is a tree on S with root r. Trees that differ are
    told apart: one more token v is answered by the parent of v, by v itself if v = r, and by "none"
    if v is not in S. All of the s^(s-1) rooted trees on s letters occur if t >= 2V - 2: write every
    letter but r, each before its parent, with its parent behind it. These are 2s - 2 tokens, and r
    is the last; other tokens of S may stand before. (s = 1: r alone, as often as need be.)

    From: [San24], arXiv 2402.09268, Definition 4.1, at the last place; the example is theirs
    """

    name = "khop"
    title = (
        "k-hop induction heads: from the last token k times to what stands behind the latest"
        " earlier occurrence"
    )
    source = "[San24], Definition 4.1"
    shifts: ClassVar[dict[str, str]] = {
        "random": (
            "tokens drawn one by one, each unlike the one before, as in [San24]: a hop may find"
            " nothing"
        )
    }
    shortcuts = measured = ("walks",)
    grid = ("n=64,V=8,k=7", "n=90,V=10,k=7", "n=96,V=8,k=8", "n=256,V=16,k=8", "n=1024,V=32,k=16")

    n: int = size(
        lambda task: (task.k + 1) * task.V if task.shift == PLAIN else 2,
        lambda task: LARGEST_SIZE if task.shift == PLAIN else MOST_RANDOM,
    )
    V: int = size(2, MOST_LETTERS, told="letters")
    k: int = size(1, MOST_HOPS, told="hops")

    def __post_init__(self) -> None:
        # before n, whose bound it is part of
        if self.shift == PLAIN:
            require(self.name, "V", self.V, 4, MOST_LETTERS)
        super().__post_init__()

    def layout(self) -> Layout:
        letters = {"letter": self.V}
        classes = _trees(self.V) if self.k == 1 and self.n >= 2 * self.V - 1 else None
        return Layout(self.n, letters, letters | {"none": 1}, self.n - 1, classes, steps=self.k)

    @property
    def chance(self) -> Fraction:
        """1/V; under "random" the larger of P(none) and P(a letter)/V."""
        return max(share for _, share in self.law(self.k))

    def law(self, step: int) -> tuple[tuple[range, Fraction], ...]:
        none = Fraction(0)
        if self.shift != PLAIN:
            tries = self.n - 2
            others = self.V - 1
            # P(Binomial(n - 2, 1/(V - 1)) < step)
            none = Fraction(
                sum(
                    comb(tries, hits) * (others - 1) ** (tries - hits)
                    for hits in range(min(step, tries + 1))
                ),
                others**tries,
            )
        return (range(self.V), (1 - none) / self.V), (range(self.V, self.V + 1), none)

    def level(self, probe: str) -> Fraction:
        seen = ("position", "last tokens", "nearest key") if self.k == 1 else ("position",)
        return Fraction(1, self.V - 1) if probe in seen and self.shift == PLAIN else self.chance

    def family(self) -> Family[KHop]:
        """V and k stay; the shift where this size needs it; with k = 1 from n = 2V - 1 then."""
        V = self.V
        k = self.k
        plain = (self.k + 1) * self.V
        kept, smallest = (
            (PLAIN, plain)
            if V >= 4 and self.n >= plain
            else (self.shift, 2 * V - 1 if k == 1 else 2)
        )
        return Family(
            f"V = {V:,}, k = {k}",
            lambda n: KHop(n=n, V=V, k=k, shift=kept),
            smallest,
            # what is written behind a prefix becomes the latest occurrence of its letters: more
            # tokens tell fewer prefixes apart
            keeps_prefixes=False,
        )

    def draw(self, batch: int, rng: np.random.Generator) -> Batch:
        if self.shift != PLAIN:
            steps = rng.integers(1, self.V, size=(batch, self.n))
            steps[:, 0] = rng.integers(self.V, size=batch)
            tokens = np.cumsum(steps, axis=1) % self.V
            return Batch(tokens, self.answer(tokens))
        blocks = -(-self.n // self.V)
        tokens = np.tile(np.arange(self.V), (batch, blocks, 1))
        rng.permuted(tokens, axis=2, out=tokens)
        letters = self._write(tokens[:, ::-1], rng)
        return Batch(tokens.reshape(batch, -1)[:, -self.n :], letters)

    def _write(self, blocks: Tokens, rng: np.random.Generator) -> Tokens:
        """Writes the chain into permutations, newest first, in place; returns its end (batch,)."""
        rows = np.arange(len(blocks))
        V = self.V
        k = self.k
        start = blocks[:, 0, -1]
        # a single hop leads to another letter: any of the newest block but its last
        place = rng.integers(V - (k == 1), size=len(blocks))
        end = blocks[rows, 0, place] if k == 1 else rng.integers(V, size=len(blocks))
        chain, met = path(start, end, V, k, rng)
        for b in range(1, k):
            place = with_pair(
                blocks[:, b], chain[:, b - 1], chain[:, b], end, met[b - 1], met[b], rng
            )
        with_end(blocks[:, k], chain[:, k - 1], end, place == 0, rng)
        return end

    def chain(self, tokens: Tokens) -> Tokens:
        """c_1, ..., c_k, (batch, k), V from the first hop that finds nothing, or SizeError."""
        last = np.full((len(tokens), 1), self.n - 1)
        return np.concatenate(list(self.hopped(self._checked(tokens), last)), axis=1)

    def hopped(self, tokens: Tokens, place: Tokens) -> Iterator[Tokens]:
        """The letters that 1, ..., k hops from places (batch, any) find, V for nothing."""
        order = np.argsort(tokens, axis=1, kind="stable")
        letters = np.take_along_axis(tokens, order, axis=1)
        # of equal letters, in their order, each leads behind the one before it; n is nowhere
        same = letters[:, 1:] == letters[:, :-1]
        behind = np.full((len(tokens), self.n + 1), self.n)
        np.put_along_axis(behind, order[:, 1:], np.where(same, order[:, :-1] + 1, self.n), axis=1)
        found = np.concatenate((tokens, np.full((len(tokens), 1), self.V)), axis=1)
        for _ in range(self.k):
            place = np.take_along_axis(behind, place, axis=1)
            yield np.take_along_axis(found, place, axis=1)


@lru_cache(maxsize=64)
def _trees(V: int) -> Count:
    """Rooted labelled trees on a subset of V letters that is not empty."""
    return Exact(
        sum(comb(V, s) * s ** (s - 1) for s in range(1, V + 1)),
        f"sum over s = 1..{V:,} of binomial({V:,}, s) s^(s-1)",
    )
