"""e^(i theta j) for many angles theta and integers j, from few balls."""

from __future__ import annotations

from collections.abc import Sequence

from flint import arb, ctx

from separatrix.core.numbers.lazy import NDArray, np
from separatrix.core.numbers.plain import unit


def turns(angles: Sequence[arb], places: range) -> NDArray[np.complex128]:
    """e^(i theta j) for each place j (rows, at most 2^12) and angle theta, within 2^-46: every
    power of two from a ball, the others as products of those.
    """
    count = len(places)
    table = np.ones((1, len(angles)), np.complex128)
    with ctx.workprec(128):
        step = 1
        while len(table) < count:
            # from places 0..k-1 to 0..2k-1 (in units of the range's step)
            turn = np.array([complex(*unit(angle * step * places.step)) for angle in angles])
            table = np.concatenate([table, product(table, turn)])
            step *= 2
        start = np.array([complex(*unit(angle * places.start)) for angle in angles])
    return product(table[:count], start)


def product(one: NDArray[np.complex128], other: NDArray[np.complex128]) -> NDArray[np.complex128]:
    """Of complex numbers, part by part: some processors round NumPy's own but once at times."""
    real = one.real * other.real - one.imag * other.imag
    result = np.empty(real.shape, np.complex128)
    result.real, result.imag = real, one.real * other.imag + one.imag * other.real
    return result
