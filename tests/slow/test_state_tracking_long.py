"""State tracking end to end at the lengths where rounded states are long lost: no error, token by
token and in parallel, in three formats.
"""

from __future__ import annotations

import copy

import numpy as np
import pytest
import torch

from separatrix.constructions import construct
from separatrix.mixers.base.mixer import DTYPES
from separatrix.models.model import Model
from separatrix.stacks.architecture import Architecture
from separatrix.tasks import parse_task
from separatrix.tasks.base.task import Tokens

FORMATS = ("fp32", "bf16", "fp16")
CASES = [
    ("permutation:n=3000,k=5", None, 8),
    ("permutation:n=10000,k=5,shift=swaps", "deltanet(negative=true) @ heads=2, head_dim=25", 4),
    ("group:n=3000,G=A5", None, 8),
    ("parity:n=100000", "deltanet(negative=true) @ heads=1, head_dim=1", 3),
]


def model_of(text: str, stack: str | None) -> Model:
    held = None if stack is None else Architecture.parse(stack)
    return construct(parse_task(text), held, "swaps" if "swaps" in text else None).model


def cast(model: Model, name: str) -> Model:
    return copy.deepcopy(model).to(DTYPES[name])


@pytest.mark.slow
@pytest.mark.parametrize(("text", "stack", "rows"), CASES)
def test_in_parallel(text: str, stack: str | None, rows: int) -> None:
    tokens, targets = parse_task(text).sample(rows, np.random.default_rng(3))
    model = model_of(text, stack)
    for name in FORMATS:
        with torch.inference_mode():
            logits = cast(model, name)(torch.from_numpy(tokens))
        assert int((logits.argmax(-1).numpy() != targets).sum()) == 0, name


def chain(text: str, tokens: Tokens) -> Tokens:
    """The right answer after every token."""
    task = parse_task(text)
    found = task.chain(tokens)
    return tokens.cumsum(axis=1) % 2 if found is None else found


@pytest.mark.long
@pytest.mark.parametrize("name", FORMATS)
@pytest.mark.parametrize("case", [0, 1])
def test_token_by_token(case: int, name: str) -> None:
    """The answer is right after every one of them."""
    text, stack, rows = CASES[case]
    tokens, _ = parse_task(text).sample(rows, np.random.default_rng(4))
    assert wrong_steps(cast(model_of(text, stack), name), text, tokens) == 0


@torch.inference_mode()
def wrong_steps(model: Model, text: str, tokens: Tokens) -> int:
    """Wrong answers after all tokens but the first, which the proof says nothing of."""
    cache = model.init_cache(len(tokens))
    answers = chain(text, tokens)
    wrong = 0
    for t, token in enumerate(torch.from_numpy(tokens).unbind(1)):
        logits, cache = model.step(token, cache, t)
        wrong += int((logits.argmax(-1).numpy() != answers[:, t]).sum()) if t else 0
    return wrong


@pytest.mark.long
@pytest.mark.parametrize("name", FORMATS)
def test_parity_token_by_token(name: str) -> None:
    """A hundred thousand bits, all fair, and all but a few zero."""
    text = "parity:n=100000"
    rng = np.random.default_rng(5)
    tokens = np.concatenate([rng.integers(2, size=(4, 100_000)), rng.random((4, 100_000)) < 0.01])
    model = cast(model_of(text, "deltanet(negative=true) @ heads=1, head_dim=1"), name)
    assert wrong_steps(model, text, tokens.astype(np.int64)) == 0
