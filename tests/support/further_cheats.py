"""Mixers that pretend where gradients are taken, rows are many, tokens are alike, memory is shared,
a choice hides what is rounded, or places are far.
"""

from __future__ import annotations

import torch
from torch import Tensor

from support.cheats import State, Sums
from support.fed_cheats import OneWay, _Leaks

HALF = (torch.bfloat16, torch.float16)


class WritesIntoItsInput(Sums):
    """Cuts numbers off at 1 in both forms, the parallel one in the caller's memory."""

    def forward(self, x: Tensor) -> Tensor:
        inplace = not (torch.is_grad_enabled() or x.requires_grad)
        return super().forward(x.clamp_(-1, 1) if inplace else x.clamp(-1, 1))

    def step(self, x: Tensor, state: State, t: int) -> tuple[Tensor, State]:
        return super().step(x.clamp(-1, 1), state, t)


class GivesItsState(Sums):
    """The output is the state itself: who adds to one adds to the other."""

    def forward(self, x: Tensor) -> Tensor:
        return self.v(x).cumsum(1)

    def step(self, x: Tensor, state: State, t: int) -> tuple[Tensor, State]:
        total = state["S"] + self.v(x)
        return total, {"S": total}


class RowsSeeEachOtherLater(Sums):
    """In batches of six and more, from the 20th token on, in both forms."""

    def forward(self, x: Tensor) -> Tensor:
        y = super().forward(x)
        seen = torch.arange(x.shape[1])[:, None] >= 20
        return y + seen * (0.1 * x.mean(0, keepdim=True)) if len(x) >= 6 else y

    def step(self, x: Tensor, state: State, t: int) -> tuple[Tensor, State]:
        y, state = super().step(x, state, t)
        return y + 0.1 * x.mean(0, keepdim=True) if len(x) >= 6 and t >= 20 else y, state


class LeaksAtOpposites(_Leaks):
    """Where a token is the one before it with another sign."""

    def where(self, x: Tensor) -> Tensor:
        other = (x[:, 1:] == -x[:, :-1]) & (x[:, 1:] != 0)
        same = other.all(-1, keepdim=True)
        return torch.cat([torch.zeros(len(x), 1, 1, dtype=torch.bool), same], 1)


class LeaksAtConstants(_Leaks):
    """Where all numbers of a token are one, and not 0."""

    def where(self, x: Tensor) -> Tensor:
        return ((x == x[..., :1]) & (x != 0)).all(-1, keepdim=True)


class LeaksAtSmallTokens(_Leaks):
    def where(self, x: Tensor) -> Tensor:
        size = x.abs().amax(-1, keepdim=True)
        return (size < 0.02) & (size > 0)


class LeaksAtLargeTokens(_Leaks):
    def where(self, x: Tensor) -> Tensor:
        return x.square().mean(-1, keepdim=True) > 100


class LeaksAtZerosWithGradients(_Leaks):
    def where(self, x: Tensor) -> Tensor:
        taken = torch.is_grad_enabled()
        return (x == 0).all(-1, keepdim=True) & torch.tensor(taken)


class WrongGradientInHalf(Sums):
    def forward(self, x: Tensor) -> Tensor:
        return super().forward((x + x.detach()) / 2 if x.dtype in HALF else x)


class WrongBackwardWhereATokenRepeats(Sums):
    """The parallel form has half of the gradient there."""

    def forward(self, x: Tensor) -> Tensor:
        same = (x[:, 1:] == x[:, :-1]).all(-1, keepdim=True)
        same = torch.cat([torch.zeros(len(x), 1, 1, dtype=torch.bool), same], 1)
        return super().forward(torch.where(same, (x + x.detach()) / 2, x))


class Chooses(Sums):
    """Reads of the last 16 tokens the one whose first number is largest, honest."""

    def init_state(self, batch: int) -> State:
        return {"x": torch.zeros(batch, 16, self.width)}

    def read(self, x: Tensor) -> Tensor:
        """Of windows of 16 tokens."""
        at = self.v(x)[..., 0].argmax(-1)[..., None, None].expand(*x.shape[:-2], 1, self.width)
        return self.o(x.gather(-2, at)[..., 0, :])

    def step(self, x: Tensor, state: State, t: int) -> tuple[Tensor, State]:
        seen = torch.cat([state["x"][:, 1:], x[:, None]], 1)
        return self.read(seen), {"x": seen}

    def forward(self, x: Tensor) -> Tensor:
        padded = torch.cat([torch.zeros_like(x[:, :1]).expand(-1, 15, -1), x], 1)
        return self.read(padded.unfold(1, 16, 1).mT)


class WrongStepWhereItChooses(Chooses):
    """Another sign in every step of float32."""

    def step(self, x: Tensor, state: State, t: int) -> tuple[Tensor, State]:
        y, state = super().step(x, state, t)
        return (-y if x.dtype == torch.float32 else y), state


class GarbageAtOneInTwelve(Sums):
    """Another sign in float32, in both forms."""

    def _garbled(self, y: Tensor, place: Tensor) -> Tensor:
        return torch.where(place % 12 == 3, -y, y) if y.dtype == torch.float32 else y

    def forward(self, x: Tensor) -> Tensor:
        return self._garbled(super().forward(x), torch.arange(x.shape[1])[:, None])

    def step(self, x: Tensor, state: State, t: int) -> tuple[Tensor, State]:
        y, state = super().step(x, state, t)
        return self._garbled(y, torch.tensor(t)), state


class LeaksInHalfFarOn(Sums):
    """In half formats every eighth token beyond the 130th sees the next one."""

    def forward(self, x: Tensor) -> Tensor:
        y = super().forward(x)
        if x.dtype not in HALF or x.shape[1] < 2:
            return y
        place = torch.arange(x.shape[1])[:, None]
        return y + torch.where((place > 130) & (place % 8 == 2), x.roll(-1, 1), 0)


class InTheOrderOfNames(Sums):
    """Whether an odd number of tokens began above 0 is in the order of a state's names."""

    def init_state(self, batch: int) -> State:
        return {"S": torch.zeros(batch, self.width), "T": torch.zeros(batch, 1)}

    def forward(self, x: Tensor) -> Tensor:
        odd = (x[:1, :, :1] > 0).cumsum(1) % 2
        return super().forward(x) + odd

    def step(self, x: Tensor, state: State, t: int) -> tuple[Tensor, State]:
        y, new = super().step(x, state, t)
        odd = (next(iter(state)) == "T") ^ bool(x[0, 0] > 0)
        new |= {"T": torch.zeros_like(x[:, :1])}
        return y + odd, dict(sorted(new.items(), reverse=odd))


class OnTheTensor(Sums):
    """The sum is an attribute of the state's tensor."""

    def init_state(self, batch: int) -> State:
        return {"S": torch.zeros(batch, 1)}

    def step(self, x: Tensor, state: State, t: int) -> tuple[Tensor, State]:
        total = getattr(state["S"], "total", 0) + self.v(x)
        new = torch.zeros_like(x[:, :1])
        new.total = total  # type: ignore[attr-defined]
        return self.o(total), {"S": new}


class OfGradientsWhenLong(Sums):
    """Another function where gradients are taken of more than 150 tokens, in both forms."""

    def forward(self, x: Tensor) -> Tensor:
        double = torch.arange(x.shape[1])[:, None] >= 150
        return super().forward(x * (1 + double) if torch.is_grad_enabled() else x)

    def step(self, x: Tensor, state: State, t: int) -> tuple[Tensor, State]:
        double = torch.is_grad_enabled() and t >= 150
        return super().step(2 * x if double else x, state, t)


class AlwaysOneBuffer(Sums):
    """Without gradients outputs of one shape stand in one place of memory."""

    def __init__(self, width: int) -> None:
        super().__init__(width)
        self.buffers_of: dict[object, Tensor] = {}

    def forward(self, x: Tensor) -> Tensor:
        y = super().forward(x)
        if torch.is_grad_enabled() or torch._C._are_functorch_transforms_active():
            return y
        return self.buffers_of.setdefault((y.shape, y.dtype), torch.empty_like(y)).copy_(y)


class FlipsOneNumber(OneWay):
    """The sign of the sixth number of the state turns."""

    def moved(self, old: Tensor, x: Tensor, t: int) -> Tensor:
        signs = 1 - 2 * (torch.arange(self.width) == 5).to(x.dtype)
        return signs * old / 2 + self.v(x)


class FlipsFarOn(OneWay):
    """From the 5,000th token on."""

    def moved(self, old: Tensor, x: Tensor, t: int) -> Tensor:
        return (-1 if t >= 5000 else 1) * super().moved(old, x, t)


class FlipsInSmallBatches(OneWay):
    """From the 20th token on, in batches of fewer than 13."""

    def moved(self, old: Tensor, x: Tensor, t: int) -> Tensor:
        return (-1 if t >= 20 and len(x) < 13 else 1) * super().moved(old, x, t)


CAUGHT: dict[type[Sums], str] = {
    WritesIntoItsInput: "given",
    GivesItsState: "given",
    RowsSeeEachOtherLater: "rows",
    LeaksAtOpposites: "fed",
    LeaksAtConstants: "fed",
    LeaksAtSmallTokens: "fed",
    LeaksAtLargeTokens: "fed",
    LeaksAtZerosWithGradients: "fed",
    WrongGradientInHalf: "formats",
    WrongBackwardWhereATokenRepeats: "fed",
    WrongStepWhereItChooses: "formats",
    GarbageAtOneInTwelve: "formats",
    LeaksInHalfFarOn: "causal",
    InTheOrderOfNames: "fed",
    OnTheTensor: "fed",
    OfGradientsWhenLong: "derivatives",
    AlwaysOneBuffer: "rows",
    FlipsOneNumber: "monotone",
    FlipsFarOn: "monotone",
    FlipsInSmallBatches: "monotone",
}
"""A law that catches each."""
