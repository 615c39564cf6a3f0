"""Associative recall and MQAR: one hop of full attention that looks a content up, and the first
token as the blank where nothing matches. Behind a short convolution, of its own
or in a layer before it, keys are made of the token before, values of the token itself.

    key at place j = C(token at j-1) + P(j-1)      0 at the first place
    query of q     = a row for each token that may ask, the same at every place that asks
    score          = <query, C> + <query, P>

The numbers of a key are of two kinds: those that tokens alone write, and those that places alone
write. So a score is a sum of two tables, which are bounded one by one: how far the key asked for
leads over other keys, and how far places raise or lower them.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
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
from separatrix.proofs.derivations.parts.derivation import Derivation, Derived, Layer, derived
from separatrix.proofs.derivations.parts.latest import exactly
from separatrix.proofs.derivations.parts.live_parts import Head, Live, array, live_of
from separatrix.proofs.derivations.parts.queries import Lead, Queries, Wanted, error_of_sums
from separatrix.proofs.derivations.parts.reading import Reading, numbers, prove_readout
from separatrix.proofs.derivations.parts.stream import Stream
from separatrix.proofs.derivations.parts.taps import Taps, exact_taps, head_behind
from separatrix.proofs.machine import (
    RESIDUAL,
    Array,
    Enclosure,
    Scores,
    add,
    stacked,
)
from separatrix.tasks import MQAR, Recall
from separatrix.tasks.base.task import Tokens
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
    embed = Enclosure.point(array(model.embed.weight), arithmetic)
    position = Enclosure.point(array(model.position.weight)[: pairs.length], arithmetic)
    keys = slice(pairs.keys.start, pairs.keys.stop)
    asking = add(embed.rows(keys), position.rows(pairs.asking).hull(), RESIDUAL)
    every = add(embed.hull(), position.hull(), RESIDUAL)
    if taps is not None:
        asking = taps.beside(asking, every)
    stream = Stream(
        by_place=add(embed.hull(), position, RESIDUAL),
        by_token=add(embed, position.hull(), RESIDUAL),
        last=asking,
        field=Enclosure.point(np.zeros((1, model.config.width)), arithmetic),
        parts=np.zeros(1, np.int64),
        ends=True,
    )
    content, placed = _apart(head, embed, position, where)
    queries = head.asked(asking, None, where)
    if queries.rad.any():
        raise CheckFailed(f"{where}: queries of a lookup are not exact in its format")
    seen_keys = head.keys(stream.by_place.hull(), None, where)
    zero = seen_keys.spanning(np.minimum(seen_keys.low, 0.0), np.maximum(seen_keys.high, 0.0))
    numbers(head, zero, where, stream.by_place.hull(), stream.last.hull())
    scores = _Scores.of(queries, content, placed, pairs, where)
    reading = Reading.of(
        part,
        head,
        scores.least_lead(where),
        head.values(every, where),
        queries=len(queries.mid),
        keys=pairs.length,
        key_numbers=int(scores.used.sum()),
    )
    values = slice(pairs.values.start, pairs.values.stop)
    read = head.values(add(embed.rows(values), position.rows(pairs.at + 1).hull(), RESIDUAL), where)
    if pairs.absent:
        # a key stands first
        first = add(embed.rows(keys).hull(), position.rows(slice(0, 1)), RESIDUAL)
        read = stacked(read, head.values(first, where))
    return answered(model, reading, stream, read, "the value of the key")


def answered(
    model: Model, reading: Reading, stream: Stream, values: Enclosure, fetches: str
) -> tuple[Layer, Fraction]:
    """The proof of a head that reads one of these values, a row for each answer, and the lead of
    the right logit.
    """
    part, where = reading.part, reading.part.where
    fetched = reading.read(values)
    at = stream.last.hull()
    after = stream.after(part, reading.head.written(fetched, at, where), reading.anywhere(at))
    left = after.left(part, fetched)
    return reading.layer(fetches, left), prove_readout(model, after.stream)


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


def _apart(
    head: Head, embed: Enclosure, position: Enclosure, where: str
) -> tuple[Enclosure, Enclosure]:
    """What tokens (a row each) and what places (a row each) write into a key. Raises CheckFailed
    where a number of it has something of both, or may be rounded.
    """
    what = f"{where}, k"
    # what cancels among places alone is rounded beside what a token writes
    tables = exactly((embed.mid, position.mid), head.k, what, embed.arithmetic)
    by_token, by_place = (Enclosure.point(table, embed.arithmetic) for table in tables)
    if (by_token.used & by_place.used).any():
        raise CheckFailed(f"{what}: a number of the key is made of tokens and of places")
    # the columns of the stream that a number reads must not be a sum of both either
    mixed = embed.used & position.used
    if (head.k[:, mixed] != 0.0).any():
        raise CheckFailed(f"{what}: it reads a number that tokens and places both write")
    return by_token, by_place


@dataclass(frozen=True)
class _Scores:
    """The two tables of scores, and how far a computed score may be from their sum."""

    queries: Enclosure
    pairs: Pairs
    own: Array
    """For each query the token part of the key that it asks for."""
    lead: float
    """By how much that exceeds the token part of any other key; infinite where there is one key."""
    most: Array
    """For each query the largest token part of any token."""
    paired: Array
    """The place part of every pair, in order."""
    elsewhere: float
    """The largest place part of any other place but the first."""
    used: NDArray[np.bool_]
    error: float

    @classmethod
    def of(
        cls, queries: Enclosure, content: Enclosure, placed: Enclosure, pairs: Pairs, where: str
    ) -> _Scores:
        used = queries.used & (content.used | placed.used)
        asked = queries.mid[:, placed.used]
        if (asked != asked[:1]).any():
            raise CheckFailed(f"{where}: what a query asks of places differs with the token")
        keys = slice(pairs.keys.start, pairs.keys.stop)
        places = placed.mid[:, placed.used] @ asked[0]
        # the key at a place is made of the place before it
        last = np.setdiff1d(np.arange(pairs.length - 1), pairs.at)
        own = (queries.mid * content.mid[keys]).sum(1)
        rise = np.maximum(content.mid.max(0) * queries.mid, content.mid.min(0) * queries.mid)
        lead = np.inf
        if len(pairs.keys) > 1:
            hop = Wanted("", len(pairs.keys), np.arange(len(pairs.keys)), lambda q, _: q)
            found = Queries.alone(queries).lead(
                Scores(content.rows(keys), used, f"{where}, scores"), hop
            )
            assert found is not None
            lead = found.gap
        keyed = np.concatenate([content.mid[:, used], placed.mid[:, used]])
        return cls(
            queries=queries,
            pairs=pairs,
            own=own,
            lead=lead,
            most=rise.sum(1),
            paired=places[pairs.at],
            elsewhere=float(places[last].max(initial=-np.inf)),
            used=used,
            error=error_of_sums(keyed, (queries.mid[:, used],), queries.arithmetic, where),
        )

    def least_lead(self, where: str) -> Lead:
        """Raises CheckFailed where a key that was not asked for may win."""
        gap = min(self.gaps())
        least = gap - 2 * self.error * (1 + 2.0**-40)
        if gap <= 0 or least <= 0:
            raise CheckFailed(
                f"{where}: for some query a key that was not asked for"
                f" {'scores' if gap <= 0 else 'may score, by rounding,'} no less than the one to be"
                " read"
            )
        return Lead(gap, self.error, least)

    def gaps(self) -> list[float]:
        """Every lead of the key that is to be read over what is not. The first place has no token
        before it, and so a score of exactly 0.
        """
        highest = float(self.paired.max())
        lowest = float(self.paired.min())
        right = float(self.own.min()) + lowest
        other = float(self.own.max()) - self.lead + highest
        rest = float(self.most.max()) + self.elsewhere
        gaps = [self.lead + lowest - highest, right, right - rest]
        if self.pairs.rewritten:
            before = np.maximum.accumulate(self.paired)[:-1]
            gaps.append(float((self.paired[1:] - before).min()))
        if self.pairs.absent:
            gaps += [-other, -rest]
        return gaps


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
    return Pairs(
        length=task.length,
        keys=range(task.V, task.vocabulary),
        values=range(task.V),
        at=np.arange(0, 2 * task.n, 2),
        asking=np.array([2 * task.n]),
        absent=task.form not in PROMISED,
        rewritten=task.form == "last",
    )


def recall_ids(task: Recall) -> list[int]:
    """Keys, whose ids follow those of values, and values in turn; then a key."""
    return [task.vocabulary, task.V] * task.n + [task.vocabulary]


def recall_asked(task: Recall, tokens: Tokens) -> NDArray[np.bool_]:
    """Prompts whose keys are keys, and which keep what the form promises."""
    keys = tokens[:, ::2]
    written = np.sort(keys[:, :-1], 1)
    found = np.asarray((keys >= task.V).all(1))
    if task.form != "last":
        found = found & (written[:, 1:] != written[:, :-1]).all(1)
    if task.form in PROMISED:
        found = found & (keys[:, :-1] == keys[:, -1:]).any(1)
    return found


def mqar_pairs(task: MQAR) -> Pairs:
    k = task.num_kv_pairs
    return Pairs(
        length=task.length,
        keys=range(1, task.first_value),
        values=range(task.first_value, task.vocabulary),
        at=np.arange(0, 2 * k, 2),
        asking=np.arange(2 * k, task.length, 2),
    )


def mqar_asked(task: MQAR, tokens: Tokens) -> NDArray[np.bool_]:
    """Prompts whose keys are keys, differ, and stand once more behind the pairs, at even places."""
    k = task.num_kv_pairs
    keys = tokens[:, 0 : 2 * k : 2]
    values = tokens[:, 1 : 2 * k : 2]
    written = np.sort(keys, 1)
    met = tokens[:, None, 2 * k :] == keys[:, :, None]
    return (
        ((keys >= 1) & (keys < task.first_value)).all(1)
        & (values >= task.first_value).all(1)
        & (written[:, 1:] != written[:, :-1]).all(1)
        & (met[:, :, ::2].sum(2) == 1).all(1)
        & ~met[:, :, 1::2].any((1, 2))
    )


DERIVATIONS = tuple(
    derivation
    for carried, name in ((False, ""), (True, "carried-"))
    for derivation in (
        Derivation(
            name=f"{name}recall",
            task=Recall,
            derive=partial(derive, pairs=recall_pairs, carried=carried),
            ids=recall_ids,
            asked=recall_asked,
        ),
        Derivation(
            name=f"{name}mqar",
            task=MQAR,
            derive=partial(derive, pairs=mqar_pairs, carried=carried),
            asked=mqar_asked,
        ),
    )
)
