"""The adversaries of Theorems VI and VII against random protocols, at sizes where the theorems
promise success and where they do not, against a protocol that just lacks one value, and against
broken ones.
"""

from __future__ import annotations

import doctest
from dataclasses import replace
from itertools import product
from random import Random

import adversaries
import numpy as np
import pytest
from adversaries.many_readings import ManyReadings, ManyReadingsSizes
from adversaries.many_solvers import enough_many, many_readings_solver
from adversaries.many_steps import Adversary, Play
from adversaries.prices import Choice
from adversaries.trials import TORN, WAYS, play, plays
from adversaries.vi_adversary import AdversaryVI
from adversaries.vii_adversary import AdversaryVII
from support.each import each

from separatrix.protocols.collision import AdversaryFailed
from separatrix.protocols.tables import Tables, random_tables, skewed_tables, within

TWOS = list(product(range(2), repeat=2))
FOURS = [(0, 1, 2, 3), (1, 2, 3, 0), (2, 3, 0, 1), *product((0, 3), (1, 2), (0, 1), (2, 0))]
EIGHTS = [(number,) * 8 for number in range(4)]
OF = {"VI": AdversaryVI, "VII": AdversaryVII}


def adversary(line: ManyReadings, choice: Choice, functions: object = None) -> Adversary:
    return OF[line.sizes.theorem](line, choice, functions)  # type: ignore[arg-type]


def confirm(sizes: ManyReadingsSizes, tables: Tables[int], found: Play) -> None:
    """By a fresh protocol and the task's oracle: one view, one answer, two right answers."""
    line = ManyReadings(sizes, tables)
    prompts = [found.collision.first, found.collision.second]
    runs = [line.run(tokens) for tokens in prompts]
    right = sizes.task.answer(np.array(prompts))
    assert runs[0] == runs[1]
    assert right[0] != right[1]


def many(
    m: int,
    branching: tuple[int, ...],
    t: int,
    reads: tuple[int, ...],
    caches: tuple[int, ...],
    x: int,
    contents: tuple[int, ...],
    Y: tuple[int, ...],
    flags: tuple[int, ...],
) -> tuple[ManyReadingsSizes, Choice]:
    sizes = ManyReadingsSizes(m=m, branching=branching, t=t, reads=reads, caches=caches)
    return sizes, Choice(x=x, contents=contents, Y=Y, flags=flags)


PROMISED = [
    # with N_2 = 4 and Y_2 = 2, F = 4 and (C) is 256 > 2^X_3, which is for the first one
    # 2 (Lemma J) * 3^2 (what w reads in layer 2) * 3^2 (the last cache before w) = 162
    many(2, (1, 2), 1, (1, 3), (1, 1, 3), 1, (1, 2), (1, 2), (0, 0)),
    many(2, (1, 2), 2, (1, 1, 1), (1, 2, 1, 3), 1, (2, 2), (2, 2), (0, 1)),
]
PROMISED_TOO = [
    many(2, (1, 2), 2, (1, 1), (2, 1, 2), 1, (2, 2), (2, 2), (0, 1)),
    many(2, (1, 2), 1, (1, 1), (1, 2, 3), 1, (2, 2), (2, 2), (1, 1)),
    many(2, (1, 2), 1, (1, 1, 3), (1, 1, 1, 3), 1, (1, 2), (1, 2), (1, 0)),
    many(2, (1, 1, 2), 1, (1, 1, 2), (1,) * 4, 1, (1, 2, 2), (1, 2, 2), (0, 0, 0)),
]


@pytest.mark.parametrize(
    ("sizes", "choice", "seeds"),
    [
        *[(*one, range(1)) for one in PROMISED],
        *[
            pytest.param(*one, range(3), marks=pytest.mark.slow)
            for one in (*PROMISED, *PROMISED_TOO)
        ],
    ],
)
def test_where_the_theorem_promises_it_every_protocol_collides(
    sizes: ManyReadingsSizes, choice: Choice, seeds: range
) -> None:
    for seed in seeds:
        tables = random_tables(seed)
        found = adversary(ManyReadings(sizes, within(tables)), choice).play()
        assert found.promised
        confirm(sizes, tables, found)


@pytest.mark.parametrize("seed", [2, 3, 4])
def test_elsewhere_it_goes_on_with_what_survives(seed: int) -> None:
    found = play(seed)
    assert found is not None
    assert found.end == "collision"


@pytest.mark.slow
@pytest.mark.parametrize("shift", [0, 1])
@pytest.mark.parametrize("L", [5, 6])
def test_more_layers(L: int, shift: int) -> None:
    """Up to six reading layers; every group has a bit, and so has every read."""
    R = L - 1 + shift
    sizes = ManyReadingsSizes(
        m=2, branching=(1,) * (L - 2) + (2,), t=1, reads=(2,) * R, caches=(1,) + (2,) * R
    )
    random = Random(L)
    last = [tuple(random.randrange(4) for _ in range(4)) for _ in range(64)]
    tables = skewed_tables(3, 0.02)
    functions = [last, *[[(0, 1), (1, 0)]] * (L - 2)]
    choice = Choice(contents=(2,) * (L - 1))
    confirm(sizes, tables, adversary(ManyReadings(sizes, tables), choice, functions).play())


@pytest.mark.slow
def test_no_assertion_fails_at_a_protocol_that_keeps_the_rules() -> None:
    """Forty random protocols; section 11 reports 35,476 assertions of its authors."""
    ends = plays(range(40))
    assert not [one for one in ends if one.end == "caught" or one.shown]
    assert sum(one.end == "collision" for one in ends) >= 36
    assert sum(one.asserted for one in ends) > 35_476


@each(
    "way, seed, law",
    [
        (TORN, 3, "query"),
        ("side channel", 3, "known"),
        ("side channel", 4, "query"),
        ("look-ahead", 13, "causal"),
        ("large read", 8, "values"),
        ("large cache", 3, "values"),
        ("unstreamed read", 3, "known"),
        ("unstreamed cache", 4, "class"),
    ],
)
def test_what_is_broken_is_caught(way: str, seed: int, law: str) -> None:
    found = play(seed, way)
    assert found is not None
    assert (found.end, found.law, found.shown) == ("caught", law, True)


@pytest.mark.slow
@pytest.mark.parametrize("way", WAYS)
def test_most_of_what_is_broken_is_caught(way: str) -> None:
    """Of the runs in which a rule was broken before the adversary's eyes, two of three at least are
    caught; benchmarks/adversaries.py prints the shares. Nothing is caught that is not there.
    """
    found = plays(range(25), way)
    shown = [one for one in found if one.shown]
    caught = [one for one in found if one.end == "caught"]
    assert all(one.shown for one in caught)
    assert len(caught) >= 2 / 3 * len(shown) > 0


def silent(theorem: str) -> ManyReadingsSizes:
    R = 2 if theorem == "VI" else 3
    return ManyReadingsSizes(m=2, branching=(1, 2), t=2, reads=(1,) * R, caches=(1,) * (R + 1))


def prompts(sizes: ManyReadingsSizes, count: int) -> np.ndarray:
    random = Random(7)
    rows: list[list[int]] = []
    for _ in range(count):
        row = [random.randrange(n) for n in reversed(sizes.N) for _ in range(n)]
        row[len(row) - sizes.m : len(row) - sizes.t] = sizes.lead
        rows.append([*row, random.randrange(sizes.m), random.randrange(sizes.W)])
    return np.array(rows)


@pytest.mark.parametrize(
    "sizes",
    [
        silent("VI"),
        silent("VII"),
        ManyReadingsSizes(m=3, branching=(2, 1, 2), t=2, reads=(1,) * 3, caches=(1,) * 4),
        ManyReadingsSizes(m=2, branching=(2, 2, 1), t=1, reads=(1,) * 4, caches=(1,) * 5),
    ],
    ids=str,
)
def test_a_protocol_with_enough_values_is_right(sizes: ManyReadingsSizes) -> None:
    full = enough_many(sizes)
    line = many_readings_solver(full)
    rows = prompts(full, 100)
    answers = [line.run(tuple(row)).answer for row in rows.tolist()]
    assert answers == full.task.answer(rows).tolist()


@pytest.mark.parametrize("theorem", ["VI", "VII"])
def test_one_value_less_and_the_confused_functions_are_found(theorem: str) -> None:
    """The cache tells the last two of 256 functions apart no more; with all values nothing is
    left to find. The last 24 of z_3 are tried, and all z_2.
    """
    full = enough_many(silent(theorem))
    sizes = replace(full, caches=(*full.caches[:-1], 255))
    quads = [(a, b, 3, 3) for a in range(4) for b in range(4)]
    functions = [quads, [(0, 0), (0, 1), (1, 0), (1, 1)]]
    choice = Choice(contents=(2, 2))
    found = adversary(many_readings_solver(sizes), choice, functions).play()
    # numbers have the first entry lowest: 254 is (2, 3, 3, 3), and 255 is clipped to it
    assert {found.collision.first[:4], found.collision.second[:4]} == {(2, 3, 3, 3), (3, 3, 3, 3)}
    with pytest.raises(AdversaryFailed, match="agree wherever w may ask") as failed:
        adversary(many_readings_solver(full), choice, functions).play()
    assert not failed.value.promised


@pytest.mark.parametrize("shift", [0, 1])
@pytest.mark.parametrize(
    ("m", "branching", "choice", "functions"),
    [
        (2, (2, 1), Choice(x=2, contents=(2, 2)), [FOURS[:6], FOURS[6:9]]),
        (4, (1, 2), Choice(G=2, contents=(2, 2)), [EIGHTS, FOURS[:3]]),
        (2, (1, 1, 1), Choice(contents=(2, 2, 2)), [TWOS, TWOS, TWOS]),
    ],
)
def test_prices_are_what_is_fixed(
    shift: int,
    m: int,
    branching: tuple[int, ...],
    choice: Choice,
    functions: list[list[tuple[int, ...]]],
) -> None:
    """Where every set is as large as it may be, each step fixes exactly what its price counts."""
    L = len(branching) + 1
    R = L - 1 + shift
    sizes = ManyReadingsSizes(m=m, branching=branching, t=2, reads=(1,) * R, caches=(1,) * (R + 1))
    for flags in product((0, 1), repeat=L - 1):
        line = ManyReadings(sizes, random_tables(0))
        one = adversary(line, replace(choice, flags=flags), functions)
        one.play()
        contents = one.contents
        assert [len(spread.contents) for spread in contents.spreads] == [2] * choice.G
        assert [len(z) for z in contents.chosen.values()] == [2] * (L - 2)
        places = {place for spread in contents.spreads for place in spread.places}
        for number, (paid, allowed) in enumerate(one.ledger.steps):
            if shift and not number:
                # z_0 is a token in layer 1, which groups may share
                paid["read", 1] += min(choice.G * choice.x, sizes.t) - len(places)
            assert paid == allowed


@pytest.mark.slow
def test_the_example_of_the_module() -> None:
    results = doctest.testmod(adversaries)
    assert results.attempted > 0
    assert results.failed == 0
