"""c-gram retrieval in one full layer behind a short convolution: c comparisons of a letter with a
letter, added up.

A score is a sum over g = 1, ..., c of <Q_g a_g, K_g b_g>, where a_g stands g - 1 tokens before the
last place and b_g stands g tokens before the place that is scored; 0 where nothing stands there. If
in each g a letter's own key leads over that of any other letter and over 0, then the place behind
the same c letters leads over all others by the smallest of these leads.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from torch import nn

from separatrix.core.errors import CheckFailed
from separatrix.models.model import Model
from separatrix.proofs.arithmetic import FP32, Arithmetic
from separatrix.proofs.derivations.lookups import answered
from separatrix.proofs.derivations.parts.compared import Compared, exactly
from separatrix.proofs.derivations.parts.derivation import Derivation, Derived, derived
from separatrix.proofs.derivations.parts.live_parts import array, live_of
from separatrix.proofs.derivations.parts.reading import Reading
from separatrix.proofs.derivations.parts.stream import Stream
from separatrix.proofs.derivations.parts.taps import Taps, exact_taps
from separatrix.proofs.machine import Array, Enclosure
from separatrix.tasks import CGram
from separatrix.tasks.base.task import Tokens


def derive(task: CGram, model: Model, arithmetic: Arithmetic = FP32) -> Derived:
    """The proof of both layers. Raises CheckFailed where the weights do not bear it out."""
    if isinstance(model.position, nn.Embedding) and model.position.weight.any():
        raise CheckFailed("positions are not part of this construction, but are not all zero")
    first, part = live_of(model, 2, placed=False)
    taps = exact_taps(model, first, task.length)
    where = part.where
    head = part.full_head()
    letters = Enclosure.point(array(model.embed.weight), arithmetic)
    if head.v[:, taps.target].any():
        raise CheckFailed(f"{where}: values read what was brought to their token")
    # a letter g - 1 tokens before the last place meets one g tokens before the place that is scored
    asking = _written(taps, head.q, letters, range(task.c), f"{where}, q")
    keys = _written(taps, head.k, letters, range(1, task.c + 1), f"{where}, k")
    compared = Compared.of(asking, keys, arithmetic, where)
    # nothing stands before the first tokens, and scores 0
    gaps = [float((q * k).sum(1).min()) for q, k in zip(asking, keys, strict=True)]
    gaps += map(compared.own, range(task.c))
    values = head.values(letters, where)
    reading = Reading.of(
        part,
        head,
        compared.least(gaps, "that of the context asked for"),
        values.hull(),
        queries=task.V,
        keys=task.length,
        key_numbers=compared.terms,
    )
    last = taps.beside(letters, letters.hull())
    stream = Stream.before(by_place=letters.hull(), by_token=letters, last=last, ends=True)
    fetches = "what followed the context, letter by letter"
    found, margin = answered(model, reading, stream, values, fetches)
    return derived(arithmetic, [taps.layer(f"{task.c} tokens before"), found], margin)


def _written(taps: Taps, weight: Array, letters: Enclosure, lags: range, what: str) -> list[Array]:
    """What a map makes of a letter that stands so many tokens back. Raises CheckFailed where a
    number of it is made of two letters, or of one elsewhere.
    """
    maps = {back: taps.lag(weight, back) for back in {*taps.lags, *lags}}
    used = {back: (rows != 0.0).any(1) for back, rows in maps.items()}
    elsewhere = any(used[back].any() for back in {*maps} - {*lags})
    if elsewhere or (np.sum([*used.values()], axis=0) > 1).any():
        raise CheckFailed(f"{what}: a number is not compared with one letter")
    return [exactly((letters.mid,), maps[back], what, letters.arithmetic)[0] for back in lags]


def asked(task: CGram, tokens: Tokens) -> NDArray[np.bool_]:
    """Prompts whose last c letters stand once before the end."""
    met = (
        np.lib.stride_tricks.sliding_window_view(tokens, task.c, 1)[:, :-1]
        == tokens[:, None, -task.c :]
    )
    return met.all(2).sum(1) == 1


DERIVATIONS = (Derivation(name="cgram", task=CGram, derive=derive, asked=asked),)
