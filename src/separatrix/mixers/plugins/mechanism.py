"""A registered module as a mechanism: its sizes, and what it carries, declared and compared with
its state, or measured: the shapes of its state, token by token, before anything is claimed of it.
And as a mixer.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property, lru_cache
from itertools import accumulate, chain, count
from math import prod
from typing import Any, ClassVar

import torch
from torch import Tensor, nn
from torch._functorch.pyfunctorch import temporarily_clear_interpreter_stack

from separatrix.core.errors import SeparatrixError, SizeError
from separatrix.core.numbers.bits import Bits
from separatrix.mixers.base.mixer import Mixer, Shapes, State
from separatrix.mixers.base.tensors import Token, Tokens
from separatrix.mixers.plugins.probe import apart, check_state, describe_error, kind, stepped
from separatrix.stacks.mechanisms import CacheItem, LayerKind, Mechanism
from separatrix.stacks.mechanisms.base import Reach, integer

DEFAULT_WIDTH = 256
HORIZON = 256
"""Tokens over which a cache is measured, or compared with what is declared; one that no longer
grows in the second half is taken to stay.
"""
FAR = 1 << 62
"""Tokens by which a cache that stops growing has stopped."""


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
        """A new module of these sizes. Raises SizeError for one that lacks a method."""
        sizes = self._own_sizes()
        module = type(self).maker(sizes.pop("width"), **sizes)
        methods = [getattr(module, name, None) for name in ("init_state", "step")]
        # every nn.Module has a forward, one that only raises
        own = isinstance(module, nn.Module) and type(module).forward is not nn.Module.forward
        if not own or not all(map(callable, methods)):
            raise SizeError(
                f"{self.name}: {type(self).origin} made a {type(module).__name__}, which is no"
                " nn.Module with forward(x), init_state(batch) and step(x, state, t)"
            )
        return module

    def _own_sizes(self) -> dict[str, Any]:
        return {n: v for n, v in self.sizes().items() if n not in ("format", "positions")}

    def declared(self, t: int) -> int:
        """Numbers that `cache_numbers` says are carried after t tokens. Raises SizeError for
        what is no number.
        """
        return _called(type(self).declaration, f"{self.name}: cache_numbers", t, self._own_sizes())

    def numbers(self, t: int) -> int:
        """Numbers carried after t tokens: declared, and found in the state after 256 tokens and
        fewer; or measured, if the cache stays bounded.

        Raises SizeError for a state larger than declared, a declaration that shrinks, and a growing
        state that nobody declared.
        """
        if not self.declares:
            found = probe(self).largest
            if found[HORIZON] != found[HORIZON // 2]:
                raise SizeError(
                    f"{self.name}: its state still grows after {HORIZON // 2} tokens; give"
                    f" {type(self).origin} a static method cache_numbers(t, *,"
                    f" {', '.join(n for n in self.sizes() if n != 'format')}) that says how many"
                    " numbers it holds"
                )
            return found[min(t, HORIZON)]
        # raises where the state outgrows the declaration
        probe(self).shapes(HORIZON)
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
        return (1 << self.p) - 1 if self.monotone else None

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
        return _called(type(self).operations, f"{self.name}: flops", t, self._own_sizes())

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
            *((f"{one_way} (`check-mechanism` tests it)",) if self.monotone else ()),
            f"a layer of '{self.name}' can write nothing, as with output weights of zero",
            (
                f"'{self.name}' keeps nothing outside its state, and its forward equals its step"
                " (`check-mechanism` tests both)"
            ),
        )


def _called(function: Any, what: str, t: int, sizes: Mapping[str, Any]) -> int:
    """`function(t, ...)` with the sizes that it names. Raises SizeError for what is no number."""
    names = inspect.signature(function).parameters
    every = any(one.kind is one.VAR_KEYWORD for one in names.values())
    try:
        found = function(t, **{n: v for n, v in sizes.items() if every or n in names})
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
        self._start("meta")

    def _start(self, device: str) -> None:
        self._measured: list[Shapes] = []
        self._device = device
        self._source = _shapes(self.mechanism, device)

    def shapes(self, t: int) -> Shapes:
        """Shapes after t tokens, the batch left out. Raises SizeError where the module's own
        code fails, or keeps more than it declares.
        """
        self._measure(min(t, HORIZON))
        if t > HORIZON and self._settled(t):
            t = HORIZON
        self._measure(t)
        return self._measured[t]

    @cached_property
    def largest(self) -> list[int]:
        """The most numbers held after at most 0, 1, ..., HORIZON tokens."""
        return [*accumulate((_numbers(self.shapes(t)) for t in range(HORIZON + 1)), max)]

    def _measure(self, t: int) -> None:
        while len(self._measured) <= t:
            try:
                # what asks first may run under vmap, where making a module may draw nothing
                with temporarily_clear_interpreter_stack(), torch.inference_mode(False):
                    self._measured.append(next(self._source))
            except SeparatrixError:
                last = self._device == "cpu"
                # modules that look at values begin again with memory: on meta there are none
                self._start("cpu")
                if last:
                    raise

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


def _shapes(mechanism: OwnMechanism, device: str) -> Iterator[Shapes]:
    name = mechanism.name
    module: Any = None
    state: Any = None
    for t in count():
        method = "step" if t else "init_state"
        try:
            with apart(0), torch.device(device), torch.no_grad():
                if t == 0:
                    module = mechanism.build()
                    state = module.init_state(2)
                else:
                    _, state = stepped(module, name, torch.zeros(2, mechanism.width), state, t - 1)
            check_state(name, state, 2, method)
        except SeparatrixError:
            raise
        except Exception as error:
            raise SizeError(f"{name}: {method} raises {describe_error(error)}") from None
        shapes = {part: tuple(tensor.shape[1:]) for part, tensor in state.items()}
        if mechanism.declares and _numbers(shapes) > (declared := mechanism.declared(t)):
            raise SizeError(
                f"{name}: its state holds {_numbers(shapes):,} numbers after {t} tokens, but"
                f" cache_numbers declares {declared:,}; verdicts would be wrong: correct"
                " cache_numbers"
            )
        yield shapes


def _numbers(shapes: Shapes) -> int:
    return sum(prod(shape) for shape in shapes.values())


@lru_cache(maxsize=256)
def probe(mechanism: OwnMechanism) -> Probe:
    """The probe of a mechanism at its sizes, measured once."""
    return Probe(mechanism)


class OwnMixer(Mixer):
    """A registered module as a mixer. States are stored in the format of the parameters, whatever
    `step` returns them in. The module has `forward(x)` (b, t, w) -> (b, t, w), `init_state(batch)`
    -> dict of tensors whose first axis is the batch, and `step(x, state, t)` (b, w) -> ((b, w),
    state); t counts the tokens before.

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
        if next(self._floats(), None) is None:
            # without numbers of its own the module has no format and device to follow
            self.register_buffer("like", torch.zeros(()), persistent=False)

    def shapes(self, t: int) -> Shapes:
        return probe(self.mechanism).shapes(t)  # type: ignore[arg-type]

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
        return next(self._floats())

    def _floats(self) -> Iterator[Tensor]:
        return (x for x in chain(self.parameters(), self.buffers()) if x.is_floating_point())

    def _forward(self, x: Tokens) -> Tokens:
        return self._like_input(self.module(x), x, "forward")

    def _step(self, x: Token, state: State, t: int) -> tuple[Token, State]:
        y, new = stepped(self.module, self.mechanism.name, x, state, t)
        return self._like_input(y, x, "step"), self._stored(new, len(x), t + 1, "step")

    def _like_input(self, y: Any, x: Tensor, method: str) -> Tensor:
        if not isinstance(y, Tensor) or y.shape != x.shape:
            given = f"{kind(y)} for x of shape {tuple(x.shape)}"
            raise self._wrong(f"{method} returned {given}; it must return that shape")
        if y.dtype != x.dtype and not torch.is_autocast_enabled(x.device.type):
            given = f"{y.dtype} for x of {x.dtype}"
            raise self._wrong(f"{method} returned {given}; end it with y.to(x.dtype)")
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
