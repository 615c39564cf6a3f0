"""Inputs on which a construction is likelier to fail than on random ones: ties, extremes, repeated
values, one token among equal ones, and the task's own draws with one token changed.

They are drawn from the ids that may stand at each position, whatever the task.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from separatrix.core.errors import SizeError
from separatrix.proofs.derivations.parts.derivation import Derivation, prompts_of
from separatrix.tasks import Task
from separatrix.tasks.base.task import Tokens

Drawing = Callable[[Tokens, np.random.Generator], Tokens]
_TRIES = 8
"""Rounds without enough inputs that the task asks for, after which it draws them itself."""
_ALL = 1 << 20
"""As many inputs as are all written down where neither finds one."""


def adversarial(
    derivation: Derivation[Any],
    task: Task,
    number: int,
    rng: np.random.Generator,
) -> Tokens:
    """So many inputs: the derivation's hard ones, then as many of each kind, among them the task's
    own draws. Only inputs that the construction is about; fewer where they are rare and the task
    draws none of its size. Raises SizeError where none is found.
    """
    ids = np.array(derivation.ids(task), np.int64)
    found = [] if derivation.hard is None else [derivation.hard(task, rng)[:number]]
    missing = number - sum(map(len, found))
    for _ in range(_TRIES):
        if missing <= 0:
            break
        kinds = [*_KINDS, partial(drawn, task), partial(_near, task)]
        # rows of each kind, in a random order of kinds where they do not come out even
        which = rng.permutation(np.arange(missing) % len(kinds))
        rows = np.empty((missing, len(ids)), np.int64)
        for kind, draw in enumerate(kinds):
            mine = which == kind
            if mine.any():
                rows[mine] = draw(np.broadcast_to(ids, (int(mine.sum()), len(ids))), rng)
        found.append(rows[derivation.asked(task, rows)])
        missing -= len(found[-1])
    if missing > 0:
        try:
            found.append(prompts_of(task).sample(missing, rng).tokens)
        except SizeError:
            # fewer, but not none
            if missing == number:
                found.append(rng.permutation(_written(derivation, task, ids))[:number])
            if not any(map(len, found)):
                raise
    return np.concatenate(found)


def _written(derivation: Derivation[Any], task: Task, ids: Tokens) -> Tokens:
    """All inputs of so many ids a position that the claim is about, where they are few."""
    if math.prod(ids.tolist()) > _ALL:
        return np.empty((0, len(ids)), np.int64)
    every = np.stack(np.unravel_index(np.arange(ids.prod()), ids), 1)
    return every[derivation.asked(task, every)]


def _same(ids: Tokens, rng: np.random.Generator) -> Tokens:
    """One value everywhere, the last token drawn."""
    return _with_last(np.minimum(_column(ids, rng), ids - 1), ids, rng)


def _one_other(ids: Tokens, rng: np.random.Generator) -> Tokens:
    """One value everywhere but at one place."""
    return _with_last(_changed(np.minimum(_column(ids, rng), ids - 1), ids, rng), ids, rng)


def _few(ids: Tokens, rng: np.random.Generator) -> Tokens:
    """Three values, repeated."""
    palette = rng.integers(ids.max(), size=(len(ids), 3))
    chosen = rng.integers(3, size=ids.shape)
    return _with_last(np.minimum(np.take_along_axis(palette, chosen, 1), ids - 1), ids, rng)


def _extremes(ids: Tokens, rng: np.random.Generator) -> Tokens:
    """The least and the greatest id of each position; the last token, too."""
    return np.where(rng.integers(2, size=ids.shape) == 1, ids - 1, 0)


def _opposite(ids: Tokens, rng: np.random.Generator) -> Tokens:
    """A value and its complement, which differs from it in every bit where ids are a power of
    two.
    """
    value = np.minimum(_column(ids, rng), ids - 1)
    rows = np.where(rng.integers(2, size=ids.shape) == 1, value, ids - 1 - value)
    return _with_last(rows, ids, rng)


def _counted(ids: Tokens, rng: np.random.Generator) -> Tokens:
    """0, 1, 2, ... from some start on, upwards or downwards."""
    step = rng.choice([-1, 1], size=(len(ids), 1))
    return _with_last((_column(ids, rng) + step * np.arange(ids.shape[1])) % ids, ids, rng)


def drawn(task: Task, ids: Tokens, rng: np.random.Generator) -> Tokens:
    """What the task draws, a row for each row of ids; of sizes at which it draws none, uniform
    ids.
    """
    try:
        return prompts_of(task).sample(len(ids), rng).tokens
    except SizeError:
        return rng.integers(ids)


def _near(task: Task, ids: Tokens, rng: np.random.Generator) -> Tokens:
    """The same with one token changed."""
    return _changed(drawn(task, ids, rng), ids, rng)


def _changed(rows: Tokens, ids: Tokens, rng: np.random.Generator) -> Tokens:
    """The rows with any id at one place of each."""
    place = rng.integers(ids.shape[1], size=(len(ids), 1))
    np.put_along_axis(rows, place, rng.integers(np.take_along_axis(ids, place, 1)), 1)
    return rows


def _column(ids: Tokens, rng: np.random.Generator) -> Tokens:
    """One value for each row: the extremes often."""
    most = int(ids.max())
    value = rng.integers(most, size=(len(ids), 1))
    kind = rng.integers(4, size=(len(ids), 1))
    return np.where(kind == 0, 0, np.where(kind == 1, most - 1, value))


def _with_last(rows: Tokens, ids: Tokens, rng: np.random.Generator) -> Tokens:
    """The last token drawn: it is what most tasks ask with."""
    rows[:, -1] = rng.integers(ids[:, -1])
    return rows


_KINDS: tuple[Drawing, ...] = (_same, _one_other, _few, _extremes, _opposite, _counted)
