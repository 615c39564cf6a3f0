"""The third form: on CUDA the kernels of flash-linear-attention (extra `cuda`) in place of our
chunked forms, behind the same parameters.

`chosen` says whether one runs here. Not used: `chunk_delta_rule` (refuses float32; the gated rule
with log decays of 0 is the same), `chunk_gated_delta_product` (refuses float32; its backward pass
is the gated rule's on all updates, as ours is here), `chunk_linear_attn` (simple GLA with
no decay).
On a CPU our own forms run always.
"""

from __future__ import annotations

import importlib
import importlib.metadata
import warnings
from collections.abc import Callable
from functools import cache, partial
from typing import ClassVar

import torch
from torch import Tensor

from separatrix.core.errors import BackendError, UnknownNameError
from separatrix.mixers.kernels.fla import KERNELS, Kernel

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
    dtype = format_of(dtype)
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
    precision = getattr(
        products, "fp32_precision", None
    )  # PyTorch 2.9 on; reading the older name fails once the newer one was set
    return bool(products.allow_tf32) if precision is None else precision == "tf32"


def format_of(dtype: torch.dtype) -> torch.dtype:
    """The format a layer of float32 computes in: that of autocast, where it is on."""
    if dtype == torch.float32 and torch.is_autocast_enabled("cuda"):
        return torch.get_autocast_dtype("cuda")
    return dtype


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
