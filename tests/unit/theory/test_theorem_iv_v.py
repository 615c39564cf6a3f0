"""The searches of Theorems IV and V: never beaten by brute force or by hand, monotone, and at
home at the sizes of language models.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import fields, replace
from itertools import pairwise, product
from typing import Any

import numpy as np
import pytest

from separatrix.theory import depth_three, depth_two
from separatrix.theory.search.descend import descend

FOUR_STEPS: Mapping[str, Sequence[int]] = {
    "h_1": (1, 4, 40),
    "h_2": (1, 4, 40),
    "sigma_1": (0, 3, 160),
    "sigma_2": (0, 3, 160),
    "open_2": (0, 9),
}
FIVE_STEPS: Mapping[str, Sequence[int]] = {"h_1": (2, 40), "h_2": (2, 40)} | {
    f"sigma_{i}": (0, 3, 160) for i in range(3)
}
LARGE = (0, 10**7, 10**9)


def test_a_prompt_found_by_hand_that_a_looser_search_missed() -> None:
    """(4, 4, 2, 3, 4, 4): 4 log2 3 = 6.3 > 2 + 4 and 4 * 2 log2 16 = 32 > 2 + 8 + (12 + 1) + 6 =
    29; n = 4 + 16 + 2.
    """
    sizes = depth_two.Sizes(1, 1, 2, 3)
    assert depth_two.holds(depth_two.Parameters(m=4, n_1=4, r=2, q=3, t=4, g=4), sizes)
    found = depth_two.best(sizes)
    assert found is not None
    assert found.length() <= 22


@pytest.mark.slow
@pytest.mark.parametrize(
    ("module", "base", "steps"),
    [
        (depth_two, depth_two.Sizes(4, 4, 3, 3), FOUR_STEPS),
        (depth_three, depth_three.Sizes(40, 40, 3, 3, 3), FIVE_STEPS),
    ],
    ids=["IV", "V"],
)
def test_larger_sizes_never_fail_sooner(
    module: Any, base: Any, steps: Mapping[str, Sequence[int]]
) -> None:
    """Parameters that show failure with larger caches show it with smaller ones, so the shortest
    prompt cannot fall.
    """
    for name, values in steps.items():
        lengths = [module.best(replace(base, **{name: value})).length() for value in values]
        assert lengths == sorted(lengths), name


def _smallest(module: Any, found: Any, sizes: Any, level: str) -> None:
    """Certified, and not with the last branching number one smaller."""
    assert module.holds(found, sizes)
    assert not module.holds(replace(found, **{level: getattr(found, level) - 1}), sizes)


@pytest.mark.parametrize("h", [10**5, pytest.param(10**6, marks=pytest.mark.slow)])
@pytest.mark.parametrize("sigma_2", LARGE)
def test_iv_at_the_sizes_of_language_models(h: int, sigma_2: int) -> None:
    lengths = []
    for sigma_1 in LARGE:
        sizes = depth_two.Sizes(h, h, sigma_1, sigma_2)
        began = time.process_time()
        found = depth_two.best(sizes)
        assert time.process_time() - began < 10
        assert found is not None
        _smallest(depth_two, found, sizes, "n_1")
        lengths.append(found.length())
    assert all(10**6 * larger >= (10**6 - 1) * smaller for smaller, larger in pairwise(lengths))


@pytest.mark.parametrize(
    ("h", "sigma"),
    [
        (10**5, (0, 0, 0)),
        pytest.param(10**5, (10**7, 0, 0), marks=pytest.mark.slow),
        (10**6, (0, 10**7, 10**9)),
        pytest.param(10**6, (10**9, 0, 10**7), marks=pytest.mark.slow),
        pytest.param(10**6, (10**7, 10**7, 10**7), marks=pytest.mark.slow),
        pytest.param(10**6, (10**9, 10**9, 10**9), marks=pytest.mark.slow),
    ],
)
def test_v_at_the_sizes_of_language_models(h: int, sigma: tuple[int, int, int]) -> None:
    sizes = depth_three.Sizes(h, h, *sigma)
    began = time.process_time()
    found = depth_three.best(sizes)
    assert time.process_time() - began < 20
    assert found is not None
    _smallest(depth_three, found, sizes, "n_2")


def test_v_beats_parameters_chosen_by_hand() -> None:
    """h = 10^5, sigma = 10^7 everywhere. q = 10^9 of N_1 = 10^30 gives u_0 = floor(10^7 /
    log2(10^30 / (10^9 - 1))) = floor(143,347.62); half of each block and 10^8 of 10^17 places are
    given away; g h_1 = E / n_1 = 10^11 against y log2(10/6) = 2.5 * 10^11, and n_2 outweighs 10^44.
    """
    sizes = depth_three.Sizes(10**5, 10**5, 10**7, 10**7, 10**7)
    m = 10**17
    by_hand = depth_three.Parameters(
        m=m,
        n_1=10**13,
        n_2=10**34,
        X=m - 10**8,
        t=10**16,
        beta=290_000,
        q=10**9,
        r=6 * 10**8,
        g=10**6,
        u_0=143_347,
    )
    assert depth_three.holds(by_hand, sizes)
    found = depth_three.best(sizes)
    assert found is not None
    assert found.length() <= by_hand.length()


@pytest.mark.parametrize(
    "sizes",
    [
        pytest.param(depth_two.Sizes(1, 1, 0, 0), marks=pytest.mark.slow),
        depth_two.Sizes(1, 1, 1, 2),
    ],
)
def test_iv_at_a_fixed_size_by_brute_force(sizes: depth_two.Sizes) -> None:
    for m, n_1 in product(range(2, 5), range(1, 7)):
        trials = (
            depth_two.Parameters(m=m, n_1=n_1, r=r, q=q, t=t, g=g)
            for q, t, g in product(range(2, m + 1), range(1, m + 1), range(1, n_1 + 1))
            for r in range(2, q + 1)
        )
        known = any(depth_two.holds(trial, sizes) for trial in trials)
        found = depth_two.best_at(sizes, m, n_1)
        assert (found is not None) is known, (m, n_1)
        assert found is None or ((found.m, found.n_1) == (m, n_1) and depth_two.holds(found, sizes))


@pytest.mark.parametrize(
    "sizes",
    [
        pytest.param(depth_three.Sizes(1, 1, 1, 0, 0), marks=pytest.mark.slow),
        depth_three.Sizes(1, 1, 0, 1, 1),
    ],
)
def test_v_at_a_fixed_size_by_brute_force(sizes: depth_three.Sizes) -> None:
    for m, n_1, n_2 in product((2, 3), (1, 2), (3, 5)):
        known = any(depth_three.holds(trial, sizes) for trial in _every(m, n_1, n_2))
        found = depth_three.best_at(sizes, m, n_1, n_2)
        assert (found is not None) is known, (m, n_1, n_2)
        assert found is None or (
            (found.m, found.n_1, found.n_2) == (m, n_1, n_2) and depth_three.holds(found, sizes)
        )


def _every(m: int, n_1: int, n_2: int) -> Iterator[depth_three.Parameters]:
    """Every choice of the proof's parameters at a task size."""
    for X, t, beta, q, g in product(*(range(1, top + 1) for top in (m, m, m, n_1 * m, n_2))):
        for r, u_0 in product(range(2, q + 1), range(beta)):
            if X - -(-m // beta) * u_0 >= 1:
                yield depth_three.Parameters(
                    m=m, n_1=n_1, n_2=n_2, X=X, t=t, beta=beta, q=q, r=r, g=g, u_0=u_0
                )


def test_tasks_below_every_theorem_get_none() -> None:
    assert depth_two.best_at(depth_two.Sizes(40, 40, 0, 0), 1, 5) is None
    assert depth_three.best_at(depth_three.Sizes(40, 40, 0, 0, 0), 1, 1, 5) is None


def test_the_same_search_finds_the_same() -> None:
    for module, count in ((depth_two, 4), (depth_three, 5)):
        sizes = module.Sizes(*(range(3, 3 + count)))
        assert module.best.__wrapped__(sizes) == module.best.__wrapped__(sizes)
        assert all(
            isinstance(getattr(module.best(sizes), field.name), int)
            for field in fields(module.Parameters)
        )


def test_descent_reaches_the_bottom_of_a_bowl_and_stays_in_its_box() -> None:
    def bowl(points: np.ndarray) -> np.ndarray:
        return ((points - np.array([[70_001.0], [12.0], [5.0], [900.0]])) ** 2).sum(0)

    start = np.array([1e6, 40.0, 1.0, 3.0])
    low = (1, 1, 1, 1)
    assert descend(bowl, start, low, (1e7, 1e7, 1e7, 1e7)).tolist() == [70_001, 12, 5, 900]
    assert descend(bowl, start, low, (1e7, 1e7, 3, 1e7)).tolist() == [70_001, 12, 3, 900]


def test_descent_never_climbs_and_copes_with_infinity() -> None:
    rng = np.random.default_rng(0)
    table = np.where(rng.random((50, 50)) < 0.3, np.inf, rng.random((50, 50)))

    def rugged(points: np.ndarray) -> np.ndarray:
        return table[points[0].astype(int), points[1].astype(int)]

    for start in rng.integers(0, 50, (20, 2)).astype(float):
        assert (
            rugged(descend(rugged, start, (0, 0), (49, 49))[:, None])[0]
            <= rugged(start[:, None])[0]
        )
