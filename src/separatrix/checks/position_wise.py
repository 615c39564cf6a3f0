"""Proves the position-wise maps of a chain: the MLP that cleans what was fetched, and the head
that reads the answer off.
"""

from __future__ import annotations

from fractions import Fraction

import numpy as np

from separatrix.checks.exact import (
    Array,
    columns,
    exact_lead,
    exact_product,
    exact_sum,
    largest,
    largest_row_sum,
    most_terms,
)
from separatrix.checks.live_parts import Live, Stack, array
from separatrix.errors import CheckFailed
from separatrix.proofs.float32 import Readout, Threshold

CHUNK = 1 << 22
"""Numbers of one intermediate table at a time."""


def prove_threshold(
    stack: Stack, part: Live, fetched: Array, source: str
) -> tuple[Threshold, Array]:
    """The MLP's sizes and its exact outputs (values, width). Raises CheckFailed unless it reads
    `source` only and is constant near every value.
    """
    if not part.mlp:
        raise CheckFailed(f"layer {part.layer + 1}: no MLP cleans what was fetched")
    stack.writers.allow(columns(part.mlp["up.weight"]), f"layer {part.layer + 1}, MLP", source)
    up, up_bias, down, down_bias = (
        part.mlp[name] for name in ("up.weight", "up.bias", "down.weight", "down.bias")
    )
    if most_terms(up) > 1:
        raise CheckFailed(
            f"layer {part.layer + 1}: a hidden unit reads several coordinates; a construction's"
            " read one each"
        )
    hidden = exact_sum(
        exact_product(fetched, up.T), np.broadcast_to(up_bias, (len(fetched), len(up_bias)))
    )
    radius = None
    # each hidden unit reads one coordinate, so the MLP is a sum of functions of one coordinate
    # each: constant near a value if every one of them is
    for coordinate in np.flatnonzero(columns(up)):
        units = np.flatnonzero(up[:, coordinate])
        for state in np.unique(hidden[:, units], axis=0):
            # units that are on add their slopes; off ones add nothing until they switch
            slope = exact_product((up[units, coordinate] * (state > 0))[None], down[:, units].T)
            if slope.any():
                raise CheckFailed(
                    f"layer {part.layer + 1}: the MLP is not constant near a fetched value"
                )
            # the nearest switch: unit h = w y + b changes sign when y moves by |h / w|
            near = min(
                Fraction(abs(float(h))) / Fraction(abs(float(w)))
                for h, w in zip(state, up[units, coordinate], strict=True)
            )
            radius = near if radius is None else min(radius, near)
    if not radius:
        raise CheckFailed(f"layer {part.layer + 1}: the MLP does not clean what was fetched")
    clean = exact_sum(
        exact_product(np.maximum(hidden, 0.0), down.T),
        np.broadcast_to(down_bias, (len(fetched), len(down_bias))),
    )
    sizes = Threshold(
        radius=radius,
        up_terms=most_terms(up),
        up_sum=largest_row_sum(up),
        up_bias=largest(up_bias),
        down_terms=most_terms(down),
        down_sum=largest_row_sum(down),
        down_bias=largest(down_bias),
    )
    return sizes, clean


def prove_readout(stack: Stack, field: Array, source: str) -> Readout:
    """The head's sizes and exact lead. Raises CheckFailed when some answer's logit is not the
    largest for what was fetched.
    """
    weight = array(stack.model.head.weight)
    bias = array(stack.model.head.bias)
    stack.writers.allow(columns(weight), "the head", source)
    smallest = np.inf
    rows = max(1, CHUNK // len(weight))
    for start in range(0, len(field), rows):
        some = field[start : start + rows]
        logits = exact_sum(
            exact_product(some, weight.T), np.broadcast_to(bias, (len(some), len(bias)))
        )
        row = np.arange(len(some))
        # row v of the field is what the last threshold writes for the value v, the answer
        answer = np.arange(start, start + len(some))
        right = logits[row, answer]
        logits[row, answer] = -np.inf
        lead = exact_lead(right, logits.max(1))
        if lead.min() <= 0:
            raise CheckFailed(
                f"answer {int(answer[lead.argmin()])} has not the largest logit when it was fetched"
            )
        smallest = min(smallest, float(lead.min()))
    return Readout(
        gap=Fraction(smallest),
        terms=most_terms(weight),
        row_sum=largest_row_sum(weight),
        bias=largest(bias),
        value=largest(field[:, columns(weight)]),
    )
