"""q-sparse averaging in two full layers: what every token of a set fetches, and the mean of the
tokens of one set, whose scores tie exactly.
"""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction

import numpy as np

from separatrix.core.errors import CheckFailed
from separatrix.models.model import Model
from separatrix.proofs.arithmetic import FP32, Arithmetic
from separatrix.proofs.derivations.parts.chain import full_fetch
from separatrix.proofs.derivations.parts.derivation import Derivation, Derived, Layer, derived
from separatrix.proofs.derivations.parts.live_parts import Head, Live, array, live_of
from separatrix.proofs.derivations.parts.queries import Lead, Wanted, lead_of_rows, must_tie
from separatrix.proofs.derivations.parts.reading import CHUNK, any_scores
from separatrix.proofs.derivations.parts.stream import Stream
from separatrix.proofs.entries import entry
from separatrix.proofs.machine import Enclosure, above, flushed, limited, roundings, slack, stacked
from separatrix.proofs.softmax import exact_share, growth
from separatrix.tasks import QSA
from separatrix.tasks.base.task import Tokens
from separatrix.tasks.drawing.distinct import distinct


def derive(task: QSA, model: Model, arithmetic: Arithmetic = FP32) -> Derived:
    """The proof of both layers. Raises CheckFailed where the weights do not bear it out."""
    first, second = live_of(model, 2)
    # options are not evaluated here
    first.full_head()
    head = second.full_head()
    hop = Wanted("z_p", task.V, np.arange(task.n), lambda p, before: p, first=task.V)
    # any token of any set asks
    of_sets = slice(task.n, None)
    before = Stream.of(model, task.length, slice(task.V, None), arithmetic, places=of_sets)
    fetched = full_fetch(before, first, hop)
    stream = fetched.stream
    lead = _same_set(task, stream, head, second)
    share = exact_share(task.length, Fraction(lead.least), arithmetic)
    means = _means(task, stream, head, second, share.off, share.mass)
    written = head.written(means, stream.at_last(), second.where)
    after = replace(stream, ends=True).after(second, written, written.hull())
    margin = _readout(model, after.stream, task)
    averages = entry(
        second.place,
        after.left(second, written),
        fetches="the mean of a set",
        queries=task.sets,
        keys=task.length,
        score_gap=lead.gap,
        score_error=lead.error,
        off_target_mass=share.mass,
    )
    used = int(((head.q != 0.0).any(1) & (head.k != 0.0).any(1)).sum())
    layer = Layer(averages, "layers", used, 1, ("exp(0) = 1",))
    return derived(arithmetic, [fetched.layer, layer], margin)


def _same_set(task: QSA, stream: Stream, head: Head, part: Live) -> Lead:
    """The smallest lead of the tokens of a set, which tie, over all others. Raises CheckFailed
    where they do not tie exactly.
    """
    where = part.where
    places = np.arange(task.length)
    keys = head.keys(stream.by_place, places, where)
    queries = head.asked(stream.by_place.rows(places[task.n :]), places[task.n :], where)
    must_tie(queries, keys, where)
    any_scores(stream, head, keys, where)
    for rows in (queries.mid, keys.mid[task.n :]):
        sets = rows.reshape(task.sets, task.q, -1)
        if (sets != sets[:, :1]).any():
            raise CheckFailed(f"{where}: tokens of one set ask, or are found, differently")
    alone = slice(None, None, task.q)
    of_sets = keys.rows(slice(task.n, None)).rows(alone)
    table = stacked(of_sets, keys.rows(slice(0, task.n)))
    what = f"{where}, the set of a token: set or place"
    return lead_of_rows(queries.rows(alone), table, np.arange(task.sets), what)


def _means(
    task: QSA, stream: Stream, head: Head, part: Live, off: float, mass: Fraction
) -> Enclosure:
    """What the head gives at the last token of a set, a row for each sum of its values.

    The q tokens that tie weigh exactly 1, and so does their number the denominator (softmax.py);
    sums of q values pass q roundings, and what else they take in moves them by twice its size at
    most.
    """
    where = part.where
    values = head.values(stream.rows(), where)
    if len(values.mid) != task.V or int(values.used.sum()) != 1:
        raise CheckFailed(f"{where}: what is averaged is not one number of every value")
    (column,) = np.flatnonzero(values.used).tolist()
    numbers = np.arange(task.V)
    away = float((np.abs(values.mid[:, column] - numbers) + values.rad[:, column]).max())
    seen = head.values(stream.by_place.hull(), where)
    largest = max(float(seen.size.max()), float(values.size.max()))
    arithmetic = values.arithmetic
    limited(np.array([largest * task.length]), f"{where}, its sum", arithmetic, summed=True)
    others = 4 * above(mass * growth(task.length, arithmetic))
    share = off + float(roundings(task.q + 8, arithmetic)) + others
    lost = flushed(task.length, largest, arithmetic)
    error = (away + largest * share + lost) * (1 + 2.0**-30)
    totals = np.arange(task.q * (task.V - 1) + 1)
    mid = np.zeros((len(totals), values.mid.shape[1]))
    rad = np.zeros_like(mid)
    mid[:, column] = totals / task.q
    # a quotient of float64
    rad[:, column] = error + task.V * 2.0**-50
    return values.like(mid, rad).stored()


def _readout(model: Model, stream: Stream, task: QSA) -> Fraction:
    """The lead of the right logit for every sum. What is off in the stream is the same for both
    logits, and moves their difference by the difference of their weights.
    """
    weight, bias = array(model.head.weight), array(model.head.bias)
    read = (weight != 0.0).any(0)
    weight = weight[:, read]
    x = stream.rows().columns(read)
    arithmetic = x.arithmetic
    terms = weight.shape[1] + 1
    # products and sums, and what is stored of them
    each = float(roundings(terms, arithmetic)) + slack(terms)
    each += 2 * float(arithmetic.stored) if arithmetic.narrowed else 0.0
    least = np.inf
    rows = max(1, CHUNK // (weight.size + 1))
    for start in range(0, len(x.mid), rows):
        some = x.rows(slice(start, start + rows))
        size = some.size @ np.abs(weight).T + np.abs(bias)
        limited(size * (1 + slack(terms)), "the head", arithmetic)
        rounded = (each * size + 8 * terms * arithmetic.tiny) * (1 + 2.0**-40)
        logits = some.mid @ weight.T + bias
        row = np.arange(len(logits))
        answer = (start + row) % task.V
        apart = np.abs(weight[answer][:, None] - weight[None])
        moved = np.einsum("rac,rc->ra", apart, some.rad) * (1 + 2.0**-40)
        lead = logits[row, answer][:, None] - logits - moved - rounded
        lead -= rounded[row, answer][:, None]
        lead[row, answer] = np.inf
        least = min(least, float(lead.min()))
    least -= 2.0**-40 * max(1.0, abs(least))
    if least <= 0:
        raise CheckFailed("the head: the logit of some sum is not the largest where it is due")
    return Fraction(least)


def hard(task: QSA, rng: np.random.Generator) -> Tokens:
    """Any values and any sets, also of a size that the task draws nothing of."""
    sets = distinct(16 * task.sets, task.q, task.n, rng).reshape(16, -1)
    return task.write(rng.integers(task.V, size=(16, task.n)), sets)


DERIVATIONS = (Derivation(name="qsa", task=QSA, derive=derive, hard=hard),)
