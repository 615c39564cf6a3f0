"""Protocols that are right on every prompt, by hand: what must be sent, and to whom. With fewer
values than they need they clip, and do their best.

Each sends one thing whole: z_1 to w, so that w can ask for its one entry ("carried"). The others
send what w needs of z_2: its row ("rows"), the column of i_1 through the last caches
("column"), or all of it ("cache").
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

from separatrix.protocols.one_reading import Entries, OneReading, OneReadingSizes
from separatrix.protocols.tables import Message, written


def number(digits: Sequence[int], base: int) -> int:
    """The integer with these digits, the first one lowest."""
    return sum(digit * base**place for place, digit in enumerate(digits))


def digit(value: int, place: int, base: int) -> int:
    """One digit of `number`."""
    return value // base**place % base


def enough(sizes: OneReadingSizes, way: str) -> OneReadingSizes:
    """The values that a way with one reading layer needs; every other message is silent."""
    m = sizes.m
    N_1 = sizes.N_1
    n_1 = sizes.n_1
    silent = replace(sizes, caches_0=1, reads=1, caches_1=1)
    return {
        "rows": replace(silent, reads=N_1**m),
        "carried": replace(silent, caches_0=m**sizes.t, reads=N_1),
        "column": replace(silent, reads=N_1**n_1, caches_1=N_1**n_1),
        "cache": replace(silent, caches_1=N_1**N_1),
    }[way]


def one_reading_solver(sizes: OneReadingSizes, way: str) -> OneReading[int]:
    """The protocol with one reading layer of a way in `enough`, clipped to these sizes."""
    p = Parts(sizes.m, sizes.n_1, sizes.N_1, sizes.t)
    ways: dict[str, dict[str, Message]] = {
        "rows": {
            "w reads": lambda known, carried: p.row(known),
            "answer": lambda known, first, late, got: p.in_row(got, known),
        },
        "carried": {
            "carried": lambda B, first: number(B, sizes.m),
            "w reads": lambda known, carried: p.entry(known, carried),
            "answer": lambda known, first, late, got: got,
        },
        "column": {
            "entry reads": lambda known, first: p.column(known[0][-1], known[1]),
            "late": lambda known, first, early, *reads: reads[p.place(known[1])],
            "answer": lambda known, first, late, got: digit(late, known[2], sizes.N_1),
        },
        "cache": p.cache(lambda known, first, late, got: p.in_whole(late, known)),
    }
    return OneReading(sizes, written(ways[way]))


class Parts:
    """What the messages are made of, at one size."""

    def __init__(self, m: int, n_1: int, N_1: int, t: int) -> None:
        self.m = m
        self.n_1 = n_1
        self.N_1 = N_1
        self.lead = m - t

    def place(self, z_0: int) -> int:
        """z_0, counted from B's start."""
        return z_0 - self.lead

    def row(self, known: tuple[int, int, Entries]) -> int:
        """z_2(w, .) as a number."""
        _, w, A = known
        return number(A[w * self.m : (w + 1) * self.m], self.N_1)

    def column(self, i: int, A: Entries) -> int:
        """z_2(., i) as a number."""
        return number([A[w * self.m + i] for w in range(self.n_1)], self.N_1)

    def entry(self, known: tuple[int, int, Entries], z_1: int) -> int:
        """z_2(w, z_1(z_0)), with z_1 as the number of B."""
        z_0, w, A = known
        return A[w * self.m + digit(z_1, self.place(z_0), self.m)]

    def in_row(self, row: int, known: tuple[Entries, int, int]) -> int:
        """The answer from the number of a row."""
        B, z_0, _ = known
        return digit(row, B[self.place(z_0)], self.N_1)

    def in_whole(self, whole: int, known: tuple[Entries, int, int]) -> int:
        """The answer from the number of z_2."""
        B, z_0, w = known
        return digit(whole, w * self.m + B[self.place(z_0)], self.N_1)

    def cache(self, answer: Callable[..., int]) -> dict[str, Message]:
        """z_2 whole through the last caches."""

        def late(known: Any, first: int, early: int, *reads: int) -> int:
            return early

        return {"early": lambda A: number(A[: self.N_1], self.N_1), "late": late, "answer": answer}
