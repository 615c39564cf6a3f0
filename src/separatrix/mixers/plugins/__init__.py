"""`@register_mechanism`: a user's own token mixer beside the built-in ones, in specs, verdicts,
models and cards of this process.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable
from dataclasses import make_dataclass
from functools import partial
from string import ascii_letters, digits
from typing import Any, TypeVar, overload

from torch import nn

from separatrix.core.errors import SpecError
from separatrix.mixers import MIXERS
from separatrix.mixers.plugins.mechanism import DEFAULT_WIDTH, OwnMechanism, OwnMixer
from separatrix.stacks.mechanisms import LARGEST_SIZE, MECHANISMS
from separatrix.stacks.mechanisms.base import flag, integer, positions_field

__all__ = ["OwnMechanism", "OwnMixer", "own_mechanism", "register_mechanism"]

Maker = TypeVar("Maker", bound=Callable[..., nn.Module])
"""A class of modules, or a function that makes one, called with the model width and the sizes by
name.
"""


_OWN = {"maker", "shared", "state_format", "positions"}
_SETTINGS = {"model_width", "tolerance", "budget"}
"""Of check-mechanism."""
TAKEN = tuple(
    sorted(_OWN | _SETTINGS | {name for name in dir(OwnMechanism) if not name.startswith("_")})
)
"""Names that no size may have: parts of every mechanism (docs/own-mixer.md lists them)."""


def refuse(wrong: object, why: str) -> None:
    if wrong:
        raise SpecError(f"register_mechanism: {why}")


def name_of(name: str | None, label: str, origin: str) -> str:
    """The name given, or the class's in snake case."""
    if name is None:
        # the second border ends a run of capitals: RWKVMixer is rwkv_mixer
        borders = r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])"
        name = re.sub(borders, "_", label).lower()
    refuse(
        not isinstance(name, str) or not re.fullmatch(r"[A-Za-z_][A-Za-z0-9_]*", name),
        f"name={name!r} is no identifier; use letters, digits and _, such as 'my_mixer'",
    )
    there = MECHANISMS.get(name)
    refuse(
        there is not None and there.origin != origin,
        f"name='{name}' is taken ({(there and there.origin) or 'built in'}); give another, as in"
        f" @register_mechanism(name='my_{name}')",
    )
    return name


def free_symbol(symbol: str | None, name: str, origin: str) -> str:
    """The letter that draws a layer: the one given, else the first free one of the name or the
    alphabet.
    """
    taken = {cls.symbol: cls.name for cls in MECHANISMS.values() if cls.origin != origin}
    taken["h"] = "head-wise layers"
    if symbol is None:
        letters = re.sub(r"[^a-z0-9]", "", name.lower())
        every = letters + letters.upper() + ascii_letters + digits
        return next((letter for letter in every if letter not in taken), "*")
    refuse(
        not isinstance(symbol, str) or len(symbol) != 1 or not symbol.isalnum(),
        f"symbol={symbol!r} must be one letter or digit",
    )
    refuse(
        symbol in taken,
        f"symbol={symbol!r} is taken by {taken.get(symbol)}; leave it out for a free one",
    )
    return symbol


def sizes_of(maker: Callable[..., Any], label: str) -> dict[str, Any]:
    """Sizes and their defaults, from the signature: everything after the width."""
    every = list(inspect.signature(maker).parameters.values())
    first = every.pop(0) if every else None
    refuse(
        first is None or first.kind not in (first.POSITIONAL_ONLY, first.POSITIONAL_OR_KEYWORD),
        f"{label} takes no width; its first parameter is the model width, as in"
        " __init__(self, width, ...)",
    )
    for size in every:
        name, default = size.name, size.default
        of = f"size '{name}' of {label}"
        refuse(
            default is size.empty,
            f"{of} has no default; name every size and give it one, as in (width, *, state=16)",
        )
        refuse(
            type(default) not in (int, bool) or not 0 <= default <= LARGEST_SIZE,
            f"{of} is {default!r} by default; sizes are booleans, or integers from 0 to 10^12",
        )
        refuse(
            hasattr(OwnMechanism, name) or name in TAKEN,
            f"{of} has the name of a part of every mechanism; rename it: docs/own-mixer.md has all",
        )
    return {size.name: size.default for size in every}


def function_of(what: str, function: Any, sizes: set[str], label: str) -> Any:
    """`cache_numbers` or `flops`, if any, as a static method: as a plain function it would take
    self. It takes t first, and after it any of the sizes by name.
    """
    if function is None:
        return None
    try:
        first, *rest = inspect.signature(function).parameters.values()
        unknown = {one.name for one in rest if one.kind is not one.VAR_KEYWORD} - sizes
        fine = first.name != "self" and not unknown
    # what cannot be called, and builtins without a signature
    except (TypeError, ValueError):
        fine = False
    every = ", ".join(sorted(sizes))
    refuse(not fine, f"{what} of {label} is no static method of (t, *, {every}) or fewer of them")
    return staticmethod(function)


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
def register_mechanism(maker: Any = None, **said: Any) -> Any:
    """Makes an `nn.Module` a mechanism of this process, and gives it back unchanged. Also takes a
    function that makes one.

    The first parameter of the constructor is the model width, the others are sizes: integers or
    booleans with defaults. The module has `forward(x)`, `init_state(batch)` and `step(x, state, t)`
    (see docs/own-mixer.md). `name` is the class's in snake case if not given; `title`, `symbol` (a
    letter) and `source` say how a layer is called, drawn and cited. `cache_numbers(t, *, width,
    ...)`, here or as a static method, declares the numbers carried after t tokens, and is measured
    against the state. Without it they are measured, and must stay bounded. A static method
    `flops(t, *, width, ...)` is optional. `monotone`, here or as an attribute of the class, says
    that each number of the state moves by a non-decreasing map of itself, which the token alone
    determines; Theorem P then speaks of stacks of it with `positions=none`. Registering the same
    class again replaces it. Raises SpecError that names the argument.
    """
    if maker is None:
        return partial(register_mechanism, **said)
    cls = own_mechanism(maker, **said)
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
    module = isinstance(maker, type) and issubclass(maker, nn.Module)
    refuse(
        not module and (isinstance(maker, type | nn.Module) or not callable(maker)),
        f"{label} is neither an nn.Module class nor a function that makes one",
    )
    # what is made again, as in a notebook cell, has the same origin and may replace itself
    origin = f"{maker.__module__}:{maker.__qualname__}"
    name = name_of(name, label, origin)
    sizes = sizes_of(maker, label)
    names = {"width", *sizes}
    cache_numbers = cache_numbers or getattr(maker, "cache_numbers", None)
    # a class that says nothing of itself would inherit what torch says of all modules
    doc = inspect.getdoc(maker)
    if doc is None or doc == inspect.getdoc(nn.Module):
        doc = f"{label}, which says nothing of itself."
    one_way = getattr(maker, "monotone", False) if monotone is None else monotone
    refuse(not isinstance(one_way, bool), f"monotone={one_way!r}; it must be True or False")
    namespace = {
        "name": name,
        "title": title or label,
        "symbol": free_symbol(symbol, name, origin),
        "source": source or f"registered from {origin}",
        "maker": staticmethod(maker),
        "origin": origin,
        "declaration": function_of("cache_numbers", cache_numbers, names, label),
        "operations": function_of("flops", getattr(maker, "flops", None), names, label),
        "monotone": one_way,
        "__doc__": doc,
    }
    first = next(iter(inspect.signature(maker).parameters.values()))
    width = first.default if type(first.default) is int else DEFAULT_WIDTH
    declared: list[tuple[str, type, Any]] = [("width", int, integer(width, "model width"))]
    for size, default in sizes.items():
        field = flag if isinstance(default, bool) else integer
        declared.append((size, type(default), field(default, f"`{size}` of {label}")))
    if one_way:
        declared.append(("positions", str, positions_field()))
    return make_dataclass(
        label, declared, bases=(OwnMechanism,), namespace=namespace, frozen=True, kw_only=True
    )
