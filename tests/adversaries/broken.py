"""Protocols that break a rule of section 11's model, each in one place drawn from a seed, to see
what the adversaries of Theorems VI and VII catch.

- side channel: what is known at some tokens holds an entry of an earlier function that came neither
  through a cache nor through a read;
- look-ahead: it holds a token of a later part;
- large read, large cache: a message has more values than declared;
- unstreamed read, unstreamed cache: a message is any function of all before the cut, and not of
  itself at the last cut, so that nothing that was fixed earlier fixes it.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable
from dataclasses import dataclass
from random import Random
from typing import Any

from adversaries.knowledge import Known
from adversaries.many_readings import ManyReadings, ManyReadingsSizes, Prefix, joined
from separatrix.core.errors import SizeError
from separatrix.protocols.tables import Tables

APART = 1 << 20
"""Times a smuggled token, added to a cache: no cache is as large."""


class Broken(ManyReadings):
    """A protocol that breaks a rule; `shown` says whether it ever did so far."""

    shown = False

    def __init__(self, sizes: ManyReadingsSizes, tables: Tables[int]) -> None:
        super().__init__(sizes, tables)
        self._seen: dict[Hashable, int] = {}

    def note(self, allowed: Hashable, value: int) -> None:
        """A value that must be a function of what its sender may know."""
        self.shown = self.shown or self._seen.setdefault(allowed, value) != value


@dataclass(frozen=True)
class Leak:
    """What is known after `stage` at all tokens of part `to` holds the i-th token of part `part`
    (its last one, if it is shorter).
    """

    part: int
    i: int
    to: int
    stage: int


class Leaking(Broken):
    """A side channel, or a look-ahead where the leak's part is a later one."""

    def __init__(self, sizes: ManyReadingsSizes, tables: Tables[int], leak: Leak) -> None:
        self.leak = leak
        self.looks_ahead = leak.part > leak.to
        self.prefix = _LeakingPrefix
        super().__init__(sizes, tables)


class _LeakingPrefix(Prefix):
    line: Leaking

    def _know(
        self, j: int, i: int, token: int, below: Any, cache: int, read: int, earlier: Any
    ) -> Known:
        leak = self.line.leak
        if self.cut - 1 == leak.to and j == leak.stage:
            part = self.line.sizes.parts(joined([*self.parts, self.later]))[leak.part]
            smuggled = part[min(leak.i, len(part) - 1)]
            self.line.note((j, self.start + i, token, below, cache, read, earlier), smuggled)
            cache += APART * smuggled
        return super()._know(j, i, token, below, cache, read, earlier)


class Large(Broken):
    """One message has so many times the values that it should have."""

    def __init__(
        self, sizes: ManyReadingsSizes, tables: Tables[int], large: str, times: int
    ) -> None:
        def larger(name: str, known: Hashable, told: tuple[int, ...], size: int) -> int:
            if name != large:
                return tables(name, known, told, size)
            message = tables(name, known, told, size * times)
            self.shown = self.shown or message >= size
            return message

        super().__init__(sizes, larger)


class Unstreamed(Broken):
    """One read or one cache is any function of all tokens before the cut."""

    def __init__(self, sizes: ManyReadingsSizes, tables: Tables[int], name: str) -> None:
        self.name = name
        self.prefix = _UnstreamedPrefix
        super().__init__(sizes, tables)


class _UnstreamedPrefix(Prefix):
    line: Unstreamed

    def _read(self, j: int, query: Known, before: Prefix) -> int:
        line = self.line
        if line.name != f"read {j}":
            return super()._read(j, query, before)
        size = line.sizes.reads[j - 1]
        message = line.tables(line.name, (self.cut, query, joined(self.parts)), (), size)
        line.note((self.cut, query, *self.stage(j - 1), before.read(j, query)), message)
        return message

    def _cache(self, j: int, before: Prefix) -> int:
        line = self.line
        if line.name != f"cache {j}":
            return super()._cache(j, before)
        message = line.tables(line.name, (self.cut, joined(self.parts)), (), line.sizes.caches[j])
        # heads inside layer 1 (VII) see what comes into it
        seen = self.stage(j if line.grouped(j) else j - 1)
        line.note((self.cut, *seen, before.cache(j)), message)
        return message


Break = Callable[[ManyReadingsSizes, Tables[int], Random], Broken]


def _side_channel(sizes: ManyReadingsSizes, tables: Tables[int], random: Random) -> Broken:
    # from one of z_L, ..., z_2 to any later part
    part = random.randrange(sizes.L - 1)
    to = random.randrange(part + 1, sizes.L + 2)
    return _leaking(sizes, tables, random, part, to)


def _look_ahead(sizes: ManyReadingsSizes, tables: Tables[int], random: Random) -> Broken:
    to = random.randrange(sizes.L + 1)
    part = random.randrange(to + 1, sizes.L + 2)
    return _leaking(sizes, tables, random, part, to)


def _leaking(
    sizes: ManyReadingsSizes, tables: Tables[int], random: Random, part: int, to: int
) -> Broken:
    # what is known after the last stage matters for w, the last part, alone
    stage = random.randrange(sizes.R + (to == sizes.L + 1))
    return Leaking(sizes, tables, Leak(part, random.randrange(sizes.N[1]), to, stage))


def _large(kind: str) -> Break:
    def change(sizes: ManyReadingsSizes, tables: Tables[int], random: Random) -> Broken:
        return Large(sizes, tables, _live(sizes, kind, random), random.choice((2, 4, 16)))

    return change


def _unstreamed(kind: str) -> Break:
    return lambda sizes, tables, random: Unstreamed(sizes, tables, _live(sizes, kind, random))


def _live(sizes: ManyReadingsSizes, kind: str, random: Random) -> str:
    """A message of a kind that has more than one value."""
    bounds = enumerate(sizes.reads, 1) if kind == "read" else enumerate(sizes.caches)
    names = [f"{kind} {j}" for j, size in bounds if size > 1]
    if not names:
        raise SizeError(f"no {kind} of {sizes} has more than one value, so none can be broken")
    return random.choice(names)


BREAKS: dict[str, Break] = {
    "side channel": _side_channel,
    "look-ahead": _look_ahead,
    "large read": _large("read"),
    "large cache": _large("cache"),
    "unstreamed read": _unstreamed("read"),
    "unstreamed cache": _unstreamed("cache"),
}
