"""Measurement of a user's module before anything is claimed of it: the shapes of its state, token
by token.
"""

from __future__ import annotations

import traceback
from collections.abc import Iterator
from contextlib import contextmanager
from functools import lru_cache
from itertools import accumulate
from math import prod
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor

from separatrix.errors import SeparatrixError, SizeError
from separatrix.mixers.base.mixer import Shapes

if TYPE_CHECKING:
    from separatrix.plugins.mechanism import OwnMechanism

HORIZON = 256
"""Tokens over which an undeclared cache is measured; one that no longer grows in the second half
is taken to stay.
"""
_LIBRARIES = (str(Path(__file__).resolve().parents[2]), str(Path(torch.__file__).resolve().parent))


class Probe:
    """Shapes of a module's state after 0, 1, 2, ... tokens, measured on zeros: without memory
    (device meta) where the module allows it.
    """

    def __init__(self, mechanism: OwnMechanism) -> None:
        self.mechanism = mechanism
        self._measured: list[Shapes] = []
        self._error: SeparatrixError | None = None
        self._device = "meta"
        self._start()

    def shapes(self, t: int) -> Shapes:
        """Shapes after t tokens, the batch left out. Raises SizeError where the module's own
        code fails, or keeps more than it declares.
        """
        while len(self._measured) <= min(t, HORIZON):
            self._advance()
        if t <= HORIZON or self._settled(t):
            return self._measured[min(t, HORIZON)]
        while len(self._measured) <= t:
            self._advance()
        return self._measured[t]

    def numbers(self, t: int) -> int:
        """Numbers of the state after t tokens."""
        return sum(prod(shape) for shape in self.shapes(t).values())

    def _settled(self, t: int) -> bool:
        """Whether the shapes no longer change from HORIZON / 2 on, and the declaration, if there
        is one, allows no more later.
        """
        last = self._measured[HORIZON]
        constant = all(shapes == last for shapes in self._measured[HORIZON // 2 : HORIZON])
        return constant and (
            not self.mechanism.declares
            or self.mechanism.declared(t) == self.mechanism.declared(HORIZON)
        )

    def _start(self) -> None:
        """The module and its first state; an error is kept for the first question."""
        # tensors on meta have shapes and no memory; some modules need real ones
        for self._device in ("meta", "cpu"):
            try:
                with self._running():
                    self._module = self.mechanism.build()
                    self._state = self._module.init_state(2)  # type: ignore[operator]
                    self._keep(self._state, "init_state")
                    self._error = None
                    return
            except Exception as error:
                self._error = self._told(error, "init_state")

    def _advance(self) -> None:
        if self._error is not None:
            raise self._error
        t = len(self._measured) - 1
        try:
            with self._running():
                result = self._module.step(torch.zeros(2, self.mechanism.width), self._state, t)  # type: ignore[operator]
                if not isinstance(result, tuple) or len(result) != 2:
                    raise SizeError(
                        f"{self.mechanism.name}: step returned {kind(result)}; it must return (y,"
                        " state)"
                    )
                self._state = result[1]
                self._keep(self._state, "step")
        except Exception as error:
            # on meta the error may be the fault of the device
            if self._device == "cpu":
                self._error = self._told(error, "step")
                raise self._error from None
            self._restart_on_cpu()

    def _restart_on_cpu(self) -> None:
        """Some modules look at values, which meta tensors have not: from the first token again,
        with memory.
        """
        self._measured = []
        self._device = "cpu"
        try:
            with self._running():
                self._module = self.mechanism.build()
                self._state = self._module.init_state(2)  # type: ignore[operator]
                self._keep(self._state, "init_state")
        except Exception as error:
            self._error = self._told(error, "init_state")

    def _keep(self, state: Any, method: str) -> None:
        check_state(self.mechanism.name, state, 2, method)
        shapes = {name: tuple(tensor.shape[1:]) for name, tensor in state.items()}
        numbers = sum(prod(shape) for shape in shapes.values())
        t = len(self._measured)
        if self.mechanism.declares and numbers > (declared := self.mechanism.declared(t)):
            raise SizeError(
                f"{self.mechanism.name}: its state holds {numbers:,} numbers after {t} tokens, but"
                f" cache_numbers declares {declared:,}; verdicts would be wrong: correct"
                " cache_numbers"
            )
        self._measured.append(shapes)

    def _told(self, error: Exception, method: str) -> SeparatrixError:
        if isinstance(error, SeparatrixError):
            return error
        return SizeError(f"{self.mechanism.name}: {method} raises {describe_error(error)}")

    @contextmanager
    def _running(self) -> Iterator[None]:
        with apart(0), torch.device(self._device), torch.no_grad():
            yield


@lru_cache(maxsize=256)
def probe(mechanism: OwnMechanism) -> Probe:
    """The probe of a mechanism at its sizes, measured once."""
    return Probe(mechanism)


@lru_cache(maxsize=256)
def largest_numbers(mechanism: OwnMechanism) -> tuple[int, ...]:
    """The most numbers held after at most 0, 1, ..., HORIZON tokens."""
    return tuple(accumulate((probe(mechanism).numbers(t) for t in range(HORIZON + 1)), max))


def check_state(name: str, state: Any, batch: int, method: str) -> None:
    """Raises SizeError unless `state` is a dict of floating-point tensors whose first axis is
    the batch.
    """
    if not isinstance(state, dict) or not all(isinstance(key, str) for key in state):
        raise SizeError(
            f"{name}: {method} returned {kind(state)} as its state; a state is a dict of tensors by"
            " name"
        )
    for key, tensor in state.items():
        where = f"{name}: state['{key}'] of {method}"
        if not isinstance(tensor, Tensor):
            raise SizeError(f"{where} is {kind(tensor)}; it must be a tensor")
        if not tensor.is_floating_point():
            raise SizeError(
                f"{where} is {tensor.dtype}; a state holds real floating-point numbers (step is"
                " given the number of tokens, t)"
            )
        if tensor.dim() == 0 or len(tensor) != batch:
            raise SizeError(
                f"{where} has shape {tuple(tensor.shape)}; its first axis must be the batch, here"
                f" {batch}"
            )


@contextmanager
def apart(seed: int) -> Iterator[None]:
    """Random numbers of the CPU from `seed`, and afterwards as if none had been drawn."""
    with torch.random.fork_rng(devices=[]):
        torch.default_generator.manual_seed(seed)
        yield


def describe_error(error: BaseException) -> str:
    """The error's type and last line, and the last place of the user's own code that it came
    through.
    """
    lines = [line for line in str(error).splitlines() if line.strip()]
    frames = traceback.extract_tb(error.__traceback__)
    own = [
        frame
        for frame in frames
        if not frame.filename.startswith(_LIBRARIES) and not frame.filename.startswith("<")
    ]
    place = f" ({Path(own[-1].filename).name}:{own[-1].lineno})" if own else ""
    return f"{type(error).__name__}: {lines[-1].strip()[:200] if lines else 'no message'}{place}"


def kind(value: Any) -> str:
    return (
        f"a tensor of shape {tuple(value.shape)}"
        if isinstance(value, Tensor)
        else f"{type(value).__name__} {str(value)[:40]!r}"
    )
