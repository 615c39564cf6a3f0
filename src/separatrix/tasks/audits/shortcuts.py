"""Shortcuts to single tasks, which look at what these are made of: each is a view of its name, and
its docstring is what readers are told.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import islice, permutations
from typing import TYPE_CHECKING, Any

from separatrix import tasks
from separatrix.core.numbers.lazy import Bools, Floats, np
from separatrix.tasks.audits.probes import (
    Guess,
    Learner,
    Prompts,
    best_column,
    best_of,
    regression,
    words_of,
)
from separatrix.tasks.base.task import Tokens
from separatrix.tasks.drawing.distinct import how_often
from separatrix.tasks.state_recall import exchanged
from separatrix.tasks.tracking import inversions

if TYPE_CHECKING:
    from separatrix.tasks.seqcomp import Functions
    from separatrix.tasks.text import MultiHop, TextTask

View = Callable[[Any, Tokens], Tokens]
"""(task, prompts (batch, length)) -> what is seen of them (batch, columns), from each prompt by
itself.
"""
VIEWS: dict[str, tuple[View, tuple[Learner[Tokens], ...]]] = {}
"""Shortcut, as `Task.shortcuts` spells it -> what it sees, and how that is read."""
SHORTCUTS: dict[str, str] = {}
"""What shortcuts to single tasks look at: spelling -> in words, those of the view."""
_SQUARED = 256
"""Most columns whose squares are weighed as well."""


def regressed(fitted: Tokens, targets: Tokens, answers: int, tested: Tokens) -> Guess:
    """Logistic regression on the columns and, of few, their squares, in units of their spread."""
    held = fitted.std(axis=0) > 0
    centre, spread = fitted[:, held].mean(axis=0), fitted[:, held].std(axis=0)

    def features(columns: Tokens) -> Floats:
        scaled = (columns[:, held] - centre) / spread
        return np.concatenate((scaled, scaled**2), axis=1) if len(held) <= _SQUARED else scaled

    return regression(features(fitted), targets, answers, features(tested))


def _read_by(*learners: Learner[Tokens]) -> Callable[[View], View]:
    def registered(view: View) -> View:
        name = view.__name__.replace("_", " ")
        VIEWS[name], SHORTCUTS[name] = (view, learners), words_of(view)
        return view

    return registered


one_by_one = _read_by(best_column)
"""Each column is a shortcut of its own: together they would be the task's solution."""
together = _read_by(best_column, regressed)
"""Each column may tell something, and a regression may weigh all against each other."""


def shortcut(name: str, task: tasks.Task | TextTask) -> Learner[Prompts]:
    """A probe that guesses from what a shortcut sees of the prompts of a task."""
    view, learners = VIEWS[name]

    def seen(prompts: Prompts) -> Tokens:
        if isinstance(task, tasks.Questions):
            return view(task.task, task.alone(prompts.front, prompts.back))
        return view(task, prompts.front)

    def guess(fitted: Prompts, targets: Tokens, answers: int, tested: Prompts) -> Guess:
        return best_of(learners, seen(fitted), targets, answers, seen(tested))

    return guess


_NONE = -1


def _latest(found: Bools, values: Tokens) -> Tokens:
    """The value at the latest place found of each row, none where there is none."""
    place = found.shape[1] - 1 - found[:, ::-1].argmax(axis=1)
    return np.where(found.any(axis=1), values[np.arange(len(found)), place], _NONE)


@one_by_one
def bits(task: tasks.Neighbour, tokens: Tokens) -> Tokens:
    """The label of the string that agrees with the query in its lowest bits or in its highest, any
    number of them.
    """
    labels = tokens[:, 1::2]
    differing = tokens[:, 0:-1:2] ^ tokens[:, -1:]
    rows = np.arange(len(tokens))
    exact = [
        _latest(differing & mask == 0, labels)
        for number in range(1, task.d)
        for mask in ((1 << number) - 1, ((1 << number) - 1) << (task.d - number))
    ]
    most = [labels[rows, (differing & -differing).argmax(axis=1)]]
    most.append(labels[rows, differing.argmin(axis=1)])
    return np.column_stack(exact + most)


@one_by_one
def first_writes(task: tasks.Recall, tokens: Tokens) -> Tokens:
    """The values written first and second beside the key asked for, and both together."""
    values, keys, query = task.read(tokens)
    found = keys == query[:, None]
    rows = np.arange(len(tokens))
    first = found.argmax(axis=1)
    later = found.copy()
    later[rows, first] = False
    second = np.where(later.any(axis=1), later.argmax(axis=1), first)
    met = found.any(axis=1)
    one, two = (np.where(met, values[rows, place], _NONE) for place in (first, second))
    return np.column_stack((one, two, one * (task.V + 1) + two))


@one_by_one
def pointed(task: tasks.StateRecall, tokens: Tokens) -> Tokens:
    """What is pointed to before any swap, after the last one alone, and most often."""
    memory, cells, swaps, asked = task.read(tokens)
    values = np.take_along_axis(memory, cells, axis=1)
    rows = np.arange(len(tokens))
    last = exchanged(asked, swaps[:, -1], task.P)
    most = how_often(values, task.V).argmax(axis=1)
    return np.column_stack((values[rows, asked], values[rows, last], most))


@one_by_one
def walks(task: tasks.KHop, tokens: Tokens) -> Tokens:
    """The letter most reached by k steps along pairs of neighbours of any age."""
    rows = np.arange(len(tokens))[:, None]
    # V stands before a prompt that is shorter than others, and no step leads there
    letters = task.V + 1
    steps = np.zeros((len(tokens), letters, letters))
    np.add.at(steps, (rows, tokens[:, :-1], tokens[:, 1:]), 1.0)
    reached = np.zeros((len(tokens), 1, letters))
    reached[rows[:, 0], 0, tokens[:, -1]] = 1.0
    for _ in range(task.k):
        reached = reached @ steps
    return reached.argmax(axis=2)


@one_by_one
def near_misses(task: tasks.CGram, tokens: Tokens) -> Tokens:
    """What follows the latest context that has all tokens but one of those asked for."""
    c = task.c
    windows = np.lib.stride_tricks.sliding_window_view(tokens[:, :-1], c, axis=1)
    same = windows == tokens[:, None, -c:]
    behind = tokens[:, c:]
    columns = []
    for place in range(c):
        others = np.delete(same, place, axis=2).all(axis=2)
        for found in (others, others & ~same[:, :, place]):
            columns.append(_latest(found, behind))
    return np.column_stack(columns)


@one_by_one
def expected_place(task: tasks.SelectiveCopying | tasks.Copying, tokens: Tokens) -> Tokens:
    """The value nearest to where the one asked for stands on average."""
    due = (tokens != task.vocabulary).sum(axis=1)
    rows = np.arange(len(tokens))
    if isinstance(task, tasks.Copying):
        shortest = np.maximum((task.n + 1) // 2, (due - 1) // 2)
        longest = np.minimum(task.n, due - 2)
        tries = [(shortest * (4 - part) + longest * part) // 4 for part in range(5)]
        return np.column_stack([tokens[rows, np.maximum(due - 2 - m, 0)] for m in tries])
    # of n uniform places among T the i-th lies at i (T + 1)/(n + 1) on average, counted from 1
    asked = due - task.T
    middle = 2 * asked * (task.T + 1) - 2 * (task.n + 1)
    away = np.abs(2 * (task.n + 1) * np.arange(task.T) - middle[:, None])
    held = tokens[:, : task.T] < task.V
    nearest = np.where(held, away, away.max() + 1).argmin(axis=1)
    return tokens[rows, nearest][:, None]


@one_by_one
def suffixes(task: tasks.FuzzyRecall, tokens: Tokens) -> Tokens:
    """The value of the latest key with the same last tokens: up to three, not all."""
    columns: list[list[int]] = [[] for _ in range(max(1, min(3, task.a - 1)))]
    for row in tokens.tolist():
        asked = row[task.pairs :]
        blank = task.V + task.K
        key = [token for token in asked if task.V <= token < blank]
        at = asked.count(blank)
        for length, column in enumerate(columns, start=1):
            end = [-1, *key][-length:] if length > len(key) else key[-length:]
            column.append(_behind(row[: task.pairs], end, at, task.V))
    return np.array(columns).T


def _behind(pairs: list[int], end: list[int], at: int, values: int) -> int:
    """Token `at` of the latest value behind a key with this end; -1 in it is where a key begins."""
    for first in range(len(pairs) - 1, 0, -1):
        if pairs[first] >= values or pairs[first - 1] < values or first + at >= len(pairs):
            continue
        if any(token >= values for token in pairs[first : first + at + 1]):
            continue
        before = pairs[max(0, first - len(end)) : first]
        before = [-1] * (len(end) - len(before)) + before
        if all(
            token == wanted or (wanted < 0 and token < values)
            for token, wanted in zip(before, end, strict=True)
        ):
            return pairs[first + at]
    return _NONE


@one_by_one
def most_ways(task: MultiHop, tokens: Tokens) -> Tokens:
    """The name that most ways of k facts lead to, whatever these say."""
    found = []
    for name, facts in _told(task, tokens):
        ways = {name: 1}
        for _ in range(task.k):
            after: dict[int, int] = {}
            for one, other in facts:
                if one in ways:
                    after[other] = after.get(other, 0) + ways[one]
            ways = after
        found.append(max(ways, key=lambda name: ways[name], default=_NONE))
    return np.array(found)[:, None]


def _told(task: MultiHop, tokens: Tokens) -> Iterator[tuple[int, list[tuple[int, int]]]]:
    """Of every prompt the name asked for, and the two names of each fact."""
    # a fact is a wording and two names; "Question" and a wording stand before the name asked for
    asked = 3 * task.sentences + 2
    for row in tokens.tolist():
        yield row[asked], [*zip(row[1 : asked - 2 : 3], row[2 : asked - 2 : 3], strict=True)]


@one_by_one
def modes(task: Functions, tokens: Tokens) -> Tokens:
    """The most frequent value of the last function, of the row asked for, of compositions."""
    w = tokens[:, [task.position_w]]
    top = task.offset(task.L)
    seen = [tokens[:, top : top + task.entries(task.L)]]
    for start in range(task.L, 0, -1):
        sources = task.N(max(start - 2, 0))
        value = np.broadcast_to(np.arange(sources), (len(tokens), sources))
        seen.append(task.composed(tokens, value, w, start)[-1])
    return np.column_stack([how_often(values, task.answers).argmax(axis=1) for values in seen])


_MOST_MODULUS = 16
_MOST_RESIDUES = 40
_SIGNS = 16


@together
def halves(task: tasks.Task, tokens: Tokens) -> Tokens:
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
def moduli(task: tasks.Equality, tokens: Tokens) -> Tokens:
    """Ones at the places of each residue, in either half, modulo what the draw hides."""
    return _at_residues(tokens, range(2, task.hidden_moduli + 1))


@together
def larger_moduli(task: tasks.Equality, tokens: Tokens) -> Tokens:
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


@together
def sign_products(task: tasks.Disjointness, tokens: Tokens) -> Tokens:
    """Two sums that one of 16 vectors of signs weighs the two sets to, multiplied."""
    signs = 1 - 2 * np.random.default_rng(0).integers(2, size=(task.n, _SIGNS))
    return (tokens[:, : task.n] @ signs) * (tokens[:, task.n :] @ signs)


@together
def parities(task: tasks.Permutation, tokens: Tokens) -> Tokens:
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
def more_residues(task: tasks.TwoSum | tasks.ThreeSum, tokens: Tokens) -> Tokens:
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
    """How many places, or ordered pairs of different ones, have the sum wanted (batch,)."""
    found = often
    if number == 2:
        values = np.arange(often.shape[1])
        turned = (often[:, (value - values) % len(values)] for value in values)
        found = np.stack([(often * each).sum(axis=1) for each in turned], axis=1)
        # less what stands at one place twice
        for value in values:
            found[:, 2 * value % len(values)] -= often[:, value]
    return found[np.arange(len(often)), wanted]


@together
def products(task: tasks.Dyck, tokens: Tokens) -> Tokens:
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
def counters(task: tasks.Dyck, tokens: Tokens) -> Tokens:
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
    of_kinds = []
    for kind in range(task.k):
        own = np.where(tokens % task.k == kind, step, 0)
        unlike[0] += np.abs(np.where(side == 0, own, 0).sum(axis=1))
        for at in range(1, task.D + 1):
            unlike[1] += np.abs(np.where(level == at, own, 0).sum(axis=1))
        open_ = np.cumsum(own, axis=1)
        sums = [(open_ == 0).sum(axis=1), (open_**2).sum(axis=1), (open_**3).sum(axis=1)]
        of_kinds.append(np.stack((open_.min(axis=1), open_.max(axis=1), open_[:, -1], *sums)))
    low, high, end, *sums = np.stack(of_kinds, axis=1)
    columns += [*unlike, low.min(axis=0), low.sum(axis=0), high.max(axis=0), high.sum(axis=0)]
    columns += [(high == high.max(axis=0)).sum(axis=0), np.abs(end).sum(axis=0)]
    columns += [each.sum(axis=0) for each in sums]
    return np.column_stack(columns).astype(np.int64)


@together
def leaves(task: tasks.IsTree, tokens: Tokens) -> Tokens:
    """How many edges are left when leaves are taken away up to 2 log2 n times."""
    rounds = islice(_without_leaves(task, tokens), 1, 2 * (task.n - 1).bit_length() + 1)
    numbers = [np.bincount(ends[0] // task.n, minlength=len(tokens)) for ends in rounds]
    return np.column_stack(numbers)


def _without_leaves(task: tasks.IsTree, tokens: Tokens) -> Iterator[Tokens]:
    """The edges (2, edges) of all graphs, numbered apart; then again and again without leaves."""
    row = task.n * np.arange(len(tokens))[:, None]
    ends = np.stack(((tokens[:, 0::2] + row).ravel(), (tokens[:, 1::2] + row).ravel()))
    while True:
        yield ends
        degree = np.bincount(ends.ravel(), minlength=len(tokens) * task.n)
        ends = ends[:, (degree[ends] > 1).all(axis=0)]
