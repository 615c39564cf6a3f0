"""Products by fan-in in full layers: every prompt of small sizes in every format, long ones, what
the checker refuses, and what the layers need.
"""

from __future__ import annotations

import copy
import itertools
from dataclasses import replace
from functools import cache
from pathlib import Path

import numpy as np
import pytest
import torch
from support.construction_tools import every, logits, refused
from support.each import each

from separatrix.constructions import Built, construct
from separatrix.constructions.multiplied import multiplied
from separatrix.core.errors import CheckFailed, SizeError
from separatrix.models.model import Model
from separatrix.models.stock.plain import plain
from separatrix.proofs.arithmetic import FP32
from separatrix.proofs.derivations import DERIVATIONS
from separatrix.proofs.derivations.tracked import elements
from separatrix.stacks.architecture import Architecture
from separatrix.tasks import Task, parse_task
from separatrix.tasks.tracking import tracked
from separatrix.theory import judge
from separatrix.theory.written import built_by, fan_ins

TASKS = ("parity:n=9", "modular:n=7,m=6", "permutation:n=4,k=3", "group:n=3,G=A4", "group:n=4,G=C6")
TURNED = (
    "full(rope=true)*3 @ heads=2, kv_heads=1, head_dim=32, positions=none",
    "gdn + full(rope=true, rope_dim=16)*2 + window + full*2 @ heads=2, head_dim=24",
    "full(rope=true, rope_dim=16, qk_norm=head, gate=sigmoid)*4 @ heads=2, kv_heads=1, head_dim=32,"
    " positions=none",
)
"""By rotations alone, start token in the slowest pair or in a dimension that none turns; there are
addresses in two layers of the second, norms and gates in the third.
"""
STACKS = (
    "",
    "full*3 @ heads=2, head_dim=16",
    "gdn + window(size=3) + mamba2|full(heads=3) + window(size=9) + full*2",
    *TURNED,
)


@cache
def made(text: str, stack: str = "") -> Built:
    task = parse_task(text)
    wide = f"{stack} @ head_dim=16" if stack and "@" not in stack else stack
    return construct(task, Architecture.parse(wide) if wide else None, f"multiplied-{task.name}")


def product(task: Task, prompt: list[int]) -> int:
    """By composing maps one letter at a time: an oracle of its own."""
    if task.name in ("parity", "modular") or getattr(task, "G", "").startswith("C"):
        return sum(prompt) % task.answers
    k = 4 if task.name == "group" else 3
    perms = [p for p in itertools.permutations(range(k)) if task.name != "group" or _even(p)]
    at = tuple(range(k))
    for letter in prompt:
        at = tuple(perms[letter][place] for place in at)
    return perms.index(at)


def _even(p: tuple[int, ...]) -> bool:
    return sum(a > b for a, b in itertools.combinations(p, 2)) % 2 == 0


@pytest.mark.parametrize(("text", "stack"), list(itertools.product(TASKS, STACKS)))
def test_every_prompt_is_answered_in_every_format(text: str, stack: str) -> None:
    built = made(text, stack)
    prompts = every([built.task.vocabulary] * built.task.length)
    right = [product(built.task, prompt) for prompt in prompts.tolist()]
    assert logits(built, prompts).argmax(-1).tolist() == right
    model = copy.deepcopy(built.model)
    for dtype in (torch.bfloat16, torch.float16, torch.float64):
        with torch.inference_mode():
            found = model.to(dtype)(torch.from_numpy(prompts)).argmax(-1).tolist()
        assert found == right, dtype


@pytest.mark.slow
@each(
    "text, stack, words",
    [
        ("permutation:n=16,k=5", "full*4 @ heads=1, head_dim=32", [2, 2, 2, 2]),
        ("permutation:n=54,k=3", "full*3 @ heads=3, head_dim=16", [4, 4, 4]),
        ("parity:n=3000", "full*4 @ heads=7, head_dim=16, bf16", [8, 8, 7, 7]),
        ("group:n=64,G=C60", "full*6 @ heads=1, head_dim=50", [2] * 6),
        # heads as llama-3.1 has them, without any embedding of places
        (
            "permutation:n=1000,k=5",
            "full(rope=true, rope_base=500000, rope_scaling=llama3_8_1_4_8192)*10 @ heads=2,"
            " kv_heads=1, head_dim=128, positions=none",
            [2] * 10,
        ),
        ("parity:n=4096", "full(rope=true, rope_base=500000)*4 @ heads=7, head_dim=128", [8] * 4),
        # not one layer more than is needed
        ("group:n=15,G=A5", "full*5 @ heads=2, head_dim=25, fp16", [2, 2, 2, 2]),
    ],
)
def test_longer_products(text: str, stack: str, words: list[int]) -> None:
    built = made(text, stack)
    wide = Architecture.parse(stack.replace(", bf16", "").replace(", fp16", ""))
    assert [count for _, count in fan_ins(built.task, wide).layers] == words
    rng = np.random.default_rng(2)
    prompts = rng.integers(built.task.vocabulary, size=(40, built.task.length))
    assert logits(built, prompts).argmax(-1).tolist() == built.task.answer(prompts).tolist()


def test_words_are_the_ones_of_the_last_letters_at_every_place() -> None:
    """A start token serves all prefixes: whatever follows, every token holds the product so far."""
    built = made("permutation:n=4,k=3", "full*3 @ heads=2, head_dim=16")
    prompt = torch.tensor([[3, 1, 5, 2]])
    with torch.inference_mode():
        found = built.model._streamed(prompt)[0].argmax(-1).tolist()
    letters = prompt[0].tolist()
    so_far = [product(built.task, letters[:t]) for t in range(5)]
    # the start token's own logits, if they are told, stand before
    assert found[-4:] == so_far[1:]


@each(
    "edits, said",
    [
        # place 3 is asked to look back one place less, as if it were 4
        ({"position.weight": ((3, 7), 1.0)}, "may score no less|scores no less"),
        ({"position.weight": ((2, 0), 1.0)}, r"look back \[2\] places"),
        ({"embed.weight": ((2, 3), -1.0)}, "has not the largest logit"),
        ({"blocks.0.mixers.0.q.weight": ((0, 3), 8.0)}, "no less"),
        ({"blocks.0.mlp.up.bias": ((0,), 0.5)}, "has not the largest logit"),
        ({"blocks.1.mlp.down.weight": ((28, 3), 2.0)}, "final_margin"),
        ({"head.weight": ((0, 25), -8.0)}, "answer 0 has not"),
    ],
)
def test_other_weights_are_refused(
    edits: dict[str, tuple[tuple[int, ...], float]], said: str, tmp_path: Path
) -> None:
    refused(made("parity:n=4"), tmp_path, edits, said)


@each("stack", [*TURNED, "full(rope=true, rope_scaling=linear_2)*4 @ heads=1, head_dim=64"])
def test_rotations_serve_every_prefix(stack: str) -> None:
    """Whatever is due at a place is the product of the letters up to it: where offsets end before
    the prompt the start token is found, which no random word would tell.
    """
    built = made("permutation:n=9,k=3", stack)
    prompts = np.random.default_rng(4).integers(6, size=(30, 9))
    with torch.inference_mode():
        found = built.model._streamed(torch.from_numpy(prompts)).argmax(-1)[:, -9:].tolist()
    assert found == [
        [product(built.task, prompt[: t + 1]) for t in range(9)] for prompt in prompts.tolist()
    ]


@each(
    "tensor, at, factor, said",
    [
        # the start token outweighs the offset, or is outweighed where there is none
        ("blocks.0.mixers.0.k.weight", (15, 1), 1.5, r"no less|look back"),
        ("blocks.0.mixers.0.k.weight", (15, 1), 0.5, "no less"),
        # letters turn another way, or stand elsewhere
        ("blocks.0.mixers.0.q.weight", (16, 0), -1.0, r"no less|look back"),
        ("embed.weight", (1, 0), 2.0, "no less"),
        # all scores so small that the others weigh
        ("blocks.1.mixers.0.q.weight", slice(None), 2.0**-3, "largest logit"),
        # what stood behind is looked for before
        ("blocks.1.mixers.0.q.weight", slice(None), -1.0, r"no less|look back"),
    ],
)
def test_rotations_that_find_another_token_are_refused(
    tensor: str, at: tuple[int, int] | slice, factor: float, said: str
) -> None:
    built = made("parity:n=6", TURNED[0])
    model = copy.deepcopy(built.model)
    model.get_parameter(tensor)[at] *= factor
    with pytest.raises(CheckFailed, match=said):
        DERIVATIONS["multiplied-parity"].proved(built.task, model, FP32)


def test_the_same_weights_under_another_rotation_are_refused() -> None:
    built = made("parity:n=9", "full(rope=true)*4 @ heads=1, head_dim=32, positions=none")
    config = built.model.config
    other = replace(
        config, architecture=config.architecture.replace("rope=", "rope_base=700, rope=")
    )
    model = Model(other).requires_grad_(False)
    model.load_state_dict(built.model.state_dict())
    with pytest.raises(CheckFailed, match=r"no less|look back"):
        DERIVATIONS["multiplied-parity"].proved(built.task, model, FP32)


def test_a_window_that_sees_too_little_is_refused() -> None:
    """The third of three layers looks back 4 places."""
    built = made("parity:n=8", "window(size=2) + window(size=3) + window(size=5) @ heads=1")
    config = built.model.config
    narrower = config.architecture.replace("size=5", "size=4")
    model = Model(replace(config, architecture=narrower)).requires_grad_(False)
    model.load_state_dict(built.model.state_dict())
    with pytest.raises(CheckFailed, match="4 places back"):
        DERIVATIONS["multiplied-parity"].proved(built.task, model, FP32)


def test_offsets_that_leave_letters_out_or_take_them_twice_are_refused() -> None:
    """The second of two layers looks back 2 places; a copy of the first one looks back one."""
    built = made("parity:n=4")
    model = copy.deepcopy(built.model)
    query = "blocks.{}.mixers.0.q.weight"
    model.get_parameter(query.format(1)).copy_(model.get_parameter(query.format(0)))
    with pytest.raises(CheckFailed, match=r"look back \[1\] places, where \[2\]"):
        DERIVATIONS["multiplied-parity"].proved(built.task, model, FP32)


def test_layers_that_look_back_too_little_are_refused() -> None:
    model = copy.deepcopy(made("parity:n=5").model)
    for tensor in model.blocks[2].state_dict().values():
        tensor.zero_()
    with pytest.raises(CheckFailed, match="4 letters, of 5"):
        DERIVATIONS["multiplied-parity"].proved(parse_task("parity:n=5"), model, FP32)


ASKED = (
    "full(rope=true, qk_norm=head)*{} @ heads={}, kv_heads=1, head_dim=32, positions=none",
    "full(rope=true, qk_norm=head) + gdn + full*{} @ heads={}, head_dim=32",
)
"""No start token is told from others: a token of its own asks, for one n. In the second there are
addresses in all layers but one.
"""


TEXTS = (
    *((f"parity:n={n}", 1, [2] * n.bit_length()) for n in range(5, 8)),
    *((f"modular:n={n},m=5", 2, [3, 2 + (n > 5)]) for n in range(5, 9)),
    ("permutation:n=5,k=3", 1, [2, 2, 2]),
    ("group:n=3,G=A4", 1, [2, 2]),
)


@pytest.mark.parametrize(
    ("stack", "text", "heads", "words"),
    [
        pytest.param(
            stack, *one, marks=() if stack == ASKED[1] and one[1] == 1 else pytest.mark.slow
        )
        for stack in ASKED
        for one in TEXTS
    ],
)
def test_a_token_of_its_own_asks_for_every_n_below_the_product(
    stack: str, text: str, heads: int, words: list[int]
) -> None:
    full = stack.format(len(words) - (stack != ASKED[0]), heads)
    built = made(text, full)
    chosen = fan_ins(built.task, Architecture.parse(full))
    assert chosen.asks
    assert built.model.config.asks
    assert [count for _, count in chosen.layers] == words
    prompts = every([built.task.vocabulary] * built.task.length)
    right = [product(built.task, prompt) for prompt in prompts.tolist()]
    assert logits(built, prompts).argmax(-1).tolist() == right
    with torch.inference_mode():
        streamed = built.model.every(torch.from_numpy(prompts[-9:]))[:, -1]
    assert streamed.argmax(-1).tolist() == right[-9:]
    model = copy.deepcopy(built.model)
    for dtype in (torch.bfloat16, torch.float16, torch.float64):
        with torch.inference_mode():
            found = model.to(dtype)(torch.from_numpy(prompts)).argmax(-1).tolist()
        assert found == right, dtype


@each("text", ["permutation:n=7,k=5", "parity:n=7"])
def test_nothing_is_built_for_the_product_itself(text: str) -> None:
    stack = Architecture.parse(ASKED[0].format(3, 1))
    task = parse_task(text)
    assert fan_ins(task, stack).asks
    with pytest.raises(SizeError, match="multiply 1 of 8 letters"):
        fan_ins(parse_task(text.replace("n=7", "n=8")), stack)


def test_an_automaton_that_forgets_is_followed(monkeypatch: pytest.MonkeyPatch) -> None:
    """Maps of three points that are no rearrangements: none, an exchange, and three constants."""
    rows = np.array([[0, 1, 2], [1, 0, 2], [0, 0, 0], [1, 1, 1], [2, 2, 2], [0, 1, 2]])
    task = parse_task("permutation:n=5,k=3")
    moved = tracked(task)
    assert moved is not None
    lossy = replace(moved, rows=lambda: (rows, rows))
    monkeypatch.setattr("separatrix.constructions.multiplied.tracked", lambda task: lossy)
    prompts = every([5] * 5)
    state = np.tile(np.arange(3), (len(prompts), 1))
    for letter in prompts.T:
        state = np.take_along_axis(rows[letter], state, 1)
    for stack in (ASKED[0].format(3, 1), ASKED[0].format(2, 2), "full*3 @ heads=1, head_dim=32"):
        model = multiplied(task, Architecture.parse(stack), FP32)
        assert model.config.asks != model.config.bos
        with torch.inference_mode():
            found = model(torch.from_numpy(prompts)).argmax(-1).numpy()
        assert (rows[found] == state).all()


@each(
    "tensor, at, factor, said",
    [
        # who asks looks elsewhere, or its word so far is another
        ("blocks.0.mixers.0.q.weight", (slice(16, 32), 1), -1.0, "no less"),
        ("blocks.2.mixers.0.q_norm.weight", slice(None), 2.0**-4, "largest logit"),
        ("embed.weight", (2, slice(2, None)), -1.0, "largest logit"),
        ("blocks.0.mlp.up.bias", slice(None), 0.5, "largest logit"),
        # hidden units that are no steps
        ("blocks.0.mlp.down.weight", (slice(None), 1), 2.0, "no steps in pairs"),
        ("blocks.1.mlp.up.weight", 0, 0.5, "no steps in pairs"),
    ],
)
def test_other_weights_of_who_asks_are_refused(
    tensor: str, at: tuple[int, slice] | slice | int, factor: float, said: str
) -> None:
    built = made("parity:n=7", ASKED[0].format(3, 1))
    model = copy.deepcopy(built.model)
    model.get_parameter(tensor)[at] *= factor
    with pytest.raises(CheckFailed, match=said):
        DERIVATIONS["multiplied-parity"].proved(built.task, model, FP32)


def test_a_gate_that_tells_who_asks_apart_is_refused() -> None:
    stack = ASKED[0].format(3, 1).replace("qk_norm=head", "qk_norm=head, gate=sigmoid")
    built = made("parity:n=7", stack)
    model = copy.deepcopy(built.model)
    model.get_parameter("blocks.0.mixers.0.gate.weight")[:, 1] = -4.0
    with pytest.raises(CheckFailed, match="largest logit"):
        DERIVATIONS["multiplied-parity"].proved(built.task, model, FP32)


@each("name", ["multiplied-parity", "parity", "counted-parity"])
def test_a_token_more_than_a_proof_is_about_is_refused(name: str) -> None:
    built = made("parity:n=4", "full*3 @ heads=1, head_dim=16")
    config = replace(built.model.config, bos=False, asks=True)
    model = Model(config).requires_grad_(False)
    model.load_state_dict(built.model.state_dict())
    with pytest.raises(CheckFailed, match=r"that asks|letters, of"):
        DERIVATIONS[name].proved(built.task, model, FP32)


def test_a_stock_architecture_puts_no_token_behind() -> None:
    with pytest.raises(SizeError, match="the prompt asks"):
        plain(made("parity:n=7", ASKED[0].format(3, 1)).model, "llama", rotates=True)


@each("text", ["permutation:n=4,k=4", "group:n=4,G=A4", "group:n=4,G=C9", "modular:n=9,m=7"])
def test_the_table_of_products_is_the_oracle_s(text: str) -> None:
    task = parse_task(text)
    table = elements(task)
    letters = np.array(list(itertools.product(range(task.vocabulary), repeat=2)))
    still = np.zeros((len(letters), task.length - 2), np.int64)
    asked = task.answer(np.concatenate([letters, still], 1))
    assert table[letters[:, 0], letters[:, 1]].tolist() == asked.tolist()
    assert table[0].tolist() == table[:, 0].tolist() == list(range(task.answers))


@each(
    "text, stack, said",
    [
        ("permutation:n=17,k=5", "full*4 @ heads=2, head_dim=32", "multiply 16 of 17"),
        ("permutation:n=9,k=5", "full*4 @ heads=2, head_dim=16", "value_dim >= 25"),
        ("group:n=9,G=A6", "full*4 @ head_dim=64", "4,096 units"),
        ("group:n=9,G=C13", "full*4 @ head_dim=169", "4,096 units"),
        ("group:n=9,G=C3", "full*4 @ heads=2, kv_heads=1, head_dim=64", "its 0 multiply 1"),
        ("group:n=9,G=C3", "gdn*4 @ head_dim=64", "its 0 multiply 1"),
        ("permutation:n=9,k=3", "full(rope=true, sink=true)*4", "its 0 multiply 1"),
        ("permutation:n=999,k=3", "full(rope=true)*9 @ head_dim=10, heads=1", "1,000 places"),
        ("permutation:n=9,k=3", "full(rope=true, qk_norm=each)*4", "its 0 multiply 1"),
        ("permutation:n=9,k=3", "full*4 @ positions=none", "its 0 multiply 1"),
        ("permutation:n=9,k=3", "full(causal=false)*4", "its 0 multiply 1"),
        ("permutation:n=4,k=3", "window(size=2)*2 @ head_dim=16", "multiply 2 of 4"),
    ],
)
def test_stacks_without_room_are_told_what_is_needed(text: str, stack: str, said: str) -> None:
    task = parse_task(text)
    with pytest.raises(SizeError, match=said):
        construct(task, Architecture.parse(stack))
    assert all(built_by(found) == () for found in judge(Architecture.parse(stack), task))


def test_a_card_promises_it() -> None:
    stack = Architecture.parse("full*3 @ heads=1, head_dim=32")
    verdict = judge(stack, parse_task("permutation:n=8,k=5"))[0]
    assert (verdict.status, verdict.theorem) == ("SOLVABLE", "S")
    assert built_by(verdict) == ("multiplied-permutation",)
