"""Scores that are sums over tables: what is derived table by table against every sum."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from separatrix.core.errors import CheckFailed
from separatrix.proofs.arithmetic import BF16, FP32
from separatrix.proofs.derivations.parts.compared import Compared, apart, exactly, least_of
from separatrix.proofs.machine import Array


def tables(rng: np.random.Generator, rows: int, dims: slice) -> Array:
    found = np.zeros((rows, 5))
    found[:, dims] = rng.integers(-4, 5, size=(rows, dims.stop - dims.start))
    return found


@pytest.mark.parametrize("seed", range(8))
def test_leads_of_tables_bound_those_of_every_sum(seed: int) -> None:
    rng = np.random.default_rng(seed)
    first, second = slice(0, 3), slice(3, 5)
    queries = tables(rng, 4, first), tables(rng, 3, second)
    keys = tables(rng, 4, first), tables(rng, 3, second)
    compared = Compared.of(queries, keys, FP32, "layer 1")
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


def test_own_rows_may_be_some_of_a_table() -> None:
    keys = np.array([[9.0], [1.0], [-1.0]])
    compared = Compared.of((np.array([[2.0], [-2.0]]),), (keys,), FP32, "layer 1")
    # 2 against -2, and 2 against -2, of the last two rows alone
    assert compared.own(0, slice(1, 3)) == 4
    assert compared.own(0, slice(1, 2)) == np.inf


def test_tables_that_cross_are_refused() -> None:
    one = np.array([[1.0, 0.0]])
    other = np.array([[0.0, 1.0]])
    Compared.of((one, other), (one, other), FP32, "layer 1")
    with pytest.raises(CheckFailed, match="two different things"):
        Compared.of((one, other), (other, one), FP32, "layer 1")


def test_maps_whose_rows_meet_or_are_rounded_are_refused() -> None:
    letters, places = np.array([[3.0, 0.0]]), np.array([[0.0, 5.0]])
    found = apart((letters, places), np.eye(2), "k", FP32)
    assert [rows.tolist() for rows in found] == [[[3.0, 0.0]], [[0.0, 5.0]]]
    with pytest.raises(CheckFailed, match="two tables"):
        apart((letters, places), np.ones((1, 2)), "k", FP32)
    with pytest.raises(CheckFailed, match="two tables"):
        apart((letters, letters), np.eye(2), "k", FP32)
    # 2^24 + 1 has 25 digits, and 257 has nine
    exactly((np.array([[2.0**24, 0.0]]),), np.ones((1, 2)), "k", FP32)
    with pytest.raises(CheckFailed, match="rounded"):
        exactly((np.array([[2.0**24, 1.0]]),), np.ones((1, 2)), "k", FP32)
    exactly((np.array([[256.0, 1.0]]),), np.ones((1, 2)), "k", FP32)
    with pytest.raises(CheckFailed, match="rounded"):
        exactly((np.array([[256.0, 1.0]]),), np.ones((1, 2)), "k", BF16)


def test_terms_that_overflow_before_they_cancel_are_refused() -> None:
    """2^64 * 2^63 = 2^127 twice, and twice taken off: 0, if the sum ever gets there."""
    weight = np.array([[2.0**64, 2.0**64, -(2.0**64), -(2.0**64)]])
    with pytest.raises(CheckFailed, match="overflow"):
        exactly((np.full((1, 4), 2.0**63),), weight, "k", FP32)


def test_the_smallest_lead_loses_the_errors_of_two_scores() -> None:
    lead = least_of([3.0, 1.0], 0.25, "it", "layer 1")
    assert (lead.gap, lead.error) == (1.0, 0.25)
    assert 0.49 < lead.least <= 0.5
    for gaps, error in (([1.0], 0.5), ([0.0], 0.0), ([np.nan], 0.0)):
        with pytest.raises(CheckFailed, match="no less than it"):
            least_of(gaps, error, "it", "layer 1")
