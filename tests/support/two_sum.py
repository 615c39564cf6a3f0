"""The exact distribution that the docstring of TwoSum describes, enumerated in fractions, and
what a view of a prompt tells of its label.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Hashable, Iterator
from fractions import Fraction

Prompt = tuple[int, ...]
Distribution = dict[tuple[Prompt, int], Fraction | int]


def described(n: int, M: int, form: str) -> Distribution:
    """Probability of every (prompt, label)."""
    total: Distribution = {}
    for prompt, label, p in _query(n, M) if form == "query" else _decision(n, M):
        total[prompt, label] = total.get((prompt, label), Fraction(0)) + p
    return total


def _query(n: int, M: int) -> Iterator[tuple[Prompt, int, Fraction]]:
    classes = range(1, (M - 1) // 2 + 1)
    pairs = [(free, c) for free in classes for c in classes if c != free or len(classes) == 1]
    for place, (free, c), met in itertools.product(range(n), pairs, (1, -1)):
        met = met * c % M
        allowed = [
            v for v in range(M) if v != M - met and (v not in (free, M - free) or len(classes) == 1)
        ]
        fresh = (
            [f for f in (free, M - free) if M % 2 == 0 or (f - (M - met)) % 2 == 0]
            if len(classes) > 1
            else [met]
        )
        for others in itertools.product(allowed, repeat=n - 1):
            p = Fraction(1, 2 * n * len(pairs) * 2 * len(allowed) ** (n - 1))
            x = (*others[:place], met, *others[place:])
            yield (*x, M - met), 1, p
            for q in fresh:
                yield (*x, q), 0, p / len(fresh)


def _decision(n: int, M: int) -> Iterator[tuple[Prompt, int, Fraction]]:
    classes = range(1, (M - 1) // 2 + 1)
    for free in classes:
        others = [c for c in classes if c != free] or [free]
        for chosen in itertools.product(others, repeat=n - 1):
            kinds = sorted(set(chosen))
            for signs in itertools.product((1, -1), repeat=len(kinds)):
                x = [c * signs[kinds.index(c)] % M for c in chosen]
                p = Fraction(1, 2 * len(classes) * len(others) ** (n - 1) * 2 ** len(kinds) * n)
                for met, place in itertools.product(x, range(n)):
                    fresh = (
                        [f for f in (free, M - free) if M % 2 == 0 or (f - (M - met)) % 2 == 0]
                        if len(classes) > 1
                        else [x[0]]
                    )
                    for last, label, share in [(f, 0, len(fresh)) for f in fresh] + [
                        (M - met, 1, 1)
                    ]:
                        prompt = [*x, last]
                        prompt[place], prompt[-1] = prompt[-1], prompt[place]
                        yield tuple(prompt), label, p / share / (n - 1)


def says_nothing(distribution: Distribution, view: Callable[[Prompt], Hashable]) -> bool:
    """Whether the view of a prompt is independent of its label (both labels being equally
    likely).
    """
    weights: dict[Hashable, list[Fraction]] = {}
    for (prompt, label), p in distribution.items():
        weights.setdefault(view(prompt), [Fraction(0), Fraction(0)])[label] += p
    return all(zero == one for zero, one in weights.values())
