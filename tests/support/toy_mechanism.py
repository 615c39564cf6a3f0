"""Leaky sums: h_i = a h_{i-1} + V x_i with one learned decay a per channel, y_i = O h_i.

A mechanism as a contributor adds one: its sizes, its mixer, and an entry in each registry.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

import torch
from jaxtyping import Float
from torch import Tensor, nn

from separatrix.core.numbers.growth import Growth
from separatrix.mixers.base.mixer import Mixer, Shapes, State, linear, wide
from separatrix.stacks.mechanisms.base import Facts, Mechanism, Varied, integer
from separatrix.stacks.mechanisms.recurrent_state import Stateful


@dataclass(frozen=True, kw_only=True)
class Leak(Stateful, Mechanism):
    """Leaky sums."""

    name: ClassVar[str] = "leak"
    title: ClassVar[str] = "leaky sums"
    symbol: ClassVar[str] = "L"
    source: ClassVar[str] = "a test of this program"
    facts: ClassVar[Facts] = Facts(carried="width", elsewhere="nowhere")
    diagonal: ClassVar[bool] = True

    width: int = integer(16, "channels")

    @property
    def inner_width(self) -> int:
        return self.width

    @property
    def _handed_on(self) -> int:
        return self.width

    def varied_sizes(self) -> Mapping[Varied, str]:
        return {"state": "width"}

    @property
    def state_numbers(self) -> int:
        return self.width

    def work(self) -> Growth:
        return Growth(2 * self.width)


class LeakMixer(Mixer):
    """Leaky sums. Parallel form: a product with the powers of a below the diagonal."""

    def __init__(self, mechanism: Leak, *, width: int) -> None:
        super().__init__(mechanism, width=width)
        self.v = linear(width, mechanism.width)
        self.o = linear(mechanism.width, width)
        self.a = nn.Parameter(torch.zeros(mechanism.width))

    def reset(self, generator: torch.Generator) -> None:
        super().reset(generator)
        with torch.no_grad():
            self.a.zero_()

    def shapes(self, t: int) -> Shapes:
        return {"h": (len(self.a),)}

    @property
    def _log_a(self) -> Tensor:
        return nn.functional.logsigmoid(wide(self.a))

    def _forward(self, x: Float[Tensor, "b t w"]) -> Float[Tensor, "b t w"]:
        place = torch.arange(x.shape[1], device=x.device)
        ago = place[:, None] - place
        powers = (ago.clamp(min=0)[..., None] * self._log_a).exp()  # t t c
        weights = torch.where(ago[..., None] >= 0, powers, 0.0)
        h = torch.einsum("ijc,bjc->bic", weights, wide(self.v(x)))
        return self.o(h.to(x.dtype))

    def _step(
        self, x: Float[Tensor, "b w"], state: State, t: int
    ) -> tuple[Float[Tensor, "b w"], State]:
        h = self._log_a.exp() * wide(state["h"]) + wide(self.v(x))
        return self.o(h.to(x.dtype)), self._store(h=h)
