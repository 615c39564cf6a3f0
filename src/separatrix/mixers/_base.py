"""What every token mixer is: parameters, a parallel form (`forward`), a recurrence (`step`, the truth) and the state it carries.

Shapes: b batch, t tokens, w model width, h heads, d head dimension.
"""

from __future__ import annotations

from abc import ABC, abstractmethod

import torch
import torch.nn.functional as F
from einops import rearrange
from jaxtyping import Float
from torch import Tensor, nn

from separatrix.architecture.mechanisms import Mechanism
from separatrix.errors import SizeError

State = dict[str, Tensor]
"""What one mixer carries to later tokens: tensors whose first axis is the batch. The number of tokens seen is free."""


class Mixer(nn.Module, ABC):
    """A token mixer at the sizes of a mechanism. Abstract or final: subclasses are not subclassed."""

    chunk: int = 64
    """Tokens per chunk of the parallel form, where it has chunks; any positive value gives the same outputs."""

    def __init__(self, mechanism: Mechanism, *, width: int) -> None:
        super().__init__()
        self.mechanism, self.width = mechanism, width

    @abstractmethod
    def forward(self, x: Float[Tensor, "b t w"]) -> Float[Tensor, "b t w"]:
        """The parallel form: outputs for a whole sequence from the empty state."""

    @abstractmethod
    def init_state(self, batch: int) -> State:
        """The state before the first token."""

    @abstractmethod
    def step(self, x: Float[Tensor, "b w"], state: State, t: int) -> tuple[Float[Tensor, "b w"], State]:
        """One token of the recurrence; t counts the tokens before it."""

    def last(self, x: Float[Tensor, "b t w"]) -> Float[Tensor, "b w"]:
        """The output at the last token only; equal to `forward(x)[:, -1]`."""
        return self.forward(x)[:, -1]

    def reset(self, generator: torch.Generator) -> None:
        """Draws every parameter: matrices normal with standard deviation 1/sqrt(fan-in), gates and biases as the mechanism says."""
        for parameter in self.parameters():
            if parameter.dim() >= 2:
                fan_in_normal(parameter, generator)

    def empty(self, *shape: int) -> Tensor:
        """Zeros of the parameters' dtype and device."""
        like = next(self.parameters())
        return torch.zeros(*shape, dtype=like.dtype, device=like.device)


@torch.no_grad()
def fan_in_normal(weight: Tensor, generator: torch.Generator, gain: float = 1.0) -> None:
    """Fills a (fan-out, fan-in) matrix with normal numbers of standard deviation gain/sqrt(fan-in)."""
    weight.normal_(0.0, gain / weight.shape[-1] ** 0.5, generator=generator)


def linear(inputs: int, outputs: int) -> nn.Linear:
    """A matrix without bias."""
    return nn.Linear(inputs, outputs, bias=False)


def no_convolution(mechanism: Mechanism) -> None:
    """Raises SizeError for a mechanism with a short convolution, which no mixer has yet."""
    conv = mechanism.sizes().get("conv", 0)
    if conv:
        raise SizeError(f"{mechanism.name}(conv={conv}): the mixer has no short convolution; use conv=0 to build a model")


def split_chunks(x: Float[Tensor, "b h t d"], size: int) -> Float[Tensor, "b h n c d"]:
    """Chunks of min(size, t) tokens, the last one filled up with zeros; later than every token, they are seen by none."""
    size = min(size, x.shape[2])
    return rearrange(F.pad(x, (0, 0, 0, -x.shape[2] % size)), "b h (n c) d -> b h n c d", c=size)


def state_numbers(state: State) -> int:
    """Numbers one sequence carries in a state."""
    return sum(tensor[0].numel() for tensor in state.values())
