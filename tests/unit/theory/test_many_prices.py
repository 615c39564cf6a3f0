"""The prices X_l of Theorems VI and VII against theory.md, section 11, written out term by term a
second time; with spelled values and open blocks, by the differences that the section states.
"""

from __future__ import annotations

from dataclasses import replace
from math import prod

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.each import each

from separatrix.core.errors import SizeError
from separatrix.core.numbers.occupancy import Occupancy
from separatrix.theory.arguments import Pigeonhole, Sizes
from separatrix.theory.fails.many_proof import (
    Choice,
    Hit,
    Parameters,
    class_bits,
    conditions,
    prices,
)


def _as_written(vii: bool, s: Sizes, p: Choice[int]) -> list[int]:
    """X_2..X_L, every name and every sum as in theory.md."""
    L, G, t, x = p.L, p.G, p.t, p.x
    h = dict(enumerate(s.h, 1))
    sigma = dict(enumerate(s.sigma))
    delta = dict(enumerate(p.contents, 1))
    f = dict(enumerate(p.flags, 2))
    n = dict(enumerate(p.n, 1)) | {2: p.g * p.G}
    N = {0: p.m}
    for a in range(1, L):
        N[a] = p.n[a - 1] * N[a - 1]
    W = prod(n.values())
    tok = {2: N[1] + p.m - t} | {a: N[a - 1] for a in range(3, L + 1)}
    Pi = {a: prod(delta[i] for i in range(2, a)) for a in range(2, L + 1)}
    Mid = {
        a: sum(tok[i] * prod(delta[j] for j in range(i, a)) for i in range(2, a))
        for a in range(2, L + 1)
    }
    Low = {a: Mid[a] + Pi[a] * G * delta[1] * (t + x) for a in Mid}
    Low_ = Low | {2: G * (delta[1] * t + x)}
    if vii:
        X = {2: sigma[1] + h[1] * (W + G * delta[1] * t + min(G * x, t)) + h[2] * x * W}
        X[2] += sigma[2] + h[2] * G * delta[1] * (t + x) if f[2] else sigma[2] * G * delta[1] * x
    else:
        X = {2: sigma[0] + h[1] * x * W}
        X[2] += sigma[1] + h[1] * G * (delta[1] * t + x) if f[2] else sigma[1] * G * delta[1] * x
    for a in range(2, L):
        k = a + 1 if vii else a
        X[a + 1] = delta[a] * X[a] + 1
        X[a + 1] += sum(sigma[j] for j in range(1 if vii else 0, k))
        X[a + 1] += delta[a] * tok[a] * sum(h[j] for j in range(1, k))
        X[a + 1] += h[k] * Pi[a] * delta[1] * x * W
        X[a + 1] += (1 - f[a]) * h[k - 1] * (Low if vii else Low_)[a]
        if f[a + 1]:
            lower = Low[a] if f[a] else delta[a] * Low[a]
            X[a + 1] += sigma[k] + h[k] * (delta[a] * tok[a] + lower)
        else:
            X[a + 1] += sigma[k] * delta[a] * Pi[a] * G * delta[1] * x
    return [X[a] for a in range(2, L + 1)]


@st.composite
def _cases(draw: st.DrawFn) -> tuple[bool, Sizes, Choice[int]]:
    vii = draw(st.booleans())
    L = draw(st.integers(3, 6))
    R = L if vii else L - 1
    number = st.integers(1, 40)

    def some(count: int, least: int = 1) -> tuple[int, ...]:
        return tuple(draw(st.lists(st.integers(least, 40), min_size=count, max_size=count)))

    part, G, g, t = (draw(number) for _ in range(4))
    m = max(t, G * part + draw(st.integers(0, 3)))
    n = list(some(L - 1))
    n[1] = g * G + draw(st.integers(0, 3))
    flags = tuple(draw(st.lists(st.integers(0, 1), min_size=L - 1, max_size=L - 1)))
    choice = Choice(m, tuple(n), part, G, g, t, draw(st.integers(1, t)), some(L - 1), flags)
    sigma = some(R + 1, 0)
    sizes = Sizes(some(R), (0, *sigma[1:]) if vii else sigma, (0,) * R)
    return vii, sizes, choice


@given(_cases())
def test_prices_are_those_of_the_theory(case: tuple[bool, Sizes, Choice[int]]) -> None:
    vii, s, p = case
    assert list(prices(int(vii), s, p)) == _as_written(vii, s, p)
    queries = p.g * p.n[0] * prod(p.n[2:])
    assert class_bits(int(vii), s, p) == (s.sigma[1] + s.h[0] * queries if vii else s.sigma[0])


@given(_cases())
def test_floats_and_integers_agree(case: tuple[bool, Sizes, Choice[int]]) -> None:
    vii, s, p = case

    floats = Choice(
        float(p.m),
        tuple(float(n) for n in p.n),
        *(float(value) for value in (p.part, p.G, p.g, p.t, p.x)),
        contents=tuple(float(delta) for delta in p.contents),
        flags=p.flags,
    )
    for exact, near in zip(prices(int(vii), s, p), prices(int(vii), s, floats), strict=True):
        assert near == pytest.approx(exact, rel=1e-12)


@given(_cases(), st.integers(0, 4))
def test_open_blocks_are_owed_at_each_cut(
    case: tuple[bool, Sizes, Choice[int]], which: int
) -> None:
    """Layer j's reads are fixed at the cut after z_l where j < l (VI) or j <= l (VII): X_l owes its
    open block there, and X_{l+1} owes Delta_l times what X_l does.
    """
    vii, s, p = case
    layer = which % len(s.h)
    opened = [0] * len(s.h)
    opened[layer] = 7
    owed = 0
    expected: list[int] = []
    for level in range(2, p.L + 1):
        owed = owed * (p.contents[level - 2] if level > 2 else 1)
        if layer + 1 <= level - 1 + int(vii):
            owed += 7
        expected.append(owed)
    plain = prices(int(vii), s, p)
    blocks = replace(s, opened=tuple(opened))
    found = prices(int(vii), blocks, p)
    assert [b - a for a, b in zip(plain, found, strict=True)] == expected
    more = class_bits(int(vii), blocks, p) - class_bits(int(vii), s, p)
    assert more == (7 if vii and layer == 0 else 0)


GOOD = {
    "m": 12,
    "n_1": 2,
    "n_2": 6,
    "n_3": 2,
    "m'": 5,
    "G": 2,
    "g": 3,
    "t": 4,
    "x": 2,
    "Delta_1": 2,
    "Delta_2": 3,
    "Delta_3": 1,
    "y_1": 4,
    "Y_2": 48,
    "Y_3": 144,
    "f_2": 0,
    "f_3": 1,
    "f_4": 0,
}


def test_numbers_are_read_back() -> None:
    p = Parameters.of(GOOD)
    assert p.numbers == GOOD
    assert (p.L, p.values(1), p.bins(2), p.bins(3), p.places(2), p.places(3), p.places(4)) == (
        *(4, 24, 48, 144, 16, 144, 288),
    )
    assert p.length() == 12 + 24 + 144 + 288 + 2
    assert Parameters.of(GOOD | {"of another theorem": 1}) == p


@each(
    "name, value",
    [
        *(("m", 9), ("n_2", 5), ("m'", 7), ("G", 3), ("g", 4), ("t", 13), ("t", 1), ("x", 5)),
        *(("y_1", 5), ("y_1", 0), ("Delta_1", 1), ("Y_2", 49), ("Y_3", 145), ("Y_3", 0)),
        *(("f_2", 2), ("n_1", 0), ("x", 0)),
    ],
)
def test_parameters_out_of_range_are_refused(name: str, value: int) -> None:
    with pytest.raises(SizeError):
        Parameters.of(GOOD | {name: value})


@each("name", ["Delta_1", "Delta_3", "Y_2", "f_4", "n_2", "n_3"])
def test_missing_parameters_are_refused(name: str) -> None:
    with pytest.raises((SizeError, KeyError)):
        Parameters.of({key: value for key, value in GOOD.items() if key != name})


def test_what_balls_are_thrown_into() -> None:
    """(B_2): G groups of N_1 bins, n_1 y_1 balls for each content; (B_3): N_2 bins, g Y_2 balls for
    each; and the entries of (C) are n_3 Y_3.
    """
    p = Parameters(
        m=20,
        n=(3, 8, 5),
        part=10,
        G=2,
        g=4,
        t=7,
        x=6,
        contents=(2, 3, 11),
        y_1=9,
        hit=(50, 70),
        flags=(0, 0, 0),
    )
    s = Sizes((40, 41, 42), (0, 0, 0, 0), (0, 0, 0))
    _, *spread, last = conditions(0, s, p).values()
    assert [one.occupancy for one in spread if isinstance(one, Hit)] == [
        Occupancy(bins=2 * 60, balls=3 * 2 * 3 * 9, hit=50, groups=2),
        Occupancy(bins=480, balls=11 * 4 * 50, hit=70, groups=1),
    ]
    # log2(2400 / (2 - 1)) bits of each entry that is asked for
    assert last == Pigeonhole(places=5 * 70, values=2400, kept=2, bits=prices(0, s, p)[-1])
