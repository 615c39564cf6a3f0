"""A slice of a pack's training, as a function: what a worker runs, wherever it is."""

from __future__ import annotations

import time

import torch

from separatrix.core.errors import SizeError
from separatrix.mixers.plugins.probe import import_module
from separatrix.training.engine import Trainer
from separatrix.training.packs import Slice, Update

_STEPS = 5
"""Steps between looks at the clock."""


def work(slice: Slice) -> Update:
    """Trains a pack for some seconds, from a checkpoint on. The same slice gives the same numbers,
    but for how far it gets in its time.

    Raises what training raises, and SizeError where the pack is too large for the device.
    """
    for module in slice.imports:
        import_module(module)
    started = time.perf_counter()
    device = slice.device
    try:
        if slice.checkpoint is None:
            trainer = Trainer(slice.pack, device=device)
        else:
            trainer = Trainer.resumed(slice.pack, slice.checkpoint, device=device)
        before = trainer.outcomes()
        while trainer.active:
            trainer.advance(_STEPS)
            if time.perf_counter() - started >= slice.seconds:
                break
    except (RuntimeError, MemoryError) as error:
        if not _too_large(error):
            raise
        run, many = slice.pack.runs[0], len(slice.pack.runs)
        raise SizeError(
            f"{device} has not enough memory to train {many} model{'s' * (many > 1)} of"
            f" {run.architecture} on {run.task}; take a smaller batch than {run.batch}, or"
            " precision bf16"
        ) from None
    ended = trainer.outcomes()
    return Update(
        metrics=tuple(trainer.metrics()),
        finished=tuple(
            (key, ended[key]) for key in slice.pack.keys if key in ended.keys() - before
        ),
        checkpoint=trainer.checkpoint() if trainer.active else None,
        step=trainer.step,
        seconds=time.perf_counter() - started,
    )


def _too_large(error: Exception) -> bool:
    """Whether memory was asked for that a device does not have; a CPU's allocator has no error of
    its own.
    """
    return isinstance(error, torch.cuda.OutOfMemoryError | MemoryError) or any(
        said in str(error) for said in ("can't allocate memory", "std::bad_alloc")
    )
