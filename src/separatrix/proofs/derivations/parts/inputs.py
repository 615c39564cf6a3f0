"""Inputs on which a construction is likelier to fail than on random ones: ties, extremes, repeated
values, one token among equal ones, and those that its proof is closest to failing on.

They are drawn from the ids that may stand at each position, whatever the task.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from separatrix.core.errors import SizeError
from separatrix.proofs.derivations.parts.derivation import Derivation, Derived
from separatrix.proofs.derivations.parts.generation import prompts_of
from separatrix.proofs.derivations.parts.queries import Lead
from separatrix.tasks import Task
from separatrix.tasks.base.task import Tokens

Drawing = Callable[[Tokens, np.random.Generator], Tokens]
_TRIES = 8
"""Rounds without enough inputs that the task asks for, after which it draws them itself."""


def adversarial(
    derivation: Derivation[Any],
    task: Task,
    derived: Derived | None,
    number: int,
    rng: np.random.Generator,
) -> Tokens:
    """So many inputs: those closest to failing first, then as many of each kind, among them the
    task's own draws. Only inputs that the construction is about; fewer where they are rare and the
    task draws none of its size. Without a proof none is known to be close to failing. Raises
    SizeError where none is found.
    """
    ids = np.array(derivation.ids(task), np.int64)
    closest = np.empty((0, len(ids)), np.int64) if derived is None else derived.closest(rng)
    found = [closest[:number]]
    missing = number - len(found[0])
    for _ in range(_TRIES):
        if missing <= 0:
            break
        kinds = [*_KINDS, _near(closest), lambda ids, rng: drawn(task, ids, rng)]
        # rows of each kind, in a random order of kinds where they do not come out even
        which = rng.permutation(np.arange(missing) % len(kinds))
        rows = np.empty((missing, len(ids)), np.int64)
        for kind, draw in enumerate(kinds):
            mine = which == kind
            if mine.any():
                rows[mine] = draw(np.broadcast_to(ids, (int(mine.sum()), len(ids))), rng)
        if derivation.asked is not None:
            rows = rows[derivation.asked(task, rows)]
        found.append(rows)
        missing -= len(rows)
    if missing > 0:
        try:
            found.append(prompts_of(task).sample(missing, rng).tokens)
        except SizeError:
            # fewer, but not none
            if missing == number:
                raise
    return np.concatenate(found)


def _same(ids: Tokens, rng: np.random.Generator) -> Tokens:
    """One value everywhere, the last token drawn."""
    return _with_last(np.minimum(_column(ids, rng), ids - 1), ids, rng)


def _one_other(ids: Tokens, rng: np.random.Generator) -> Tokens:
    """One value everywhere but at one place."""
    rows = np.minimum(_column(ids, rng), ids - 1)
    place = rng.integers(ids.shape[1], size=(len(ids), 1))
    other = rng.integers(np.take_along_axis(ids, place, 1))
    np.put_along_axis(rows, place, other, 1)
    return _with_last(rows, ids, rng)


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


def _near(closest: Tokens) -> Drawing:
    """Those closest to failing, with one token changed."""

    def draw(ids: Tokens, rng: np.random.Generator) -> Tokens:
        if not len(closest):
            return _same(ids, rng)
        rows = closest[rng.integers(len(closest), size=len(ids))].copy()
        place = rng.integers(ids.shape[1], size=(len(ids), 1))
        np.put_along_axis(rows, place, rng.integers(np.take_along_axis(ids, place, 1)), 1)
        return rows

    return draw


def drawn(task: Task, ids: Tokens, rng: np.random.Generator) -> Tokens:
    """What the task draws, a row for each row of ids; of sizes at which it draws none, uniform
    ids.
    """
    try:
        return prompts_of(task).sample(len(ids), rng).tokens
    except SizeError:
        return rng.integers(ids)


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


@dataclass(frozen=True, kw_only=True)
class Near:
    """Where one hop is closest to failing: at a last token and a value fetched before it, with a
    rival place, or at an answer to be read off. What is None is free.
    """

    hop: int = 0
    token: int | None = None
    value: int | None = None
    rivals: range = range(0)
    answer: int | None = None

    @classmethod
    def of(cls, lead: Lead, block: int = 1) -> Near:
        """Keys of the lead are blocks of that many places."""
        rivals = range(lead.rival * block, lead.rival * block + block)
        return cls(token=lead.token, value=lead.value, rivals=rivals)

    def at(self, hop: int) -> Near:
        return replace(self, hop=hop)


def nearest(
    task: Task, hops: Sequence[Any], near: list[Near], ids: list[int], rng: np.random.Generator
) -> Tokens:
    """One input for each, drawn but for the last token, the values on the way to the hop, and its
    rival places, which hold another value than the right one. `ids` are the ids of each position.
    """
    inputs = task.sample(len(near), rng).tokens.copy()
    for row, wish in zip(inputs, near, strict=True):
        if wish.token is not None:
            row[-1] = hops[0].first + wish.token
        value = 0
        for number, hop in enumerate(hops[: wish.hop + 1]):
            place = int(hop.place(hop.part[row[-1] - hops[0].first], value))
            # the hop before the one in question must fetch the value it was close to failing at
            if number == wish.hop - 1 and wish.value is not None:
                row[place] = wish.value
            if number == wish.hop:
                if wish.answer is not None:
                    row[place] = wish.answer
                for rival in wish.rivals:
                    if rival not in (place, len(row) - 1):
                        row[rival] = _other(int(row[place]), ids[rival])
            value = int(row[place])
    return inputs


def _other(value: int, ids: int) -> int:
    """Of ids 0..ids-1 the complement of `value`, or the last that is another; 0 where there is but
    one.
    """
    complement = ids - 1 - value
    if complement >= 0 and complement != value:
        return complement
    return ids - 1 if ids - 1 != value else max(0, ids - 2)
