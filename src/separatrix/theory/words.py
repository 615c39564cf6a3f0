"""How verdicts are told on a capability card."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from separatrix.stacks.architecture import Architecture


class Words(NamedTuple):
    """A verdict in short, and the reason for it in a sentence or two of plain English.

    A theorem writes facts in braces: "{h}" is a number of the verdict or a size of the task; "{n}"
    the n from which it fails, "{fewer}" one less; "{kept}" what a bounded cache is made of;
    "{layers}" its layers by kind; "{statement}" the verdict's own sentence.
    """

    text: str
    why: str
    short: str = ""
    """What is missing where nothing decides, in a few words for a table."""
    general: bool = False
    """Whether `short` says no more than that nothing is known."""


WordsByTask = Mapping[str, Words]


def kept(architecture: Architecture) -> str:
    """What carries the past in a stack whose cache is too small: "states and windows"."""
    groups = {part.group for layer, _ in architecture.counted() for part in layer}
    names = {
        "recurrent": "states",
        "windowed": "windows",
        "convolution": "convolution buffers",
        "full": "keys and values",
        "indexed": "keys and values",
    }
    found = dict.fromkeys(name for group, name in names.items() if group in groups)
    return " and ".join(found) or "nothing"


def layers_of(architecture: Architecture) -> str:
    """The layers that mix tokens, by kind: "18 RG-LRU layers and 1 Mamba layer"."""
    kinds: dict[str, int] = {}
    for layer, times in architecture.counted():
        titles = dict.fromkeys(part.title for part in layer if part.mixes_tokens)
        if titles:
            kind = " beside ".join(titles)
            kinds[kind] = kinds.get(kind, 0) + times
    counted = [counted_as(times, f"{kind} layer") for kind, times in kinds.items()]
    return " and ".join(counted) or "no layer"


def counted_as(count: int, thing: str) -> str:
    """A number of things: "1 step", "2 steps"."""
    return f"{count:,} {thing}{'' if count == 1 else 's'}"
