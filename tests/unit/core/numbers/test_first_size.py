"""Searches for the smallest n: whatever the guess, the answer is that of trying every n."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from separatrix.core.numbers.binomials import Binomial
from separatrix.core.numbers.counts import Count, Exact, Power
from separatrix.core.numbers.first_size import first_size
from separatrix.theory.base import first_excess


@settings(max_examples=150, deadline=None, derandomize=True)
@given(
    st.integers(0, 20),
    st.integers(-2, 60),
    st.integers(-5, 90),
    st.one_of(st.none(), st.integers(-5, 100)),
)
def test_first_size_is_the_first_of_all(
    start: int, more: int, threshold: int, near: int | None
) -> None:
    limit = start + more
    asked: list[int] = []

    def holds(n: int) -> bool:
        asked.append(n)
        return n >= threshold

    expected = next((n for n in range(start, limit + 1) if n >= threshold), None)
    assert first_size(holds, start, limit=limit, near=near) == expected
    assert all(start <= n <= limit for n in asked)


def test_a_good_guess_spares_calls() -> None:
    asked: list[int] = []

    def holds(n: int) -> bool:
        asked.append(n)
        return n >= 123_456_789

    assert first_size(holds, 1, limit=10**12, near=123_456_790) == 123_456_789
    assert len(asked) <= 4


DEMANDS = {
    "powers": lambda n: Power(3, n),
    "one more each": lambda n: Exact(n + 1),
    "constant": lambda n: Exact(7),
    "sets": lambda n: Binomial(8 * n, n),
    "steps": lambda n: Power(2, 5 * (n // 10)),
}


@settings(max_examples=150, deadline=None, derandomize=True)
@given(
    st.sampled_from(sorted(DEMANDS)),
    st.integers(0, 300),
    st.integers(0, 4),
    st.integers(1, 40),
    st.integers(0, 120),
)
def test_first_excess_is_the_first_of_all(
    name: str, base: int, slope: int, start: int, more: int
) -> None:
    def demand(n: int) -> Count:
        assert start <= n <= start + more
        return DEMANDS[name](n)

    def supply(n: int) -> int:
        return base + slope * (n // 7)  # grows in steps, as caches of windows and buckets do

    expected = next(
        (n for n in range(start, start + more + 1) if DEMANDS[name](n).exact() > 1 << supply(n)),
        None,
    )
    assert first_excess(demand, supply, start, limit=start + more) == expected
