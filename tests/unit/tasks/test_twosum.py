"""2-Sum: answers by hand, the edge values 0 and M/2, counts by hand, and samplers that follow
their description exactly.
"""

from __future__ import annotations

import itertools
from fractions import Fraction
from math import comb

import numpy as np
import pytest
from support.counted_classes import counted_classes
from support.each import each
from support.two_sum import Distribution, described, says_nothing

from separatrix.tasks import TwoSum, parse_task
from separatrix.tasks.sums import alike, hidden


def test_large_moduli_do_not_overflow() -> None:
    M = 10**12
    prompts = np.array([[1, M - 1], [M - 1, M - 1], [M // 2, M // 2], [0, 0], [M - 2, 1]])
    assert TwoSum(n=1, M=M).answer(prompts).tolist() == [1, 0, 1, 1, 0]
    assert TwoSum(n=2, M=M, form="decision").answer(prompts).tolist() == [1, 0, 1, 1, 0]
    for form in ("query", "decision"):
        task = parse_task(f"twosum:n=40,M={M},form={form}")
        tokens, targets = task.sample(2_000, np.random.default_rng(0))
        assert (task.answer(tokens) == targets).all()
        assert 0.4 < targets.mean() < 0.6


@pytest.mark.parametrize(("n", "M"), [(6, 64), (40, 4096), (1000, 10**9)])
def test_the_decision_count_holds_the_promise_of_the_theory(n: int, M: int) -> None:
    """n-1 distinct values of the half range 1..N' are pairwise distinguishable: binomial(N',
    n-1) classes at least.
    """
    count = counted_classes(TwoSum(n=n, M=M, form="decision"))
    assert count.exceeds_bits(comb((M - 1) // 2, n - 1).bit_length() - 1)


QUERIES = [(1, 3), (2, 4), (3, 3), (4, 3), (1, 5), (3, 5), (2, 8)]
DECISIONS = [(2, 7), (3, 7), (3, 6), (4, 4), (4, 5)]
CASES = [*((*sizes, "query") for sizes in QUERIES), *((*sizes, "decision") for sizes in DECISIONS)]


@pytest.mark.slow
@pytest.mark.parametrize(("n", "M", "form"), CASES)
def test_drawn_prompts_follow_the_description(n: int, M: int, form: str) -> None:
    """Chi-square of whole prompts against the exact distribution, below freedom + 5 sigma;
    nothing outside it is drawn.
    """
    task = parse_task(f"twosum:n={n},M={M},form={form}")
    total = 60_000
    exact = described(n, M, form)
    assert sum(exact.values()) == 1
    tokens, targets = task.sample(total, np.random.default_rng(n + M))
    drawn = np.unique(np.column_stack((tokens, targets)), axis=0, return_counts=True)
    counts = dict(zip(map(tuple, drawn[0].tolist()), drawn[1].tolist(), strict=True))
    assert set(counts) <= {(*prompt, label) for prompt, label in exact}
    chi2 = sum(
        (counts.get((*prompt, label), 0) - total * p) ** 2 / (total * p)
        for (prompt, label), p in exact.items()
    )
    assert chi2 < len(exact) - 1 + 5 * (2 * (len(exact) - 1)) ** 0.5 + 5


@each("n, M, form", CASES)
def test_no_part_of_the_description_tells_the_label(n: int, M: int, form: str) -> None:
    """Exact, in fractions: the label is independent of each token, per query of all the x's
    together, and (N' > 1) of which tokens are equal.
    """
    exact = described(n, M, form)
    assert sum(p for (_, label), p in exact.items() if label) * 2 == 1
    assert all(
        says_nothing(exact, lambda prompt, place=place: prompt[place])
        for place in range(n + (form == "query"))
    )
    if form == "query":
        assert says_nothing(exact, lambda prompt: prompt[:-1])
    if M > 4:
        assert says_nothing(exact, lambda prompt: tuple(prompt.index(x) for x in prompt))
    assert not says_nothing(exact, lambda prompt: prompt)


@pytest.mark.parametrize(("n", "M"), [(1, 5), (2, 5), (3, 5), (2, 8), (3, 8), (2, 11), (3, 7)])
def test_the_nearest_key_is_worth_less_than_its_level(n: int, M: int) -> None:
    """The best guess from the token behind the latest one whose id is nearest to q's, in the
    exact distribution.
    """
    seen: dict[int, list[Fraction]] = {}
    for (prompt, label), p in described(n, M, "query").items():
        near = min(abs(x - prompt[-1]) for x in prompt[:-1])
        behind = prompt[
            max(place for place, x in enumerate(prompt[:-1]) if abs(x - prompt[-1]) == near) + 1
        ]
        seen.setdefault(behind, [Fraction(0), Fraction(0)])[label] += p
    worth = sum((max(both) for both in seen.values()), Fraction(0))
    assert (
        Fraction(1, 2)
        <= worth
        < Fraction(1, 2) + (Fraction(1, 2 * n**2) if 2 * n <= M else Fraction(1, 8))
    )


def test_a_sampler_that_plants_the_match_in_the_prompt_tells_by_its_repeats() -> None:
    """The obvious sampler (draw q, draw x's that do not cancel it, overwrite one with -q) is
    caught: x's without repeats hint at label 1.
    """
    n = 3
    M = 4
    planted: Distribution = {}
    for q, place, label in itertools.product(range(M), range(n), (0, 1)):
        for x in itertools.product([v for v in range(M) if (v + q) % M], repeat=n):
            prompt = (*x[:place], -q % M, *x[place + 1 :], q) if label else (*x, q)
            planted[prompt, label] = planted.get((prompt, label), 0) + 1
    assert says_nothing(planted, lambda prompt: prompt[-1])
    assert all(
        says_nothing(planted, lambda prompt, place=place: prompt[place]) for place in range(n)
    )
    assert not says_nothing(planted, lambda prompt: len(set(prompt[:-1])))


@pytest.mark.parametrize(
    ("n", "M", "form"),
    [
        (2, 7, "query"),
        (3, 7, "query"),
        (3, 9, "query"),
        (4, 5, "decision"),
        (3, 9, "decision"),
        (4, 7, "decision"),
    ],
)
def test_even_and_odd_ids_say_nothing_where_the_modulus_is_odd(n: int, M: int, form: str) -> None:
    """Exactly: the number of odd tokens, and of those that are odd where the last is even; of M
    = 8 the parities tell.
    """
    exact = described(n, M, form)
    assert says_nothing(exact, lambda prompt: sum(x % 2 for x in prompt))
    if form == "query":
        assert says_nothing(exact, lambda prompt: sum((x + prompt[-1]) % 2 for x in prompt[:-1]))
    assert not says_nothing(
        described(n, 8, form), lambda prompt: sum((x + prompt[-1]) % 2 for x in prompt[:-1])
    )


@each(
    "text, promised",
    [
        ("n=3,M=67", False),
        ("n=64,M=8", False),
        ("n=7,M=20", False),
        ("n=4,M=17", True),
        ("n=64,M=64", True),
        ("n=5,M=67,form=decision", False),
        ("n=16,M=37,form=decision", True),
    ],
)
def test_small_sizes_promise_nothing(text: str, promised: bool) -> None:
    task = parse_task(f"twosum:{text}")
    assert (task.level("counts") == 1) == (not promised)
    assert task.level("position") == Fraction(1, 2)


@each("text", TwoSum.grid)
def test_the_modulus_of_the_grid_is_prime(text: str) -> None:
    M = parse_task(f"twosum:{text}").sizes()["M"]
    assert all(M % d for d in range(2, M))


@each("M, D", [(3, 1), (5, 2), (8, 1), (9, 2), (16, 2), (17, 4), (67, 12), (257, 60), (1031, 210)])
def test_the_modulus_that_is_hidden(M: int, D: int) -> None:
    """The largest of those listed with three values of 1..M-1 for every residue, four for even M:
    of M = 17 four each modulo 4 (of 6 two or three); of M = 16 seven or eight modulo 2.
    """
    assert hidden(M) == D
    if M > 8:
        least = min(sum(v % D == r for v in range(1, M)) for r in range(D))
        assert least >= (3 if M % 2 else 4)


@pytest.mark.parametrize(
    ("n", "M", "form"), [(4, 17, "query"), (12, 67, "decision"), (8, 36, "query")]
)
def test_residues_of_the_modulus_say_nothing(n: int, M: int, form: str) -> None:
    """How many sums are right modulo D and its divisors: chi-square between the answers below
    freedom + 5 sigma. Modulo 7 and 13, which do not divide it, it is far above at n = 4.
    """
    tokens, targets = parse_task(f"twosum:n={n},M={M},form={form}").sample(
        40_000, np.random.default_rng(1)
    )
    D = hidden(M)

    def distance(p: int) -> float:
        if form == "query":
            right = ((tokens[:, :-1] + tokens[:, -1:] - M) % p == 0).sum(1)
        else:
            sums = (tokens[:, :, None] + tokens[:, None, :] - M) % p == 0
            right = sums.sum((1, 2)) - sums[:, np.arange(n), np.arange(n)].sum(1)
        table = np.stack(
            [np.bincount(right[targets == label], minlength=n * n) for label in (0, 1)]
        )
        table = table[:, table.sum(0) > 20]
        expected = table.sum(0) * table.sum(1, keepdims=True) / table.sum()
        freedom = table.shape[1] - 1
        return float((((table - expected) ** 2 / expected).sum() - freedom) / (2 * freedom) ** 0.5)

    for p in range(2, D + 1):
        if D % p == 0:
            assert distance(p) < 5
    if n == 4:
        assert min(distance(7), distance(13)) > 100


def test_both_values_have_one_law() -> None:
    """M = 17, D = 4: what is negated and what stands in for it are each uniform over 1..16."""
    one, two = alike(80_000, 17, 4, np.random.default_rng(2))
    assert ((one - two) % 4 == 0).all()
    assert not ((one == two) | (one + two == 17)).any()
    for values in (one, two):
        seen = np.bincount(values, minlength=17)[1:]
        assert ((seen - 5000) ** 2 / 5000).sum() < 15 + 5 * 30**0.5
