"""Recall with the question before the pairs, in three delta-rule layers: one keeps the key asked
for, one whether the last key was that, one what stood behind it. Nothing is rounded.

Each layer has one slot, which its tokens overwrite or leave. The weights are evaluated without one
rounding, and compared with what an induction over tokens needs:

    layer 1 is written by the first token alone, so that every later token reads the first one's
    value; its MLP adds numbers that depend on the token and on that value;
    layer 2 is written by keys, and by no value, so that a value reads what the key before it left;
    layer 3 is written by a value where the key before it was the one asked for, and nowhere else,
    so that its slot holds the last such value, or nothing.

No map but the MLP reads what was asked, none but layer 2's value what the MLP wrote, none but layer
3's gate what layer 2 wrote, and the head reads layer 3 alone. So layer 3's gate is a number of its
own token, and w of the last key and of the key asked for:

    w(t, q) = a_t + sum over hidden units u of c_u relu(A_tu + C_qu)

Units whose C takes the same keys apart make a group. Where in every group the level of t is the
best of all for t, another key q lacks in each group in which they differ what the next level lacks
there: that takes no table of all pairs.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from separatrix.core.errors import CheckFailed
from separatrix.mixers.base.recurrent import RecurrentMixer
from separatrix.models.model import Model
from separatrix.proofs.arithmetic import FP32, Arithmetic
from separatrix.proofs.derivations.parts.derivation import Derivation, Derived, unrounded
from separatrix.proofs.derivations.parts.live_parts import Live, array, live_of
from separatrix.proofs.derivations.parts.reading import readout
from separatrix.proofs.derivations.parts.reflections import (
    Moves,
    delta_head,
    moves,
    note_sums,
    tame,
)
from separatrix.proofs.derivations.tracked import Inputs
from separatrix.proofs.exact import Columns, Exactly, lowest
from separatrix.proofs.machine import RESIDUAL, Array, Enclosure, lowest_bits, whole
from separatrix.tasks import Recall
from separatrix.tasks.recall import PROMISED

_LEVELS = 64
"""Numbers that the keys asked for may give a hidden unit."""


def derive(task: Recall, model: Model, arithmetic: Arithmetic = FP32) -> Derived:
    """Raises CheckFailed, naming the part, where the weights do not bear the proof out."""
    if task.question != "first":
        raise CheckFailed("this construction is told the key before the pairs")
    keeper, flag, holder = parts = live_of(model, 3)
    exactly = Exactly.of(model)
    inputs = Inputs.of(model, exactly.digits)
    values, keys = inputs.later[: task.V], inputs.later[task.V :]
    first = inputs.first[task.V :]
    rows = np.concatenate([first, keys, values])
    count = len(keys)
    stream = Columns.of(rows)
    _check_read(model, parts, stream)

    found = moves(keeper, rows, 1, exactly)
    _must_keep(keeper, found, count)
    asked = _written(keeper, found.values[:count], exactly)
    stream = stream.plus(Columns.of(asked), exactly.digits, RESIDUAL)
    up, up_bias, down, down_bias = keeper.weights
    what = f"{keeper.where}, MLP"
    hidden = stream.through(up, up_bias, exactly.digits, what)
    added = hidden.through(down, down_bias, exactly.digits, what)
    stream = stream.plus(added, exactly.digits, RESIDUAL)

    found = moves(flag, rows, task.n + 1, exactly)
    _must_keep(flag, found, 2 * count)
    left = Left.of(keeper, flag, first, keys, asked)
    note_sums(flag, left.most, left.bits, task.n + 1, exactly)
    _note(flag, stream, exactly)
    brought = delta_head(flag).o[:, left.number]
    written = Columns(np.abs(brought) * left.most, lowest_bits(brought) + left.bits)
    stream = stream.plus(written, exactly.digits, RESIDUAL)

    # what layer 2 left, as the gate of layer 3 weighs it
    _note(holder, stream, exactly)
    strength = array(holder.mixer.get_parameter("b.weight"))[delta_head(holder).index]
    match, other, most, start = left.weighed(float(_product(strength, brought)))
    rows = np.concatenate([values, values, keys, first])
    more = np.repeat([match, other, most, start], [len(values), len(values), count, count])
    found = moves(holder, rows, task.n + 1, exactly, more)
    _must_keep(holder, found, len(values))
    read = _written(holder, found.values[: len(values)], exactly)
    stream = stream.plus(Columns.of(read), exactly.digits, RESIDUAL)
    stream.through(array(model.head.weight), array(model.head.bias), exactly.digits, "the head")
    if task.form not in PROMISED:
        read = np.concatenate([read, np.zeros_like(read[:1])])
    margin = readout(model, Enclosure.point(read, arithmetic), when="behind the key asked for")
    said = ("the key asked for", "whether the last key was it", "what stood behind it")
    used = [delta_head(part).value_numbers for part in parts]
    layers = [
        (part, {"keeps": what, "numbers": number})
        for part, what, number in zip(parts, said, used, strict=True)
    ]
    sizes = {"carriers": 3, "head_dim": 1, "value_dim": max(used)}
    return unrounded(layers, exactly.digits, arithmetic, margin, **sizes)


def _check_read(model: Model, parts: Sequence[Live], embedded: Columns) -> None:
    """Raises CheckFailed where a map reads what another than it may read has written, or the MLPs
    behind the other layers do anything.
    """
    keeper, flag, holder = parts
    if not keeper.mlp or any(x.any() for part in parts[1:] for x in part.mlp.values()):
        raise CheckFailed("an MLP stands behind the first of three layers, and there alone")
    _, _, down, down_bias = keeper.weights
    asked, met, found = (delta_head(part).o.any(1) for part in parts)
    compared = down.any(1) | (down_bias != 0)
    for part, name, others in (
        *((flag, name, asked | compared) for name in ("q", "k", "b", "a")),
        (flag, "v", asked),
        *((holder, name, asked | compared | met) for name in ("q", "k", "v", "a")),
        (holder, "b", asked | compared),
    ):
        maps = dict(part.mixer.named_parameters())
        if f"{name}.weight" in maps and array(maps[f"{name}.weight"])[:, others].any():
            raise CheckFailed(f"{part.where}, {name}: reads what it is not to read")
    if array(model.head.weight)[:, asked | compared | met | ~found | (embedded.size != 0)].any():
        raise CheckFailed("the head reads more than what the last layer keeps")


def _must_keep(part: Live, found: Moves, written: int) -> None:
    """Raises CheckFailed unless every token reads one slot, and so many rows, the first ones,
    overwrite it, and no other.
    """
    slot = found.reads[0]
    writes = np.where(np.arange(len(found.writes)) < written, slot, -1)
    if slot < 0 or (found.reads != slot).any() or (found.writes != writes).any():
        raise CheckFailed(f"{part.where}: what it keeps is not overwritten where it is to be")


def _written(part: Live, values: Array, exactly: Exactly) -> Array:
    """What it writes where its slot holds each of these."""
    return exactly.mapped(values, delta_head(part).o, what=f"{part.where}, o")


def _note(part: Live, stream: Columns, exactly: Exactly) -> None:
    """Notes the digits of values and gates of what any token may hold. Raises CheckFailed where
    another head may give no number.
    """
    for name in ("v", "b"):
        weight = array(part.mixer.get_parameter(f"{name}.weight"))
        stream.through(weight, None, exactly.digits, f"{part.where}, {name}")
    assert isinstance(part.mixer, RecurrentMixer)
    tame(part.mixer, stream.size[None], part.where)


class Group(NamedTuple):
    """What hidden units that tell the same keys apart add to w: (keys, levels), and the level of
    each key.
    """

    adds: Array
    own: NDArray[np.int64]


@dataclass(frozen=True)
class Left:
    """w: what layer 2 keeps of a key."""

    number: int
    """Which of its value numbers it is."""
    own: Array
    """Of each key, where it is asked for."""
    first: Array
    """The same of the first token."""
    groups: list[Group]
    most: float
    """No w is larger."""
    bits: int
    """Every w is a multiple of 2 to this power."""

    @classmethod
    def of(cls, keeper: Live, flag: Live, first: Array, keys: Array, asked: Array) -> Left:
        """`first` and `keys`: what each key holds there and later; `asked`: what is added to all
        tokens where it is asked for.
        """
        up, up_bias, down, down_bias = keeper.weights
        value = delta_head(flag).v
        (numbers,) = np.nonzero(value.any(1))
        if len(numbers) != 1:
            raise CheckFailed(f"{flag.where}, v: {len(numbers)} numbers tell keys apart, not one")
        reads = value[numbers[0]]
        factors = _product(reads, down)
        before = [_product(x, up.T) + up_bias for x in (first, keys)]
        given = _product(asked, up.T)
        constant = float(_product(reads, down_bias))

        def left(x: Array, hidden: Array) -> Array:
            return _product(x, reads) + _product(np.maximum(hidden, 0.0), factors) + constant

        groups = list(_groups(before[1], given, factors, flag.where))
        rest = left(keys, before[1] + given) - sum(
            np.take_along_axis(group.adds, group.own[:, None], 1)[:, 0] for group in groups
        )
        ends = [rest + sum(end(group.adds, axis=1) for group in groups) for end in (np.min, np.max)]
        at_first = left(first, before[0] + given)
        all_ = [rest, at_first, *(group.adds for group in groups)]
        return cls(
            number=int(numbers[0]),
            own=left(keys, before[1] + given),
            first=at_first,
            groups=groups,
            most=max(float(np.abs(x).max()) for x in (*ends, at_first)),
            bits=min(lowest(x) for x in all_),
        )

    def weighed(self, weight: float) -> tuple[float, float, float, float]:
        """Of w times a weight: the least of keys that are asked for; the most of those that are
        not; of all; and of the first token. Raises CheckFailed where another key may be as large.
        """
        own = self.own * weight
        least = np.full(len(own), np.inf)
        apart: list[NDArray[np.int64]] = []
        for group in self.groups:
            adds = group.adds * weight
            mine = np.take_along_axis(adds, group.own[:, None], 1)
            np.put_along_axis(adds, group.own[:, None], -np.inf, 1)
            gap = mine[:, 0] - adds.max(1)
            if gap.min() < 0:
                raise CheckFailed("a hidden unit likes another key better than the one asked for")
            if gap.min() > 0 and adds.shape[1] > 1:
                least = np.minimum(least, gap)
                apart.append(group.own)
        if not apart or len(np.unique(np.stack(apart, 1), axis=0)) < len(own):
            raise CheckFailed("two keys are not told apart")
        most = float(own.max())
        return (
            float(own.min()),
            float((own - least).max()),
            most,
            float((self.first * weight).max()),
        )


def _groups(before: Array, given: Array, factors: Array, where: str) -> Iterator[Group]:
    """Hidden units that see `before` of a key and `given` of the key asked for, by the keys that
    they tell apart.
    """
    units: dict[bytes, list[int]] = {}
    levels: dict[bytes, tuple[NDArray[np.int64], NDArray[np.int64]]] = {}
    for unit in np.flatnonzero(factors):
        _, at, number = np.unique(given[:, unit], return_index=True, return_inverse=True)
        if len(at) > _LEVELS:
            raise CheckFailed(f"{where}, v: a hidden unit has more than {_LEVELS} levels")
        # numbered as they first occur
        own = np.argsort(np.argsort(at))[number]
        units.setdefault(own.tobytes(), []).append(int(unit))
        levels[own.tobytes()] = own, np.sort(at)
    for name, some in units.items():
        own, at = levels[name]
        hidden = np.maximum(before[:, None, some] + given[None, at][:, :, some], 0.0)
        yield Group(_product(hidden, factors[some]), own)


def _product(left: Array, right: Array) -> Array:
    """left @ right. Raises CheckFailed where float64 may round it."""
    one, other = (x.reshape(-1, x.shape[-1]) for x in (left, right.T))
    if not whole(one, other.T):
        raise CheckFailed("numbers of too many digits are compared")
    return np.asarray(left @ right)


DERIVATIONS = (Derivation(name="question-first", task=Recall, derive=derive),)
