"""The law on batches: rows of a batch do not see each other."""

from __future__ import annotations

import copy

import torch

from separatrix.laws.tools import close, demand, inputs, seeded, stream
from separatrix.mixers import Mixer

BATCH = 5
TOKENS = 130
STEPS = 20
"""Tokens of `forward` and `last`, and of `step`; that step equals forward in batches is another
law.
"""


@torch.no_grad()
def rows_are_alone(mixer: Mixer) -> None:
    """A row alone equals the row in a batch of 5, in both forms; in train mode, too, changing one
    row moves no other.
    """
    x = inputs(mixer, BATCH, TOKENS, seed=11)
    whole = mixer(x)
    last = mixer.last(x)
    steps, _ = stream(mixer, x[:, :STEPS])
    for row in range(BATCH):
        one = x[row : row + 1]
        what = f"row {row + 1} alone and in a batch of {BATCH}: outputs of"
        close(mixer(one), whole[row : row + 1], f"{what} forward")
        close(mixer.last(one), last[row : row + 1], f"{what} last")
        # the rest follows from the outputs of step and forward in a batch
        if row in (0, BATCH - 1):
            close(stream(mixer, one[:, :STEPS])[0], steps[row : row + 1], f"{what} step")
    _rows_in_training(mixer)


def _rows_in_training(mixer: Mixer) -> None:
    """With equal random numbers even a mixer with dropout gives one row whatever the others
    hold; a norm over the batch does not.
    """
    mixer = copy.deepcopy(mixer).train()
    x = inputs(mixer, BATCH, TOKENS, seed=12)
    changed = x.clone()
    changed[1] = inputs(mixer, 1, TOKENS, seed=13)[0]
    with seeded():
        y = mixer(x)
    with seeded():
        z = mixer(changed)
    others = [row for row in range(BATCH) if row != 1]
    demand(
        torch.equal(y[others], z[others]),
        "in train mode a change of one row moves outputs of forward in other rows",
    )
