"""Small plots of one curve, in characters that every terminal has."""

from __future__ import annotations

import math
from collections.abc import Sequence

_HEIGHT = 8
_AXIS = 9
"""Columns of the numbers on the left."""
_LEAST_WIDTH = 20


def text_plot(
    xs: Sequence[int],
    ys: Sequence[float],
    *,
    low: float,
    high: float,
    labels: tuple[str, str],
    most: int,
    line: float | None = None,
) -> list[str]:
    """The points as stars, of those that share a column their mean; `labels` stand at the top and
    at the foot, and a dotted line at `line`. Points that are no numbers are left out.
    """
    width = max(_LEAST_WIDTH, min(64, most - _AXIS - 2))
    columns: list[list[float]] = [[] for _ in range(width)]
    span = max(xs[-1] - xs[0], 1)
    for x, y in zip(xs, ys, strict=True):
        if math.isfinite(y):
            columns[(x - xs[0]) * (width - 1) // span].append(y)
    field = [[" "] * width for _ in range(_HEIGHT)]
    if line is not None:
        field[_row(line, low, high)] = ["."] * width
    for place, values in enumerate(columns):
        if values:
            field[_row(sum(values) / len(values), low, high)][place] = "*"
    names = [labels[0], *[""] * (_HEIGHT - 2), labels[1]]
    lines = [
        f"{name:>{_AXIS}} |{''.join(row)}".rstrip() for name, row in zip(names, field, strict=True)
    ]
    foot = f"{xs[0]:<{width // 2}}{xs[-1]:>{width - width // 2}}"
    return [*lines, f"{'':{_AXIS}} +{'-' * width}", f"{'step':>{_AXIS}}  {foot}"]


def _row(y: float, low: float, high: float) -> int:
    """The row of a value, the highest at the top; what lies outside is on the border."""
    share = (y - low) / (high - low) if high > low else 0.5
    return round((_HEIGHT - 1) * (1 - min(1.0, max(0.0, share))))
