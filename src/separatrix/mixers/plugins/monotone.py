"""`MonotoneMixer`: a mixer whose state only moves one way while a token repeats, by construction.

    s_i = max(decay(x_i), 0) s_{i-1} + write(x_i),   y_i = read(x_i, s_i)

number by number. Decay and write are functions of the token alone, so while it repeats each number
moves by one map; and rounded(a s + b), as rounded(rounded(a s) + b), never falls in s for a >= 0.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn

from separatrix.core.errors import SizeError, SpecError
from separatrix.mixers.base.mixer import State
from separatrix.mixers.plugins.probe import kind

_COMPOSED = ("forward", "init_state", "step", "moved", "monotone")
"""What subclasses may not write anew: monotone rests on it."""


class MonotoneMixer(nn.Module):
    """A module for `register_mechanism` of which its author writes `decay(x)`, `write(x)` and
    `read(x, state)`, and declares `numbers`, how many a state has.

    x has the model width as its last axis and any axes before it; `decay` and `write` give
    (..., numbers), `read` (..., width). Where a decay is below 0 it is taken as 0; a sigmoid, a
    softplus or an exponential has none. The three must be functions of what they are given and of
    the weights: what they keep elsewhere, laws look for. Raises SpecError for a subclass that
    writes `step` or `forward` itself, and SizeError for decays and writes of another shape.
    """

    monotone = True

    def __init__(self, width: int, *, numbers: int) -> None:
        super().__init__()
        if type(numbers) is not int or numbers < 1:
            raise SizeError(f"{type(self).__name__}: numbers={numbers!r}; a state has at least 1")
        self.width = width
        self.numbers = numbers

    def __init_subclass__(cls, **named: Any) -> None:
        super().__init_subclass__(**named)
        if taken := [name for name in _COMPOSED if name in vars(cls)]:
            raise SpecError(
                f"{cls.__name__} writes {taken[0]} itself; a MonotoneMixer writes decay, write and"
                " read, and the rest is composed of them"
            )

    def decay(self, x: Tensor) -> Tensor:
        """(..., width) -> (..., numbers): what each number keeps of itself."""
        raise NotImplementedError

    def write(self, x: Tensor) -> Tensor:
        """(..., width) -> (..., numbers): what is added to each."""
        raise NotImplementedError

    def read(self, x: Tensor, state: Tensor) -> Tensor:
        """(..., width), (..., numbers) -> (..., width): the output at a token, with its state."""
        raise NotImplementedError

    def init_state(self, batch: int) -> State:
        return {"s": torch.zeros(batch, self.numbers)}

    def moved(self, x: Tensor) -> tuple[Tensor, Tensor]:
        """Decays of at least 0 and writes of some tokens."""
        found = {"decay": self.decay(x), "write": self.write(x)}
        for name, value in found.items():
            if not isinstance(value, Tensor) or value.shape != (*x.shape[:-1], self.numbers):
                raise SizeError(
                    f"{type(self).__name__}: {name} returned {kind(value)} for x of shape"
                    f" {tuple(x.shape)}; it must return {(*x.shape[:-1], self.numbers)}"
                )
        return found["decay"].clamp_min(0), found["write"]

    def step(self, x: Tensor, state: State, t: int) -> tuple[Tensor, State]:
        a, b = self.moved(x)
        s = a * state["s"] + b
        return self.read(x, s), {"s": s}

    def forward(self, x: Tensor) -> Tensor:
        """Token by token in the numbers alone: decays above 1 and of 0 leave no other form."""
        s = torch.zeros_like(x[:, 0, :1])
        states = []
        for a, b in zip(*(part.unbind(1) for part in self.moved(x)), strict=True):
            s = a * s + b
            states.append(s)
        return self.read(x, torch.stack(states, 1))
