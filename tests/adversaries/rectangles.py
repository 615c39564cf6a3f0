"""Lemma J: a few contents of z_l and a family of prefixes, all of which stand together in a given
family. Source: theory.md, section 11.

Families are subsets of a product of given sets of functions. Bad tuples are counted one by one, so
the exact share stands in the place of Lemma S, which bounds it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import combinations_with_replacement
from math import factorial, prod

from adversaries.many_readings import Prefix
from separatrix.core.errors import SizeError
from separatrix.protocols.one_reading import Entries

MOST_TUPLES = 200_000


@dataclass(frozen=True)
class Rectangle:
    """Contents of z_l and prefixes, each with each in the family; `bad` of `tuples` tuples are
    bad; `together` counts, over all tuples, the prefixes that stand with all of a tuple.
    """

    contents: tuple[Entries, ...]
    prefixes: list[Prefix]
    bad: int
    tuples: int
    together: int


def rectangle(
    family: Sequence[Prefix],
    every: Sequence[Entries],
    size: int,
    values: Callable[[Entries], frozenset[tuple[int, int]]],
    least: int,
    enough: int,
) -> Rectangle:
    """A tuple of `size` contents out of `every` that is not bad and stands with at least `enough`
    prefixes: of most different contents, then with most prefixes. Where there is none, the one with
    most prefixes; without prefixes if no tuple that is not bad stands with any.

    A prefix of the family ends with a content and stands on the prefix before it. A tuple is bad if
    the contents take together fewer than `least` of the values that matter.
    """
    if _count(len(every), size) > MOST_TUPLES:
        raise SizeError(f"{len(every)} contents have too many tuples of {size}; give fewer")
    before: dict[int, Prefix] = {}
    masks = [0] * len(every)
    numbers = {content: number for number, content in enumerate(every)}
    bits: dict[tuple[Entries, ...], int] = {}
    for prefix in family:
        below = prefix.before
        assert below is not None
        bit = bits.setdefault(tuple(below.parts), len(bits))
        before.setdefault(bit, below)
        # the part of z_2 ends with the constant entries of z_1
        masks[numbers[prefix.tokens[: len(every[0])]]] |= 1 << bit

    found = [values(content) for content in every]
    bad = 0
    together = 0
    best: tuple[int, int, int] = (0, 0, 0)
    best_chosen: tuple[int, ...] = ()
    best_common = 0
    for chosen in combinations_with_replacement(range(len(every)), size):
        orders = _orders(chosen)
        common = masks[chosen[0]]
        for number in chosen[1:]:
            common &= masks[number]
        count = common.bit_count()
        together += orders * count
        hit = len(frozenset().union(*(found[number] for number in chosen)))
        if hit < least:
            bad += orders
            continue
        # several contents that differ are what the proof is about; a tuple may repeat one
        worth = (len(set(chosen)) if count >= enough else 0, count, hit)
        if worth > best and count:
            best = worth
            best_chosen = chosen
            best_common = common
    kept = [prefix for bit, prefix in before.items() if best_common >> bit & 1]
    contents = tuple(dict.fromkeys(every[number] for number in best_chosen))
    return Rectangle(contents, kept, bad, len(every) ** size, together)


def _count(kinds: int, size: int) -> int:
    """How many tuples there are, order aside."""
    return prod(range(kinds, kinds + size)) // factorial(size)


def _orders(chosen: tuple[int, ...]) -> int:
    """In how many orders a tuple can be drawn."""
    return factorial(len(chosen)) // prod(factorial(chosen.count(number)) for number in set(chosen))
