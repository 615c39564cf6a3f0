"""Training that is only pretended, for tests of those who schedule it: every step turns a digest
over, so that a result tells whether each step was made once and in order.

What a worker calls is a function of a module; what it shall suffer is said by its name, and by the
seeds of the runs.
"""

from __future__ import annotations

import json
import os
import signal
import time
from hashlib import sha256

from separatrix.core.errors import SizeError
from separatrix.core.evidence.outcome import Outcome
from separatrix.models.stored.run import Run
from separatrix.training.packs import Metric, Pack, Slice, Update
from support.outcomes import singly

BAD = 13
"""The seed of a run that raises, or kills its worker."""
STEP = 0.002
"""Seconds of a pretended step."""


def runs(many: int, *, steps: int = 5, first: int = 0, width: int = 32) -> list[Run]:
    """Runs of equal shape with seeds from `first` on."""
    return [
        Run(architecture="full", task="eva:n=8", seed=seed, steps=steps, width=width).canonical()
        for seed in range(first, first + many)
    ]


def digest(seed: int, steps: int) -> int:
    """What a run has after so many steps."""
    state = str(seed)
    for _ in range(steps):
        state = sha256(state.encode()).hexdigest()
    return int(state[:3], 16) if steps else 0


def pretend(piece: Slice, pause: float = STEP) -> Update:
    """Some steps of a pack, until its seconds are over; a member ends early by an odd seed."""
    begin = time.monotonic()
    found = json.loads(piece.checkpoint) if piece.checkpoint is not None else None
    states = {run.key: str(run.seed) for run in piece.pack.runs}
    if found:
        # those of a pack that was halved may be more
        states = {key: found["states"][key] for key in states if key in found["states"]}
    step = found["step"] if found else 0
    finished = []
    metrics = []
    while states and (not metrics or time.monotonic() - begin < piece.seconds):
        time.sleep(pause)
        step += 1
        for run in piece.pack.runs:
            if run.key not in states:
                continue
            states[run.key] = sha256(states[run.key].encode()).hexdigest()
            metrics.append(Metric(run.key, step, 1.0 / step, 0.5, run.learning_rate))
            if step == last(run):
                correct = int(states.pop(run.key)[:3], 16) % run.tested
                finished.append((run.key, outcome(run, correct)))
    checkpoint = json.dumps({"states": states, "step": step}).encode() if states else None
    return Update(
        metrics=tuple(metrics),
        finished=tuple(finished),
        checkpoint=checkpoint,
        step=step,
        seconds=time.monotonic() - begin,
    )


def last(run: Run) -> int:
    """The step at which a run ends: odd seeds are done two steps early."""
    return max(1, run.steps - 2 * (run.seed % 2))


def outcome(run: Run, correct: int) -> Outcome:
    return singly(
        seed=run.seed, correct=correct, tested=run.tested, steps_done=last(run), parameters=1
    )


def expected(run: Run) -> Outcome:
    """What a run gives however often it was interrupted."""
    return outcome(run, digest(run.seed, last(run)) % run.tested)


def at_once(piece: Slice) -> Update:
    """A run that ends in no time."""
    finished = tuple((run.key, outcome(run, run.seed % run.tested)) for run in piece.pack.runs)
    return Update(metrics=(), finished=finished, checkpoint=None, step=1, seconds=0.0)


def raising(piece: Slice, pause: float = STEP) -> Update:
    """A bad run takes its pack with it, at its third step."""
    update = pretend(piece, pause)
    if has_bad(piece.pack) and update.step >= 3:
        raise ValueError("the bad run\nin two lines")
    return update


def killing(piece: Slice) -> Update:
    """A bad run kills the worker."""
    if has_bad(piece.pack):
        os.kill(os.getpid(), signal.SIGKILL)
    return pretend(piece)


def narrow(piece: Slice, pause: float = STEP) -> Update:
    """Memory for two members only."""
    if len(piece.pack.runs) > 2:
        raise SizeError("not enough memory")
    return pretend(piece, pause)


def has_bad(pack: Pack) -> bool:
    return any(run.seed == BAD for run in pack.runs)


def bouncing(piece: Slice) -> Update:
    """As many bytes back as came, at once."""
    return Update(metrics=(), finished=(), checkpoint=piece.checkpoint, step=1, seconds=0.0)
