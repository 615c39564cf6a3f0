"""Look-ups that see too little: some bits, the first of several writes, an end of facts."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from separatrix.core.numbers.lazy import Bools, np
from separatrix.tasks import Copying
from separatrix.tasks.audits.shortcuts.views import one_by_one
from separatrix.tasks.base.task import Tokens
from separatrix.tasks.drawing.distinct import how_often
from separatrix.tasks.state_recall import exchanged

if TYPE_CHECKING:
    from separatrix.tasks import (
        CGram,
        FuzzyRecall,
        KHop,
        Neighbour,
        Recall,
        SelectiveCopying,
        StateRecall,
    )
    from separatrix.tasks.seqcomp import Functions
    from separatrix.tasks.text import MultiHop

_NONE = -1


def _latest(found: Bools, values: Tokens) -> Tokens:
    """The value at the latest place found of each row, none where there is none."""
    place = found.shape[1] - 1 - found[:, ::-1].argmax(axis=1)
    return np.where(found.any(axis=1), values[np.arange(len(found)), place], _NONE)


@one_by_one
def bits(task: Neighbour, tokens: Tokens) -> Tokens:
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
def first_writes(task: Recall, tokens: Tokens) -> Tokens:
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
def pointed(task: StateRecall, tokens: Tokens) -> Tokens:
    """What is pointed to before any swap, after the last one alone, and most often."""
    memory, cells, swaps, asked = task.read(tokens)
    values = np.take_along_axis(memory, cells, axis=1)
    rows = np.arange(len(tokens))
    last = exchanged(asked, swaps[:, -1], task.P)
    most = how_often(values, task.V).argmax(axis=1)
    return np.column_stack((values[rows, asked], values[rows, last], most))


@one_by_one
def walks(task: KHop, tokens: Tokens) -> Tokens:
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
def near_misses(task: CGram, tokens: Tokens) -> Tokens:
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
def expected_place(task: SelectiveCopying | Copying, tokens: Tokens) -> Tokens:
    """The value nearest to where the one asked for stands on average."""
    due = (tokens != task.vocabulary).sum(axis=1)
    rows = np.arange(len(tokens))
    if isinstance(task, Copying):
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
def suffixes(task: FuzzyRecall, tokens: Tokens) -> Tokens:
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


@one_by_one
def ends(task: MultiHop, tokens: Tokens) -> Tokens:
    """Where facts lead from the name asked for, whatever they say: after k of them, and at last."""
    ends = [
        [
            found
            for told in (facts, facts[::-1])
            for found in (_end(told, name), _after(told, name, task.k))
        ]
        for name, facts in _told(task, tokens)
    ]
    return np.array(ends)


def _told(task: MultiHop, tokens: Tokens) -> Iterator[tuple[int, list[tuple[int, int]]]]:
    """Of every prompt the name asked for, and the two names of each fact."""
    # a fact is a wording and two names; "Question" and a wording stand before the name asked for
    asked = 3 * task.sentences + 2
    for row in tokens.tolist():
        yield row[asked], [*zip(row[1 : asked - 2 : 3], row[2 : asked - 2 : 3], strict=True)]


def _end(facts: list[tuple[int, int]], name: int) -> int:
    """The name at the end of a walk from `name` that takes the first fact not yet taken."""
    left = dict(enumerate(facts))
    while (fact := next((at for at, pair in left.items() if name in pair), None)) is not None:
        one, other = left.pop(fact)
        name = other if name == one else one
    return name


def _after(facts: list[tuple[int, int]], name: int, hops: int) -> int:
    """The name that so many facts lead to, each the first with the present name as its first."""
    for _ in range(hops):
        name = next((other for one, other in facts if one == name), name)
    return name


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
