"""Associative recall and MQAR: one hop of full attention that looks a content up, and the first
token as the blank where nothing matches. Behind a short convolution, of its own or in a layer
before it, keys are made of the token before, values of the token itself.

    key at place j = C(token at j-1) + P(j-1)      N at the first place
    query of q     = a row for each token that may ask, the same at every place that asks
    score          = <query, C> + <query, P>

A score is a sum of two tables, one of tokens and one of places (parts/compared.py).

A convolution is evaluated where one token that it reads is known, and the others are any, or none.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from separatrix.core.errors import CheckFailed
from separatrix.mixers.channels import ShortConvolutionMixer
from separatrix.mixers.full import FullMixer
from separatrix.models.model import Model
from separatrix.proofs.arithmetic import FP32, Arithmetic
from separatrix.proofs.derivations.parts.carriers import convolve
from separatrix.proofs.derivations.parts.compared import Compared
from separatrix.proofs.derivations.parts.derivation import Derivation, Derived, Layer, derived
from separatrix.proofs.derivations.parts.live_parts import Head, Live, array, live_of
from separatrix.proofs.derivations.parts.reading import Reading, readout
from separatrix.proofs.derivations.parts.steps import Kind
from separatrix.proofs.derivations.parts.stream import Embedded
from separatrix.proofs.entries import entry
from separatrix.proofs.machine import Array, Enclosure, Scores, linear, stacked, times
from separatrix.tasks import MQAR, Recall
from separatrix.tasks.recall import PROMISED


def tapped(part: Live, rows: Enclosure, every: Enclosure, back: int) -> Enclosure:
    """Tokens behind a short convolution, a row for each of these that may stand so many places
    before them (0: that they are themselves), and then, where that is another one, a row for none;
    else any token (`every`, one row) may stand there. Raises CheckFailed for another layer.
    """
    mixer, where = part.mixer, part.where
    if not isinstance(mixer, ShortConvolutionMixer):
        raise part.other("a short convolution that hands tokens on")
    v, b, c, o = (array(one.weight) for one in (mixer.v, mixer.b, mixer.c, mixer.o))
    entering, others = (
        times(linear(x, v, what=where), linear(x, b, what=where), where) for x in (rows, every)
    )
    if back:
        entering = stacked(entering, entering.like(*np.zeros((2, 1, len(v)))))
    own = every if back else rows
    read = _read(entering, others, back, array(mixer.conv.weight), where)
    y = linear(times(linear(own, c, what=where), read, where), o, what=where)
    return part.after(own, y)


def _read(entering: Enclosure, others: Enclosure, back: int, taps: Array, where: str) -> Enclosure:
    """What taps make of these rows so many places back, and of any others, or none, elsewhere."""
    if back >= taps.shape[1]:
        raise CheckFailed(f"{where}: its convolution reads no token {back} places back")
    rest = others.or_zero()
    lags = range(taps.shape[1])
    return convolve(taps, [entering if lag == back else rest for lag in lags], where)


def brought(part: Live, brings: str) -> Layer:
    """A layer of short convolutions as its proof tells of it."""
    assert isinstance(part.mixer, ShortConvolutionMixer)
    said = entry(
        part.place,
        carries=brings,
        mechanism=part.mixer.mechanism.name,
        numbers=int(array(part.mixer.o.weight).any(0).sum()),
    )
    return Layer(said, "carriers")


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


Of = Callable[[Kind, Enclosure, int], Enclosure]
"""Queries, keys or values of tokens, a row for each of these that may stand so many places before
them.
"""


def behind_layer(first: Live, part: Live, every: Enclosure) -> tuple[Head, Of]:
    """The head of a plain layer behind one of short convolutions."""
    head = part.full_head()

    def of(kind: Kind, rows: Enclosure, back: int) -> Enclosure:
        return head.mapped(kind, tapped(first, rows, every, back))

    return head, of


def behind_own(part: Live, every: Enclosure) -> tuple[Head, Of]:
    """The head of a layer with a convolution of its own. Raises CheckFailed for another layer."""
    wanted = "full attention behind a short convolution"
    head = part.head(FullMixer, wanted, "conv.weight", options=frozenset({"conv"}))
    mixer, where = part.mixer, part.where
    assert isinstance(mixer, FullMixer)
    assert mixer.conv is not None
    blocks = np.split(array(mixer.conv.weight), np.cumsum(mixer.channels)[:-1])
    taps = dict(zip("qkv", blocks, strict=True))

    def of(kind: Kind, rows: Enclosure, back: int) -> Enclosure:
        groups = mixer.heads if kind == "q" else mixer.kv
        own = np.split(taps[kind], groups)[head.index // (mixer.heads // groups)]
        known, others = (head.mapped(kind, x) for x in (rows, every))
        if back:
            known = stacked(known, known.like(*np.zeros((2, 1, known.mid.shape[1]))))
        return _read(known, others, back, own, where)

    return head, of


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
    *first, part = live_of(model, 1 + carried)
    told, where = pairs(task), part.where
    at = Embedded.of(model, told.length, arithmetic)
    every = at.places().hull()
    keys, values = (slice(ids.start, ids.stop) for ids in (told.keys, told.values))
    last = at.tokens(keys, told.asking)
    head, of = behind_layer(first[0], part, every) if carried else behind_own(part, every)
    at_last = (tapped(first[0], last, every, 0) if carried else last).hull()
    asking = [of("q", rows, 0) for rows in (last, last.hull())]
    # every score is a number, whatever stands where
    any_key, any_query = of("k", every, 0), of("q", every, 0)
    Scores(any_key, any_query.used, f"{where}, scores").errors(any_query)
    # of the token before, or of none
    of_keys = [of("k", rows, 1) for rows in (at.tokens(), at.places())]
    none = of_keys[0].rows(slice(-1, None))
    of_keys = [rows.rows(slice(0, -1)) for rows in of_keys]
    compared = Compared.of(asking, of_keys, where, none)
    # the key at a place is made of the place before it, the first one of none
    paired = np.isin(np.arange(told.length - 1), told.at)[None]
    lead = compared.latest(
        keys,
        compared.queries[1].mid,
        lambda _: paired,
        missing=told.absent,
        again=told.rewritten,
    )
    reading = Reading.of(
        head,
        lead,
        of("v", every, 0),
        queries=len(last.mid),
        keys=told.length,
        key_numbers=compared.terms,
    )
    read = of("v", at.tokens(values, told.at + 1), 0)
    if told.absent:
        # a key stands first
        read = stacked(read, of("v", at.places(slice(0, 1), keys), 0))
    after = part.after(at_last, reading.written(read, at_last))
    found = reading.layer("the value of the key")
    layers = [*(brought(one, "the token before") for one in first), found]
    return derived(arithmetic, layers, readout(model, after))


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
