"""Mixers that pretend where independent normal numbers do not look: at tokens that repeat, at odd
lengths, in other batches, on more threads, and where each number of a state should move one way.
"""

from __future__ import annotations

import torch
from torch import Tensor

from support.cheats import State, Sums


class _Leaks(Sums):
    """The parallel form sees the mean of all tokens where `where` is true."""

    def where(self, x: Tensor) -> Tensor:
        """One truth value per sequence and token, or fewer axes."""
        raise NotImplementedError

    def forward(self, x: Tensor) -> Tensor:
        leak = 0.1 * x.mean(1, keepdim=True)
        return super().forward(x) + leak * self.where(x).to(x.dtype)


class LeaksWhereATokenRepeats(_Leaks):
    def where(self, x: Tensor) -> Tensor:
        same = (x[:, 1:] == x[:, :-1]).all(-1, keepdim=True)
        return torch.cat(
            [
                torch.zeros_like(same[:, :1])
                if same.shape[1]
                else torch.zeros(len(x), 1, 1, dtype=torch.bool),
                same,
            ],
            1,
        )


class LeaksAtZeros(_Leaks):
    def where(self, x: Tensor) -> Tensor:
        return (x == 0).all(-1, keepdim=True)


class LeaksAtOneHots(_Leaks):
    def where(self, x: Tensor) -> Tensor:
        return ((x != 0).sum(-1, keepdim=True) == 1) & (x.sum(-1, keepdim=True) == 1)


class LeaksAtOutliers(_Leaks):
    def where(self, x: Tensor) -> Tensor:
        return x.abs().amax(-1, keepdim=True) > 5


class LeaksWhereAnEarlierTokenComesAgain(_Leaks):
    """At a token that stood somewhere before, not right before it."""

    def where(self, x: Tensor) -> Tensor:
        same = (x[:, :, None] == x[:, None]).all(-1).tril(-2)
        return same.any(-1, keepdim=True)


class _OfTheLength(_Leaks):
    low, high = 0, 0

    def where(self, x: Tensor) -> Tensor:
        tokens = x.shape[1]
        return torch.tensor(tokens % 2 == 1 and self.low <= tokens <= self.high)


class LeaksAtShortOddLengths(_OfTheLength):
    low, high = 2, 39


class LeaksAtOddLengths(_OfTheLength):
    low, high = 201, 599


class LeaksAtLongLengths(_OfTheLength):
    low, high = 1101, 1 << 40

    def where(self, x: Tensor) -> Tensor:
        return torch.tensor(x.shape[1] >= self.low)


class _OfTheBatch(Sums):
    """Rows see each other in some batches, in both forms."""

    def seen(self, batch: int) -> bool:
        raise NotImplementedError

    def forward(self, x: Tensor) -> Tensor:
        y = super().forward(x)
        return y + 0.1 * x.mean(0, keepdim=True) if self.seen(len(x)) else y

    def step(self, x: Tensor, state: State, t: int) -> tuple[Tensor, State]:
        y, state = super().step(x, state, t)
        return y + 0.1 * x.mean(0, keepdim=True) if self.seen(len(x)) else y, state


class SixToEightSeeEachOther(_OfTheBatch):
    def seen(self, batch: int) -> bool:
        return 6 <= batch <= 8


class TenSeeEachOther(_OfTheBatch):
    def seen(self, batch: int) -> bool:
        return batch >= 10


class LeaksInHalfAtPlaces(Sums):
    """Every token at a place 50 modulo 64 sees the next one, in half formats."""

    def forward(self, x: Tensor) -> Tensor:
        y = super().forward(x)
        if x.dtype not in (torch.bfloat16, torch.float16) or x.shape[1] < 2:
            return y
        place = torch.arange(x.shape[1])[:, None]
        return y + torch.where(place % 64 == 50, x.roll(-1, 1), 0)


class LeaksOnThreads(_Leaks):
    def where(self, x: Tensor) -> Tensor:
        return torch.tensor(torch.get_num_threads() > 1)


class OverwritesKeptStates(Sums):
    """After 512 tokens it writes into the state that it is given."""

    def step(self, x: Tensor, state: State, t: int) -> tuple[Tensor, State]:
        y, new = super().step(x, state, t)
        if t >= 512 and not torch.is_grad_enabled():
            state["S"].copy_(new["S"])
        return y, new


class HidesAtRareTokens(Sums):
    """It reads a sum on self, at tokens with a number beyond 4 only; the state is this token's."""

    total: Tensor

    def forward(self, x: Tensor) -> Tensor:
        own = self.v(x)
        return self.o(torch.where(self._rare(x), own.cumsum(1), own))

    def step(self, x: Tensor, state: State, t: int) -> tuple[Tensor, State]:
        own = self.v(x)
        self.total = own if t == 0 else getattr(self, "total", 0) + own
        return self.o(torch.where(self._rare(x), self.total, own)), {"S": own}

    def _rare(self, x: Tensor) -> Tensor:
        return x.abs().amax(-1, keepdim=True) > 5


class GarbageInSomeChannels(Sums):
    """Six of sixteen channels are of another function in half formats, in both forms."""

    def _garbled(self, y: Tensor) -> Tensor:
        if y.dtype not in (torch.bfloat16, torch.float16):
            return y
        some = torch.arange(y.shape[-1]) < y.shape[-1] * 6 // 16
        return torch.where(some, -y, y)

    def forward(self, x: Tensor) -> Tensor:
        return self._garbled(super().forward(x))

    def step(self, x: Tensor, state: State, t: int) -> tuple[Tensor, State]:
        y, state = super().step(x, state, t)
        return self._garbled(y), state


class GarbageWhereItChooses(Sums):
    """Every fourth token has another sign in float32, in both forms, as if a choice tipped over."""

    def _garbled(self, y: Tensor, place: Tensor) -> Tensor:
        return torch.where(place % 4 == 3, -y, y) if y.dtype == torch.float32 else y

    def forward(self, x: Tensor) -> Tensor:
        return self._garbled(super().forward(x), torch.arange(x.shape[1])[:, None])

    def step(self, x: Tensor, state: State, t: int) -> tuple[Tensor, State]:
        y, state = super().step(x, state, t)
        return self._garbled(y, torch.tensor(t)), state


class LeaksALittleInFloat16(_Leaks):
    """Less than four roundings of the sums that stand at the end."""

    def where(self, x: Tensor) -> Tensor:
        return torch.tensor(x.dtype == torch.float16)


class LeaksAtMultiplesOf61(_Leaks):
    def where(self, x: Tensor) -> Tensor:
        return torch.tensor(x.shape[1] % 61 == 0)


class OfTheMemory(Sums):
    """The step gives half as much again where its input lies strided in memory."""

    def step(self, x: Tensor, state: State, t: int) -> tuple[Tensor, State]:
        y, state = super().step(x, state, t)
        return y if x.is_contiguous() else 1.5 * y, state


class EqualRowsSeeEachOther(Sums):
    def forward(self, x: Tensor) -> Tensor:
        same = (x[:, None] == x).all(-1).all(-1).sum(1)
        return super().forward(x) * same[:, None, None]


class NaNReachesOtherRows(Sums):
    def forward(self, x: Tensor) -> Tensor:
        return super().forward(x) + 0 * x.sum()


CAUGHT: dict[type[Sums], str] = {
    LeaksWhereATokenRepeats: "fed",
    LeaksAtZeros: "fed",
    LeaksAtOneHots: "fed",
    LeaksAtOutliers: "fed",
    LeaksWhereAnEarlierTokenComesAgain: "fed",
    LeaksAtShortOddLengths: "fed",
    LeaksAtOddLengths: "fed",
    LeaksAtLongLengths: "fed",
    SixToEightSeeEachOther: "rows",
    TenSeeEachOther: "rows",
    LeaksInHalfAtPlaces: "fed",
    LeaksOnThreads: "fed",
    OverwritesKeptStates: "cache",
    HidesAtRareTokens: "fed",
    GarbageInSomeChannels: "formats",
    GarbageWhereItChooses: "formats",
    LeaksALittleInFloat16: "causal",
    LeaksAtMultiplesOf61: "fed",
    OfTheMemory: "alone",
    EqualRowsSeeEachOther: "alone",
    NaNReachesOtherRows: "NaN",
}
"""A law that catches each."""


class OneWay(Sums):
    """S <- S / 2 + V x, honest."""

    monotone = True

    def moved(self, old: Tensor, x: Tensor, t: int) -> Tensor:
        return old / 2 + self.v(x)

    def step(self, x: Tensor, state: State, t: int) -> tuple[Tensor, State]:
        new = self.moved(state["S"], x, t)
        return self.o(new), {"S": new}

    def forward(self, x: Tensor) -> Tensor:
        state = {"S": torch.zeros_like(x[:, 0])}
        outputs = []
        for t, token in enumerate(x.unbind(1)):
            y, state = self.step(token, state, t)
            outputs.append(y)
        return torch.stack(outputs, 1)


class _Flips(OneWay):
    """The state's sign turns at some tokens."""

    def at(self, x: Tensor) -> Tensor:
        raise NotImplementedError

    def moved(self, old: Tensor, x: Tensor, t: int) -> Tensor:
        return torch.where(self.at(x), -old, super().moved(old, x, t))


class FlipsAtTwoTokens(_Flips):
    """At zeros and at one-hots, the two tokens of a sequence of bits."""

    def at(self, x: Tensor) -> Tensor:
        return (x != 0).sum(-1, keepdim=True) <= 1


class FlipsAtARareToken(_Flips):
    def at(self, x: Tensor) -> Tensor:
        return x.abs().amax(-1, keepdim=True) > 5


class FlipsAtPlaces(OneWay):
    """Every 300th token turns the sign."""

    def moved(self, old: Tensor, x: Tensor, t: int) -> Tensor:
        return (-1 if t % 300 == 299 else 1) * super().moved(old, x, t)


class FlipsAtLowBits(OneWay):
    """The order is turned by bits of float32 that no number of bfloat16 and no neighbour has."""

    def moved(self, old: Tensor, x: Tensor, t: int) -> Tensor:
        new = super().moved(old, x, t)
        if old.dtype != torch.float32:
            return new
        low = old.view(torch.int32) & 0xFFFF
        return torch.where((low > 0x8000) & (low < 0xF000), -new, new)


MONOTONE: tuple[type[OneWay], ...] = (
    FlipsAtTwoTokens,
    FlipsAtARareToken,
    FlipsAtPlaces,
    FlipsAtLowBits,
)
"""The law `monotone` catches each."""


class FlipsAtOneToken(_Flips):
    """At one drawn token, of those that no law can guess."""

    def at(self, x: Tensor) -> Tensor:
        return ((x - 0.3125).abs() < 1e-3).all(-1, keepdim=True)


class LeaksAtOneToken(_Leaks):
    def where(self, x: Tensor) -> Tensor:
        return ((x - 0.3125).abs() < 1e-3).all(-1, keepdim=True)


UNSEEN: tuple[type[Sums], ...] = (LeaksAtOneToken, FlipsAtOneToken)
"""What no law sees; docs/own-mixer.md says so."""
