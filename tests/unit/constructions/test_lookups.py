"""Recall and MQAR in one full layer behind a short convolution: every input of small sizes, hostile
ones at thousands of tokens, edited weights refused.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
from support.construction_tools import every, refused, wider, wrong
from support.each import each

from separatrix.checks.verify import verify
from separatrix.constructions import Built, construct
from separatrix.core.errors import CheckFailed, SizeError
from separatrix.mixers.full import FullMixer
from separatrix.proofs.arithmetic import BF16, FP32
from separatrix.proofs.derivations import DERIVATIONS
from separatrix.stacks.architecture import Architecture
from separatrix.tasks import NO_ANSWER, Recall, Task, parse_task
from separatrix.tasks.base.task import Tokens
from separatrix.theory import judge

FORMS = ("present", "absent", "last", "independent")


def instances(task: Task) -> Tokens:
    """Every prompt that the oracle takes."""
    ranges = [task.vocabulary] * task.length
    if isinstance(task, Recall):
        # values are the first ids
        ranges[1:-1:2] = [task.V] * task.n
    return np.array([row for row in every(ranges) if _taken(task, row)])


def _taken(task: Task, row: Tokens) -> bool:
    try:
        task.answer(row[None])
    except SizeError:
        return False
    return True


def wrong_at(built: Built, tokens: Tokens) -> int:
    """Questions that are answered wrongly, by the logits after every token."""
    targets = built.task.answer(tokens)
    with torch.inference_mode():
        found = built.model.every(torch.from_numpy(tokens)).argmax(-1).numpy()
    return int(((found != targets) & (targets != NO_ANSWER)).sum())


@pytest.mark.parametrize(
    ("text", "stack", "count"),
    [
        # 2 orders of the keys, 2^2 values, 2 questions
        ("recall:n=2,K=2,V=2", None, 2 * 4 * 2),
        ("recall:n=2,K=3,V=2,form=absent", None, 6 * 4 * 3),
        ("recall:n=3,K=3,V=2,form=last", None, 27 * 8 * 3),
        ("recall:n=2,K=3,V=2,form=independent", "gdn + full(conv=4, kv_heads=2)", 6 * 4 * 2),
    ],
)
def test_every_recall_is_right_and_proved(
    text: str, stack: str | None, count: int, tmp_path: Path
) -> None:
    task = parse_task(text)
    built = construct(task, None if stack is None else Architecture.parse(stack))
    tokens = instances(task)
    assert len(tokens) == count
    assert not wrong(built, tokens, task.answer(tokens))
    built.save(tmp_path)
    assert "every answer right" in " ".join(verify(built.record, folder=tmp_path).checks)
    asked = DERIVATIONS["recall"].asked
    assert asked is not None
    all_ids = every(
        [task.vocabulary, task.token_ids["value"].stop] * task.sizes()["n"] + [task.vocabulary]
    )
    assert int(asked(task, all_ids).sum()) == count


@pytest.mark.parametrize(
    "text",
    [
        "mqar:vocab_size=4,input_seq_len=4,num_kv_pairs=1",
        "mqar:vocab_size=5,input_seq_len=6,num_kv_pairs=1",
        pytest.param("mqar:vocab_size=6,input_seq_len=8,num_kv_pairs=2", marks=pytest.mark.slow),
    ],
)
def test_every_question_of_mqar_is_right_and_proved(text: str, tmp_path: Path) -> None:
    task = parse_task(text)
    built = construct(task)
    tokens = every([task.vocabulary] * task.length)
    asked = DERIVATIONS["mqar"].asked
    assert asked is not None
    kept = tokens[asked(task, tokens)]
    if len(tokens) < 20_000:
        assert (kept == instances(task)).all()
    assert wrong_at(built, kept) == 0
    built.save(tmp_path)
    assert verify(built.record, folder=tmp_path)


def test_scores_are_those_derived_by_hand() -> None:
    """s^2 (c (1 - 2 hamming) + 2 i - (2^r - 1)) with s = 4, r = 2, c = 8; 0 at the first place."""
    built = construct(Recall(n=3, K=4, V=2, form="last"))
    (mixer,) = [m for m in built.model.modules() if isinstance(m, FullMixer)]
    # keys 1, 1 and 2 of 4, whose ids are V + 1 ...; key 1 asks
    x = built.model._embed(torch.tensor([[3, 0, 3, 1, 4, 0, 3]]))
    q, k, _ = mixer._project(x)
    scores = (q[0, -1] @ k[0].T).tolist()
    elsewhere = 16 * (0 - 8 * 3)
    # behind values stand a key whose code counts for nothing, and "shut" = D + 1 = 3
    assert scores == [
        0,
        16 * (8 - 3),
        elsewhere,
        16 * (8 + 2 - 3),
        elsewhere,
        # keys 1 = 01 and 2 = 10 differ in both bits
        16 * (8 * (1 - 4) + 4 - 3),
        elsewhere,
    ]


def test_the_proof_holds_the_numbers_of_the_derivation() -> None:
    """2 s^2 over an earlier write, 4 s^2 and more over other keys, 2 s^2 over the blank."""
    for form, gap in (("present", "32"), ("absent", "32"), ("last", "32")):
        record = construct(Recall(n=9, K=16, V=4, form=form)).record  # type: ignore[arg-type]
        (layer,) = record.proof["layers"]
        assert (layer["score_gap"], layer["score_error"], layer["queries"]) == (gap, "0", 16)


@pytest.mark.slow
@pytest.mark.parametrize("form", FORMS)
def test_hostile_prompts_at_4096_pairs(form: str) -> None:
    """Every other value is the complement; for form=last the key is written at every pair, the
    right value last, or once at the start, among keys that differ from it in one bit.
    """
    n = 2000
    task = Recall(n=n, K=4096, V=64, form=form)  # type: ignore[arg-type]
    built = construct(task)
    rng = np.random.default_rng(11)
    tokens = task.sample(12, rng).tokens.copy()
    answers = task.answer(tokens)
    there = np.flatnonzero(answers < task.V)
    values = tokens[:, 1:-1:2]
    for row in there:
        place = int(np.flatnonzero(tokens[row, :-1:2] == tokens[row, -1])[-1])
        values[row] = task.V - 1 - answers[row]
        values[row, place] = answers[row]
        if form == "last":
            q = tokens[row, -1] - task.V
            near = task.V + (q ^ (1 << rng.integers(12, size=n)))
            tokens[row, :-1:2] = tokens[row, -1] if row % 2 else near
            kept = n - 1 if row % 2 else 0
            tokens[row, 2 * kept] = tokens[row, -1]
            values[row, kept] = answers[row]
            values[row, np.arange(n) != kept] = task.V - 1 - answers[row]
    assert (task.answer(tokens) == answers).all()
    assert not wrong(built, tokens, answers, batch=4)


@each(
    "text, stack, message",
    [
        ("recall:n=4,K=8,V=4", "full", "a convolution to join"),
        ("recall:n=4,K=8,V=4", "full(conv=1)", "conv >= 2"),
        ("recall:n=4,K=8,V=4", "full(conv=2, head_dim=3)", "head_dim >= 4"),
        ("recall:n=4,K=8,V=4,form=last", "full(conv=2, head_dim=5)", "head_dim >= 6"),
        (
            "mqar:vocab_size=32,input_seq_len=40,num_kv_pairs=8",
            "gdn*4",
            "cannot hold the construction",
        ),
    ],
)
def test_a_stack_that_cannot_hold_it_is_refused(text: str, stack: str, message: str) -> None:
    with pytest.raises(SizeError, match=message):
        construct(parse_task(text), Architecture.parse(stack))


@pytest.mark.parametrize(
    ("name", "place", "value", "message"),
    [
        # a second tap: keys would be made of two tokens
        ("blocks.0.mixers.0.conv.weight", (4, -1), 0.5, "no less|proof recorded"),
        ("blocks.0.mixers.0.conv.weight", (0, -2), 1.0, "no less|proof recorded"),
        # key 0 gets the code of key 1
        ("embed.weight", (2, 0), 1.0, "scores no less"),
        # a value's place opens to the key before it
        ("position.weight", (1, 4), 0.0, "scores no less|scores no more"),
        ("blocks.0.mixers.0.q.weight", (0, 0), 2.0, "scores no less|proof recorded"),
        ("head.weight", (0, -1), 0.25, "proof recorded|largest logit"),
    ],
)
def test_edited_weights_are_refused(
    name: str, place: tuple[int, ...], value: float, message: str, tmp_path: Path
) -> None:
    built = construct(Recall(n=4, K=8, V=2, form="absent"))
    refused(built, tmp_path, {name: (place, value)}, message)


@torch.no_grad()
def test_small_taps_of_a_value_add_up_before_they_are_rounded() -> None:
    """By each of three tokens before it a value of 1 grows by less than bfloat16 tells, and by all
    of them by more, which answers 1.
    """
    stack = Architecture.parse("full(conv=4) @ heads=1, head_dim=4")
    task = Recall(n=3, K=4, V=2)
    model = construct(task, stack, arithmetic=BF16).model
    told = dict(model.named_parameters())
    told["blocks.0.mixers.0.conv.weight"][8, :3] = 0.75 * 2.0**-8
    told["embed.weight"][:, 4] = torch.tensor([1, 1.25, 1, 1, 1, 1])
    for name in ("up.weight", "up.bias", "down.weight", "down.bias"):
        told[f"blocks.0.mlp.{name}"].zero_()
    # 1/2, and 128 times what the value is above 1
    told["head.weight"].zero_()
    told["head.weight"][1, [2, 6]] = torch.tensor([-128.0, 128.0])
    told["head.bias"].copy_(torch.tensor([0.5, 0.0]))
    prompt = torch.tensor([[3, 1, 2, 0, 5, 0, 2]])
    assert model.bfloat16()(prompt).argmax().item() == 1
    with pytest.raises(CheckFailed, match="answer 0"):
        DERIVATIONS["recall"].proved(task, model.float(), BF16)


@pytest.mark.slow
def test_what_cancels_among_places_is_rounded_beside_a_token() -> None:
    task = Recall(n=3, K=4, V=3)
    built = construct(task)
    model = wider(built.model, 2)
    DERIVATIONS["recall"].proved(task, model, FP32)
    # code + 2^30 - 2^30: 0 where places are looked at alone, and 0 with the code, too
    model.get_parameter("position.weight")[:, -2:] = 2.0**30
    keys = model.get_parameter("blocks.0.mixers.0.k.weight")
    codes = (model.embed.weight @ keys.T).any(0)
    keys[codes, -2:] = torch.tensor([1.0, -1.0])
    tokens = instances(task)
    assert wrong(replace(built, model=model), tokens, task.answer(tokens))
    with pytest.raises(CheckFailed, match="by rounding"):
        DERIVATIONS["recall"].proved(task, model, FP32)


@each(
    "text, stack, status",
    [
        ("recall:n=64,K=256,V=32,form=last", "full(conv=2)", "SOLVABLE"),
        (
            "mqar:vocab_size=8192,input_seq_len=512,num_kv_pairs=64",
            "full(conv=4) @ bf16",
            "SOLVABLE",
        ),
        ("recall:n=64,K=256,V=32,form=last", "full(conv=2) @ bf16", "OPEN"),
        ("recall:n=64,K=256,V=32", "full", "OPEN"),
        ("recall:n=64,K=256,V=32", "full(conv=2) @ positions=none", "OPEN"),
        ("recall:n=64,K=256,V=32", "full(conv=2, head_dim=8)", "OPEN"),
        ("recall:n=64,K=256,V=32", "full(conv=2, rope=true)", "OPEN"),
    ],
)
def test_what_the_theorem_says(text: str, stack: str, status: str) -> None:
    found = judge(Architecture.parse(stack), parse_task(text))
    assert {verdict.status for verdict in found} == {status}
    assert status != "SOLVABLE" or found[0].theorem == "recall"
