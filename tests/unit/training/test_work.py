"""A slice of training: what it tells, where it goes on, and what a small device makes of it."""

from __future__ import annotations

import pickle
import subprocess
import sys
from dataclasses import replace

import pytest
import torch

from separatrix.core.errors import SizeError
from separatrix.models.stored.run import Run
from separatrix.training.engine import Trainer
from separatrix.training.packs import Pack, Slice, Update
from separatrix.training.work import work

RUN = Run(
    architecture="full*1 @ heads=1, head_dim=8",
    task="eva:n=4,V=4",
    seed=0,
    steps=50,
    batch=8,
    width=8,
    hidden=0,
    tested=32,
    stop_at=2.0,
)
PACK = Pack(tuple(replace(RUN, seed=s) for s in range(3)))


def all_of(pack: Pack) -> list[Update]:
    updates: list[Update] = []
    checkpoint = None
    while True:
        # no time at all: a few steps are done in any case
        update = work(
            pickle.loads(pickle.dumps(Slice(pack=pack, checkpoint=checkpoint, seconds=0.0)))
        )
        updates.append(update)
        checkpoint = update.checkpoint
        if checkpoint is None:
            return updates


def test_slices_give_what_one_training_gives() -> None:
    updates = all_of(PACK)
    assert [update.step for update in updates] == list(range(5, 51, 5))
    whole = Trainer(PACK)
    whole.advance(50)
    steps = {(metric.key, metric.step) for update in updates for metric in update.metrics}
    assert steps == {(key, step) for key in PACK.keys for step in (20, 40, 50)}
    told = {key: outcome for update in updates for key, outcome in update.finished}
    for key, outcome in whole.outcomes().items():
        assert replace(told[key], seconds=0.0) == replace(outcome, seconds=0.0)


def test_what_is_too_large_for_the_device_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    """So that the scheduler halves it."""

    def none(self: Trainer, steps: int) -> None:
        raise torch.cuda.OutOfMemoryError("CUDA out of memory")

    monkeypatch.setattr(Trainer, "advance", none)
    for pack in (PACK, Pack((RUN,))):
        with pytest.raises(SizeError, match=f"memory to train {len(pack.runs)} model"):
            work(Slice(pack=pack, checkpoint=None, seconds=0.0))


MEMORY = """
import resource, sys
from dataclasses import replace
import torch
from separatrix.core.errors import SizeError
from separatrix.training.packs import Pack, Slice
from separatrix.models.stored.run import Run
from separatrix.training.work import work

torch.set_num_threads(1)
run = Run(
    architecture="full*1 @ heads=1, head_dim=64", task="copying:n=120,V=8", seed=0, steps=2,
    batch=32, width=64, hidden=256, tested=1, stop_at=2.0,
)
small = replace(run, task="copying:n=4,V=8")
# what a first step loads is there before memory is counted
work(Slice(pack=Pack((small, replace(small, seed=1))), checkpoint=None, seconds=60.0))
now = int(open("/proc/self/statm").read().split()[0]) * resource.getpagesize()
resource.setrlimit(resource.RLIMIT_AS, (now + int(sys.argv[1]) * 2**20,) * 2)
left = [Pack(tuple(replace(run, seed=seed) for seed in range(8)))]
while left:
    pack = left.pop(0)
    try:
        ended = work(Slice(pack=pack, checkpoint=None, seconds=60.0)).finished
    except SizeError:
        ended = ()
        left += pack.halves()
    print(len(pack.runs), len(ended))
"""


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="limits of memory are Linux's")
def test_a_pack_that_is_halved_fits_into_a_smaller_memory_in_the_end() -> None:
    """Memory that the system refuses, and not a stand-in's word for it. How much eight take differs
    by machine: ever less is given, until they are too many.
    """
    for room in (640, 480, 360, 270, 200, 150):
        command = [sys.executable, "-c", MEMORY, str(room)]
        ran = subprocess.run(command, capture_output=True, text=True, check=True)
        trained = [tuple(map(int, line.split())) for line in ran.stdout.splitlines()]
        if trained[0] != (8, 8):
            break
    assert trained[0] == (8, 0)
    assert sum(finished for _, finished in trained) == 8
    assert all(finished in (0, members) for members, finished in trained)
