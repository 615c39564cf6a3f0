"""Theorems IV and V against the values of theory.md, section 5: certified as they stand there,
and met or beaten by the search.
"""

from __future__ import annotations

from dataclasses import replace

import pytest
from support.bounds import holds
from support.depth_sizes import five, four
from support.each import each

from separatrix.theory.arguments import Sizes
from separatrix.theory.fails import iv_two_reading_layers as iv
from separatrix.theory.fails import v_three_steps as v

IV = iv.TheoremIV()
V = v.TheoremV()


def _bits(heads: int, d: int, p: int) -> tuple[int, int]:
    """h of a full layer and the bits of a recurrent layer (or head) as wide: H (d+1) p and H d
    (d+1) p.
    """
    return heads * (d + 1) * p, heads * d * (d + 1) * p


FOUR = [
    # (H, d, p), bounded heads in each layer, n, (m, n_1, r, q, t, g)
    ((1, 4, 8), 0, 11_902, (34, 349, 16, 34, 34, 1)),
    ((1, 16, 16), 0, 1_978_667, (195, 10_146, 75, 195, 195, 1)),
    ((1, 4, 8), 1, 2_261_690, (312, 7_248, 64, 312, 312, 14)),
    ((1, 16, 16), 1, 59_695_580_808, (19_753, 3_022_101, 2_790, 19_734, 19_753, 189)),
]
FIVE = [
    # (H, d, p), layers before, between and after, n (None: as its parameters give), (m, n_1, n_2,
    # X, t, beta, q, r, g)
    ((1, 4, 8), (0, 0, 1), 1_518_784, (241, 1, 6_300, 241, 1, 1, 241, 55, 13)),
    (
        (1, 16, 16),
        (1, 1, 1),
        None,
        (2_062_164, 336_675, 92_780_327_893_311, 2_059_100, 2_028_076, 156, 1_668, 103, 89),
    ),
]


def _two(hdp: tuple[int, int, int], bounded: int) -> Sizes:
    h, state = _bits(*hdp)
    return four(h, h, bounded * state, bounded * state)


def _three(hdp: tuple[int, int, int], groups: tuple[int, int, int]) -> Sizes:
    h, state = _bits(*hdp)
    return five(h, h, *(layers * state for layers in groups))


@pytest.mark.parametrize(("hdp", "bounded", "n", "known"), FOUR)
def test_values_of_theorem_iv(hdp, bounded, n, known) -> None:
    sizes = _two(hdp, bounded)
    reference = iv.Parameters(*known)
    assert reference.length() == n
    assert holds(IV, reference, sizes)
    found = IV.shortest(sizes, 2)
    assert found is not None
    assert found.length() <= n
    assert holds(IV, found, sizes)


@each("hdp, bounded, n, known", FOUR)
def test_one_step_breaks_a_condition_of_theorem_iv(hdp, bounded, n, known) -> None:
    sizes = _two(hdp, bounded)
    reference = iv.Parameters(*known)
    more = IV.signs(replace(reference, r=reference.r + 1), sizes)
    assert not more[0].positive
    assert not holds(IV, replace(reference, n_1=reference.n_1 - 1), sizes)


def _place(known: tuple[int, ...], sizes: Sizes) -> v.Parameters:
    """The reference with its u_0, the smallest that its first condition allows."""
    m, n_1, n_2, X, t, beta, q, r, g = known
    for u_0 in range(beta):
        candidate = v.Parameters(m=m, n_1=n_1, n_2=n_2, X=X, t=t, beta=beta, q=q, r=r, g=g, u_0=u_0)
        if V.signs(candidate, sizes)[0].positive:
            return candidate
    raise AssertionError("no u_0 below beta")


@pytest.mark.parametrize(("hdp", "groups", "n", "known"), FIVE)
def test_values_of_theorem_v(hdp, groups, n, known) -> None:
    sizes = _three(hdp, groups)
    reference = _place(known, sizes)
    if n is None:
        assert f"{reference.length():.4e}" == "6.4415e+25"
    else:
        assert reference.length() == n
    assert holds(V, reference, sizes)
    found = V.shortest(sizes, 3)
    assert found is not None
    assert found.length() <= reference.length()
    assert holds(V, found, sizes)


@pytest.mark.parametrize(("hdp", "groups", "n", "known"), FIVE)
def test_one_step_breaks_a_condition_of_theorem_v(hdp, groups, n, known) -> None:
    sizes = _three(hdp, groups)
    reference = _place(known, sizes)
    assert not V.signs(replace(reference, r=reference.r + 1), sizes)[2].positive
    assert not holds(V, replace(reference, n_2=reference.n_2 - 1), sizes)
    if sizes.sigma[0]:
        assert not V.signs(replace(reference, t=reference.t - 2_000), sizes)[1].positive
        assert not V.signs(replace(reference, u_0=reference.u_0 - 1), sizes)[0].positive


@pytest.mark.parametrize(("hdp", "n"), [((1, 4, 8), 12_242), ((1, 16, 16), 1_988_027)])
def test_theorem_v_without_bounded_layers(hdp, n) -> None:
    found = V.shortest(_three(hdp, (0, 0, 0)), 3)
    assert found is not None
    assert found.length() <= n
