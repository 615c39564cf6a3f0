"""Equality: answers by hand, sizes, and the exact distribution that the docstring describes."""

from __future__ import annotations

import itertools
from collections import Counter
from fractions import Fraction

import numpy as np
import pytest
from support.each import each

from separatrix.tasks import Equality


def described(n: int) -> dict[tuple[int, ...], Fraction]:
    """Probability of every prompt: u uniform over strings with both bits, v = u or u with a
    uniform pair of unequal bits exchanged.
    """
    strings = [u for u in itertools.product((0, 1), repeat=n) if len(set(u)) == 2]
    found: dict[tuple[int, ...], Fraction] = {}
    for u in strings:
        found[*u, *u] = Fraction(1, 2 * len(strings))
        pairs = [(i, j) for i in range(n) for j in range(n) if (u[i], u[j]) == (0, 1)]
        for i, j in pairs:
            v = list(u)
            v[i], v[j] = 1, 0
            found[*u, *v] = Fraction(1, 2 * len(strings) * len(pairs))
    return found


@pytest.mark.parametrize("n", [2, 3, 4])
def test_the_sampler_follows_its_description(n: int) -> None:
    """Chi-square over all prompts below freedom + 5 sigma; nothing else is drawn."""
    total = 40_000
    expected = described(n)
    assert sum(expected.values()) == 1
    drawn = Counter(
        map(tuple, Equality(n=n).sample(total, np.random.default_rng(7)).tokens.tolist())
    )
    assert set(drawn) <= set(expected)
    chi2 = sum(
        (drawn[prompt] - total * float(p)) ** 2 / (total * float(p))
        for prompt, p in expected.items()
    )
    assert chi2 < len(expected) - 1 + 5 * (2 * (len(expected) - 1)) ** 0.5


@pytest.mark.parametrize("n", [2, 3, 4])
def test_neither_half_nor_any_place_nor_any_count_tells(n: int) -> None:
    """Exactly, in the distribution described: u, v and every count of ones are as likely under
    either answer.
    """
    views = {"u": lambda p: p[:n], "v": lambda p: p[n:], "ones": lambda p: (sum(p[:n]), sum(p[n:]))}
    for view in views.values():
        seen: dict[object, Fraction] = {}
        for prompt, p in described(n).items():
            seen[view(prompt)] = seen.get(view(prompt), Fraction(0)) + (
                p if prompt[:n] == prompt[n:] else -p
            )
        assert set(seen.values()) == {0}


def fingerprints(strings: np.ndarray, r: int) -> np.ndarray:
    """Ones, ones at even places, the sum of i u_i, and how often every r + 1 neighbours occur;
    shape (number, batch).
    """
    n = strings.shape[1]
    codes = np.stack([strings[:, i : n - r + i] << i for i in range(r + 1)]).sum(0)
    return np.stack(
        [
            strings.sum(1),
            strings[:, ::2].sum(1),
            strings @ np.arange(n),
            *((codes == code).sum(1) for code in range(2 << r)),
        ]
    )


@pytest.mark.parametrize(
    ("n", "r", "places"),
    [
        (8, 0, 4),
        (16, 1, 4),
        (33, 4, 4),
        (96, 5, 8),
        *(
            pytest.param(n, r, places, marks=pytest.mark.slow)
            for n, r, places in [(15, 1, 4), (24, 3, 4), (64, 5, 8), (256, 7, 16), (600, 8, 16)]
        ),
    ],
)
def test_weighted_sums_and_neighbours_do_not_tell(n: int, r: int, places: int) -> None:
    """The halves differ in 2^(f+1) places and agree in all of these and in the sums of i^p u_i,
    p <= f; from n = 12 on in their runs too, from n = 24 on in every log2 n neighbours, rounded
    down. One exchange would show in the sum of i u_i.
    """
    tokens, targets = Equality(n=n).sample(1_000, np.random.default_rng(1))
    u = tokens[:, :n]
    v = tokens[:, n:]
    assert (fingerprints(u, r) == fingerprints(v, r)).all()
    assert set((u != v).sum(1)[targets == 0].tolist()) == {places}
    factors = int(np.log2(places)) - 1
    powers = np.arange(n)[:, None] ** np.arange(factors + 2)
    sums = (u - v) @ powers
    assert (sums[:, :-1] == 0).all()
    assert ((sums[:, -1] == 0) == targets).all()
    assert n < 24 or r + 1 == int(np.log2(n))
    assert Equality(n=n).level("halves") == (1 if n < 24 else Fraction(1, 2))
    assert (
        fingerprints(np.eye(n, dtype=np.int64)[:1], 0)
        != fingerprints(np.eye(n, dtype=np.int64)[1:2], 0)
    ).any()


@each(
    "n, hidden",
    [(8, 2), (24, 3), (32, 3), (48, 4), (64, 5), (96, 7), (128, 8), (256, 11), (1024, 14)],
)
def test_ones_at_places_modulo_what_is_hidden_do_not_tell(n: int, hidden: int) -> None:
    """Ones at the places of each residue, modulo 2, ..., M: the same in both halves; modulo
    M + 1 they tell, always or nearly so.
    """
    task = Equality(n=n)
    tokens, targets = task.sample(400, np.random.default_rng(3))

    def same(modulus: int) -> np.ndarray:
        of = [
            np.stack([part[:, at::modulus].sum(1) for at in range(modulus)])
            for part in (tokens[:, :n], tokens[:, n:])
        ]
        return (of[0] == of[1]).all(axis=0)

    assert task.hidden_moduli == hidden
    assert all(same(modulus).all() for modulus in range(2, hidden + 1))
    assert (same(hidden + 1) == targets).all()
    assert task.level("moduli") == Fraction(1, 2)
    assert task.level("larger moduli") == 1


def test_either_half_has_one_law_where_fragments_are_exchanged() -> None:
    """n = 8: chi-square of the 256 strings u, and of v, between the answers; no place differs
    more often than 4 in 5.
    """
    tokens, targets = Equality(n=8).sample(40_000, np.random.default_rng(2))
    for half in (tokens[:, :8], tokens[:, 8:]):
        codes = half @ (1 << np.arange(8))
        table = np.stack([np.bincount(codes[targets == label], minlength=256) for label in (0, 1)])
        table = table[:, table.sum(0) > 0]
        expected = table.sum(0) * table.sum(1, keepdims=True) / table.sum()
        assert ((table - expected) ** 2 / expected).sum() < 256 + 5 * 512**0.5
    differ = (tokens[:, :8] != tokens[:, 8:])[targets == 0].mean(0)
    assert 0.15 < differ.min() < differ.max() < 0.85


def test_one_bit_each() -> None:
    tokens, targets = Equality(n=1).sample(1000, np.random.default_rng(0))
    assert ((tokens[:, 0] == tokens[:, 1]) == targets).all()
    assert len(set(map(tuple, tokens.tolist()))) == 4


def test_the_level_of_one_bit_each() -> None:
    """Two tokens are the whole prompt."""
    probes = ("constant", "counts", "position", "last tokens", "nearest key")
    assert [Equality(n=1).level(probe) for probe in probes] == [
        Fraction(1, 2),
        1,
        Fraction(1, 2),
        1,
        Fraction(1, 2),
    ]
    assert {Equality(n=2).level(probe) for probe in probes} == {Fraction(1, 2)}
