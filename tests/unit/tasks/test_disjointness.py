"""Disjointness: answers by hand, the exact distribution of the docstring, and what neither half
nor any count tells.
"""

from __future__ import annotations

import itertools
from collections import Counter
from fractions import Fraction

import numpy as np
import pytest
from support.each import each

from separatrix.tasks import Disjointness

Prompt = tuple[int, ...]


def described(n: int) -> dict[Prompt, Fraction]:
    """Probability of every prompt: each element in u, in v or in neither, alike; of two neighbours
    one is in u, and one in v, the same if the answer is 0.
    """
    found: dict[Prompt, Fraction] = {}
    starts = [2 * pair + odd for odd in range(1 + n % 2) for pair in range(n // 2)]
    for start in starts:
        for kind in itertools.product("uv-", repeat=n - 2):
            p = Fraction(1, 8 * len(starts) * 3 ** (n - 2))
            # twice for each of the two orders of the pair
            for mine, other in itertools.product(((1, 0), (0, 1)), repeat=2):
                u = [int(k == "u") for k in kind]
                v = [int(k == "v") for k in kind]
                u[start:start], v[start:start] = mine, other
                found[*u, *v] = found.get((*u, *v), Fraction(0)) + 2 * p
    return found


@pytest.mark.parametrize("n", [2, 3, 4])
def test_the_sampler_follows_its_description(n: int) -> None:
    """Chi-square over all prompts below freedom + 5 sigma; nothing else is drawn."""
    total = 40_000
    expected = described(n)
    assert sum(expected.values()) == 1
    drawn = Counter(
        map(
            tuple,
            Disjointness(n=n).sample(total, np.random.default_rng(7)).tokens.tolist(),
        )
    )
    assert set(drawn) <= set(expected)
    chi2 = sum(
        (drawn[prompt] - total * float(p)) ** 2 / (total * float(p))
        for prompt, p in expected.items()
    )
    assert chi2 < len(expected) - 1 + 5 * (2 * (len(expected) - 1)) ** 0.5


@each("n", [2, 3, 4, 5])
def test_neither_half_nor_any_count_tells(n: int) -> None:
    """Exactly: u, v and both numbers of elements are as likely under either answer, and never
    more than one element is common.
    """
    views = {
        "u": lambda p: p[:n],
        "v": lambda p: p[n:],
        "elements": lambda p: (sum(p[:n]), sum(p[n:])),
    }
    exact = described(n)
    assert {sum(a & b for a, b in zip(p[:n], p[n:], strict=True)) for p in exact} == {0, 1}
    for view in views.values():
        seen: dict[object, Fraction] = {}
        for prompt, p in exact.items():
            common = any(a & b for a, b in zip(prompt[:n], prompt[n:], strict=True))
            seen[view(prompt)] = seen.get(view(prompt), Fraction(0)) + (-p if common else p)
        assert set(seen.values()) == {0}


@pytest.mark.parametrize("n", [8, 16, 24])
def test_quarters_say_nothing(n: int) -> None:
    """How many elements u and v have in each quarter: chi-square of their joint law between the
    answers.
    """
    tokens, targets = Disjointness(n=n).sample(40_000, np.random.default_rng(3))
    quarter = n // 4
    counts = tokens.reshape(len(tokens), 8, quarter).sum(2)
    for part in range(4):
        codes = counts[:, part] * (quarter + 1) + counts[:, 4 + part]
        table = np.stack([np.bincount(codes[targets == label]) for label in (0, 1)])
        table = table[:, table.sum(0) > 20]
        expected = table.sum(0) * table.sum(1, keepdims=True) / table.sum()
        cells = table.shape[1] - 1
        assert ((table - expected) ** 2 / expected).sum() < cells + 5 * (2 * cells) ** 0.5 + 5
