"""A call in another process that has this one's memory as it is now, and shares nothing it does
later.
"""

from __future__ import annotations

import copy
import os
import pickle
import select
import signal
import time
from collections.abc import Callable, Sequence
from typing import TypeVar

import torch
from torch import Tensor

from separatrix.mixers import Mixer, State
from separatrix.mixers.laws.tools import LawBroken, moved, stream_and_keep

Result = TypeVar("Result")
PATIENCE = 300.0
"""Seconds after which the other process is given up."""
POSSIBLE = hasattr(os, "fork")
"""Elsewhere (Windows) the call is made in this process, which sees fewer stores."""


def elsewhere(call: Callable[[], Result]) -> Result:
    """What `call` returns in a copy of this process. Raises LawBroken with the last line of an
    error of its own. Results are tensors, numbers and dicts of them.
    """
    if not POSSIBLE:
        return call()
    end, start = os.pipe()
    # the copy begins with the threads of nobody but the caller
    process = os.fork()
    if process == 0:
        _answer(call, start)
    os.close(start)
    try:
        data = _read(end)
    finally:
        os.close(end)
        os.kill(process, signal.SIGKILL)
        os.waitpid(process, 0)
    if not data:
        raise LawBroken("step did not end in a second process; does it need threads of its own?")
    what, value = pickle.loads(data)
    if what == "error":
        raise LawBroken(f"step raises in a second process: {value}")
    return value


def streamed_elsewhere(
    mixer: Mixer, x: Tensor, cuts: Sequence[int]
) -> tuple[Tensor, dict[int, State]]:
    """`stream_and_keep` of a copy in another process; of the states their numbers alone."""

    def call() -> tuple[Tensor, dict[int, State]]:
        outputs, states = stream_and_keep(copy.deepcopy(mixer), x, cuts)
        return outputs, {cut: moved(state) for cut, state in states.items()}

    return elsewhere(call)


def _answer(call: Callable[[], object], pipe: int) -> None:
    """Writes the result and ends the process, whatever happens: nothing of the caller may run
    twice.
    """
    try:
        torch.set_num_threads(1)
        try:
            message = ("result", call())
        except Exception as error:
            message = ("error", f"{type(error).__name__}: {error}")
        # lists of numbers instead of the shared memory that torch would hand over
        with os.fdopen(pipe, "wb") as out:
            out.write(pickle.dumps(message))
    finally:
        os._exit(0)


def _read(pipe: int) -> bytes:
    """Everything until the other end closes; nothing after PATIENCE."""
    found = []
    until = time.monotonic() + PATIENCE
    while select.select([pipe], [], [], max(0.0, until - time.monotonic()))[0]:
        part = os.read(pipe, 1 << 20)
        if not part:
            return b"".join(found)
        found.append(part)
    return b""
