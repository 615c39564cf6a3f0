"""The search behind Theorems VI and VII: its floats against balls, its valley and its integers
against problems solved by hand, and what it finds against the table of theory.md, section 11.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from support.each import each

from separatrix.core.numbers.occupancy import Occupancy
from separatrix.stacks.architecture import Architecture
from separatrix.tasks import SeqComp
from separatrix.theory.arguments import Sizes
from separatrix.theory.fails.many_layers import (
    MOST_READERS,
    TheoremVI,
    TheoremVII,
    _spread,
    most_hit,
)
from separatrix.theory.fails.many_proof import Parameters
from separatrix.theory.judge import judge, recheck
from separatrix.theory.search import driver


@each(
    "bins, balls, groups, bits",
    [
        (278, 234, 1, 117),
        (10**4, 3 * 10**4, 1, 10**3),
        (37_500_000, 34_500_000, 9, 10**7),
        (10**12, 10**6, 1, 3 * 10**6),
        (10**40, 7 * 10**40, 10**6, 10**38),
        (10**40, 10**38, 1, 10**40),
    ],
)
def test_the_largest_number_of_bins_is_that_of_balls(
    bins: int, balls: int, groups: int, bits: int
) -> None:
    """Balls certify a little fewer bins than the floats propose, and not a little more."""
    bins -= bins % groups
    balls -= balls % groups
    proposed = int(most_hit(float(bins), float(balls), float(groups), float(bits)))

    def certified(hit: int) -> bool:
        return bool(Occupancy(bins, balls, hit, groups).log2_ball() >= bits)

    assert certified(proposed - proposed // 10**6)
    assert not certified(proposed + 2 + proposed // 10**6)


@dataclass(frozen=True)
class Looked:
    """Theorem VI (0) or VII (1) in a stack of these sizes."""

    ahead: int
    s: Sizes

    def shortest(self) -> Parameters | None:
        return (TheoremVI(), TheoremVII())[self.ahead].shortest(self.s)

    def at(self, size: tuple[int, ...]) -> Parameters | None:
        return (TheoremVI(), TheoremVII())[self.ahead].at_size(self.s, size, self.shortest())

    def holds(self, parameters: Parameters) -> bool:
        return (TheoremVI(), TheoremVII())[self.ahead].holds(self.s, parameters)


VI = Looked(0, Sizes((40, 40), (160, 160, 160), (0, 0)))
VII = Looked(1, Sizes((40, 40, 40), (0, 160, 160, 160), (0, 0, 0)))


@pytest.mark.parametrize(
    ("search", "printed"),
    [(VI, 417_181_347), pytest.param(VII, 1959 * 10**12, marks=pytest.mark.slow)],
)
def test_rows_of_the_table_are_met(search: Looked, printed: int) -> None:
    """theory.md, section 11: (1,4,8), R = 2 with layers everywhere, and R = 3 with a head in the
    first; found twice alike, and found again at their own sizes and at larger ones.
    """
    found = search.shortest()
    assert found is not None
    assert found.length() <= printed
    assert search.holds(found)
    for cached in (_spread, driver.shortest):
        cached.cache_clear()
    assert search.shortest() == found
    larger = tuple(n * 5 // 4 for n in found.size)
    here = search.at(larger)
    assert here is not None
    assert here.size == larger
    assert search.holds(here)
    assert search.at(tuple(n // 2 for n in found.size)) is None


def test_values_of_w_2_are_left_over_where_they_are_too_many() -> None:
    """All 1,782 of them would cost more than they ask for."""
    size = (19_676, 38, 1_782)
    search = Looked(0, Sizes((51, 51), (0, 15, 0), (0, 0)))
    here = search.at(size)
    assert here is not None
    assert here.size == size
    assert here.g * here.G < 1_782 // 2
    assert search.holds(here)


FAR_APART = [
    # (h, sigma, open) where the valley with f_2 = 1 lies far from that with f_2 = 0, and n there
    (((5, 12260), (82, 122315, 325867), (0, 0)), 3.2e12),
    (((26, 60, 872), (73, 98657, 0, 1871), (0, 70038, 0)), 1.81e28),
    (((23368, 5, 47), (36, 4819839568, 0, 0), (493, 604617, 33)), 1.25e40),
]


@pytest.mark.slow
@pytest.mark.parametrize(("sizes", "most"), FAR_APART)
def test_every_choice_of_flags_is_looked_at_from_starts_of_its_own(
    sizes: tuple[tuple[int, ...], tuple[int, ...], tuple[int, ...]], most: float
) -> None:
    """From the valley without flags the others were not reached, and n was 4 to 1,600 times as
    large; one bit more made it smaller.
    """
    found = Looked(0, Sizes(*sizes)).shortest()
    assert found is not None
    assert found.flags[0] == 1
    assert found.length() <= most


def test_beyond_six_reading_layers_nothing_is_looked_for() -> None:
    h = (40,) * (MOST_READERS + 1)
    assert Looked(1, Sizes(h, (0,) * (len(h) + 1), (0,) * len(h))).shortest() is None


@st.composite
def _any_sizes(draw: st.DrawFn) -> Looked:
    """Reads of 1 to 10^6 bits, all different; caches of none to 10^10 bits, one by one."""
    ahead = draw(st.integers(0, 1))
    readers = draw(st.integers(2 + ahead, 4))
    h = tuple(draw(st.floats(0, 6)) for _ in range(readers))
    sigma = tuple(draw(st.one_of(st.none(), st.floats(0, 10))) for _ in range(readers + 1))
    caches = tuple(0 if power is None else int(10**power) for power in sigma)
    if ahead:
        caches = (0, *caches[1:])
    return Looked(ahead, Sizes(tuple(int(10**x) for x in h), caches, (0,) * readers))


@pytest.mark.slow
@settings(max_examples=25, deadline=None)
@given(_any_sizes())
# a layer that reads one bit: the first guesses lack 1,800 e-folds
@example(Looked(1, Sizes((1, 16837, 131, 1), (0, 0, 184535, 0, 2), (0, 0, 0, 0))))
def test_of_any_sizes_something_is_found_and_certified(search: Looked) -> None:
    """Also with twice the bits, where it takes no shorter prompts but for what rounding costs."""
    found = search.shortest()
    assert found is not None
    assert search.holds(found)
    s = search.s
    larger = Sizes(tuple(2 * h for h in s.h), tuple(2 * sigma for sigma in s.sigma), s.opened)
    more = replace(search, s=larger).shortest()
    assert more is not None
    # what fails with more bits fails with fewer
    assert search.holds(more)
    assert found.length() <= 1.25 * more.length()


def test_a_size_with_room_for_one_bit_is_found() -> None:
    """Verified before at n = 4,775,749,356,639,644,341,886: x and Delta_1 hold only together there,
    within a 10^-12 part, and both are integers.
    """
    stack = Architecture.parse("full*3 + linear @ heads=1, head_dim=8")
    task = SeqComp(L=3, m=1_375_148_573_838_972, branching=(646, 5_375))
    found = judge(stack, task)[0]
    assert (found.status, found.theorem, found.n) == ("FAILS", "VII", 4775749356639644341886)
    assert recheck(found) == ""
