"""`@register_mechanism`: a user's own token mixer beside the built-in ones, in specs, verdicts,
models and cards of this process.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from dataclasses import make_dataclass
from typing import Any, TypeVar, overload

from torch import nn

from separatrix.core.errors import SpecError
from separatrix.mixers import MIXERS
from separatrix.mixers.plugins.mechanism import DEFAULT_WIDTH, OwnMechanism
from separatrix.mixers.plugins.mixer import OwnMixer
from separatrix.mixers.plugins.signature import (
    check_function,
    check_methods,
    check_name,
    free_symbol,
    sizes_of,
    snake,
)
from separatrix.stacks.mechanisms import MECHANISMS
from separatrix.stacks.mechanisms.base import flag, integer, positions_field

__all__ = ["OwnMechanism", "OwnMixer", "own_mechanism", "register_mechanism"]

Maker = TypeVar("Maker", bound=Callable[..., nn.Module])
"""A class of modules, or a function that makes one, called with the model width and the sizes by
name.
"""


@overload
def register_mechanism(maker: Maker) -> Maker: ...
@overload
def register_mechanism(
    *,
    name: str | None = None,
    title: str | None = None,
    symbol: str | None = None,
    source: str | None = None,
    cache_numbers: Callable[..., int] | None = None,
    monotone: bool | None = None,
) -> Callable[[Maker], Maker]: ...
def register_mechanism(
    maker: Any = None,
    *,
    name: str | None = None,
    title: str | None = None,
    symbol: str | None = None,
    source: str | None = None,
    cache_numbers: Callable[..., int] | None = None,
    monotone: bool | None = None,
) -> Any:
    """Makes an `nn.Module` a mechanism of this process, and gives it back unchanged. Also takes a
    function that makes one.

    The first parameter of the constructor is the model width, the others are sizes: integers or
    booleans with defaults. The module has `forward(x)`, `init_state(batch)` and `step(x, state, t)`
    (see docs/own-mixer.md). `name` is the class's in snake case if not given. `cache_numbers(t, *,
    width, ...)`, here or as a static method, declares the numbers carried after t tokens, and is
    measured against the state. Without it they are measured, and must stay bounded. A static method
    `flops(t, *, width, ...)` is optional. `monotone`, here or as an attribute of the class, says
    that each number of the state moves by a non-decreasing map of itself, which the token alone
    determines; Theorem P then speaks of stacks of it with `positions=none`. Registering the same
    class again replaces it. Raises SpecError that names the argument.
    """
    if maker is None:
        return lambda made: _register(made, name, title, symbol, source, cache_numbers, monotone)
    return _register(maker, name, title, symbol, source, cache_numbers, monotone)


def _register(
    maker: Any,
    name: str | None,
    title: str | None,
    symbol: str | None,
    source: str | None,
    cache_numbers: Any,
    monotone: Any,
) -> Any:
    cls = own_mechanism(
        maker,
        name=name,
        title=title,
        symbol=symbol,
        source=source,
        cache_numbers=cache_numbers,
        monotone=monotone,
    )
    MECHANISMS[cls.name] = cls
    MIXERS[cls.name] = OwnMixer
    return maker


def own_mechanism(
    maker: Any,
    *,
    name: str | None = None,
    title: str | None = None,
    symbol: str | None = None,
    source: str | None = None,
    cache_numbers: Callable[..., int] | None = None,
    monotone: bool | None = None,
) -> type[OwnMechanism]:
    """The mechanism that `register_mechanism` registers, not registered. Raises SpecError."""
    label = getattr(maker, "__name__", repr(maker)[:60])
    if isinstance(maker, nn.Module):
        raise SpecError(
            f"register_mechanism: {type(maker).__name__} is a made module; give the class, or a"
            " function that makes one"
        )
    if isinstance(maker, type) and not issubclass(maker, nn.Module):
        raise SpecError(
            f"register_mechanism: {label} is no nn.Module; derive it from torch.nn.Module"
        )
    if not callable(maker):
        raise SpecError(
            f"register_mechanism: {label} is neither an nn.Module class nor a function that"
            " makes one"
        )
    if isinstance(maker, type):
        check_methods(maker)
    # what is made again, as in a notebook cell, has the same origin and may replace itself
    origin = f"{maker.__module__}:{maker.__qualname__}"
    name = check_name(snake(label) if name is None else name, origin)
    sizes = sizes_of(maker, label)
    declaration = cache_numbers or getattr(maker, "cache_numbers", None)
    operations = getattr(maker, "flops", None)
    for what, function in (("cache_numbers", declaration), ("flops", operations)):
        if function is not None:
            check_function(what, function, {"width", *sizes}, label)
    # a class that says nothing of itself would inherit what torch says of all modules
    doc = inspect.getdoc(maker)
    if doc is None or doc == inspect.getdoc(nn.Module):
        doc = f"{label}, which says nothing of itself."
    one_way = getattr(maker, "monotone", False) if monotone is None else monotone
    if not isinstance(one_way, bool):
        raise SpecError(f"register_mechanism: monotone={one_way!r}; it must be True or False")
    namespace = {
        "name": name,
        "title": title or label,
        "symbol": free_symbol(symbol, name, origin),
        "source": source or f"registered from {origin}",
        # as plain functions they would become methods and take self
        "maker": staticmethod(maker),
        "origin": origin,
        "declaration": None if declaration is None else staticmethod(declaration),
        "operations": None if operations is None else staticmethod(operations),
        "monotone": one_way,
        "__doc__": doc,
    }
    first = next(iter(inspect.signature(maker).parameters.values()))
    fields: list[tuple[str, type, Any]] = [
        (
            "width",
            int,
            integer(first.default if type(first.default) is int else DEFAULT_WIDTH, "model width"),
        )
    ]
    for size, default in sizes.items():
        text = f"`{size}` of {label}"
        fields.append(
            (
                size,
                type(default),
                flag(default, text) if isinstance(default, bool) else integer(default, text),
            )
        )
    if one_way:
        fields.append(("positions", str, positions_field()))
    return make_dataclass(
        label, fields, bases=(OwnMechanism,), namespace=namespace, frozen=True, kw_only=True
    )
