"""Associative recall and MQAR: one hop of full attention that looks a content up, and the first
token as the blank where nothing matches. Behind a short convolution, of its own
or in a layer before it, keys are made of the token before, values of the token itself.

    key at place j = C(token at j-1) + P(j-1)      0 at the first place
    query of q     = a row for each token that may ask, the same at every place that asks
    score          = <query, C> + <query, P>

A score is a sum of two tables (parts/compared.py): how far the key asked for leads over other keys,
and how far places raise or lower them.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from separatrix.core.errors import CheckFailed
from separatrix.mixers.full import FullMixer
from separatrix.mixers.ops.maps import Convolution
from separatrix.models.model import Model
from separatrix.proofs.arithmetic import FP32, Arithmetic
from separatrix.proofs.derivations.parts.compared import Compared
from separatrix.proofs.derivations.parts.derivation import Derivation, Derived, Layer, derived
from separatrix.proofs.derivations.parts.live_parts import Head, Live, array, live_of
from separatrix.proofs.derivations.parts.queries import Lead
from separatrix.proofs.derivations.parts.reading import Reading, numbers, prove_readout
from separatrix.proofs.derivations.parts.stream import Embedded, Stream
from separatrix.proofs.derivations.parts.taps import Taps, exact_taps, head_behind
from separatrix.proofs.machine import stacked
from separatrix.tasks import MQAR, Recall
from separatrix.tasks.recall import PROMISED

Places = NDArray[np.int64]


@dataclass(frozen=True, kw_only=True)
class Pairs:
    """Where keys and values stand in a prompt, and who asks for the value of which key."""

    length: int
    keys: range
    """Ids of keys."""
    values: range
    """Ids of values; the answers are their numbers, in this order."""
    at: Places
    """Places of the keys of pairs, in order; the value of each stands behind it."""
    asking: Places
    """Places at which a key may ask."""
    absent: bool = False
    """Whether a key that was never written is answered, by one answer more."""
    rewritten: bool = False
    """Whether keys may be written again; the last value counts."""


def look_up(
    model: Model, part: Live, pairs: Pairs, arithmetic: Arithmetic, *, taps: Taps | None = None
) -> tuple[Layer, Fraction]:
    """One head at every place that asks: its proof, and the lead of the right
    logit; `taps`: what brings it the token before, where it has no convolution of its own. Raises
    CheckFailed where another token may win.
    """
    where = part.where
    head = shifted_head(part) if taps is None else head_behind(taps, part)
    at = Embedded.of(model, pairs.length, arithmetic)
    keys = slice(pairs.keys.start, pairs.keys.stop)
    stream = Stream.before(
        by_place=at.places(), by_token=at.tokens(), last=at.tokens(keys, pairs.asking), ends=True
    )
    every = stream.by_place.hull()
    if taps is not None:
        stream = replace(stream, last=taps.beside(stream.last, every))
    queries = head.asked(stream.last, None, where)
    seen_keys = head.keys(every, None, where)
    zero = seen_keys.spanning(np.minimum(seen_keys.low, 0.0), np.maximum(seen_keys.high, 0.0))
    numbers(head, zero, where, every, stream.last.hull())
    # what queries ask of places is the same for all
    asking = (queries, head.asked(stream.last.hull(), None, where))
    of_keys = [head.keys(view, None, where) for view in (stream.by_token, stream.by_place)]
    lead, used = _lead(Compared.of(asking, of_keys, where), pairs)
    reading = Reading.of(
        part,
        head,
        lead,
        head.values(every, where),
        queries=len(queries.mid),
        keys=pairs.length,
        key_numbers=used,
    )
    values = slice(pairs.values.start, pairs.values.stop)
    read = head.values(at.tokens(values, pairs.at + 1), where)
    if pairs.absent:
        # a key stands first
        read = stacked(read, head.values(at.places(slice(0, 1), keys), where))
    at_last = stream.last.hull()
    written = reading.written(read, at_last)
    after = stream.after(part, written, reading.anywhere(at_last))
    found = reading.layer("the value of the key", after.left(part, written))
    return found, prove_readout(model, after.stream)


def shifted_head(part: Live) -> Head:
    """The live head, whose keys are made of the token before and whose queries and values of the
    token itself. Raises CheckFailed where its convolution does anything else.
    """
    head = part.head(
        FullMixer,
        "full attention behind a short convolution",
        "conv.weight",
        options=frozenset({"conv"}),
    )
    convolution = part.mixer.get_submodule("conv")
    assert isinstance(convolution, Convolution)
    taps = array(convolution.weight)
    start = 0
    for name, back in (("q", 0), ("k", 1), ("v", 0)):
        rows = array(part.mixer.get_parameter(f"{name}.weight"))
        # the newest token's weight stands last
        wanted = np.zeros(taps.shape[1])
        wanted[-1 - back] = 1.0
        if (taps[start : start + len(rows)][(rows != 0.0).any(1)] != wanted).any():
            raise CheckFailed(
                f"{part.where}: the convolution of {name} does not just hand on the token"
                f" {'before' if back else 'itself'}"
            )
        start += len(rows)
    return head


def _lead(compared: Compared, pairs: Pairs) -> tuple[Lead, int]:
    """By how much the key that is to be read leads over any that is not, and the numbers of a key
    in use. The first place has no token before it, and so a score of exactly 0.
    """
    (asking, asked), (of_tokens, of_places) = (
        [rows.mid for rows in views] for views in (compared.queries, compared.keys)
    )
    keys = slice(pairs.keys.start, pairs.keys.stop)
    lead = compared.own(0, keys)
    own = (asking * of_tokens[keys]).sum(1)
    rise = np.maximum(of_tokens.max(0) * asking, of_tokens.min(0) * asking).sum(1)
    # the key at a place is made of the place before it
    places = of_places @ asked[0]
    paired = places[pairs.at]
    elsewhere = places[np.setdiff1d(np.arange(pairs.length - 1), pairs.at)]
    highest, lowest = float(paired.max()), float(paired.min())
    right = float(own.min()) + lowest
    rest = float(rise.max()) + float(elsewhere.max(initial=-np.inf))
    gaps = [lead + lowest - highest, right, right - rest]
    if pairs.rewritten:
        # the last value counts
        gaps.append(float((paired[1:] - np.maximum.accumulate(paired)[:-1]).min()))
    if pairs.absent:
        gaps += [lead - float(own.max()) - highest, -rest]
    return compared.least(gaps, "the one asked for"), compared.terms


def derive(
    task: Any,
    model: Model,
    arithmetic: Arithmetic = FP32,
    *,
    pairs: Callable[[Any], Pairs],
    carried: bool,
) -> Derived:
    """The proof of one full layer that looks up what is asked for; `carried`: behind a layer that
    brings it the token before. Raises CheckFailed, naming the part, where the weights do not bear
    it out.
    """
    *first, last = live_of(model, 1 + carried)
    taps = exact_taps(model, first[0], task.length) if carried else None
    found, margin = look_up(model, last, pairs(task), arithmetic, taps=taps)
    brought = [] if taps is None else [taps.layer("the token before")]
    return derived(arithmetic, [*brought, found], margin)


def recall_pairs(task: Recall) -> Pairs:
    if task.question != "last":
        raise CheckFailed("this construction is told the key behind the pairs")
    return Pairs(
        length=task.length,
        keys=range(task.V, task.vocabulary),
        values=range(task.V),
        at=np.arange(0, 2 * task.n, 2),
        asking=np.array([2 * task.n]),
        absent=task.form not in PROMISED,
        rewritten=task.form == "last",
    )


def mqar_pairs(task: MQAR) -> Pairs:
    k = task.num_kv_pairs
    return Pairs(
        length=task.length,
        keys=range(1, task.first_value),
        values=range(task.first_value, task.vocabulary),
        at=np.arange(0, 2 * k, 2),
        asking=np.arange(2 * k, task.length, 2),
    )


DERIVATIONS = tuple(
    Derivation(
        name=f"carried-{task.name}" if carried else task.name,
        task=task,
        derive=partial(derive, pairs=pairs, carried=carried),
    )
    for carried in (False, True)
    for task, pairs in ((Recall, recall_pairs), (MQAR, mqar_pairs))
)
