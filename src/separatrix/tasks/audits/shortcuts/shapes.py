"""What counting shows: neighbours, sums modulo numbers, brackets, graphs without leaves."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice, permutations
from typing import TYPE_CHECKING

from separatrix.core.numbers.lazy import np
from separatrix.tasks.audits.shortcuts.views import one_by_one, together
from separatrix.tasks.base.task import Task, Tokens
from separatrix.tasks.drawing.distinct import how_often
from separatrix.tasks.tracking import inversions

if TYPE_CHECKING:
    from separatrix.tasks import Disjointness, Dyck, Equality, IsTree, Permutation, ThreeSum, TwoSum


_MOST_MODULUS = 16
_MOST_RESIDUES = 40
_SIGNS = 16


@together
def halves(task: Task, tokens: Tokens) -> Tokens:
    """Whether two halves have the same bag of r neighbours, r up to log2 n."""
    half = tokens.shape[1] // 2
    columns = []
    for length in range(1, max(2, half.bit_length())):
        one, other = (
            np.sort(_codes(part, length, task.vocabulary), axis=1)
            for part in (tokens[:, :half], tokens[:, half:])
        )
        columns += [(one == other).all(axis=1), (one != other).sum(axis=1)]
    return np.column_stack(columns).astype(np.int64)


@together
def moduli(task: Equality, tokens: Tokens) -> Tokens:
    """Ones at the places of each residue, in either half, modulo what the draw hides."""
    return _at_residues(tokens, range(2, task.hidden_moduli + 1))


@together
def larger_moduli(task: Equality, tokens: Tokens) -> Tokens:
    """The same modulo what it does not hide, up to 16."""
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


@one_by_one
def compared(task: Equality, tokens: Tokens) -> Tokens:
    """Whether the two strings differ at the best single place."""
    return tokens[:, : task.n] ^ tokens[:, task.n :]


@together
def sign_products(task: Disjointness, tokens: Tokens) -> Tokens:
    """Two sums that one of 16 vectors of signs weighs the two sets to, multiplied."""
    signs = 1 - 2 * np.random.default_rng(0).integers(2, size=(task.n, _SIGNS))
    return (tokens[:, : task.n] @ signs) * (tokens[:, task.n :] @ signs)


@together
def quarters(task: Task, tokens: Tokens) -> Tokens:
    """How many ones each quarter of either half has, and how many more at odd places than at even
    ones.
    """
    half = tokens.shape[1] // 2
    sign = 1 - 2 * (np.arange(half) % 2)
    columns = [(tokens[:, :half] @ sign) * (tokens[:, half:] @ sign)]
    for part in np.array_split(np.arange(half), 4):
        one = tokens[:, part].sum(axis=1)
        other = tokens[:, half + part].sum(axis=1)
        columns += [one, other, one * other]
    return np.column_stack(columns)


@together
def parities(task: Permutation, tokens: Tokens) -> Tokens:
    """How often tokens occur modulo 2 and 3, and the sign of a product."""
    # the last one stands where no token does
    odd = np.array([*(inversions(order) % 2 for order in permutations(range(task.k))), 0])
    often = np.stack([(tokens == each).sum(axis=1) for each in range(len(odd) - 1)], axis=1)
    together = often[:, :8] % 2 @ (1 << np.arange(min(8, len(odd))))
    return np.column_stack((odd[tokens].sum(axis=1) % 2, together, often % 2, often % 3))


def _codes(tokens: Tokens, length: int, vocabulary: int) -> Tokens:
    """A number for every `length` neighbours: (batch, columns - length + 1)."""
    windows = np.lib.stride_tricks.sliding_window_view(tokens, min(length, tokens.shape[1]), axis=1)
    return windows @ vocabulary ** np.arange(windows.shape[2])


@together
def more_residues(task: TwoSum | ThreeSum, tokens: Tokens) -> Tokens:
    """How many sums are right modulo 2, 3, ..., 40: each by itself, and all together."""
    summands = 2 if task.name == "twosum" else 3
    asked = task.form == "query"
    others = tokens[:, :-1] if asked else tokens
    free = summands - 1 if asked else summands
    columns = []
    for modulus in range(2, _MOST_RESIDUES + 1):
        often = how_often(others % modulus, modulus)
        query = tokens[:, -1] if asked else np.zeros(len(tokens), np.int64)
        # sums of ids below M that are 0 mod M are M, ..., (summands - 1) M, or 0 where all are
        wanted = {times * task.M % modulus for times in range(1, summands)}
        right = np.zeros(len(tokens), np.int64)
        for value in wanted:
            right += _sums(often, free, (value - query) % modulus)
        columns.append(right)
    columns.append(tokens.sum(axis=1) % task.M == 0)
    return np.column_stack(columns).astype(np.int64)


def _sums(often: Tokens, number: int, wanted: Tokens) -> Tokens:
    """How many choices of `number` different places have the sum wanted (batch,); ordered ones."""
    values = np.arange(often.shape[1])

    def times(factor: int) -> Tokens:
        made = np.zeros_like(often)
        for value in values:
            made[:, factor * value % len(values)] += often[:, value]
        return made

    def added(one: Tokens, other: Tokens) -> Tokens:
        turned = (other[:, (value - values) % len(values)] for value in values)
        return np.stack([(one * each).sum(axis=1) for each in turned], axis=1)

    found = often
    if number > 1:
        found = added(often, often) - times(2)
    if number > 2:
        # two of the three at one place, in three ways, or all three
        found = added(found, often) - 2 * added(times(2), often) + 2 * times(3)
    return found[np.arange(len(often)), wanted]


@together
def products(task: Dyck, tokens: Tokens) -> Tokens:
    """Two to five brackets in a row that open x..y, less y..x, weighed by place, times the same of
    brackets that close.
    """
    opens = tokens < task.k
    kind = tokens % task.k
    columns = []
    for length in range(2, 6):
        among = np.lib.stride_tricks.sliding_window_view(opens, length, axis=1)
        runs = among.all(axis=2), ~among.any(axis=2)
        first, last = kind[:, : 1 - length], kind[:, length - 1 :]
        place = 2 * np.arange(first.shape[1]) - first.shape[1] + 1
        for weight in (place, np.sign(place)):
            total = np.zeros(len(tokens), np.int64)
            for x in range(task.k):
                for y in range(x + 1, task.k):
                    way = ((first == x) & (last == y)).astype(np.int64)
                    way -= (first == y) & (last == x)
                    one, other = (np.where(run, way, 0) @ weight for run in runs)
                    total += one * other
            columns.append(total)
    return np.column_stack(columns)


@together
def counters(task: Dyck, tokens: Tokens) -> Tokens:
    """Counters of open brackets, of each kind and in all: extremes, sums, zeros."""
    step = np.where(tokens < task.k, 1, -1)
    depth = np.cumsum(step, axis=1)
    columns = [
        depth.max(axis=1),
        depth.min(axis=1),
        (depth == 0).sum(axis=1),
        depth.sum(axis=1),
        (depth**2).sum(axis=1),
        (depth > task.D).any(axis=1),
    ]
    # of a pair one bracket stands at an even place, one at an odd; both begin and end one depth
    side = np.arange(tokens.shape[1]) % 2 ^ (step < 0)
    level = np.where(step > 0, depth, depth + 1)
    unlike = np.zeros((2, len(tokens)), np.int64)
    for kind in range(task.k):
        own = np.where(tokens % task.k == kind, step, 0)
        unlike[0] += np.abs(np.where(side == 0, own, 0).sum(axis=1))
        for at in range(1, task.D + 1):
            unlike[1] += np.abs(np.where(level == at, own, 0).sum(axis=1))
    columns += [*unlike]
    low, high, end = (np.zeros((len(tokens), 0), np.int64) for _ in range(3))
    zeros, squares, cubes = (np.zeros(len(tokens), np.int64) for _ in range(3))
    for kind in range(task.k):
        open_ = np.cumsum(np.where(tokens % task.k == kind, step, 0), axis=1)
        low = np.column_stack((low, open_.min(axis=1)))
        high = np.column_stack((high, open_.max(axis=1)))
        end = np.column_stack((end, open_[:, -1]))
        zeros += (open_ == 0).sum(axis=1)
        squares += (open_**2).sum(axis=1)
        cubes += (open_**3).sum(axis=1)
    columns += [
        low.min(axis=1),
        low.sum(axis=1),
        high.max(axis=1),
        high.sum(axis=1),
        (high == high.max(axis=1, keepdims=True)).sum(axis=1),
        np.abs(end).sum(axis=1),
        zeros,
        squares,
        cubes,
    ]
    return np.column_stack(columns).astype(np.int64)


@together
def leaves(task: IsTree, tokens: Tokens) -> Tokens:
    """How many edges are left when leaves are taken away up to 2 log2 n times."""
    rounds = islice(_without_leaves(task, tokens), 1, 2 * (task.n - 1).bit_length() + 1)
    numbers = [np.bincount(ends[0] // task.n, minlength=len(tokens)) for ends in rounds]
    return np.column_stack(numbers)


def _without_leaves(task: IsTree, tokens: Tokens) -> Iterator[Tokens]:
    """The edges (2, edges) of all graphs, numbered apart; then again and again without leaves."""
    row = task.n * np.arange(len(tokens))[:, None]
    ends = np.stack(((tokens[:, 0::2] + row).ravel(), (tokens[:, 1::2] + row).ravel()))
    while True:
        yield ends
        degree = np.bincount(ends.ravel(), minlength=len(tokens) * task.n)
        ends = ends[:, (degree[ends] > 1).all(axis=0)]
