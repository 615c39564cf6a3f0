"""Mixers that pretend where models are copied, stacked, loaded and trained, and where something
else than the numbers of a state can carry a bit.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from support.cheats import State, Sums
from support.fed_cheats import _Leaks


def _stacked() -> bool:
    return torch._C._are_functorch_transforms_active()


class HonestInCopies(_Leaks):
    """Copies, of which laws take one each, are the honest mixer."""

    def where(self, x: Tensor) -> Tensor:
        return torch.ones(())

    def __deepcopy__(self, memo: dict[int, Any]) -> Sums:
        copy = Sums(self.width).to(self.v.weight.dtype).train(self.training)
        copy.load_state_dict(self.state_dict())
        return copy


class LeaksOnceLoaded(_Leaks):
    """Weights that were read from a file leak, beyond 100 tokens."""

    loaded = False

    def where(self, x: Tensor) -> Tensor:
        return torch.tensor(self.loaded and x.shape[1] > 100)

    def _load_from_state_dict(self, *args: Any, **named: Any) -> None:
        super()._load_from_state_dict(*args, **named)
        self.loaded = True


class LeaksOnceTrained(_Leaks):
    """Once its weights were written six times, as by an optimiser."""

    def where(self, x: Tensor) -> Tensor:
        return torch.tensor(self.v.weight._version > 5)


class LeaksInLongStacks(_Leaks):
    """Beyond 200 tokens, where models are stacked."""

    def where(self, x: Tensor) -> Tensor:
        return torch.tensor(_stacked() and x.shape[1] > 200)


class WrongInputGradientInStacks(Sums):
    """A layer below one of these gets half of its gradient where models are stacked."""

    def forward(self, x: Tensor) -> Tensor:
        return super().forward((x + x.detach()) / 2 if _stacked() else x)


class WrongBackwardInLargeBatches(Sums):
    """Half of the gradient in batches of six and more, in both forms."""

    def of(self, x: Tensor) -> Tensor:
        return (x + x.detach()) / 2 if len(x) >= 6 else x

    def forward(self, x: Tensor) -> Tensor:
        return super().forward(self.of(x))

    def step(self, x: Tensor, state: State, t: int) -> tuple[Tensor, State]:
        return super().step(self.of(x), state, t)


class RowsSeeEachOtherInLargeBatches(Sums):
    """In those of 72 and more, in both forms."""

    def of(self, x: Tensor) -> Tensor:
        return x + 0.1 * x.mean(0, keepdim=True) if len(x) >= 72 else x

    def forward(self, x: Tensor) -> Tensor:
        return super().forward(self.of(x))

    def step(self, x: Tensor, state: State, t: int) -> tuple[Tensor, State]:
        return super().step(self.of(x), state, t)


class _HidesABit(Sums):
    """Whether the first token began above 0 comes to outputs, and is in no number of the state."""

    def forward(self, x: Tensor) -> Tensor:
        return super().forward(x) * torch.where(x[:, :1, :1] > 0, 1, 2)

    def step(self, x: Tensor, state: State, t: int) -> tuple[Tensor, State]:
        said = x[:, 0] > 0 if t == 0 else self.found(state, len(x))
        y, new = super().step(x, {"S": state["S"]}, t)
        return y * torch.where(said, 1, 2)[:, None], self.hidden(new, said)

    def found(self, state: State, batch: int) -> Tensor:
        raise NotImplementedError

    def hidden(self, state: State, said: Tensor) -> State:
        raise NotImplementedError


class InTheStrides(_HidesABit):
    """The bit of the first row stands in how the state lies in memory."""

    def found(self, state: State, batch: int) -> Tensor:
        return torch.full((batch,), state["S"].stride(-1) == 1)

    def hidden(self, state: State, said: Tensor) -> State:
        s = state["S"]
        return {"S": s if said[0] else s.mT.contiguous().mT}


class InWhatIsAskedFor(_HidesABit):
    """In whether gradients are asked for by the state."""

    def found(self, state: State, batch: int) -> Tensor:
        return torch.full((batch,), state["S"].requires_grad)

    def hidden(self, state: State, said: Tensor) -> State:
        return {"S": state["S"].detach().requires_grad_(bool(said[0]))}


class InTheGradient(_HidesABit):
    """In the gradient of a weight, where no law on weights looks."""

    def found(self, state: State, batch: int) -> Tensor:
        held = self.v.weight.grad
        return torch.full((batch,), held is not None and bool(held[0, 0] > 0))

    def hidden(self, state: State, said: Tensor) -> State:
        self.v.weight.grad = torch.full_like(self.v.weight, 1.0 if said[0] else -1.0)
        return state


class FutureGradient(Sums):
    """Earlier outputs have a gradient by later tokens, of which they do not hold anything."""

    def forward(self, x: Tensor) -> Tensor:
        ahead = x.flip(1).cumsum(1).flip(1)
        return super().forward(x) + 0.1 * (ahead - ahead.detach())


class WrongGradientInTraining(Sums):
    """Half of it in train mode, in both forms."""

    def of(self, x: Tensor) -> Tensor:
        return (x + x.detach()) / 2 if self.training else x

    def forward(self, x: Tensor) -> Tensor:
        return super().forward(self.of(x))

    def step(self, x: Tensor, state: State, t: int) -> tuple[Tensor, State]:
        return super().step(self.of(x), state, t)


class LeaksAfterManyCalls(_Leaks):
    """From the 10,000th on."""

    calls = 0

    def where(self, x: Tensor) -> Tensor:
        self.calls += 1
        return torch.tensor(self.calls > 10_000)


class DriftsSlowly(Sums):
    """The step takes a little more of every token than the one before: too little to be seen."""

    def step(self, x: Tensor, state: State, t: int) -> tuple[Tensor, State]:
        return super().step(x * (1 + 1e-14 * t), state, t)


class LeaksWhenFrozen(_Leaks):
    """Weights that ask for no gradient, as those of a finished model."""

    def where(self, x: Tensor) -> Tensor:
        return torch.tensor(not self.v.weight.requires_grad)


CAUGHT: dict[type[Sums], str] = {
    LeaksOnceLoaded: "saved",
    LeaksInLongStacks: "stacks",
    WrongInputGradientInStacks: "stacks",
    WrongBackwardInLargeBatches: "derivatives",
    RowsSeeEachOtherInLargeBatches: "rows",
    InTheStrides: "fed",
    InWhatIsAskedFor: "fed",
    InTheGradient: "fed",
    FutureGradient: "derivatives",
    WrongGradientInTraining: "derivatives",
    LeaksWhenFrozen: "alone",
}
"""A law that catches each; `HonestInCopies` is refused before any."""
UNSEEN: tuple[type[Sums], ...] = (LeaksOnceTrained, LeaksAfterManyCalls, DriftsSlowly)
"""What no law sees; docs/own-mixer.md says so."""
