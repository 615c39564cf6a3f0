"""A short convolution that hands on what stood some tokens back, number by number.

    u_h = x[source]     b_h = c_h = x[one] = 1     one tap of 1, `back` tokens back

so that y_h = x_{i - back}[source], and 0 where no such token stands: nothing is rounded.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from separatrix.constructions.parts.placement import (
    cannot_hold,
    in_float32,
    last_full,
    mixer_at,
    places,
)
from separatrix.constructions.parts.spaces import pick, put
from separatrix.mixers.shortconv import ShortConvolutionMixer
from separatrix.models.model import Model
from separatrix.stacks.architecture import Architecture, Mechanism, Place
from separatrix.stacks.mechanisms import ShortConvolution
from separatrix.tasks import Task


@dataclass(frozen=True)
class Moved:
    """A space of the token so many places back, and where it lands."""

    source: slice
    target: slice
    back: int


def tap_and_reader(
    task: Task,
    architecture: Architecture,
    *,
    width: int,
    back: int,
    head_dim: int,
    value_dim: int,
) -> tuple[Place, Place]:
    """The last short convolution that hands on so many numbers from so many tokens back and that
    stands before a full layer of such heads, and the last such layer. Raises SizeError, saying what
    is needed, where there are none.
    """

    def holds(part: Mechanism) -> bool:
        return (
            isinstance(part, ShortConvolution)
            and part.conv > back
            and part.width >= width
            and in_float32(part)
        )

    (reader,) = last_full(task, architecture, 1, head_dim=head_dim, value_dim=value_dim)
    found = [place for place in places(architecture, holds) if place[0] < reader[0]]
    if not found:
        needs = f"before its full layer a layer shortconv(conv={back + 1}, width={width}), or wider"
        raise cannot_hold(task, architecture, needs)
    return found[-1], reader


def write_taps(model: Model, place: Place, one: slice, moved: Sequence[Moved]) -> None:
    """`one` holds 1 at every token; channels are taken in turn."""
    mixer = mixer_at(model, place)
    assert isinstance(mixer, ShortConvolutionMixer)
    pick(mixer.v.weight, [(move.source, 1.0) for move in moved])
    channel = 0
    for move in moved:
        count = move.source.stop - move.source.start
        channels = slice(channel, channel + count)
        mixer.b.weight[channels, one] = 1.0
        mixer.c.weight[channels, one] = 1.0
        # the newest token's weight stands last
        mixer.conv.weight[channels, -1 - move.back] = 1.0
        put(mixer.o.weight[:, channels], move.target)
        channel += count
