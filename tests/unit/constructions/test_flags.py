"""Equality of strings and 2-Sum by flags and by a start token that counts: right on every input of
small sizes, and on the inputs at large ones that are most likely to be confused.
"""

from __future__ import annotations

import math

import numpy as np
import pytest
from support.construction_tools import every, wrong
from support.each import each

from separatrix.constructions import construct
from separatrix.tasks import Equality, Task, TwoSum, parse_task
from separatrix.tasks.base.task import Tokens


def decided(tokens: Tokens, M: int) -> Tokens:
    """Whether any two entries cancel, by the definition."""
    sums = (tokens[:, :, None] + tokens[:, None, :]) % M == 0
    return (np.triu(sums, 1)).any((1, 2)).astype(np.int64)


def met(tokens: Tokens, M: int) -> Tokens:
    return ((tokens[:, :-1] + tokens[:, -1:]) % M == 0).any(1).astype(np.int64)


def same(tokens: Tokens) -> Tokens:
    n = tokens.shape[1] // 2
    return (tokens[:, :n] == tokens[:, n:]).all(1).astype(np.int64)


@pytest.mark.parametrize("n", range(1, 8))
def test_every_pair_of_strings(n: int) -> None:
    tokens = every([2] * (2 * n))
    assert not wrong(construct(Equality(n=n)), tokens, same(tokens))


@pytest.mark.parametrize(("n", "M"), [(2, 3), (2, 30), (3, 4), (3, 9), (4, 7), (5, 4), (6, 3)])
def test_every_decision(n: int, M: int) -> None:
    tokens = every([M] * n)
    assert not wrong(construct(TwoSum(n=n, M=M, form="decision")), tokens, decided(tokens, M))


@each("n, M", [(1, 3), (1, 64), (2, 15), (3, 4), (3, 8), (4, 6), (5, 3)])
def test_every_query_by_bits(n: int, M: int) -> None:
    tokens = every([M] * (n + 1))
    assert not wrong(construct(TwoSum(n=n, M=M), kind="match2-bits"), tokens, met(tokens, M))


def adversarial(task: Task, rng: np.random.Generator) -> Tokens:
    """Ties, extremes and repeats: one value throughout, one bit off what would match, with and
    without one true match, at the ends and inside.
    """
    n = task.length
    rows = []
    if isinstance(task, Equality):
        for u in (np.zeros(task.n, int), np.ones(task.n, int), rng.integers(2, size=task.n)):
            rows.append(np.concatenate([u, u]))
            for place in (0, 1, task.n // 2, task.n - 1):
                v = u.copy()
                v[place] ^= 1
                rows += [np.concatenate([u, v]), np.concatenate([v, u])]
            rows.append(np.concatenate([u, 1 - u]))
        return np.array(rows)
    assert isinstance(task, TwoSum)
    M = task.M
    for value in {0, 1, M // 4, M // 2, (M + 1) // 2, M - 1, *rng.integers(M, size=3).tolist()}:
        partner = -value % M
        # what repeats must not cancel itself, nor the value
        near = [x for b in range(M.bit_length()) if 0 < (x := partner ^ 1 << b) < M and 2 * x != M]
        filler = (
            np.array(near)[rng.integers(len(near), size=n)] if task.form == "query" else near[0]
        )
        row = np.zeros(n, int) + filler
        row[-1] = value
        rows += [row, np.append(np.full(n - 1, partner), value)]
        for place in (0, n // 2, n - 2):
            rows.append(row.copy())
            rows[-1][place] = partner
    return np.array(rows)


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        ("equality:n=100", "equality"),
        ("twosum:n=200,M=5000,form=decision", "pairs"),
        ("twosum:n=200,M=1024,form=decision", "pairs"),
        ("twosum:n=200,M=6000", "match2-bits"),
        ("twosum:n=4096,M=5755", "match2-bits"),
        pytest.param("equality:n=2048", "equality", marks=pytest.mark.slow),
        pytest.param("twosum:n=4096,M=65536,form=decision", "pairs", marks=pytest.mark.slow),
        pytest.param("twosum:n=4096,M=65536", "match2-bits", marks=pytest.mark.slow),
    ],
)
def test_near_misses(text: str, kind: str) -> None:
    task = parse_task(text)
    tokens = adversarial(task, np.random.default_rng(7))
    right = task.answer(tokens)
    assert set(right.tolist()) == {0, 1}
    assert not wrong(construct(task, kind=kind), tokens, right, batch=4)


def test_the_weights_by_hand() -> None:
    """Scores s^2 D and at most s^2 (D - 2) with s = 4: a gap of 32. Alone the start token weighs 1,
    with one match 1/2, with the token itself beside it 1/3.
    """
    (layer,) = construct(TwoSum(n=3, M=6), kind="match2-bits").record.proof["layers"]
    assert float(layer["score_gap"]) == 32
    assert 5 * math.exp(-32) <= float(layer["off_target_mass"]) <= 5 * math.exp(-32) * 1.001
    assert 1 - 1e-4 <= float(layer["weight_without_match"]) <= 1
    assert 1 / 2 <= float(layer["weight_with_match"]) <= 1 / 2 + 1e-4
    assert 1 / 2 - 1e-4 <= float(layer["weight_with_own"]) <= 1 / 2
    assert 1 / 3 <= float(layer["weight_with_own_and_match"]) <= 1 / 3 + 1e-4


def test_a_modulus_of_odd_size_has_one_value_that_cancels_itself() -> None:
    """0 alone: the layer says the same of it as for even M."""
    for M in (5, 6):
        (layer,) = construct(TwoSum(n=2, M=M), kind="match2-bits").record.proof["layers"]
        assert "weight_with_own" in layer


def test_the_gaps_of_equality_by_hand() -> None:
    """Address and tag: s^2 (D + 1) against s^2 (D - 1); a flag scores 32, all else 0."""
    first, second = construct(Equality(n=5)).record.proof["layers"]
    assert (first["score_gap"], second["score_gap"]) == ("32", "32")
    assert (first["queries"], first["keys"], second["keys"]) == (10, 10, 10)
    assert second["output_without_flag"] == "0"
