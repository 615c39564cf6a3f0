"""What a probe sees of prompts, and the ways to guess an answer from it: tables, shifts, and
features for regressions.

Where token ids are many, regressions see those that occur most often in the prompts fitted to, and
count all others as one; few enough for about 2^16 weights.

The shortcuts of `separatrix.tasks.PROBES` are pure functions: (prompts fitted to, their answers,
number of answers, prompts judged) -> guess.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple, TypeVar

from separatrix.core.numbers.lazy import Floats, np
from separatrix.tasks.base.task import Tokens
from separatrix.tasks.drawing.distinct import how_often

if TYPE_CHECKING:
    from torch import Tensor


@dataclass(frozen=True)
class Prompts:
    """Rows of `front` (batch, longest) begin at the first column, those of `back` (batch, longest)
    end at the last.

    Places that a row does not have hold `nothing`, an id one more than the largest. Rows of one
    length are the same array twice.
    """

    front: Tokens
    back: Tokens
    nothing: int

    def __len__(self) -> int:
        return len(self.front)

    def __getitem__(self, rows: slice) -> Prompts:
        front = self.front[rows]
        return Prompts(front, front if self.back is self.front else self.back[rows], self.nothing)

    @property
    def last(self) -> Tokens:
        """The last token of each row, shape (batch,)."""
        return self.back[:, -1]

    def places(self) -> Tokens:
        """Every place but the last token's, from the first and, of unequal rows, the last one."""
        if self.back is self.front:
            return self.front[:, :-1]
        # before the first empty place stands the row's last token, which is left out
        earlier = np.where(self.front[:, 1:] == self.nothing, self.nothing, self.front[:, :-1])
        return np.concatenate((earlier, self.back[:, :-1]), axis=1)


def cut(tokens: Tokens, places: Tokens, *, nothing: int) -> Prompts:
    """Rows of `tokens` (batch, length) up to the token at `places` (batch,), included."""
    column = np.arange(tokens.shape[1])
    front = np.where(column <= places[:, None], tokens, nothing)
    source = column - (tokens.shape[1] - 1 - places[:, None])
    back = np.where(source >= 0, np.take_along_axis(tokens, np.maximum(source, 0), axis=1), nothing)
    return Prompts(front, back, nothing)


MOST_WEIGHTS = 1 << 16
MOST_IDS = 512
"""Token ids that a regression tells apart, at most."""


def frequent(tokens: Tokens, *, answers: int, nothing: int, groups: int = 1) -> Tokens:
    """The ids that get weights of their own, ascending; `groups` is how often each gets them."""
    ids, often = np.unique(tokens, return_counts=True)
    ids, often = ids[ids != nothing], often[ids != nothing]
    most = max(1, min(MOST_IDS, MOST_WEIGHTS // (answers * groups)))
    return np.sort(ids[np.argsort(-often, kind="stable")[:most]])


def _columns(tokens: Tokens, ids: Tokens, nothing: int) -> Tokens:
    """Column of each token: its rank in `ids`; behind these any other id, then no token."""
    rank = np.minimum(np.searchsorted(ids, tokens), len(ids) - 1)
    return np.where(tokens == nothing, len(ids) + 1, np.where(ids[rank] == tokens, rank, len(ids)))


def counted(tokens: Tokens, ids: Tokens, nothing: int) -> Floats:
    """How often each of `ids`, then any other, occurs in each row: (batch, ids + 1)."""
    return how_often(_columns(tokens, ids, nothing), len(ids) + 2)[:, :-1].astype(float)


def indicated(tokens: Tokens, ids: Tokens, nothing: int) -> Floats:
    """Which of `ids`, any other, or none stands in each column: (batch, columns (ids + 2))."""
    width = len(ids) + 2
    hot = np.zeros((len(tokens), tokens.shape[1] * width))
    np.put_along_axis(
        hot, _columns(tokens, ids, nothing) + width * np.arange(tokens.shape[1]), 1.0, axis=1
    )
    return hot


class Guess(NamedTuple):
    """`answers` (batch,), and of those answered yes or no the `score` (batch,): how likely 1 is."""

    answers: Tokens
    score: Floats

    def right(self, targets: Tokens) -> int:
        return int((self.answers == targets).sum())

    def correlation(self, targets: Tokens) -> float:
        """Of the score with the answer; 0 where either is constant."""
        if np.ptp(self.score) == 0 or np.ptp(targets) == 0:
            return 0.0
        return float(np.corrcoef(self.score, targets)[0, 1])


Seen = TypeVar("Seen", Prompts, Tokens)
Learner = Callable[[Seen, Tokens, int, Seen], Guess]
"""(what is seen of the instances to fit to, their answers, number of answers, what is seen of
those to judge by) -> a guess for the latter.
"""


def best_of(
    learners: Sequence[Learner[Seen]], fitted: Seen, targets: Tokens, answers: int, tested: Seen
) -> Guess:
    """The guess of the learner that does best on the fitting half, each half of which is judged by
    a fit to the other.

    Best is the most right answers, or for two answers the strongest correlation, which tells more.
    """
    if len(learners) == 1:
        return learners[0](fitted, targets, answers, tested)
    one = slice(len(targets) // 2)
    other = slice(len(targets) // 2, None)

    def merit(learner: Learner[Seen]) -> float:
        guesses = [
            (learner(fitted[a], targets[a], answers, fitted[b]), targets[b])
            for a, b in ((one, other), (other, one))
        ]
        return sum(
            guess.correlation(right) if answers == 2 else guess.right(right)
            for guess, right in guesses
        )

    return max(learners, key=merit)(fitted, targets, answers, tested)


def constant(targets: Tokens, instances: int) -> Guess:
    """The most frequent answer, for every instance."""
    seen, often = np.unique(targets, return_counts=True)
    return Guess(
        np.full(instances, seen[often.argmax()]), np.full(instances, np.mean(targets == 1))
    )


def table(ids: Tokens, targets: Tokens, answers: int, asked: Tokens) -> Guess:
    """For every id its most frequent answer; for an id never seen the most frequent of all.

    The score is the share of answer 1 beside the id, drawn to the overall share as if that had been
    seen twice more.
    """
    known, rank, often = np.unique(ids, return_inverse=True, return_counts=True)
    cells, counts = np.unique(rank * answers + targets, return_counts=True)
    # of each id the most frequent answer comes last
    cells = cells[np.lexsort((counts, cells // answers))]
    best = (
        cells[np.searchsorted(cells // answers, np.arange(len(known)), side="right") - 1] % answers
    )
    overall = np.mean(targets == 1)
    usual = constant(targets, len(asked))
    share = (np.bincount(rank, weights=targets == 1) + 2 * overall) / (often + 2)
    at = np.minimum(np.searchsorted(known, asked), len(known) - 1)
    met = known[at] == asked
    return Guess(np.where(met, best[at], usual.answers), np.where(met, share[at], usual.score))


def shifted(ids: Tokens, targets: Tokens, answers: int, asked: Tokens) -> Guess:
    """The id plus the most frequent difference between answer and id, where ids are many."""
    steps, often = np.unique(targets - ids, return_counts=True)
    guessed = asked + steps[often.argmax()]
    usual = constant(targets, len(asked))
    return Guess(
        np.where((guessed >= 0) & (guessed < answers), guessed, usual.answers), usual.score
    )


def best_column(fitted: Tokens, targets: Tokens, answers: int, tested: Tokens) -> Guess:
    """The best guess from a single column of (batch, columns), by a table or a shift."""

    def reader(column: int, guess: Learner[Tokens]) -> Learner[Tokens]:
        return lambda one, right, number, other: guess(
            one[:, column], right, number, other[:, column]
        )

    guesses = (table, shifted) if answers > 2 else (table,)
    return best_of(
        [reader(column, guess) for column in range(fitted.shape[1]) for guess in guesses],
        fitted,
        targets,
        answers,
        tested,
    )


RIDGE = 10.0
"""Of half the squared weights, beside the sum of the losses of all instances."""
ITERATIONS = 40


def regression(features: Floats, targets: Tokens, answers: int, asked: Floats) -> Guess:
    """The likeliest answers for `asked` (batch, features) after a fit, and how likely 1 is."""
    import torch

    threads = torch.get_num_threads()
    # one thread adds in one order, whatever the number of cores
    torch.set_num_threads(1)
    try:
        # the bias has no ridge: centring moves no optimum and is for the optimiser alone
        mean = features.mean(axis=0)
        weights = _fit(torch.from_numpy(features - mean), torch.from_numpy(targets), answers)
        likely = torch.softmax(_logits(torch.from_numpy(asked - mean), weights), dim=1)
        return Guess(likely.argmax(dim=1).numpy(), likely[:, 1].numpy())
    finally:
        torch.set_num_threads(threads)


def _logits(x: Tensor, weights: Tensor) -> Tensor:
    """The last row of `weights` (features + 1, answers) is the bias."""
    return weights[-1].addmm(x, weights[:-1])


def _fit(x: Tensor, targets: Tensor, answers: int) -> Tensor:
    """Weights (features + 1, answers) from zero; the gradient written out takes half the time."""
    import torch

    weights = torch.zeros(x.shape[1] + 1, answers, dtype=torch.float64)
    weights.grad = torch.zeros_like(weights)
    grad = weights.grad
    rows = torch.arange(len(x))
    optimiser = torch.optim.LBFGS(
        [weights],
        max_iter=ITERATIONS,
        tolerance_grad=1e-3,
        tolerance_change=1e-6,
        line_search_fn="strong_wolfe",
    )

    def loss() -> Tensor:
        logs = torch.log_softmax(_logits(x, weights), dim=1)
        value = RIDGE / 2 * (weights[:-1] ** 2).sum() - logs[rows, targets].sum()
        # in place: the loss has been read off
        error = logs.exp_()
        error[rows, targets] -= 1
        torch.mm(x.T, error, out=grad[:-1])
        grad[:-1] += RIDGE * weights[:-1]
        grad[-1] = error.sum(dim=0)
        return value

    optimiser.step(loss)
    return weights


_MIX = 0x9E3779B97F4A7C15
"""2^64 over the golden ratio, odd: two tokens become one id without collisions that matter."""


def always(fitted: Prompts, targets: Tokens, answers: int, tested: Prompts) -> Guess:
    """Always the most frequent answer."""
    return constant(targets, len(tested))


def counts(fitted: Prompts, targets: Tokens, answers: int, tested: Prompts) -> Guess:
    """How often each token occurs in the prompt (logistic regression)."""
    ids = frequent(fitted.front, answers=answers, nothing=fitted.nothing)
    one, other = (counted(prompts.front, ids, prompts.nothing) for prompts in (fitted, tested))
    return regression(one, targets, answers, other)


def position(fitted: Prompts, targets: Tokens, answers: int, tested: Prompts) -> Guess:
    """The token at the best single place but the last, counted from either end of the prompt."""
    places = fitted.places()
    return (
        best_column(places, targets, answers, tested.places())
        if places.shape[1]
        else constant(targets, len(tested))
    )


def last_tokens(fitted: Prompts, targets: Tokens, answers: int, tested: Prompts) -> Guess:
    """The last tokens, each by itself (logistic regression), and the last two together."""
    learners = [_seen(_last, table), _last_three]
    if answers > 2:
        learners.append(_seen(_last, shifted))
    if fitted.back.shape[1] > 1:
        learners.append(_seen(_last_two, table))
    return best_of(learners, fitted, targets, answers, tested)


def nearest_key(fitted: Prompts, targets: Tokens, answers: int, tested: Prompts) -> Guess:
    """The token behind the latest earlier token whose id is nearest to that of the last one
    without being equal.
    """
    return best_column(
        _behind_nearest(fitted)[:, None], targets, answers, _behind_nearest(tested)[:, None]
    )


PROBE: dict[str, Learner[Prompts]] = {
    "constant": always,
    "counts": counts,
    "position": position,
    "last tokens": last_tokens,
    "nearest key": nearest_key,
}


def words_of(look: Callable[..., object]) -> str:
    """What a shortcut looks at, for readers: its docstring."""
    words = " ".join((look.__doc__ or "").split())
    return words[:1].lower() + words[1:].rstrip(".")


def _seen(view: Callable[[Prompts], Tokens], guess: Learner[Tokens]) -> Learner[Prompts]:
    return lambda one, right, answers, other: guess(view(one), right, answers, view(other))


def _last(prompts: Prompts) -> Tokens:
    return prompts.last


def _last_two(prompts: Prompts) -> Tokens:
    one, other = prompts.back[:, -2:].astype(np.uint64).T
    return (one * np.uint64(_MIX) + other).view(np.int64)


def _last_three(fitted: Prompts, targets: Tokens, answers: int, tested: Prompts) -> Guess:
    ids = frequent(fitted.back[:, -3:], answers=answers, nothing=fitted.nothing, groups=3)
    one, other = (
        indicated(prompts.back[:, -3:], ids, prompts.nothing) for prompts in (fitted, tested)
    )
    return regression(one, targets, answers, other)


def _behind_nearest(prompts: Prompts) -> Tokens:
    """(batch,): `nothing` where no earlier token differs from the last."""
    back = prompts.back
    last = prompts.last
    if back.shape[1] == 1:
        return np.full(len(back), prompts.nothing)
    far = np.iinfo(np.int64).max
    distance = np.abs(back - last[:, None])
    distance[(distance == 0) | (back == prompts.nothing)] = far
    # argmin takes the first of equals: reversed, the latest one
    latest = distance.shape[1] - 1 - distance[:, ::-1].argmin(axis=1)
    rows = np.arange(len(back))
    return np.where(
        distance[rows, latest] == far,
        prompts.nothing,
        back[rows, np.minimum(latest + 1, back.shape[1] - 1)],
    )
