"""Permutations as tokens: their ids and products beside those of permutation matrices."""

from __future__ import annotations

import numpy as np
from support.each import each

from separatrix.tasks.tracking import arrangements

SIZES = [(2, False), (3, True), (4, False), (4, True), (5, True)]


@each("k, even", SIZES)
def test_products_are_those_of_matrices(k: int, even: bool) -> None:
    every = arrangements(k, even=even)
    # column j of p has its one at p(j), so that p q is p after q
    matrices = np.eye(k, dtype=np.int64)[every.rows].transpose(0, 2, 1)
    of = {matrix.tobytes(): number for number, matrix in enumerate(matrices)}
    assert len(of) == every.order
    signs = [round(np.linalg.det(matrix)) for matrix in matrices]
    assert signs.count(1) == (every.order if even else every.order // 2)
    tokens = np.random.default_rng(0).integers(every.order, size=(50, 7))
    chain = every.chain(tokens)
    for row, states in zip(tokens.tolist(), chain.tolist(), strict=True):
        product = np.eye(k, dtype=np.int64)
        for token, state in zip(row, states, strict=True):
            product = matrices[token] @ product
            assert state == of[product.tobytes()]
    assert (every.product(tokens) == chain[:, -1]).all()


@each("k, even", SIZES)
def test_ids_are_in_lexicographic_order(k: int, even: bool) -> None:
    every = arrangements(k, even=even)
    assert every.rows.tolist() == sorted(every.rows.tolist())
    assert (every.ids(every.rows) == np.arange(every.order)).all()
