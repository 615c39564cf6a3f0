"""Small stacks that experiments about hybrids share: a Gated DeltaNet as the recurrent layer, and
full attention of the same heads.
"""

from __future__ import annotations

from itertools import groupby
from typing import Literal

RECURRENT = "gdn"
"""Gated DeltaNet leads the published comparisons of hybrids."""
FULL = "full(heads=2,head_dim=16)"
STATE = f"{RECURRENT}(heads=2,head_dim=16,conv=4)"
"""With the convolution of four tokens that released models have before it."""
Where = Literal["none", "before", "between", "after"]
Placed = Literal["first", "middle", "last", "spread"]


def spec(layers: list[str]) -> str:
    """The stack of these layers, from the first to the last."""
    runs = [(layer, len(list(group))) for layer, group in groupby(layers)]
    return " + ".join(layer if count == 1 else f"{layer}*{count}" for layer, count in runs)


def beside(full: int, recurrent: int, where: Where) -> str:
    """Full layers with recurrent ones before all of them, behind the first, or after all."""
    layers = [FULL] * full
    at = {"before": 0, "between": 1}.get(where, full)
    return spec([*layers[:at], *[STATE] * recurrent, *layers[at:]])
