"""The float32 interval machine: borders by hand, and float32 itself within every enclosure."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from support.each import each

from separatrix.core.errors import CheckFailed
from separatrix.proofs.arithmetic import FP32
from separatrix.proofs.balls import exp_bounds, sigmoid_bounds, softplus_bounds
from separatrix.proofs.machine import (
    Array,
    Enclosure,
    Scores,
    add,
    linear,
    lowest_bits,
    mlp,
    relu,
    roundings,
    times,
    whole,
)

FINE = 2.0**-30
TINY = FP32.tiny
U = FP32.summed
u = float(U)


def row(*numbers: float) -> Enclosure:
    return Enclosure.point(np.array([numbers]))


def test_the_lowest_bits() -> None:
    assert lowest_bits(np.array([1.0, 3.0, 4.0, 0.75, -FINE])).tolist() == [0, 0, 2, -2, -30]
    assert lowest_bits(np.zeros(1))[0] > 1000


@each(
    "left, weight, exact",
    [
        ((1.0, 1.0), (1.0, FINE), False),  # 1 + 2^-30 has 31 bits, float32 holds 24
        ((1.0, FINE), (1.0, 1.0), False),
        ((1.0 + 2.0**-20,), (1.0 + 2.0**-20,), False),  # 41 bits
        ((2.0**23, 2.0**23, 1.0), (1.0, 1.0, 1.0), False),  # 2^24 + 1
        ((2.0**22, 0.5), (1.0, 1.0), True),  # below 2^23 in steps of 1/2: 24 bits
        ((2.0**23, 0.5), (1.0, 1.0), False),  # one bit more
        ((1.0, 2.0**-24), (1.0, 0.0), True),  # what is not read has no bits
        ((2.0**-60,), (2.0**-60,), True),
        ((2.0**-60,), (2.0**-67,), False),  # 2^-127 may be flushed to zero
        ((3.0, -2.0), (2.0, 2.0), True),
    ],
)
def test_a_product_is_exact_where_float32_holds_every_partial_sum(
    left: tuple[float, ...], weight: tuple[float, ...], exact: bool
) -> None:
    found = linear(row(*left), np.array([weight]), what="w")
    assert found.mid[0, 0] == float(np.dot(left, weight))
    assert (found.rad[0, 0] == 0.0) == exact


def test_a_bias_is_one_term_more() -> None:
    x = row(1.0)
    one = np.array([[1.0]])
    assert linear(x, one, np.array([0.5]), what="w").rad[0, 0] == 0
    assert linear(x, one, np.array([FINE]), what="w").rad[0, 0] >= 2 * u


@pytest.mark.parametrize("size", [2.0**125, 2.0**126])
def test_the_terms_of_a_sum_may_not_overflow(size: float) -> None:
    """Two terms that cancel are as large as their sum of absolute values."""
    x = row(1.0, 1.0)
    weight = np.array([[size, -size]])
    if size * 2 <= 2.0**126:
        assert linear(x, weight * (1 - 2.0**-20), what="w").mid[0, 0] == 0
    with pytest.raises(CheckFailed, match="layer 3: a number may overflow"):
        linear(x, weight * 1.5, what="layer 3")
    with pytest.raises(CheckFailed, match="overflow"):
        add(row(2.0**126), row(2.0**126), "s")
    with pytest.raises(CheckFailed, match="overflow"):
        times(row(2.0**80), row(2.0**80), "s")
    with pytest.raises(CheckFailed, match="overflow"):
        linear(x, np.array([[np.nan, 0.0]]), what="w")


def test_what_is_flushed_to_zero_is_within_the_radius() -> None:
    assert linear(row(2.0**-100), np.array([[2.0**-100]]), what="w").rad[0, 0] >= 2.0**-126
    product = times(row(2.0**-100), row(2.0**-51), "p")
    assert product.low[0, 0] <= 0.0 <= product.high[0, 0]
    assert add(row(2.0**-126), row(-1.5 * 2.0**-126), "s").low[0, 0] <= -TINY / 2
    assert add(row(2.0**-126), row(-1.5 * 2.0**-126), "s").high[0, 0] >= 0.0


def test_sums_by_hand() -> None:
    assert add(row(1.0), row(2.0**-23), "s").rad[0, 0] == 0
    assert add(row(1.0), row(2.0**-25 + 2.0**-40), "s").rad[0, 0] == pytest.approx(u, rel=1e-5)
    assert add(row(0.0), row(0.1), "s").rad[0, 0] == 0
    wide = Enclosure(np.array([[1.0]]), np.array([[0.25]]))
    assert add(wide, row(0.0), "s").rad[0, 0] == 0.25
    assert add(wide, wide, "s").rad[0, 0] == pytest.approx(0.5 + 2.5 * u, rel=1e-9)
    # a float64 sum that float32 holds is what float32 rounds to, though it is not the sum
    assert add(row(1.0), row(2.0**-60), "s").rad[0, 0] == 0


def test_a_product_by_hand() -> None:
    x = Enclosure(np.array([[2.0]]), np.array([[0.5]]))
    y = Enclosure(np.array([[3.0]]), np.array([[0.25]]))
    found = times(x, y, "p")
    # 2.5 * 3.25 = 8.125 is the farthest from 6
    assert found.high[0, 0] == pytest.approx(8.125 + 8.125 * u, rel=1e-9)


def test_hulls_and_rectified_numbers() -> None:
    both = Enclosure.point(np.array([[1.0, 2.0], [4.0, 2.0]])).hull()
    assert (both.mid[0].tolist(), both.rad[0, 1]) == ([2.5, 2.0], 0.0)
    assert 0.9999 < both.low[0, 0] <= 1.0
    assert 4.0 <= both.high[0, 0] < 4.0001
    found = relu(Enclosure(np.array([[1.0, -1.0, 1.0]]), np.array([[2.0, 0.5, 0.5]])))
    assert found.low.tolist()[0][:2] == pytest.approx([0.0, 0.0], abs=1e-12)
    assert (found.low[0, :2] <= 0.0).all()
    assert found.high[0].tolist() == pytest.approx([3.0, 0.0, 1.5])
    assert (found.mid[0, 2], found.rad[0, 2]) == (1.0, 0.5)


def clamp() -> tuple[Array, Array, Array, Array]:
    """relu(2 y + 1) - relu(2 y - 1) - 1."""
    return (
        np.array([[2.0], [2.0]]),
        np.array([1.0, -1.0]),
        np.array([[1.0, -1.0]]),
        np.array([-1.0]),
    )


def test_a_threshold_takes_errors_away_up_to_a_half() -> None:
    close = Enclosure(np.array([[1.0], [-1.0]]), np.array([[0.4], [0.4]]))
    found = mlp(close, clamp(), what="m")
    assert found.mid.tolist() == [[1.0], [-1.0]]
    # roundings of numbers up to 3.8 and 1.8, and of their difference
    assert 0 < found.rad.max() < 40 * u
    far = mlp(Enclosure(close.mid, close.rad + 0.2), clamp(), what="m")
    assert far.rad.max() > 0.1


def test_slopes_that_do_not_cancel_keep_the_error() -> None:
    middle = Enclosure(np.array([[0.125]]), np.array([[0.0625]]))
    found = mlp(middle, clamp(), what="m")
    # relu(2 y + 1) - 1 = 2 y
    assert found.mid[0, 0] == 0.25
    assert found.rad[0, 0] == pytest.approx(0.125, rel=1e-4)


def test_scores_are_off_by_queries_keys_and_roundings() -> None:
    keys = Enclosure(np.array([[1.0, 2.0, 0.0]]), np.array([[0.0, 0.125, 0.0]]))
    x = Enclosure(np.array([[4.0, 1.0, 9.0]]), np.array([[0.5, 0.0, 0.0]]))
    scores = Scores(keys, x.used, "scores")
    assert scores.terms == 2
    assert scores.centres(x)[0, 0] == 6.0
    # 0.5 * 1, 1 * 0.125, and two roundings of 4.5 + 2.125
    assert scores.errors(x)[0] == pytest.approx(0.625 + 2 * u * 6.625, rel=1e-6)


def test_scores_that_no_format_rounds_have_no_error() -> None:
    """Integers up to 2^24 in float32; 2^-1 beside 2^24 is a bit more; parts count together."""
    used = np.ones(2, np.bool_)
    for keys, x, other, exact in (
        ((1.0, 2.0), (2.0**12, 3.0), (0.0, 0.0), True),
        ((1.0, 0.5), (2.0**24, 1.0), (0.0, 0.0), False),
        ((1.0, 0.5), (2.0**24, 0.0), (0.0, 1.0), False),
        ((1.0, 1.0), (2.0**23, 0.0), (0.0, 2.0**23), True),
        ((1.0, 1.0), (2.0**23, 0.0), (0.0, 2.0**23 + 1.0), False),
        ((0.1, 1.0), (0.1, 1.0), (0.0, 0.0), False),
    ):
        parts = (row(*x), row(*other))
        found = Scores(row(*keys), used, "scores").of(*parts)
        assert (found.errors(parts[0])[0] == 0.0) == exact, (keys, x)
    wide = Enclosure(np.array([[1.0, 1.0]]), np.array([[0.0, 0.5]]))
    assert Scores(row(1.0, 1.0), used, "scores").of(wide).errors(wide)[0] >= 0.5


def test_roundings_are_products_of_their_factors() -> None:
    for count in (0, 1, 7, 10**4):
        most = max((1 + U) ** count - 1, 1 / (1 - U) ** count - 1)
        assert most <= Fraction(float(roundings(count))) <= most * (1 + Fraction(1, 1 << 20))
    # (1 + u)^(2^24) is nearly e
    assert 1.71828 < float(roundings(1 << 24)) < 1.71829


def test_numbers_that_float32_holds() -> None:
    numbers = np.array([1.0, 1.0 + 2.0**-24, 2.0**-127, 2.0**130])
    assert FP32.held(numbers).tolist() == [True, False, False, False]
    assert whole(np.array([[2.0**20, 1.0]]), np.array([[2.0**20], [1.0]]))
    assert not whole(np.array([[2.0**30, 1.0]]), np.array([[2.0**30], [1.0]]))


def test_images_of_gates() -> None:
    for bounds, exact in (
        (exp_bounds, 2.718281828459045),
        (sigmoid_bounds, 0.7310585786300049),
        (softplus_bounds, 1.3132616875182228),
    ):
        low, high = bounds(1.0, 1.0)
        assert low < exact < high < low * (1 + 1e-14)
        assert bounds(-1.0, 1.0)[0] < low


@each("seed", range(20))
def test_float32_stays_inside(seed: int) -> None:
    """Random maps, sums and thresholds of random scales, in float32 and two orders of sums, of
    numbers inside random enclosures.
    """
    rng = np.random.default_rng(seed)
    rows, wide, deep = rng.integers(1, 12, 3)

    def drawn(*shape: int) -> np.ndarray:
        scale = 2.0 ** rng.integers(-12, 12)
        spread = rng.choice([1.0, 2.0**8])
        numbers = rng.normal(size=shape) * scale * spread ** rng.normal(size=shape)
        return (numbers * rng.integers(0, 2, shape)).astype(np.float32).astype(np.float64)

    x = Enclosure(drawn(rows, wide), np.abs(drawn(rows, wide)) * rng.choice([0.0, 0.01]))
    weights = (drawn(deep, wide), drawn(deep), drawn(wide, deep), drawn(wide))
    mapped = linear(x, weights[0], weights[1], what="w")
    deepened = mlp(x, weights, what="m")
    summed = add(x, deepened, "s")
    single_weights = [weight.astype(np.float32) for weight in weights]
    for trial in range(20):
        moved = x.mid + x.rad * rng.choice([-1.0, 1.0], x.mid.shape) * 0.999
        y = moved.astype(np.float32)
        y = np.where(np.abs(y.astype(np.float64) - x.mid) <= x.rad, y, x.mid).astype(np.float32)
        up, up_bias, down, down_bias = single_weights
        order = rng.permutation(wide) if trial % 2 else np.arange(wide)
        hidden = np.zeros((rows, deep), np.float32)
        for column in order:
            hidden = hidden + y[:, column, None] * up[:, column]
        hidden = hidden + up_bias
        inside(mapped, hidden)
        written = np.maximum(hidden, np.float32(0)) @ down.T + down_bias
        inside(deepened, written)
        inside(summed, y + written)


def inside(enclosure: Enclosure, found: np.ndarray) -> None:
    assert found.dtype == np.float32
    numbers = found.astype(np.float64)
    assert (enclosure.low <= numbers).all()
    assert (numbers <= enclosure.high).all()
