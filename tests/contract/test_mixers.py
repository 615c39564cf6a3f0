"""Every law on every mixer, completeness of the registry, and every law caught on a mixer that breaks it."""

from __future__ import annotations

import importlib
import inspect
import pkgutil
from collections.abc import Iterator
from typing import Any

import jaxtyping
import pytest
import torch
from torch import Tensor

import separatrix.mixers
from separatrix.architecture.mechanisms import MECHANISMS, Linear, Mechanism, mechanism
from separatrix.errors import SizeError
from separatrix.mixers import DECLARED_ONLY, MIXERS, OTHER_FORMS, Mixer, State, mixer
from separatrix.mixers._base import Shapes, fan_in_normal, linear
from separatrix.mixers.laws import LAWS, broken_laws, drawn

pytestmark = pytest.mark.usefixtures("nan_memory")

_SIZES: dict[str, Any] = {"heads": 2, "head_dim": 3, "value_dim": 5}
_VARIANTS: dict[str, tuple[str, dict[str, Any]]] = {
    "full": ("full", {}),
    "full GQA": ("full", {"heads": 4, "kv_heads": 2, "value_dim": 2}),
    "full 1x1": ("full", {"heads": 1, "head_dim": 1, "value_dim": None}),
    "window 1": ("window", {"size": 1}),
    "window 5": ("window", {"size": 5}),
    "window 32 GQA": ("window", {"size": 32, "kv_heads": 1}),
    "window 70": ("window", {"size": 70}),
    **{f"linear {f}": ("linear", {"feature": f}) for f in ("elu", "relu", "identity", "taylor")},
    **{f"linear {f} unnormalised": ("linear", {"feature": f, "normaliser": False}) for f in ("elu", "relu", "identity", "taylor")},
    "linear key_heads": ("linear", {"key_heads": 1}),
    "gdn": ("gdn", {}),
    "gdn key_heads": ("gdn", {"heads": 4, "key_heads": 2}),
    "gdn 1x1": ("gdn", {"heads": 1, "head_dim": 1, "value_dim": 1}),
    **{f"loglinear {f}": ("loglinear", {"feature": f}) for f in ("identity", "elu", "relu")},
    "loglinear key_heads": ("loglinear", {"key_heads": 1}),
    "loglinear gdn": ("loglinear", {"base": "gdn", "key_heads": 1, "conv": 2}),
    "deltanet": ("deltanet", {"key_heads": 1}),
    "deltanet negative": ("deltanet", {"negative": True, "conv": 3, "gate": "norm"}),
    "gdn negative conv": ("gdn", {"negative": True, "conv": 4, "gate": "silu"}),
    "deltaproduct": ("deltaproduct", {"householders": 3, "key_heads": 1, "conv": 2}),
    "deltaproduct 1": ("deltaproduct", {"householders": 1, "negative": False}),
    "kda": ("kda", {"conv": 3, "gate": "sigmoid"}),
    "gla": ("gla", {"key_heads": 1, "gate": "silu"}),
    "hgrn2": ("hgrn2", {"conv": 3}),
    "retnet": ("retnet", {"head_dim": 4, "gate": "silu"}),
    "lightning": ("lightning", {"conv": 2}),
    "mamba2": ("mamba2", {"heads": 4, "head_dim": 3, "state": 5, "groups": 2, "conv": 4, "value_dim": ...}),
    "rwkv": ("rwkv", {"width": 6}),
    "rwkv key_heads": ("rwkv", {"width": 6, "key_heads": 1, "gate": "norm", "conv": 2}),
    "mlstm": ("mlstm", {"conv": 4}),
    "rglru": ("rglru", {"width": 5, **dict.fromkeys(_SIZES, ...)}),
    "rglru conv": ("rglru", {"width": 5, "conv": 4, **dict.fromkeys(_SIZES, ...)}),
    "shortconv": ("shortconv", {"width": 5, "conv": 3, **dict.fromkeys(_SIZES, ...)}),
    "full rope sink conv": ("full", {"rope": True, "head_dim": 4, "sink": True, "conv": 3}),
    "window rope sink": ("window", {"size": 9, "rope": True, "head_dim": 4, "sink": True, "kv_heads": 1}),
    "linear conv gate": ("linear", {"conv": 4, "gate": "silu"}),
    "sparse 4,2": ("sparse", {"block": 4, "topk": 2}),
    "sparse 16,1 GQA": ("sparse", {"block": 16, "topk": 1, "heads": 4, "kv_heads": 2}),
    "sparse 1,3": ("sparse", {"block": 1, "topk": 3}),
    "sparse 32,9": ("sparse", {"block": 32, "topk": 9}),
}
EVERY_MIXER: dict[str, Mechanism] = {
    case: mechanism(name, **{k: v for k, v in (_SIZES | sizes).items() if v is not ...}) for case, (name, sizes) in _VARIANTS.items()
}


@pytest.mark.parametrize("law", LAWS)
@pytest.mark.parametrize("case", EVERY_MIXER)
def test_law(case: str, law: str) -> None:
    LAWS[law](drawn(mixer(EVERY_MIXER[case], width=6)))


def test_the_table_holds_every_mixer() -> None:
    assert {m.name for m in EVERY_MIXER.values()} == set(MIXERS)


def test_every_concrete_mixer_is_registered() -> None:
    for module in pkgutil.iter_modules(separatrix.mixers.__path__):
        importlib.import_module(f"separatrix.mixers.{module.name}")
    assert {c for c in _subclasses(Mixer) if c.__module__.startswith("separatrix.") and not inspect.isabstract(c)} == {
        *MIXERS.values(),
        *OTHER_FORMS.values(),
    }


def test_every_mechanism_has_a_mixer_or_is_declared_only() -> None:
    assert set(MECHANISMS) == set(MIXERS) | set(DECLARED_ONLY)
    assert not set(MIXERS) & set(DECLARED_ONLY)


@pytest.mark.parametrize("name", DECLARED_ONLY)
def test_declared_only_cannot_be_built(name: str) -> None:
    with pytest.raises(SizeError, match=f"'{name}' has declared sizes but no mixer yet"):
        mixer(mechanism(name), width=4)


@pytest.mark.parametrize("case", EVERY_MIXER)
def test_shapes_are_checked(case: str) -> None:
    m = mixer(EVERY_MIXER[case], width=6)
    with pytest.raises(jaxtyping.TypeCheckError, match="parameter 'x'"):
        m(torch.zeros(3, 6))
    with pytest.raises(jaxtyping.TypeCheckError, match="parameter 'x'"):
        m.step(torch.zeros(3, 1, 6), m.init_state(3), 0)


def _subclasses(cls: type) -> Iterator[type]:
    for sub in cls.__subclasses__():
        yield sub
        yield from _subclasses(sub)


class RunningSum(Mixer):
    """y_i = sum_{j<=i} V x_j: the smallest mixer that keeps every law, and the ground for those that break one."""

    def __init__(self, width: int = 6) -> None:
        super().__init__(Linear(heads=1, head_dim=1, value_dim=width, feature="identity", normaliser=False), width=width)
        self.v = linear(width, width)

    def _forward(self, x: Tensor) -> Tensor:
        return self.v(x).cumsum(1)

    def shapes(self, t: int) -> Shapes:
        return {"S": (self.width,)}

    def _step(self, x: Tensor, state: State, t: int) -> tuple[Tensor, State]:
        total = state["S"] + self.v(x)
        return total, {"S": total}


class LooksAhead(RunningSum):
    def _forward(self, x: Tensor) -> Tensor:
        return super()._forward(x) + 1e-6 * x.sum(1, keepdim=True)


class WrongGradient(RunningSum):
    def _forward(self, x: Tensor) -> Tensor:
        return super()._forward(x.detach()) + 0 * x


class WrongLast(RunningSum):
    def _last(self, x: Tensor) -> Tensor:
        return self._forward(x)[:, -2 % x.shape[1]]


class CarriesMore(RunningSum):
    def shapes(self, t: int) -> Shapes:
        return super().shapes(t) | {"more": (1,)}

    def _step(self, x: Tensor, state: State, t: int) -> tuple[Tensor, State]:
        y, new = super()._step(x, state, t)
        return y, new | {"more": state["more"]}


class HidesState(RunningSum):
    def __init__(self, width: int = 6) -> None:
        super().__init__(width)
        self.hidden = torch.zeros(())

    def _step(self, x: Tensor, state: State, t: int) -> tuple[Tensor, State]:
        self.hidden = self.v(x) + (self.hidden if t else 0)
        return self.hidden, state


class Overflows(RunningSum):
    def _forward(self, x: Tensor) -> Tensor:
        return super()._forward(x) + 0 * (x.abs() - 80).exp()


class ChunkMatters(RunningSum):
    def _forward(self, x: Tensor) -> Tensor:
        return super()._forward(x) * (1 + 1e-6 * (self.chunk != 64))


class ReadsItem(RunningSum):
    def _forward(self, x: Tensor) -> Tensor:
        return super()._forward(x) + 0 * x.sum().item()


class ForgetsReset(RunningSum):
    def __init__(self, width: int = 6) -> None:
        super().__init__(width)
        self.bias = torch.nn.Parameter(torch.zeros(width))

    def reset(self, generator: torch.Generator) -> None:
        fan_in_normal(self.v.weight, generator)


def test_a_lawful_dummy_breaks_nothing() -> None:
    assert broken_laws(drawn(RunningSum())) == set()


@pytest.mark.parametrize(
    ("broken", "law"),
    [
        (LooksAhead, "causal"),
        (LooksAhead, "step=forward"),
        (WrongGradient, "step=forward"),
        (WrongLast, "last"),
        (CarriesMore, "cache"),
        (HidesState, "split"),
        (Overflows, "finite"),
        (ChunkMatters, "chunks"),
        (ReadsItem, "stacks"),
        (ForgetsReset, "reset"),
    ],
)
def test_each_law_is_caught_when_broken(broken: type[RunningSum], law: str) -> None:
    assert law in broken_laws(drawn(broken()), [law])
