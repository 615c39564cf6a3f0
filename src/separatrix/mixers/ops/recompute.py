"""Functions whose intermediate results are not kept for the backward pass but computed again, under
torch.func transforms too.

torch.utils.checkpoint does the same outside of such transforms only. Here models stacked by vmap
become one larger batch.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import Tensor

Pure = Callable[..., Tensor]
"""Tensors whose first axis is the batch -> a tensor whose first axis is the batch, each row a
function of the same rows of the inputs.
"""


def recomputed(function: Pure, *tensors: Tensor) -> Tensor:
    """function(*tensors); its backward pass calls it again. Derivatives of derivatives are not
    to be had.
    """
    return _Forward.apply(function, *tensors)


class _Forward(torch.autograd.Function):
    @staticmethod
    def forward(function: Pure, *tensors: Tensor) -> Tensor:
        return function(*tensors)

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Any, ...], output: Tensor) -> None:
        ctx.function = inputs[0]
        ctx.save_for_backward(*inputs[1:])

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> tuple[Tensor | None, ...]:
        tensors = ctx.saved_tensors
        wanted = tuple(need for need in ctx.needs_input_grad[1:])
        # a Function again, so that vmap over the backward pass finds a rule for it
        found = iter(_Backward.apply(ctx.function, wanted, grads[0], *tensors))
        return None, *(next(found) if need else None for need in wanted)

    @staticmethod
    def vmap(info: Any, in_dims: tuple[Any, ...], *inputs: Any) -> tuple[Tensor, int]:
        function, *tensors = inputs
        y = recomputed(function, *_folded(info.batch_size, in_dims[1:], tensors))
        return y.unflatten(0, (info.batch_size, -1)), 0


class _Backward(torch.autograd.Function):
    @staticmethod
    def forward(
        function: Pure, wanted: tuple[bool, ...], grad: Tensor, *tensors: Tensor
    ) -> tuple[Tensor, ...]:
        with torch.enable_grad():
            inputs = [
                x.detach().requires_grad_(need) for x, need in zip(tensors, wanted, strict=True)
            ]
            y = function(*inputs)
            return torch.autograd.grad(
                y,
                [x for x, need in zip(inputs, wanted, strict=True) if need],
                grad,
                materialize_grads=True,
            )

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Any, ...], output: tuple[Tensor, ...]) -> None:
        pass

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> Any:
        raise NotImplementedError("sparse attention has first derivatives only")

    @staticmethod
    def vmap(info: Any, in_dims: tuple[Any, ...], *inputs: Any) -> tuple[Any, Any]:
        function, wanted, *tensors = inputs
        found = _Backward.apply(function, wanted, *_folded(info.batch_size, in_dims[2:], tensors))
        return tuple(x.unflatten(0, (info.batch_size, -1)) for x in found), (0,) * len(found)


def _folded(size: int, in_dims: Sequence[int | None], tensors: Sequence[Tensor]) -> list[Tensor]:
    """The axis that vmap hides, made a part of the batch."""
    return [
        (x.expand(size, *x.shape) if axis is None else x.movedim(axis, 0)).flatten(0, 1)
        for axis, x in zip(in_dims, tensors, strict=True)
    ]
