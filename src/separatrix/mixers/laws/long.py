"""The law on long sequences: what holds for 200 tokens holds beyond the chunks, blocks and windows
that fit in them.
"""

from __future__ import annotations

import copy

import torch

from separatrix.mixers import Mixer
from separatrix.mixers.laws.elsewhere import streamed_elsewhere
from separatrix.mixers.laws.tools import (
    all_close,
    close,
    gradients,
    inputs,
    keeps_past,
    stream,
)

LENGTHS = (600, 1100)
CUTS = (127, 129, 300, 511, 512, 600, 1023)
AFTER = 24
"""Tokens streamed after a cut; after the last cut but two, a whole block of 256."""
CHANGED = (128, 256, 257, 512, 600, 768, 1024)
"""Everything from such a token on is changed at once."""


def holds_when_long(mixer: Mixer) -> None:
    """At 600 and 1,100 tokens `step`, `forward` and `last` agree, also for a row alone, and at 600
    their gradients; a mixer continues from states of another process on the way; and no future
    token moves an earlier output.
    """
    _values(mixer)
    x = inputs(mixer, 1, min(LENGTHS), seed=53).requires_grad_()
    all_close(
        gradients(mixer, x, [stream(mixer, x)[0]]),
        gradients(mixer, x, [mixer(x)]),
        f"T={min(LENGTHS)}, step and forward",
    )


@torch.no_grad()
def _values(mixer: Mixer) -> None:
    x = inputs(mixer, 2, max(LENGTHS), seed=51)
    unused = copy.deepcopy(mixer)
    # in another process, so that no store of this one can help what is continued below
    steps, states = streamed_elsewhere(mixer, x, CUTS)
    for tokens in LENGTHS:
        y = mixer(x[:, :tokens])
        what = f"T={tokens}: outputs of"
        close(steps[:, :tokens], y, f"{what} step and forward")
        close(mixer.last(x[:, :tokens]), y[:, -1], f"{what} last and forward")
        close(mixer(x[1:, :tokens]), y[1:], f"{what} forward for a row alone and in a batch of 2")
    for tokens in {*LENGTHS, 1 << (max(LENGTHS).bit_length() - 1)}:
        other = inputs(mixer, 1, tokens, seed=52)
        keeps_past(mixer, x[:1, :tokens], other, CHANGED, f"T={tokens}: ")
    for cut, state in states.items():
        end = min(cut + (256 if cut == 300 else AFTER), x.shape[1])
        rest, _ = stream(copy.deepcopy(unused), x[:, cut:end], state, cut)
        close(
            rest,
            steps[:, cut:end],
            f"cut after {cut} tokens: outputs of step in two passes and in one",
        )
