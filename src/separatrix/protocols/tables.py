"""Message functions of a protocol: tables that are read by name, whether random, written by hand,
or unknowns of a SAT solver.

A protocol asks for every message by `tables(name, known, told, size)`. `known` is what the sender
has for certain (parts of the prompt), `told` the messages that reached it. `size` is the number of
values that the message may have. A bound of b bits is a size of 2^b. The proofs count values, so
any size of at least 1 is allowed, and bits need not be whole.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Hashable, Mapping
from typing import Any, Protocol, TypeVar

from separatrix.core.errors import SizeError

Value = TypeVar("Value")
"""A message: an int, or the unknowns that stand for one."""
Message = Callable[..., int]
"""A message function: `known`, then the messages told, one by one; its result is cut to the size
by `written`.
"""


class Tables(Protocol[Value]):
    """Every message function of a protocol at once."""

    def __call__(self, name: str, known: Hashable, told: tuple[Value, ...], size: int) -> Value:
        """The message `name` of a sender with `known` that was told `told`: one of `size`
        values, 0 to size - 1.
        """
        ...


_ODD = 0x9E3779B97F4A7C15
_WORD = (1 << 64) - 1


def random_tables(seed: int) -> Tables[int]:
    """Pseudo-random message functions: the same arguments give the same message."""
    numbers: dict[str, int] = {}

    def look(name: str, known: Hashable, told: tuple[int, ...], size: int) -> int:
        number = numbers.get(name)
        if number is None:
            number = numbers[name] = int.from_bytes(name.encode(), "little")
        if size == 1:
            return 0
        x = (
            hash((seed, number, known, told)) * _ODD
        ) & _WORD  # tuples of integers hash alike in every run
        # products carry low bits upward only; the shifts bring high bits down
        x = ((x ^ (x >> 31)) * _ODD) & _WORD
        return (x ^ (x >> 29)) % size

    return look


def skewed_tables(seed: int, share: float, *, but: Collection[str] = ()) -> Tables[int]:
    """Pseudo-random message functions that say 0 most of the time: only about this share of the
    messages, and all `but` these, are drawn as in `random_tables`.
    """
    drawn = random_tables(seed)
    limit = int(share * 65536)

    def look(name: str, known: Hashable, told: tuple[int, ...], size: int) -> int:
        if name not in but and drawn(f"{name}, drawn", known, told, 65536) >= limit:
            return 0
        return drawn(name, known, told, size)

    return look


def written(functions: Mapping[str, Message]) -> Tables[int]:
    """Message functions written by hand, by name; a message without one is always 0, and one too
    large is sent as the largest value.
    """

    def look(name: str, known: Hashable, told: tuple[int, ...], size: int) -> int:
        function = functions.get(name)
        return 0 if function is None or size == 1 else min(function(known, *told), size - 1)

    return look


def found(cells: Mapping[tuple[str, Hashable, tuple[int, ...]], int]) -> Tables[int]:
    """Message functions by their values, as a search found them; what it left open is 0."""
    return lambda name, known, told, size: cells.get((name, known, told), 0)


def within(tables: Tables[int]) -> Tables[int]:
    """The same tables; a message outside its declared size raises SizeError."""

    def look(name: str, known: Hashable, told: tuple[int, ...], size: int) -> int:
        message: Any = tables(name, known, told, size)
        if type(message) is not int or not 0 <= message < size:
            raise SizeError(
                f"message '{name}' is {message!r}; it was declared to have {size} values, 0 to"
                f" {size - 1}"
            )
        return message

    return look
