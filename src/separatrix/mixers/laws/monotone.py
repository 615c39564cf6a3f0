"""The law on recurrences that say they only move one way, which Theorem P rests on: measured in the
step form, under one token repeated.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

import torch
from torch import Tensor

from separatrix.mixers import Mixer
from separatrix.mixers.base.mixer import BUFFERS
from separatrix.mixers.laws.tools import LawBroken, casts, draws, inputs, vocabulary

MOST = 1 << 21
"""Numbers of a state that are set per format and token: all values of bf16 and fp16 for a state of
up to 32 numbers, stretches of neighbouring values for larger ones.
"""
FEWEST = 512
"""Values in any case; of further tokens a quarter."""
STRETCH = 64
"""Neighbouring values in a stretch."""
AT_ZERO = 8
"""Of them around 0, where a product takes a processor up to thirty times as long."""
WATCHED = 8
"""Numbers of a state that are looked at again, from the first to the last."""
ROWS = 1024
"""Rows of one call of `step`, at most. Rows of a matrix product may round differently, so each row
is compared with itself.
"""
SIZES = {"bf16": (1.0, 30.0)}
"""Sizes of the token that is repeated, 1 in other formats."""
OTHERS = 3
"""Further normal tokens that are repeated, and those of a small vocabulary: zeros, one-hots, an
outlier. Their opposites are, too, and that of the first: a decay with the sign of some map of the
token is negative at one of the two.
"""
COARSER = 64
"""By how much fewer values are tried with those."""
PLACES = 1100
PLACED = (-30.0, -0.5, 1e-3, 0.5, 30.0, 3e4)
"""Places at which the map must be the same, and for which values of one format."""
REST = 64
"""Steps within which what stands still first does so, from its lowest values."""


@torch.no_grad()
def moves_one_way(mixer: Mixer) -> None:
    """While one token repeats, each number of the state of a mixer that declares itself monotone
    moves by a map of that number alone, the same at every place, that never falls.

    Tried over all values of bf16 and fp16, or over stretches of neighbouring ones where the state
    is large, and over as many of fp32, for eight of its numbers; NaN stays NaN. Further tokens
    (normal ones, zeros, one-hots, outliers, and their opposites) are repeated in one format, with
    fewer values, and a few values are tried at each of 1,100 places. Numbers scaled by others that
    stand still before them (a running maximum) are tried with those at rest. Buffers of
    convolutions and token shifts hold the token itself.
    """
    if not mixer.mechanism.monotone:
        return
    first, *others = inputs(mixer, 1, 1 + OTHERS, seed=81)[0].split(1)
    others += [word[None] for word in vocabulary(mixer, draws("monotone")).values()]
    others = [-first, *others, *(-token for token in others)]
    for place, (name, half) in enumerate(casts(mixer)):
        dtype = half._like.dtype
        for size in SIZES.get(name, (1.0,)):
            _Maps(half, (size * first).to(dtype), MOST, f"{name}, a token of size {size:g}")
        # which way a decay turns, and what the time does, is no matter of formats
        if not place:
            for token in others:
                _Maps(half, token.to(dtype), MOST // COARSER, f"{name}, another token")
            _Maps(half, first.to(dtype), 1, f"{name}, a token of size 1", everywhere=True)


@torch.no_grad()
def moves_at(mixer: Mixer, tokens: Mapping[str, Tensor]) -> None:
    """The same at given tokens (1, width) by their names, in one format."""
    name, half = next(casts(mixer))
    for said, token in tokens.items():
        _Maps(half, token.to(half._like.dtype), MOST // COARSER, f"{name}, token {said}")


class _Maps:
    """What one more equal token makes of every value of the recurrent parts of a state; raises
    LawBroken where a map is not as it should be.

    The values are split into as many ranges as a call has rows; each row goes through its own, and
    on to the first of the next.
    """

    def __init__(
        self, mixer: Mixer, token: Tensor, most: int, where: str, *, everywhere: bool = False
    ) -> None:
        self.mixer = mixer
        self.where = where
        self.place = 8 + mixer.mechanism.sizes().get("conv", 0)
        self.state = mixer.init_state(1)
        for t in range(self.place):
            _, self.state = mixer.step(token, self.state, t)
        # a user's own says that all of its state moves so
        buffers = frozenset[str]() if mixer.mechanism.origin else BUFFERS
        names = [name for name in self.state if name not in buffers]
        first = [name for name in names if name in mixer.at_rest_first]
        if first and not everywhere:
            # the others are of every state that is set, too: they count, but for half
            few, every = (sum(self.state[name].numel() for name in some) for some in (first, names))
            self._set(token, first, 2 * most * few // every, most)
            self._check()
        self._rest(token, first)
        self._set(token, [name for name in names if name not in first], most, most)
        if everywhere:
            self._check_places()
        else:
            self._check()

    def _rest(self, token: Tensor, names: list[str]) -> None:
        """Brings these parts to where one more token leaves them as they are."""
        for name in names:
            lowest = torch.finfo(self.state[name].dtype).min
            self.state = self.state | {name: torch.full_like(self.state[name], lowest)}
        for t in range(REST):
            _, after = self.mixer.step(token, self.state, self.place + t)
            if all(torch.equal(after[name], self.state[name]) for name in names):
                return
            self.state = self.state | {name: after[name] for name in names}
        raise LawBroken(f"state['{names[0]}'] does not stand still within {REST} equal tokens")

    def _set(self, token: Tensor, names: list[str], numbers: int, most: int) -> None:
        """From now on these parts are set, to so many numbers in all."""
        self.names = names
        self.ends = torch.tensor([self.state[n].numel() for n in names]).cumsum(0).tolist()
        every = self.ends[-1]
        self.watched = torch.linspace(0, every - 1, min(every, WATCHED)).long()
        part = torch.bucketize(self.watched, torch.tensor(self.ends), right=True)
        self.looked_at = {
            name: self.watched[part == place] - start
            for place, (name, start) in enumerate(zip(names, [0, *self.ends[:-1]], strict=True))
        }
        fewest = FEWEST if most == MOST else FEWEST // 4
        values = values_of(self.state[names[0]].dtype, max(fewest, numbers // every))
        self.rows = min(ROWS, len(values) // 4, max(16, numbers // (4 * every)))
        self.token = token.expand(self.rows, -1)
        self.each = -(-len(values) // self.rows)
        # (each + 1, rows): one column for every row, the last value that of the next column
        which = torch.arange(self.each + 1)[:, None] + self.each * torch.arange(self.rows)
        self.values = values[which.clamp_max(len(values) - 1)]

    def _check(self) -> None:
        """That no map falls, depends on more than its number, or loses NaN."""
        alike = torch.zeros(self.ends[-1], dtype=torch.long)
        alone = self._images(alike)
        self._never_falls(alone)
        # every number meets every value of a row again, beside other values of the others
        shifts = 1 + torch.arange(self.ends[-1]) % self.each
        count = self.each + 1
        mixed = self._images(shifts)
        order = (torch.arange(count)[:, None] + shifts[self.watched]) % count
        beside = alone.gather(0, order[:, None].expand_as(alone))
        self._same(mixed, beside, "depends on other numbers of the state")
        lost = self._image(torch.full((self.rows, self.ends[-1]), torch.nan), self.place)
        self._demand(lost.isnan().all(0), lambda k: "turns NaN into a number")

    def _check_places(self) -> None:
        """That the map of some values is the same at every later place."""
        numbers = torch.tensor(PLACED)[:, None].expand(-1, self.ends[-1])
        self.rows = len(PLACED)
        self.token = self.token[: self.rows]
        here = self._image(numbers, self.place)[None]
        for t in range(self.place + 1, PLACES):
            there = self._image(numbers, t)[None]
            self._same(there, here, f"is another one {t - self.place} tokens later")

    def _images(self, shifts: Tensor) -> Tensor:
        """What one step makes of all values (each + 1, rows, watched), where number k is set to
        the value that stands so many places further on.
        """
        count = self.each + 1
        columns = self.values.T
        orders = ((i + shifts) % count for i in range(count))
        return torch.stack([self._image(columns.index_select(1, o), self.place) for o in orders])

    def _image(self, numbers: Tensor, t: int) -> Tensor:
        """The same of one state for every row (rows, numbers)."""
        state = {n: x.expand(self.rows, *x.shape[1:]) for n, x in self.state.items()}
        start = 0
        for name, end in zip(self.names, self.ends, strict=True):
            state[name] = numbers[:, start:end].reshape(state[name].shape).to(state[name].dtype)
            start = end
        # in memory of their own, for a step that writes into them
        given = {n: x if n in self.names else x.clone() for n, x in state.items()}
        _, after = self.mixer.step(self.token, given, t)
        found = [after[name].flatten(1)[:, some] for name, some in self.looked_at.items()]
        return torch.cat(found, 1)

    def _never_falls(self, images: Tensor) -> None:
        keys = order_of(images)
        # NaN is left out: what lies below it still bounds what lies above
        known = torch.where(images.isnan(), torch.iinfo(keys.dtype).min, keys)
        fine = images[1:].isnan() | (keys[1:] >= known.cummax(0).values[:-1])
        self._demand(fine.flatten(0, 1).all(0), lambda k: self._fall(fine[..., k], images[..., k]))

    def _fall(self, fine: Tensor, image: Tensor) -> str:
        place, row = (~fine).nonzero()[0].tolist()
        below, above = self.values[place : place + 2, row].tolist()
        return (
            f"falls: {above:.9g} goes to {image[place + 1, row].item():.9g}, and {below:.9g} or"
            " less goes higher"
        )

    def _same(self, one: Tensor, other: Tensor, what: str) -> None:
        same = (order_of(one) == order_of(other)) | (one.isnan() & other.isnan())
        self._demand(same.flatten(0, 1).all(0), lambda k: what)

    def _demand(self, fine: Tensor, what: Callable[[int], str]) -> None:
        """Raises LawBroken that names the first watched number that is not fine."""
        if fine.all():
            return
        place = int((~fine).nonzero()[0])
        wrong = int(self.watched[place])
        part = next(i for i, end in enumerate(self.ends) if wrong < end)
        number = wrong - (self.ends[part - 1] if part else 0)
        raise LawBroken(
            f"{self.where} repeated: the map of number {number} of state['{self.names[part]}']"
            f" {what(place)}"
        )


_NARROW = {2: torch.int16, 4: torch.int32, 8: torch.int64}


def values_of(dtype: torch.dtype, most: int) -> Tensor:
    """Values of a format in ascending order, infinities and both zeros among them: all of them, or
    about `most`, in stretches of neighbours, every other of which begins where the lower half of
    the bits is 0 and so, in float32, at a value of bf16.
    """
    infinity = int(order_of(torch.tensor([torch.inf], dtype=dtype)))
    low, count = -1 - infinity, 2 * infinity + 2
    keys = torch.arange(low, low + min(count, most))
    if count > most:
        stretches = max(2, most // STRETCH)
        starts = low + torch.linspace(0, 1, stretches, dtype=torch.float64).mul(count - 1).long()
        coarse = 1 << (4 * dtype.itemsize)
        starts[::2] = starts[::2] // coarse * coarse
        starts[1::2] += draws("values").randrange(coarse)
        # both zeros, and both infinities, are among them
        ends = torch.tensor([low, infinity + 1 - STRETCH])
        keys = (torch.cat([starts, ends])[:, None] + torch.arange(STRETCH)).clamp(low, infinity)
        keys = torch.cat([keys.flatten(), torch.arange(-AT_ZERO // 2, AT_ZERO // 2)]).unique()
    narrow = _NARROW[dtype.itemsize]
    bits = torch.where(keys < 0, torch.iinfo(narrow).min - 1 - keys, keys)
    return bits.to(narrow).view(dtype).float()


def order_of(x: Tensor) -> Tensor:
    """Integers in the order of floats, -0 below 0."""
    narrow = _NARROW[x.element_size()]
    bits = x.contiguous().view(narrow).long()
    return torch.where(bits < 0, -1 - (bits - torch.iinfo(narrow).min), bits)
