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
from separatrix.proofs.derivations.parts.derivation import Derivation, Derived, derived
from separatrix.proofs.derivations.parts.live_parts import Live, array, live_of
from separatrix.proofs.derivations.parts.queries import Lead, Queries, Wanted, error_of_sums
from separatrix.proofs.derivations.parts.reading import Reading
from separatrix.proofs.derivations.parts.stream import Stream
from separatrix.proofs.derivations.parts.taps import Taps, exact_taps
from separatrix.proofs.machine import Array, Enclosure, Scores, linear
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
    compared = _compared(taps, head.q, head.k, task.c, where)
    values = head.values(letters, where)
    reading = Reading.of(
        part,
        head,
        _lead(letters, compared, part),
        values.hull(),
        queries=task.V,
        keys=task.length,
        key_numbers=int(np.any([(q != 0.0).any(1) for q, _ in compared], axis=0).sum()),
    )
    stream = Stream(
        by_place=letters.hull(),
        by_token=letters,
        last=taps.beside(letters, letters.hull()),
        field=Enclosure.point(np.zeros((1, model.config.width)), arithmetic),
        parts=np.zeros(1, np.int64),
        ends=True,
    )
    fetches = "what followed the context, letter by letter"
    found, margin = answered(model, reading, stream, values, fetches)
    return derived(arithmetic, [taps.layer(f"{task.c} tokens before"), found], margin)


def _compared(taps: Taps, q: Array, k: Array, c: int, where: str) -> list[tuple[Array, Array]]:
    """For each g the maps of a letter g - 1 tokens back into the query and of one g tokens back
    into the key. Raises CheckFailed where a number of either reads anything else.
    """
    queries = [taps.lag(q, back) for back in taps.lags]
    keys = [taps.lag(k, back) for back in taps.lags]
    reads = np.array([(rows != 0.0).any(1) for rows in queries])
    holds = np.array([(rows != 0.0).any(1) for rows in keys])
    if holds.shape[0] <= c or holds[0].any() or holds[c + 1 :].any():
        raise CheckFailed(f"{where}: keys are not made of the {c} tokens before")
    if (reads[:-1] != holds[1:]).any() or reads[-1].any() or (holds.sum(0) > 1).any():
        raise CheckFailed(f"{where}: a number of the key is not compared with one letter")
    return [(queries[g - 1], keys[g]) for g in range(1, c + 1)]


def _lead(letters: Enclosure, compared: list[tuple[Array, Array]], part: Live) -> Lead:
    """By how much the context asked for leads."""
    where = part.where
    count = len(letters.mid)
    own = Wanted("", count, np.arange(count), lambda letter, _: letter)
    gaps: list[float] = []
    asked: list[Array] = []
    keyed: list[Array] = []
    for q, k in compared:
        queries = linear(letters, q, what=f"{where}, q")
        keys = linear(letters, k, what=f"{where}, k")
        if queries.rad.any() or keys.rad.any():
            raise CheckFailed(f"{where}: queries and keys are not exact in its format")
        used = queries.used & keys.used
        lead = Queries.alone(queries).lead(Scores(keys, used, f"{where}, scores"), own)
        assert lead is not None
        # nothing stands before the first tokens, and scores 0
        gaps += [lead.gap, float((queries.mid * keys.mid).sum(1).min())]
        asked.append(queries.mid)
        keyed.append(keys.mid)
    if min(gaps) <= 0:
        raise CheckFailed(f"{where}: a context with another letter scores no less for some query")
    error = error_of_sums(np.concatenate(keyed), asked, letters.arithmetic, where)
    least = min(gaps) - 2 * error * (1 + 2.0**-40)
    if least <= 0:
        raise CheckFailed(f"{where}: another context may score no less, by rounding")
    return Lead(min(gaps), error, least)


def asked(task: CGram, tokens: Tokens) -> NDArray[np.bool_]:
    """Prompts whose last c letters stand once before the end."""
    met = (
        np.lib.stride_tricks.sliding_window_view(tokens, task.c, 1)[:, :-1]
        == tokens[:, None, -task.c :]
    )
    return met.all(2).sum(1) == 1


DERIVATIONS = (Derivation(name="cgram", task=CGram, derive=derive, asked=asked),)
