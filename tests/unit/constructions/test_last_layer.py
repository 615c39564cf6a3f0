"""Recall, MQAR and c-grams in one plain full layer behind short convolutions: every input of small
sizes, hostile ones at thousands of tokens, edited weights refused.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch
from support.construction_tools import every, refused, wrong
from support.each import each

from separatrix.checks.verify import verify
from separatrix.constructions import Built, construct
from separatrix.core.errors import SizeError
from separatrix.mixers.full import FullMixer
from separatrix.proofs.derivations import DERIVATIONS
from separatrix.stacks.architecture import Architecture
from separatrix.tasks import NO_ANSWER, CGram, Recall, Task, parse_task
from separatrix.tasks.base.task import Tokens
from separatrix.theory import judge

SIZED = "heads=1, head_dim=16"
STACK = f"shortconv(width=16, conv=4) + gdn + full @ {SIZED}"


def instances(built: Built, tokens: Tokens) -> Tokens:
    """The prompts that the claim is about; they are those that the oracle takes."""
    asked = DERIVATIONS[built.record.name].asked
    assert asked is not None
    kept = asked(built.task, tokens)
    for row in (*tokens[kept][:20], *tokens[~kept][:20]):
        assert _taken(built.task, row) == bool(asked(built.task, row[None])[0])
    return tokens[kept]


def _taken(task: Task, row: Tokens) -> bool:
    try:
        task.answer(row[None])
    except SizeError:
        return False
    return True


@pytest.mark.parametrize(
    ("text", "count"),
    [
        # 2 orders of the keys, 2^2 values, 2 questions
        ("recall:n=2,K=2,V=2", 2 * 4 * 2),
        ("recall:n=2,K=3,V=2,form=absent", 6 * 4 * 3),
        pytest.param("recall:n=3,K=3,V=2,form=last", 27 * 8 * 3, marks=pytest.mark.slow),
        ("recall:n=2,K=3,V=2,form=independent", 6 * 4 * 2),
    ],
)
def test_every_recall_is_right_and_proved(text: str, count: int, tmp_path: Path) -> None:
    task = parse_task(text)
    assert isinstance(task, Recall)
    built = construct(task, Architecture.parse(STACK))
    assert built.record.name == "carried-recall"
    tokens = instances(built, every([task.vocabulary, task.V] * task.n + [task.vocabulary]))
    assert len(tokens) == count
    assert not wrong(built, tokens, task.answer(tokens))
    built.save(tmp_path)
    assert "every answer right" in " ".join(verify(built.record, folder=tmp_path).checks)


@pytest.mark.parametrize(
    "size",
    [
        "vocab_size=4,input_seq_len=4,num_kv_pairs=1",
        pytest.param("vocab_size=5,input_seq_len=6,num_kv_pairs=1", marks=pytest.mark.slow),
        pytest.param("vocab_size=6,input_seq_len=8,num_kv_pairs=2", marks=pytest.mark.slow),
    ],
)
def test_every_question_of_mqar_is_right(size: str) -> None:
    task = parse_task(f"mqar:{size}")
    built = construct(task, Architecture.parse(STACK))
    assert built.record.name == "carried-mqar"
    tokens = instances(built, every([task.vocabulary] * task.length))
    targets = task.answer(tokens)
    with torch.inference_mode():
        found = built.model.every(torch.from_numpy(tokens)).argmax(-1).numpy()
    assert not ((found != targets) & (targets != NO_ANSWER)).any()


@pytest.mark.parametrize(
    ("ids", "stack"),
    [
        ((0, 3), None),
        ((0, 3), f"{STACK}, positions=none"),
        # 1 and 2 differ in both bits, 0 and 1 in one
        pytest.param((0, 1, 2), None, marks=pytest.mark.slow),
    ],
)
def test_every_c_gram_of_some_letters_is_right(ids: tuple[int, ...], stack: str | None) -> None:
    """The smallest size has 4 letters and 11 places: 4^11 prompts are too many."""
    task = CGram(n=11, V=4, c=2)
    built = construct(task, None if stack is None else Architecture.parse(stack))
    tokens = instances(built, np.array(ids)[every([len(ids)] * 11)])
    assert len(tokens) > 2 ** (len(ids) * 4)
    assert not wrong(built, tokens, task.answer(tokens), batch=8192)


def test_scores_of_a_context_are_those_derived_by_hand() -> None:
    """s^2 (c B - 2 hamming) with s = 4, B = 2, c = 2; letters that are missing score 0."""
    built = construct(CGram(n=11, V=4, c=2))
    tokens = torch.tensor([[3, 0, 1, 3, 2, 2, 3, 2, 1, 3, 0]])
    full = [module for module in built.model.modules() if isinstance(module, FullMixer)]
    seen: list[torch.Tensor] = []
    full[0].register_forward_pre_hook(lambda _, inputs: seen.append(inputs[0]))
    built.model.every(tokens)
    q, k, _ = full[0]._project(seen[0])
    # the context is 3 0, that is 11 00, lowest bit first
    bits = {0: (0, 0), 1: (1, 0), 2: (0, 1), 3: (1, 1)}
    row = tokens[0].tolist()
    wanted = []
    for place in range(11):
        total = 0
        for back, letter in ((1, 0), (2, 3)):
            if place - back >= 0:
                there = bits[row[place - back]]
                total += sum(1 if a == b else -1 for a, b in zip(bits[letter], there, strict=True))
        wanted.append(16.0 * total)
    assert (q[0, -1] @ k[0].T).tolist() == wanted
    # it stands right before the third letter
    assert wanted[2] == 64.0 == max(wanted)
    assert wanted[0] == 0.0


@pytest.mark.parametrize(
    ("text", "numbers"),
    [
        ("recall:n=9,K=16,V=4,form=last", (9, "32")),
        ("mqar:vocab_size=32,input_seq_len=40,num_kv_pairs=8", (5, "32")),
        ("cgram:n=39,V=9,c=3", (12, "32")),
    ],
)
def test_the_proof_holds_the_numbers_of_the_derivation(text: str, numbers: tuple[int, str]) -> None:
    """A key is as wide as its codes, nothing is rounded on the way, and the lead is 2 s^2."""
    record = construct(parse_task(text), Architecture.parse(STACK)).record
    first, second = record.proof["layers"]
    assert (first["numbers"], first["layer"]) == (numbers[0], 0)
    assert (second["score_gap"], second["score_error"], second["layer"]) == (numbers[1], "0", 2)


@pytest.mark.parametrize(("n", "c"), [(64, 2), pytest.param(4096, 3, marks=pytest.mark.slow)])
def test_hostile_c_grams(n: int, c: int) -> None:
    """All the rest are contexts that differ from the one asked for in one bit, at the first, the
    last or any of its letters, each followed by the answer's complement.
    """
    task = CGram(n=n, V=64, c=c)
    built = construct(task)
    rng = np.random.default_rng(7)
    rows = []
    for number in range(12):
        context = rng.integers(task.V, size=c)
        answer = int(rng.integers(task.V))
        near = context.copy()
        near[number % c] ^= 1 << rng.integers(6)
        place = (c + 1) * int(rng.integers((n - c) // (c + 1)))
        front = np.resize([*near, task.V - 1 - answer], n - c)
        front[place : place + c + 1] = [*context, answer]
        rows.append([*front, *context])
    tokens = instances(built, np.array(rows))
    assert len(tokens) >= 6
    assert not wrong(built, tokens, task.answer(tokens), batch=4)


@pytest.mark.slow
@pytest.mark.parametrize("form", ["absent", "last"])
def test_hostile_recall_at_thousands_of_tokens(form: str) -> None:
    """Keys that differ from the one asked for in one bit, all with the complement of its value."""
    n = 2000
    task = Recall(n=n, K=4096, V=64, form=form)  # type: ignore[arg-type]
    built = construct(task, kind="carried-recall")
    rng = np.random.default_rng(3)
    tokens = task.sample(12, rng).tokens.copy()
    answers = task.answer(tokens)
    values = tokens[:, 1:-1:2]
    for row in np.flatnonzero(answers < task.V):
        place = int(np.flatnonzero(tokens[row, :-1:2] == tokens[row, -1])[-1])
        values[row] = task.V - 1 - answers[row]
        values[row, place] = answers[row]
        if form == "last":
            q = tokens[row, -1] - task.V
            near = task.V + (q ^ (1 << rng.integers(12, size=n)))
            tokens[row, :-1:2] = tokens[row, -1] if row % 2 else near
            kept = n - 1 if row % 2 else 0
            tokens[row, 2 * kept] = tokens[row, -1]
            values[row] = task.V - 1 - answers[row]
            values[row, kept] = answers[row]
    assert (task.answer(tokens) == answers).all()
    assert not wrong(built, tokens, answers, batch=4)


@each(
    "text, stack, message",
    [
        ("recall:n=4,K=8,V=4", "full + shortconv", "full layer"),
        ("recall:n=4,K=8,V=4", "shortconv(conv=1) + full", "conv=2, width=4"),
        ("recall:n=4,K=8,V=4", "shortconv(width=3) + full", "conv=2, width=4"),
        ("recall:n=4,K=8,V=4", "shortconv + full(head_dim=3)", "head_dim >= 4"),
        ("cgram:n=26,V=8,c=2", "shortconv(conv=2) + full", "conv=3, width=6"),
        ("cgram:n=26,V=8,c=2", "gdn + full", "conv=3, width=6"),
        ("cgram:n=26,V=8,c=2", "shortconv*2", "head_dim >= 6"),
    ],
)
def test_a_stack_that_cannot_hold_it_is_refused(text: str, stack: str, message: str) -> None:
    with pytest.raises(SizeError, match=message):
        construct(parse_task(text), Architecture.parse(stack))


CONV = "blocks.0.mixers.0"
FULL = "blocks.1.mixers.0"


@pytest.mark.parametrize(
    ("text", "name", "place", "value", "message"),
    [
        ("recall", f"{CONV}.conv.weight", (0, -1), 0.5, "no less|proof recorded"),
        ("recall", f"{CONV}.v.weight", (0, 1), 1.0, "no less|proof recorded"),
        ("recall", f"{CONV}.conv.weight", (0, 0), 0.5, "no less|proof recorded"),
        ("recall", f"{CONV}.o.weight", (0, 0), 1.0, "no less|proof recorded"),
        # the constant of one token
        ("recall", "embed.weight", (1, -1), 2.0, "no less|proof recorded"),
        ("recall", "position.weight", (1, -1), 1.0, "no less|proof recorded"),
        # what is brought lands on something
        ("recall", "embed.weight", (1, -2), 1.0, "no less|proof recorded"),
        ("recall", f"{FULL}.q.weight", (0, -2), 1.0, "no less|proof recorded"),
        ("recall", f"{FULL}.k.weight", (0, 0), 1.0, "no less|proof recorded"),
        ("recall", "embed.weight", (2, 0), 1.0, "scores no less"),
        ("cgram", f"{FULL}.v.weight", (0, -7), 1.0, "largest logit"),
        # the second letter is compared with the first
        ("cgram", f"{FULL}.k.weight", (0, 7), 1.0, "proof recorded"),
        ("cgram", f"{FULL}.q.weight", (0, 1), -9.0, "scores no less"),
        ("cgram", "embed.weight", (1, 0), -1.0, "no less"),
        ("cgram", "position.weight", (3, 0), 1.0, "no less"),
        ("cgram", f"{FULL}.k.weight", (0, 4), 2.0, "proof recorded"),
        ("cgram", "head.weight", (0, -1), 0.25, "proof recorded|largest logit"),
    ],
)
def test_edited_weights_are_refused(
    text: str, name: str, place: tuple[int, ...], value: float, message: str, tmp_path: Path
) -> None:
    full = "recall:n=4,K=8,V=2,form=absent" if text == "recall" else "cgram:n=11,V=8,c=2"
    dims = 4 if text == "recall" else 6
    stack = Architecture.parse(f"shortconv(width={dims}, conv=3) + full(heads=1, head_dim={dims})")
    refused(construct(parse_task(full), stack), tmp_path, {name: (place, value)}, message)


def test_two_channels_that_bring_one_number_are_refused(tmp_path: Path) -> None:
    """What cancels among them on paper is rounded beside a third number."""
    built = construct(CGram(n=11, V=8, c=2))
    name = f"{CONV}.v.weight"
    tensors = built.model.state_dict()
    assert tensors[name][:2, :2].tolist() == [[1.0, 0.0], [0.0, 1.0]]
    tensors[name][1, 1] = 0.0
    refused(built, tmp_path, {name: ((1, 0), 1.0)}, "no less")


@pytest.mark.parametrize(
    ("text", "stack", "status"),
    [
        ("recall:n=64,K=256,V=32,form=last", "shortconv(width=16) + gdn + full", "SOLVABLE"),
        ("mqar:vocab_size=8192,input_seq_len=512,num_kv_pairs=64", "shortconv + full", "SOLVABLE"),
        ("cgram:n=64,V=16,c=2", "shortconv + full @ positions=none", "SOLVABLE"),
        ("cgram:n=64,V=16,c=3", "gdn + shortconv(conv=4) + full", "SOLVABLE"),
        ("cgram:n=64,V=16,c=3", "shortconv + full", "OPEN"),
        ("cgram:n=64,V=16,c=2", "full + shortconv", "OPEN"),
        ("cgram:n=64,V=16,c=2", "shortconv|full", "OPEN"),
        ("recall:n=64,K=256,V=32", "shortconv + full @ positions=none", "OPEN"),
        ("recall:n=64,K=256,V=32", "shortconv(width=8) + full", "OPEN"),
        ("recall:n=64,K=256,V=32", "shortconv + full(rope=true)", "OPEN"),
        ("recall:n=64,K=256,V=32", "shortconv + full @ bf16", "OPEN"),
    ],
)
def test_what_the_theorem_says_is_built(text: str, stack: str, status: str) -> None:
    architecture = Architecture.parse(stack)
    task = parse_task(text)
    # other theorems may know other layers that look up
    found = judge(architecture, task, among=lambda theorem: theorem.key == "last-layer")
    assert [verdict.status for verdict in found] == [status] * (status == "SOLVABLE")
    if status == "SOLVABLE" and task.length <= 64:
        assert construct(task, architecture).record.architecture == architecture.spec
