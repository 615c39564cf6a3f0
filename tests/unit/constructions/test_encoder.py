"""L-SeqComp by an encoder of 1 + ceil(log2(L+1)) layers: right on every input of small sizes, on
random and adversarial ones of larger sizes; and what is not causal has no cache and no FAILS.
"""

from __future__ import annotations

import dataclasses
from math import ceil, log2

import numpy as np
import pytest
import torch
from support.construction_tools import every, wrong
from support.each import each
from support.task_cases.seqcomp import CASE

from separatrix.cards import card
from separatrix.constructions import Built, construct
from separatrix.constructions.parts.built import built as recorded
from separatrix.constructions.thought import encoder_spaces
from separatrix.core.errors import CheckFailed, SizeError
from separatrix.mixers import mixer
from separatrix.models.model import build
from separatrix.stacks.architecture import Architecture
from separatrix.tasks import SeqComp, parse_task
from separatrix.theory import THEOREMS, judge, recheck

BOTH = "full(causal=false)"


def made(L: int, m: int, branching: tuple[int, ...]) -> Built:
    return construct(SeqComp(L=L, m=m, branching=branching), kind="encoder")


def mistakes(built: Built, tokens: np.ndarray) -> list[list[int]]:
    right = [CASE.by_hand(built.task, row) for row in tokens.tolist()]
    return wrong(built, tokens, np.array(right))


@pytest.mark.parametrize(
    ("L", "m", "branching"),
    [(1, 2, ()), (1, 4, ()), (2, 2, (1,)), (2, 2, (2,)), (2, 3, (1,)), (3, 2, (1, 1))],
)
def test_every_input_is_answered_right(L: int, m: int, branching: tuple[int, ...]) -> None:
    built = made(L, m, branching)
    assert built.record.sizes["layers"] == 1 + ceil(log2(L + 1))
    assert CASE.ranges is not None
    assert not mistakes(built, every(CASE.ranges(built.task)))


@pytest.mark.parametrize(
    ("L", "m", "branching"),
    [
        (3, 3, (2, 3)),
        (4, 2, (1, 3, 2)),
        (7, 2, (1, 2, 1, 1, 1, 2)),
        (8, 4, (1,) * 7),
        pytest.param(2, 40, (4,), marks=pytest.mark.slow),
    ],
)
def test_random_inputs_of_odd_shapes(L: int, m: int, branching: tuple[int, ...]) -> None:
    built = made(L, m, branching)
    assert built.record.sizes["layers"] == 1 + ceil(log2(L + 1))
    assert not mistakes(built, built.task.sample(100, np.random.default_rng(3)).tokens)


def test_adversarial_functions() -> None:
    """Constants, identities, reversals, and tables whose neighbours in address hold the
    complement.
    """
    prompts = []
    for w in range(4):
        for z_0 in (0, 15, 6):
            for f in (np.arange(16), np.arange(16)[::-1], np.full(16, 15), np.zeros(16, int)):
                near = np.full(64, 63)
                near[w * 16 + f[z_0]] = 0
                for g in (np.arange(64), np.arange(64)[::-1], near, 63 - near):
                    prompts.append(np.concatenate([g, f, [z_0, w]]))
    assert not mistakes(made(2, 16, (4,)), np.array(prompts))


@pytest.mark.slow
def test_it_composes_at_1000_tokens() -> None:
    built = construct(parse_task("seqcomp:L=3,n=1000"), kind="encoder")
    assert not mistakes(built, built.task.sample(20, np.random.default_rng(1)).tokens)


def test_the_gaps_that_its_docstring_derives() -> None:
    layers = made(3, 3, (2, 3)).record.proof["layers"]
    assert [entry["fetches"] for entry in layers] == [
        "w, and z_0 at w",
        "what 1 step leads to",
        "what 2 steps lead to",
    ]
    # s^2, then 2 s^2; any w with any entry that may be asked for: 6 (3 + 3 + 6)
    assert [round(float(entry["score_gap"])) for entry in layers] == [64, 128, 128]
    assert [entry["queries"] for entry in layers] == [29, 72, 72]


@each(
    "stack, message",
    [
        (f"{BOTH}*2", "full layer with causal=false"),
        ("full*8", "it has 0"),
        ("full(causal=false, head_dim=4)*3", "head_dim >= 6"),
        ("full(causal=false, rope=true)*3", "no option but causal"),
    ],
)
def test_a_stack_that_cannot_hold_it_is_refused(stack: str, message: str) -> None:
    task = SeqComp(L=2, m=8, branching=(2,))
    with pytest.raises(SizeError, match=message):
        construct(task, Architecture.parse(stack), "encoder")
    assert THEOREMS["encoder"].judge(Architecture.parse(stack), task) is None


@pytest.mark.parametrize(
    ("name", "row", "space", "value"),
    [
        ("position.weight", 0, "column", 1.0),
        ("position.weight", 9, "next_0", 1.0),
        ("position.weight", 0, "final_0", -1.0),
        ("position.weight", -1, "is_w", 0.0),
        ("position.weight", 2, "is_z0", 1.0),
        ("embed.weight", 1, "value", -1.0),
        ("embed.weight", 1, "w_1", -1.0),
        ("head.weight", 1, "held_2", -1.0),
    ],
)
def test_edited_weights_are_refused(name: str, row: int, space: str, value: float) -> None:
    built = made(2, 4, (2,))
    place = encoder_spaces(built.task)[space].start  # pyright: ignore[reportArgumentType]
    tensor = built.model.get_parameter(name)
    assert float(tensor[row, place]) != value
    tensor[row, place] = value
    with pytest.raises(SizeError, match="not proved"):
        recorded(built.task, built.model, name="encoder")


# ---- what is not causal


def test_every_token_sees_the_whole_prompt() -> None:
    """By the definition: the softmax of all scores, of earlier and later tokens alike."""
    ((part,),) = Architecture.parse("full(causal=false, heads=1, head_dim=4)").layers
    layer = mixer(part, width=4)
    layer.reset(torch.Generator().manual_seed(0))
    x = torch.randn(2, 5, 4, generator=torch.Generator().manual_seed(1))
    q, k, v, o = (layer.get_parameter(f"{name}.weight") for name in "qkvo")
    expected = ((x @ q.T) @ (x @ k.T).mT).softmax(-1) @ (x @ v.T) @ o.T
    assert torch.allclose(layer(x), expected, atol=1e-6)
    assert torch.allclose(layer.last(x), expected[:, -1], atol=1e-6)
    places = torch.tensor([[0, 3], [4, 1]])
    found = torch.gather(expected, 1, places[..., None].expand(-1, -1, 4))
    assert torch.allclose(layer.at(x, places), found, atol=1e-6)


def test_there_is_no_cache_and_no_step() -> None:
    architecture = Architecture.parse(BOTH)
    assert not architecture.causal
    assert Architecture.parse("full + gdn").causal
    with pytest.raises(SizeError, match="no cache"):
        architecture.cache_bits(5)
    model = build(architecture, parse_task("eva:n=4"))
    assert model(torch.zeros(1, 5, dtype=torch.int64)).shape == (1, 4)
    with pytest.raises(SizeError, match="token by token"):
        model.init_cache(1)


TASKS = [
    "eva:n=100000",
    "index:n=100000,V=2",
    "seqcomp:L=3,n=100000",
    "seqcomp:L=40,m=2,form=uniform",
    "twosum:n=100000,M=1000000,form=query",
    "equality:n=100000",
    "parity:n=100000",
    "permutation:n=100000,k=5",
    "khop:n=100000,V=64,k=9",
    "seqcomp:L=2,m=40,n_1=2,thought=pairs",
]


@each("text", TASKS)
@each("stack", [f"{BOTH}*2", f"gdn + {BOTH} + window", f"{BOTH}|gdn"])
def test_no_theorem_says_that_it_fails(text: str, stack: str) -> None:
    """All bounds here are about what tokens left of a cut leave to those right of it."""
    architecture = Architecture.parse(f"{stack} @ heads=1, head_dim=1, format=p2")
    for verdict in judge(architecture, parse_task(text)):
        assert verdict.status == "OPEN"
        assert "causal=false" in verdict.statement
        recheck(verdict)


def test_a_verdict_of_a_causal_stack_is_not_believed_of_one_that_is_not() -> None:
    task = parse_task("seqcomp:L=3,n=100000")
    (causal, *_) = judge(Architecture.parse("full @ heads=1, head_dim=1, format=p2"), task)
    assert causal.status == "FAILS"
    (other,) = judge(Architecture.parse(f"{BOTH} @ heads=1, head_dim=1, format=p2"), task)
    with pytest.raises(CheckFailed, match="says nothing about"):
        recheck(dataclasses.replace(causal, architecture=other.architecture))


def test_the_theorem_says_what_it_takes() -> None:
    """L = 2: 3 layers; keys of 1 + 3 + 2 bits, values of 4 + 2 + 1."""
    task = parse_task("seqcomp:L=2,m=8,n_1=2")
    for layers, head_dim, value_dim, said in (
        (3, 6, 7, "SOLVABLE"),
        (2, 6, 7, "OPEN"),
        (3, 5, 7, "OPEN"),
        (3, 6, 6, "OPEN"),
    ):
        sizes = f"heads=1, head_dim={head_dim}, value_dim={value_dim}"
        (verdict,) = judge(Architecture.parse(f"{BOTH}*{layers} @ {sizes}"), task)
        assert verdict.status == said
        recheck(verdict)


def test_a_card_is_refused() -> None:
    with pytest.raises(SizeError, match="left to right"):
        card(Architecture.parse(BOTH), 1000)
