"""The third form without a CUDA device: tensors that say they are on one, and torch operators with
the signatures, layouts and limits of fla-core 0.6 in the place of its kernels. The kernels
themselves: tests/slow/test_kernels_interpreted.py.
"""

from __future__ import annotations

import importlib.metadata
import sys
from collections.abc import Callable, Iterator
from types import ModuleType
from typing import Any

import pytest
import torch
from support.each import each
from torch import Tensor
from torch.func import vmap

from separatrix.core.errors import BackendError, UnknownNameError
from separatrix.mixers import Mixer, kernels, mixer
from separatrix.mixers.kernels import backend, chosen
from separatrix.mixers.laws import drawn
from separatrix.stacks.mechanisms import mechanism

WIDTH = 12
TOKENS = 70
SIZES: dict[str, Any] = {"heads": 2, "head_dim": 6, "value_dim": 5}
CASES: dict[str, tuple[str, dict[str, Any], str]] = {
    # case: (mechanism, sizes, kernel)
    "linear elu": ("linear", SIZES | {"feature": "elu"}, "linear"),
    "linear identity": (
        "linear",
        SIZES | {"feature": "identity", "normaliser": False},
        "linear",
    ),
    "retnet": ("retnet", SIZES, "simple_gla"),
    "lightning": ("lightning", SIZES, "simple_gla"),
    "mamba2": ("mamba2", {"heads": 4, "head_dim": 5, "state": 6, "groups": 2}, "simple_gla"),
    "gla": ("gla", SIZES, "gla"),
    "hgrn2": ("hgrn2", SIZES, "gla"),
    "deltanet": ("deltanet", SIZES, "gated_delta_rule"),
    "gdn": ("gdn", SIZES | {"negative": True, "key_heads": 1}, "gated_delta_rule"),
    "deltaproduct": ("deltaproduct", SIZES | {"householders": 3}, "gated_delta_rule"),
    "kda": ("kda", SIZES, "kda"),
    "rwkv": ("rwkv", SIZES | {"width": WIDTH}, "rwkv7"),
    "rwkv6": ("rwkv", SIZES | {"width": WIDTH, "version": 6}, "gla"),
    "rglru": ("rglru", {"width": 300}, "hgrn"),
    "fox": ("fox", SIZES | {"heads": 4, "kv_heads": 2}, "forgetting_attn"),
    "gla 272": ("gla", {"heads": 1, "head_dim": 272, "value_dim": 4}, "gla"),
    "retnet 272": ("retnet", {"heads": 1, "head_dim": 272, "value_dim": 4}, "simple_gla"),
    "loglinear": ("loglinear", SIZES, "log_linear"),
}
HALVES = ("rwkv7", "log_linear")
"""Kernels used in bfloat16 only."""
called: list[str] = []


class Pretended(Tensor):
    """A tensor that says it is on a CUDA device; so does what is computed from it."""

    is_cuda = True  # type: ignore[assignment]


def pretended(x: Tensor) -> Tensor:
    return x.detach().as_subclass(Pretended)


def scanned(q: Tensor, update: Callable[[Tensor, int], Tensor], v: Tensor) -> Tensor:
    """y_i = R_i^T q_i token by token in float32, in fla's layout (b t h d)."""
    state = torch.zeros(*q.shape[:1], *q.shape[2:], v.shape[-1])
    outputs = []
    for i in range(q.shape[1]):
        state = update(state, i)
        outputs.append(torch.einsum("bhd,bhde->bhe", q[:, i].float(), state))
    return torch.stack(outputs, 1).to(q.dtype)


def outer(k: Tensor, v: Tensor) -> Tensor:
    return k.float()[..., :, None] * v.float()[..., None, :]


def aligned(*tensors: Tensor) -> None:
    """What every kernel asks for: one batch and length, head dimensions in multiples of 16, one
    format of queries, keys and values.
    """
    assert len({x.shape[:3] for x in tensors}) == 1
    assert all(x.shape[-1] % 16 == 0 for x in tensors)
    assert len({x.dtype for x in tensors}) == 1


def chunk_simple_gla(
    q: Tensor, k: Tensor, v: Tensor, g: Tensor | None = None, scale: float | None = None
) -> tuple[Tensor, None]:
    """fla.ops.simple_gla: g (b t h), log decays."""
    called.append("linear" if g is None else "simple_gla")
    aligned(q, k, v)
    a = torch.ones(q.shape[:3]) if g is None else g.exp()
    assert scale == 1.0
    assert a.shape == q.shape[:3]
    assert a.dtype == torch.float32
    return scanned(q, lambda s, i: a[:, i, :, None, None] * s + outer(k[:, i], v[:, i]), v), None


def chunk_gla(
    q: Tensor, k: Tensor, v: Tensor, g: Tensor, scale: float | None = None
) -> tuple[Tensor, None]:
    """fla.ops.gla: g (b t h d), log decays."""
    called.append("gla")
    aligned(q, k, v)
    assert scale == 1.0
    assert q.shape == k.shape == g.shape
    assert g.dtype == torch.float32
    return scanned(q, lambda s, i: g[:, i].exp()[..., None] * s + outer(k[:, i], v[:, i]), v), None


def parallel_forgetting_attn(
    q: Tensor, k: Tensor, v: Tensor, g: Tensor, scale: float | None = None
) -> Tensor:
    """fla.ops.forgetting_attn: g (b t h), log gates; outputs alone."""
    called.append("forgetting_attn")
    aligned(q, k, v)
    assert scale == 1.0
    assert g.shape == q.shape[:3]
    assert g.dtype == torch.float32
    total = g.cumsum(1).transpose(1, 2)
    q, k, v = (x.float().transpose(1, 2) for x in (q, k, v))
    scores = q @ k.mT + total[..., None] - total[..., None, :]
    later = torch.ones(scores.shape[-2:], dtype=torch.bool).triu(1)
    return (scores.masked_fill(later, -torch.inf).softmax(-1) @ v).transpose(1, 2)


def chunk_gated_delta_rule(
    q: Tensor, k: Tensor, v: Tensor, g: Tensor, beta: Tensor, scale: float | None = None
) -> tuple[Tensor, None]:
    """fla.ops.gated_delta_rule: g and beta (b t h)."""
    called.append("gated_delta_rule")
    assert g.shape == beta.shape == q.shape[:3]
    return _overwritten(q, k, v, g[..., None], beta, scale), None


def chunk_kda(
    q: Tensor, k: Tensor, v: Tensor, g: Tensor, beta: Tensor, scale: float | None = None
) -> tuple[Tensor, None]:
    """fla.ops.kda: g (b t h d), beta (b t h)."""
    called.append("kda")
    assert g.shape == q.shape
    assert beta.shape == q.shape[:3]
    return _overwritten(q, k, v, g, beta, scale), None


def _overwritten(
    q: Tensor, k: Tensor, v: Tensor, g: Tensor, beta: Tensor, scale: float | None
) -> Tensor:
    aligned(q, k, v)
    assert scale == 1.0
    assert g.dtype == beta.dtype == torch.float32

    def update(state: Tensor, i: int) -> Tensor:
        state = g[:, i].exp()[..., None] * state
        return state + outer(
            k[:, i],
            beta[:, i, :, None] * (v[:, i] - torch.einsum("bhd,bhde->bhe", k[:, i].float(), state)),
        )

    return scanned(q, update, v)


def chunk_rwkv7(
    r: Tensor,
    w: Tensor,
    k: Tensor,
    v: Tensor,
    a: Tensor,
    b: Tensor,
    scale: float,
    safe_gate: bool,
    lower_bound: float,
) -> tuple[Tensor, None]:
    """fla.ops.rwkv7: S diag(w) + (S a) b^T + v k^T, w log decays from lower_bound on."""
    called.append("rwkv7")
    aligned(r, k, v, a, b)
    assert (scale, safe_gate) == (1.0, True)
    assert w.dtype == torch.float32
    assert w.min() >= lower_bound - 1e-6

    def update(state: Tensor, i: int) -> Tensor:
        read = torch.einsum("bhd,bhde->bhe", a[:, i].float(), state)
        return w[:, i].exp()[..., None] * state + outer(b[:, i], read) + outer(k[:, i], v[:, i])

    return scanned(r, update, v), None


def chunk_log_linear_attn(
    q: Tensor, k: Tensor, v: Tensor, g: Tensor, level_scales: Tensor, scale: float | None = 1.0
) -> tuple[Tensor, None]:
    """fla.ops.log_linear_attn: g (b t h), level_scales (b t h l) with at least the 7 levels
    inside a chunk.
    """
    called.append("log_linear")
    aligned(q, k, v)
    assert scale == 1.0
    assert q.shape[-1] % 64 == 0
    assert v.shape[-1].bit_count() == 1
    assert level_scales.shape[-1] >= 7
    assert level_scales.dtype == q.dtype
    assert not g.any()
    place = range(q.shape[1])
    level = torch.tensor([[(i ^ j).bit_length() if j <= i else 0 for j in place] for i in place])
    scales = (
        level_scales.transpose(1, 2).gather(-1, level.expand(q.shape[0], q.shape[2], -1, -1)).tril()
    )
    return torch.einsum("bhij,bjhe->bihe", scales * torch.einsum("bihd,bjhd->bhij", q, k), v), None


def chunk_hgrn(
    x: Tensor, g: Tensor, initial_state: None = None, output_final_state: bool = False
) -> tuple[Tensor, None]:
    """fla.ops.hgrn: x and g (b t c)."""
    called.append("hgrn")
    assert x.dtype == g.dtype == torch.float32
    h = torch.zeros_like(x[:, 0])
    outputs = []
    for i in range(x.shape[1]):
        h = g[:, i].exp() * h + x[:, i]
        outputs.append(h)
    return torch.stack(outputs, 1), None


OPERATORS = (
    chunk_simple_gla,
    chunk_gla,
    chunk_gated_delta_rule,
    chunk_kda,
    chunk_rwkv7,
    chunk_log_linear_attn,
    chunk_hgrn,
    parallel_forgetting_attn,
)


@pytest.fixture(autouse=True)
def installed(monkeypatch: pytest.MonkeyPatch) -> Iterator[pytest.MonkeyPatch]:
    """fla-core 0.6 whose operators are those above."""
    for name in ("fla", "fla.ops", *(kernel.module for kernel in kernels.KERNELS.values())):
        monkeypatch.setitem(sys.modules, name, ModuleType(name))
    for kernel in kernels.KERNELS.values():
        (operator,) = (function for function in OPERATORS if function.__name__ == kernel.operator)
        monkeypatch.setattr(sys.modules[kernel.module], kernel.operator, operator, raising=False)
    monkeypatch.setattr(importlib.metadata, "version", lambda _: "0.6.0")
    has(monkeypatch, "3.7.1", (9, 0))
    kernels.missing.cache_clear()
    called.clear()
    yield monkeypatch
    kernels.missing.cache_clear()
    kernels.wrong_gradients.cache_clear()


def has(
    patch: pytest.MonkeyPatch, triton: str, *devices: tuple[int, int], name: str = "NVIDIA"
) -> None:
    """Triton of that version, and devices of those capabilities."""
    module = ModuleType("triton")
    module.__version__ = triton  # type: ignore[attr-defined]
    patch.setitem(sys.modules, "triton", module)
    patch.setattr(torch.cuda, "device_count", lambda: len(devices))
    patch.setattr(torch.cuda, "get_device_capability", lambda i: devices[i])
    patch.setattr(torch.cuda, "get_device_name", lambda i: name)
    kernels.wrong_gradients.cache_clear()


def made(case: str, dtype: torch.dtype = torch.float32) -> Mixer:
    name, sizes, _ = CASES[case]
    return drawn(mixer(mechanism(name, **sizes), width=WIDTH)).to(dtype)


def inputs(dtype: torch.dtype = torch.float32, tokens: int = TOKENS) -> Tensor:
    return pretended(
        torch.randn(2, tokens, WIDTH, generator=torch.Generator().manual_seed(1)).to(dtype)
    )


def gap(a: Tensor, b: Tensor) -> float:
    assert a.shape == b.shape
    assert a.dtype == b.dtype
    return ((a - b).abs().max() / b.abs().max()).item()


@pytest.mark.slow
@pytest.mark.parametrize("case", CASES)
def test_every_call_gives_what_the_chunked_form_gives(
    case: str, installed: pytest.MonkeyPatch
) -> None:
    kernel = kernels.KERNELS[CASES[case][2]]
    single = {torch.float32: torch.float32}
    installed.setitem(
        kernels.KERNELS, CASES[case][2], type(kernel)(**{**vars(kernel), "computes": single})
    )
    m = made(case)
    x = inputs()
    forms = []
    for form in ("fla", "torch"):
        called.clear()
        y = x.clone().requires_grad_()
        with backend(form):
            outputs = [m(y), m.last(y)]
        assert set(called) == ({CASES[case][2]} if form == "fla" else set())
        forms.append(
            [*outputs, *torch.autograd.grad([z.sum() for z in outputs], [y, *m.parameters()])]
        )
    gaps = [gap(a, b) for a, b in zip(*forms, strict=True)]
    assert max(gaps[:2]) <= 1e-5
    # step sizes of Mamba-2: differences of large numbers, in either form
    assert max(gaps[2:]) <= 1e-4


@pytest.mark.parametrize("case", CASES)
def test_bfloat16_layers_run_kernels_of_themselves(case: str) -> None:
    m = made(case, torch.bfloat16)
    x = inputs(torch.bfloat16)
    y = m(x)
    assert called == [CASES[case][2]]
    with backend("torch"):
        assert gap(y, m(x)) <= 0.1
    assert called == [CASES[case][2]]


@pytest.mark.parametrize(("dtype", "runs"), [(torch.float16, True), (torch.float32, False)])
@pytest.mark.parametrize("case", CASES)
def test_other_formats(case: str, dtype: torch.dtype, runs: bool) -> None:
    """float32 is left alone where PyTorch may not round its products; RG-LRU multiplies no
    matrices; bfloat16 alone suits some kernels.
    """
    name = CASES[case][2]
    made(case, dtype)(inputs(dtype))
    assert called == (
        [name]
        if (runs and name not in HALVES) or (name == "hgrn" and dtype == torch.float32)
        else []
    )


@pytest.mark.parametrize("setting", ["high", "medium"])
def test_float32_runs_kernels_where_pytorch_may_round(setting: str) -> None:
    before = torch.get_float32_matmul_precision()
    torch.set_float32_matmul_precision(setting)
    try:
        made("gdn")(inputs())
    finally:
        torch.set_float32_matmul_precision(before)
    assert called == ["gated_delta_rule"]


def test_autocast_names_the_format(installed: pytest.MonkeyPatch) -> None:
    assert chosen("kda", *keys()) is None
    installed.setattr(torch, "is_autocast_enabled", lambda device: device == "cuda")
    installed.setattr(torch, "get_autocast_dtype", lambda device: torch.bfloat16)
    assert chosen("kda", *keys()) is not None


def test_capped_scores_of_fox_are_ours() -> None:
    m = drawn(mixer(mechanism("fox", **SIZES, softcap=5), width=WIDTH)).to(torch.bfloat16)
    m(inputs(torch.bfloat16))
    assert called == []


def test_on_a_cpu_nothing_is_asked(installed: pytest.MonkeyPatch) -> None:
    installed.setattr(kernels, "why_not", lambda *_: pytest.fail("asked"))
    made("gdn")(torch.randn(2, 5, WIDTH))


def keys(
    d: int = 16, e: int = 16, batch: int = 1, tokens: int = 3, dtype: torch.dtype = torch.float32
) -> tuple[Tensor, Tensor, torch.dtype]:
    shape = (batch, 2, tokens)
    return (
        pretended(torch.zeros(1).expand(*shape, d)),
        pretended(torch.zeros(1).expand(*shape, e)),
        dtype,
    )


@each(
    "kernel, given, words",
    [
        (
            "gla",
            keys(dtype=torch.float64),
            "are torch.float64, it takes torch.bfloat16, torch.float16, torch.float32",
        ),
        ("rwkv7", keys(), "are torch.float32, it takes torch.bfloat16"),
        ("kda", keys(d=257), "257 is over its 256"),
        ("log_linear", keys(e=65, dtype=torch.bfloat16), "65 is over its 64"),
        (
            "log_linear",
            keys(tokens=2**17 + 1, dtype=torch.bfloat16),
            "131073",
        ),
        ("simple_gla", keys(batch=2**15), "is 65536, over its 65535"),
    ],
)
def test_limits(kernel: str, given: tuple[Tensor, Tensor, torch.dtype], words: str) -> None:
    with backend("auto"):
        assert chosen(kernel, *given) is None
    with backend("fla"), pytest.raises(BackendError, match="cannot run") as raised:
        chosen(kernel, *given)
    assert words in str(raised.value)
    assert "\n" not in str(raised.value)


def test_demanded_on_a_cpu() -> None:
    with (
        backend("fla"),
        pytest.raises(BackendError, match="inputs are on cpu"),
    ):
        made("gdn")(torch.randn(2, 5, WIDTH))


def test_demanded_where_there_is_no_kernel() -> None:
    """Mechanisms, and feature maps, for which fla has none run as ever."""
    for name, sizes in (
        ("mlstm", SIZES),
        ("linear", SIZES | {"feature": "taylor"}),
        ("full", SIZES),
        ("loglinear", SIZES | {"base": "gdn"}),
        ("loglinear", SIZES | {"base": "mamba2"}),
        ("mamba", {"width": 5}),
    ):
        m = drawn(mixer(mechanism(name, **sizes), width=WIDTH)).float()
        x = torch.randn(1, 5, WIDTH)
        with backend("fla"):
            assert torch.equal(m(x), m(x))


def absent(_: str) -> str:
    raise importlib.metadata.PackageNotFoundError


@pytest.mark.parametrize(
    ("version", "words"),
    [
        (absent, "installed: pip install 'separatrix[cuda]'"),
        (lambda _: "0.5.2", "fla-core 0.5.2"),
        (lambda _: "0.7.0", "fla-core 0.7.0"),
    ],
)
def test_not_installed(
    installed: pytest.MonkeyPatch, version: Callable[[str], str], words: str
) -> None:
    installed.setattr(importlib.metadata, "version", version)
    m = made("gdn", torch.bfloat16)
    x = inputs(torch.bfloat16)
    m(x)
    assert not called
    with backend("fla"), pytest.raises(BackendError, match="cannot run") as raised:
        m(x)
    assert words in str(raised.value)


def test_broken_installation(installed: pytest.MonkeyPatch) -> None:
    installed.setitem(sys.modules, "fla.ops", None)
    m = made("gdn", torch.bfloat16)
    x = inputs(torch.bfloat16)
    m(x)
    assert not called
    with (
        backend("fla"),
        pytest.raises(BackendError, match=r"0\.6\.0 fails: ModuleNotFoundError"),
    ):
        m(x)


HOPPER = (9, 0)
AMPERE = (8, 0)
BLACKWELL = (10, 0)
GATED = {"simple_gla", "gated_delta_rule"}
"""Kernels whose backward pass hands a gate to fla's `chunk_bwd_dqkwg`: read in fla-core 0.6's
ops/simple_gla/chunk.py and ops/gated_delta_rule/chunk.py; no other kernel in use calls it.
"""


@pytest.mark.parametrize("case", CASES)
def test_on_hopper_with_a_wrong_triton_gated_kernels_do_not_train(
    case: str, installed: pytest.MonkeyPatch
) -> None:
    """fla raises in their backward pass, after the forward pass of a training step is done."""
    has(installed, "3.4.0", HOPPER)
    kernel = CASES[case][2]
    m = made(case, torch.bfloat16)
    x = inputs(torch.bfloat16, 5)
    with backend("fla"):
        if kernel in GATED:
            with pytest.raises(BackendError, match=r"Hopper .* 3\.7\.1 "):
                m(x)
        else:
            m(x)
    assert called == ([] if kernel in GATED else [kernel])
    kernels.wrong_gradients.cache_clear()
    called.clear()
    if kernel in GATED:
        with pytest.warns(UserWarning, match=r"Triton 3\.4\.0"):
            y = m(x)
        assert torch.equal(y, m(x))  # said once
        with backend("torch"):
            assert torch.equal(y, m(x))
        assert not called
        with torch.no_grad():
            m(x)
    else:
        m(x)
    assert called == [kernel]


@pytest.mark.parametrize(
    ("triton", "devices", "name", "right"),
    [
        ("3.3.1", [HOPPER], "NVIDIA H100", True),
        ("3.4.0", [HOPPER], "NVIDIA H100", False),
        ("3.5.1+git1234", [HOPPER], "NVIDIA GH200", False),
        ("3.7.0", [HOPPER], "NVIDIA H200", False),
        ("3.7.1", [HOPPER], "NVIDIA H200", True),
        ("3.7.1+gitabc", [HOPPER], "NVIDIA H200", True),
        ("3.10.0", [HOPPER], "NVIDIA H200", True),
        ("3.5.1", [AMPERE], "NVIDIA A100", True),
        ("3.5.1", [BLACKWELL], "NVIDIA B200", True),
        ("3.5.1", [AMPERE, HOPPER], "NVIDIA", False),
        ("3.5.1", [], "NVIDIA", True),
    ],
)
def test_which_triton_and_device_are_wrong(
    triton: str,
    devices: list[tuple[int, int]],
    name: str,
    right: bool,
    installed: pytest.MonkeyPatch,
) -> None:
    has(installed, triton, *devices, name=name)
    with backend("fla"):
        reason = kernels.wrong_gradients()
    assert (reason is None) == right


def test_amd_devices_are_no_hopper(installed: pytest.MonkeyPatch) -> None:
    has(installed, "3.5.1", HOPPER, name="AMD Instinct MI300X")
    installed.setattr(torch.version, "hip", "6.3")
    assert kernels.wrong_gradients() is None


def test_nothing_is_said_of_kernels_that_would_not_run_anyway(
    installed: pytest.MonkeyPatch,
) -> None:
    """Float32 layers, while PyTorch may not round products: a warning would be an error here."""
    has(installed, "3.5.1", HOPPER)
    made("gdn")(inputs())
    assert not called


def test_under_vmap() -> None:
    m = made("gla", torch.bfloat16)
    x = inputs(torch.bfloat16, 5)
    with torch.no_grad():
        vmap(m)(x[None])
    assert not called
    with torch.no_grad():
        m(x)
    assert called == ["gla"]


def test_second_derivatives_are_refused() -> None:
    m = made("gla", torch.bfloat16)
    x = inputs(torch.bfloat16, 5).requires_grad_()
    torch.autograd.grad(m(x).sum(), x)
    with pytest.raises(BackendError, match="second derivatives"):
        torch.autograd.grad(m(x).sum(), x, create_graph=True)


def test_backend_is_set_and_set_back() -> None:
    assert backend.current == "auto"
    with backend("torch"):
        with backend("fla"):
            assert backend.current == "fla"
        assert backend.current == "torch"
    assert backend.current == "auto"
    with pytest.raises(ValueError, match="x"), backend("torch"):
        raise ValueError("x")
    assert backend.current == "auto"
    backend("torch")
    assert backend.current == "torch"
    backend("auto")
    with pytest.raises(UnknownNameError, match="'cuda'"):
        backend("cuda")
    assert backend.current == "auto"
