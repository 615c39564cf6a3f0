"""The law on batches: rows of a batch do not see each other."""

from __future__ import annotations

import copy

import torch

from separatrix.mixers import Mixer
from separatrix.mixers.laws.tools import close, demand, inputs, seeded, stream

BATCH = 5
OTHERS = (2, 3, 4, 9)
"""Further batches, in which every row must come out as in the one of 5."""
TOKENS = 130
STEPS = 20
"""Tokens of `forward` and `last`, and of `step`; that step equals forward in batches is another
law.
"""


@torch.no_grad()
def rows_are_alone(mixer: Mixer) -> None:
    """A row alone equals the row in batches of 2 to 5 and 9, in both forms; in train mode, too,
    changing one row moves no other.
    """
    many = inputs(mixer, max(OTHERS), TOKENS, seed=11)
    x = many[:BATCH]
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
    for batch in OTHERS:
        same = min(batch, BATCH)
        what = f"the first rows in a batch of {batch} and of {BATCH}: outputs of"
        close(mixer(many[:batch])[:same], whole[:same], f"{what} forward")
        found = stream(mixer, many[:batch, :STEPS])[0]
        close(found[:same], steps[:same], f"{what} step")
    for batch in (2, BATCH):
        _rows_in_training(mixer, batch)


def _rows_in_training(mixer: Mixer, batch: int) -> None:
    """With equal random numbers even a mixer with dropout gives one row whatever the others
    hold; a norm over the batch does not.
    """
    mixer = copy.deepcopy(mixer).train()
    x = inputs(mixer, batch, TOKENS, seed=12)
    changed = x.clone()
    changed[1] = inputs(mixer, 1, TOKENS, seed=13)[0]
    with seeded():
        y = mixer(x)
    with seeded():
        z = mixer(changed)
    others = [row for row in range(batch) if row != 1]
    demand(
        torch.equal(y[others], z[others]),
        "in train mode a change of one row moves outputs of forward in other rows",
    )
