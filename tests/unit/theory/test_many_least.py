"""The size below which Theorems VI and VII show nothing: never above a size at which they do."""

from __future__ import annotations

from math import prod
from random import Random

import pytest
from support.depth_sizes import closed_form
from support.each import each

from separatrix.core.numbers.amounts import LONGEST_CONTEXT
from separatrix.stacks.architecture import Architecture
from separatrix.theory.arguments import Sizes
from separatrix.theory.fails.many_layers import TheoremVI, TheoremVII, least_entries
from separatrix.theory.judge import THEOREMS

SEARCHED = [*range(2), *(pytest.param(seed, marks=pytest.mark.slow) for seed in range(2, 72))]


def _drawn(seed: int) -> tuple[int, Sizes]:
    """Reads of 60 to 5,000 bits, and caches of none to 10^6; every sixth for Theorem VII."""
    rng = Random(seed)
    ahead = int(seed % 6 == 5)
    readers = 2 + ahead + (seed % 12 == 4)

    def bits(low: float, high: float) -> int:
        return int(10 ** rng.uniform(low, high))

    h = tuple(bits(1.8, 3.7) for _ in range(readers))
    sigma = tuple(0 if rng.random() < 0.4 else bits(0, 6) for _ in range(readers + 1))
    return ahead, Sizes(h, (0, *sigma[1:]) if ahead else sigma, (0,) * readers)


@pytest.mark.parametrize("seed", SEARCHED)
def test_it_is_below_every_size_that_a_search_finds(seed: int) -> None:
    ahead, sizes = _drawn(seed)
    found = (TheoremVI(), TheoremVII())[ahead].shortest(sizes)
    assert found is not None
    entries = prod(found.size)
    bits = entries.bit_length()
    least = least_entries(ahead, sizes, bits)
    assert least < entries
    assert (least > 0) == (bits <= min(sizes.h))


@each("h", [300, 10**4, 10**7])
def test_it_grows_like_the_closed_form(h: int) -> None:
    """n = 10008 h^9 + .. of three layers: both are h^9, but for logarithms."""
    sizes = Sizes((h, h, h), (0, 0, 0, 0), (0, 0, 0))
    entries = prod(closed_form(h).size)
    bits = min(entries.bit_length(), h)
    least = least_entries(1, sizes, bits)
    assert least < entries
    assert (least + 1) * bits**9 > h**9


def test_nothing_is_said_where_an_answer_holds_more_than_a_layer_reads() -> None:
    sizes = Sizes((10**6, 40), (0, 0, 0), (0, 0))
    assert least_entries(0, sizes, 41) == 0
    assert least_entries(0, sizes, 40) > 0


def test_caches_that_w_reads_after_make_it_larger() -> None:
    without, small, large = (
        least_entries(0, Sizes((500, 500), (0, sigma, 0), (0, 0)), 40) for sigma in (0, 1, 10**6)
    )
    assert 0 < without <= small
    assert large > 10 * small


@each(
    "stack, key, steps, silent",
    [
        ("full*3 + linear @ heads=1, head_dim=64", "VII", 3, True),
        ("full*3 + linear @ heads=1, head_dim=16", "VI", 4, True),
        ("full*3 + linear @ heads=1, head_dim=16", "VI", 3, False),
        ("linear + full*2 @ heads=1, head_dim=4", "VI", 3, False),
        ("loglinear + full*3 @ heads=1, head_dim=16", "VI", 4, True),
    ],
)
def test_what_a_card_need_not_search_for(stack: str, key: str, steps: int, silent: bool) -> None:
    theorem = THEOREMS[key]
    assert theorem.silent_up_to(Architecture.parse(stack), steps, LONGEST_CONTEXT) is silent
