"""Associative recall and MQAR: one hop of full attention that looks a content up, and the first
token as the blank where nothing matches. Behind a short convolution, of its own
or in a layer before it, keys are made of the token before, values of the token itself.

    key at place j = C(token at j-1) + P(j-1)      0 at the first place
    query of q     = a row for each token that may ask, the same at every place that asks
    score          = <query, C> + <query, P>

A score is a sum of two tables (parts/compared.py): how far the key asked for leads over other keys,
and how far places raise or lower them.

Proves that a short convolution hands on numbers of tokens some places back, unrounded.

    y_h = c_h sum_r w_r (b u_h)_{i-r},   u_h = x[source],   b_h = c_h = x[one] = 1,   one w_r is 1

Products with 1 and sums with 0 round nothing, in any arithmetic. So coordinate `target` holds at
every place what `source` held `back` places before it, and 0 where no such place is.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray
from torch import nn

from separatrix.core.errors import CheckFailed
from separatrix.mixers.channels import ShortConvolutionMixer
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
from separatrix.proofs.entries import entry
from separatrix.proofs.machine import Array, Enclosure, stacked
from separatrix.tasks import MQAR, Recall
from separatrix.tasks.recall import PROMISED

_MAPS = ("v.weight", "b.weight", "c.weight", "o.weight", "conv.weight")


@dataclass(frozen=True)
class Taps:
    """Coordinates of the stream that are written, by which others, how many tokens back."""

    part: Live
    target: NDArray[np.int64]
    source: NDArray[np.int64]
    back: NDArray[np.int64]

    def lag(self, weight: Array, back: int) -> Array:
        """What rows of a map that stands behind this layer make of the token so many places back,
        as rows that are multiplied with what that token holds before this layer.
        """
        found = np.zeros_like(weight)
        if not back:
            found[:] = weight
            found[:, self.target] = 0.0
            return found
        some = self.back == back
        # no two targets hold the same source
        found[:, self.source[some]] = weight[:, self.target[some]]
        return found

    @property
    def lags(self) -> range:
        return range(int(self.back.max(initial=0)) + 1)

    def views(self, rows: Enclosure, before: int) -> list[Enclosure]:
        """Tokens behind this layer, a row for each id and then one for none: by their own id, and
        by that of the token 1, ..., `before` before them. `rows`: what tokens of each id hold.
        """
        every = rows.hull()
        found = [self.beside(stacked(rows, every), every)]
        anyone = self.beside(every, every).repeated(len(rows.mid) + 1)
        for back in range(1, before + 1):
            some = self.back == back
            mid, rad = anyone.mid.copy(), anyone.rad.copy()
            for table, held in ((mid, rows.mid), (rad, rows.rad)):
                table[:-1, self.target[some]] = held[:, self.source[some]]
                table[-1, self.target[some]] = 0.0
            found.append(rows.like(mid, rad))
        return found

    def beside(self, rows: Enclosure, before: Enclosure) -> Enclosure:
        """The rows with whatever is brought to them; `before` (one row): what any token holds."""
        mid, rad = rows.mid.copy(), rows.rad.copy()
        low = np.minimum(before.low[0, self.source], 0.0)
        high = np.maximum(before.high[0, self.source], 0.0)
        mid[:, self.target] = (low + high) / 2
        rad[:, self.target] = (high - low) / 2 * (1 + 2.0**-40)
        return rows.like(mid, rad)

    def layer(self, brings: str) -> Layer:
        mechanism = self.part.mixer.mechanism.name
        most = int(self.back.max(initial=0))
        numbers = len(self.target)
        said = entry(
            self.part.place,
            carries=brings,
            mechanism=mechanism,
            back=most,
            numbers=numbers,
            fetch_error=0,
        )
        return Layer(said, "carriers")


def exact_taps(model: Model, part: Live, length: int) -> Taps:
    """What the layer hands on, unrounded. Raises CheckFailed where it does anything else."""
    mixer, where = part.mixer, part.where
    if not isinstance(mixer, ShortConvolutionMixer):
        raise part.other("a short convolution that hands tokens on")
    if any(tensor.any() for tensor in part.mlp.values()):
        raise CheckFailed(f"{where}: nothing is proved about an MLP behind a short convolution")
    for name, _ in mixer.named_parameters():
        if name not in _MAPS:
            raise CheckFailed(f"{where}: nothing is proved about its parameter {name}")
    v, b, c, o, conv = (array(mixer.get_parameter(name)) for name in _MAPS)
    used = (o != 0.0).any(0)
    if any(rows[~used].any() for rows in (v, b, c, conv)):
        raise CheckFailed(f"{where}: a channel that writes nothing is not zero")
    v, b, c, o, conv = v[used], b[used], c[used], o[:, used].T, conv[used]
    always = _ones(model, length)
    for name, rows in (("b", b), ("c", c)):
        if not always[_only(rows, f"{where}, {name}")].all():
            raise CheckFailed(f"{where}: {name} is not 1 at every token")
    target = _only(o, f"{where}, o")
    held = array(model.embed.weight)[:, target].any() or (
        isinstance(model.position, nn.Embedding) and array(model.position.weight)[:, target].any()
    )
    if held or len(np.unique(target)) < len(target):
        raise CheckFailed(f"{where}: it writes where something stands already, or twice")
    back = conv.shape[1] - 1 - _only(conv, f"{where}, conv")
    if not back.all():
        raise CheckFailed(f"{where}: a channel reads the token itself and none before it")
    source = _only(v, f"{where}, v")
    if len(np.unique(np.stack([source, back]), axis=1).T) < len(source):
        raise CheckFailed(f"{where}: two channels bring the same number, whose sum may be rounded")
    return Taps(part, target, source, back)


def _only(rows: Array, where: str) -> NDArray[np.int64]:
    """The column of the one number of each row that is not 0, which is 1."""
    if ((rows != 0.0).sum(1) != 1).any() or (rows.max(1) != 1.0).any():
        raise CheckFailed(f"{where}: a channel is not a copy of one number")
    return rows.argmax(1)


def _ones(model: Model, length: int) -> NDArray[np.bool_]:
    """Coordinates that hold 1 at every token, whatever it is."""
    embed = array(model.embed.weight)
    if not isinstance(model.position, nn.Embedding):
        return (embed == 1.0).all(0)
    position = array(model.position.weight)[:length]
    of_token = (embed == 1.0).all(0) & ~position.any(0)
    return of_token | ((position == 1.0).all(0) & ~embed.any(0))


def head_behind(taps: Taps, part: Live) -> Head:
    """A plain head whose keys are made of the token before alone, its queries and values of the
    token itself, as maps of what tokens hold before the short convolution.
    """
    head = part.full_head()
    if head.q[:, taps.target].any() or head.v[:, taps.target].any():
        raise CheckFailed(f"{part.where}: queries or values read what was brought to their token")
    for back in taps.lags:
        if back != 1 and taps.lag(head.k, back).any():
            raise CheckFailed(f"{part.where}: keys are not made of the token before alone")
    return replace(head, k=taps.lag(head.k, 1))


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
