"""Every format's enclosures against what torch computes in it: maps, sums, thresholds and
averages of random numbers.
"""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from support.each import each

from separatrix.mixers.base.mixer import DTYPES
from separatrix.mixers.ops.softmax import fused_softmax, softmax
from separatrix.proofs.arithmetic import Arithmetic, arithmetic
from separatrix.proofs.derivations.parts.reading import averaged
from separatrix.proofs.machine import Array, Enclosure, Scores, add, linear, mlp
from separatrix.proofs.softmax import off_target

FORMATS = sorted(DTYPES)


def drawn(rng: np.random.Generator, some: Arithmetic, *shape: int) -> Array:
    """Numbers of the format, of one scale and of many, some of them 0."""
    scale = 2.0 ** rng.integers(-6, 3)
    numbers = rng.normal(size=shape) * scale * rng.choice([1.0, 2.0]) ** rng.normal(size=shape)
    return in_torch(numbers * rng.integers(0, 2, shape), some).double().numpy()


def in_torch(numbers: Array, some: Arithmetic) -> torch.Tensor:
    return torch.from_numpy(np.asarray(numbers)).to(DTYPES[some.name])


def inside(enclosure: Enclosure, found: torch.Tensor) -> None:
    numbers = found.double().numpy()
    assert (enclosure.low <= numbers).all()
    assert (numbers <= enclosure.high).all()


@each("name", FORMATS)
@each("seed", range(8))
def test_maps_and_sums_stay_inside(name: str, seed: int) -> None:
    rng = np.random.default_rng(seed)
    some = arithmetic(name)
    rows, wide, deep = rng.integers(1, 40, 3)
    x, y = drawn(rng, some, rows, wide), drawn(rng, some, rows, wide)
    weights = [drawn(rng, some, *shape) for shape in ((deep, wide), (deep,), (wide, deep), (wide,))]
    up, up_bias, down, down_bias = (in_torch(weight, some) for weight in weights)
    point = Enclosure.point(x, some)
    mapped = linear(point, weights[0], weights[1], what="w")
    hidden = F.linear(in_torch(x, some), up, up_bias)
    inside(mapped, hidden)
    inside(linear(point, weights[0], what="w"), F.linear(in_torch(x, some), up))
    # the bias added to a product that was stored
    inside(mapped, F.linear(in_torch(x, some), up) + up_bias)
    written = F.linear(F.relu(hidden), down, down_bias)
    deepened = mlp(point, (weights[0], weights[1], weights[2], weights[3]), what="m")
    inside(deepened, written)
    inside(add(point, Enclosure.point(y, some), "s"), in_torch(x, some) + in_torch(y, some))
    inside(add(point, deepened, "s"), in_torch(x, some) + written)


@each("name", FORMATS)
@each("keys", [3, 100, 300, 1500])
def test_averages_stay_inside(name: str, keys: int) -> None:
    """One key ahead of all others by 12 or more, as the fused kernel and the explicit form give its
    value; and any average.
    """
    rng = np.random.default_rng(keys)
    some = arithmetic(name)
    dims = 8
    keys_ = rng.integers(-2, 3, (keys, dims)).astype(float)
    keys_[0] = 3.0
    query = np.full((1, dims), 1.0)
    gap = float(keys_[0].sum() - keys_[1:].sum(1).max())
    values = drawn(rng, some, keys, dims)
    q, k, v = (in_torch(x, some)[None, None] for x in (query, keys_, values))
    every = Enclosure.point(values, some)
    mass = off_target(keys - 1, Fraction(gap), some)
    fetched = averaged(every.rows(slice(0, 1)), every.hull(), keys, mass, "w")
    scores = Scores(Enclosure.point(keys_, some), np.ones(dims, np.bool_), "s")
    assert (scores.errors(Enclosure.point(query, some)) < 1e-3).all()
    wide = q.float() @ k.float().mT if some.narrowed else q @ k.mT
    for found in (softmax(wide, v), fused_softmax(q, k, v)):
        inside(fetched, found[0, 0])
    flat = fused_softmax(0 * q, k, v)[0, 0]
    inside(averaged(every.hull(), every.hull(), keys, Fraction(0), "w"), flat)


@each("name", FORMATS)
def test_a_bound_that_is_too_small_is_caught(name: str) -> None:
    """With four digits more than the format has: random sums leave the enclosure."""
    rng = np.random.default_rng(1)
    some = arithmetic(name)
    finer = replace(some, digits=some.digits + 4, summed_digits=some.summed_digits + 4)
    x, weight = drawn(rng, some, 40, 30), drawn(rng, some, 40, 30)
    found = F.linear(in_torch(x, some), in_torch(weight, some))
    inside(linear(Enclosure.point(x, some), weight, what="w"), found)
    if name != "fp64":
        # the machine itself computes in float64
        with pytest.raises(AssertionError):
            inside(linear(Enclosure.point(x, finer), weight, what="w"), found)
