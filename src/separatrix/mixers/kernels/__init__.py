"""The third form: on CUDA the kernels of flash-linear-attention (extra `cuda`) in place of our
chunked forms, behind the same parameters.

`chosen` says whether one runs here. Not used: `chunk_delta_rule` (refuses float32; the gated rule
with log decays of 0 is the same), `chunk_gated_delta_product` (refuses float32; its backward pass
is the gated rule's on all updates, as ours is here), `chunk_linear_attn` (simple GLA with
no decay).
"""

from __future__ import annotations

import importlib
from collections.abc import Callable
from functools import partial

import torch
from torch import Tensor

from separatrix.core.errors import BackendError
from separatrix.mixers.kernels.backends import backend, format_of, keeps_precision, why_not
from separatrix.mixers.kernels.fla import KERNELS, Kernel

__all__ = ["KERNELS", "backend", "chosen"]


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
