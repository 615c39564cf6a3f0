"""Counting in one full layer: every input of small sizes, every count at the largest proved ones,
lines derived by hand, edited weights refused.
"""

from __future__ import annotations

from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest
import torch
from support.construction_tools import every, refused, wrong
from support.each import each

from separatrix.checks.verify import verify
from separatrix.constructions import CONSTRUCTIONS, construct
from separatrix.constructions.counting import lines
from separatrix.core.errors import CheckFailed, SizeError
from separatrix.proofs.arithmetic import FP32, arithmetic
from separatrix.proofs.derivations import DERIVATIONS
from separatrix.stacks.architecture import Architecture
from separatrix.tasks import Counting
from separatrix.tasks.base.task import Tokens
from separatrix.theory import judge
from separatrix.theory.solves.contents import MOST_TIED


@pytest.mark.parametrize(
    ("task", "stack"),
    [
        (Counting(n=1), None),
        (Counting(n=9), "full @ positions=none"),
        (Counting(n=1, V=2, form="queried"), None),
        (Counting(n=5, V=3, form="queried"), "gdn + full(heads=4, kv_heads=2) + linear"),
        (Counting(n=3, V=5, form="queried"), None),
    ],
    ids=str,
)
def test_every_input_is_answered_right_and_proved(
    task: Counting, stack: str | None, tmp_path: Path
) -> None:
    built = construct(task, None if stack is None else Architecture.parse(stack))
    tokens = every([task.V] * task.length)
    expected = tokens.sum(1) if task.form == "ones" else (tokens[:, :-1] == tokens[:, -1:]).sum(1)
    assert not wrong(built, tokens, expected)
    built.save(tmp_path)
    assert "every answer right" in " ".join(verify(built.record, folder=tmp_path).checks)


def counts(n: int, some: Tokens, rng: np.random.Generator) -> Tokens:
    """Prompts of n bits with so many ones, anywhere."""
    return rng.permuted((np.arange(n) < some[:, None]).astype(np.int64), axis=1)


def test_the_lines_are_those_derived_by_hand() -> None:
    """Each is the highest at y = 1/k, by exactly 1/2 over its neighbours."""
    slopes, heights = lines(2, 7)
    assert slopes[:4] == [0, -2 * 3, -2 * 3 - 3 * 4, -2 * 3 - 3 * 4 - 4 * 5]
    for count in range(8):
        y = Fraction(1, 2 + count)
        values = [a * y + b for a, b in zip(slopes, heights, strict=True)]
        best = values.pop(count)
        assert best - max(values) == Fraction(1, 2)


@pytest.mark.parametrize("name", ["fp32", "fp16", "bf16"])
def test_every_count_is_right_at_the_largest_n_of_a_format(name: str) -> None:
    """The n of the theorem is proved, and one more is not; bf16 and fp16 are run as such."""
    n = MOST_TIED[name] - 1
    build = CONSTRUCTIONS["counting"].build
    built = build(Counting(n=n), None, arithmetic(name))
    with pytest.raises(SizeError, match="may be answered otherwise"):
        build(Counting(n=n + 1), None, arithmetic(name))
    rng = np.random.default_rng(5)
    some = (
        np.arange(n + 1) if n < 100 else np.unique([0, 1, n - 1, n, *rng.integers(n + 1, size=40)])
    )
    model = built.model.to(
        {"fp32": torch.float32, "fp16": torch.float16, "bf16": torch.bfloat16}[name]
    )
    with torch.inference_mode():
        found = model(torch.from_numpy(counts(n, some, rng))).argmax(-1).numpy()
    assert (found == some).all()


@pytest.mark.slow
def test_float64_counts_to_thousands() -> None:
    n = 20_000
    stack = Architecture.parse("full(head_dim=2, heads=1) @ fp64")
    built = construct(Counting(n=n), stack, arithmetic=arithmetic("fp64"))
    rng = np.random.default_rng(6)
    some = np.unique([0, 1, n - 1, n, *rng.integers(n - 40, n, size=8)])
    with torch.inference_mode():
        model = built.model.double()
        found = model(torch.from_numpy(counts(n, some, rng))).argmax(-1).numpy()
    assert (found == some).all()


@pytest.mark.slow
def test_hostile_counts_of_symbols() -> None:
    """The last token's symbol among tokens that differ from it in one bit."""
    task = Counting(n=2000, V=64, form="queried")
    built = construct(task)
    rng = np.random.default_rng(7)
    some = np.unique([0, 1, 2, 1999, 2000, *rng.integers(2001, size=40)])
    asked = rng.integers(64, size=(len(some), 1))
    near = asked ^ (1 << rng.integers(6, size=(len(some), 2000)))
    tokens = np.where(counts(2000, some, rng) == 1, asked, near)
    assert not wrong(built, np.concatenate([tokens, asked], 1), some, batch=8)


@pytest.mark.parametrize(
    ("task", "stack", "message"),
    [
        (Counting(n=8, V=9, form="queried"), "full(head_dim=4)", "head_dim >= 5"),
        (Counting(n=8), "gdn*3", "full layer"),
        (Counting(n=3000), None, "not proved"),
        (Counting(n=1 << 19), None, "at most n = 262,144"),
    ],
)
def test_what_cannot_hold_it_is_refused(task: Counting, stack: str | None, message: str) -> None:
    with pytest.raises(SizeError, match=message):
        construct(task, None if stack is None else Architecture.parse(stack))


@pytest.mark.parametrize(
    ("name", "place", "value", "message"),
    [
        # the start token no longer ties
        ("embed.weight", (3, 3), 0.5, "does not tie"),
        # symbols 0 and 1 share a code
        ("embed.weight", (0, 0), 1.0, "no codes that differ|scores no less"),
        ("blocks.0.mixers.0.v.weight", (0, 2), 0.25, "value is not"),
        ("head.weight", (4, 4), -39.0, "may be answered otherwise|proof recorded"),
        ("head.weight", (4, 4), -1000.0, "not every line|may be answered otherwise"),
        ("head.bias", (2,), 5.5, "proof recorded|may be answered otherwise"),
    ],
)
def test_edited_weights_are_refused(
    name: str, place: tuple[int, ...], value: float, message: str, tmp_path: Path
) -> None:
    refused(
        construct(Counting(n=6, V=3, form="queried")), tmp_path, {name: (place, value)}, message
    )


def test_a_weight_that_is_a_difference_of_two_numbers_is_refused() -> None:
    task = Counting(n=200)
    built = construct(task, Architecture.parse("full(head_dim=2, value_dim=2)"))
    model = built.model
    value = model.get_parameter("blocks.0.mixers.0.v.weight")
    output = model.get_parameter("blocks.0.mixers.0.o.weight")
    row, column = (int(place[0]) for place in value.nonzero(as_tuple=True))
    # 65537 y - 65536 y: each is rounded on its own
    value[1 - row, column] = 2.0**16
    value[row, column] += 2.0**16
    output[:, 1 - row] = -output[:, row]
    prompts = (np.arange(task.n) < np.arange(task.n + 1)[:, None]).astype(np.int64)
    assert wrong(built, prompts, np.arange(task.n + 1))
    with pytest.raises(CheckFailed, match="not one number"):
        DERIVATIONS["counting"].proved(task, model, FP32)


def test_a_weight_that_the_format_may_flush_is_refused() -> None:
    task = Counting(n=9)
    fp16 = arithmetic("fp16")
    model = construct(task, arithmetic=fp16).model
    DERIVATIONS["counting"].proved(task, model, fp16)
    model.get_parameter("blocks.0.mixers.0.v.weight").mul_(2.0**-13)
    model.get_parameter("blocks.0.mixers.0.o.weight").mul_(2.0**13)
    with pytest.raises(CheckFailed, match="to zero in fp16"):
        DERIVATIONS["counting"].proved(task, model, fp16)


@each(
    "task, stack, status",
    [
        (Counting(n=2350), "full", "SOLVABLE"),
        (Counting(n=2351), "full", "OPEN"),
        (Counting(n=2350, V=8, form="queried"), "full", "OPEN"),
        (Counting(n=24), "full @ fp16, positions=none", "SOLVABLE"),
        (Counting(n=7), "full @ bf16", "OPEN"),
        (Counting(n=100_000), "full @ fp64", "SOLVABLE"),
        (Counting(n=24), "full(rope=true)", "OPEN"),
    ],
)
def test_what_the_theorem_says(task: Counting, stack: str, status: str) -> None:
    found = judge(Architecture.parse(stack), task)
    assert {verdict.status for verdict in found} == {status}
    assert status != "SOLVABLE" or found[0].theorem == "counting"


def test_one_value_is_room_enough_beside_a_wide_key() -> None:
    """Two bits of four symbols and a tag in keys of 8, a value of 1."""
    task = Counting(n=5, V=4, form="queried")
    roomy = Architecture.parse("full @ heads=1, head_dim=8, value_dim=1")
    assert judge(roomy, task)[0].status == "SOLVABLE"
    narrow = Architecture.parse("full @ heads=1, head_dim=2, value_dim=8")
    assert judge(narrow, task)[0].status != "SOLVABLE"
