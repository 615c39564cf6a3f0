"""2-Sum per query in one layer with d = 3: right on every input of small sizes, on near misses
and random inputs at n = 4,096.
"""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from support.construction_tools import every, refused, wrong

from separatrix.constructions import construct
from separatrix.constructions import flags as builder
from separatrix.constructions.emulated import wrong_in
from separatrix.constructions.flags import LARGEST_WIDE, Circle
from separatrix.core.errors import CheckFailed, SizeError
from separatrix.proofs import softmax
from separatrix.proofs.arithmetic import BF16, FP64, arithmetic
from separatrix.proofs.derivations import DERIVATIONS
from separatrix.proofs.derivations import counting as derivation
from separatrix.proofs.derivations.parts.derivation import adversarial
from separatrix.stacks.architecture import Architecture
from separatrix.tasks import TwoSum
from separatrix.theory.written import LARGEST_MODULUS


def cancels(tokens: np.ndarray, M: int) -> np.ndarray:
    return np.array([int(any((x + row[-1]) % M == 0 for x in row[:-1])) for row in tokens.tolist()])


@pytest.mark.parametrize("M", [3, 4, 5, 6, 7])
@pytest.mark.parametrize("n", [1, 2, 3])
def test_every_input_is_answered_right(n: int, M: int) -> None:
    tokens = every([M] * (n + 1))
    assert not wrong(construct(TwoSum(n=n, M=M)), tokens, cancels(tokens, M))


@pytest.mark.parametrize("M", [3, 6, 7])
def test_every_input_of_four_tokens(M: int) -> None:
    tokens = every([M] * 5)
    assert not wrong(construct(TwoSum(n=4, M=M)), tokens, cancels(tokens, M))


@pytest.mark.slow
@pytest.mark.parametrize(
    ("M", "count"),
    [
        (4999, 1000),
        (LARGEST_MODULUS, 1000),
        pytest.param(LARGEST_MODULUS, 10_000, marks=pytest.mark.slow),
    ],
)
def test_random_inputs_at_4096(M: int, count: int) -> None:
    task = TwoSum(n=4096, M=M)
    batch = task.sample(count, np.random.default_rng(2))
    assert not wrong(construct(task), batch.tokens, batch.targets, batch=20)


@pytest.mark.slow
@pytest.mark.slow
@pytest.mark.parametrize("M", [5001, LARGEST_MODULUS])
def test_near_misses_at_4096(M: int) -> None:
    """Every earlier token one off the match; one true match among them, first, last or in the
    middle; queries that cancel themselves.
    """
    built = construct(TwoSum(n=4096, M=M))
    rng = np.random.default_rng(3)
    tokens = []
    answers = []
    for query in [0, 1, M // 4, M // 2, M // 2 + 1, M - 1, *rng.integers(M, size=30).tolist()]:
        miss = (-query + rng.choice([-1, 1], size=4096)) % M
        for place in (None, 0, 2048, 4095):
            row = np.append(miss, query)
            if place is not None:
                row[place] = -query % M
            tokens.append(row)
            answers.append(int(place is not None))
        tokens.append(np.append(np.full(4096, -query % M), query))
        answers.append(1)
    assert not wrong(built, np.array(tokens), np.array(answers), batch=20)


def test_phi_is_the_circle_on_the_grid() -> None:
    code = Circle.of(24, 24)
    for x in range(24):
        angle = 2 * math.pi * x / 24
        assert abs(code.points[x, 0] / code.grid - math.cos(angle)) <= 0.5 / code.grid + 1e-12
        assert abs(code.points[x, 1] / code.grid - math.sin(angle)) <= 0.5 / code.grid + 1e-12


def test_the_gaps_by_hand() -> None:
    """M = 4: sin^2(pi/4) = 1/2, so the gap is c/2; n = 1 needs ln 8 = 2.08, so c = 8 and both
    gaps are 4 exactly.
    """
    (layer,) = construct(TwoSum(n=1, M=4)).record.proof["layers"]
    assert (layer["match_over_blank"], layer["blank_over_rest"]) == ("4", "4")
    # nothing matches: at most e^-4; the query's own match beside a true one: at least 1/(2 + e^-4 +
    # e^-8)
    assert math.exp(-4) <= float(layer["output_without_match"]) <= math.exp(-4) * 1.001
    assert (
        0.999 / (2 + math.exp(-4) + math.exp(-8))
        <= float(layer["output_with_match"])
        <= 1 / (2 + math.exp(-4) + math.exp(-8))
    )


def test_both_gaps_are_c_sin_squared() -> None:
    """Theory: match over blank = blank over rest = c sin^2(pi/M), with c the smallest power of
    two that reaches ln(8n).
    """
    (layer,) = construct(TwoSum(n=100, M=50)).record.proof["layers"]
    c = 2.0 ** math.ceil(math.log2(math.log(800) / math.sin(math.pi / 50) ** 2))
    assert float(layer["match_over_blank"]) == pytest.approx(
        c * math.sin(math.pi / 50) ** 2, rel=1e-4
    )
    assert float(layer["blank_over_rest"]) == pytest.approx(
        c * math.sin(math.pi / 50) ** 2, rel=1e-4
    )


@pytest.mark.parametrize(
    ("task", "message"),
    [
        (TwoSum(n=8, M=LARGEST_MODULUS + 1), "at most M = 5,754"),
        (TwoSum(n=8, M=16, form="decision"), "use form=query"),
        (TwoSum(n=10**8, M=16), "smaller n"),
    ],
)
def test_a_task_beyond_it_is_refused(task: TwoSum, message: str) -> None:
    with pytest.raises(SizeError, match=message):
        construct(task, kind="match2")


@pytest.mark.parametrize("architecture", ["gdn", "full(head_dim=2)"])
def test_a_stack_that_cannot_hold_it_is_refused(architecture: str) -> None:
    with pytest.raises(SizeError, match="head_dim >= 3"):
        construct(TwoSum(n=4, M=7), Architecture.parse(architecture), "match2")


@pytest.mark.parametrize(("name", "digits"), [("bf16", 8), ("fp16", 11), ("p18", 10)])
def test_the_circle_stands_on_the_grid_of_its_format(name: str, digits: int) -> None:
    """Every weight is a number of the format, and all 5^4 inputs are answered right in it."""
    task = TwoSum(n=3, M=5)
    built = construct(task, None, "match2", arithmetic(name))
    circle = built.model.embed.weight[:, :2].double().numpy() * 2**digits
    assert (circle == circle.round()).all()
    tokens = every([5] * 4)
    assert wrong_in(built.model, arithmetic(name), task, tokens) is None


def test_weights_without_a_proof_are_as_strong_as_the_format_lets_them_be() -> None:
    """bfloat16 tells no 300 values apart: what is built claims nothing."""
    task = TwoSum(n=3, M=300)
    with pytest.raises(SizeError, match="no scale"):
        construct(task, None, "match2", BF16)
    built = construct(task, None, "match2", BF16.unproved)
    assert "unproved" in built.record.proof
    x = np.arange(300)
    tokens = np.stack([-x - 1, -x - 1, -x - 1, x], 1) % 300
    assert wrong_in(built.model, BF16, task, tokens) is not None


@pytest.fixture
def small_is_large(monkeypatch: pytest.MonkeyPatch) -> None:
    """Everything is built and proved as a modulus beyond float32 is."""
    monkeypatch.setattr(builder, "LARGEST_MODULUS", 2)
    monkeypatch.setattr(derivation, "_TABLE", 2)


@pytest.mark.usefixtures("small_is_large")
@pytest.mark.parametrize("M", [3, 4, 5, 6, 7])
def test_every_input_on_the_circle_of_float64(M: int) -> None:
    task = TwoSum(n=3, M=M)
    built = construct(task, None, "match2", FP64)
    assert built.model.embed.weight.dtype == torch.float64
    tokens = every([M] * 4)
    assert not wrong(built, tokens, cancels(tokens, M))


@pytest.mark.usefixtures("small_is_large")
@pytest.mark.parametrize("name", ["fp64", "p44"])
@pytest.mark.parametrize("M", [5, 64, 999])
def test_bounds_without_a_table_are_those_of_the_table_or_below(
    name: str, M: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Leads are never larger than those of all pairs, and smaller by a few units at most."""
    task = TwoSum(n=5, M=M)
    built = construct(task, None, "match2", arithmetic(name))
    found = []
    seen = softmax.Match

    def noted(**sizes: Any) -> Any:
        found.append(sizes)
        return seen(**sizes)

    monkeypatch.setattr(derivation, "Match", noted)
    for table in (2, 1000):
        monkeypatch.setattr(derivation, "_TABLE", table)
        DERIVATIONS["match2"].proved(task, built.model, arithmetic(name))
    quick, whole = found
    # float64 rounds the table's own scores, of at most about c = widest M^2 / pi^2
    rounded = float(whole["widest"]) * M * M * 2.0**-50
    units = float(whole["widest"]) * M * M * 2.0 ** (2 - arithmetic(name).digits)
    for lead in ("match_over_blank", "blank_over_rest"):
        assert -units - rounded <= float(quick[lead] - whole[lead]) <= rounded
    assert -rounded <= float(quick["widest"] - whole["widest"]) <= units + rounded


@pytest.mark.parametrize("M", [20_011, pytest.param(100_003, marks=pytest.mark.slow)])
def test_float64_tells_more_values_apart(M: int) -> None:
    """Beyond what float32 does: ties, extremes, one token among equal ones."""
    task = TwoSum(n=64, M=M)
    built = construct(task, None, "match2", FP64)
    derived = DERIVATIONS["match2"].proved(task, built.model, FP64)
    rng = np.random.default_rng(5)
    tokens = adversarial(DERIVATIONS["match2"], task, 200, rng)
    assert wrong_in(built.model, FP64, task, tokens) is None
    # c sin^2(pi/M), c the smallest power of two that leaves ln(8n)
    gap = math.sin(math.pi / M) ** 2
    c = 2.0 ** math.ceil(math.log2(math.log(8 * 64) / gap))
    assert float(derived.layers[0]["match_over_blank"]) == pytest.approx(c * gap, rel=1e-4)


@pytest.mark.slow
def test_a_thousand_hard_inputs_of_a_million_values() -> None:
    task = TwoSum(n=256, M=1 << 20)
    built = construct(task, None, "match2", FP64)
    assert DERIVATIONS["match2"].proved(task, built.model, FP64).margin > 0
    tokens = adversarial(DERIVATIONS["match2"], task, 1000, np.random.default_rng(6))
    assert wrong_in(built.model, FP64, task, tokens) is None


def test_moved_points_are_refused(tmp_path: Path) -> None:
    """At M = 5,755 neighbours differ by 6e-7 of a score: a point moved by a quarter of that is not
    as far from the others as the record says; moved by all of it, nothing is proved.
    """
    built = construct(TwoSum(n=2, M=5755), None, "match2", FP64)
    step = math.pi**2 / 5755**2
    cos, sin = built.model.embed.weight[1000, :2].tolist()
    nearer, beside = (math.floor(x * 2**52) / 2**52 for x in (cos - step / 4, sin + 2 * step))
    refused(built, tmp_path, {"embed.weight": ((1000, 0), nearer)}, "not what the weights give")
    # beside the circle; off the grid; its radius; the place of another point
    refused(built, tmp_path, {"embed.weight": ((1000, 0), cos + 2.0**-53)}, "are not exact")
    refused(built, tmp_path, {"embed.weight": ((1000, 1), beside)}, "above the blank key|convex")
    refused(built, tmp_path, {"embed.weight": ((0, 0), 1 - 2.0**-20)}, "convex")
    refused(built, tmp_path, {"embed.weight": ((1, 1), -sin)}, "convex|above the blank")


def test_points_moved_by_one_unit_too_many_are_refused() -> None:
    """Where the blank key is a few units above the best other score, a few units more are not
    proved: the score of 2 and the neighbour of its match, moved up until it beats the blank key.
    """
    M = 5755
    task = TwoSum(n=2, M=M)
    built = construct(task, None, "match2", FP64)
    proved = DERIVATIONS["match2"].proved
    weight = built.model.embed.weight
    first = float(weight[2, 0])
    # the lead of the blank key over the best other score: sin^2(pi/M)
    most = int(math.sin(math.pi / M) ** 2 * 2.0**52) + 1
    low, high = 0, most
    # units by which the point may be moved, found by bisection
    while high - low > 1:
        middle = (low + high) // 2
        weight[2, 0] = first + middle * 2.0**-52
        try:
            proved(task, built.model, FP64)
            low = middle
        except (CheckFailed, SizeError):
            high = middle
    weight[2, 0] = first + high * 2.0**-52
    with pytest.raises((CheckFailed, SizeError), match=r"float64|largest"):
        proved(task, built.model, FP64)
    assert 0.2 * most < low < most, low / most


def test_the_largest_modulus_of_a_wide_format() -> None:
    assert builder.largest_modulus(FP64) == LARGEST_WIDE
    # pi / sqrt(5 u) by hand: 29 digits, sqrt(2^29 / 5) = 10362.2
    assert builder.largest_modulus(arithmetic("p40")) == 32_553
    with pytest.raises(SizeError, match="32,553"):
        construct(TwoSum(n=2, M=32_554), None, "match2", arithmetic("p40"))
