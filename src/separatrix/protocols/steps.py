"""Steps that the adversaries of Theorems III and IV share: which z_2 they try, the most frequent
value, a place with many values, pigeonhole.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence
from itertools import product
from typing import TypeVar

from separatrix.core.errors import SizeError
from separatrix.protocols.one_reading import Entries

MOST_CONTENTS = 1 << 20
"""Most contents of z_2 that an adversary enumerates by itself."""

Key = TypeVar("Key", bound=Hashable)


def every_z_2(N_1: int) -> Iterator[Entries]:
    """All N_1^N_1 contents of z_2. Raises SizeError where they are more than 2^20."""
    if N_1**N_1 > MOST_CONTENTS:
        raise SizeError(
            f"z_2 has {N_1}^{N_1} contents, more than 2^20; give `contents`, more than the right"
            " side of (b) counts"
        )
    return product(range(N_1), repeat=N_1)


def most_frequent(
    items: Iterable[Entries], key: Callable[[Entries], Key]
) -> tuple[Key, list[Entries]]:
    """The key that most items have, the first of equals, and these items."""
    classes: dict[Key, list[Entries]] = {}
    for item in items:
        classes.setdefault(key(item), []).append(item)
    return max(classes.items(), key=lambda pair: len(pair[1]))


def spread(pool: Sequence[Entries], r: int) -> tuple[int, tuple[Entries, ...]] | None:
    """A place at which the contents of a pool take at least r values, and r contents that differ
    there; None if there is no such place.
    """
    for place in range(len(pool[0])):
        by_value: dict[int, Entries] = {}
        for content in pool:
            by_value.setdefault(content[place], content)
        if len(by_value) >= r:
            return place, tuple(by_value.values())[:r]
    return None


def same_key(
    items: Iterable[Entries], key: Callable[[Entries], Key], points: Sequence[int]
) -> tuple[Entries, Entries, int] | None:
    """Two items with one key and the number of a point at which they differ, or None."""
    seen: dict[Key, list[Entries]] = {}
    for item in items:
        other = seen.setdefault(key(item), [item])[0]
        differ = next(
            (number for number, point in enumerate(points) if item[point] != other[point]), None
        )
        if differ is not None:
            return other, item, differ
    return None
