"""What samplers share: rows of different numbers, Zipf's law, tokens that are no key; and the
share of the mode.
"""

from __future__ import annotations

import itertools
from collections import Counter
from fractions import Fraction

import numpy as np
import pytest
from support.each import each

from separatrix.tasks.base.levels import share_of_the_mode
from separatrix.tasks.drawing import distinct as drawing
from separatrix.tasks.drawing.distinct import (
    distinct,
    enough,
    first_different,
    one_of,
    shuffled,
    uniform,
    zipf,
    zipf_chance,
)
from separatrix.tasks.mqar import find, weighted, without


def rng() -> np.random.Generator:
    return np.random.default_rng(0)


def assert_alike(counts: Counter[tuple[int, ...]], outcomes: int) -> None:
    """All outcomes come, and equally often: chi-square below freedom + 5 sigma."""
    expected = counts.total() / outcomes
    assert len(counts) == outcomes
    assert (
        sum((count - expected) ** 2 / expected for count in counts.values())
        < outcomes - 1 + 5 * (2 * outcomes) ** 0.5
    )


@pytest.mark.parametrize("ids", [3, 5, 8])
def test_every_row_of_different_numbers_is_as_likely_as_any_other(ids: int) -> None:
    """3 and 5 ids are few for 3 numbers: permutations; 8 ids are many: repeated draws."""
    rows = distinct(40_000, 3, ids, rng())
    assert_alike(Counter(map(tuple, rows.tolist())), ids * (ids - 1) * (ids - 2))


@pytest.mark.parametrize("ids", [4, 9])
def test_numbers_that_are_held_are_not_drawn(ids: int) -> None:
    held = np.tile([[1, 3]], (20_000, 1))
    rows = distinct(20_000, 2, ids, rng(), besides=held)
    assert_alike(Counter(map(tuple, rows.tolist())), (ids - 2) * (ids - 3))
    assert not np.isin(rows, (1, 3)).any()


@each("ids", [1, 2, 8, 11, 1 << 16, 1 << 17, (1 << 32) - 1, 1 << 32])
def test_uniform_by_its_law(ids: int) -> None:
    """In 16 parts as equal as ids allow: chi-square below freedom + 5 sigma."""
    drawn = uniform(ids, (101, 303), rng()).astype(np.int64)
    parts = min(ids, 16)
    assert drawn.shape == (101, 303)
    assert drawn.max() < ids
    part = np.arange(parts + 1) * ids // parts
    expected = drawn.size * np.diff(part) / ids
    counts = np.histogram(drawn, part)[0]
    assert ((counts - expected) ** 2 / expected).sum() <= parts - 1 + 5 * (2 * (parts - 1)) ** 0.5


@pytest.mark.parametrize("number", [1, 3, 4, 40])
def test_shuffled_rows_are_permutations_and_all_alike(
    number: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """By exchanges, and by sorting random bits; of 40 places, where 0 and 1 stand."""
    for few in (1, 1 << 10):
        monkeypatch.setattr(drawing, "_SORTED", few)
        rows = shuffled(40_000, number, rng())
        assert (np.sort(rows, axis=1) == np.arange(number)).all()
        if number < 40:
            assert_alike(Counter(map(tuple, rows.tolist())), [1, 1, 2, 6, 24][number])
        else:
            assert_alike(
                Counter(
                    zip((rows == 0).argmax(1).tolist(), (rows == 1).argmax(1).tolist(), strict=True)
                ),
                40 * 39,
            )


def test_first_different_takes_the_first_and_draws_on_where_they_are_too_few() -> None:
    """Draws run from right to left; a second round stands to the left of the first."""
    rounds = [
        np.array([[3, 1, 3, 0, 1], [2, 2, 2, 2, 2]]),
        np.array([[4, 4, 4, 4, 4], [1, 0, 3, 2, 4]]),
    ]
    taken = first_different(2, 5, 5, lambda shape: rounds.pop(0), held=np.array([[0], [3]]))
    assert taken.tolist() == [[1, 3], [2, 4]]
    assert rounds == []


def test_enough_draws_by_hand() -> None:
    """Two ids alike: after N draws each is missed with probability 2^-N; both are never met for
    sure.
    """
    assert (
        enough(np.array([0.5]), 1, 99, alike=2) == 6
    )  # 2 - 2^(1-N) - 4 sqrt(2^(1-N) (1 - 2^-N)): 0.953 for N = 5, 1.267 for N = 6
    assert enough(np.array([0.5, 0.5]), 2, 99) is None


@pytest.mark.parametrize(("places", "a"), [(10, 0.5), (300, 0.01), (50, 3.0)])
def test_weighted_places_by_their_law(places: int, a: float) -> None:
    """Sets of one: chi-square. Of 300 places many share a cell of 2^-16 with the next one."""
    drawn = weighted(places, a, 1).sets(60_000, rng())[:, 0]
    weights = np.arange(1, places + 1.0) ** (a - 1)
    expected = 60_000 * weights / weights.sum()
    counts = np.bincount(drawn, minlength=places)
    often = expected > 5
    freedom = often.sum() - 1
    assert ((counts - expected) ** 2 / expected)[often].sum() < freedom + 5 * (2 * freedom) ** 0.5


def test_the_two_ways_to_draw_weighted_sets_agree() -> None:
    """How often each of 100 places is among 8: by first draws and by the race, 5 sigma."""
    kept = weighted(100, 0.2, 8)
    assert kept.draws is not None
    first = kept.sets(20_000, rng())
    race = kept._race(20_000, rng())
    assert all(len(set(row)) == 8 for row in first[:300].tolist())
    one, other = (np.bincount(sets.ravel(), minlength=100) / 20_000 for sets in (first, race))
    assert (np.abs(one - other) < 5 * (2 * np.maximum(one * (1 - one), 1e-4) / 20_000) ** 0.5).all()


def test_ids_too_many_to_pack_are_drawn_alike() -> None:
    """Ids of 62 bits leave no room for a place beside them."""
    many = 1 << 62
    drawn = np.array([[5, many - 1, 5, 7], [many - 1, 1, 2, 3], [4, 4, 4, 4]])
    row, place = drawing.repeated(drawn, many)
    assert list(zip(row.tolist(), place.tolist(), strict=True)) == [(0, 2), (2, 1), (2, 2), (2, 3)]
    assert [part.tolist() for part in drawing.repeated(np.minimum(drawn, 9), 10)] == [
        [0, 2, 2, 2],
        [2, 1, 2, 3],
    ]


@each("values", [1, 2, 5, 40])
def test_zipf_by_its_law(values: int) -> None:
    drawn = zipf(values, (100, 2_000), rng())
    total = 200_000
    weights = 1 / np.arange(1, values + 1)
    expected = total * weights / weights.sum()
    counts = np.bincount(drawn.ravel(), minlength=values)
    assert len(counts) == values
    assert ((counts - expected) ** 2 / expected).sum() < values - 1 + 5 * (2 * values) ** 0.5


def test_harmonic_numbers_by_hand() -> None:
    assert [zipf_chance(values) for values in (1, 2, 3, 4)] == [
        1,
        Fraction(2, 3),
        Fraction(6, 11),
        Fraction(12, 25),
    ]


def test_one_of_is_uniform() -> None:
    places = one_of(np.tile([False, True, False, True, True], (30_000, 1)), rng())
    assert_alike(Counter((place,) for place in places.tolist()), 3)


@pytest.mark.parametrize("vocabulary", [6, 1 << 15, 10**9])
def test_tokens_that_are_no_key(vocabulary: int) -> None:
    """Small vocabularies have a slot per id; in larger ones ids share slots, so that all keys
    here fall on few of them.
    """
    step = max(1, vocabulary // 1024 // 256 * 256)
    keys = rng().permuted(np.tile(np.arange(5), (400, 1)), axis=1)[:, :3] * step
    drawn = without(keys, 300, vocabulary, rng()).astype(np.int64)
    assert drawn.min() >= 0
    assert drawn.max() < vocabulary
    assert not (drawn[:, :, None] == keys[:, None, :]).any()
    if vocabulary == 6:
        free = [
            Counter((token,) for token in drawn[(np.sort(keys) == held).all(1)].ravel().tolist())
            for held in ([0, 1, 2], [0, 2, 4])
        ]
        for counts in free:
            assert_alike(counts, 3)


def test_keys_are_found_in_their_own_row() -> None:
    keys = np.array([[4, 1], [2, 9]])
    tokens = np.array([[1, 4, 2, 9, 0], [1, 4, 2, 9, 0]])
    found = find(keys, tokens, 10)
    assert found is not None
    assert found.tolist() == [[1, 0, -1, -1, -1], [-1, -1, 0, 1, -1]]
    assert find(np.array([[4, 1], [9, 9]]), tokens, 10) is None


def test_share_of_the_mode_is_a_bound() -> None:
    """Of all functions; and of random ones, not far above."""
    for n, V in itertools.product(range(1, 6), range(1, 5)):
        functions = list(itertools.product(range(V), repeat=n))
        most = sum(max(Counter(f).values()) for f in functions)
        assert Fraction(most, n * len(functions)) <= share_of_the_mode(n, V) <= 1
    for n, V in ((129, 2), (2048, 16), (10**6, 1000)):
        drawn = rng().multinomial(n, [1 / V] * V, size=200).max(axis=1) / n
        assert drawn.mean() < float(share_of_the_mode(n, V)) < 2.1 * drawn.mean()
