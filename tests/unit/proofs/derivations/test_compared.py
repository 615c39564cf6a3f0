"""Scores that are sums over views: what is derived view by view against every sum."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from separatrix.core.errors import CheckFailed
from separatrix.proofs.derivations.parts.compared import Compared, least_of
from separatrix.proofs.machine import Array, Enclosure, linear


def tables(rng: np.random.Generator, rows: int, dims: slice) -> Array:
    found = np.zeros((rows, 5))
    found[:, dims] = rng.integers(-4, 5, size=(rows, dims.stop - dims.start))
    return found


def views(one: Array, other: Array) -> list[Enclosure]:
    """Sums of a row here and a row there, known by either."""
    hulls = [Enclosure.point(table).hull() for table in (one, other)]
    return [
        Enclosure.between(table + hull.low, table + hull.high)
        for table, hull in ((one, hulls[1]), (other, hulls[0]))
    ]


@pytest.mark.parametrize("seed", range(8))
def test_leads_of_views_bound_those_of_every_sum(seed: int) -> None:
    rng = np.random.default_rng(seed)
    first, second = slice(0, 3), slice(3, 5)
    queries = tables(rng, 4, first), tables(rng, 3, second)
    keys = tables(rng, 4, first), tables(rng, 3, second)
    compared = Compared.of(views(*queries), views(*keys), "layer 1")
    assert compared.terms == 5
    # small integers: nothing is rounded
    assert compared.error == 0
    for a, b in itertools.product(range(4), range(3)):
        score = {
            (c, d): float((queries[0][a] + queries[1][b]) @ (keys[0][c] + keys[1][d]))
            for c, d in itertools.product(range(4), range(3))
        }
        own = score.pop((a, b))
        gaps = [compared.own(0), compared.own(1), compared.own(0) + compared.own(1)]
        assert min(gaps) <= min(own - other for other in score.values())


@pytest.mark.parametrize("seed", range(8))
def test_scores_are_within_the_error_where_numbers_are_made_of_both(seed: int) -> None:
    """Of maps that mix the two in some numbers, and turn pairs of others together."""
    rng = np.random.default_rng(seed)
    rows = [tables(rng, 3, slice(0, 3)), tables(rng, 3, slice(3, 5))]
    maps = [np.eye(5) + 0.01 * rng.normal(size=(5, 5)) * (rng.random((5, 5)) < 0.2) for _ in "qk"]
    queries, keys = ([linear(x, m, what="q") for x in views(*rows)] for m in maps)
    compared = Compared.of(queries, keys, "layer 1", pairs=int(rng.integers(3)))
    own, other = (
        table.mid @ key.mid.T for table, key in zip(compared.queries, compared.keys, strict=True)
    )
    for a, b, c, d in itertools.product(range(3), repeat=4):
        asked, held = maps[0] @ (rows[0][a] + rows[1][b]), maps[1] @ (rows[0][c] + rows[1][d])
        assert abs(float(asked @ held) - own[a, c] - other[b, d]) <= compared.error + 1e-12


def test_own_rows_may_be_some_of_a_view() -> None:
    keys = Enclosure.point(np.array([[9.0], [1.0], [-1.0]]))
    queries = Enclosure.point(np.array([[2.0], [-2.0]]))
    compared = Compared.of([queries], [keys], "layer 1")
    # 2 against -2, and 2 against -2, of the last two rows alone
    assert compared.own(0, slice(1, 3)) == 4
    assert compared.own(0, slice(1, 2)) == np.inf


def test_what_only_another_key_is_made_of_counts() -> None:
    """A number that no key of a view has, and that queries are loose in, meets that of a key beside
    them.
    """
    exact = Enclosure.point(np.array([[1.0, 2.0]]))
    loose = exact.wider(np.array([[0.0, 1.0]]))
    key = Enclosure.point(np.array([[1.0, 0.0]]))
    beside = Enclosure.point(np.array([[0.0, 1.0]]))
    assert Compared.of([loose, exact], [key, key], "layer 1", beside).error == 0
    assert Compared.of([loose, loose], [key, key], "layer 1", beside).error >= 1


def test_views_that_cross_lead_by_nothing() -> None:
    one, other = views(np.array([[1.0, 0.0], [-1.0, 0.0]]), np.array([[0.0, 1.0], [0.0, -1.0]]))
    straight = Compared.of([one, other], [one, other], "layer 1")
    assert straight.least([straight.own(0), straight.own(1)], "it").least == 2
    crossed = Compared.of([one, other], [other, one], "layer 1")
    with pytest.raises(CheckFailed, match="no less than it"):
        crossed.least([crossed.own(0), crossed.own(1)], "it")


def test_the_smallest_lead_loses_the_errors_of_two_scores() -> None:
    lead = least_of([3.0, 1.0], 0.25, "it", "layer 1")
    assert (lead.gap, lead.error) == (1.0, 0.25)
    assert 0.49 < lead.least <= 0.5
    for gaps, error in (([1.0], 0.5), ([0.0], 0.0), ([np.nan], 0.0)):
        with pytest.raises(CheckFailed, match="no less than it"):
            least_of(gaps, error, "it", "layer 1")
