"""A user's `nn.Module` as a mixer.

The module has `forward(x)` (b, t, w) -> (b, t, w), `init_state(batch)` -> dict of tensors whose
first axis is the batch, and `step(x, state, t)` (b, w) -> ((b, w), state). t counts the tokens
before.
"""

from __future__ import annotations

from itertools import chain
from typing import Any

import torch
from torch import Tensor

from separatrix.core.errors import SizeError
from separatrix.mixers.base.mixer import Mixer, Shapes, State
from separatrix.mixers.base.tensors import Token, Tokens
from separatrix.mixers.plugins.mechanism import OwnMechanism, probe
from separatrix.mixers.plugins.probe import apart, check_state, kind


class OwnMixer(Mixer):
    """A registered module as a mixer. States are stored in the format of the parameters, whatever
    `step` returns them in.

    Raises SizeError for a model of another width than declared, and where the module returns what
    no mixer may.
    """

    def __init__(self, mechanism: OwnMechanism, *, width: int) -> None:
        super().__init__(mechanism, width=width)
        if width != mechanism.width:
            raise SizeError(
                f"{mechanism.name}: width={mechanism.width} stands in a model of width {width};"
                f" write {mechanism.name}(width={width})"
            )
        self.module = mechanism.build()
        self.probe = probe(mechanism)
        if not any(
            tensor.is_floating_point()
            for tensor in chain(self.module.parameters(), self.module.buffers())
        ):
            # without numbers of its own the module has no format and device to follow
            self.register_buffer("like", torch.zeros(()), persistent=False)

    def shapes(self, t: int) -> Shapes:
        return self.probe.shapes(t)

    def init_state(self, batch: int) -> State:
        return self._stored(self.module.init_state(batch), batch, 0, "init_state")  # type: ignore[operator]

    def reset(self, generator: torch.Generator) -> None:
        """The module's own `reset(generator)`, or what its constructor draws from a seed that
        the generator gives.
        """
        if callable(own := getattr(self.module, "reset", None)):
            own(generator)
            return
        seed = int(torch.randint(2**31, (), generator=generator, device=generator.device))
        # constructors draw from the global generator, which others use, too
        with apart(seed):
            fresh = self.mechanism.build().state_dict()  # type: ignore[attr-defined]
        with torch.no_grad():
            for name, tensor in self.module.state_dict().items():
                # state_dict shares memory with the module
                tensor.copy_(fresh[name])

    @property
    def chunk(self) -> int:
        """The module's own `chunk`, if it has one."""
        return getattr(self.module, "chunk", Mixer.chunk)

    @chunk.setter
    def chunk(self, size: int) -> None:  # pyright: ignore[reportIncompatibleVariableOverride]
        if hasattr(self.module, "chunk"):
            self.module.chunk = size  # type: ignore[assignment]

    @property
    def _like(self) -> Tensor:
        return next(
            tensor
            for tensor in chain(self.parameters(), self.buffers())
            if tensor.is_floating_point()
        )

    def _forward(self, x: Tokens) -> Tokens:
        return self._like_input(self.module(x), x, "forward")

    def _step(self, x: Token, state: State, t: int) -> tuple[Token, State]:
        result = self.module.step(x, state, t)  # type: ignore[operator]
        if not isinstance(result, tuple) or len(result) != 2:
            raise SizeError(
                f"{self.mechanism.name}: step returned {kind(result)}; it must return (y, state)"
            )
        return self._like_input(result[0], x, "step"), self._stored(
            result[1], len(x), t + 1, "step"
        )

    def _like_input(self, y: Any, x: Tensor, method: str) -> Tensor:
        if not isinstance(y, Tensor) or y.shape != x.shape:
            raise SizeError(
                f"{self.mechanism.name}: {method} returned {kind(y)} for x of shape"
                f" {tuple(x.shape)}; it must return that shape"
            )
        if y.dtype != x.dtype and not torch.is_autocast_enabled(x.device.type):
            raise SizeError(
                f"{self.mechanism.name}: {method} returned {y.dtype} for x of {x.dtype}; end it"
                " with y.to(x.dtype)"
            )
        return y

    def _stored(self, state: Any, batch: int, t: int, method: str) -> State:
        check_state(self.mechanism.name, state, batch, method)
        like = self._like
        state = {name: tensor.to(like) for name, tensor in state.items()}
        try:
            self._check_state(state, batch, t)
        except SizeError as error:
            raise SizeError(f"{error} (as {method} returned it)") from None
        return state
