"""Theorems IV and V at the sizes of theory.md, section 5: the last number found is the smallest,
and the table's own task size is found.
"""

from __future__ import annotations

from dataclasses import replace

import pytest
from support.bounds import holds
from support.depth_sizes import five, four

from separatrix.tasks import SeqComp
from separatrix.theory.fails import iv_two_reading_layers as iv
from separatrix.theory.fails import v_three_steps as v

IV = iv.TheoremIV()
V = v.TheoremV()

FOUR = [
    # (d, p) of one full head, bounded heads in each layer, n, (m, n_1)
    ((4, 8), 0, 11_902, (34, 349)),
    ((16, 16), 0, 1_978_667, (195, 10_146)),
    ((4, 8), 1, 2_261_690, (312, 7_248)),
    ((16, 16), 1, 59_695_580_808, (19_753, 3_022_101)),
]
FIVE = [
    # (d, p), recurrent layers before, between and after, n, (m, n_1, n_2); without bounded layers
    # the table gives n only
    ((4, 8), (0, 0, 0), 12_242, None),
    ((16, 16), (0, 0, 0), 1_988_027, None),
    ((4, 8), (0, 0, 1), 1_518_784, (241, 1, 6_300)),
    (
        (16, 16),
        (1, 1, 1),
        64_415_439_272_327_976_747_348_566,
        (2_062_164, 336_675, 92_780_327_893_311),
    ),
]


def _bits(d: int, p: int) -> tuple[int, int]:
    """h and the bits of a recurrent layer or bounded head as wide."""
    return (d + 1) * p, d * (d + 1) * p


@pytest.mark.parametrize(("dp", "bounded", "n", "place"), FOUR)
def test_the_search_of_iv(
    dp: tuple[int, int], bounded: int, n: int, place: tuple[int, int]
) -> None:
    h, state = _bits(*dp)
    sizes = four(h_1=h, h_2=h, sigma_1=bounded * state, sigma_2=bounded * state)
    m, n_1 = place
    assert m + n_1 * m + 2 == n
    found = IV.shortest(sizes, 2)
    here = IV.best_at(sizes, SeqComp(L=2, m=m, branching=(n_1,)))
    assert found is not None
    assert found.length() <= n
    assert holds(IV, found, sizes)
    assert not holds(IV, replace(found, n_1=found.n_1 - 1), sizes)
    assert here is not None
    assert (here.m, here.n_1) == place
    assert holds(IV, here, sizes)


@pytest.mark.parametrize(("dp", "groups", "n", "place"), FIVE)
def test_the_search_of_v(
    dp: tuple[int, int], groups: tuple[int, int, int], n: int, place: tuple[int, int, int] | None
) -> None:
    h, state = _bits(*dp)
    before, between, after = groups
    sizes = five(
        h_1=h, h_2=h, sigma_0=before * state, sigma_1=between * state, sigma_2=after * state
    )
    found = V.shortest(sizes, 3)
    assert found is not None
    assert found.length() <= n
    assert holds(V, found, sizes)
    assert not holds(V, replace(found, n_2=found.n_2 - 1), sizes)
    if place is not None:
        m, n_1, n_2 = place
        assert m + n_1 * m + n_2 * n_1 * m + 2 == n
        here = V.best_at(sizes, SeqComp(L=3, m=m, branching=(n_1, n_2)))
        assert here is not None
        assert (here.m, here.n_1, here.n_2) == place
        assert holds(V, here, sizes)
