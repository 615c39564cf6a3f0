"""2-Sum as a decision in two full layers: the construction of the statement, run on every input
at small sizes, and where it applies.
"""

from __future__ import annotations

from itertools import combinations, product

import numpy as np
import pytest

from separatrix.stacks.architecture import Architecture
from separatrix.tasks import TwoSum
from separatrix.theory import judge, recheck


def softmax(scores: np.ndarray) -> np.ndarray:
    weights = np.exp(scores - scores.max())
    return weights / weights.sum()


def two_layers(values: tuple[int, ...], M: int, *, scale: float) -> bool:
    """The two layers as the theorem states them, in float64, with s = `scale`."""
    width = max(1, (M - 1).bit_length())
    code = lambda x: np.array([1.0 if x >> b & 1 else -1.0 for b in range(width)])  # noqa: E731
    keys = [
        np.array([0.0] * width + [scale * width]),
        *(np.append(scale * code(x), 0.0) for x in values),
    ]
    flags = []
    for i, x in enumerate(values):
        query = np.append(scale * code(-x % M), scale)
        start = softmax(np.array([key @ query for key in keys[: i + 2]]))[0]
        flags.append(start < (5 / 12 if 2 * x % M == 0 else 3 / 4))
    start = softmax(np.array([0.0, *(scale * scale * (1 if flag else -1) for flag in flags)]))[0]
    return bool(start < 1 / 2)


@pytest.mark.parametrize(
    ("n", "M"), [(2, 3), (2, 8), (3, 5), (3, 8), (4, 4), (4, 7), (5, 4), (6, 3)]
)
def test_the_construction_answers_every_input(n: int, M: int) -> None:
    scale = 4.0
    assert scale**2 > np.log(8 * n) / 2
    for values in product(range(M), repeat=n):
        assert two_layers(values, M, scale=scale) == any(
            (a + b) % M == 0 for a, b in combinations(values, 2)
        ), values


@pytest.mark.slow
def test_long_prompts_with_one_pair_or_none() -> None:
    rng = np.random.default_rng(0)
    n = 300
    M = 1 << 12
    for _ in range(5):
        free = rng.choice(
            np.arange(1, M // 2), n, replace=False
        )  # no two cancel: all lie in the lower half
        values = tuple(int(x) for x in free)
        assert not two_layers(values, M, scale=4.0)
        i, j = sorted(rng.choice(n, 2, replace=False))
        assert two_layers((*values[:j], M - values[i], *values[j + 1 :]), M, scale=4.0)
        own = (*values[:i], 0, *values[i + 1 :])  # 0 cancels itself, but one 0 is no pair
        assert not two_layers(own, M, scale=4.0)
        assert two_layers((*own[:j], 0, *own[j + 1 :]), M, scale=4.0)


def test_a_scale_below_the_bound_fails_on_long_prompts() -> None:
    """The condition s^2 > ln(8n)/2 is there for a reason: with s = 1 the values that do not
    cancel outweigh the start token.
    """
    assert two_layers(tuple([1] * 300), 8, scale=1.0)


@pytest.mark.parametrize(
    ("spec", "status"),
    [
        ("full*2 @ heads=1, head_dim=12", "SOLVABLE"),  # 10 bits of 1,000 values and 2 tags
        ("full + gdn + full @ heads=1, head_dim=12", "SOLVABLE"),
        ("full*2 @ heads=1, head_dim=11", "OPEN"),
        (
            "full(heads=1, head_dim=12) + full(heads=1, head_dim=1)",
            "SOLVABLE",
        ),  # the second layer asks for a flag alone
        ("full(heads=1, head_dim=1) + full(heads=1, head_dim=12)", "OPEN"),
        ("full + gdn @ heads=1, head_dim=12", "OPEN"),
        ("full|full @ heads=1, head_dim=12", "OPEN"),  # both heads in one layer
        ("full*2 @ heads=1, head_dim=12, p8", "OPEN"),
    ],
)
def test_where_it_applies(spec: str, status: str) -> None:
    model = Architecture.parse(spec)
    task = TwoSum(n=20, M=1000, form="decision")
    verdict = judge(model, task)[0]
    assert verdict.status == status
    if status == "SOLVABLE":
        assert verdict.theorem == "pairs"
        recheck(verdict)


def test_one_layer_alone_fails_where_two_suffice() -> None:
    """Theorem I' on one full layer of h = H (d + 2) p = 4 * 66 * 32 = 8,448 bits, the
    construction on two."""
    task = TwoSum(n=4096, M=1 << 22, form="decision")
    one, two = (
        judge(Architecture.parse(f"full*{layers} @ heads=4, head_dim=64"), task)[0]
        for layers in (1, 2)
    )
    assert (one.status, one.theorem) == ("FAILS", "I'")
    assert (two.status, two.theorem) == ("SOLVABLE", "pairs")
