"""Where a number that is not finite first comes from: the call of torch that makes it of finite
ones, going forward or back, and its line.
"""

from __future__ import annotations

import traceback
from collections.abc import Callable, Iterator
from typing import Any

from torch import Tensor
from torch.overrides import TorchFunctionMode, resolve_name

from separatrix.mixers.plugins.probe import place_of


def cause(run: Callable[[], object]) -> str:
    """ ", first in the gradient of torch.sqrt (mine.py:35)" of a run that goes forward and back;
    nothing where no call of torch is to blame, as in a backward pass of the author's own.
    """
    calls = _Calls()
    with calls:
        run()
    for name, place, inputs, output in calls.made:
        if not _finite(output) and all(map(_finite, inputs)):
            return f", first in {name}{place}"
    # going back, from the last call on
    for name, place, inputs, output in reversed(calls.made):
        came = calls.gradients.get(id(output))
        left = [calls.gradients[id(x)] for x in inputs if id(x) in calls.gradients]
        if came is not None and _finite(came) and not all(map(_finite, left)):
            return f", first in the gradient of {name}{place}"
    return ""


class _Calls(TorchFunctionMode):
    """Remembers every call that makes a tensor, and the gradients that come back to it."""

    def __init__(self) -> None:
        super().__init__()
        self.made: list[tuple[str, str, list[Tensor], Tensor]] = []
        self.gradients: dict[int, Tensor] = {}

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        result = func(*args, **(kwargs or {}))
        name = resolve_name(func) or getattr(func, "__name__", "")
        inputs = [x for x in _tensors((args, kwargs)) if x.is_floating_point()]
        for output in _tensors(result):
            if output.is_floating_point() and "grad" not in name:
                where = place_of(traceback.extract_stack()[:-1])
                self.made.append((name, where, inputs, output))
                for x in (output, *inputs):
                    if x.requires_grad:
                        x.register_hook(lambda gradient, x=x: self._keep(x, gradient))
        return result

    def _keep(self, x: Tensor, gradient: Tensor) -> None:
        self.gradients[id(x)] = gradient


def _tensors(value: Any) -> Iterator[Tensor]:
    if isinstance(value, Tensor):
        yield value
    elif isinstance(value, dict):
        yield from _tensors(list(value.values()))
    elif isinstance(value, list | tuple):
        for part in value:
            yield from _tensors(part)


def _finite(x: Tensor) -> bool:
    return bool(x.detach().isfinite().all())
