"""Shortcuts to single tasks, which look at what these are made of: each is a view of its name, and
its docstring is what readers are told.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import combinations, islice, permutations
from operator import itemgetter
from statistics import mode
from typing import TYPE_CHECKING, Any

from separatrix import tasks
from separatrix.core.numbers.lazy import Bools, Floats, NDArray, np
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
def likeness(task: tasks.Neighbour, tokens: Tokens) -> Tokens:
    """The label of whose strings bits agree with the query's most often, less those that do not."""
    unlike = np.bitwise_count(tokens[:, 0:-1:2] ^ tokens[:, -1:]).astype(np.int64)
    return _voted(task.d - 2 * unlike, tokens[:, 1::2] - task.strings, task.V)


@one_by_one
def most_writes(task: tasks.Recall, tokens: Tokens) -> Tokens:
    """The value written most often beside the key asked for, the first of several."""
    values, keys, query = task.read(tokens)
    # one more value, which stands beside all others
    often = how_often(np.where(keys == query[:, None], values, task.V), task.V + 1)[:, :-1]
    return np.where(often.any(axis=1), often.argmax(axis=1), _NONE)[:, None]


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
def skip_grams(task: tasks.CGram, tokens: Tokens) -> Tokens:
    """What stood most often where the answer does seen from a token asked for, all added up."""
    windows = np.lib.stride_tricks.sliding_window_view(tokens[:, :-1], task.c, axis=1)
    shared = (windows == tokens[:, None, -task.c :]).sum(axis=2)
    return _voted(shared, tokens[:, task.c :], task.V)


@one_by_one
def expected_place(task: tasks.SelectiveCopying | tasks.Copying, tokens: Tokens) -> Tokens:
    """The value that stands most where the one asked for may, each place by how likely it is."""
    due = (tokens != task.vocabulary).sum(axis=1)[:, None]
    if isinstance(task, tasks.Copying):
        place = np.arange(task.n)
        # the mark is not looked at: any length that such a place is asked for at
        length = due - 2 - place
        likely = (length >= task.shortest) & (length <= task.n) & (place < length)
    else:
        likely = _ordered(task.n, task.T)[due[:, 0] - task.T - 1]
    return _voted(likely, tokens[:, : likely.shape[1]], task.V)


def _voted(weights: NDArray[Any], held: Tokens, values: int) -> Tokens:
    """(batch, 1): the value whose places, of those held (batch, places), weigh most together."""
    votes = [np.where(held == value, weights, 0).sum(axis=1) for value in range(values)]
    return np.argmax(votes, axis=0)[:, None]


def _ordered(number: int, places: int) -> Floats:
    """(number, places): how likely, but for a factor, the i-th of a uniform set stands where."""
    # of factorials
    logs = np.append(0.0, np.log(np.arange(1, places + 1)).cumsum())

    def ways(among: Tokens, chosen: Tokens) -> Floats:
        left = among - chosen
        return np.where(left < 0, -np.inf, logs[among] - logs[chosen] - logs[np.maximum(left, 0)])

    before, chosen = np.arange(places), np.arange(number)[:, None]
    law = ways(before, chosen) + ways(before[::-1], chosen[::-1])
    return np.exp(law - law.max(axis=1, keepdims=True))


@one_by_one
def parts_of_keys(task: tasks.FuzzyRecall, tokens: Tokens) -> Tokens:
    """What most keys have for a value that share their last tokens with the one asked for, or the
    first, up to three but not all, or all in any order.
    """
    lengths = range(1, max(2, min(4, task.a)))
    looks = [sorted, *(itemgetter(slice(-each, None)) for each in lengths)]
    looks += [itemgetter(slice(each)) for each in lengths]
    seen = []
    for row in tokens.tolist():
        keys, values, asked = task.told(row)
        at = row.count(task.vocabulary - 1)
        held = [(key, own[at]) for key, own in zip(keys, values, strict=True) if at < len(own)]
        alike = ([own for key, own in held if look(key) == look(asked)] for look in looks)
        seen.append([mode(each) for each in alike])
    return np.array(seen)


@one_by_one
def looked_up(task: tasks.QSA, tokens: Tokens) -> Tokens:
    """The sum of what stands at the first places of a set, one or more but not all."""
    rows = np.arange(len(tokens))[:, None]
    due = (tokens != task.vocabulary).sum(axis=1)[:, None]
    places = tokens[rows, due - task.q + np.arange(task.q - 1)] - task.V
    return tokens[rows, places].cumsum(axis=1)


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
    """Two sums that one of 16 vectors of signs weighs the two sets to, multiplied; and "beside"."""
    signs = 1 - 2 * np.random.default_rng(0).integers(2, size=(task.n, _SIGNS))
    sums = (tokens[:, : task.n] @ signs) * (tokens[:, task.n :] @ signs)
    return np.concatenate((sums, beside(task, tokens)), axis=1)


@together
def beside(task: tasks.Disjointness, tokens: Tokens) -> Tokens:
    """How many elements of one set stand beside one of the other, in pairs from the first or the
    second place on.
    """
    u, v = tokens[:, : task.n], tokens[:, task.n :]
    met = u[:, :-1] * v[:, 1:] + u[:, 1:] * v[:, :-1]
    return np.column_stack([met[:, start::2].sum(axis=1) for start in (0, 1)])


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
    """Two to five brackets in a row that open x..y, less y..x, times the same of brackets that
    close: weighed by place, of all and depth by depth, or its cube, and by which stands first; and
    "counters".
    """
    opens = tokens < task.k
    kind = tokens % task.k
    level = _levels(opens)
    depths = task.D + 2
    # brackets of one depth side by side, in their order
    order = np.argsort(level, axis=1, kind="stable")
    cells = np.take_along_axis(level, order, 1) + depths * np.arange(len(tokens))[:, None]
    place = 2 * order - tokens.shape[1] + 1

    def by_depth(weights: Floats) -> Floats:
        sums = np.bincount(cells.ravel(), weights.ravel(), minlength=depths * len(tokens))
        return sums.reshape(-1, depths).astype(float)

    columns = []
    for length in range(2, 6):
        among = np.lib.stride_tricks.sliding_window_view(opens, length, axis=1)
        runs = among.all(axis=2), ~among.any(axis=2)
        # each at the deepest bracket of its run
        ends = slice(length - 1, None), slice(1 - length)
        first, last = kind[:, ends[1]], kind[:, ends[0]]
        total = np.zeros((4, len(tokens)))
        for x, y in combinations(range(task.k), 2):
            way = 1.0 * ((first == x) & (last == y)) - ((first == y) & (last == x))
            held = np.zeros((2, *tokens.shape))
            for at, (run, end) in enumerate(zip(runs, ends, strict=True)):
                held[at, :, end] = np.where(run, way, 0)
            one, other = (np.take_along_axis(each, order, 1) for each in held)
            opened, closed = by_depth(one * place), by_depth(other * place)
            total[:2] += opened.sum(1) * closed.sum(1), (opened * closed).sum(1)
            total[3] += (one * place**3).sum(1) * (other * place**3).sum(1)
            shallower = by_depth(one).cumsum(axis=1) - by_depth(one)
            total[2] += (one.cumsum(axis=1) * other).sum(1) - (shallower * by_depth(other)).sum(1)
        columns += [*total]
    return np.column_stack((*columns, counters(task, tokens))).astype(np.int64)


def _levels(opens: Bools) -> Tokens:
    """How deep each bracket stands: as many brackets are open within a pair."""
    return np.cumsum(np.where(opens, 1, -1), axis=1) + ~opens


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
    level = _levels(step > 0)
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
