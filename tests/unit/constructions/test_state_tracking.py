"""State tracking in one layer that reflects its state: every prompt of small sizes, token by token
and in parallel, in three formats; and long prompts against the task's own oracle.
"""

from __future__ import annotations

import copy

import numpy as np
import pytest
import torch
from support.construction_tools import every
from support.each import each

from separatrix.constructions import construct
from separatrix.constructions.tracked import shares
from separatrix.core.errors import SizeError
from separatrix.mixers import mixer
from separatrix.mixers.base.mixer import DTYPES, Mixer
from separatrix.models.model import Model
from separatrix.proofs.derivations.tracked import neighbours
from separatrix.stacks.architecture import Architecture
from separatrix.tasks import Permutation, Task, parse_task
from separatrix.tasks.base.task import Tokens

FORMATS = ("fp32", "bf16", "fp16")
SMALL = [
    ("parity:n=9", "deltanet(negative=true) @ heads=1, head_dim=1"),
    ("parity:n=9", "full + gdn(negative=true, key_heads=2)|window + mamba2 @ head_dim=4"),
    ("parity:n=9", "kda(negative=true) @ heads=2, head_dim=3"),
    ("parity:n=9", "deltaproduct(householders=3) @ heads=2, head_dim=3"),
    ("parity:n=9", "mlp|deltanet(heads=1, head_dim=1)|kda(heads=1, head_dim=2) @ negative=true"),
    ("modular:n=10,m=6", "deltaproduct(householders=4) @ heads=2, head_dim=10, value_dim=3"),
    ("permutation:n=4,k=3", "deltaproduct @ heads=1, head_dim=6, value_dim=2"),
    ("permutation:n=3,k=3", "deltaproduct(householders=3) + full(positions=none) @ head_dim=8"),
    ("permutation:n=9,k=2", "gdn(negative=true) @ heads=1, head_dim=1"),
    ("group:n=3,G=A4", "deltaproduct @ heads=1, head_dim=8, value_dim=2"),
    ("group:n=3,G=C12", "deltaproduct(householders=5) @ heads=1, head_dim=14, value_dim=2"),
    ("permutation:n=6,k=3,shift=swaps", "deltanet(negative=true) @ heads=2, head_dim=9"),
    ("permutation:n=3,k=4,shift=swaps", "gdn(negative=true, key_heads=2) @ head_dim=16"),
]
ALIKE = (*SMALL[2:5], SMALL[7], SMALL[8], SMALL[10], SMALL[12])
"""Other mechanisms and sizes on a task that another line asks for."""


def prompts(task: Task) -> Tokens:
    """All that the task asks, or 200 of them in even steps."""
    tokens = every([task.vocabulary] * task.length)
    if isinstance(task, Permutation) and task.shift == "swaps":
        tokens = tokens[np.isin(tokens[:, 1:], neighbours(task.k)).all(1)]
    return tokens[:: -(-len(tokens) // 200)]


def cast(model: Model, name: str) -> Model:
    return copy.deepcopy(model).to(DTYPES[name])


@torch.inference_mode()
def parallel(model: Model, tokens: Tokens, chunk: int = 64) -> torch.Tensor:
    for part in model.modules():
        if isinstance(part, Mixer):
            part.chunk = chunk
    return model(torch.from_numpy(tokens))


@torch.inference_mode()
def stepped(model: Model, tokens: Tokens) -> torch.Tensor:
    """The logits after every token, (batch, length, answers)."""
    cache = model.init_cache(len(tokens))
    logits = []
    for t, token in enumerate(torch.from_numpy(tokens).unbind(1)):
        one, cache = model.step(token, cache, t)
        logits.append(one)
    return torch.stack(logits, 1)


@pytest.mark.parametrize(
    ("text", "stack"),
    [pytest.param(*case, marks=[pytest.mark.slow] if case in ALIKE else []) for case in SMALL],
)
def test_every_prompt_in_every_format_token_by_token_and_in_parallel(text: str, stack: str) -> None:
    """The same logits in all of them, to the last bit: nothing is rounded anywhere."""
    task = parse_task(text)
    model = construct(task, Architecture.parse(stack)).model
    tokens = prompts(task)
    answers = task.answer(tokens)
    exact = parallel(model, tokens).double()
    assert (exact.argmax(-1).numpy() == answers).all()
    for name in FORMATS:
        narrow = cast(model, name)
        assert (stepped(narrow, tokens)[:, -1].double() == exact).all(), name
        assert (parallel(narrow, tokens).double() == exact).all(), name
    for chunk in (1, 3):
        assert (parallel(model, tokens, chunk).double() == exact).all(), chunk


@pytest.mark.parametrize(
    ("text", "stack"),
    [
        ("parity:n=700", "deltanet(negative=true) @ heads=1, head_dim=1"),
        ("permutation:n=300,k=5", None),
        ("permutation:n=300,k=5,shift=swaps", "deltanet(negative=true) @ heads=2, head_dim=25"),
        ("group:n=300,G=A5", None),
    ],
)
def test_long_prompts(text: str, stack: str | None) -> None:
    task = parse_task(text)
    model = construct(task, None if stack is None else Architecture.parse(stack)).model
    tokens, targets = task.sample(8, np.random.default_rng(1))
    for name in FORMATS:
        logits = parallel(cast(model, name), tokens)
        assert (logits.argmax(-1).numpy() == targets).all(), name


def test_the_state_holds_who_stands_where() -> None:
    """The row of place i is the unit vector of the thing there, less that of i, twice; of three
    things moved by (1, 2, 0), whose thing 2 comes to place 0.
    """
    task = parse_task("permutation:n=8,k=3")
    model = construct(task).model
    row = torch.from_numpy(np.array([[3, *[0] * 7]]))
    cache = model.init_cache(1)
    with torch.inference_mode():
        _, cache = model.step(row[:, 0], cache, 0)
    state = cache[0][0]["S"][0, 0]
    # columns: things 0 and 1; rows: places, then places again
    stands = torch.tensor([[0.0, 0.0], [1.0, 0.0], [0.0, 1.0]]) - torch.eye(3)[:, :2]
    assert torch.equal(state, torch.cat([stands, stands]))


def test_parity_is_the_state() -> None:
    model = construct(parse_task("parity:n=8")).model
    cache = model.init_cache(1)
    held = []
    with torch.inference_mode():
        for t, bit in enumerate([1, 1, 0, 1, 0, 0, 1, 1]):
            _, cache = model.step(torch.tensor([bit]), cache, t)
            held.append(float(cache[0][0]["S"]))
    assert held == [1, 0, 0, 1, 1, 1, 0, 1]


@pytest.mark.parametrize(
    "spec",
    [
        "deltanet(negative=true, conv=4)",
        "gdn(negative=true, conv=4, gate=silu)",
        "kda(negative=true, conv=2, gate=sigmoid)",
        "deltaproduct(conv=1, gate=norm)",
    ],
)
def test_parity_goes_through_convolutions_norms_and_gates(spec: str) -> None:
    """What the theorem claims of layers that `construct` does not write: SiLU leaves 128 and 32 as
    they are, the state is 0 or 64, and what comes out of norm and gate is 0 or one other number.
    """
    (part,) = Architecture.parse(f"{spec} @ heads=2, head_dim=4, value_dim=3").layers[0]
    one = mixer(part, width=3).requires_grad_(False)
    maps = dict(one.named_parameters())
    for tensor in maps.values():
        tensor.zero_()
    maps["q.weight"][0, 0] = maps["k.weight"][0, 0] = 128.0
    maps["v.weight"][0, 0] = 32.0
    maps["b.weight"][0, 1] = 128.0
    maps["b.weight"][2:, 0] = -128.0
    maps["o.weight"][2, 0] = 1.0
    maps["conv.weight"][:, -1] = 1.0
    for name, value in (("a.bias", -128.0), ("a.up.bias", -128.0), ("norm", 1.0)):
        if name in maps:
            maps[name].fill_(value)
    if "gate.weight" in maps:
        maps["gate.weight"][:, 0] = 64.0
    bits = torch.from_numpy(np.random.default_rng(2).integers(2, size=(3, 400)))
    x = torch.stack([torch.ones(3, 400), bits * 2.0 - 1, torch.zeros(3, 400)], -1)
    odd = bits.cumsum(1) % 2 == 1
    for name in FORMATS:
        y = one.to(DTYPES[name])(x.to(DTYPES[name]))[..., 2]
        assert y[~odd].unique().tolist() == [0.0]
        assert len(y[odd].unique()) == 1
        assert float(y[odd][0]) > 1


@each("blocks", [(2,), (3,), (5,), (6,), (4, 3, 5), (16, 9, 5), (128,)])
def test_queries_have_a_dyadic_length_and_a_weight_for_every_place(blocks: tuple[int, ...]) -> None:
    one, other, N = shares(blocks)
    assert sum(a * a for a in [*one, *other]) == N * N
    assert N & (N - 1) == 0
    sums = [a + b for a, b in zip(one, other, strict=True)]
    for length in blocks:
        block, sums = sums[:length], sums[length:]
        assert len(set(block)) == length


@each(
    "text, stack, needed",
    [
        ("permutation:n=9,k=5", "deltaproduct(householders=3)", "4 updates per token"),
        ("permutation:n=9,k=5", "deltaproduct(householders=4, head_dim=9)", "head_dim >= 10"),
        ("parity:n=9", "gdn", "negative=true"),
        ("parity:n=9", "deltanet(negative=true, conv=4)", "no conv or gate"),
        ("permutation:n=9,k=5,shift=swaps", "deltanet(negative=true, heads=1)", "2 heads"),
        ("permutation:n=9,k=5", "deltanet(negative=true)", "shift=swaps"),
        ("parity:n=9", "deltanet(negative=true, format=fp8)", "in fp32, bf16 or fp16"),
        ("modular:n=4000,m=131", None, "moves 131 things.* at most 128"),
    ],
)
def test_what_is_lacking_is_named(text: str, stack: str | None, needed: str) -> None:
    with pytest.raises(SizeError, match=needed):
        construct(parse_task(text), None if stack is None else Architecture.parse(stack))
