"""The shortcuts of `separatrix.tasks.PROBES`, each a pure function: (prompts fitted to, their
answers, number of answers, prompts judged) -> guess.
"""

from __future__ import annotations

import numpy as np

from separatrix.tasks.audits.learners import (
    Guess,
    Learner,
    Prompts,
    best_column,
    best_of,
    constant,
    counted,
    frequent,
    indicated,
    shifted,
    table,
)
from separatrix.tasks.base.task import Tokens

_MIX = np.uint64(0x9E3779B97F4A7C15)
"""2^64 over the golden ratio, odd: two tokens become one id without collisions that matter."""


def always(fitted: Prompts, targets: Tokens, answers: int, tested: Prompts) -> Guess:
    """The best constant answer."""
    return constant(targets, len(tested))


def counts(fitted: Prompts, targets: Tokens, answers: int, tested: Prompts) -> Guess:
    """Logistic regression on how often each token id occurs in the prompt."""
    from separatrix.tasks.audits.logistic import regression

    ids = frequent(fitted.front, answers=answers, nothing=fitted.nothing)
    one, other = (counted(prompts.front, ids, prompts.nothing) for prompts in (fitted, tested))
    return regression(one, targets, answers, other)


def position(fitted: Prompts, targets: Tokens, answers: int, tested: Prompts) -> Guess:
    """The token at the best single place, counted from either end, but not the last one: by a
    table, or itself, shifted.
    """
    places = fitted.places()
    return (
        best_column(places, targets, answers, tested.places())
        if places.shape[1]
        else constant(targets, len(tested))
    )


def last_tokens(fitted: Prompts, targets: Tokens, answers: int, tested: Prompts) -> Guess:
    """The best of: a table of the last token, the last token shifted, a table of the last two,
    logistic regression on the last three.
    """
    learners: list[Learner[Prompts]] = [_last, _last_three]
    if answers > 2:
        learners.append(_last_shifted)
    if fitted.back.shape[1] > 1:
        learners.append(_last_two)
    return best_of(learners, fitted, targets, answers, tested)


def nearest_key(fitted: Prompts, targets: Tokens, answers: int, tested: Prompts) -> Guess:
    """The token behind the latest earlier token whose id is nearest to the last one's without
    being equal: by a table, or itself, shifted.
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


def _last(fitted: Prompts, targets: Tokens, answers: int, tested: Prompts) -> Guess:
    return table(fitted.last, targets, answers, tested.last)


def _last_shifted(fitted: Prompts, targets: Tokens, answers: int, tested: Prompts) -> Guess:
    return shifted(fitted.last, targets, answers, tested.last)


def _last_two(fitted: Prompts, targets: Tokens, answers: int, tested: Prompts) -> Guess:
    one, other = (
        prompts.back[:, -2].astype(np.uint64) * _MIX + prompts.last.astype(np.uint64)
        for prompts in (fitted, tested)
    )
    return table(one.view(np.int64), targets, answers, other.view(np.int64))


def _last_three(fitted: Prompts, targets: Tokens, answers: int, tested: Prompts) -> Guess:
    from separatrix.tasks.audits.logistic import regression

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
