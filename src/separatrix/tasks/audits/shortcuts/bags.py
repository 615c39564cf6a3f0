"""Bags: how often a few neighbours occur, in the whole prompt, in its halves, in its quarters."""

from __future__ import annotations

from itertools import combinations, permutations
from typing import TYPE_CHECKING

import numpy as np

from separatrix.tasks.audits.learners import MOST_IDS
from separatrix.tasks.base.task import Task, Tokens

if TYPE_CHECKING:
    from separatrix.tasks import Disjointness, Equality, Permutation


_MOST_MODULUS = 16
_SIGNS = 16
LONGEST = 4
"""Neighbours that are counted together, at most."""


def grams(task: Task, tokens: Tokens) -> Tokens:
    """How often every two, three and four neighbours occur, as long as they make at most 512 cases;
    two always, in at most 512 groups of cases.
    """
    columns = []
    length = 2
    while length == 2 or (length <= LONGEST and task.vocabulary**length <= MOST_IDS):
        columns.append(_bag(_codes(tokens, length, task.vocabulary) % MOST_IDS))
        length += 1
    return np.concatenate(columns, axis=1)


def halves(task: Task, tokens: Tokens) -> Tokens:
    """For r = 1, ..., log2 n: how far the bags of r neighbours of the two halves differ, and
    whether they do.
    """
    half = tokens.shape[1] // 2
    columns = []
    for length in range(1, max(2, half.bit_length())):
        one, other = (
            np.sort(_codes(part, length, task.vocabulary), axis=1)
            for part in (tokens[:, :half], tokens[:, half:])
        )
        columns += [(one == other).all(axis=1), (one != other).sum(axis=1)]
    return np.column_stack(columns).astype(np.int64)


def moduli(task: Equality, tokens: Tokens) -> Tokens:
    """For the moduli that the draw hides: by how much the two halves differ in ones at places of
    each residue.
    """
    return _at_residues(tokens, range(2, task.hidden_moduli + 1))


def larger_moduli(task: Equality, tokens: Tokens) -> Tokens:
    """The same for the moduli above, up to the smallest that 16 and these leave."""
    most = max(_MOST_MODULUS, task.hidden_moduli + 2)
    return _at_residues(tokens, range(task.hidden_moduli + 1, most + 1))


def _at_residues(tokens: Tokens, moduli: range) -> Tokens:
    half = tokens.shape[1] // 2
    unlike = tokens[:, :half] - tokens[:, half:]
    columns = [np.zeros(len(tokens), np.int64)]
    for modulus in moduli:
        of_each = [unlike[:, at::modulus].sum(axis=1) for at in range(modulus)]
        columns.append(np.abs(of_each).sum(axis=0))
    return np.column_stack(columns)


def compared(task: Equality, tokens: Tokens) -> Tokens:
    """Whether the two strings differ at each place."""
    return tokens[:, : task.n] ^ tokens[:, task.n :]


def sign_products(task: Disjointness, tokens: Tokens) -> Tokens:
    """Of 16 vectors of signs, drawn once: the product of the two sums that it weighs the two sets
    to.
    """
    signs = 1 - 2 * np.random.default_rng(0).integers(2, size=(task.n, _SIGNS))
    return (tokens[:, : task.n] @ signs) * (tokens[:, task.n :] @ signs)


def quarters(task: Task, tokens: Tokens) -> Tokens:
    """Of every quarter of the two halves: how many ones either has, and the product of both; and
    the product of how many more ones either half has at odd places than at even ones.
    """
    half = tokens.shape[1] // 2
    sign = 1 - 2 * (np.arange(half) % 2)
    columns = [(tokens[:, :half] @ sign) * (tokens[:, half:] @ sign)]
    for part in np.array_split(np.arange(half), 4):
        one = tokens[:, part].sum(axis=1)
        other = tokens[:, half + part].sum(axis=1)
        columns += [one, other, one * other]
    return np.column_stack(columns)


def parities(task: Permutation, tokens: Tokens) -> Tokens:
    """The sign of the product; how often each permutation occurs, modulo 2 and modulo 3, and the
    first eight of the former together.
    """
    # the last one stands where no token does
    odd = np.array([*(_odd(order) for order in permutations(range(task.k))), 0])
    often = np.stack([(tokens == each).sum(axis=1) for each in range(len(odd) - 1)], axis=1)
    together = often[:, :8] % 2 @ (1 << np.arange(min(8, len(odd))))
    return np.column_stack((odd[tokens].sum(axis=1) % 2, together, often % 2, often % 3))


def _odd(order: tuple[int, ...]) -> int:
    """1 for an odd permutation: one with an odd number of pairs in the wrong order."""
    return sum(one > other for one, other in combinations(order, 2)) % 2


def _codes(tokens: Tokens, length: int, vocabulary: int) -> Tokens:
    """A number for every `length` neighbours: (batch, columns - length + 1)."""
    windows = np.lib.stride_tricks.sliding_window_view(tokens, min(length, tokens.shape[1]), axis=1)
    return windows @ vocabulary ** np.arange(windows.shape[2])


def _bag(codes: Tokens) -> Tokens:
    """How often each code below 512 occurs in each row."""
    width = MOST_IDS
    cells = codes + width * np.arange(len(codes))[:, None]
    return np.bincount(cells.ravel(), minlength=width * len(codes)).reshape(len(codes), width)
