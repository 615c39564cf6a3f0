"""How a chain of letters is hidden in permutations: its end is to stand at no place more often
than at others.
"""

from __future__ import annotations

from fractions import Fraction

from separatrix.core.numbers.lazy import np
from separatrix.tasks.base.task import Tokens

__all__ = ["path", "with_end", "with_pair"]


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
    """Makes `end` stand right behind `before` in the permutations `block` (batch, V), in place;
    where `border`, `before` is last instead.
    """
    V = block.shape[1]
    place = rng.integers(1, V, size=len(block))
    _put(block, before, np.where(border, V - 1, place - 1))
    _put(block, end, np.where(border, place - 1, place))


def _put(block: Tokens, letter: Tokens, place: Tokens) -> None:
    """Exchanges, in place, the letter with the one that stands at `place`."""
    rows = np.arange(len(block))
    old = (block == letter[:, None]).argmax(axis=1)
    block[rows, old] = block[rows, place]
    block[rows, place] = letter
