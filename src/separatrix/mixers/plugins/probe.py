"""States and errors of a user's module: whether a state is one, and where an error comes from."""

from __future__ import annotations

import traceback
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import jaxtyping
import torch
from torch import Tensor, nn

from separatrix.core.errors import SizeError

_LIBRARIES = (
    str(Path(__file__).resolve().parents[3]),
    *(str(Path(library.__file__ or "").resolve().parent) for library in (torch, jaxtyping)),
)


def check_state(name: str, state: Any, batch: int, method: str) -> None:
    """Raises SizeError unless `state` is a dict of floating-point tensors whose first axis is
    the batch.
    """
    if not isinstance(state, dict) or not all(isinstance(key, str) for key in state):
        raise SizeError(
            f"{name}: {method} returned {kind(state)} as its state; a state is a dict of tensors by"
            " name"
        )
    for key, tensor in state.items():
        where = f"{name}: state['{key}'] of {method}"
        if not isinstance(tensor, Tensor):
            raise SizeError(f"{where} is {kind(tensor)}; it must be a tensor")
        if not tensor.is_floating_point():
            raise SizeError(
                f"{where} is {tensor.dtype}; a state holds real floating-point numbers (step is"
                " given the number of tokens, t)"
            )
        if tensor.dim() == 0 or len(tensor) != batch:
            raise SizeError(
                f"{where} has shape {tuple(tensor.shape)}; its first axis must be the batch, here"
                f" {batch}"
            )


def lacks(module: type[nn.Module] | nn.Module) -> list[str]:
    """The methods a mixer needs that a module (or its class) has not."""
    missing = [name for name in ("step", "init_state") if not callable(getattr(module, name, None))]
    forward = getattr(module if isinstance(module, type) else type(module), "forward", None)
    # every nn.Module has a forward, one that only raises
    return ["forward", *missing] if forward is None or forward is nn.Module.forward else missing


def stepped(module: Any, name: str, x: Tensor, state: Any, t: int) -> tuple[Any, Any]:
    """What `step` returns. Raises SizeError for anything but a pair."""
    result = module.step(x, state, t)
    if not isinstance(result, tuple) or len(result) != 2:
        raise SizeError(f"{name}: step returned {kind(result)}; it must return (y, state)")
    return result


@contextmanager
def apart(seed: int) -> Iterator[None]:
    """Random numbers of the CPU from `seed`, and afterwards as if none had been drawn."""
    with torch.random.fork_rng(devices=[]):
        torch.default_generator.manual_seed(seed)
        yield


def describe_error(error: BaseException) -> str:
    """The error's type and last line, and the last place of the user's own code that it came
    through.
    """
    lines = [line for line in str(error).splitlines() if line.strip()]
    said = lines[-1].strip()[:200] if lines else "no message"
    return f"{type(error).__name__}: {said}{place_of(traceback.extract_tb(error.__traceback__))}"


def place_of(frames: list[traceback.FrameSummary]) -> str:
    """ " (mine.py:35)", the last of the places that is in nobody's library."""
    own = [
        frame
        for frame in frames
        if not frame.filename.startswith(_LIBRARIES) and not frame.filename.startswith("<")
    ]
    return f" ({Path(own[-1].filename).name}:{own[-1].lineno})" if own else ""


def kind(value: Any) -> str:
    return (
        f"a tensor of shape {tuple(value.shape)}"
        if isinstance(value, Tensor)
        else f"{type(value).__name__} {str(value)[:40]!r}"
    )
