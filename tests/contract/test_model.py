"""The laws of `Model` on every buildable mechanism and on hybrids of them."""

from __future__ import annotations

import copy
import json
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import jaxtyping
import pytest
import torch
from safetensors.torch import load_file, save_file
from support.each import each
from torch import Tensor
from torch.func import functional_call, stack_module_state, vmap

from separatrix.core.errors import SeparatrixError, SizeError, SpecError, UnknownNameError
from separatrix.mixers import MIXERS, state_numbers
from separatrix.mixers.laws import close
from separatrix.models.model import Cache, Model, ModelConfig, build
from separatrix.stacks.architecture import Architecture
from separatrix.tasks import parse_task

pytestmark = pytest.mark.usefixtures("nan_memory")

CHANNELS = ("mamba", "rglru", "shortconv")
"""Mechanisms without heads."""
BLOCKED = ("sparse", "moba")
"""Mechanisms with blocks, which shall be full within a short prompt."""
LENGTH = 70
VOCABULARY = 5
ANSWERS = 4
SPECS = [
    *(
        f"{name}*2 @ heads=2, head_dim=4, p16"
        for name in MIXERS
        if name not in ("sparse", "window", "automaton", *CHANNELS)
    ),
    *(f"{name}*2 @ width=8, conv=3, p16" for name in CHANNELS),
    "automaton*2 @ bits=3, rules=20, p16",
    "sparse*2 @ heads=2, head_dim=4, block=4, topk=2",
    "window*2 @ heads=2, head_dim=4, size=9, value_dim=3",
    "full(kv_heads=1)|gdn + linear(normaliser=false) @ heads=2, head_dim=4",
    (
        "gdn + mlp + sparse(block=8, topk=1)|loglinear|window(size=5) + full @ heads=2, head_dim=4,"
        " bf16"
    ),
]


def _model(
    spec: str, *, norm: bool = True, bos: bool = True, hidden: int = 8, seed: int = 0
) -> Model:
    config = ModelConfig(
        architecture=spec,
        vocabulary=VOCABULARY,
        length=LENGTH,
        answers=ANSWERS,
        width=8,
        hidden=hidden,
        norm=norm,
        bos=bos,
    )
    return Model(config).reset(torch.Generator().manual_seed(seed)).double()


def _prompts(batch: int, tokens: int = LENGTH, seed: int = 1) -> Tensor:
    return torch.randint(VOCABULARY, (batch, tokens), generator=torch.Generator().manual_seed(seed))


def _plain_or_bare() -> Iterator[Any]:
    """Every spec in a model with norms, a first token of its own and an MLP, and some in one
    without: norms and such are the same for all mixers.
    """
    for spec in SPECS:
        yield pytest.param(spec, True, True, 8)
        if "|" in spec:
            yield pytest.param(spec, False, False, 0)


@pytest.mark.parametrize(("spec", "norm", "bos", "hidden"), list(_plain_or_bare()))
@torch.no_grad()
def test_step_every_and_forward_agree_and_the_cache_is_as_declared(
    spec: str, norm: bool, bos: bool, hidden: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(
        jaxtyping.config, "jaxtyping_disable", True
    )  # many steps; shapes are checked in the other tests
    model = _model(spec, norm=norm, bos=bos, hidden=hidden)
    prompts = _prompts(2)
    every = model.every(prompts)
    cache = model.init_cache(2)
    assert every.shape == (2, LENGTH, ANSWERS)
    for t in range(LENGTH):
        assert _numbers(cache) == _declared(model, t + bos), f"after {t} tokens"
        logits, cache = model.step(prompts[:, t], cache, t)
        close(logits, every[:, t], f"step {t}")
    assert _numbers(cache) == _declared(model, LENGTH + bos)
    for tokens in (1, 2, 33, LENGTH):
        close(model(prompts[:, :tokens]), every[:, tokens - 1], f"forward of {tokens} tokens")


@each("bos", [True, False])
@torch.no_grad()
def test_a_token_of_its_own_asks_behind_every_prefix(bos: bool) -> None:
    """The same numbers as those of a model of one id more that is told it, and no cache of it."""
    plain = _model("full + gdn|window(size=4) @ heads=2, head_dim=4", bos=bos)
    config = replace(plain.config, vocabulary=VOCABULARY - 1, length=LENGTH - 1, asks=True)
    assert ModelConfig.from_json(config.to_json()) == config
    assert "asks" not in plain.config.to_json()
    model = Model(config).double()
    weights = plain.state_dict()
    if bos:
        # the start token is told before the one that asks
        weights["embed.weight"] = weights["embed.weight"][[*range(VOCABULARY - 1), -1, -2]]
    model.load_state_dict(weights)
    prompts = _prompts(2, 9) % (VOCABULARY - 1)
    asked = torch.full((2, 1), VOCABULARY - 1)
    every = model.every(prompts)
    for tokens in (1, 4, 9):
        wanted = plain(torch.cat([prompts[:, :tokens], asked], 1))
        close(model(prompts[:, :tokens]), wanted, f"forward of {tokens} tokens")
        close(every[:, tokens - 1], wanted, f"every, {tokens} tokens")
    close(model.at(prompts, torch.tensor([[3], [3]]))[:, 0], every[:, 3], "at")


@pytest.mark.parametrize("spec", SPECS)
def test_at_is_every_at_the_places(spec: str) -> None:
    model = _model(spec, bos=True)
    prompts = _prompts(2, 20)
    places = torch.tensor([[19, 0, 7, 7], [3, 18, 1, 0]])
    rows = torch.arange(2)[:, None]
    wanted = model.every(prompts)[rows, places]
    found = model.at(prompts, places)
    close(found, wanted, "logits of at and every")
    close(model.at(prompts, torch.full((2, 1), 19))[:, 0], model(prompts), "the last token")
    weights = torch.randn(wanted.shape, generator=torch.Generator().manual_seed(2)).double()
    by_every, by_at = (
        torch.autograd.grad(
            (weights * y).sum(), list(model.parameters()), materialize_grads=True, allow_unused=True
        )
        for y in (wanted, found)
    )
    scale = max(float(gradient.abs().max()) for gradient in by_every)
    for name, a, b in zip(dict(model.named_parameters()), by_every, by_at, strict=True):
        close(a, b, f"the gradient by {name}", scale)


def test_at_with_narrow_states_rounds_as_step_does() -> None:
    config = _model("full + gdn(state_format=bf16) @ heads=2, head_dim=4").config
    model = Model(config).reset(torch.Generator().manual_seed(0))
    model.exact_state = True
    prompts = _prompts(2, 9)
    places = torch.tensor([[8, 2], [0, 5]])
    wanted = model.every(prompts)[torch.arange(2)[:, None], places]
    assert torch.equal(model.at(prompts, places), wanted)
    with pytest.raises(SizeError, match="places run from 0 to 9"):
        model.at(prompts, places + torch.tensor([[1, 0], [0, 0]]))


@each("bos", [True, False])
@each(
    "places, message",
    [
        ([[0], [-1]], "run from -1 to 0; the 6"),
        ([[5], [6]], "run from 5 to 6; the 6"),
        ([[5]], r"places have shape \(1, 1\)"),
        ([[], []], "at least one place"),
        ([[0.0], [1.0]], "places"),
    ],
)
def test_places_that_are_no_tokens(places: Any, message: str, bos: bool) -> None:
    model = _model("full + gdn @ heads=2, head_dim=4", bos=bos)
    dtype = torch.int64 if places == [[], []] else None
    refused = (SizeError, jaxtyping.TypeCheckError)
    with pytest.raises(refused, match=message):
        model.at(_prompts(2, 6), torch.tensor(places, dtype=dtype))


def _numbers(cache: Cache) -> int:
    """What one sequence carries."""
    return sum(state_numbers(state) for states in cache for state in states)


def _declared(model: Model, t: int) -> int:
    """Numbers that are declared after t tokens, whatever their formats."""
    return sum(bits.numbers for bits in model.architecture.cache(t).values())


def _part(name: str) -> str:
    if name == "automaton":
        return "automaton(bits=3, rules=20)"
    return (
        f"{name}(width=8)"
        if name in CHANNELS
        else (
            f"{name}(heads=2, head_dim=4, block=3)"
            if name in BLOCKED
            else f"{name}(heads=2, head_dim=4)"
        )
    )


@pytest.mark.parametrize("first", list(MIXERS)[::2])
@torch.no_grad()
def test_head_wise_hybrids_with_itself_and_the_next(first: str) -> None:
    names = list(MIXERS)
    for second in (first, names[(names.index(first) + 1) % len(names)]):
        _compare_hybrid(first, second)


@pytest.mark.slow
@pytest.mark.parametrize("first", MIXERS)
@torch.no_grad()
def test_head_wise_hybrids_with_every_third(first: str) -> None:
    for second in list(MIXERS)[list(MIXERS).index(first) :: 3]:
        _compare_hybrid(first, second)


def _compare_hybrid(first: str, second: str) -> None:
    prompts = _prompts(2, 10)
    model = _model(f"{_part(first)}|{_part(second)} @ p16")
    every = model.every(prompts)
    cache = model.init_cache(2)
    for t in range(10):
        logits, cache = model.step(prompts[:, t], cache, t)
        close(logits, every[:, t], f"{first}|{second}, step {t}")
    assert _numbers(cache) == _declared(model, 11), f"{first}|{second}"
    apart = sum(
        Architecture.parse(f"{_part(name)} @ p16").cache_bits(11) for name in (first, second)
    )
    assert model.architecture.cache_bits(11) == apart


@pytest.mark.parametrize("spec", SPECS[::2])
def test_stacked_models_equal_single_ones(spec: str) -> None:
    models = [_model(spec, seed=seed) for seed in range(3)]
    prompts = torch.stack([_prompts(2, 20, seed) for seed in range(3)])
    parameters, buffers = stack_module_state(models)
    base = copy.deepcopy(models[0]).to("meta")
    stacked = vmap(lambda p, b, x: functional_call(base, (p, b), (x,)))(
        parameters, buffers, prompts
    )
    close(stacked, torch.stack([m(x) for m, x in zip(models, prompts, strict=True)]), "logits")
    places = torch.tensor([[19, 3], [4, 4]])
    names = {f"model.{name}": value for name, value in (parameters | buffers).items()}
    stacked = vmap(lambda p, x: functional_call(_At(base), (p,), (x, places)))(names, prompts)
    alone = [m.at(x, places) for m, x in zip(models, prompts, strict=True)]
    close(stacked, torch.stack(alone), "logits at places")


class _At(torch.nn.Module):
    """Lets functional_call reach `at`."""

    def __init__(self, model: Model) -> None:
        super().__init__()
        self.model = model

    def forward(self, tokens: Tensor, places: Tensor) -> Tensor:
        return self.model.at(tokens, places)


@pytest.mark.parametrize("spec", SPECS)
@torch.no_grad()
def test_safetensors_round_trip(spec: str, tmp_path: Path) -> None:
    model = _model(spec)
    prompts = _prompts(2)
    save_file(model.state_dict(), tmp_path / "model.safetensors")
    (tmp_path / "model.json").write_text(json.dumps(model.config.to_json()))
    other = Model(ModelConfig.from_json(json.loads((tmp_path / "model.json").read_text()))).double()
    other.load_state_dict(load_file(tmp_path / "model.safetensors"))
    assert torch.equal(other(prompts), model(prompts))


@pytest.mark.parametrize("spec", SPECS)
def test_reset_draws_every_parameter_from_the_generator_alone(spec: str) -> None:
    models = []
    for state in (0, 1):
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(state)
            model = _model(spec)
        with torch.no_grad():
            for parameter in model.parameters():
                parameter.fill_(float("nan"))
        models.append(model.reset(torch.Generator().manual_seed(3)))
    for (name, a), b in zip(models[0].named_parameters(), models[1].parameters(), strict=True):
        assert torch.equal(a, b), f"{name} differs or was not drawn"


@pytest.mark.parametrize(
    "layer",
    [
        *(name for name in MIXERS if name not in (*CHANNELS, "automaton")),
        "full|gdn",
        "rglru(width=8)|full",
    ],
)
def test_build_for_a_task(layer: str) -> None:
    task = parse_task("eva:n=6,V=5")
    architecture = Architecture.parse(f"{layer}*2 @ heads=2, head_dim=4")
    model = build(architecture, task)
    assert (model.config.width, model.config.hidden) == (8, 16)
    assert model.architecture == architecture
    prompts = torch.zeros(3, task.length, dtype=torch.long)
    assert model(prompts).shape == (3, task.answers)
    same = build(architecture, task, seed=0)
    other = build(architecture, task, seed=1)
    assert all(
        torch.equal(a, b) for a, b in zip(model.parameters(), same.parameters(), strict=True)
    )
    assert not torch.equal(model(prompts), other(prompts))


def test_build_refuses_what_has_no_mixer() -> None:
    with pytest.raises(SizeError, match="'rwkv4'"):
        build(Architecture.parse("full + rwkv4"), parse_task("eva:n=6,V=5"))


def test_prompts_that_do_not_fit() -> None:
    with pytest.raises(SizeError, match="71"):
        _model("full @ heads=2, head_dim=4")(_prompts(1, LENGTH + 1))
    model = _model("gdn @ heads=2, head_dim=4", bos=False)
    with pytest.raises(SizeError, match="71"):
        model.step(torch.zeros(1, dtype=torch.long), model.init_cache(1), LENGTH)
    with pytest.raises(SizeError, match="70"):
        model(_prompts(1, 0))


_GOOD: dict[str, Any] = _model("full @ heads=2, head_dim=4").config.to_json()


def test_config_round_trip() -> None:
    assert ModelConfig.from_json(json.loads(json.dumps(_GOOD))).to_json() == _GOOD


@each(
    "data, error, message",
    [
        (None, SpecError, "the fields architecture, vocabulary"),
        ([], SpecError, "exactly the fields"),
        ({k: v for k, v in _GOOD.items() if k != "norm"}, SpecError, "exactly the fields"),
        (_GOOD | {"depth": 3}, SpecError, "exactly the fields"),
        (_GOOD | {"width": "8"}, SpecError, "width is '8'"),
        (_GOOD | {"width": True}, SpecError, "be of type int"),
        (_GOOD | {"norm": 1}, SpecError, "norm is 1"),
        (_GOOD | {"width": 0}, SizeError, "width is 0"),
        (_GOOD | {"hidden": -1}, SizeError, "hidden is -1"),
        (_GOOD | {"answers": 1 << 41}, SizeError, "answers is"),
    ],
)
def test_config_refuses_bad_fields(data: Any, error: type[SeparatrixError], message: str) -> None:
    with pytest.raises(error, match=message):
        ModelConfig.from_json(data)


def test_a_model_of_an_architecture_nobody_knows() -> None:
    with pytest.raises(UnknownNameError, match="'gdn'"):
        Model(ModelConfig.from_json(_GOOD | {"architecture": "gnd"}))
