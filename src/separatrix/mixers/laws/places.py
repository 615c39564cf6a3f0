"""The law on outputs at some tokens only: they are those of the parallel form."""

from __future__ import annotations

import copy

import torch
from torch import Tensor

from separatrix.core.errors import SizeError
from separatrix.mixers import Mixer
from separatrix.mixers.base.mixer import taken
from separatrix.mixers.laws.tools import (
    all_close,
    close,
    demand,
    formats_asked,
    gradients,
    inputs,
    largest,
)

LENGTHS = (1, 2, 63, 65, 130, 200)
ASKED = (1, 5, 300)
"""Tokens, and how many of them are asked for: more than there are asks some twice."""
HALF = 70
"""Tokens in half formats."""
ULPS = 64
"""Roundings of a half format, of the largest output, by which the two may differ."""


def at_is_forward(mixer: Mixer) -> None:
    """`at` equals `forward` gathered at the places, and has its gradients, for one place and for
    several, unsorted and repeated, in every format; places that are no token's are refused.
    """
    for asked in ASKED:
        x = inputs(mixer, 3, max(LENGTHS)).requires_grad_()
        wanted: list[Tensor] = []
        found: list[Tensor] = []
        for tokens in LENGTHS:
            part = x[:, :tokens]
            chosen = places(part, asked)
            wanted.append(taken(mixer(part), chosen))
            found.append(mixer.at(part, chosen))
            where = f"T={tokens}, {asked} places"
            close(found[-1], wanted[-1], f"{where}: outputs of at and forward")
        all_close(
            gradients(mixer, x, found),
            gradients(mixer, x, wanted),
            f"{asked} places, at and forward",
        )
    for name, dtype in formats_asked().items():
        _in_format(copy.deepcopy(mixer).to(dtype), name, dtype)
    _refuses(mixer)


def places(x: Tensor, asked: int) -> Tensor:
    """(batch, asked) places of tokens of x: the last, the first, then some in no order."""
    # not drawn: vmap allows no random numbers inside
    rows = torch.arange(1, len(x) + 1)[:, None]
    chosen = (29 * rows * torch.arange(asked) + 5) % x.shape[1]
    chosen[:, 0] = x.shape[1] - 1
    chosen[:, 1:2] = 0
    return chosen


@torch.no_grad()
def _in_format(mixer: Mixer, name: str, dtype: torch.dtype) -> None:
    x = inputs(mixer, 2, HALF, seed=62).to(dtype)
    chosen = places(x, 5)
    wanted = taken(mixer(x), chosen)
    found = mixer.at(x, chosen)
    # what the format cannot hold is for the law on finite outputs
    if not (wanted.isfinite().all() and found.isfinite().all()):
        return
    demand(found.dtype == dtype, f"{name}: outputs of at are {found.dtype}")
    gap = largest([(found - wanted).double()])
    scale = largest([wanted.double()])
    demand(
        gap <= ULPS * torch.finfo(dtype).eps * scale,
        f"{name}: outputs of at and forward differ by {gap:.3g}, of {scale:.3g}",
    )


@torch.no_grad()
def _refuses(mixer: Mixer) -> None:
    x = inputs(mixer, 2, 4)
    for what, wrong in {
        "a negative place": torch.tensor([[0], [-1]]),
        "a place behind the last token": torch.tensor([[0], [4]]),
        "places of another batch": torch.zeros(3, 1, dtype=torch.int64),
        "no places": torch.zeros(2, 0, dtype=torch.int64),
        "places of another format": torch.zeros(2, 1, dtype=torch.int32),
    }.items():
        try:
            mixer.at(x, wrong)
        except SizeError:
            continue
        demand(False, f"at takes {what} without an error; it must raise SizeError")
