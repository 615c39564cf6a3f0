"""Pieces: what is hashed, under a name; and the tables that name them, written as text."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from numpy.typing import NDArray
    from torch import Tensor

Piece = tuple[str, str | bytes]
"""What is hashed: a name, and a text or the bytes of numbers."""


def words(text: str) -> tuple[str, ...]:
    """The words of a table that is written as text."""
    return tuple(text.split())


def lines(text: str) -> tuple[str, ...]:
    """The lines of a table that is written as text, empty ones left out."""
    return tuple(line.strip() for line in text.splitlines() if line.strip())


def expanded(text: str) -> tuple[str, ...]:
    """The words of a table, where "eva:n=8,shift=zipf|few" stands for one word with each shift."""
    found = []
    for word in text.split():
        head, equals, values = word.rpartition("=")
        found += [f"{head}{equals}{value}" for value in values.split("|")]
    return tuple(found)


def canonical(value: object) -> str:
    """JSON with sorted keys, indented so that `diff` can show what changed."""
    return json.dumps(value, sort_keys=True, indent=1, allow_nan=False) + "\n"


def packed(arrays: Mapping[str, Tensor | NDArray[Any]]) -> bytes:
    """Arrays by name as bytes: a line of name, format and shape before the numbers of each."""
    import numpy as np
    import torch

    parts = []
    for name, array in sorted(arrays.items()):
        parts.append(f"{name} {array.dtype} {tuple(array.shape)}\n".encode())
        if isinstance(array, torch.Tensor):
            # as bytes, since numpy has no bfloat16
            array = array.detach().reshape(-1).contiguous().view(torch.uint8).numpy()
        parts.append(np.ascontiguousarray(array).tobytes())
    return b"".join(parts)


def kind_of(text: str) -> str:
    """The name before the sizes of a task text."""
    return text.partition(":")[0]


def demand_all(what: str, known: Iterable[str], covered: Iterable[str]) -> None:
    """Raises RuntimeError unless a table of this file covers all that is known, and no more."""
    if odd := set(known) ^ set(covered):
        named = ", ".join(sorted(odd))
        raise RuntimeError(f"{what} known to the package or to this file only: {named}")
