"""2-Sum per query in one layer with d = 3: right on every input of small sizes, on near misses
and random inputs at n = 4,096.
"""

from __future__ import annotations

import math

import numpy as np
import pytest
from support.construction_tools import every, wrong

from separatrix.constructions import construct
from separatrix.constructions.flags import Circle
from separatrix.constructions.precision import wrong_in
from separatrix.core.errors import SizeError
from separatrix.proofs.arithmetic import BF16, arithmetic
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


@pytest.mark.parametrize(("name", "digits"), [("bf16", 8), ("fp16", 11)])
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
