"""A registered module as a mechanism: its sizes, and what it carries, declared and compared with
its state, or measured: the shapes of its state, token by token, before anything is claimed of it.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from functools import lru_cache
from itertools import accumulate
from math import prod
from typing import Any, ClassVar

import torch
from torch import nn

from separatrix.core.errors import SeparatrixError, SizeError
from separatrix.core.numbers.bits import Bits
from separatrix.mixers.base.mixer import Shapes
from separatrix.mixers.plugins.probe import apart, check_state, describe_error, kind
from separatrix.mixers.plugins.signature import lacks
from separatrix.stacks.mechanisms import CacheItem, LayerKind, Mechanism
from separatrix.stacks.mechanisms.base import Reach, integer

DEFAULT_WIDTH = 256
HORIZON = 256
"""Tokens over which an undeclared cache is measured; one that no longer grows in the second half
is taken to stay.
"""
FAR = 1 << 62
"""Tokens by which a cache that stops growing has stopped."""
COMPARED = HORIZON
"""Tokens over which a declaration is compared with the state before anything is claimed."""


@dataclass(frozen=True, kw_only=True)
class OwnMechanism(Mechanism):
    """A registered module's sizes and cache. `width`, the model width, is a size like others,
    since states often depend on it.
    """

    grows_as_told: ClassVar[bool] = False

    maker: ClassVar[Callable[..., nn.Module]]
    declaration: ClassVar[Callable[..., int] | None] = None
    operations: ClassVar[Callable[..., int] | None] = None

    width: int = integer(DEFAULT_WIDTH, "model width")

    @property
    def group(self) -> LayerKind:  # type: ignore[override]
        """Recurrent where the cache stops growing."""
        return "other" if self._grows else "recurrent"

    @property
    def inner_width(self) -> int:
        return self.width

    @property
    def model_width(self) -> int:
        return self.width

    @property
    def declares(self) -> bool:
        """Whether the module says itself how many numbers it carries."""
        return type(self).declaration is not None

    def build(self) -> nn.Module:
        """A new module of these sizes. Raises SizeError for one without `forward`, `step` or
        `init_state`.
        """
        sizes = {
            name: value
            for name, value in self.sizes().items()
            if name not in ("format", "width", "positions")
        }
        module = type(self).maker(self.width, **sizes)
        missing = lacks(module) if isinstance(module, nn.Module) else None
        if missing is None or missing:
            what = "is no nn.Module" if missing is None else f"lacks {', '.join(missing)}"
            raise SizeError(
                f"{self.name}: {type(self).origin} made a {type(module).__name__}, which {what}"
            )
        return module

    def declared(self, t: int) -> int:
        """Numbers that `cache_numbers` says are carried after t tokens. Raises SizeError for
        what is no number.
        """
        return _called(type(self).declaration, f"{self.name}: cache_numbers", t, self.sizes())

    def numbers(self, t: int) -> int:
        """Numbers carried after t tokens: declared, and found in the state after 256 tokens and
        fewer; or measured, if the cache stays bounded.

        Raises SizeError for a state larger than declared, a declaration that shrinks, and a growing
        state that nobody declared.
        """
        if not self.declares:
            found = largest_numbers(self)
            if found[HORIZON] != found[HORIZON // 2]:
                raise SizeError(
                    f"{self.name}: its state still grows after {HORIZON // 2} tokens; give"
                    f" {type(self).origin} a static method cache_numbers(t, *,"
                    f" {', '.join(n for n in self.sizes() if n != 'format')}) that says how many"
                    " numbers it holds"
                )
            return found[min(t, HORIZON)]
        # raises where the state outgrows the declaration
        probe(self).shapes(COMPARED)
        if self.declared(t) > self.declared(2 * t):
            raise SizeError(
                f"{self.name}: cache_numbers declares less for t={2 * t} than for t={t}; a cache"
                " bound cannot shrink"
            )
        return self.declared(t)

    @property
    def reach(self) -> Reach | None:
        # nobody says how far back it reads: all that it keeps counts as state
        return None if self._grows else Reach()

    @property
    def settles_after(self) -> int | None:
        """2^p - 1 where it says that the token alone determines how each number moves."""
        return (1 << self.p) - 1 if self.is_monotone else None

    @property
    def _grows(self) -> bool:
        return self.numbers(2 * FAR) > self.numbers(FAR)

    def cache(self, t: int) -> tuple[CacheItem, ...]:
        numbers = self.numbers(t)
        # a cache of tokens doubles with t; one that grows by less than half is a state
        if 2 * self.numbers(2 * FAR) < 3 * self.numbers(FAR):
            return (CacheItem("state", Bits.of(numbers, self.p)),)
        start = self.numbers(0)
        return (
            CacheItem("state", Bits.of(start, self.p)),
            CacheItem("kv", Bits.of(numbers - start, self.p)),
        )

    def flops(self, t: int) -> int:
        """What the module's `flops` says, else 4 operations for every number carried: to decay,
        write and read it.
        """
        if type(self).operations is None:
            return 4 * self.numbers(t)
        return _called(type(self).operations, f"{self.name}: flops", t, self.sizes())

    def assumptions(self) -> tuple[str, ...]:
        held = (
            "as cache_numbers declares"
            if self.declares
            else f"measured over {HORIZON} tokens and taken to stay bounded"
        )
        one_way = (
            f"the state of '{self.name}' only moves one way while a token repeats, as it declares"
        )
        return (
            f"the cache of '{self.name}' is {held}, {self.p} bits per number",
            *((f"{one_way} (`check-mechanism` tests it)",) if self.is_monotone else ()),
            f"a layer of '{self.name}' can write nothing, as with output weights of zero",
            (
                f"'{self.name}' keeps nothing outside its state, and its forward equals its step"
                " (`check-mechanism` tests both)"
            ),
        )


def _called(function: Any, what: str, t: int, sizes: Mapping[str, Any]) -> int:
    """`function(t, ...)` with the sizes that it names. Raises SizeError for what is no number."""
    parameters = inspect.signature(function).parameters.values()
    every = any(parameter.kind is parameter.VAR_KEYWORD for parameter in parameters)
    names = {parameter.name for parameter in parameters}
    try:
        found = function(
            t,
            **{
                size: value
                for size, value in sizes.items()
                if size not in ("format", "positions") and (every or size in names)
            },
        )
    except Exception as error:
        raise SizeError(f"{what} raises {describe_error(error)} for t={t}") from None
    if type(found) is not int or found < 0:
        raise SizeError(
            f"{what} returned {found!r} for t={t}; it must return an integer of at least 0"
        )
    return found


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
