"""State tracking, proved from the weights for prompts of every length: one layer whose tokens
reflect its state, and a head that reads the answer off the state they lead to. Parity and counts
modulo m, products of permutations, words of groups; and exchanges of neighbours after a first
permutation of any kind, where one head carries the first one, another follows the exchanges, and
the answer is the product of both.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray
from torch import nn

from separatrix.core.errors import CheckFailed
from separatrix.models.model import Model
from separatrix.proofs.arithmetic import FP32, Arithmetic
from separatrix.proofs.derivations.parts.derivation import Derivation, Derived, unrounded
from separatrix.proofs.derivations.parts.live_parts import Live, array, live_of
from separatrix.proofs.derivations.parts.reading import leads
from separatrix.proofs.derivations.parts.reflections import (
    Followed,
    Reached,
    live_heads,
    note_states,
    reach,
    updates_of,
    used_numbers,
)
from separatrix.proofs.exact import Columns, Digits, Exactly
from separatrix.proofs.machine import Array, Enclosure
from separatrix.tasks import Group, Modular, Parity, Permutation, Task
from separatrix.tasks.base.task import Tokens
from separatrix.tasks.tracking import Arrangements, arrangements

_PAIRS = 1 << 22
"""Logits that are compared at once."""


@dataclass(frozen=True, kw_only=True)
class Tracking:
    """What a construction is to follow, a head for each, and which tokens may stand where."""

    followed: tuple[Followed, ...]
    first: Tokens
    """Ids that may stand first."""
    later: Tokens
    """Ids that may stand at any later place."""
    together: Callable[[Tokens, Tokens], Tokens] | None = None
    """With two heads: the answer, given the classes of both."""


@dataclass(frozen=True)
class Inputs:
    """What tokens hold before the layer: a row for each id, at the first place and at later
    ones.
    """

    first: Array
    later: Array

    @classmethod
    def of(cls, model: Model, digits: Digits) -> Inputs:
        """Raises CheckFailed where later places differ among themselves."""
        embed = array(model.embed.weight)
        if not isinstance(model.position, nn.Embedding):
            return cls(embed, embed)
        places = model.position.weight.detach()
        if bool((places[1:] != places[1:2]).any()):
            raise CheckFailed("places after the first differ: no prompt may be longer than others")
        start, rest = (array(places[i : i + 1]) for i in (0, min(1, len(places) - 1)))
        base = Columns.of(embed)
        for place in (start, rest):
            base.plus(Columns.of(place), digits, "the residual stream")
        return cls(embed + start, embed + rest)

    def same(self) -> bool:
        return bool((self.first == self.later).all())


def derive_tracking(
    task: Task, model: Model, tracking: Tracking, arithmetic: Arithmetic
) -> Derived:
    """The proof of one layer that follows what the task asks. Raises CheckFailed, naming the part,
    where the weights do not bear it out.
    """
    (part,) = live_of(model, 1, placed=False)
    whole = Exactly.of(model)
    digits = whole.digits
    inputs = Inputs.of(model, digits)
    mixer, heads = live_heads(part, len(tracking.followed))
    o = array(mixer.o.weight).reshape(mixer.width, mixer.heads, mixer.dv)
    reached: list[Reached] = []
    written: list[Array] = []
    used = 0
    for head, followed in zip(heads, tracking.followed, strict=True):
        every = [
            updates_of(mixer, head, x, whole, part.where)
            for x in ([inputs.later] if inputs.same() else [inputs.first, inputs.later])
        ]
        keys, values = used_numbers(*every)
        if not (keys.any() and values.any()):
            raise CheckFailed(f"{part.where}: no token writes anything to the state")
        first, later = (one.only(keys, values) for one in (every[0], every[-1]))
        if len(every) == 1:
            first = later
        found = reach(first, later, followed, (tracking.first, tracking.later), part.where)
        note_states([first, later], found, digits, mixer.chunk, part.where)
        queries = later.q[tracking.later]
        if (queries != queries[:1]).any():
            raise CheckFailed(
                f"{part.where}: what is read of the state differs with the last token"
            )
        reached.append(found)
        y = np.einsum("d,sde->se", queries[0], found.states)
        Columns.of(y).through(np.eye(y.shape[1]), None, digits, f"{part.where}, what is read")
        written.append(whole.mapped(y, o[:, head, values], what=f"{part.where}, o"))
        acting = (first.b[tracking.first], later.b[tracking.later])
        used = max(used, *(int((b != 0).sum(1).max(initial=0)) for b in acting))
    margin = _read_out(model, part, inputs, tracking, reached, written, whole)
    # how many states prompts lead to, a number for each head; the binary digits that hold every
    # number and partial sum: of the weights' format, and of float32 for sums over keys and, in
    # parallel, over chunks of updates
    said = {
        "reflections": used,
        "states": " and ".join(f"{len(found.states)}" for found in reached),
        "digits": digits.own,
        "float32_digits": digits.summed,
        "chunk": mixer.chunk,
    }
    sizes = {
        "carriers": 1,
        "heads": len(heads),
        "head_dim": max(found.states.shape[1] for found in reached),
        "value_dim": max(found.states.shape[2] for found in reached),
    }
    return unrounded([(part, said)], digits, arithmetic, margin, **sizes)


def _read_out(
    model: Model,
    part: Live,
    inputs: Inputs,
    tracking: Tracking,
    reached: list[Reached],
    written: list[Array],
    whole: Exactly,
) -> Fraction:
    """The smallest lead of the right logit over all states and last tokens; `written` holds what
    the heads add in each state. Raises CheckFailed where another logit is as large, or the last
    token itself matters.
    """
    base, digits = inputs.later[tracking.later], whole.digits
    columns = Columns.of(base)
    for rows in written:
        columns = columns.plus(Columns.of(rows), digits, "the residual stream")
    weight, bias = array(model.head.weight), array(model.head.bias)
    varies = base - base[:1]
    for matrix, what in ((weight, "the head"), (part.mlp.get("up.weight"), "the MLP")):
        if matrix is not None and (varies @ matrix.T).any():
            raise CheckFailed(f"{what} reads the last token beside the state")
    smallest, worst = np.inf, -1
    after = columns
    for x, answers in _every(written, reached, tracking, base[0], len(weight)):
        if part.mlp:
            up = (part.mlp["up.weight"], part.mlp["up.bias"])
            down = (part.mlp["down.weight"], part.mlp["down.bias"])
            columns.through(*up, digits, "the MLP")
            hidden = np.maximum(x @ up[0].T + up[1], 0.0)
            added = whole.mapped(hidden, *down, what="the MLP")
            after = columns.plus(Columns.of(added), digits, "the residual stream")
            x = x + added
        after.through(weight, bias, digits, "the head")
        lead = leads(Enclosure.point(x @ weight.T + bias), answers)
        if float(lead.min()) < smallest:
            smallest, worst = float(lead.min()), int(answers[lead.argmin()])
    if smallest <= 0:
        raise CheckFailed(
            f"answer {worst} has not the largest logit in the state that it is due in"
        )
    return Fraction(smallest)


def _every(
    written: Sequence[Array],
    reached: Sequence[Reached],
    tracking: Tracking,
    base: Array,
    answers: int,
) -> Iterator[tuple[Array, Tokens]]:
    """Rows that hold what was read of every state, or of every pair of states of two heads, some at
    a time, and the answer due in each.
    """
    classes = [found.classes for found in reached]
    if tracking.together is None:
        yield base + written[0], tracking.followed[0].answers[classes[0]]
        return
    one, other = written
    rows = max(1, _PAIRS // (answers * len(other)))
    for start in range(0, len(one), rows):
        some = slice(start, start + rows)
        x = base + one[some, None] + other[None]
        due = tracking.together(classes[0][some, None], classes[1][None])
        yield x.reshape(-1, x.shape[-1]), due.ravel()


def counted(m: int, ids: int = 2) -> Tracking:
    """Sums modulo m of ids 0, 1, ...: of two bits, or of so many numbers."""
    tokens = np.arange(ids)
    numbers = np.arange(m)
    sums = Followed(first=tokens % m, step=(numbers[:, None] + tokens) % m, answers=numbers)
    return Tracking(followed=(sums,), first=tokens, later=tokens)


def products(every: Arrangements) -> Tracking:
    """Products of any of these permutations, the first acting first."""
    ids = np.arange(every.order)
    step = every.table.reshape(every.order, every.order)
    return Tracking(followed=(Followed(first=ids, step=step, answers=ids),), first=ids, later=ids)


def neighbours(k: int) -> Tokens:
    """Ids of the permutations that exchange two neighbours."""
    rows = np.tile(np.arange(k), (k - 1, 1))
    for i, row in enumerate(rows):
        row[[i, i + 1]] = i + 1, i
    return arrangements(k).ids(rows)


def exchanges_and_first(task: Permutation) -> Tracking:
    """The heads in the order in which they stand."""
    every = arrangements(task.k)
    ids = np.arange(every.order)
    table = every.table.reshape(every.order, every.order)
    exchanged = Followed(first=np.zeros_like(ids), step=table, answers=ids)
    carried = Followed(first=ids, step=np.repeat(ids[:, None], every.order, axis=1), answers=ids)
    return Tracking(
        followed=(exchanged, carried),
        first=ids,
        later=neighbours(task.k),
        # the one carried acts first
        together=lambda exchanges, start: table[start, exchanges],
    )


def tracking(task: Task) -> Tracking:
    """What a task asks to be followed by one head."""
    match task:
        case Parity():
            return counted(2)
        case Modular():
            return counted(task.m)
        case Permutation():
            return products(arrangements(task.k))
        case Group():
            if task.degree:
                return products(arrangements(task.degree, even=True))
            return counted(task.vocabulary, task.vocabulary)
    raise CheckFailed(f"{task.spec}: nothing is followed")


def derive(task: Task, model: Model, arithmetic: Arithmetic = FP32) -> Derived:
    return derive_tracking(task, model, tracking(task), arithmetic)


def derive_swaps(task: Permutation, model: Model, arithmetic: Arithmetic = FP32) -> Derived:
    if task.shift != "swaps":
        raise CheckFailed(f"{task.spec}: this construction is about the prompts of shift=swaps")
    return derive_tracking(task, model, exchanges_and_first(task), arithmetic)


def about(task: Permutation, tokens: Tokens) -> NDArray[np.bool_]:
    return np.logical_and.reduce(np.isin(tokens[:, 1:], neighbours(task.k)), axis=1)


def hard(task: Permutation, rng: np.random.Generator) -> Tokens:
    """One exchange again and again, behind any permutation."""
    rows = np.repeat(rng.choice(neighbours(task.k), size=(4, 1)), task.length, 1)
    rows[:, 0] = rng.integers(task.vocabulary, size=4)
    return rows


DERIVATIONS = (
    Derivation(name="parity", task=Parity, derive=derive),
    Derivation(name="modular", task=Modular, derive=derive),
    Derivation(name="permutation", task=Permutation, derive=derive),
    Derivation(name="group", task=Group, derive=derive),
    Derivation(name="swaps", task=Permutation, derive=derive_swaps, about=about, hard=hard),
)
