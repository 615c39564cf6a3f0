"""Permutation composition: the order of acting by hand, the chain, the parity that alone can be
had cheaply, shifts.
"""

from __future__ import annotations

import itertools
import math
from fractions import Fraction

import numpy as np
import pytest
from support.each import each

from separatrix.core.errors import SizeError
from separatrix.tasks import Permutation, Thought, parse_task


def test_the_first_permutation_acts_first() -> None:
    """Ids of S_3: 0 = 012, 1 = 021, 2 = 102, 3 = 120, 4 = 201, 5 = 210, each written p(0) p(1)
    p(2).

    102 then 021: 0 -> 1 -> 2, 1 -> 0 -> 0, 2 -> 2 -> 1, so 201, id 4; the other way round 0 -> 0 ->
    1, 1 -> 2 -> 2, 2 -> 1 -> 0: 120, id 3.
    """
    assert Permutation(n=2, k=3).answer(np.array([[2, 1], [1, 2]])).tolist() == [4, 3]


def test_the_chain_is_that_of_the_products_so_far() -> None:
    """The example of the token table: 021, then 120 (gives 102, id 2), then 201 (gives 021, id
    1).
    """
    task = Permutation(n=3, k=3)
    assert task.chain(np.array([[1, 3, 4]])).tolist() == [[1, 2, 1]]
    thought = parse_task("permutation:n=3,k=3,thought=values")
    assert isinstance(thought, Thought)
    assert thought.answer(np.array([[1, 3, 4, 1, 2]])).tolist() == [[-1, -1, 1, 2, 1]]


@each("n, k", [(8, 3), (9, 4), (9, 5), (8, 6)])
def test_the_last_of_the_chain_is_the_answer(n: int, k: int) -> None:
    task = Permutation(n=n, k=k)
    tokens, targets = task.sample(500, np.random.default_rng(0))
    assert (task.chain(tokens)[:, -1] == targets).all()


def test_any_tokens_but_one_leave_the_product_uniform() -> None:
    """n = 3, k = 3, exactly: whatever two tokens are seen, every product is left once."""
    task = Permutation(n=3, k=3)
    prompts = np.array(list(itertools.product(range(6), repeat=3)))
    answers = task.answer(prompts)
    for seen in itertools.combinations(range(3), 2):
        for pair in itertools.product(range(6), repeat=2):
            assert sorted(answers[(prompts[:, seen] == pair).all(1)]) == list(range(6))


def test_too_short_to_draw() -> None:
    with pytest.raises(SizeError, match="n of at least 8"):
        Permutation(n=7, k=3).sample(1, np.random.default_rng(0))


def test_levels_elsewhere() -> None:
    assert Permutation(n=8, k=3).level("counts") == Fraction(1, 6)
    assert Permutation(n=8, k=2).level("counts") == 1


def test_swaps() -> None:
    """After the first token only the moves named occur, each as often; the first token stays
    uniform.
    """
    every = sorted(itertools.permutations(range(4)))
    moves = [(1, 0, 2, 3), (0, 2, 1, 3), (0, 1, 3, 2)]
    tokens, _ = Permutation(n=8, k=4, shift="swaps").sample(20_000, np.random.default_rng(1))
    share = np.bincount(tokens[:, 1:].ravel(), minlength=24) / 140_000
    for token, permutation in enumerate(every):
        assert abs(share[token] - (permutation in moves) / len(moves)) < 0.01
    assert abs(np.bincount(tokens[:, 0], minlength=24) / 20_000 - 1 / 24).max() < 0.008


@pytest.mark.parametrize("k", [3, 4])
def test_the_sign_is_worth_what_is_stated(k: int) -> None:
    """Of k! products half have a sign: who knows it is right with probability 2/k!, and counts
    modulo 2 tell no more.
    """
    task = Permutation(n=8, k=k)
    assert task.level("parities") == Fraction(2, math.factorial(k))
    every = list(itertools.permutations(range(k)))
    odd = np.array([sum(a > b for a, b in itertools.combinations(p, 2)) % 2 for p in every])
    tokens, targets = task.sample(20_000, np.random.default_rng(2))
    assert (odd[tokens].sum(1) % 2 == odd[targets]).all()
