"""Every law on every mixer, completeness of the registry, and every law caught on a mixer that
breaks it.
"""

from __future__ import annotations

import ast
import importlib
import inspect
import pkgutil
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from typing import Any

import jaxtyping
import pytest
import torch
from support.cheats import FURTHER, SEVEN
from support.each import each
from support.fed_cheats import CAUGHT as FED
from support.quick_laws import broken_laws, shorten
from torch import Tensor

import separatrix.mixers
from separatrix.core.errors import SizeError
from separatrix.core.numbers.bits import sum_bits
from separatrix.mixers import (
    DECLARED_ONLY,
    MIXERS,
    OTHER_FORMS,
    Mixer,
    State,
    laws,
    mixer,
    state_numbers,
)
from separatrix.mixers.base.mixer import Shapes, fan_in_normal, linear, taken, wide
from separatrix.mixers.laws import (
    LAWS,
    LawBroken,
    close,
    drawn,
    gradients,
    inputs,
    memory,
    monotone,
    stream,
)
from separatrix.mixers.laws.forms import places
from separatrix.mixers.laws.tools import all_close
from separatrix.mixers.plugins import OwnMixer
from separatrix.stacks.mechanisms import MECHANISMS, Linear, Mechanism, mechanism

pytestmark = pytest.mark.usefixtures("nan_memory")

_SIZES: dict[str, Any] = {"heads": 2, "head_dim": 3, "value_dim": 5}
_VARIANTS: dict[str, tuple[str, dict[str, Any]]] = {
    "full": ("full", {}),
    "full GQA": ("full", {"heads": 4, "kv_heads": 2, "value_dim": 2}),
    "full norm cap gate": (
        "full",
        {"heads": 4, "kv_heads": 2, "qk_norm": "each", "softcap": 2, "gate": "sigmoid"},
    ),
    "full norm all rope": (
        "full",
        {"qk_norm": "all", "gate": "head", "rope": True, "head_dim": 4, "conv": 3},
    ),
    "full cap sink": ("full", {"softcap": 3, "sink": True}),
    "fox": ("fox", {"kv_heads": 1}),
    "fox norm gate rope conv": (
        "fox",
        {"qk_norm": "each", "gate": "sigmoid", "rope": True, "head_dim": 4, "conv": 3},
    ),
    "fox cap": ("fox", {"softcap": 2, "qk_norm": "head"}),
    "window norm cap gate sink": (
        "window",
        {"size": 9, "qk_norm": "head", "softcap": 2, "gate": "head", "sink": True},
    ),
    "full 1x1": ("full", {"heads": 1, "head_dim": 1, "value_dim": None}),
    "window 1": ("window", {"size": 1}),
    "window 5": ("window", {"size": 5}),
    "window 32 GQA": ("window", {"size": 32, "kv_heads": 1}),
    "window 70": ("window", {"size": 70}),
    **{f"linear {f}": ("linear", {"feature": f}) for f in ("elu", "relu", "identity", "taylor")},
    **{
        f"linear {f} unnormalised": ("linear", {"feature": f, "normaliser": False})
        for f in ("elu", "relu", "identity", "taylor")
    },
    "linear key_heads": ("linear", {"key_heads": 1}),
    "gdn": ("gdn", {}),
    "gdn key_heads": ("gdn", {"heads": 4, "key_heads": 2}),
    "gdn 1x1": ("gdn", {"heads": 1, "head_dim": 1, "value_dim": 1}),
    **{f"loglinear {f}": ("loglinear", {"feature": f}) for f in ("identity", "elu", "relu")},
    "loglinear key_heads": ("loglinear", {"key_heads": 1}),
    "loglinear gdn": ("loglinear", {"base": "gdn", "key_heads": 1, "conv": 2}),
    "loglinear mamba2": ("loglinear", {"base": "mamba2", "conv": 2}),
    "deltanet": ("deltanet", {"key_heads": 1}),
    "deltanet negative": ("deltanet", {"negative": True, "conv": 3, "gate": "norm"}),
    "gdn negative conv": ("gdn", {"negative": True, "conv": 4, "gate": "silu"}),
    "deltaproduct": ("deltaproduct", {"householders": 3, "key_heads": 1, "conv": 2}),
    "deltaproduct 1": ("deltaproduct", {"householders": 1, "negative": False}),
    "kda": ("kda", {"conv": 3, "gate": "sigmoid"}),
    "kda negative": ("kda", {"negative": True, "key_heads": 1}),
    "gla": ("gla", {"key_heads": 1, "gate": "silu"}),
    "hgrn2": ("hgrn2", {"conv": 3}),
    "retnet": ("retnet", {"head_dim": 4, "gate": "silu"}),
    "lightning": ("lightning", {"conv": 2}),
    "mamba": (
        "mamba",
        {"width": 5, "state": 3, "conv": 4, "rank": 2, **dict.fromkeys(_SIZES, ...)},
    ),
    "mamba norms": (
        "mamba",
        {"width": 4, "state": 1, "norms": True, **dict.fromkeys(_SIZES, ...)},
    ),
    "mamba2": (
        "mamba2",
        {"heads": 4, "head_dim": 3, "state": 5, "groups": 2, "conv": 4, "value_dim": ...},
    ),
    "rwkv": ("rwkv", {"width": 6}),
    "rwkv6": ("rwkv", {"width": 6, "version": 6, "shifts": 2}),
    "rwkv6 key_heads": (
        "rwkv",
        {"width": 6, "version": 6, "key_heads": 1, "gate": "silu", "conv": 2},
    ),
    "rwkv channel mixing": ("rwkv", {"width": 6, "shifts": 2}),
    "rwkv key_heads": ("rwkv", {"width": 6, "key_heads": 1, "gate": "norm", "conv": 2}),
    "mlstm": ("mlstm", {"conv": 4}),
    "rglru": ("rglru", {"width": 5, **dict.fromkeys(_SIZES, ...)}),
    "rglru conv": ("rglru", {"width": 5, "conv": 4, **dict.fromkeys(_SIZES, ...)}),
    "shortconv": ("shortconv", {"width": 5, "conv": 3, **dict.fromkeys(_SIZES, ...)}),
    "automaton": ("automaton", {"bits": 5, "rules": 40, **dict.fromkeys(_SIZES, ...)}),
    "full rope sink conv": ("full", {"rope": True, "head_dim": 4, "sink": True, "conv": 3}),
    "window rope sink": (
        "window",
        {"size": 9, "rope": True, "head_dim": 4, "sink": True, "kv_heads": 1},
    ),
    "linear conv gate": ("linear", {"conv": 4, "gate": "silu"}),
    "sparse 4,2": ("sparse", {"block": 4, "topk": 2}),
    "sparse 16,1 GQA": ("sparse", {"block": 16, "topk": 1, "heads": 4, "kv_heads": 2}),
    "sparse 1,3": ("sparse", {"block": 1, "topk": 3}),
    "sparse 32,9": ("sparse", {"block": 32, "topk": 9}),
    "sparse window": ("sparse", {"block": 8, "topk": 2, "window": 11, "heads": 4, "kv_heads": 2}),
    "sparse gates": ("sparse", {"block": 8, "topk": 2, "gates": True, "rope": True, "head_dim": 4}),
    "sparse window gates": (
        "sparse",
        {"block": 5, "topk": 3, "window": 70, "gates": True, "conv": 3, "kv_heads": 1},
    ),
    "nsa": (
        "nsa",
        {"block": 6, "stride": 3, "selected": 9, "topk": 4, "window": 7}
        | {"heads": 4, "kv_heads": 2},
    ),
    "nsa mean shared": (
        "nsa",
        {"block": 8, "stride": 8, "selected": 8, "topk": 4, "window": 11, "pool": "mean"}
        | {"shared": True, "rope": True, "head_dim": 4, "conv": 3},
    ),
    "nsa wide": (
        "nsa",
        {"block": 20, "stride": 5, "selected": 10, "topk": 3, "window": 70, "conv": 2},
    ),
    "moba 4,2 GQA": ("moba", {"block": 4, "topk": 2, "heads": 4, "kv_heads": 2}),
    "moba 16,1 rope conv": (
        "moba",
        {"block": 16, "topk": 1, "rope": True, "head_dim": 4, "conv": 3},
    ),
    "moba 1,3": ("moba", {"block": 1, "topk": 3}),
    "chunked 1": ("chunked", {"size": 1}),
    "chunked 32 GQA": ("chunked", {"size": 32, "heads": 4, "kv_heads": 2}),
    "chunked 70 rope conv": ("chunked", {"size": 70, "rope": True, "head_dim": 4, "conv": 3}),
    "chunked 2000": ("chunked", {"size": 2000}),
    "mla": ("mla", {"latent": 7, "rope_dim": 4, "conv": 3}),
    "mla unrotated": ("mla", {"latent": 3}),
    "dsa": (
        "dsa",
        {"latent": 7, "rope_dim": 2, "query_latent": 5, "index_heads": 3, "index_dim": 4}
        | {"topk": 8},
    ),
    "dsa 40 unrotated conv": (
        "dsa",
        {"latent": 3, "rope_dim": 2, "rope": False, "index_dim": 3, "topk": 40, "conv": 3},
    ),
    "dsa 2": ("dsa", {"latent": 4, "index_heads": 2, "index_dim": 4, "topk": 2}),
    "indexed 8 GQA": (
        "indexed",
        {"topk": 8, "index_heads": 3, "index_dim": 2, "heads": 4, "kv_heads": 2},
    ),
    "indexed 2": ("indexed", {"topk": 2, "index_heads": 1, "index_dim": 1}),
    "indexed 40 rope conv": (
        "indexed",
        {"topk": 40, "index_heads": 2, "index_dim": 5, "rope": True, "head_dim": 4, "conv": 3},
    ),
    "indexed 300": ("indexed", {"topk": 300, "index_dim": 4}),
    "moba 32,9": ("moba", {"block": 32, "topk": 9}),
}
EVERY_MIXER: dict[str, Mechanism] = {
    case: mechanism(name, **{k: v for k, v in (_SIZES | sizes).items() if v is not ...})
    for case, (name, sizes) in _VARIANTS.items()
}


_CORNERS = frozenset(
    {
        *(
            "full",
            "full 1x1",
            "full GQA",
            "full norm all rope",
            "full cap sink",
            "fox norm gate rope conv",
            "fox cap",
            "window norm cap gate sink",
            "window 1",
            "window 5",
            "window 32 GQA",
            "window 70",
            "chunked 1",
            "chunked 70 rope conv",
            "chunked 2000",
        ),
        *("linear elu", "linear relu", "linear identity", "linear taylor", "linear key_heads"),
        *(f"linear {feature} unnormalised" for feature in ("elu", "relu", "identity", "taylor")),
        *(
            "loglinear elu",
            "loglinear identity",
            "loglinear relu",
            "loglinear key_heads",
            "mamba norms",
            "mla unrotated",
            "rglru",
            "rwkv",
            "rwkv6",
            "rwkv6 key_heads",
            "loglinear mamba2",
            "rwkv channel mixing",
        ),
        *(
            "gdn 1x1",
            "gdn key_heads",
            "gdn negative conv",
            "kda negative",
            "deltaproduct 1",
            "deltanet",
        ),
        *(
            "sparse 1,3",
            "sparse 4,2",
            "sparse 16,1 GQA",
            "sparse 32,9",
            "sparse gates",
            "sparse window",
        ),
        *(
            "moba 1,3",
            "moba 16,1 rope conv",
            "moba 32,9",
            "indexed 2",
            "indexed 40 rope conv",
            "indexed 300",
            "dsa 40 unrotated conv",
            "dsa 2",
            "nsa mean shared",
            "nsa wide",
        ),
    }
)
"""Other sizes of a mechanism that stands in the table anyway: `make test-slow` has the laws of
`make test`, what is finite and what is NaN, and the comparison of its forms.
"""
_LATER = frozenset(
    {
        "alone",
        "chunks",
        "derivatives",
        "finite",
        "formats",
        "monotone",
        "NaN",
        "rows",
        "saved",
        "stacks",
    }
)
"""Laws that wait for `make test-slow`, but for one mixer that reads all and one that adds up."""
_KINDS = ("full rope sink conv", "gdn")
_LONG = frozenset({"fed", "step=forward", "cache", "alone", "given", "monotone"})
"""Laws of hundreds of steps. Shapes are checked under the others, whose steps are fewer: this
halves the time of these.
"""


def test_the_corners_are_in_the_table() -> None:
    assert set(EVERY_MIXER) >= _CORNERS
    assert {EVERY_MIXER[case].name for case in set(EVERY_MIXER) - _CORNERS} == set(MIXERS)


def _keeps(case: str, law: str) -> None:
    with shapes_unchecked() if law in _LONG else nullcontext():
        LAWS[law](drawn(mixer(EVERY_MIXER[case], width=6)))


@pytest.mark.parametrize(
    ("case", "law"),
    [
        (case, law)
        for case in EVERY_MIXER
        for law in LAWS
        if case not in _CORNERS
        and (law not in _LATER or case in _KINDS)
        and (case, law) != ("full rope sink conv", "formats")  # a third of all these together
    ],
)
def test_law(case: str, law: str, monkeypatch: pytest.MonkeyPatch) -> None:
    shorten(monkeypatch)
    _keeps(case, law)


@pytest.mark.parametrize(
    ("case", "law"),
    [
        # by turns; a mixer's laws all differ from those of the next
        pytest.param(case, law, marks=pytest.mark.long if (i + j) % 3 else pytest.mark.slow)
        for i, case in enumerate(name for name in EVERY_MIXER if name not in _CORNERS)
        for j, law in enumerate(LAWS)
    ],
)
def test_law_at_its_own_sizes(case: str, law: str) -> None:
    _keeps(case, law)


@pytest.mark.slow
@pytest.mark.parametrize("case", sorted(_CORNERS))
def test_laws_of_a_corner(case: str, monkeypatch: pytest.MonkeyPatch) -> None:
    shorten(monkeypatch)
    for law in LAWS.keys() - _LATER | {"finite", "NaN"}:
        _keeps(case, law)


@pytest.mark.slow
@pytest.mark.parametrize("case", sorted(_CORNERS))
def test_forms_of_a_corner(case: str) -> None:
    """Outputs beyond one chunk, window and block, and the cache they leave; gradients of a few
    tokens in chunks of two.
    """
    m = drawn(mixer(EVERY_MIXER[case], width=6))
    x = inputs(m, 2, 75)
    asked = places(x, 5)
    with torch.no_grad(), shapes_unchecked():
        steps, state = stream(m, x)
    _is_as_declared(m, state, 75)
    with torch.no_grad():
        for m.chunk in (7, Mixer.chunk):
            y = m(x)
            close(y, steps, f"chunks of {m.chunk}: outputs of forward and step")
            close(m.last(x), y[:, -1], f"chunks of {m.chunk}: outputs of last and forward")
            close(
                m.at(x, asked), taken(y, asked), f"chunks of {m.chunk}: outputs of at and forward"
            )
    m.chunk = 2
    x = x[:, :5].clone().requires_grad_()
    steps, state = stream(m, x)
    _is_as_declared(m, state, 5)
    all_close(gradients(m, x, [steps]), gradients(m, x, [m(x)]), "step and forward")


def _is_as_declared(m: Mixer, state: State, t: int) -> None:
    assert state_numbers(state) == sum_bits(item.bits for item in m.mechanism.cache(t)).numbers, (
        f"after {t} tokens"
    )


@contextmanager
def shapes_unchecked() -> Iterator[None]:
    jaxtyping.config.update("jaxtyping_disable", True)
    try:
        yield
    finally:
        jaxtyping.config.update("jaxtyping_disable", False)


def test_the_table_holds_every_mixer() -> None:
    assert {m.name for m in EVERY_MIXER.values()} == set(MIXERS)


def test_every_final_mixer_is_registered() -> None:
    """Those that are not subclassed; the others are bases."""
    for module in pkgutil.iter_modules(separatrix.mixers.__path__):
        importlib.import_module(f"separatrix.mixers.{module.name}")
    ours = {c for c in _subclasses(Mixer) if c.__module__.startswith("separatrix.")}
    final = {c for c in ours if not any(issubclass(other, c) for other in ours - {c})}
    assert final - {OwnMixer} == {*MIXERS.values(), *OTHER_FORMS.values()}
    assert not any(inspect.isabstract(c) for c in final)
    bases = ours - final
    # those of one family stand in its file
    for base in bases:
        family = {c.__module__ for c in _subclasses(base)}
        assert base.__module__.startswith("separatrix.mixers.base.") or base.__module__ in family


def test_every_mechanism_has_a_mixer_or_is_declared_only() -> None:
    assert set(MECHANISMS) == set(MIXERS) | set(DECLARED_ONLY)
    assert not set(MIXERS) & set(DECLARED_ONLY)


@each("name", DECLARED_ONLY)
def test_declared_only_cannot_be_built(name: str) -> None:
    with pytest.raises(SizeError, match=f"'{name}' has declared sizes"):
        mixer(mechanism(name), width=4)


@each("case", EVERY_MIXER)
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
    """y_i = sum_{j<=i} V x_j: the smallest mixer that keeps every law, and the ground for those
    that break one.
    """

    def __init__(self, mechanism: Mechanism | None = None, *, width: int = 6) -> None:
        unnormalised = Linear(
            heads=1, head_dim=1, value_dim=width, feature="identity", normaliser=False
        )
        super().__init__(mechanism or unnormalised, width=width)
        self.o = linear(width, width)

    def _forward(self, x: Tensor) -> Tensor:
        return wide(self.o(x)).cumsum(1).to(x.dtype)

    def shapes(self, t: int) -> Shapes:
        return {"S": (self.width,)}

    def _step(self, x: Tensor, state: State, t: int) -> tuple[Tensor, State]:
        total = wide(state["S"]) + wide(self.o(x))
        # the output apart from the state
        return total.to(x.dtype, copy=True), self._store(S=total)


class LooksAhead(RunningSum):
    def _forward(self, x: Tensor) -> Tensor:
        return super()._forward(x) + 1e-8 * x.sum(1, keepdim=True)


class LooksAheadFar(RunningSum):
    """A chunk sees the first token of the next but one."""

    def _forward(self, x: Tensor) -> Tensor:
        y = super()._forward(x)
        return (
            y if x.shape[1] <= 128 else torch.cat([y[:, :10] + 1e-6 * x[:, 128:129], y[:, 10:]], 1)
        )


class TurnsOver(RunningSum):
    """Its sum changes sign at every token, though linear attention declares that none falls."""

    def _step(self, x: Tensor, state: State, t: int) -> tuple[Tensor, State]:
        return super()._step(x, self._store(S=-state["S"]), t)


class RemembersTheFirst(RunningSum):
    """Keeps its first token for ever, as if that were a token shift."""

    def shapes(self, t: int) -> Shapes:
        return super().shapes(t) | {"shift": (self.width,)}

    def _step(self, x: Tensor, state: State, t: int) -> tuple[Tensor, State]:
        y, after = super()._step(x, state, t)
        first = x if t == 0 else state["shift"]
        return y + 1e-6 * first, after | self._store(shift=first)


class Forgets(RunningSum):
    """Every output is one and the same."""

    def _forward(self, x: Tensor) -> Tensor:
        return 0 * super()._forward(x)


class WrongAtLength(RunningSum):
    """Right at every length but one."""

    def _forward(self, x: Tensor) -> Tensor:
        return super()._forward(x) * (1 + 1e-6 * (x.shape[1] == 65))


class WrongInBatches(RunningSum):
    def _forward(self, x: Tensor) -> Tensor:
        return super()._forward(x) + 1e-6 * x[:1]


class WrongGradient(RunningSum):
    def _forward(self, x: Tensor) -> Tensor:
        return super()._forward(x.detach()) + 0 * x


class WrongParameterGradient(RunningSum):
    def _forward(self, x: Tensor) -> Tensor:
        y = super()._forward(x)
        return y + 1e-6 * (self.o.weight - self.o.weight.detach()).sum()


class WrongLast(RunningSum):
    def _last(self, x: Tensor) -> Tensor:
        return self._forward(x)[:, -2 % x.shape[1]]


class WrongAt(RunningSum):
    """The first place is taken for all of a row."""

    def _at(self, x: Tensor, places: Tensor) -> Tensor:
        return super()._at(x, places[:, :1].expand(places.shape))


class WrongGradientAt(RunningSum):
    def _at(self, x: Tensor, places: Tensor) -> Tensor:
        return super()._at(x.detach(), places) + 0 * x[:, :1]


class CarriesMore(RunningSum):
    def shapes(self, t: int) -> Shapes:
        return super().shapes(t) | {"more": (1,)}

    def _step(self, x: Tensor, state: State, t: int) -> tuple[Tensor, State]:
        y, new = super()._step(x, state, t)
        return y, new | {"more": state["more"]}


class CarriesMoreLate(CarriesMore):
    """One number too many from token 500 on."""

    def shapes(self, t: int) -> Shapes:
        return {"S": (self.width,), "more": (int(t > 500),)}

    def _step(self, x: Tensor, state: State, t: int) -> tuple[Tensor, State]:
        y, new = RunningSum._step(self, x, state, t)
        return y, new | {"more": y[:, : int(t >= 500)]}


class CarriesWider(RunningSum):
    """As many numbers as declared, but in float64 whatever the format."""

    def _dtype(self, name: str) -> torch.dtype:
        return torch.float64


class NoBatchAxis(RunningSum):
    def _step(self, x: Tensor, state: State, t: int) -> tuple[Tensor, State]:
        y, new = super()._step(x, state, t)
        return y, {"S": new["S"].T} if t == 2 else new


class HidesState(RunningSum):
    def __init__(self, mechanism: Mechanism | None = None, *, width: int = 6) -> None:
        super().__init__(mechanism, width=width)
        self.hidden = torch.zeros(())

    def _step(self, x: Tensor, state: State, t: int) -> tuple[Tensor, State]:
        self.hidden = self.o(x) + (self.hidden if t else 0)
        return self.hidden, state


class Overflows(RunningSum):
    """Passes through e^x, which float32 cannot hold beyond 88."""

    def _forward(self, x: Tensor) -> Tensor:
        return super()._forward(x) + 0 * (x.abs() - 80).exp()


class OverflowsInHalf(RunningSum):
    """Passes through x^2, which float16 cannot hold beyond 255."""

    def _forward(self, x: Tensor) -> Tensor:
        return 1e-3 * (super()._forward(x) + x * x)


class OverflowsWithLength(RunningSum):
    """Divides by a product of decays, which float32 cannot hold beyond some hundred tokens."""

    def _forward(self, x: Tensor) -> Tensor:
        decay = 0.9 ** torch.arange(x.shape[1], dtype=x.dtype)[:, None]
        return super()._forward(x / decay * decay) + 0 / decay


class InfiniteGradientAtZero(RunningSum):
    def _forward(self, x: Tensor) -> Tensor:
        return super()._forward(x) + x.abs().sqrt()


class HidesNaN(RunningSum):
    def _forward(self, x: Tensor) -> Tensor:
        return super()._forward(x.nan_to_num())


class HidesNaNInSteps(RunningSum):
    def _step(self, x: Tensor, state: State, t: int) -> tuple[Tensor, State]:
        return super()._step(x.nan_to_num(), {"S": state["S"].nan_to_num()}, t)


class TakesAnything(RunningSum):
    def _check_state(self, state: State, batch: int, t: int) -> None:
        pass


class TakesAnyDtype(RunningSum):
    def _check_state(self, state: State, batch: int, t: int) -> None:
        super()._check_state(
            {name: tensor.to(self._dtype(name)) for name, tensor in state.items()}, batch, t
        )


class TakesNoTokens(RunningSum):
    def _check_input(self, x: Tensor, axes: int) -> None:
        if x.shape[1] > 0:
            super()._check_input(x, axes)


class RaisesAnotherError(RunningSum):
    def _check_state(self, state: State, batch: int, t: int) -> None:
        try:
            super()._check_state(state, batch, t)
        except SizeError:
            raise KeyError("S") from None


class UnsavedWeight(RunningSum):
    """Its weight is no parameter, so no file holds it."""

    def __init__(self, mechanism: Mechanism | None = None, *, width: int = 6) -> None:
        super().__init__(mechanism, width=width)
        self.scale = torch.ones(())

    def reset(self, generator: torch.Generator) -> None:
        super().reset(generator)
        self.scale = torch.rand((), generator=generator)

    def _forward(self, x: Tensor) -> Tensor:
        return self.scale * super()._forward(x)


class ChunkMatters(RunningSum):
    def _forward(self, x: Tensor) -> Tensor:
        return super()._forward(x) * (1 + 1e-6 * (self.chunk == 7))


class ChunkMattersToGradients(RunningSum):
    def _forward(self, x: Tensor) -> Tensor:
        return super()._forward(x.detach() if self.chunk == 16 else x) + 0 * x


class ReadsItem(RunningSum):
    def _forward(self, x: Tensor) -> Tensor:
        return super()._forward(x) + 0 * x.sum().item()


class MixesModels(RunningSum):
    """Wrong under vmap, where its weights have one more axis behind the scenes."""

    def _forward(self, x: Tensor) -> Tensor:
        y = super()._forward(x)
        return y * 1.001 if torch._C._functorch.is_batchedtensor(y) else y  # type: ignore[attr-defined]


class ForgetsReset(RunningSum):
    def __init__(self, mechanism: Mechanism | None = None, *, width: int = 6) -> None:
        super().__init__(mechanism, width=width)
        self.bias = torch.nn.Parameter(torch.zeros(width))

    def reset(self, generator: torch.Generator) -> None:
        fan_in_normal(self.o.weight, generator)


class ResetsWithoutSeed(RunningSum):
    def reset(self, generator: torch.Generator) -> None:
        fan_in_normal(self.o.weight, torch.Generator().manual_seed(torch.seed() % 2**32))


def test_a_lawful_dummy_breaks_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    shorten(monkeypatch)
    assert broken_laws(drawn(RunningSum())) == set()


@pytest.mark.slow
def test_a_lawful_dummy_breaks_nothing_at_their_own_sizes() -> None:
    assert broken_laws(drawn(RunningSum())) == set()


@pytest.mark.parametrize(
    ("broken", "law"),
    [
        (LooksAhead, "causal"),
        (LooksAhead, "step=forward"),
        (LooksAheadFar, "causal"),
        (Forgets, "causal"),
        (Forgets, "step=forward"),
        (WrongAtLength, "step=forward"),
        (WrongInBatches, "step=forward"),
        (WrongGradient, "step=forward"),
        (WrongParameterGradient, "step=forward"),
        (WrongLast, "at"),
        (WrongAt, "at"),
        (WrongGradientAt, "at"),
        (CarriesMore, "cache"),
        (CarriesMoreLate, "cache"),
        (CarriesWider, "cache"),
        (NoBatchAxis, "cache"),
        (HidesState, "alone"),
        (Overflows, "finite"),
        (OverflowsInHalf, "finite"),
        (OverflowsWithLength, "finite"),
        (InfiniteGradientAtZero, "finite"),
        (HidesNaN, "NaN"),
        (HidesNaNInSteps, "NaN"),
        (TakesAnything, "refuses"),
        (TakesAnyDtype, "refuses"),
        (TakesNoTokens, "refuses"),
        (RaisesAnotherError, "refuses"),
        (UnsavedWeight, "saved"),
        (ChunkMatters, "chunks"),
        (ChunkMattersToGradients, "chunks"),
        (ReadsItem, "stacks"),
        (MixesModels, "stacks"),
        (ForgetsReset, "reset"),
        (ResetsWithoutSeed, "reset"),
        (TurnsOver, "monotone"),
        (RemembersTheFirst, "forgets"),
    ],
)
def test_each_law_is_caught_when_broken(
    broken: type[RunningSum], law: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(memory, "CACHE_LENGTHS", (1, 2, 3, 64, 600))
    monkeypatch.setattr(monotone, "MOST", 1 << 12)
    with pytest.raises((LawBroken, RuntimeError) if broken is ReadsItem else LawBroken):
        LAWS[law](drawn(broken()))


def test_every_law_has_a_mixer_that_breaks_it() -> None:
    marks = test_each_law_is_caught_when_broken.pytestmark  # type: ignore[attr-defined]
    caught = {law for mark in marks for _, law in mark.args[1]}
    assert caught | set((SEVEN | FURTHER | FED).values()) == set(LAWS)


def test_a_mixer_whose_true_outputs_overflow_is_excused() -> None:
    class Cubes(RunningSum):
        def _forward(self, x: Tensor) -> Tensor:
            return super()._forward(x) + x**3

    assert broken_laws(drawn(Cubes()), ["finite"]) == set()


@pytest.mark.parametrize("law", LAWS)
def test_laws_leave_the_mixer_as_it_was(law: str, monkeypatch: pytest.MonkeyPatch) -> None:
    shorten(monkeypatch)
    one = drawn(RunningSum())
    other = drawn(RunningSum())
    LAWS[law](one)
    assert one.chunk == other.chunk
    assert all(
        torch.equal(a, b) and a.dtype == b.dtype
        for a, b in zip(one.parameters(), other.parameters(), strict=True)
    )
    assert all(parameter.grad is None for parameter in one.parameters())


def test_no_law_is_an_assertion() -> None:
    """`python -O` removes them; the slow test below runs the laws so."""
    for module in pkgutil.walk_packages(laws.__path__, f"{laws.__name__}."):
        source = inspect.getsource(importlib.import_module(module.name))
        assert not [
            node.lineno for node in ast.walk(ast.parse(source)) if isinstance(node, ast.Assert)
        ], module.name


@pytest.mark.slow
def test_laws_hold_without_assertions() -> None:
    program = """
import torch
from separatrix.stacks.mechanisms import mechanism
from separatrix.mixers import mixer
from separatrix.mixers.laws import LAWS, drawn
assert False, "this program must run with -O"
m = drawn(mixer(mechanism("linear", heads=1, head_dim=2), width=4))
class Doubled(type(m)):
    def _forward(self, x):
        return 2 * super()._forward(x)
m.__class__ = Doubled
for law in ("causal", "step=forward"):
    try:
        LAWS[law](m)
    except AssertionError:
        print(law)
"""
    done = subprocess.run(
        [sys.executable, "-O", "-c", program], capture_output=True, text=True, check=False
    )
    assert (done.stdout, done.stderr, done.returncode) == ("step=forward\n", "", 0)
