"""Theorem III where windows that forget stand before the reading layer (theory.md, section 12)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from separatrix.core.evidence.records import Verdict
from separatrix.core.numbers.logs import LogSign
from separatrix.stacks.architecture import Architecture
from separatrix.stacks.architecture.forgetting import Lags
from separatrix.tasks import SeqComp
from separatrix.theory.base import Sees
from separatrix.theory.fails.iii_one_reading_layer import (
    OneReadingSearch,
    Parameters,
    Sizes,
    TheoremIII,
)
from separatrix.theory.fails.r_windows_forget import FORGETS, LAYERWISE, STATES, granted
from separatrix.theory.fails.reading_layers import Found


@dataclass(frozen=True)
class Staggered(Sizes):
    """Those of Theorem III, sigma_0 without windows and convolutions, and their lag in tokens."""

    lag: int = 0


class TheoremRDepth(TheoremIII):
    key = "R-depth"
    title = "windows forget before one reading layer: Theorem III of states alone"
    statement = (
        "Theorem III with sigma_0 = S_0, the bits of the recurrent states before the reading"
        " layer, where G_0 is the lag of all that stands there, a short convolution of the reading"
        " layer included: if 2 G_0 + t <= m and (a), and (b) with r (t + G_0) + 1 in place of"
        " rt + 1. With windows and convolutions alone, and no bounded layer behind: 2-SeqComp"
        " fails if m >= 2 G_0 + 1 and m log2 (n_1 m) > h."
    )
    premises = (*TheoremIII.premises, f"before it, {FORGETS}", LAYERWISE, STATES)
    source = "theory.md, sections 5 and 12, Theorems III and R [here]"
    proof_sketch = (
        "In the proof of Theorem III let the first and the last G_0 entries of z_1 be fixed, and t"
        " entries between them vary. By Theorem R, cut behind z_2, what enters the reading layer"
        " from the first of the t entries on knows S_0 bits of z_2; cut behind the t entries, what"
        " enters at z_0 and w knows S_0 bits of their contents. The G_0 tokens between read the"
        " prefix once for each content, which is the new term in (b)."
    )
    # the lag depends on which layers stand before the reading one
    sees = Sees.STACK

    def sizes(self, architecture: Architecture, n: int) -> Staggered | None:
        (reader,) = architecture.reading
        lags = Lags.of(architecture, before=reader)
        below = lags and lags.everywhere
        own = [part for part in architecture.layers[reader] if part.reading]
        if below is None or any(part.fed_bits(n) and "conv" not in part.sizes() for part in own):
            return None
        lag = below.reach + max(0, *(part.sizes().get("conv", 0) - 1 for part in own))
        s = super().sizes(architecture, n)
        # without windows and convolutions Theorem III says the same
        return Staggered(s.h, below.bits, s.sigma_1, s.open_block, lag) if s and lag else None

    def search(self, sizes: Sizes, size: tuple[int, ...] | None = None) -> OneReadingSearch:
        return OneReadingSearch(sizes, size, beside=_lag(sizes))

    def signs(self, parameters: Parameters, sizes: Sizes) -> tuple[LogSign, ...]:
        if parameters.t + 2 * _lag(sizes) > parameters.m:
            return (LogSign(-1, "integers", "no room for entries that stay fixed"),)
        return super().signs(parameters, sizes)

    def _state(
        self,
        architecture: Architecture,
        task: SeqComp,
        here: Found[Sizes, Parameters] | None,
        least: Found[Sizes, Parameters] | None,
    ) -> Verdict | None:
        found = super()._state(architecture, task, here, least)
        if found is None:
            return None
        said = dict.fromkeys((*granted(architecture), *found.assumptions))
        return replace(found, assumptions=tuple(said))

    def said_of(self, sizes: Mapping[str, int]) -> str:
        bits = {name: value for name, value in sizes.items() if name != "lag"}
        return f"{super().said_of(bits)}, lag {sizes['lag']:,} tokens"


def _lag(sizes: Sizes) -> int:
    return sizes.lag if isinstance(sizes, Staggered) else 0
