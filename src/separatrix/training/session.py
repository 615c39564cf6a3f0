"""A training that may stop at any moment: it saves what it has done, and goes on from there."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path

from separatrix.core.errors import EvidenceError, OutputError
from separatrix.core.evidence.atomic import write_atomic
from separatrix.core.evidence.code import code_version
from separatrix.training.checkpoint import unpacked
from separatrix.training.engine import Trainer
from separatrix.training.packs import Pack
from separatrix.training.sweeps.stopping import Stopping

SAVE_EVERY = 10.0
"""Seconds of training that whoever kills the process loses at most."""
_LOOK_EVERY = 0.2
"""Seconds of training between two looks at the clock, roughly."""
Told = Callable[[Trainer], None]


def saved(
    pack: Pack, file: Path, *, device: str = "cpu", compile: bool = False, told: Told | None = None
) -> Trainer:
    """Trains a pack to its end, from the checkpoint in `file` on where there is one. The file stays
    until whoever has written what came out removes it.

    Ctrl-C, or being told to end, waits for the end of a step and saves, then raises
    KeyboardInterrupt, or SystemExit; a second time does not wait. Raises OutputError where the file
    cannot be written, EvidenceError where it holds no checkpoint of this pack and this version of
    the code, and what training raises.
    """
    trainer = _begun(pack, file, device, compile)
    if trainer.active:
        # before hours of training, not after
        write_atomic(file, trainer.checkpoint())
    last = time.monotonic()
    steps = 1
    with Stopping() as stopping:
        while trainer.active:
            before = time.monotonic()
            trainer.advance(steps)
            took = time.monotonic() - before
            steps = max(1, min(100, round(steps * _LOOK_EVERY / max(took, 1e-3))))
            if told is not None:
                told(trainer)
            if stopping.asked or before + took - last >= SAVE_EVERY:
                write_atomic(file, trainer.checkpoint())
                last = time.monotonic()
            stopping.heed()
    # tested already: what comes next is not done twice either
    write_atomic(file, trainer.checkpoint())
    return trainer


def _begun(pack: Pack, file: Path, device: str, compile: bool) -> Trainer:
    try:
        data = file.read_bytes()
    except FileNotFoundError:
        return Trainer(pack, device=device, compile=compile)
    except OSError as error:
        raise OutputError(f"{file}: cannot be read: {error.strerror or error}") from None
    try:
        _, state = unpacked(data)
    except EvidenceError as error:
        raise EvidenceError(f"{file}: {error}; --fresh begins anew") from None
    if state.get("pack") != pack.key:
        raise EvidenceError(
            f"{file}: the checkpoint of another training, which was interrupted; --fresh forgets"
            " it, another --out leaves it alone"
        )
    if state.get("version") != code_version():
        raise EvidenceError(
            f"{file}: the checkpoint of another version of this program"
            f" ({str(state.get('version'))[:40]}, this is {code_version()}); --fresh begins anew"
        )
    return Trainer.resumed(pack, data, device=device, compile=compile)
