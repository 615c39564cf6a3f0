"""Theorems IV and V against theory.md, section 5: h = H(d+1)p; a bounded head or layer as wide as the full head holds H d(d+1)p bits."""

from __future__ import annotations

from dataclasses import replace

import pytest

from separatrix.theory import depth_three, depth_two

FOUR = [
    # (H, d, p), bounded heads in each layer, n, (m, n_1, r, q, t, g)
    ((1, 4, 8), 0, 11_902, (34, 349, 16, 34, 34, 1)),
    ((1, 16, 16), 0, 1_978_667, (195, 10_146, 75, 195, 195, 1)),
    ((1, 4, 8), 1, 2_261_690, (312, 7_248, 64, 312, 312, 14)),
    ((1, 16, 16), 1, 59_695_580_808, (19_753, 3_022_101, 2_790, 19_734, 19_753, 189)),
]
FIVE = [
    # (H, d, p), recurrent layers before, between, after, n
    ((1, 4, 8), (0, 0, 0), 12_242),
    ((1, 16, 16), (0, 0, 0), 1_988_027),
    ((1, 4, 8), (0, 0, 1), 1_518_784),
    ((1, 16, 16), (1, 1, 1), 64_415_439_272_327_976_747_348_566),  # N_2 + N_1 + m + 2 of the tuple below; 6.4415e25 in the table
]
ONE_AFTER = depth_three.Parameters(m=241, n_1=1, n_2=6_300, X=241, t=1, beta=1, q=241, r=55, g=13, u_0=0)
# u_0 = floor(4352 / log2(2062164 * 336675 / 1667)) = floor(151.99)
EVERYWHERE = depth_three.Parameters(
    m=2_062_164, n_1=336_675, n_2=92_780_327_893_311, X=2_059_100, t=2_028_076, beta=156, q=1_668, r=103, g=89, u_0=151
)


def _bits(hdp: tuple[int, int, int]) -> tuple[int, int]:
    heads, d, p = hdp
    return heads * (d + 1) * p, heads * d * (d + 1) * p


def _four(hdp: tuple[int, int, int], bounded: int) -> depth_two.Sizes:
    h, state = _bits(hdp)
    return depth_two.Sizes(h_1=h, h_2=h, sigma_1=bounded * state, sigma_2=bounded * state)


def _five(hdp: tuple[int, int, int], groups: tuple[int, int, int]) -> depth_three.Sizes:
    h, state = _bits(hdp)
    before, between, after = groups
    return depth_three.Sizes(h_1=h, h_2=h, sigma_0=before * state, sigma_1=between * state, sigma_2=after * state)


@pytest.mark.parametrize(("hdp", "bounded", "n", "known"), FOUR)
def test_the_table_of_iv_holds_and_one_step_less_does_not(hdp, bounded, n, known) -> None:
    m, n_1, r, q, t, g = known
    sizes, reference = _four(hdp, bounded), depth_two.Parameters(m=m, n_1=n_1, r=r, q=q, t=t, g=g)
    assert reference.length() == n
    assert depth_two.holds(reference, sizes)
    assert not depth_two.holds(replace(reference, n_1=n_1 - 1), sizes)


@pytest.mark.parametrize(("hdp", "bounded", "n", "known"), FOUR)
def test_best_of_iv_meets_the_table(hdp, bounded, n, known) -> None:
    sizes = _four(hdp, bounded)
    found = depth_two.best(sizes)
    assert found is not None
    assert found.length() <= n
    assert depth_two.holds(found, sizes)
    assert not depth_two.holds(replace(found, n_1=found.n_1 - 1), sizes)
    assert depth_two.best_at(sizes, known[0], known[1]) is not None


@pytest.mark.parametrize(("hdp", "groups", "known"), [((1, 4, 8), (0, 0, 1), ONE_AFTER), ((1, 16, 16), (1, 1, 1), EVERYWHERE)])
def test_the_table_of_v_holds_and_one_step_less_does_not(hdp, groups, known) -> None:
    sizes = _five(hdp, groups)
    assert known.length() == {g: n for _, g, n in FIVE}[groups]
    assert depth_three.holds(known, sizes)
    assert not depth_three.holds(replace(known, n_2=known.n_2 - 1), sizes)


@pytest.mark.parametrize(("hdp", "groups", "n"), FIVE)
def test_best_of_v_meets_the_table(hdp, groups, n) -> None:
    sizes = _five(hdp, groups)
    found = depth_three.best(sizes)
    assert found is not None
    assert found.length() <= n
    assert depth_three.holds(found, sizes)
    assert not depth_three.holds(replace(found, n_2=found.n_2 - 1), sizes)
