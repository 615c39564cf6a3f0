"""What a narrow state does to the two forms of a mixer, and how `exact_state` makes them one."""

from __future__ import annotations

import copy
import warnings
from typing import Any

import pytest
import torch
from support.each import each
from torch import Tensor

from separatrix.checks.refute import refute
from separatrix.core.errors import DriftWarning
from separatrix.core.evidence.records import Certificate
from separatrix.mixers import MIXERS, Mixer, mixer
from separatrix.mixers.base.mixer import DTYPES
from separatrix.models.model import build
from separatrix.stacks.architecture import Architecture, mechanism
from separatrix.tasks import Equality, Eva
from separatrix.theory import judge

SIZES: dict[str, Any] = {"heads": 2, "head_dim": 4, "block": 4, "topk": 2, "size": 5, "width": 8}
SIZES |= {"latent": 6, "index_dim": 4, "conv": 3}
NARROW = ("bf16", "fp16")
ONE_EACH = [
    *(("linear", "fp32"), ("gdn", "bf16"), ("mlstm", "fp32")),
    *(("rwkv", "bf16"), ("rglru", "fp32"), ("loglinear", "bf16")),
]
"""Mixers that carry a sum, with one of two formats by turns."""


def made(name: str, width: int = 8, **given: Any) -> Mixer:
    known = mechanism(name).sizes()
    sizes = {size: value for size, value in SIZES.items() if size in known} | given
    sizes |= {"block": 1} if name == "indexed" else {}
    sizes |= {"stride": 2, "selected": 4, "topk": 3} if name == "nsa" else {}
    part = mixer(mechanism(name, **sizes), width=width)
    part.reset(torch.Generator().manual_seed(0))
    return part.to(DTYPES[part.mechanism.format])


def drawn(part: Mixer, tokens: int) -> Tensor:
    x = torch.randn(2, tokens, part.width, generator=torch.Generator().manual_seed(1))
    return x.to(part._like.dtype)


def streamed(part: Mixer, x: Tensor) -> Tensor:
    state = part.init_state(len(x))
    outputs: list[Tensor] = []
    for t in range(x.shape[1]):
        y, state = part.step(x[:, t], state, t)
        outputs.append(y)
    return torch.stack(outputs, 1)


@pytest.mark.parametrize(
    "form", [NARROW[0], *(pytest.param(form, marks=pytest.mark.slow) for form in NARROW[1:])]
)
@pytest.mark.parametrize("name", MIXERS)
def test_the_forms_are_one_bit_for_bit(name: str, form: str) -> None:
    """Of mixers that carry a sum in a narrow format; the others compute as before."""
    part = made(name, format=form)
    assert not part.streams
    x = drawn(part, 20)
    with torch.no_grad():
        before = part(x)
        part.exact_state = True
        assert part.streams == (part.mechanism.rounded_to is not None)
        y = part(x)
        if part.streams:
            assert torch.equal(y, streamed(part, x))
            assert torch.equal(part.last(x), y[:, -1])
        else:
            assert torch.equal(y, before)


@pytest.mark.parametrize("name", ["linear", "gdn", "rglru", "mlstm", "loglinear"])
def test_a_state_narrower_than_its_layer_is_rounded_too(name: str) -> None:
    part = made(name, format="fp32", state_format="bf16")
    assert part.mechanism.rounded_to == "bf16"
    part.exact_state = True
    x = drawn(part, 20)
    with torch.no_grad():
        assert torch.equal(part(x), streamed(part, x))
    wide = made(name, format="bf16", state_format="fp32")
    wide.exact_state = True
    assert wide.mechanism.rounded_to is None
    assert not wide.streams


@pytest.mark.parametrize(("name", "form"), ONE_EACH)
def test_a_state_wider_than_its_layer_is_stored_so(name: str, form: str) -> None:
    """Sums are those of the layer: 64 bits hold them as they are."""
    part = made(name, format=form, state_format="fp64")
    usual = made(name, format=form, state_format="fp32")
    x = drawn(part, 20)
    with torch.no_grad():
        assert torch.equal(streamed(part, x), streamed(usual, x))
        _, state = part.step(x[:, 0], part.init_state(2), 0)
        recurrent = [n for n in state if n not in ("conv", "shift")]
        assert all(state[n].dtype == torch.float64 for n in recurrent)


@pytest.mark.parametrize(("name", "stored"), ONE_EACH)
def test_layers_in_float64_with_narrower_states(name: str, stored: str) -> None:
    part = made(name, format="fp64", state_format=stored)
    x = drawn(part, 20)
    part.exact_state = True
    with torch.no_grad():
        assert torch.equal(part(x), streamed(part, x))
        part.exact_state = False
        assert 0 < (part(x) - streamed(part, x)).norm() / part(x).norm() < 0.1


def test_a_model_in_one_form() -> None:
    """Logits after every token, by `forward`, `every` and `step`."""
    task = Eva(n=4, V=4)
    stack = Architecture.parse(
        "linear + full + sparse(block=2, topk=1) @ heads=2, head_dim=4, bf16"
    )
    model = build(stack, task, exact_state=True).to(torch.bfloat16)
    tokens = torch.randint(0, task.vocabulary, (3, task.length))
    with torch.no_grad():
        cache = model.init_cache(3)
        logits = torch.empty(0)
        for t in range(task.length):
            logits, cache = model.step(tokens[:, t], cache, t)
            assert torch.equal(model.every(tokens)[:, t], logits)
        assert torch.equal(model(tokens), logits)
        again = copy.deepcopy(model)
        assert again.exact_state
        again.exact_state = False
        assert not torch.equal(again.every(tokens), model.every(tokens))


def test_no_verdict_about_a_stored_state_is_taken_for_one_about_the_parallel_form() -> None:
    """Equality of 128 bits, with a state of 6 numerators and a denominator of 16 bits each: 112
    bits, so decoding fails. The parallel form carries 24 bits in each numerator and answers.

    Bit j of the first string adds 2^-i to numerator c (i = j div 6, c = j mod 6), that of the
    second takes it away; every key has the feature 1. All sums are multiples of 2^-21 below 2, so
    exact in float32, and 0 for equal strings alone.
    """
    n = 128
    spec = Architecture.parse("linear @ heads=1, head_dim=1, value_dim=6, bf16")
    (verdict,) = [v for v in judge(spec, Equality(n=n)) if v.status == "FAILS"]
    assert spec.cache_bits(2 * n) == 112
    assert "is rounded to bf16" in " ".join(verdict.assumptions)
    part = made("linear", width=6, head_dim=1, heads=1, value_dim=6, format="bf16", conv=0)
    with torch.no_grad():
        for name in "qkvo":
            part.get_parameter(f"{name}.weight").zero_()
        for name in "vo":
            part.get_parameter(f"{name}.weight").copy_(torch.eye(6))
    places = torch.arange(n)
    digits = torch.zeros(n, 6)
    digits[places, places % 6] = 2.0 ** -(places // 6)

    def says_equal(first: Tensor, second: Tensor) -> Tensor:
        x = torch.zeros(len(first), 2 * n + 1, 6)
        x[:, :n] = first[..., None] * digits
        x[:, n : 2 * n] = -second[..., None] * digits
        with torch.no_grad():
            return (part(x.to(torch.bfloat16))[:, -1] == 0).all(-1)

    one = torch.randint(0, 2, (8, n), generator=torch.Generator().manual_seed(0)).float()
    one[:, :6] = 1
    # the last digits but one of each numerator, under a first digit of 1
    other = one.clone()
    other[:, 120:126] = 1 - one[:, 120:126]
    assert bool(says_equal(one, one).all())
    assert not bool(says_equal(one, other).any())
    # rounded to 8 digits, the sums of equal strings do not cancel
    part.exact_state = True
    assert not bool(says_equal(one, one).any())


@each(
    "spec, n, reason",
    [
        ("linear @ heads=1, head_dim=4, bf16", 256, "a sum of 256"),
        ("mlstm @ heads=1, head_dim=4, fp16", 2048, "a sum of 2,048 like numbers"),
        ("gdn @ heads=1, head_dim=4, state_format=bf16", 256, "rounded to bf16"),
        ("sparse(block=2, topk=2) @ heads=1, head_dim=4, bf16", 5, "are chosen by pooled"),
        ("moba(block=2, topk=2) @ heads=1, head_dim=4, fp16", 5, "are chosen by pooled"),
        ("linear @ heads=1, head_dim=4, bf16", 254, None),
        ("loglinear @ heads=1, head_dim=4, bf16", 300, None),
        ("sparse(block=2, topk=2) @ heads=1, head_dim=4, bf16", 4, None),
        ("sparse(block=2, topk=2) @ heads=1, head_dim=4", 300, None),
        ("linear*2 @ heads=1, head_dim=4, bf16, state_format=fp32", 300, None),
        ("full + window @ heads=1, head_dim=4, bf16", 300, None),
        ("linear @ heads=1, head_dim=4, p8", 300, None),
    ],
)
def test_build_warns_where_the_forms_may_part(spec: str, n: int, reason: str | None) -> None:
    """A prompt of n values and a question has n + 1 tokens."""
    stack = Architecture.parse(spec)
    task = Eva(n=n, V=4)
    if reason is None:
        build(stack, task)
    else:
        with pytest.warns(DriftWarning, match=reason):
            build(stack, task)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        build(stack, task, exact_state=True)


def test_searches_judge_the_model_that_decodes() -> None:
    """A wrong answer of a stack with a bf16 state in fp32 is one of `step` and verifies."""
    task = Eva(n=8, V=8)
    stack = Architecture.parse("linear @ heads=1, head_dim=4, state_format=bf16")
    found = refute(stack, task, budget=600, method="wrong_answer")
    assert isinstance(found, Certificate)


DRIFTS = [
    # name, tokens, how far the last eighth of the outputs is apart at least, in parts of its size
    ("linear", 1024, 0.2),
    ("linear", 8192, 3.0),
    ("mlstm", 1024, 0.02),
]


@pytest.mark.slow
@pytest.mark.parametrize(("name", "tokens", "least"), DRIFTS)
def test_drifts_as_measured(name: str, tokens: int, least: float) -> None:
    """Far more than bf16's 2^-8 without `exact_state`, and none with it."""
    part = made(name, width=32, format="bf16", heads=2, head_dim=16, conv=0)
    x = drawn(part, tokens)
    assert part.mechanism.drift(tokens) is not None
    late = -tokens // 8
    with torch.no_grad():
        decoded = streamed(part, x)[:, late:].float()
        parallel = part(x)[:, late:].float()
        assert (parallel - decoded).norm() / parallel.norm() > least > 2**-8
        part.exact_state = True
        assert torch.equal(part(x)[:, late:].float(), decoded)
