"""The third form: on CUDA the kernels of flash-linear-attention (extra `cuda`) in place of our
chunked forms, behind the same parameters.

`chosen` says whether one runs here. Not used: `chunk_delta_rule` (refuses float32; the gated rule
with log decays of 0 is the same), `chunk_gated_delta_product` (refuses float32; its backward pass
is the gated rule's on all updates, as ours is here), `chunk_linear_attn` (simple GLA with
no decay).
On a CPU our own forms run always.

Calls (fla-core 0.6) are in our conventions: queries, keys, values (b h t d), log decays of single
tokens, no scale; their layout is (b t h d). The first argument of every call is the operator, the
second the format it computes in.

Head dimensions are filled up with zeros to multiples of 16: blocks of products are that large, and
odd ones break in 16 bits (fla-org's `chunk_bwd_dv`). Zeros change nothing: keys of 0 write 0,
decays of 0 keep it, and what values of 0 give is cut off. The kernels keep all exponents at or
below 0, as our forms do, so gates of any strength are safe; RWKV-7's bounded ones are told to it.
"""

from __future__ import annotations

import importlib
import importlib.metadata
import warnings
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cache, partial
from math import exp
from typing import Any, ClassVar

import torch
import torch.nn.functional as F
from jaxtyping import Float
from torch import Tensor

from separatrix.core.errors import BackendError, UnknownNameError
from separatrix.mixers.base.tensors import Channels, Keys, Values

Operator = Callable[..., Any]
LARGEST_KEY = 256
MULTIPLE = 16
LOGLINEAR_MULTIPLE = 64
LOGLINEAR_LEVELS = 7
"""Key dimensions that `chunk_log_linear_attn` takes, and the levels inside its chunks of 64
tokens, which it reads unasked.
"""
HALF = {torch.bfloat16: torch.bfloat16}
FULL = HALF | {torch.float16: torch.float32, torch.float32: torch.float32}
"""Format of a layer -> format of the products. float16 goes in as float32: kernels keep sums in
the format of their inputs, which could overflow.
"""
SINGLE = dict.fromkeys((torch.bfloat16, torch.float16, torch.float32), torch.float32)


def log_linear(
    operator: Operator,
    dtype: torch.dtype,
    q: Keys,
    k: Keys,
    v: Values,
    weights: Float[Tensor, "b h t l"],
) -> Values:
    """sum_{j<=i} weights[i, level(i, j)] <q_i, k_j> v_j."""
    q, k = (_theirs(x, dtype, LOGLINEAR_MULTIPLE) for x in (q, k))
    power = max(MULTIPLE, 1 << (v.shape[-1] - 1).bit_length())
    padded = F.pad(weights, (0, max(0, LOGLINEAR_LEVELS - weights.shape[-1])))
    scales = padded.to(dtype).transpose(1, 2)  # multiplied with no widening
    no_decay = torch.zeros(scales.shape[:3], dtype=torch.float32, device=scales.device)
    with warnings.catch_warnings():
        # said on every call; fla 0.6 itself asks for 3.3
        warnings.filterwarnings("ignore", message="Triton>3.2.0")
        return _ours(
            operator(q, k, _theirs(v, dtype, power), g=no_decay, level_scales=scales, scale=1.0), v
        )


def hgrn(operator: Operator, dtype: torch.dtype, log_a: Channels, added: Channels) -> Channels:
    """h_i = a_i h_{i-1} + added_i."""
    return operator(added.to(dtype), log_a.to(dtype))[0]


@dataclass(frozen=True)
class Kernel:
    """An operator of fla, and what it takes: formats, whether it multiplies float32 in TF32,
    largest sizes. `gated`: its gradients go through `chunk_bwd_dqkwg` with a gate.

    It is called with the arguments `names` in the order of our tensors, or as `call` says.
    """

    module: str
    operator: str
    computes: Mapping[torch.dtype, torch.dtype]
    names: tuple[str, ...] = ()
    fixed: Mapping[str, Any] = field(default_factory=dict)
    call: Callable[..., Tensor] | None = None
    tf32: bool = True
    keys: int | None = LARGEST_KEY
    values: int | None = None
    tokens: int | None = None
    gated: bool = False

    def run(self, operator: Operator, dtype: torch.dtype, *tensors: Tensor | None) -> Tensor:
        """The outputs of the operator in a layer of this format."""
        dtype = self.computes[dtype]
        if self.call is not None:
            return self.call(operator, dtype, *tensors)
        named = {
            name: x if x is None else _argument(name, x, dtype)
            for name, x in zip(self.names, tensors, strict=True)
        }
        v = tensors[self.names.index("v")]
        assert v is not None
        return _ours(operator(**named, **self.fixed, scale=1.0), v)


GATED = ("q", "k", "v", "g")
DELTA = (*GATED, "beta")
KERNELS = {
    # R_i = a_i R_{i-1} + k_i v_i^T, y_i = R_i^T q_i; without decay where log a is None
    # key dimensions are read block by block: any number of them
    "linear": Kernel("fla.ops.simple_gla", "chunk_simple_gla", FULL, GATED, keys=None),
    "simple_gla": Kernel(
        "fla.ops.simple_gla", "chunk_simple_gla", FULL, GATED, keys=None, gated=True
    ),
    # the same with a decay for each key dimension
    "gla": Kernel("fla.ops.gla", "chunk_gla", FULL, GATED, keys=None),
    # R_i = (I - b_i k_i k_i^T) diag(a_i) R_{i-1} + b_i k_i v_i^T, one decay or one for each key
    # dimension
    "gated_delta_rule": Kernel(
        "fla.ops.gated_delta_rule", "chunk_gated_delta_rule", FULL, DELTA, gated=True
    ),
    "kda": Kernel("fla.ops.kda", "chunk_kda", FULL, DELTA),
    # R_i = (diag(a_i) + s_i r_i^T) R_{i-1} + k_i v_i^T, y_i = R_i^T q_i, for log a of at least
    # -e^{-1/2}, in our order q, k, v, log a, r, s; as fla's layer calls it, which warns that
    # float32 fails on some platforms
    "rwkv7": Kernel(
        "fla.ops.rwkv7",
        "chunk_rwkv7",
        HALF,
        ("r", "k", "v", "w", "a", "b"),
        {"safe_gate": True, "lower_bound": -exp(-0.5)},  # the chunk is fla's to choose
    ),
    # sizes of fla's own layer: the state of a head stays in one block
    "log_linear": Kernel(
        "fla.ops.log_linear_attn",
        "chunk_log_linear_attn",
        HALF,
        call=log_linear,
        keys=128,
        values=64,
        tokens=1 << 17,
    ),
    # softmax attention with scores <q_i, k_j> + f_{j+1} + ... + f_i, f as g
    "forgetting_attn": Kernel("fla.ops.forgetting_attn", "parallel_forgetting_attn", FULL, GATED),
    "hgrn": Kernel("fla.ops.hgrn", "chunk_hgrn", SINGLE, call=hgrn, tf32=False, keys=None),
}


def _argument(name: str, x: Tensor, dtype: torch.dtype) -> Tensor:
    """Our tensor as the operator takes it: log decays in float32, numbers per token without the
    last axis.
    """
    if name in ("g", "beta") and x.shape[-1] == 1:
        return x[..., 0].float().transpose(1, 2)
    return _theirs(x, torch.float32 if name in ("g", "w") else dtype)


def _theirs(x: Keys, dtype: torch.dtype, multiple: int = MULTIPLE) -> Tensor:
    """(b t h d) in the format given, d filled up to a multiple."""
    missing = -x.shape[-1] % multiple
    return (F.pad(x, (0, missing)) if missing else x).to(dtype).transpose(1, 2)


def _ours(outputs: Any, v: Values) -> Values:
    """An operator's output, or the first of several, in the layout, size and format of our
    values.
    """
    first = outputs if isinstance(outputs, Tensor) else outputs[0]
    return first.transpose(1, 2)[..., : v.shape[-1]].to(v.dtype)


BACKENDS = ("auto", "torch", "fla")
VERSION = "0.6."
"""Releases of fla-core whose conventions (layout, scale, gates in log space, no running sums)
the calls were written for.
"""
BLOCKS = 65_535
"""Blocks of a CUDA grid along its second and third axis; the kernels put batch times heads
there.
"""


class backend:
    """Sets which form mixers run: `backend("torch")` from here on, `with backend("torch"):` inside
    the block.

    auto (at the start): the kernels where they can run and lose no precision that PyTorch is told
    to keep; torch: never; fla: wherever a mechanism has one, else BackendError with the reason.
    Holds for the process, for forward passes; a backward pass follows its forward. Raises
    UnknownNameError for another name.
    """

    current: ClassVar[str] = "auto"

    def __init__(self, name: str) -> None:
        if name not in BACKENDS:
            raise UnknownNameError.of("backend", name, BACKENDS)
        self._before = backend.current
        backend.current = name

    def __enter__(self) -> None: ...

    def __exit__(self, *_: object) -> None:
        backend.current = self._before


def chosen(name: str, k: Tensor, v: Tensor, dtype: torch.dtype) -> Callable[..., Tensor] | None:
    """The kernel for keys k (b h t d) and values v (b h t e) in a layer of this format, where it
    runs; else None, for our own form.

    Raises BackendError where the kernels are demanded and this one cannot run.
    """
    # fla on a CPU goes on: to the error that says why it cannot run
    if backend.current == "torch" or not (k.is_cuda or backend.current == "fla"):
        return None
    kernel = KERNELS[name]
    # a layer of float32 computes in the format of autocast, where it is on
    if dtype == torch.float32 and torch.is_autocast_enabled("cuda"):
        dtype = torch.get_autocast_dtype("cuda")
    if backend.current == "auto" and not keeps_precision(kernel, dtype):
        return None
    reason = why_not(kernel, k, v, dtype)
    if reason is None:
        return partial(_run, kernel, dtype)
    if backend.current == "fla":
        raise BackendError(
            f"backend('fla'): {kernel.operator} cannot run: {reason}; backend('auto') runs the"
            " torch form in such cases"
        )
    return None


def _run(kernel: Kernel, dtype: torch.dtype, *tensors: Tensor | None) -> Tensor:
    # fla is an extra: it is imported where one of its kernels runs
    operator = getattr(importlib.import_module(kernel.module), kernel.operator)
    y = kernel.run(operator, dtype, *tensors)
    if y.requires_grad:
        y.register_hook(_first_derivatives)
    return y


def _first_derivatives(gradient: Tensor) -> None:
    # the kernels' backward passes would take part in second derivatives as constants, unnoticed
    if torch.is_grad_enabled():
        raise BackendError(
            "second derivatives (create_graph=True) of flash-linear-attention's kernels do not"
            " exist; run backend('torch')"
        )


def why_not(kernel: Kernel, k: Tensor, v: Tensor, dtype: torch.dtype) -> str | None:
    """Why the kernel cannot run on keys k (b h t d) and values v (b h t e) in a layer of this
    format; None where it can.
    """
    blocks = k[..., 0, 0].numel()
    tokens = k.shape[-2]
    if not k.is_cuda:
        return f"inputs are on {k.device}, it runs on CUDA devices"
    if torch._C._are_functorch_transforms_active():
        return "a torch.func transform (vmap, grad, ...) is active, for which it has no rule"
    if dtype not in kernel.computes:
        return f"inputs are {dtype}, it takes {', '.join(str(name) for name in kernel.computes)}"
    if kernel.keys is not None and k.shape[-1] > kernel.keys:
        return f"key dimension {k.shape[-1]} is over its {kernel.keys}"
    if kernel.values is not None and v.shape[-1] > kernel.values:
        return f"value dimension {v.shape[-1]} is over its {kernel.values}"
    if kernel.tokens is not None and tokens > kernel.tokens:
        return f"{tokens} tokens are over its {kernel.tokens}"
    if blocks > BLOCKS:
        return f"batch times heads is {blocks}, over its {BLOCKS}"
    return missing() or (wrong_gradients() if kernel.gated and torch.is_grad_enabled() else None)


def keeps_precision(kernel: Kernel, dtype: torch.dtype) -> bool:
    """Whether the kernel rounds no more than PyTorch may: it multiplies float32 in TF32, with 10
    bits behind the point (as many as float16).
    """
    if not kernel.tf32 or dtype != torch.float32:
        return True
    products = torch.backends.cuda.matmul
    # PyTorch 2.9 on; reading the older name fails once the newer one was set
    precision = getattr(products, "fp32_precision", None)
    return bool(products.allow_tf32) if precision is None else precision == "tf32"


@cache
def wrong_gradients() -> str | None:
    """Why gated kernels have no gradients here; None where they have. Asked once fla is there.

    Triton from 3.4 to below 3.7.1 compiles the product behind them wrongly on Hopper, and fla 0.6
    raises in the backward pass, in the middle of a training step.
    """
    parse = importlib.import_module("packaging.version").parse  # as fla reads it
    triton = importlib.import_module("triton").__version__
    # an AMD device may have a capability of 9 too
    if torch.version.hip is not None or not parse("3.4.0") <= parse(triton) < parse("3.7.1"):
        return None
    devices = range(torch.cuda.device_count())
    # fla asks device 0 and the current one, by name too; a Hopper beside them would err unnoticed
    if not any(
        torch.cuda.get_device_capability(i)[0] == 9 or "NVIDIA H" in torch.cuda.get_device_name(i)
        for i in devices
    ):
        return None
    reason = (
        f"Triton {triton} computes the gradients of gated kernels wrongly on Hopper (fla-org issue"
        " 640): install Triton 3.7.1 or later"
    )
    if backend.current == "auto":
        warnings.warn(f"our own forms train in their place: {reason}", stacklevel=2)
    return reason


@cache
def missing() -> str | None:
    """Why fla cannot be imported; None where it can. Tried once."""
    try:
        version = importlib.metadata.version("fla-core")
    except importlib.metadata.PackageNotFoundError:
        return "flash-linear-attention is not installed: pip install 'separatrix[cuda]'"
    if not version.startswith(VERSION):
        return (
            f"fla-core {version} is installed, calls are written for {VERSION}x: pip install"
            " 'separatrix[cuda]'"
        )
    try:
        importlib.import_module("fla.ops")
    except Exception as error:  # a broken installation may raise anything
        return (
            f"importing fla-core {version} fails: {type(error).__name__}:"
            f" {' '.join(str(error).split())}"
        )
    return None
