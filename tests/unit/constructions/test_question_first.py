"""Recall with the question before the pairs: every prompt of small sizes in every format and either
form, long ones, what the checker refuses, and what the layers need.
"""

from __future__ import annotations

import copy
import itertools
from functools import cache
from pathlib import Path

import numpy as np
import pytest
import torch
from support.construction_tools import logits, refused
from support.each import each
from support.task_cases.recall import instances, recalled

from separatrix.constructions import Built, construct
from separatrix.core.errors import CheckFailed, SizeError
from separatrix.proofs.arithmetic import FP32
from separatrix.proofs.derivations import DERIVATIONS
from separatrix.stacks.architecture import Architecture
from separatrix.tasks import Recall, parse_task
from separatrix.theory import judge
from separatrix.theory.written import built_by, in_construct

SIZES = ("n=2,K=4,V=3", "n=2,K=4,V=2,form=absent", "n=3,K=4,V=2,form=last")
STACKS = ("", "gdn*3 @ heads=2, head_dim=4", "full + gdn|window + mlp + gla + deltanet*2")


@cache
def made(sizes: str, stack: str = "") -> Built:
    task = parse_task(f"recall:{sizes},question=first")
    return construct(task, Architecture.parse(stack) if stack else None)


def step_by_step(built: Built, tokens: np.ndarray, dtype: torch.dtype) -> list[int]:
    model = copy.deepcopy(built.model).to(dtype)
    with torch.inference_mode():
        return model._streamed(torch.from_numpy(tokens))[:, -1].argmax(-1).tolist()


CASES = [
    # 2,048 prompts step by step through seven layers in three formats take longer than all the rest
    pytest.param(*case, marks=[pytest.mark.slow] * (case == (SIZES[-1], STACKS[-1])))
    for case in itertools.product(SIZES, STACKS)
]


@pytest.mark.parametrize(("sizes", "stack"), CASES)
def test_every_prompt_is_answered_in_either_form(sizes: str, stack: str) -> None:
    built = made(sizes, stack)
    task = built.task
    assert isinstance(task, Recall)
    prompts = list(map(list, instances(task)))
    right = [recalled(task, prompt) for prompt in prompts]
    tokens = np.array(prompts)
    assert logits(built, tokens).argmax(-1).tolist() == right
    for dtype in (torch.float32, torch.bfloat16, torch.float16):
        assert step_by_step(built, tokens, dtype) == right


@pytest.mark.parametrize(
    ("form", "stack"),
    [
        ("absent", ""),
        pytest.param("independent", "", marks=pytest.mark.slow),
        pytest.param("absent", "gdn*3 @ bf16", marks=pytest.mark.slow),
        pytest.param("independent", "gdn*3 @ bf16", marks=pytest.mark.slow),
    ],
)
def test_longer_prompts_than_a_chunk_are_answered(form: str, stack: str) -> None:
    """81 tokens in chunks of 24, from the task's own draws."""
    built = made(f"n=40,K=60,V=6,form={form}", stack)
    batch = built.task.draw(40, np.random.default_rng(3))
    right = built.task.answer(batch.tokens).tolist()
    assert logits(built, batch.tokens).argmax(-1).tolist() == right
    assert step_by_step(built, batch.tokens, torch.bfloat16) == right
    assert "bfloat16" in built.record.statement


CODE, KEY, VALUE, FIRST, ASKED, MET = 0, 2, 3, 6, 7, 10
"""Columns of the residual stream with K = 4 and V = 3."""


@each(
    "edits, said",
    [
        # the first token no more than others, and a second one
        ({"position.weight": ((0, FIRST), 0.0)}, "layer 1: what it keeps is not overwritten"),
        ({"position.weight": ((1, FIRST), 1.0)}, "places after the first differ"),
        # one bit of a key, in which it now equals another
        ({"embed.weight": ((3, CODE), 1.0)}, "two keys are not told apart"),
        ({"blocks.0.mlp.down.weight": ((9, 0), -1.0)}, "likes another key"),
        ({"blocks.0.mlp.down.weight": ((9, 0), 0.0)}, "two keys are not told apart"),
        ({"blocks.1.mixers.0.b.weight": ((0, VALUE), 128.0)}, "layer 2: what it keeps is not"),
        ({"blocks.2.mixers.0.b.weight": ((0, MET), -64.0)}, "layer 3, b: a gate of 0"),
        ({"blocks.2.mixers.0.b.weight": ((0, ASKED), 1.0)}, "layer 3, b: reads what it is not"),
        ({"blocks.2.mixers.0.v.weight": ((0, MET), 1.0)}, "layer 3, v: reads what it is not"),
        ({"blocks.1.mixers.0.v.weight": ((0, ASKED), 1.0)}, "layer 2, v: reads what it is not"),
        ({"blocks.1.mlp.up.bias": ((0,), 1.0)}, "an MLP stands behind the first"),
        ({"head.weight": ((0, MET), 0.5)}, "the head reads more"),
        ({"head.weight": ((0, 11), 2.0)}, "has not the largest logit"),
        ({"blocks.0.mixers.0.k.weight": ((0, KEY), -1.0)}, "of a unit vector"),
    ],
)
def test_other_weights_are_refused(
    edits: dict[str, tuple[tuple[int, ...], float]], said: str, tmp_path: Path
) -> None:
    refused(made("n=2,K=4,V=3"), tmp_path, edits, said)


def test_a_record_of_the_other_order_is_refused() -> None:
    """Both recipes are for one task, in which the question stands first or last."""
    last = construct(Recall(n=2, K=4, V=3))
    with pytest.raises(CheckFailed, match="behind the pairs"):
        DERIVATIONS["recall"].proved(Recall(n=2, K=4, V=3, question="first"), last.model, FP32)
    first = made("n=2,K=4,V=3").model
    with pytest.raises(CheckFailed, match="before the pairs"):
        DERIVATIONS["question-first"].proved(Recall(n=2, K=4, V=3), first, FP32)


@each(
    "stack, said",
    [
        ("gdn*2", "value_dim >= 6"),
        ("retnet*3", "it has 0"),
        ("gdn(conv=4)*3", "conv or gate"),
        ("deltanet(negative=true)*3", "conv or gate"),
        ("gdn*3 @ head_dim=4", "value_dim >= 6"),
        ("gdn*3 @ positions=none", "use positions=embedded"),
    ],
)
def test_stacks_without_room_are_told_what_is_needed(stack: str, said: str) -> None:
    task = Recall(n=8, K=40, V=9, question="first")
    with pytest.raises(SizeError, match=said):
        construct(task, Architecture.parse(stack))
    assert all(built_by(found) == () for found in judge(Architecture.parse(stack), task))


def test_the_card_says_that_it_is_built() -> None:
    (found, *_) = judge(
        Architecture.parse("gdn*3 @ bf16"), Recall(n=500, K=900, V=900, question="first")
    )
    assert (found.status, found.theorem) == ("SOLVABLE", "question-first")
    assert in_construct(found)
    # what differs adds up in float32, beyond what fp16 holds
    long = Recall(n=3000, K=5, V=3, form="last", question="first")
    stack = Architecture.parse("deltanet*3 @ fp16")
    assert built_by(judge(stack, long)[0]) == ("question-first",)
    assert "bfloat16 and float16" in construct(long, stack).record.statement


@pytest.mark.slow
def test_as_many_keys_as_are_promised_are_told_apart() -> None:
    """(n + 1) ceil(log2 K) <= 2^22: sums of as many differences, each up to twice the bits."""
    spec = "recall:n={},K=1048576,V=2,form=last,question=first"
    most = 2**22 // 20 - 1
    assert construct(parse_task(spec.format(most))).record.proof["final_margin"] == "1"
    with pytest.raises(SizeError, match="at most 209,714 keys"):
        construct(parse_task(spec.format(most + 1)))
