"""A user's own mixer: registered, measured, refused where it declares too little; layers with a
cache object adapted.
"""

from __future__ import annotations

import copy
import re
import textwrap
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

import jaxtyping
import numpy as np
import pytest
import torch
from support.each import each
from support.quick_laws import broken_laws, shorten
from torch import Tensor, nn

import separatrix as sx
from separatrix.cli.report.mechanisms import describe, rows
from separatrix.core.errors import MissingExtraError, SizeError, SpecError, UnknownNameError
from separatrix.mixers import MIXERS, Mixer, mixer
from separatrix.mixers.laws import LAWS, drawn
from separatrix.mixers.plugins import OwnMixer, own_mechanism
from separatrix.mixers.plugins.mechanism import probe
from separatrix.models.stored.run import Run
from separatrix.stacks.mechanisms import MECHANISMS, mechanism
from separatrix.training.alone import train


@pytest.fixture(autouse=True)
def registry() -> Iterator[None]:
    """What a test registers is gone after it."""
    before = dict(MECHANISMS), dict(MIXERS)
    yield
    for registered, kept in zip((MECHANISMS, MIXERS), before, strict=True):
        registered.clear()
        registered.update(kept)  # type: ignore[arg-type]


class Sum(nn.Module):
    """y_i = O sum_{j<=i} V x_j, `state` sums per channel."""

    def __init__(self, width: int, *, state: int = 2, double: bool = False) -> None:
        super().__init__()
        self.v = nn.Linear(width, width * state * (1 + double), bias=False)
        self.o = nn.Linear(width * state * (1 + double), width, bias=False)

    def init_state(self, batch: int) -> Any:
        return {"S": torch.zeros(batch, self.v.out_features)}

    def step(self, x: Tensor, state: Any, t: int) -> Any:
        total = state["S"] + self.v(x)
        return self.o(total), {"S": total}

    def forward(self, x: Tensor) -> Any:
        return self.o(self.v(x).cumsum(1))


class Keeps(Sum):
    """Keeps every input."""

    def init_state(self, batch: int) -> Any:
        return {"past": torch.zeros(batch, 0, self.v.in_features)}

    def step(self, x: Tensor, state: Any, t: int) -> Any:
        past = torch.cat([state["past"], x[:, None]], 1)
        return self.o(self.v(past).sum(1)), {"past": past}


class Last300(Keeps):
    def step(self, x: Tensor, state: Any, t: int) -> Any:
        y, state = super().step(x, state, t)
        return y, {"past": state["past"][:, -300:]}


def test_a_registered_class_is_a_mechanism_like_others() -> None:
    assert sx.register_mechanism(Sum) is Sum
    part = mechanism("sum", width=8, state=3, double=True)
    assert part.sizes() == {"format": "fp32", "width": 8, "state": 3, "double": True}
    assert part.cache_bits(0) == part.cache_bits(10**6) == 8 * 3 * 2 * 32
    assert mechanism("sum", width=8, format="p5").cache_bits(9) == 8 * 2 * 5
    architecture = sx.Architecture.parse("sum(state=3)*2 + full @ width=8, heads=1, head_dim=8")
    assert sx.Architecture.parse(architecture.spec) == architecture
    assert sx.Architecture.from_json(architecture.to_json()) == architecture
    assert architecture.cache_bits(10) == 2 * 8 * 3 * 32 + 10 * 2 * 8 * 32


def test_verdicts_rest_on_the_measured_cache() -> None:
    sx.register_mechanism(Sum)
    verdicts = sx.judge(sx.Architecture.parse("sum @ width=4, p8"), sx.parse_task("eva:n=11,V=64"))
    assert [v.status for v in verdicts if v.theorem == "I"] == [
        "FAILS"
    ]  # 11 * 6 = 66 bits > 4 * 2 * 8 = 64
    verdicts = sx.judge(sx.Architecture.parse("sum @ width=4, p8"), sx.parse_task("eva:n=10,V=64"))
    assert not any(v.status == "FAILS" for v in verdicts)  # 60 bits fit


def test_models_train_and_stream() -> None:
    sx.register_mechanism(Sum)
    run = Run(
        architecture="sum(state=4) @ width=16",
        optimiser="adamw",
        task="eva:n=2,V=2",
        steps=150,
        width=16,
        tested=200,
        seed=0,
    )
    assert train(run).outcome.correct > 150  # 100 by guessing
    model = sx.build(sx.Architecture.parse(run.architecture), sx.parse_task(run.task)).double()
    assert model.config.width == 16
    tokens = torch.from_numpy(sx.parse_task(run.task).sample(3, np.random.default_rng(0)).tokens)
    cache = model.init_cache(3)
    for t in range(tokens.shape[1]):
        logits, cache = model.step(tokens[:, t], cache, t)
    assert torch.allclose(logits, model(tokens), rtol=1e-9)  # type: ignore[possibly-undefined]


def test_a_model_of_another_width_is_refused() -> None:
    sx.register_mechanism(Sum)
    with pytest.raises(SizeError, match="width=256"):
        mixer(mechanism("sum"), width=8)


def test_resetting_draws_from_the_generator_and_leaves_the_global_one() -> None:
    sx.register_mechanism(Sum)
    before = torch.get_rng_state()
    one, two, three = (mixer(mechanism("sum", width=4), width=4) for _ in range(3))
    torch.set_rng_state(before)
    for made, seed in ((one, 1), (two, 1), (three, 2)):
        made.reset(torch.Generator().manual_seed(seed))
    assert torch.equal(torch.get_rng_state(), before)
    assert torch.equal(one.module.v.weight, two.module.v.weight)  # type: ignore[union-attr]
    assert not torch.equal(one.module.v.weight, three.module.v.weight)  # type: ignore[union-attr]


def test_a_growing_cache_must_be_declared() -> None:
    sx.register_mechanism(Keeps)
    with pytest.raises(
        SizeError,
        match=("128"),
    ):
        mechanism("keeps", width=4).cache_bits(5)


def test_a_declared_growing_cache(monkeypatch: pytest.MonkeyPatch) -> None:
    sx.register_mechanism(cache_numbers=lambda t, *, width: width * t)(Keeps)
    part = mechanism("keeps", width=4)
    assert [part.cache_bits(t) for t in (0, 1, 1000)] == [0, 128, 128_000]
    assert [item.kind for item in part.cache(3)] == ["state", "kv"]
    assert (part.group, mechanism("window", size=3).group) == ("other", "windowed")
    shorten(monkeypatch)
    LAWS["cache"](drawn(mixer(part, width=4)))


def test_a_long_window_that_is_not_declared_is_not_taken_for_bounded() -> None:
    sx.register_mechanism(Last300)
    with pytest.raises(SizeError, match="still grows"):
        mechanism("last300", width=4).cache_bits(5)


@each(
    "declared, said",
    [
        (lambda t: 7, "holds 8 numbers after 0"),
        (
            lambda t: 8 if t < 40 else 7,
            "holds 8 numbers after 40",
        ),
        (lambda t: 8.0, "cache_numbers returned 8.0 for t=0"),
        (lambda t: -1, "cache_numbers returned -1 for t=0"),
        (lambda t: 1 // 0, "cache_numbers raises ZeroDivisionError"),
        (lambda t: 10**9 - t, "cache_numbers declares less for t="),
    ],
)
def test_too_small_a_declaration_is_refused_by_verdicts_and_models(
    declared: Any, said: str
) -> None:
    sx.register_mechanism(cache_numbers=declared)(Sum)
    architecture = sx.Architecture.parse("sum @ width=4")
    with pytest.raises(SizeError, match=said):
        sx.judge(architecture, sx.parse_task("eva:n=4,V=4"))
    if "declares less" not in said:  # asked about long inputs only
        with pytest.raises(SizeError, match=said):
            sx.build(architecture, sx.parse_task("eva:n=4,V=4"))


def test_more_than_was_measured_is_refused_when_it_is_seen() -> None:
    class Grows(Sum):
        def step(self, x: Tensor, state: Any, t: int) -> Any:
            total = state["S"][:, : self.v.out_features] + self.v(x)
            return self.o(total), {"S": torch.cat([total] * (1 + (t >= 300)), 1)}

    sx.register_mechanism(Grows)
    made = mixer(mechanism("grows", width=4), width=4)
    state = made.init_state(1)
    for t in range(300):
        _, state = made.step(torch.zeros(1, 4), state, t)
    with pytest.raises(
        SizeError,
        match=(r"\['S'\] .*\(1, 16\); .*t=301 .*\(1, 8\)"),
    ):
        made.step(torch.zeros(1, 4), state, 300)


class NoStep(nn.Module):
    def __init__(self, width: int) -> None:
        super().__init__()

    def forward(self, x: Tensor) -> Tensor:
        return x


class OnlySteps(nn.Module):
    def __init__(self, width: int) -> None:
        super().__init__()

    def init_state(self, batch: int) -> Any: ...
    def step(self, x: Tensor, state: Any, t: int) -> Any: ...


class Ratio(Sum):
    def __init__(self, width: int, *, ratio: float = 0.5) -> None: ...


class NoDefault(Sum):
    def __init__(self, width: int, *, state: int) -> None: ...


class Anything(Sum):
    def __init__(self, width: int, **sizes: int) -> None: ...


class NoWidth(Sum):
    def __init__(self, *, state: int = 1) -> None: ...


class Below(Sum):
    def __init__(self, width: int, *, state: int = -1) -> None: ...


class Clash(Sum):
    def __init__(self, width: int, *, flops: int = 1) -> None: ...


class ClashOfOwn(Sum):
    def __init__(self, width: int, *, shared: bool = False) -> None: ...


@each(
    "maker, named, said",
    [
        (Ratio, {}, "size 'ratio' of Ratio is 0.5 by default; sizes are booleans, or"),
        (NoDefault, {}, "size 'state' of NoDefault has no default"),
        (Anything, {}, "size 'sizes' of Anything has no default; name every size"),
        (NoWidth, {}, "NoWidth takes no width"),
        (Below, {}, "size 'state' of Below is -1"),
        (Clash, {}, "size 'flops' of Clash has the name of a part of every mechanism"),
        (ClashOfOwn, {}, "size 'shared' of ClashOfOwn has the name of a part of every mechanism"),
        (Sum, {"name": "my-sum"}, "name='my-sum' is no identifier"),
        (Sum, {"name": ""}, "name='' is no identifier"),
        (Sum, {"name": "gdn"}, r"name='gdn' is taken \(built in\); give another"),
        (Sum, {"symbol": "ss"}, "symbol='ss' must be one letter or digit"),
        (Sum, {"symbol": "f"}, "symbol='f' is taken by full"),
        (Sum, {"symbol": "h"}, "symbol='h' is taken by head-wise layers"),
        (
            Sum,
            {"cache_numbers": lambda t, *, stat: 1},
            r"cache_numbers of Sum is no static method of \(t, \*, ",
        ),
        (int, {}, "int is neither an nn.Module class nor a function"),
        (nn.Linear(2, 2), {}, "Linear.* is neither an nn.Module class"),
        (7, {}, "7 is neither an nn.Module class nor a function"),
    ],
)
def test_what_cannot_be_registered_is_one_clear_error(
    maker: Any, named: dict[str, Any], said: str
) -> None:
    before = dict(MECHANISMS)
    with pytest.raises(SpecError, match=f"^register_mechanism: .*{said}") as caught:
        sx.register_mechanism(**named)(maker)
    assert "\n" not in str(caught.value)
    assert before == MECHANISMS


def test_registering_again_replaces_and_another_of_that_name_is_refused() -> None:
    sx.register_mechanism(Sum)
    sx.register_mechanism(Sum)
    assert mechanism("sum").symbol == MECHANISMS["sum"].symbol
    with pytest.raises(SpecError, match=r"name='sum' is taken \(.*:Sum\)"):
        sx.register_mechanism(name="sum")(Keeps)


def test_symbols_stay_unique() -> None:
    for number in range(8):
        sx.register_mechanism(name=f"sum{number}")(type(f"Sum{number}", (Sum,), {}))
    symbols = [cls.symbol for cls in MECHANISMS.values()]
    assert len(set(symbols)) == len(symbols)
    assert "h" not in symbols


def test_unknown_sizes_suggest_the_nearest() -> None:
    sx.register_mechanism(Sum)
    with pytest.raises(UnknownNameError, match="'state'"):
        sx.Architecture.parse("sum(stat=3)")


@each("name, maker", [("no_step", NoStep), ("only_steps", OnlySteps)])
def test_what_lacks_a_method_is_told_when_anything_is_claimed(name: str, maker: Any) -> None:
    sx.register_mechanism(maker)
    with pytest.raises(SizeError, match=f"^{name}: .* made a {maker.__name__}, which is no"):
        mechanism(name, width=4).cache_bits(3)


def _broken(**methods: Any) -> Any:
    return type("Broken", (Sum,), {**methods, "__module__": __name__})


@each(
    "methods, said",
    [
        (
            {"init_state": lambda self, batch: torch.zeros(batch, 2)},
            r"init_state returned a tensor of shape \(2, 2\) as its state",
        ),
        (
            {"init_state": lambda self, batch: {"S": 3}},
            r"state\['S'\] of init_state is int '3'; it must be a tensor",
        ),
        (
            {"init_state": lambda self, batch: {"S": torch.zeros(8)}},
            r"state\['S'\] of init_state has shape \(8,\); its first axis must be the batch",
        ),
        (
            {"init_state": lambda self, batch: {"n": torch.zeros(batch, dtype=torch.long)}},
            "torch.int64; a state holds real",
        ),
        (
            {"step": lambda self, x, state, t: x},
            r"step returned a tensor of shape \(2, 4\); it must return \(y, state\)",
        ),
        ({"step": lambda self, x, state, t: (x, [x])}, "step returned list .* as its state"),
        ({"step": lambda self, x, state: x}, "step raises TypeError: .* takes 3 positional"),
        (
            {"step": lambda self, x, state, t: (x @ x, state)},
            r"step raises RuntimeError: .*test_register.py:\d+",
        ),
    ],
)
def test_bad_states_are_named_when_anything_is_claimed(methods: Any, said: str) -> None:
    sx.register_mechanism(_broken(**methods))
    with pytest.raises(SizeError, match=f"^broken: .*{said}"):
        mechanism("broken", width=4).cache_bits(3)


@pytest.mark.parametrize(
    ("methods", "said"),
    [
        (
            {"forward": lambda self, x: x[:, :1]},
            r"forward returned a tensor of shape \(1, 1, 4\) for x of shape \(1, 3, 4\)",
        ),
        ({"forward": lambda self, x: (x, x)}, "forward returned tuple"),
        (
            {"forward": lambda self, x: x.double()},
            r"forward returned torch.float64 for x of torch.float32; end it with y.to\(x.dtype\)",
        ),
    ],
)
def test_bad_outputs_are_named(methods: Any, said: str) -> None:
    sx.register_mechanism(_broken(**methods))
    with pytest.raises(SizeError, match=f"^broken: {said}"):
        mixer(mechanism("broken", width=4), width=4)(torch.zeros(1, 3, 4))


def test_a_module_that_looks_at_values_is_measured_with_memory() -> None:
    class Looks(Sum):
        def step(self, x: Tensor, state: Any, t: int) -> Any:
            assert float(x.abs().max()) < 1e6
            return super().step(x, state, t)

    sx.register_mechanism(Looks)
    assert mechanism("looks", width=4).cache_bits(7) == 4 * 2 * 32


def test_a_module_without_parameters() -> None:
    class Cumulative(nn.Module):
        def __init__(self, width: int) -> None:
            super().__init__()
            self.width = width

        def init_state(self, batch: int) -> Any:
            return {"S": torch.zeros(batch, self.width)}

        def step(self, x: Tensor, state: Any, t: int) -> Any:
            total = state["S"] + x
            return total, {"S": total}

        def forward(self, x: Tensor) -> Tensor:
            return x.cumsum(1)

    sx.register_mechanism(Cumulative)
    made = drawn(mixer(mechanism("cumulative", width=4), width=4))
    for law in ("stacks", "saved", "reset"):
        LAWS[law](made)


def test_constructions_and_their_verifier_leave_own_mixers_alone() -> None:
    sx.register_mechanism(Sum)
    with pytest.raises(SizeError, match="'sum'"):
        sx.construct(sx.parse_task("eva:n=4,V=4"), sx.Architecture.parse("sum + full"))


def test_what_is_taken_for_granted_is_said() -> None:
    sx.register_mechanism(Sum)
    said = " ".join(sx.Architecture.parse("sum").assumptions)
    assert "over 256 tokens" in said
    assert "can write nothing" in said


class StandInCache:
    """The convention of flash-linear-attention: per layer a dict of states, tuples among them,
    and a counter of tokens.
    """

    def __init__(self) -> None:
        self.states: list[dict[str, Any]] = []
        self.seen = 0

    def update(self, *, layer_idx: int, offset: int, **state: Any) -> None:
        if not self.states:
            self.states.append(state)
        else:
            self.states[layer_idx] = state
        self.seen += offset


class StandInLayer(nn.Module):
    """y_i = O (S_i + x_{i-1}) / (1 + i): a recurrent state, a one-token convolution state in a
    tuple, and a use of the counter.
    """

    def __init__(self, width: int, *, in_place: bool = False) -> None:
        super().__init__()
        self.v = nn.Linear(width, width, bias=False)
        self.o = nn.Linear(width, width, bias=False)
        self.in_place = in_place

    def forward(
        self,
        hidden_states: Tensor,
        attention_mask: Any = None,
        past_key_values: Any = None,
        use_cache: bool = False,
        **kwargs: Any,
    ) -> tuple[Tensor, None, Any]:
        last = (
            past_key_values.states[0]
            if past_key_values is not None and past_key_values.states
            else None
        )
        start = past_key_values.seen if past_key_values is not None else 0
        before = torch.zeros_like(hidden_states[:, :1]) if last is None else last["conv_state"][0]
        total = self.v(hidden_states).cumsum(1) + (0 if last is None else last["recurrent_state"])
        shifted = torch.cat([before, hidden_states[:, :-1]], 1)
        places = 1 + start + torch.arange(hidden_states.shape[1], dtype=hidden_states.dtype)
        y = self.o((total + shifted) / places[:, None])
        if use_cache:
            state = total[:, -1:]
            if self.in_place and last is not None:
                last["recurrent_state"].copy_(state)
                state = last["recurrent_state"]
            assert past_key_values is not None
            past_key_values.update(
                layer_idx=0,
                offset=hidden_states.shape[1],
                recurrent_state=state,
                conv_state=(hidden_states[:, -1:], None),
            )
        return y, None, past_key_values


@pytest.mark.slow
@pytest.mark.parametrize(
    ("law", "in_place"),
    [
        pytest.param(law, False, marks=[pytest.mark.slow] if law in ("formats", "causal") else [])
        for law in LAWS
        if law != "chunks"
    ]
    + [
        pytest.param(
            law, True, marks=[] if law in ("alone", "cache", "reset") else pytest.mark.slow
        )
        for law in LAWS
        if law != "chunks"
    ],
)
def test_an_adapted_layer_obeys_every_law(
    law: str, in_place: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    if law in (
        "step=forward",
        "alone",
        "cache",
    ):  # hundreds of steps; shapes are checked under the other laws
        monkeypatch.setattr(jaxtyping.config, "jaxtyping_disable", True)
    shorten(monkeypatch)
    LAWS[law](copy.deepcopy(_stand_in(in_place)))


@cache
def _stand_in(in_place: bool) -> Mixer:
    """Made once for all laws, since the cache of every class registered is measured over
    hundreds of tokens.
    """

    @sx.register_mechanism
    def stand_in(width: int) -> nn.Module:
        return sx.adapt(StandInLayer(width, in_place=in_place), cache=StandInCache)

    part = mechanism("stand_in", width=4)
    assert [part.cache_bits(t) for t in (0, 1, 100)] == [
        0,
        256,
        256,
    ]  # nothing before the first token, then 4 + 4 numbers
    return drawn(mixer(part, width=4))


def test_an_adapted_state_is_named_by_its_path() -> None:
    module = sx.adapt(StandInLayer(4), cache=StandInCache)
    _, state = module.step(torch.zeros(2, 4), module.init_state(2), 0)  # type: ignore[operator]
    assert {name: tuple(tensor.shape) for name, tensor in state.items()} == {
        "states.0.recurrent_state": (2, 1, 4),
        "states.0.conv_state.0": (2, 1, 4),
    }


@pytest.mark.parametrize(
    ("layer", "said"),
    [
        (nn.Linear(2, 2), "Linear.forward takes no cache; looked for past_key_values"),
        (StandInLayer(2), "StandInLayer has no config to make a cache from; pass cache="),
        (StandInLayer, "layer is a type; it must be a module"),
    ],
)
def test_what_cannot_be_adapted(layer: Any, said: str) -> None:
    with pytest.raises(SpecError, match=f"^adapt: {said}"):
        sx.adapt(layer)


def test_a_missing_library_names_the_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(__import__("sys").modules, "transformers", None)
    layer = StandInLayer(2)
    layer.config = object()  # type: ignore[assignment]
    with pytest.raises(MissingExtraError, match="'hf'"):
        sx.adapt(layer)


class SilentModule(nn.Module):
    def __init__(self, width: int) -> None:
        super().__init__()
        self.v = nn.Linear(width, width)

    def init_state(self, batch: int) -> Any:
        return {"m": torch.zeros(batch, 1)}

    def step(self, x: Tensor, state: Any, t: int) -> Any:
        return self.v(x), state

    def forward(self, x: Tensor) -> Any:
        return self.v(x)


def test_an_own_mixer_is_shown_with_the_module_that_it_is() -> None:
    """Not with the words of torch.nn.Module, and not as if it had none."""
    for maker, said in (
        (Sum, "y_i = O sum_{j<=i} V x_j"),
        (SilentModule, "SilentModule, which says nothing of itself."),
    ):
        name = f"own_{maker.__name__.lower()}"
        sx.register_mechanism(name=name)(maker)
        parts = dict(describe(name))
        text = parts[f"{name}: {maker.__name__}"]
        assert text.startswith(said)
        assert "submodules" not in text
        assert parts["mixer"].startswith(f"your own, {maker.__module__}:{maker.__name__}:")
        (row,) = (row for row in rows() if row["name"] == name)
        assert row["mixer"] == "yes"
    assert "mixer" not in dict(describe("gdn"))


class Gated(sx.MonotoneMixer):
    def __init__(self, width: int, *, state: int = 5) -> None:
        super().__init__(width, numbers=state)
        self.a, self.b = nn.Linear(width, state), nn.Linear(width, state)
        self.o = nn.Linear(state, width)

    def decay(self, x: Tensor) -> Tensor:
        return self.a(x)

    def write(self, x: Tensor) -> Tensor:
        return self.b(x)

    def read(self, x: Tensor, state: Tensor) -> Tensor:
        return self.o(state)


def test_every_law_may_be_the_first_that_asks_for_shapes(monkeypatch: pytest.MonkeyPatch) -> None:
    """Also one that asks inside of vmap, where making a module may draw nothing."""
    monkeypatch.setattr(jaxtyping.config, "jaxtyping_disable", True)
    shorten(monkeypatch)
    for law in LAWS:
        probe.cache_clear()
        assert broken_laws(drawn(OwnMixer(own_mechanism(Sum)(width=4), width=4)), [law]) == set()


def test_a_monotone_mixer_keeps_the_laws_though_its_decays_are_of_either_sign(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(jaxtyping.config, "jaxtyping_disable", True)
    shorten(monkeypatch)
    sx.register_mechanism(Gated)
    made = drawn(mixer(mechanism("gated", width=4), width=4))
    assert mechanism("gated", width=4).monotone
    assert broken_laws(made) == set()
    # with the decay as its author gives it, states fall
    monkeypatch.setattr(Gated, "moved", lambda self, x: (self.decay(x), self.write(x)))
    assert broken_laws(made, ["monotone"]) == {"monotone"}


@pytest.mark.slow
def test_the_monotone_mixer_of_the_page_keeps_the_laws(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(jaxtyping.config, "jaxtyping_disable", True)
    shorten(monkeypatch)
    page = (Path(__file__).parents[4] / "docs" / "own-mixer.md").read_text()
    blocks = re.findall(r"(?:^(?: {4}.*)?\n)+", page, re.MULTILINE)
    (block,) = (block for block in blocks if "sx.MonotoneMixer" in block)
    exec(compile(textwrap.dedent(block), "own-mixer.md", "exec"), {})
    made = drawn(mixer(mechanism("gated", width=4, state=3), width=4))
    assert mechanism("gated", width=4).title == "gated sums"
    assert broken_laws(made) == set()


@pytest.mark.slow
def test_verdicts_on_a_monotone_mixer_say_that_it_is_a_declaration() -> None:
    sx.register_mechanism(Gated)
    stack = sx.Architecture.parse("gated @ bf16, width=4, positions=none")
    (found,) = sx.judge(stack, sx.parse_task("parity:n=300000"))
    assert (found.status, found.theorem) == ("FAILS", "P")
    assert found.statement.startswith("if, as its ")


@pytest.mark.parametrize("name", ["step", "forward", "init_state", "moved", "monotone"])
def test_what_a_monotone_mixer_composes_is_not_written_by_its_author(name: str) -> None:
    with pytest.raises(SpecError, match=f"Mine writes {name} itself"):
        type("Mine", (Gated,), {name: lambda self, *given: given})


def test_decays_of_another_shape_are_told() -> None:
    class Wide(Gated):
        def decay(self, x: Tensor) -> Tensor:
            return x

    with pytest.raises(SizeError, match=r"shape \(2, 4\)"):
        Wide(4).step(torch.zeros(2, 4), Wide(4).init_state(2), 0)
    with pytest.raises(SizeError, match="numbers=0"):
        Gated(4, state=0)
