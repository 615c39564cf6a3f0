"""Heads that read the token at an offset, whatever their own place, or the start token where there
is none: by addresses of places, or by rotations alone (theory.md, section 12, Theorem S).

Places have A bits, +-1, and by addresses every place asks for the bits of the place so far back, or
of 0. By rotations keys of letters are 1 in the first number of every pair, and every token asks for
the offset d with

    s w_r (cos(-d theta_r), sin(-d theta_r))   in pair r, w_r = ratio^r, W = sum_r w_r

which scores s W at that offset and less elsewhere, by a share `gap` of that at least. The start
token scores s W (1 - gap / 2), between the two: in a dimension that no rotation turns, by a key as
long as those of letters, so that a norm scales both alike; or in the slowest pair.

So the token asked for leads by 2 s^2 = 32 where it has an address, and by ln(n + 1) + 17 at least
where it has none.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor

from separatrix.constructions.parts.placement import SCALE, softmax_head
from separatrix.constructions.parts.readers import write_norms
from separatrix.constructions.parts.spaces import Spaces, pick, put, signs
from separatrix.mixers.base.softmax import SoftmaxMixer
from separatrix.models.model import Model
from separatrix.proofs.rotations import single_frequencies
from separatrix.theory.written import Slot, bits_for


class LookBack(NamedTuple):
    """A head of a layer, and the offset that it reads."""

    slot: Slot
    head: int
    offset: int

    @property
    def asked(self) -> str:
        """The space in which places ask, where they have addresses."""
        return f"asked_{self.slot.place[0]}_{self.head}"

    def asks(self, tokens: int) -> dict[str, int]:
        """That space, if there is one."""
        return {} if self.slot.lead else {self.asked: bits_for(tokens)}

    def write(self, model: Model, space: Spaces, read: slice, target: slice) -> None:
        """What the token at the offset holds in `read` is added to `target`."""
        mixer = softmax_head(model, self.slot.place)
        group = self.head // (mixer.heads // mixer.kv)
        query, key = (
            matrix.weight[one * mixer.head_dim : (one + 1) * mixer.head_dim]
            for matrix, one in ((mixer.q, self.head), (mixer.k, group))
        )
        at = np.arange(len(model.position.weight))
        if self.slot.lead:
            _turn_back(mixer, query, key, self.slot, min(self.offset, int(at[-1])), space)
        else:
            asked = space[self.asked]
            bits = signs(np.maximum(at - self.offset, 0), bits_for(len(at)))
            model.position.weight[:, asked] = bits
            pick(query, [(asked, SCALE)])
            pick(key, [(space["address"], SCALE)])
        pick(mixer.v.weight[group * mixer.dv : (group + 1) * mixer.dv], [(read, 1.0)])
        # a gate of 0 halves
        factor = 1.0 if mixer.gate is None else 2.0
        put(mixer.o.weight[:, self.head * mixer.dv :], target, factor=factor)


def places_of(slots: Sequence[Slot], tokens: int) -> dict[str, int]:
    """The spaces that tell such heads of places, where the start token and the prompt are so many
    tokens; those in which they ask stand beside (`LookBack.asks`).
    """
    turned = {"letter": 1, "start": 1} if any(slot.lead for slot in slots) else {}
    return turned | ({} if all(slot.lead for slot in slots) else {"address": bits_for(tokens)})


def write_places(model: Model, space: Spaces) -> None:
    """What tokens and places hold there, but for what places ask for."""
    held = space.widths()
    if "letter" in held:
        model.embed.weight[:-1, space["letter"]] = 1.0
        model.embed.weight[-1, space["start"]] = 1.0
    if "address" in held:
        model.position.weight[:, space["address"]] = signs(
            len(model.position.weight), held["address"]
        )


def _turn_back(
    mixer: SoftmaxMixer, query: Tensor, key: Tensor, slot: Slot, offset: int, space: Spaces
) -> None:
    """A head (head_dim, width) that asks for an offset by rotations, or else for the start token;
    as clearly as `slot` says.
    """
    assert slot.lead is not None
    assert mixer.rotation is not None
    letter, start = space["letter"].start, space["start"].start
    pairs = mixer.rotation.dims // 2
    weights = slot.lead.ratio ** np.arange(pairs)
    total = float(weights.sum())
    scale = 2.0 ** math.ceil(math.log2(slot.score / total))
    turn = -offset * single_frequencies(mixer.rotation)
    asked = np.concatenate([weights * np.cos(turn), weights * np.sin(turn)])
    query[: 2 * pairs, [letter, start]] = torch.from_numpy(scale * asked[:, None]).float()
    key[:pairs, letter] = 1.0
    blank = (1 - slot.lead.gap / 2) * total
    apart = 0.0
    if len(key) > slot.start:
        apart = blank / math.sqrt(pairs)
        query[slot.start, [letter, start]] = scale * apart
        key[slot.start, start] = math.sqrt(pairs)
    elif mixer.k_norm is not None:
        # at offset 1 the start token is found as any other is
        key[:pairs, start] = 1.0
    else:
        key[pairs - 1, start] = blank / float(weights[-1])
    # |q| |k| over the largest score
    long = math.sqrt(pairs * (float(weights @ weights) + apart**2)) / total
    write_norms(mixer, mixer.head_dim, math.sqrt(slot.score * long))
