"""Bits that a trained state holds: against a state whose content is known, and by hand."""

from __future__ import annotations

from collections import Counter
from fractions import Fraction
from itertools import product
from math import log2, sqrt

import pytest
from support.practice_tables import diverged, row, table, trial

from separatrix.errors import SpecError
from separatrix.practice import capacity
from separatrix.practice.capacity import best, bits_learned, deviations, held, numbers

FOUR = "gdn @ heads=1, head_dim=4"
EIGHT = "gdn @ heads=1, head_dim=8"
FACTS = "eva:n=12,V=16"


def told(bits: float, *, spread: float = 0.0, tested: int = 400, seed: int = 0):
    """A seed whose prompts cost `bits` on average, with that standard deviation."""
    return trial(seed, 500, bits=bits, bits_squares=bits**2 + spread**2, tested=tested)


def cell(stack: str, *trials, task: str = FACTS, mechanism: str = "gdn", **labels):
    return row({"mechanism": mechanism, **labels}, {0.01: trials}, architecture=stack, task=task)


STATES = {
    "two facts": (lambda f: f[:2], 2.0),
    "a fact and a sum": (lambda f: (f[0], (f[1] + f[2]) % 2), 1.0),
    "the sum of all": (lambda f: sum(f) % 2, 0.0),
    "how many ones": (sum, None),
    "which is first": (lambda f: (*f, 1).index(1), None),
}
"""Of three facts of two values: what a state keeps, and the bits that the bound finds, by hand."""


@pytest.mark.parametrize("keeps", STATES)
def test_the_bound_is_below_what_a_known_state_keeps(keeps: str) -> None:
    state, by_hand = STATES[keeps]
    lists = list(product(range(2), repeat=3))
    kept = Counter(state(facts) for facts in lists)
    entropy = sum(count / 8 * log2(8 / count) for count in kept.values())
    # the best guess of each fact, given the state, on all lists
    cost = 0.0
    for place, facts in product(range(3), lists):
        alike = [other[place] for other in lists if state(other) == state(facts)]
        cost -= log2(alike.count(facts[place]) / len(alike)) / 24
    found = bits_learned(cell("linear @ heads=1", task="eva:n=3,V=2"), told(cost))
    assert found.bits <= entropy + 1e-12
    if by_hand is not None:
        assert found.bits == pytest.approx(by_hand)


def test_bits_of_a_bound_by_hand() -> None:
    # 12 (4 - 1.5) bits; of one candidate, 1.96 errors of 12 * 0.5 / 20 bits
    found = bits_learned(cell(FOUR), told(1.5, spread=0.5))
    assert found.bits == pytest.approx(30.0)
    assert found.high - found.bits == pytest.approx(1.959964 * 0.3, abs=1e-5)
    assert found.bits - found.low == pytest.approx(1.959964 * 0.3, abs=1e-5)


def test_what_a_convolution_keeps_is_taken_off() -> None:
    plain = bits_learned(cell(FOUR), told(1.5))
    for length, of_last_tokens in ((1, 0.0), (2, 4.0), (4, 12.0)):
        found = bits_learned(cell(f"{FOUR}, conv={length}"), told(1.5))
        assert plain.bits - found.bits == pytest.approx(of_last_tokens)
        # and its buffer is none of the numbers
        assert numbers(cell(f"{FOUR}, conv={length}")) == 16


@pytest.mark.parametrize(
    ("stack", "carried"),
    [
        (FOUR, 16),
        ("linear @ heads=1, head_dim=4, value_dim=3", 16),
        ("window @ heads=1, head_dim=4, size=8", 64),
        ("loglinear @ heads=1, head_dim=2", 16),
        ("rwkv @ heads=1, head_dim=4", 20),
    ],
)
def test_numbers_of_the_state_after_the_facts(stack: str, carried: int) -> None:
    # 8 tokens x 2 x 4; four buckets of 12 tokens; a token shift is a part of RWKV's state
    assert numbers(cell(stack)) == carried


def test_nothing_is_held_below_nothing() -> None:
    worse_than_chance = bits_learned(cell(FOUR), told(5.0, spread=1.0))
    assert worse_than_chance.bits == worse_than_chance.low == worse_than_chance.high == 0
    assert bits_learned(cell(FOUR), diverged(0)).high == 0
    # results of an earlier version have no bits, which are not 0 bits of doubt
    assert bits_learned(cell(FOUR), trial(0, 0, due=0, bits=0.0)).high == 0


def test_the_interval_of_the_best_of_many_is_wider() -> None:
    # tables of the normal distribution: 1.96 for one, 2.807 at 1 - 0.05/20, 3.2905 at 1 - 0.05/100
    assert deviations(1) == pytest.approx(1.95996, abs=1e-4)
    assert deviations(10) == pytest.approx(2.80703, abs=1e-4)
    assert deviations(50) == pytest.approx(3.29053, abs=1e-4)
    chosen = best([cell(FOUR, told(2.0), told(1.0, spread=2.0, seed=1), diverged(2))])
    assert chosen is not None
    assert chosen.trial.seed == 1
    # three candidates: one that diverged was one, too
    wide = deviations(3) * 12 * 2.0 / sqrt(400)
    assert chosen.learned.low == pytest.approx(36.0 - wide)
    assert best([]) is None


def test_held_is_told_of_the_largest_state() -> None:
    found = table(
        "capacity",
        cell(FOUR, told(0.5), values=16),
        cell(EIGHT, told(1.0), told(2.0, seed=1), values=16, task="eva:n=20,V=16"),
        cell(EIGHT, told(3.0), told(4.0, seed=1), values=64, task="eva:n=16,V=64"),
        cell("rglru @ width=16", told(1.0), mechanism="rglru"),
    )
    of = held("gdn", found)
    assert of is not None
    # 20 (4 - 1) = 60 bits, against 16 (6 - 3) = 48: of 64 numbers
    assert of.best == Fraction(938, 1000)
    assert of.numbers == 64
    assert of.facts == 20
    assert of.values == (16, 64)
    assert of.seeds == 2
    assert of.row is found.rows[1]
    assert of.low <= of.best <= of.high
    assert held("mamba2", found) is None
    # what failed to train says nothing of its state
    assert held("gdn", table("capacity", cell(FOUR, told(4.0)))) is None
    other = held("rglru", found)
    assert other is not None
    assert other.best == Fraction(36, 16)


def test_facts_must_be_independent_and_the_stack_one_layer() -> None:
    with pytest.raises(SpecError, match="independent uniform facts"):
        bits_learned(cell(FOUR, task="recall:n=8,K=8,V=16"), told(1.0))
    with pytest.raises(SpecError, match="one layer"):
        bits_learned(cell("gdn*2 @ heads=1"), told(1.0))


def test_nothing_recorded_nothing_held(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(capacity, "read", lambda name: None)
    assert held("gdn") is None
