"""CUDA graphs: the kernels of a step, recorded once and then started together.

A step of small models is hundreds of small kernels, and starting them from Python takes longer than
they run. A recorded step reads and writes the same memory every time: its inputs are copied there.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable

import torch
from torch import Tensor

_BEFORE = 3
"""Steps of one shape that run as usual before one is recorded: libraries set themselves up then."""
Function = Callable[..., tuple[Tensor, ...]]


class Captured:
    """A function of tensors (None where there is none) that runs as CUDA graphs, one for each shape
    of its inputs, once it has run a few times.

    The function may change tensors in place, those of its own that it keeps from call to call, and
    must not wait for a number. What cannot be recorded runs as usual.
    """

    def __init__(self, function: Function) -> None:
        self._function = function
        self._runs: dict[tuple[object, ...], int] = {}
        self._graphs: dict[tuple[object, ...], _Recorded] = {}
        self._records = True

    def __call__(self, *inputs: Tensor | None) -> tuple[Tensor, ...]:
        """The function's outputs. Those of a recorded step are overwritten by the next one."""
        if not self._records:
            return self._function(*inputs)
        shape = tuple(None if part is None else part.shape for part in inputs)
        if shape in self._graphs:
            return self._graphs[shape](*inputs)
        self._runs[shape] = self._runs.get(shape, 0) + 1
        if self._runs[shape] <= _BEFORE:
            return self._function(*inputs)
        try:
            self._graphs[shape] = _Recorded(self._function, inputs)
        except torch.cuda.OutOfMemoryError:
            raise
        except RuntimeError as error:
            self._records = False
            warnings.warn(
                f"a step cannot be recorded as a CUDA graph and runs slower: {error}", stacklevel=2
            )
            return self._function(*inputs)
        return self._graphs[shape](*inputs)


class _Recorded:
    """The kernels of one call, with the memory of its inputs and outputs."""

    def __init__(self, function: Function, inputs: tuple[Tensor | None, ...]) -> None:
        self._inputs = tuple(None if part is None else part.clone() for part in inputs)
        self._graph = torch.cuda.CUDAGraph()
        # recording runs nothing: what is changed in place is as it was
        with torch.cuda.graph(self._graph):
            self._outputs = function(*self._inputs)

    def __call__(self, *inputs: Tensor | None) -> tuple[Tensor, ...]:
        for own, part in zip(self._inputs, inputs, strict=True):
            if own is not None and part is not None:
                own.copy_(part)
        self._graph.replay()
        return self._outputs
