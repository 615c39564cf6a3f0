"""Full layers that find the token at a place, and one head of theirs written so that its options
change nothing.

Places are found by an address, a key of +-1 in dimensions that no rotation turns, or by rotations
alone (theory.md, section 6, Positions): then all keys are 1 in the first number of every pair, and
the last token, at place i, asks for place p with

    s w_r (cos(a_r(p) - a_r(i)), sin(a_r(p) - a_r(i)))   in pair r, w_r = ratio^r,

a_r(j) being the angle that float32 has for place j. Rotated, that is the key at p, times s w_r.

    option     what is written
    conv       kernels 1 for the newest token, 0 for those before
    qk_norm    weights, powers of two, that make entries 4 at least where they were to be 4
    sink       -32
    gate       0, which halves the output: the output map doubles it
    forget     a bias of 1,024: gates of 1, whose logarithm is 0

Heads that read the token at an offset, whatever their own place, or the start token where there
is none: by addresses of places, or by rotations alone (theory.md, section 12, Theorem S).

Places have A bits, +-1, and by addresses every place asks for the bits of the place so far back, or
of 0. By rotations keys of letters are 1 in the first number of every pair, and every token asks for
the offset d with

    s w_r (cos(-d theta_r), sin(-d theta_r))   in pair r, w_r = ratio^r, W = sum_r w_r

which scores s W at that offset and less elsewhere, by a share `gap` of that at least. The start
token scores s W (1 - gap / 2), between the two: in a dimension that no rotation turns, by a key as
long as those of letters, so that a norm scales both alike; or in the slowest pair.

So the token asked for leads by 2 s^2 = 32 where it has an address, and by ln(n + 1) + 17 at least
where it has none.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from separatrix.constructions.parts.built import (
    SCALE,
    Named,
    Reads,
    Rows,
    Spaces,
    mixer_at,
    mlp_after,
    pick,
    put,
    signs,
    threshold,
)
from separatrix.core.numbers.rotary import Rotation
from separatrix.core.numbers.selection import Slow
from separatrix.mixers import Mixer
from separatrix.mixers.base.softmax import SoftmaxMixer
from separatrix.mixers.full import FoxMixer
from separatrix.mixers.mla import LatentMixer
from separatrix.models.model import Model
from separatrix.proofs.arithmetic import FP32, Arithmetic
from separatrix.proofs.circle import single_angles, single_frequencies
from separatrix.stacks.architecture import Architecture, Place
from separatrix.tasks import Task
from separatrix.theory.written import Slot, bits_for, slots

SUNK = -32.0
KEPT = 1024.0
_ROOM = 4096.0
"""1 over the weight that all keys together may have beside the one asked for."""


@dataclass(frozen=True)
class Asking:
    """How a head asks for places by rotations alone."""

    rotation: Rotation
    ratio: float
    scale: float
    tokens: int
    """The last of them asks."""

    @property
    def pairs(self) -> int:
        return self.rotation.dims // 2

    def queries(self, wanted: NDArray[np.int64]) -> Tensor:
        """(places, dims): what the last token asks with for each place."""
        last = single_angles(self.rotation, np.array([self.tokens - 1]))
        turn = single_angles(self.rotation, wanted) - last
        weights = self.scale * self.ratio ** np.arange(self.pairs)
        return torch.from_numpy(
            np.concatenate([weights * np.cos(turn), weights * np.sin(turn)], 1)
        ).float()


class InPairs(NamedTuple):
    """Bits of contents in slow pairs, for two of so many tokens."""

    how: Slow
    bits: int
    """Of a token, ..."""
    many: int
    """... of which so many are compared."""
    tokens: int

    def rows(self, half: int) -> NDArray[np.int64]:
        """The key dimension of each bit, token by token: two in each of the slowest pairs. Then one
        of a pair beside them.
        """
        single = self.bits - 2 * self.how.doubled
        found: list[int] = []
        for token in range(self.many):
            slowest = half - 1 - token * self.how.doubled
            for pair in range(slowest, slowest - self.how.doubled, -1):
                found += [pair, half + pair]
            next_ = half - 1 - self.many * self.how.doubled - token * single
            found += range(next_, next_ - single, -1)
        return np.array([*found, half - 1 - self.many * (self.bits - self.how.doubled)])


@dataclass(frozen=True)
class Reader:
    """A full layer, and how its head 0 finds places."""

    place: Place
    start: int = 0
    """The first key dimension that no rotation turns."""
    asking: Asking | None = None
    """None: by addresses."""
    latent: bool = False
    """Whether keys and values are maps of a latent that a norm scales."""

    def write(
        self,
        model: Model,
        space: Spaces,
        query: Reads,
        key: Reads,
        value: Named,
        target: Named,
        clean: Named | None = None,
        slow: InPairs | None = None,
    ) -> None:
        """Head 0 compares these, s times each, and adds the value of what it reads to `target`; its
        MLP makes +-1 of that in `clean`. `slow`: in the slowest pairs.
        """
        mixer = mixer_at(model, self.place, Mixer)
        asks, holds = space.rows(query, SCALE), space.rows(key, SCALE)
        if isinstance(mixer, LatentMixer):
            _write_latent(mixer, asks, holds, space[value], space[target])
        elif slow is not None:
            _write_slow(mixer, slow, asks, holds)
        else:
            assert isinstance(mixer, SoftmaxMixer)
            pick(mixer.q.weight, asks, start=self.start)
            pick(mixer.k.weight, holds, start=self.start)
            numbers = sum(one.stop - one.start for one, _ in holds)
            write_norms(mixer, numbers, math.sqrt(numbers) * SCALE)
        self._write_rest(model, space, value, target, clean)

    def write_asking(
        self, model: Model, space: Spaces, asked: Named, value: Named, target: Named, clean: Named
    ) -> None:
        """The same by rotations: head 0 asks with `asked`, and "one" is 1 at every token."""
        assert self.asking is not None
        mixer = mixer_at(model, self.place, Mixer)
        pairs, one = self.asking.pairs, space["one"]
        if isinstance(mixer, LatentMixer):
            _write_latent(mixer, [], [], space[value], space[target])
            pick(mixer.q.weight, [(space[asked], 1.0)], start=mixer.head_dim)
            assert mixer.r is not None
            mixer.r.weight[:pairs, one] = 1.0
        else:
            assert isinstance(mixer, SoftmaxMixer)
            pick(mixer.q.weight, [(space[asked], 1.0)])
            mixer.k.weight[:pairs, one] = 1.0
            weights = self.asking.ratio ** np.arange(pairs)
            # |q| |k| of the head without norms
            length = self.asking.scale * math.sqrt(pairs * float(weights @ weights))
            write_norms(mixer, pairs, math.sqrt(length))
        self._write_rest(model, space, value, target, clean)

    def _write_rest(
        self, model: Model, space: Spaces, value: Named, target: Named, clean: Named | None
    ) -> None:
        mixer = mixer_at(model, self.place, Mixer)
        if isinstance(mixer, SoftmaxMixer):
            pick(mixer.v.weight, [(space[value], 1.0)])
            put(mixer.o.weight, space[target], factor=2.0 if mixer.gate is not None else 1.0)
            settle(mixer)
        if clean is not None:
            threshold(mlp_after(model, self.place), space[target], space[clean])


def _write_slow(mixer: Mixer, slow: InPairs, query: Rows, key: Rows) -> None:
    """Queries turn to the middle of what lies between tokens, and are as much longer as their pairs
    lose on the way (selection.slow_bits).
    """
    assert isinstance(mixer, SoftmaxMixer)
    assert mixer.rotation is not None
    half = mixer.rotation.dims // 2
    rows = slow.rows(half)
    for weight, read in ((mixer.q.weight, query), (mixer.k.weight, key)):
        columns = [(at, by) for space, by in read for at in range(space.start, space.stop)]
        for row, (at, by) in zip(rows, columns, strict=False):
            weight[row, at] = by
    turn = single_frequencies(mixer.rotation) * (slow.tokens - 1) / 2
    double = np.isin(np.arange(half), rows - half)
    # of fast pairs none is used
    off = np.minimum(turn, 3.0)
    long = np.where(double, 1 / (1 - np.sin(off)), 1 / np.cos(off / 2) ** 2)
    long *= 2.0 ** math.ceil(-math.log2(slow.how.left))
    first, second = (mixer.q.weight[at : at + half].clone() for at in (0, half))
    cos, sin = (torch.from_numpy(long * f(turn)).float()[:, None] for f in (np.cos, np.sin))
    mixer.q.weight[:half] = cos * first + sin * second
    mixer.q.weight[half : 2 * half] = cos * second - sin * first
    # every bit is +-1 in one number of queries and keys
    asked, held = (float(weight[: 2 * half].norm()) for weight in (mixer.q.weight, mixer.k.weight))
    write_norms(mixer, 2 * half, math.sqrt(asked * held))


def settle(mixer: SoftmaxMixer) -> None:
    """Sink, forget gate and convolution of head 0 such that they change nothing."""
    if mixer.sink is not None:
        mixer.sink[0] = SUNK
    if isinstance(mixer, FoxMixer):
        mixer.f.bias[0] = KEPT
    if mixer.conv is not None:
        q, k, _ = mixer.channels
        for first, dims in ((0, mixer.head_dim), (q, mixer.head_dim), (q + k, mixer.dv)):
            mixer.conv.weight[first : first + dims, -1] = 1.0


def _write_latent(mixer: LatentMixer, query: Rows, key: Rows, value: slice, target: slice) -> None:
    """Head 0 of latent attention. The latent holds the key and the value, numbers of +-1 at every
    token: its norm scales all of them alike, and the output map takes that back.
    """
    pick(mixer.q.weight, query)
    pick(mixer.c.weight, [(space, 1.0) for space, _ in (*key, (value, 1.0))])
    keys = sum(space.stop - space.start for space, _ in key)
    values = value.stop - value.start
    factors = [factor for space, factor in key for _ in range(space.stop - space.start)]
    for row, factor in enumerate(factors):
        mixer.k.weight[row, row] = factor
    for row in range(values):
        mixer.v.weight[row, keys + row] = 1.0
    put(mixer.o.weight, target, factor=math.sqrt((keys + values) / mixer.latent))
    if mixer.conv is not None:
        mixer.conv.weight[:, -1] = 1.0


def write_norms(mixer: SoftmaxMixer, numbers: int, length: float) -> None:
    """Weights that make queries and keys of head 0 at least `length` long."""
    for norm, heads in ((mixer.q_norm, mixer.heads), (mixer.k_norm, mixer.kv)):
        if norm is None:
            continue
        together = mixer.head_dim * (heads if norm.whole else 1)
        # a norm leaves the square root of how many numbers it takes together
        weight = 2.0 ** math.ceil(math.log2(length / math.sqrt(together)))
        own = norm.weight if norm.weight.dim() == 1 else norm.weight[0]
        own.fill_(weight)


def readers(
    recipe: str, task: Task, stack: Architecture, arithmetic: Arithmetic = FP32
) -> list[Reader]:
    """The heads that a recipe writes, in the order of their use. Raises SizeError, saying what is
    needed, where the stack has none.
    """
    found = slots(recipe, task, stack, arithmetic.name)
    return [_reader(slot, task.length, stack) for slot in found]


def _reader(slot: Slot, tokens: int, stack: Architecture) -> Reader:
    layer, number = slot.place
    rotation, lead = stack.layers[layer][number].rotation, slot.lead
    if lead is None or rotation is None:
        return Reader(slot.place, start=slot.start, latent=slot.latent)
    # all other keys together weigh less than 1 / _ROOM once the lead is this large
    needed = math.log(_ROOM * tokens) / (lead.gap - lead.rounding)
    total = sum(lead.ratio**r for r in range(rotation.dims // 2))
    scale = 2.0 ** math.ceil(math.log2(needed / total))
    return Reader(
        slot.place, asking=Asking(rotation, lead.ratio, scale, tokens), latent=slot.latent
    )


class LookBack(NamedTuple):
    """A head of a layer, and the offset that it reads."""

    slot: Slot
    head: int
    offset: int
    asker: int | None = None
    """The offset that a token which asks, the last one, reads; None where a start token is."""

    @property
    def asked(self) -> str:
        """The space in which places ask, where they have addresses."""
        return f"asked_{self.slot.place[0]}_{self.head}"

    def asks(self, tokens: int) -> dict[str, int]:
        """That space, if there is one."""
        return {} if self.slot.lead else {self.asked: bits_for(tokens)}

    def write(self, model: Model, space: Spaces, read: slice, target: slice) -> None:
        """What the token at the offset holds in `read` is added to `target`."""
        mixer = mixer_at(model, self.slot.place, SoftmaxMixer)
        group = self.head // (mixer.heads // mixer.kv)
        query, key = (
            matrix.weight[one * mixer.head_dim : (one + 1) * mixer.head_dim]
            for matrix, one in ((mixer.q, self.head), (mixer.k, group))
        )
        at = np.arange(len(model.position.weight))
        if self.slot.lead:
            _turn_back(mixer, query, key, self, int(at[-1]), space)
        else:
            asked, places = space[self.asked], np.maximum(at - self.offset, 0)
            if self.asker is not None:
                places[-1] = at[-1] - self.asker
            model.position.weight[:, asked] = signs(places, bits_for(len(at)))
            pick(query, [(asked, SCALE)])
            pick(key, [(space["address"], SCALE)])
        pick(mixer.v.weight[group * mixer.dv : (group + 1) * mixer.dv], [(read, 1.0)])
        # a gate of 0 halves
        factor = 1.0 if mixer.gate is None else 2.0
        put(mixer.o.weight[:, self.head * mixer.dv :], target, factor=factor)


def places_of(slots: Sequence[Slot], tokens: int) -> dict[str, int]:
    """The spaces that tell such heads of places, where the prompt and the token beside it, which
    starts it or asks, are so many; those in which they ask stand beside (`LookBack.asks`).
    """
    turned = {"letter": 1, "beside": 1} if any(slot.lead for slot in slots) else {}
    return turned | ({} if all(slot.lead for slot in slots) else {"address": bits_for(tokens)})


def write_places(model: Model, space: Spaces) -> None:
    """What tokens and places hold there, but for what places ask for."""
    held = space.widths()
    if "letter" in held:
        model.embed.weight[:-1, space["letter"]] = 1.0
        model.embed.weight[-1, space["beside"]] = 1.0
    if "address" in held:
        model.position.weight[:, space["address"]] = signs(
            len(model.position.weight), held["address"]
        )


def _turn_back(
    mixer: SoftmaxMixer, query: Tensor, key: Tensor, one: LookBack, most: int, space: Spaces
) -> None:
    """A head (head_dim, width) that asks for an offset, at most so many, by rotations, or else for
    the start token, if there is one; as clearly as its slot says.
    """
    slot = one.slot
    assert slot.lead is not None
    assert mixer.rotation is not None
    letter, beside = space["letter"].start, space["beside"].start
    pairs = mixer.rotation.dims // 2
    weights = slot.lead.ratio ** np.arange(pairs)
    total = float(weights.sum())
    scale = 2.0 ** math.ceil(math.log2(slot.score / total))
    for column, offset in ((letter, one.offset), (beside, one.asker)):
        back = one.offset if offset is None else offset
        turn = -min(back, most) * single_frequencies(mixer.rotation)
        asked = np.concatenate([weights * np.cos(turn), weights * np.sin(turn)])
        query[: 2 * pairs, column] = torch.from_numpy(scale * asked).float()
    key[:pairs, letter] = 1.0
    blank = (1 - slot.lead.gap / 2) * total
    apart = 0.0
    # at offset 1 the start token is found as any other is, and one that asks is like others
    if one.asker is not None or (mixer.k_norm is not None and len(key) == slot.start):
        key[:pairs, beside] = 1.0
    elif len(key) > slot.start:
        apart = blank / math.sqrt(pairs)
        query[slot.start, [letter, beside]] = scale * apart
        key[slot.start, beside] = math.sqrt(pairs)
    else:
        key[pairs - 1, beside] = blank / float(weights[-1])
    # |q| |k| over the largest score
    long = math.sqrt(pairs * (float(weights @ weights) + apart**2)) / total
    write_norms(mixer, mixer.head_dim, math.sqrt(slot.score * long))
