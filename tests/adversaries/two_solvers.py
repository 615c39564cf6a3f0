"""As separatrix.protocols.solvers, with two reading layers; "gathered" sends z_1 to w through the
first one's reads.
"""

from __future__ import annotations

from dataclasses import replace

from adversaries.two_readings import TwoReadings, TwoReadingsSizes
from separatrix.protocols.solvers import Parts, digit, number
from separatrix.protocols.tables import Message, written


def enough_two(sizes: TwoReadingsSizes, way: str) -> TwoReadingsSizes:
    """The values that a way with two reading layers needs; every other message is silent."""
    m = sizes.m
    N_1 = sizes.N_1
    n_1 = sizes.n_1
    silent = replace(sizes, reads_1=1, reads_2=1, caches_1=1, caches_2=1)
    return {
        "rows": replace(silent, reads_2=N_1**m),
        "carried": replace(silent, caches_1=m**sizes.t, reads_2=N_1),
        "gathered": replace(silent, reads_1=m**sizes.t, reads_2=N_1),
        "column": replace(silent, reads_2=N_1**n_1, caches_2=N_1**n_1),
        "cache": replace(silent, caches_2=N_1**N_1),
    }[way]


def two_readings_solver(sizes: TwoReadingsSizes, way: str) -> TwoReadings[int]:
    """The protocol with two reading layers of a way in `enough_two`, clipped to these sizes."""
    p = Parts(sizes.m, sizes.n_1, sizes.N_1, sizes.t)
    ways: dict[str, dict[str, Message]] = {
        "rows": {
            "w reads again": lambda known, carried, gathered: p.row(known),
            "answer": lambda known, first, late, gathered, again, *outputs: p.in_row(again, known),
        },
        "carried": {
            "carried": lambda B, first: number(B, sizes.m),
            "w reads again": lambda known, carried, gathered: p.entry(known, carried),
            "answer": lambda known, first, late, gathered, again, *outputs: again,
        },
        "gathered": {
            "gathered": lambda known, reads: number(known[1], sizes.m),
            "w reads again": lambda known, carried, gathered: p.entry(known, gathered),
            "answer": lambda known, first, late, gathered, again, *outputs: again,
        },
        "column": {
            "z_0 reads again": lambda known, first, output: p.column(
                known[0][p.place(known[1])], known[2]
            ),
            "late": lambda known, first, early, *reads: reads[-1],
            "answer": lambda known, first, late, gathered, again, *outputs: digit(
                late, known[2], sizes.N_1
            ),
        },
        "cache": p.cache(
            lambda known, first, late, gathered, again, *outputs: p.in_whole(late, known)
        ),
    }
    return TwoReadings(sizes, written(ways[way]))
