"""Functions whose intermediate results are not kept for the backward pass but computed again, under
torch.func transforms too.

torch.utils.checkpoint does the same outside of such transforms only. Here models stacked by vmap
become one larger batch.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import torch
from torch import Tensor

Pure = Callable[..., Any]
"""Tensors whose first axis is the batch -> a tensor whose first axis is the batch, each row a
function of the same rows of the inputs.
"""


def recomputed(function: Pure, *tensors: Tensor) -> Tensor:
    """function(*tensors); its backward pass calls it again, or its `gradient(grad, *tensors)`, a
    gradient for each tensor, where it has one. Such a function runs under autograd for second
    derivatives alone; there are no third ones. It may give more tensors than the output, which
    stand behind the others when its gradient is asked for.
    """
    return _Forward.apply(function, *tensors)[0]


class _Forward(torch.autograd.Function):
    @staticmethod
    def forward(function: Pure, *tensors: Tensor) -> tuple[Tensor, ...]:
        return _outputs(function, tensors)

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Any, ...], output: tuple[Tensor, ...]) -> None:
        ctx.function = inputs[0]
        ctx.set_materialize_grads(False)
        ctx.mark_non_differentiable(*output[1:])
        ctx.save_for_backward(*inputs[1:], *output[1:])

    @staticmethod
    def backward(ctx: Any, *grads: Any) -> tuple[Tensor | None, ...]:
        wanted = tuple(need for need in ctx.needs_input_grad[1:])
        if grads[0] is None:
            return (None,) * (1 + len(wanted))
        tensors = ctx.saved_tensors
        # a Function again, so that vmap over the backward pass finds a rule for it
        found = iter(_Backward.apply(ctx.function, wanted, grads[0], *tensors))
        return None, *(next(found) if need else None for need in wanted)

    @staticmethod
    def vmap(info: Any, in_dims: tuple[Any, ...], *inputs: Any) -> tuple[Any, Any]:
        function, *tensors = inputs
        found = _Forward.apply(function, *_folded(info.batch_size, in_dims[1:], tensors))
        return tuple(x.unflatten(0, (info.batch_size, -1)) for x in found), (0,) * len(found)


class _Backward(torch.autograd.Function):
    @staticmethod
    def forward(
        function: Pure, wanted: tuple[bool, ...], grad: Tensor, *tensors: Tensor
    ) -> tuple[Tensor, ...]:
        gradient = getattr(function, "gradient", None)
        if gradient is not None:
            return tuple(_only(wanted, gradient(grad, *tensors)[: len(wanted)]))
        return _gradients(function, wanted, grad, tensors)

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Any, ...], output: tuple[Tensor, ...]) -> None:
        ctx.function, ctx.wanted, *tensors = inputs
        ctx.save_for_backward(*tensors)

    @staticmethod
    def backward(ctx: Any, *grads: Any) -> tuple[Tensor | None, ...]:
        tensors = ctx.saved_tensors
        wanted = [x.is_floating_point() for x in tensors]
        first = partial(_first_gradients, ctx.function, ctx.wanted)
        found = iter(_gradients(first, wanted, grads, tensors))
        return None, None, *(next(found) if need else None for need in wanted)

    @staticmethod
    def vmap(info: Any, in_dims: tuple[Any, ...], *inputs: Any) -> tuple[Any, Any]:
        function, wanted, *tensors = inputs
        found = _Backward.apply(function, wanted, *_folded(info.batch_size, in_dims[2:], tensors))
        return tuple(x.unflatten(0, (info.batch_size, -1)) for x in found), (0,) * len(found)


def _gradients(
    function: Callable[..., Any], wanted: Sequence[bool], grads: Any, tensors: Sequence[Tensor]
) -> tuple[Tensor, ...]:
    with torch.enable_grad():
        inputs = [x.detach().requires_grad_(need) for x, need in zip(tensors, wanted, strict=True)]
        return torch.autograd.grad(
            function(*inputs), _only(wanted, inputs), grads, materialize_grads=True
        )


def _first_gradients(
    function: Pure, wanted: Sequence[bool], grad: Tensor, *tensors: Tensor
) -> tuple[Tensor, ...]:
    """The same, to be derived once more."""
    tensors = tensors[: len(wanted)]
    y = _outputs(function, tensors)[0]
    return torch.autograd.grad(
        y, _only(wanted, tensors), grad, materialize_grads=True, create_graph=True
    )


def _outputs(function: Pure, tensors: Sequence[Tensor]) -> tuple[Tensor, ...]:
    found = function(*tensors)
    return found if isinstance(found, tuple) else (found,)


def _only(wanted: Sequence[bool], tensors: Sequence[Tensor]) -> list[Tensor]:
    return [x for x, need in zip(tensors, wanted, strict=True) if need]


def _folded(size: int, in_dims: Sequence[int | None], tensors: Sequence[Tensor]) -> list[Tensor]:
    """The axis that vmap hides, made a part of the batch."""
    return [
        (x.expand(size, *x.shape) if axis is None else x.movedim(axis, 0)).flatten(0, 1)
        for axis, x in zip(in_dims, tensors, strict=True)
    ]
