"""A slice of a pack's training, as a function: what a worker runs, wherever it is."""

from __future__ import annotations

import time

import torch

from separatrix.core.errors import SizeError
from separatrix.mixers.plugins.load import import_module
from separatrix.training.checkpoint import halved
from separatrix.training.engine import Trainer
from separatrix.training.packs import Slice, Update

_STEPS = 5
"""Steps between looks at the clock."""


class _Last:
    """What this process trained last, and the checkpoint at which it stopped."""

    trainer: Trainer | None = None
    checkpoint: bytes | None = None
    device: str = ""
    compile: bool = False


def work(slice: Slice) -> Update:
    """Trains a pack for some seconds, from a checkpoint on. The same slice gives the same numbers,
    but for how far it gets in its time.

    Raises what training raises, and SizeError where a single model is too large for the device.
    Where several are, the pack is halved: the two halves go on where this slice began.
    """
    for module in slice.imports:
        import_module(module)
    started = time.perf_counter()
    try:
        return _trained(slice, started)
    except torch.cuda.OutOfMemoryError:
        _Last.trainer = None
        _Last.checkpoint = None
        if torch.cuda.is_available():
            torch.cuda.empty_cache()
        return _halved(slice, started)
    except BaseException:
        # what was interrupted in the middle of a step is no step of a checkpoint
        _Last.trainer = None
        raise


def _trained(slice: Slice, started: float) -> Update:
    trainer = _going_on(slice)
    before = set(trainer.outcomes())
    while trainer.active:
        trainer.advance(_STEPS)
        if time.perf_counter() - started >= slice.seconds:
            break
    ended = trainer.outcomes()
    new = [key for key in trainer.pack.keys if key in ended and key not in before]
    checkpoint = trainer.checkpoint() if trainer.active else None
    _Last.trainer = trainer if trainer.active else None
    _Last.checkpoint = checkpoint
    _Last.device = slice.device
    _Last.compile = slice.compile
    return Update(
        metrics=tuple(trainer.metrics()),
        finished=tuple((key, ended[key]) for key in new),
        checkpoint=checkpoint,
        step=trainer.step,
        seconds=time.perf_counter() - started,
    )


def _going_on(slice: Slice) -> Trainer:
    """The trainer of a slice: the last one, if the slice begins where that one stopped."""
    last = _Last.trainer
    kept = slice.checkpoint is not None and slice.checkpoint == _Last.checkpoint
    same = (slice.device, slice.compile) == (_Last.device, _Last.compile)
    if last is not None and kept and same and last.pack == slice.pack:
        return last
    # two packs need not fit into a device's memory
    _Last.trainer = None
    del last
    options = {"device": slice.device, "compile": slice.compile}
    if slice.checkpoint is None:
        return Trainer(slice.pack, **options)
    return Trainer.resumed(slice.pack, slice.checkpoint, **options)


def _halved(slice: Slice, started: float) -> Update:
    step, halves, checkpoints = halved(slice.pack, slice.checkpoint)
    if halves is None:
        run = slice.pack.runs[0]
        raise SizeError(
            f"{slice.device} has not enough memory to train one model of {run.architecture} on"
            f" {run.task}; take a smaller batch than {run.batch}, or precision bf16"
        ) from None
    return Update(
        metrics=(),
        finished=(),
        checkpoint=None,
        step=step,
        seconds=time.perf_counter() - started,
        halves=halves,
        half_checkpoints=checkpoints,
    )
