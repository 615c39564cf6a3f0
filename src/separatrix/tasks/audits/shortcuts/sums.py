"""Sums of two or three tokens, known modulo a small number only, and how many of them agree."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from separatrix.tasks.base.task import Tokens
from separatrix.tasks.drawing.classes_modulo import SMALL_MODULI

if TYPE_CHECKING:
    from separatrix.tasks import ThreeSum, TwoSum


_MOST_MODULUS = 40


def residues(task: TwoSum | ThreeSum, tokens: Tokens) -> Tokens:
    """How many sums may be 0 mod M as far as their residues modulo 2, ..., 16 tell; and
    whether all tokens together add up to 0."""
    return _residues(task, tokens, SMALL_MODULI)


def more_residues(task: TwoSum | ThreeSum, tokens: Tokens) -> Tokens:
    """The same of moduli up to 40."""
    return _residues(task, tokens, range(SMALL_MODULI.start, _MOST_MODULUS + 1))


def _residues(task: TwoSum | ThreeSum, tokens: Tokens, moduli: range) -> Tokens:
    summands = 2 if task.name == "twosum" else 3
    asked = task.form == "query"
    others = tokens[:, :-1] if asked else tokens
    free = summands - 1 if asked else summands
    columns = []
    for modulus in moduli:
        often = np.stack([(others % modulus == value).sum(axis=1) for value in range(modulus)], 1)
        query = tokens[:, -1] if asked else np.zeros(len(tokens), np.int64)
        # sums of ids below M that are 0 mod M are M, ..., (summands - 1) M, or 0 where all are
        wanted = {times * task.M % modulus for times in range(1, summands)}
        right = np.zeros(len(tokens), np.int64)
        for value in wanted:
            right += _sums(often, free, modulus, (value - query) % modulus)
        columns.append(right)
    columns.append(tokens.sum(axis=1) % task.M == 0)
    return np.column_stack(columns).astype(np.int64)


def _sums(often: Tokens, number: int, modulus: int, wanted: Tokens) -> Tokens:
    """How many choices of `number` different places have the sum wanted (batch,); ordered ones."""
    rows = np.arange(len(often))
    if number == 1:
        return often[rows, wanted]
    doubled = np.zeros_like(often)
    for value in range(modulus):
        doubled[:, 2 * value % modulus] += often[:, value]

    def pairs(target: Tokens) -> Tokens:
        together = np.zeros(len(often), np.int64)
        for value in range(modulus):
            together += often[:, value] * often[rows, (target - value) % modulus]
        return together - doubled[rows, target]

    if number == 2:
        return pairs(wanted)
    total = np.zeros(len(often), np.int64)
    for value in range(modulus):
        # a pair of other places: of ordered pairs those are left out that hold the place itself
        rest = (wanted - value) % modulus
        with_itself = 2 * often[rows, (rest - value) % modulus] - 2 * (
            (rest - 2 * value) % modulus == 0
        )
        total += often[:, value] * (pairs(rest) - with_itself)
    return total


def pair_sums(task: ThreeSum, tokens: Tokens) -> Tokens:
    """How many different sums and differences mod M pairs have, and the sum of all tokens."""
    one, two = np.triu_indices(tokens.shape[1], 1)
    columns = []
    for sign in (1, -1):
        sums = np.sort((tokens[:, one] + sign * tokens[:, two]) % task.M, axis=1)
        new = (sums[:, 1:] != sums[:, :-1]).sum(axis=1)
        columns.append(new)
    columns.append(tokens.sum(axis=1) % task.M)
    return np.column_stack(columns)
