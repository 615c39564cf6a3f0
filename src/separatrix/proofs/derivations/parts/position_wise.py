"""Proves that the head reads the answer off what was fetched last."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from separatrix.core.errors import CheckFailed
from separatrix.models.model import Model
from separatrix.proofs.derivations.parts.live_parts import array
from separatrix.proofs.derivations.parts.stream import Stream
from separatrix.proofs.machine import linear

CHUNK = 1 << 20
"""Numbers of one intermediate table at a time."""


@dataclass(frozen=True)
class Readout:
    """By how much the right logit leads at least, as computed, and the answer where it does."""

    margin: Fraction
    answer: int


def prove_readout(model: Model, stream: Stream) -> Readout:
    """The lead of the right logit over every other one, whatever the last token; row v of the field
    is what the last hop leaves for the value v, which is the answer. Raises CheckFailed when some
    answer's logit is not the largest.
    """
    weight = array(model.head.weight)
    bias = array(model.head.bias)
    if len(stream.field.mid) != len(weight):
        raise CheckFailed(
            f"{len(stream.field.mid)} values are fetched last, but there are {len(weight)} answers"
        )
    held = stream.field.used
    base = stream.last.hull()
    smallest = Readout(Fraction(0), -1)
    rows = max(1, CHUNK // len(weight))
    for start in range(0, len(weight), rows):
        some = stream.field.rows(slice(start, start + rows))
        x = base.like(np.where(held, some.mid, base.mid), np.where(held, some.rad, base.rad))
        logits = linear(x, weight, bias, what="the head")
        row = np.arange(len(some.mid))
        # the largest that another logit can be, less the smallest that the right one can
        others = logits.high
        answer = row + start
        right = logits.low[row, answer]
        others[row, answer] = -np.inf
        lead = np.nextafter(right - others.max(1, initial=-np.inf), -np.inf)
        worst = int(lead.argmin())
        if lead[worst] <= 0:
            raise CheckFailed(
                f"answer {start + worst} has not the largest logit when it was fetched"
            )
        # one answer alone has no rival
        least = Fraction(float(min(lead[worst], 2.0**126)))
        if smallest.answer < 0 or least < smallest.margin:
            smallest = Readout(least, start + worst)
    return smallest
