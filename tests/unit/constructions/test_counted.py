"""Parity and numbers of ones modulo m by one layer that weighs all bits alike: every prompt of
small sizes, long ones, what rounding leaves, and what is refused.
"""

from __future__ import annotations

import copy
from fractions import Fraction
from functools import cache
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest
import torch
from support.construction_tools import every, logits, refused
from support.each import each

from separatrix.constructions import Built, construct
from separatrix.core.errors import CheckFailed, SizeError
from separatrix.models.stock import gpt2, llama
from separatrix.proofs.arithmetic import BF16, FP16, FP32, FP64, Arithmetic, arithmetic
from separatrix.proofs.machine import Enclosure, add_once
from separatrix.proofs.softmax import even_share
from separatrix.stacks.architecture import Architecture
from separatrix.tasks import parse_task
from separatrix.theory import judge
from separatrix.theory.written import built_by

OPTIONS = "full(rope=true, qk_norm=head, gate=head, sink=true, conv=4)"


@cache
def made(task: str, stack: str = "full") -> Built:
    return construct(parse_task(task), Architecture.parse(stack))


@pytest.mark.parametrize("stack", ["full @ positions=none", "gdn + full*2", OPTIONS])
@pytest.mark.parametrize(
    "task", ["parity:n=9", "parity:n=8", "modular:n=10,m=3", "modular:n=7,m=7"]
)
def test_every_prompt_is_answered(task: str, stack: str) -> None:
    built = made(task, stack)
    prompts = every([2] * built.task.length)
    found = logits(built, prompts)
    right = prompts.sum(1) % built.task.answers
    lead = found[np.arange(len(right)), right].copy()
    found[np.arange(len(right)), right] = -np.inf
    assert (lead - found.max(1)).min() >= float(Fraction(built.record.proof["final_margin"])) > 0.4


@each("n", [1000, 1024, 2047, 2048])
@each("dtype", [torch.float32, torch.float64])
def test_every_number_of_ones_among_many_bits(n: int, dtype: torch.dtype) -> None:
    """Neighbours of 2,047ths differ by 1/2047, and their averages are off by up to 2^-14 of it."""
    built = made(f"parity:n={n}", "full @ positions=none")
    ones = np.unique(np.r_[0:n:101, n - 2 : n + 1])
    rows = (np.arange(n)[None] < ones[:, None]).astype(np.int64)
    rows = np.random.default_rng(1).permuted(rows, axis=1)
    model = copy.deepcopy(built.model).to(dtype)
    with torch.inference_mode():
        found = model(torch.from_numpy(rows)).argmax(-1).numpy()
    assert found.tolist() == (ones % 2).tolist()


@each("n, name", [(64, "bf16"), (63, "fp16"), (64, "fp16")])
def test_half_formats_hold_a_few(n: int, name: str) -> None:
    built = made(f"parity:n={n}", f"full @ {name}")
    rows = np.tril(np.ones((n + 1, n), np.int64), -1)
    model = copy.deepcopy(built.model).to(torch.bfloat16 if name == "bf16" else torch.float16)
    with torch.inference_mode():
        found = model(torch.from_numpy(rows)).argmax(-1).tolist()
    assert found == [c % 2 for c in range(n + 1)]
    # a card promises nothing: it depends on n
    assert built_by(judge(Architecture.parse(f"full @ {name}"), built.task)[0]) == ()


def test_averages_in_float32_in_any_order_are_within_the_share() -> None:
    """Of 1,999 weights, each rounded, added from either end, in pairs, and divided last."""
    n = 1999
    share = float(even_share(n, 0, Fraction(1000), FP32))
    assert even_share(2048, 0, Fraction(1000), FP32) == 0
    assert n / 2 * 2.0**-24 < share < n * 2.0**-24
    weight = np.float32(1) / np.float32(n)
    for ones in (1, 2, 3, 700, 1001, 1999):
        one_by_one = np.cumsum(np.full(ones, weight), dtype=np.float32)[-1]
        for found in (one_by_one, np.full(ones, weight).sum(), np.float32(ones) / np.float32(n)):
            assert abs(float(found) * n / ones - 1) <= share


@each(
    "keys, rivals, gap, name, said",
    [
        (100, 1, 8, "fp32", "may be rounded"),
        (100, 1, 32, "fp64", "may be rounded"),
        (300, 0, 1000, "p12", "may be rounded"),
        (1 << 13, 0, 1000, "fp16", "flushed to zero"),
    ],
)
def test_weights_that_need_not_tie_are_refused(
    keys: int, rivals: int, gap: int, name: str, said: str
) -> None:
    with pytest.raises(CheckFailed, match=said):
        even_share(keys, rivals, Fraction(gap), arithmetic(name))


@each("arithmetic", [FP64, FP32, BF16, FP16])
def test_a_sum_rounded_once_is_the_nearest_number(arithmetic: Arithmetic) -> None:
    """Beside 2^(p-2) numbers are multiples of 1/2."""
    whole = 2.0 ** (arithmetic.digits - 2)
    base = Enclosure.point(np.full((3, 1), whole), arithmetic)
    counts = np.array([[1.0], [5.0], [7.0]])
    found = add_once(base, base.like(counts, np.full((3, 1), 0.2)), "")
    if arithmetic is not FP64:  # whose own sums are not told any closer
        assert (found.low == found.high).all()
        assert (found.mid == whole + counts).all()
    wide = add_once(base, base.like(counts, np.full((3, 1), 0.3)), "")
    assert ((wide.low <= whole + counts - 0.5) & (wide.high >= whole + counts + 0.5)).all()


ONES, COUNT, REST = range(3)


@each(
    "edits, said",
    [
        ({"blocks.0.mixers.0.q.weight": ((0, ONES), 1.0)}, "a query is not 0"),
        ({"blocks.0.mixers.0.q.weight": ((3, COUNT), 2.0**-40)}, "a query is not 0"),
        ({"blocks.0.mixers.0.v.weight": ((0, COUNT), 1.0)}, "not 0 and a power of two"),
        ({"blocks.0.mixers.0.v.weight": ((0, ONES), 1.5)}, "not 0 and a power of two"),
        ({"blocks.0.mixers.0.v.weight": ((1, ONES), 1.0)}, "not 0 and a power of two"),
        ({"position.weight": ((4, ONES), 1.0)}, "not 0 and a power of two"),
        ({"position.weight": ((4, COUNT), 1.0)}, "has not the largest logit"),
        ({"blocks.0.mixers.0.o.weight": ((COUNT, 0), 8.0)}, "has not the largest logit"),
        ({"embed.weight": ((0, COUNT), 2.0**22 - 1)}, "has not the largest logit"),
        ({"blocks.0.mlp.up.weight": ((2, ONES), 1.0)}, "has not the largest logit"),
        ({"blocks.0.mlp.down.weight": ((REST, 5), -2.5)}, "9 ones: answer 1 has not"),
        ({"head.weight": ((1, ONES), 1.0)}, "has not the largest logit"),
        ({"head.bias": ((0,), 0.5)}, "1 ones: answer 1 has not"),
    ],
)
def test_other_weights_are_refused(
    edits: dict[str, tuple[tuple[int, ...], float]], said: str, tmp_path: Path
) -> None:
    refused(made("parity:n=9", "full @ heads=1, head_dim=4"), tmp_path, edits, said)


@each("stock", [gpt2, llama])
def test_what_stands_beside_the_count_is_too_large_for_other_norms(stock: ModuleType) -> None:
    """Their norms are the identity for numbers whose squares 2^60 rounds away."""
    with pytest.raises(SizeError, match="below 131072"):
        stock.write(made("parity:n=9").model)
    assert stock.write(made("parity:n=16").model).config["vocab_size"] >= 2


@each(
    "task, stack, said",
    [
        ("parity:n=2049", "full", "at most 2,048 bits"),
        ("modular:n=9,m=2", "full(softcap=30)", "it has 0"),
        ("parity:n=9", "full(causal=false)", "it has 0"),
        ("parity:n=9", "window(size=16)", "it has 0"),
        ("parity:n=9", "full @ positions=alibi", "but not built"),
        ("parity:n=2000", "full @ bf16", "not proved in bfloat16"),
    ],
)
def test_stacks_and_sizes_without_room_are_refused(task: str, stack: str, said: str) -> None:
    with pytest.raises(SizeError, match=said):
        construct(parse_task(task), Architecture.parse(stack), f"counted-{task.split(':')[0]}")
    assert all(built_by(one) == () for one in judge(Architecture.parse(stack), parse_task(task)))
