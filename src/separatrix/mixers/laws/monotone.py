"""The law on recurrences that say they only move one way, which Theorem P rests on: measured in the
step form, under one token repeated.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from functools import partial

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
WATCHED = 12
"""Numbers of a state that are looked at again, others for each token."""
ROWS = 1024
"""Rows of one call of `step`, at most."""
OTHERS = 3
"""Further normal tokens that are repeated, and those of a small vocabulary: zeros, one-hots, an
outlier. Their opposites are, too, and that of the first: a decay with the sign of some map of the
token is negative at one of the two.
"""
COARSER = 64
"""By how much fewer values are tried with those."""
PLACES = 1100
FAR = (1 << 20, 1 << 21)
PLACED = (-30.0, -0.5, 1e-3, 0.5, 30.0, 3e4)
"""Places at which the map must be the same, and for which values of one format."""
REST = 64
"""Steps within which what stands still first does so, from its lowest values."""


@torch.no_grad()
def moves_one_way(mixer: Mixer) -> None:
    """While one token repeats, each number of the state of a mixer that declares itself monotone
    moves by a map of that number alone, the same at every place, that never falls.

    Tried over all values of bf16 and fp16, or over stretches of neighbouring ones where the state
    is large, and over as many of fp32; NaN stays NaN. Further tokens (normal ones, zeros, one-hots,
    outliers, and their opposites) are repeated in one format, with fewer values, and a few values
    are tried at each of 1,100 places and at some up to the millionth. Numbers scaled by others that
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
        _Maps(half, first.to(dtype), f"{name}, a token").check(MOST)
        # which way a decay turns, and what the time does, is no matter of formats
        if not place:
            for token in others:
                _Maps(half, token.to(dtype), f"{name}, another token").check(MOST // COARSER)
            _Maps(half, first.to(dtype), f"{name}, a token").check_places()


@torch.no_grad()
def moves_at(mixer: Mixer, tokens: Mapping[str, Tensor]) -> None:
    """The same at given tokens (1, width) by their names, in one format."""
    name, half = next(casts(mixer))
    for said, token in tokens.items():
        _Maps(half, token.to(half._like.dtype), f"{name}, token {said}").check(MOST // COARSER)


class _Maps:
    """What one more equal token makes of the recurrent parts of a state; raises LawBroken where a
    map is not as it should be.
    """

    def __init__(self, mixer: Mixer, token: Tensor, where: str) -> None:
        self.mixer, self.token, self.where = mixer, token, where
        self.place = 8 + mixer.mechanism.sizes().get("conv", 0)
        self.state = mixer.init_state(1)
        for t in range(self.place):
            _, self.state = mixer.step(token, self.state, t)
        # a user's own says that all of its state moves so
        buffers = frozenset[str]() if mixer.mechanism.origin else BUFFERS
        self.parts = {n: x.numel() for n, x in self.state.items() if n not in buffers}

    def check(self, most: int) -> None:
        """That no map falls, depends on more than its number, or loses NaN; about so many numbers
        are set.
        """
        fewest = FEWEST if most == MOST else FEWEST // 4
        every = sum(self.parts.values())
        first = self.mixer.at_rest_first & self.parts.keys()
        if first:
            self._check(first, 2 * most // every, fewest)
        self._rest(first)
        self._check(self.parts.keys() - first, most // every, fewest)

    def _rest(self, names: Collection[str]) -> None:
        """Brings these parts to where one more token leaves them as they are."""
        for name in names:
            lowest = torch.finfo(self.state[name].dtype).min
            self.state = self.state | {name: torch.full_like(self.state[name], lowest)}
        for t in range(REST):
            _, after = self.mixer.step(self.token, self.state, self.place + t)
            if all(torch.equal(after[name], self.state[name]) for name in names):
                return
            self.state = self.state | {name: after[name] for name in names}
        raise LawBroken(f"state['{min(names)}'] does not stand still within {REST} equal tokens")

    def _set(self, names: Collection[str], watched: int) -> int:
        """From now on these parts are set, and so many of their numbers are looked at. Gives how
        many they have.
        """
        self.sizes = {name: size for name, size in self.parts.items() if name in names}
        numbers = sum(self.sizes.values())
        some = draws(self.where).sample(range(numbers), min(numbers, watched))
        self.watched = torch.tensor(sorted(some))
        return numbers

    def _check(self, names: Collection[str], count: int, fewest: int) -> None:
        numbers = self._set(names, WATCHED)
        values = values_of(self.state[next(iter(names))].dtype, max(fewest, count))
        pairs = len(values) - 1
        rows = min(ROWS, len(values) // 4, max(16, count // 4))
        # in every row each number has another value, and over all rows every one
        generator = torch.Generator().manual_seed(draws(self.where).randrange(1 << 30))
        shifts = torch.randint(pairs, (numbers,), generator=generator)
        lower, upper = (part.repeat(3) for part in (values[:-1], values[1:]))
        for start in range(0, pairs, rows):
            at = torch.arange(start, start + rows)[:, None] + shifts
            # rows of a matrix product may round differently: each is compared with itself
            below, above = self._image(lower[at]), self._image(upper[at])
            fine = below.isnan() | above.isnan() | (order_of(below) <= order_of(above))
            set_to = (part[at[:, self.watched]] for part in (lower, upper))
            self._demand(fine, partial(_fall, *set_to, below, above))
            if start // rows % 2 == 0:
                # the same values of half of the numbers, beside others of the other half
                kept = torch.arange(numbers) % 2 == start // rows // 2 % 2
                beside = self._image(torch.where(kept, lower[at], lower[at.flip(0)]))
                same = _same(below, beside) | ~kept[self.watched]
                self._demand(same, lambda *_: "depends on other numbers of the state")
        lost = self._image(torch.full((rows, numbers), torch.nan))
        self._demand(lost.isnan(), lambda *_: "turns NaN into a number")

    def check_places(self) -> None:
        first = self.mixer.at_rest_first & self.parts.keys()
        self._rest(first)
        numbers = self._set(self.parts.keys() - first, MOST)
        given = torch.tensor(PLACED)[:, None].expand(-1, numbers)
        here = self._image(given)
        draw = draws("places")
        # as many between each power of two and the next
        far = [draw.randint(*FAR) >> draw.randrange(10) for _ in range(24)]
        for t in (*range(self.place + 1, PLACES), *far):
            what = f"is another one {t - self.place} tokens later"
            self._demand(_same(here, self._image(given, t)), lambda *_, what=what: what)

    def _image(self, numbers: Tensor, t: int | None = None) -> Tensor:
        """What a step makes of those that are watched (rows, watched), where all that are set are
        these (rows, numbers).
        """
        rows = len(numbers)
        # in memory of their own, for a step that writes into them
        given = {n: x.expand(rows, *x.shape[1:]).clone() for n, x in self.state.items()}
        for name, part in zip(self.sizes, numbers.split([*self.sizes.values()], 1), strict=True):
            given[name].copy_(part.reshape(given[name].shape))
        token = self.token.expand(rows, -1)
        _, after = self.mixer.step(token, given, self.place if t is None else t)
        return torch.cat([after[name].flatten(1) for name in self.sizes], 1)[:, self.watched]

    def _demand(self, fine: Tensor, what: Callable[[int, int], str]) -> None:
        """Raises LawBroken that names the first number (of any row) that is not fine."""
        if fine.all():
            return
        row, wrong = (~fine).nonzero()[0].tolist()
        every = [f"{i} of state['{n}']" for n, size in self.sizes.items() for i in range(size)]
        number = every[int(self.watched[wrong])]
        raise LawBroken(f"{self.where} repeated: the map of number {number} {what(row, wrong)}")


def _fall(low: Tensor, high: Tensor, below: Tensor, above: Tensor, row: int, number: int) -> str:
    small, large, less, more = (x[row, number].item() for x in (low, high, below, above))
    return f"falls: {large:.9g} goes to {more:.9g}, and {small:.9g} to {less:.9g}"


def _same(one: Tensor, other: Tensor) -> Tensor:
    return (order_of(one) == order_of(other)) | (one.isnan() & other.isnan())


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
