"""Checks of a class or function that is to be registered, by its signature, before it is ever
called. They raise SpecError.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable
from string import ascii_letters, digits
from typing import Any

from torch import nn

from separatrix.core.errors import SpecError
from separatrix.stacks.mechanisms import LARGEST_SIZE, MECHANISMS, Mechanism

_OWN = (
    "maker",
    "origin",
    "declaration",
    "operations",
    "declares",
    "declared",
    "numbers",
    "build",
    "width",
    "shared",
    "state_format",
    "positions",
)
"""Parts of every registered mechanism, beside those of `Mechanism`."""
TAKEN = tuple(sorted({*_OWN, *(name for name in dir(Mechanism) if not name.startswith("_"))}))
"""Names that no size may have: parts of every mechanism (docs/own-mixer.md lists them)."""


def lacks(module: type[nn.Module] | nn.Module) -> list[str]:
    """The methods a mixer needs that a module (or its class) has not."""
    missing = [name for name in ("step", "init_state") if not callable(getattr(module, name, None))]
    forward = getattr(module if isinstance(module, type) else type(module), "forward", None)
    # every nn.Module has a forward, one that only raises
    return ["forward", *missing] if forward is None or forward is nn.Module.forward else missing


def snake(name: str) -> str:
    # the second border ends a run of capitals: RWKVMixer is rwkv_mixer
    return re.sub(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])", "_", name).lower()


def check_name(name: str, origin: str) -> str:
    if not isinstance(name, str) or not re.fullmatch(r"[A-Za-z_][A-Za-z0-9_]*", name):
        raise SpecError(
            f"register_mechanism: name={name!r} is no identifier; use letters, digits and _, such"
            " as 'my_mixer'"
        )
    there = MECHANISMS.get(name)
    if there is not None and there.origin != origin:
        whose = there.origin or "built in"
        raise SpecError(
            f"register_mechanism: name='{name}' is taken ({whose}); give another, as in"
            f" @register_mechanism(name='my_{name}')"
        )
    return name


def free_symbol(symbol: str | None, name: str, origin: str) -> str:
    """The letter that draws a layer: the one given, else the first free one of the name or the
    alphabet.
    """
    taken = {
        cls.symbol: cls.name
        for cls in MECHANISMS.values()
        if getattr(cls, "origin", None) != origin
    } | {"h": "head-wise layers"}
    if symbol is None:
        letters = re.sub(r"[^a-z0-9]", "", name.lower())
        return next(
            (
                letter
                for letter in letters + letters.upper() + ascii_letters + digits
                if letter not in taken
            ),
            "*",
        )
    if not isinstance(symbol, str) or len(symbol) != 1 or not symbol.isalnum():
        raise SpecError(f"register_mechanism: symbol={symbol!r} must be one letter or digit")
    if symbol in taken:
        raise SpecError(
            f"register_mechanism: symbol={symbol!r} is taken by {taken[symbol]}; leave it out for a"
            " free one"
        )
    return symbol


def check_methods(cls: type[nn.Module]) -> None:
    if missing := lacks(cls):
        raise SpecError(
            f"register_mechanism: {cls.__name__} lacks {' and '.join(missing)}; a mixer has"
            " forward(x), init_state(batch) and step(x, state, t)"
        )
    for method, arguments in (
        ("forward", ("x",)),
        ("init_state", ("batch",)),
        ("step", ("x", "state", "t")),
    ):
        try:
            inspect.signature(getattr(cls, method)).bind(None, *arguments)
        except TypeError:
            # a static method has no self to leave out
            static = isinstance(inspect.getattr_static(cls, method), staticmethod)
            found = ", ".join(
                list(inspect.signature(getattr(cls, method)).parameters)[0 if static else 1 :]
            )
            raise SpecError(
                f"register_mechanism: {cls.__name__}.{method} takes ({found}); it must take"
                f" ({', '.join(arguments)}) and nothing else"
            ) from None


def sizes_of(maker: Callable[..., Any], label: str) -> dict[str, Any]:
    """Sizes and their defaults, from the signature: everything after the width."""
    every = list(inspect.signature(maker).parameters.values())
    if not every or every[0].kind not in (
        inspect.Parameter.POSITIONAL_ONLY,
        inspect.Parameter.POSITIONAL_OR_KEYWORD,
    ):
        raise SpecError(
            f"register_mechanism: {label} takes no width; its first parameter is the model width,"
            " as in __init__(self, width, ...)"
        )
    found = {}
    for parameter in every[1:]:
        size = parameter.name
        default = parameter.default
        if parameter.kind in (
            parameter.VAR_KEYWORD,
            parameter.VAR_POSITIONAL,
            parameter.POSITIONAL_ONLY,
        ):
            raise SpecError(
                f"register_mechanism: {label} takes '{str(parameter).partition(chr(58))[0]}'; name"
                " every size, as in (width, *, state=16)"
            )
        if default is parameter.empty:
            raise SpecError(
                f"register_mechanism: size '{size}' of {label} has no default; give it one, an"
                " integer or a boolean"
            )
        if type(default) not in (int, bool):
            raise SpecError(
                f"register_mechanism: size '{size}' of {label} is {default!r} by default; sizes are"
                " integers or booleans"
            )
        if type(default) is int and not 0 <= default <= LARGEST_SIZE:
            raise SpecError(
                f"register_mechanism: size '{size}' of {label} is {default} by default; sizes go"
                " from 0 to 10^12"
            )
        if hasattr(Mechanism, size) or size in TAKEN:
            raise SpecError(
                f"register_mechanism: size '{size}' of {label} has the name of a part of every"
                f" mechanism; rename it. Taken: {', '.join(TAKEN)}"
            )
        found[size] = default
    return found


def check_function(what: str, function: Any, sizes: set[str], label: str) -> None:
    """`cache_numbers` and `flops` take t first, and after it any of the sizes by name."""
    try:
        first, *rest = inspect.signature(function).parameters.values()
    # what cannot be called, and builtins without a signature
    except (TypeError, ValueError):
        raise SpecError(
            f"register_mechanism: {what} of {label} is no function of (t, *,"
            f" {', '.join(sorted(sizes))})"
        ) from None
    if first.name == "self":
        raise SpecError(
            f"register_mechanism: {what} of {label} must be a static method: sizes are known before"
            " a module is made"
        )
    for parameter in rest:
        if parameter.kind is not parameter.VAR_KEYWORD and parameter.name not in sizes:
            raise SpecError(
                f"register_mechanism: {what} of {label} asks for '{parameter.name}', which is no"
                f" size; sizes: {', '.join(sorted(sizes))}"
            )
