"""q-sparse averaging: answers by hand, the exact law of what is drawn, the average of the paper,
chance under shifts.
"""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Callable
from fractions import Fraction

import numpy as np
import pytest
from support.counted_classes import counted_classes
from support.each import each

from separatrix.core.errors import SizeError
from separatrix.core.numbers.counts import Exact
from separatrix.tasks import QSA

Values = tuple[int, ...]


def test_answers_by_hand() -> None:
    """The token table: 2 + 2 = 1 mod 3 at places 3 and 0, 0 + 1 at places 1 and 2."""
    task = QSA(n=4, q=2, V=3, sets=2)
    assert task.answer(np.array([[2, 0, 1, 2, 6, 3, 4, 5]])).tolist() == [
        [-1, -1, -1, -1, -1, 1, -1, 1]
    ]


@each(
    "n, q, V, classes",
    [(5, 2, 4, 512), (5, 3, 4, 1024), (6, 4, 6, 23328), (5, 5, 4, 4), (3, 2, 2, 4)],
)
def test_classes_by_hand(n: int, q: int, V: int, classes: int) -> None:
    """V^n / gcd(q, V), or V where the only set holds all places: 4^5/2, 4^5, 6^6/2, 4, 2^3/2."""
    count = counted_classes(QSA(n=n, q=q, V=V))
    assert count.exact() == classes


def test_a_count_that_is_a_power_of_two_is_compared_with_others() -> None:
    """8^n / 4 = 2^(3n - 2), for n too large to write the number out."""
    count = counted_classes(QSA(n=10**11, q=4, V=8))
    assert (
        count.exceeds_bits(3 * 10**11 - 3),
        count.exceeds_bits(3 * 10**11 - 2),
        count.exceeds_bits(3 * 10**11 - 1),
    ) == (
        True,
        False,
        False,
    )


def described(n: int, q: int, V: int) -> dict[tuple[Values, Values, int], Fraction]:
    """Probability of values, ordered set and answer: values as equally often as can be, answer
    uniform, set uniform among those that have it.
    """
    law: dict[tuple[Values, Values, int], Fraction] = {}
    orders = list(itertools.permutations(range(n)))
    vectors = [
        tuple((start + order[place]) % V for place in range(n))
        for start in range(V)
        for order in orders
    ]
    for values, times in Counter(vectors).items():
        sets: dict[int, list[Values]] = {}
        for asked in itertools.permutations(range(n), q):
            sets.setdefault(sum(values[place] for place in asked) % V, []).append(asked)
        assert len(sets) == V
        for answer, having in sets.items():
            for asked in having:
                law[values, asked, answer] = Fraction(times, len(vectors) * V * len(having))
    return law


@pytest.mark.parametrize(("n", "q", "V"), [(4, 2, 2), (5, 2, 2), (6, 2, 3)])
def test_neither_values_nor_counts_and_set_tell(n: int, q: int, V: int) -> None:
    """Exactly, in the distribution described: given all values, or how often each value occurs
    and the set, every answer is as likely.
    """
    law = described(n, q, V)
    assert sum(law.values()) == 1
    views: list[Callable[[Values, Values], object]] = [
        lambda values, asked: values,
        lambda values, asked: (tuple(sorted(values)), asked),
    ]
    for view in views:
        seen: dict[object, dict[int, Fraction]] = {}
        for (values, asked, answer), p in law.items():
            row = seen.setdefault(view(values, asked), {})
            row[answer] = row.get(answer, Fraction(0)) + p
        assert all(len(row) == V and len(set(row.values())) == 1 for row in seen.values())


@pytest.mark.parametrize(("n", "q", "V"), [(4, 2, 2), (5, 2, 2)])
def test_the_sampler_follows_its_description(n: int, q: int, V: int) -> None:
    """Chi-square over all prompts below freedom + 5 sigma; nothing else is drawn."""
    total = 40_000
    law = {
        (*values, *(V + place for place in asked)): p
        for (values, asked, _), p in described(n, q, V).items()
    }
    drawn = Counter(
        map(
            tuple,
            QSA(n=n, q=q, V=V, sets=1).sample(total, np.random.default_rng(0)).tokens.tolist(),
        )
    )
    assert set(drawn) <= set(law)
    chi2 = sum(
        (drawn[prompt] - total * float(p)) ** 2 / (total * float(p)) for prompt, p in law.items()
    )
    assert chi2 < len(law) - 1 + 5 * (2 * (len(law) - 1)) ** 0.5


def test_values_stand_about_equally_often() -> None:
    tokens, _ = QSA(n=14, q=2, V=4).sample(200, np.random.default_rng(1))
    counts = np.apply_along_axis(np.bincount, 1, tokens[:, :14], minlength=4)
    assert set(counts.ravel().tolist()) == {3, 4}
    assert len(set(map(tuple, counts.tolist()))) == 4


def test_a_place_twice_in_a_set_is_refused() -> None:
    task = QSA(n=4, q=2, V=2, sets=2)
    with pytest.raises(SizeError, match="a set holds a place twice"):
        task.answer(np.array([[0, 1, 0, 1, 2, 3, 5, 5]]))
    with pytest.raises(SizeError, match=r"holds 1; .*\[2, 6\)"):
        task.answer(np.array([[0, 1, 0, 1, 2, 3, 5, 1]]))
    assert task.answer(np.array([[0, 1, 0, 1, 2, 3, 3, 2]])).tolist() == [
        [-1, -1, -1, -1, -1, 1, -1, 1]
    ]


def test_too_few_values_to_draw() -> None:
    with pytest.raises(SizeError, match="n of at least 8"):
        QSA(n=7, q=2, V=4).sample(1, np.random.default_rng(0))


def test_families() -> None:
    same = QSA(n=8, q=3, V=2).family()
    fixed = QSA(n=8, q=3, V=2, sets=5).family()
    assert (same.smallest, same.largest, same.at(12)) == (3, 10**12, QSA(n=12, q=3, V=2, sets=12))
    assert fixed.at(12) == QSA(n=12, q=3, V=2, sets=5)
    counts = [counted_classes(same.at(n)) for n in range(3, 40)]
    assert counts[0] == Exact(2)
    assert all(
        low.exact() <= high.exact() for low, high in itertools.pairwise(filter(None, counts))
    )
