"""The lead of relative selection: against balls at every offset, and against heads that are really
rounded.
"""

from __future__ import annotations

import numpy as np
import pytest
import torch
from flint import arb, ctx
from support.each import each

from separatrix.core.errors import SizeError
from separatrix.core.numbers.rotary import Rotation
from separatrix.core.numbers.selection import (
    MOST_OFFSETS,
    RATIOS,
    Lead,
    angle_errors,
    selection_lead,
    slow_bits,
    slow_turn,
)
from separatrix.mixers.ops.maps import rotate

LLAMA = Rotation(500_000, 128, "llama3_8_1_4_8192")
SMALL = Rotation(10_000, 16)


def by_balls(rotation: Rotation, offsets: int, ratio: float) -> float:
    """The smallest lead over all offsets, as a share of the largest score, rounded down."""
    with ctx.workprec(100):
        weights = [arb(ratio) ** r for r in range(rotation.dims // 2)]
        smallest = None
        for d in range(1, offsets + 1):
            lead = sum(
                (w * (1 - (a * d).cos()) for w, a in zip(weights, rotation.angles, strict=True)),
                arb(0),
            )
            low = float((lead / sum(weights, arb(0))).lower())
            smallest = low if smallest is None else min(smallest, low)
    assert smallest is not None
    return smallest


@each("offsets", [1, 2, 9, 300])
@each("rotation", [SMALL, Rotation(10_000_000, 8), Rotation(7, 4, "linear_3")])
def test_the_gap_is_the_smallest_at_any_offset(rotation: Rotation, offsets: int) -> None:
    lead = selection_lead(rotation, offsets, "fp32")
    assert lead is not None
    best = max(by_balls(rotation, offsets, ratio) for ratio in RATIOS)
    assert lead.gap < best
    # at most 8 pairs: twice 2^-23 + 8 / 2^29 + 2^-30
    assert lead.gap == pytest.approx(best, abs=3e-7)


def test_offsets_beyond_a_block_are_searched() -> None:
    """Pairs that turn by 2 pi / 5,000 and little else come round at 5,000 only."""
    rotation = Rotation(10_000, 2)  # one pair, of angle 1
    near = selection_lead(rotation, 300, "fp64")
    far = selection_lead(rotation, 20_000, "fp64")
    assert near is not None
    assert far is not None
    # 355 / 113 is pi to 3e-7: at 710 the pair has turned 113 times but for 6e-5
    assert near.gap > 1e-5
    assert far.gap < 1 - np.cos(710) < 2e-9


@pytest.mark.parametrize(
    ("rotation", "offsets", "format", "told"),
    [
        (LLAMA, 131_072, "bf16", True),
        (Rotation(10_000_000, 64), 262_144, "bf16", True),  # Qwen3-Next
        (Rotation(1_000_000, 128, "linear_8"), 131_072, "bf16", False),  # Gemma 3, full layers
        (Rotation(1_000_000, 128, "linear_8"), 131_072, "fp32", True),
        (Rotation(1_000_000, 128, "linear_8"), 1_000_000, "fp32", False),  # angles in float32
        (Rotation(10_000, 2), 300, "bf16", False),
    ],
)
def test_whether_the_lead_exceeds_rounding(
    rotation: Rotation, offsets: int, format: str, told: bool
) -> None:
    lead = selection_lead(rotation, offsets, format)
    assert lead is not None
    assert lead.holds is told


def test_what_is_not_computed() -> None:
    assert selection_lead(SMALL, MOST_OFFSETS + 1, "fp32") is None
    assert selection_lead(Rotation(10_000, 10**12), 8, "fp32") is None
    assert selection_lead(SMALL, 8, "fp8") is None
    with pytest.raises(SizeError, match="at least 1"):
        selection_lead(SMALL, 0, "fp32")


@pytest.mark.parametrize(
    ("dtype", "format"),
    [(torch.bfloat16, "bf16"), (torch.float16, "fp16"), (torch.float32, "fp32")],
)
@pytest.mark.parametrize(
    ("rotation", "tokens"),
    [
        (Rotation(10_000, 32), 500),
        pytest.param(LLAMA, 40_000, marks=pytest.mark.slow),
        pytest.param(Rotation(10_000_000, 64), 40_000, marks=pytest.mark.slow),
        pytest.param(Rotation(10_000, 128), 8_192, marks=pytest.mark.slow),
    ],
)
def test_rounded_heads_find_the_offset(
    rotation: Rotation, tokens: int, dtype: torch.dtype, format: str
) -> None:
    """Queries and keys are rotated and multiplied in the format, cosines and sines rounded to it:
    the offset asked for scores highest, and rounding moves no score by more than it is allowed.
    """
    lead = selection_lead(rotation, tokens, format)
    assert lead is not None
    assert lead.holds
    place = tokens - 1
    for offset in (0, 1, 2, 177, tokens // 2, tokens - 1):
        for ratio in RATIOS:
            scores = rounded_scores(rotation, tokens, dtype, ratio, place, offset)
            exact = exact_scores(rotation, tokens, ratio, place, offset)
            # the rounding of a lead is that of two scores
            assert np.abs(scores - exact).max() <= lead.rounding / 2
        best = max(RATIOS, key=lambda ratio: gap(exact_scores(rotation, tokens, ratio, place, 0)))
        scores = rounded_scores(rotation, tokens, dtype, best, place, offset)
        assert scores.argmax() == place - offset


def gap(scores: np.ndarray) -> float:
    top = np.sort(scores)[-2:]
    return float(top[1] - top[0])


def exact_scores(
    rotation: Rotation, tokens: int, ratio: float, place: int, offset: int
) -> np.ndarray:
    """Scores as shares of the largest, in float64."""
    weights = ratio ** np.arange(rotation.dims // 2)
    angles = np.array(rotation.frequencies)
    back = place - np.arange(tokens) - offset
    return np.cos(back[:, None] * angles) @ weights / weights.sum()


def rounded_scores(
    rotation: Rotation, tokens: int, dtype: torch.dtype, ratio: float, place: int, offset: int
) -> np.ndarray:
    """The same as a model computes them in a format."""
    weights = ratio ** np.arange(rotation.dims // 2)
    angles = np.array(rotation.frequencies)
    # the query before rotation points `offset` places back
    asked = (
        np.concatenate([weights * np.cos(-offset * angles), weights * np.sin(-offset * angles)])
        / weights.sum()
    )
    query = rounded_rotation(torch.tensor(asked).to(dtype)[None], rotation, torch.tensor([place]))
    ones = torch.zeros(1, rotation.dims, dtype=dtype)
    ones[:, : rotation.dims // 2] = 1
    keys = rounded_rotation(ones.expand(tokens, -1), rotation, torch.arange(tokens))
    return (query.float() @ keys.float().T).to(dtype)[0].double().numpy()


def rounded_rotation(x: torch.Tensor, rotation: Rotation, places: torch.Tensor) -> torch.Tensor:
    """Rotation as transformers does it: angles in float32, all else in the format of x."""
    angle = places.float()[:, None] * torch.tensor(rotation.frequencies, dtype=torch.float32)
    cos = torch.cat([angle.cos()] * 2, -1).to(x.dtype)
    sin = torch.cat([angle.sin()] * 2, -1).to(x.dtype)
    half = x.shape[-1] // 2
    turned = torch.cat([-x[..., half:], x[..., :half]], -1)
    return x * cos + turned * sin


def test_the_reference_rotates_as_the_mixers_do() -> None:
    x = torch.randn(5, 16)
    own = rotate(x[None, None], SMALL)[0, 0]
    assert torch.allclose(own, rounded_rotation(x, SMALL, torch.arange(5)), atol=1e-6)


def test_the_slowest_pair() -> None:
    # base 10,000 of 16 dimensions: the last pair turns by 10^(-3.5) a token
    assert slow_turn(SMALL, 100) == pytest.approx(1 - np.cos(10**-1.5), rel=1e-12)
    assert slow_turn(SMALL, 100) >= 1 - np.cos(10**-1.5)
    assert slow_turn(SMALL, 5_000) == 2.0
    # so many pairs are not written down
    assert slow_turn(Rotation(10_000, 10**12), 8) == 2.0


def test_a_lead_that_only_equals_rounding_does_not_hold() -> None:
    assert not Lead(0.25, 0.25).holds


def test_numbers_of_fp16_end_before_a_small_lead_counts() -> None:
    """Leads by 0.0000015 of the largest score over what rounding takes: of 65,504 that is 0.1, and
    500 other tokens would weigh more than the one asked for.
    """
    lead = selection_lead(Rotation(500_000, 8, "linear_4"), 500, "fp16")
    assert lead is not None
    assert lead.gap - 16 * 2**-11 > 0
    assert not lead.holds


@each("base", [10_000, 500_000, 10**10])
@each("dims", [60, 80, 96, 128, 192])
def test_frequencies_in_float32_are_as_near_as_is_said(base: int, dims: int) -> None:
    """As transformers computes them; a sixth of a head of 96 is no float32, and a power of it is
    off by up to 5 roundings.
    """
    rotation = Rotation(base, dims)
    exponents = torch.arange(0, dims, 2, dtype=torch.int64).float() / dims
    computed = (1.0 / (base**exponents)).double().numpy()
    exact = np.array(rotation.frequencies)
    # two angles are rounded beside
    said = np.array(angle_errors(rotation, 1)) - 2 * exact * 2.0**-24
    assert np.all(np.abs(computed - exact)[1:] <= said[1:])
    assert computed[0] == exact[0] == 1


def held(rotation: Rotation, tokens: int, bits: int, doubled: int) -> tuple[np.ndarray, ...]:
    """Angles at one end, weights and the key dimension of each bit, two in each of the slowest."""
    half = rotation.dims // 2
    pairs = [half - 1 - place // 2 for place in range(2 * doubled)]
    pairs += [half - 1 - doubled - place for place in range(bits - 2 * doubled)]
    off = np.array(rotation.frequencies)[pairs] * (tokens - 1) / 2
    two = np.arange(bits) < 2 * doubled
    weights = np.where(two, 1 / (1 - np.sin(off)), 1 / np.cos(off / 2) ** 2)
    return off, weights, np.array(pairs) + half * (two & (np.arange(bits) % 2 == 1))


def rows_of(
    rotation: Rotation, tokens: int, bits: int, doubled: int
) -> tuple[np.ndarray, np.ndarray]:
    """Keys of all codes, and the queries that ask for them in the middle."""
    off, weights, dims = held(rotation, tokens, bits, doubled)
    codes = 1.0 - 2 * ((np.arange(1 << bits)[:, None] >> np.arange(bits)) & 1)
    keys, queries = np.zeros((2, len(codes), rotation.dims))
    keys[:, dims] = codes
    half, second = rotation.dims // 2, dims >= rotation.dims // 2
    for bit, (dim, angle, weight) in enumerate(zip(dims, off, weights, strict=True)):
        turned = weight * codes[:, bit]
        queries[:, dim] += turned * np.cos(angle)
        beside = dim - half if second[bit] else dim + half
        queries[:, beside] += turned * np.sin(angle) * (1 if second[bit] else -1)
    return keys, queries


def compared(rotation: Rotation, tokens: int, bits: int, doubled: int) -> float:
    """The smallest lead of the key that is alike over one that differs, over all distances of both
    and all that they may differ in, as a share of 2.
    """
    keys, queries = rows_of(rotation, tokens, bits, doubled)
    half = rotation.dims // 2
    own, rival = np.inf, np.full(len(keys), -np.inf)
    for distance in range(tokens):
        angle = np.array(rotation.frequencies) * distance
        a, b = queries[:, :half], queries[:, half:]
        turned = [a * np.cos(angle) - b * np.sin(angle), a * np.sin(angle) + b * np.cos(angle)]
        scores = np.concatenate(turned, 1) @ keys.T
        own = min(own, scores.diagonal().min())
        np.fill_diagonal(scores, -np.inf)
        rival = np.maximum(rival, scores.max(1))
    return float((own - rival.max()) / 2)


@each("tokens", [2, 31, 201])
@each("rotation", [SMALL, Rotation(500_000, 12), Rotation(300, 8, "linear_3")])
def test_bits_in_slow_pairs_at_all_distances(rotation: Rotation, tokens: int) -> None:
    seen = set[int]()
    for bits in range(1, 8):
        found = slow_bits(rotation, tokens, bits, 1, "fp64")
        if found is not None and found.left > 0:
            true = compared(rotation, tokens, bits, found.doubled)
            assert found.left <= true
            # what is alike lacks most at an end; of an odd number of tokens one is in the middle,
            # where pairs of one bit alone are worst at once
            if tokens % 2 and not found.doubled:
                assert true < found.left + 1e-4
            assert tokens == 2 or 2 * (1 - true) > 1 - found.left - 1e-4
            seen.add(found.doubled)
    assert len(seen) > 1


def test_bits_in_slow_pairs_by_hand() -> None:
    """Llama 3.1's slowest pair turns by 500,000^-(126/128) / 8 a token."""
    slowest = 500_000 ** (-126 / 128) / 8
    one = slow_bits(LLAMA, 131_073, 1, 1, "fp64")
    assert one is not None
    assert one.left == pytest.approx(1 - np.tan(slowest * 131_072 / 4) ** 2, abs=1e-4)
    # pairs of two bits, and then of one, each 500,000^(1/64) times as fast as the one before
    for form, bits, unit in (("fp64", 18, 0.0), ("bf16", 18, 1 / 256), ("bf16", 28, 1 / 256)):
        found = slow_bits(LLAMA, 131_073, bits, 1, form)
        assert found is not None
        off = slowest * 131_072 / 2 * 500_000 ** (np.arange(bits - found.doubled) / 64)
        two, alone = np.split(off, [found.doubled])
        lacking = ((1 - np.cos(two)) / (1 - np.sin(two))).sum() + (np.tan(alone / 2) ** 2).sum()
        units = 6 * (2 / (1 - np.sin(two))).sum() + 5 * (1 / np.cos(alone / 2) ** 2).sum()
        assert found.left == pytest.approx(float(1 - lacking - unit * units), abs=4e-3)
        assert found.left > 1 / 16
    # the same bits of two tokens: as many pairs, the faster ones
    several = slow_bits(LLAMA, 131_073, 9, 2, "fp64")
    whole = slow_bits(LLAMA, 131_073, 18, 1, "fp64")
    assert several is not None
    assert whole is not None
    assert 0.5 < several.left <= whole.left


def test_bits_that_no_pairs_hold() -> None:
    assert slow_bits(SMALL, 2, 17, 1, "fp32") is None  # eight pairs
    assert slow_bits(SMALL, 2, 16, 1, "fp32") is not None
    assert slow_bits(SMALL, 2, 16, 1, "fp32", normed=True) is None  # one for no token
    assert slow_bits(SMALL, 2, 1, 1, "fp8") is None
    assert slow_bits(SMALL, MOST_OFFSETS + 1, 1, 1, "fp32") is None
    assert slow_bits(Rotation(10_000, 2), 9, 1, 1, "fp32") is None  # one radian a token
    # the last pairs of a ramp that is turned round are not the slowest: none behind a fast one
    turned = Rotation(10_000, 32, "yarnexact_32_1_2_1024")
    rates = turned.frequencies[::-1]
    slow = next(place for place, rate in enumerate(rates) if rate * 999 / 2 > np.pi / 2)
    assert max(rates[slow:]) > min(rates[slow + 1 :])
    assert slow_bits(turned, 1_000, 2 * slow + 1, 1, "fp32") is None


@each("form", ["bf16", "fp16", "fp32"])
def test_heads_that_are_really_rounded_keep_it(form: str) -> None:
    """Keys, queries and scores rounded to the format: at any two distances the key that is alike
    leads by what is left.
    """
    rotation, bits, tokens = Rotation(100_000, 32), 7, 1_000
    how = slow_bits(rotation, tokens, bits, 1, form)
    assert how is not None
    left = how.left
    assert how.doubled > 0
    assert left > 0.5
    kind = {"bf16": torch.bfloat16, "fp16": torch.float16, "fp32": torch.float32}[form]
    rng = np.random.default_rng(0)
    keys, queries = rows_of(rotation, tokens, bits, how.doubled)

    def rotated(rows: np.ndarray, place: int) -> torch.Tensor:
        x = torch.from_numpy(rows).to(kind)[None, :, None]
        return rotate(x, rotation, start=place)[0, :, 0].to(kind)

    for last in (0, tokens - 1, *rng.integers(tokens, size=20).tolist()):
        asked = rotated(queries, last).float()
        places = [0, last, *rng.integers(last + 1, size=6).tolist()]
        scores = torch.stack([asked @ rotated(keys, p).float().T for p in places]).to(kind)
        own = scores.diagonal(dim1=1, dim2=2).min(0).values.double()
        scores.diagonal(dim1=1, dim2=2).fill_(-torch.inf)
        assert float((own - scores.amax((0, 2)).double()).min()) >= 2 * left
