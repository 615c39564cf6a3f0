"""Scores that are sums over views: every number of a query and of a key is told by one of several
things that are known of their tokens, and both by the same one.

    <q_1[a] + q_2[b] + ..., k_1[c] + k_2[d] + ...> = S_1[a, c] + S_2[b, d] + ...

So what a key leads by is bounded view by view, whatever the others say.

Scores of queries and keys whose places are not known, only how far apart they may be: the least
and the most that each can be, whatever stands between the two.

Of pairs q and k that turn by an angle t a score has |q| |k| cos(t + the angle from k to q): a
cosine over an arc. Keys take few values in a pair, so that the most of all scores is one product of
matrices: a number of the query for each value, and whether the key has it.

Full layers of several heads, and heads of one that look back, whatever their own place, by
addresses of places or by rotations alone; and the residual stream of tokens that each hold a
pointer: where it leads, bit by bit.

Every token holds a number, or none: a place, a letter. What a token with a given number may hold is
an enclosure for each of its binary digits: a row for digit c being 0, one for it being 1, and one
for none. A token whose number is u lies in all the rows of u's digits at once.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, reduce
from itertools import pairwise
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from separatrix.core.errors import CheckFailed
from separatrix.core.numbers.rotary import Rotation
from separatrix.mixers.full import FullMixer
from separatrix.mixers.window import WindowMixer
from separatrix.proofs.arithmetic import Arithmetic
from separatrix.proofs.circle import turns_between
from separatrix.proofs.derivations.parts.live_parts import Head, Live, array, weights_of
from separatrix.proofs.derivations.parts.queries import Lead, Queries, Wanted
from separatrix.proofs.derivations.parts.reading import CHUNK, Reading
from separatrix.proofs.derivations.parts.steps import PARAMETERS, steps
from separatrix.proofs.machine import Array, Enclosure, Scores, hull, linear, stacked


@dataclass(frozen=True)
class Compared:
    """Rows of queries and of keys, view by view, each 0 in what another view tells better."""

    queries: Sequence[Enclosure]
    keys: Sequence[Enclosure]
    others: Sequence[Enclosure]
    """Keys that are whole in one row."""
    what: str

    @classmethod
    def of(
        cls,
        queries: Sequence[Enclosure],
        keys: Sequence[Enclosure],
        where: str,
        *others: Enclosure,
        pairs: int = 0,
    ) -> Compared:
        """Rows that hold, in each view, whatever the other views leave open. `pairs`: so many
        numbers are turned together with as many behind them, so that one view tells both.
        """
        rest = np.max([0 * keys[0].size[0], *(rows.size.max(0) for rows in others)], 0)
        loose = np.array(
            [
                q.rad.max(0) * np.maximum(k.size.max(0), rest) + q.size.max(0) * k.rad.max(0)
                for q, k in zip(queries, keys, strict=True)
            ]
        )
        loose[:, :pairs] += loose[:, pairs : 2 * pairs]
        loose[:, pairs : 2 * pairs] = loose[:, :pairs]
        teller = loose.argmin(0)
        of_queries, of_keys = (
            [rows.only(teller == view) for view, rows in enumerate(views)]
            for views in (queries, keys)
        )
        return cls(of_queries, of_keys, others, f"{where}, scores")

    @cached_property
    def _scores(self) -> Scores:
        used = np.any([rows.used for rows in self.queries], 0)
        return Scores(stacked(*self.keys, *self.others), used, self.what).of(*self.queries)

    @property
    def terms(self) -> int:
        """Products of a score."""
        return self._scores.terms

    @cached_property
    def error(self) -> float:
        """How far a computed score may be off."""
        return sum(float(self._scores.errors(rows).max()) for rows in self.queries)

    def own(self, view: int, keys: slice = slice(None)) -> float:
        """By how much the key of a query's own row, of these rows of keys, leads over the others of
        them, at least.
        """
        of_keys = self.keys[view].rows(keys)
        if len(of_keys.mid) == 1:
            return np.inf
        own = Wanted.each("", np.arange(len(of_keys.mid)))
        queries = self.queries[view]
        found = Queries.alone(queries).lead(Scores(of_keys, queries.used, self.what), own)
        assert found is not None
        return found.gap

    def latest(
        self,
        ids: slice,
        asked: Array,
        inside: Callable[[slice], NDArray[np.bool_]],
        *,
        missing: bool = True,
        again: bool = True,
    ) -> Lead:
        """By how much the key of the token that is asked for leads, which the first view tells, at
        a place inside, which the second one tells: of these ids, one for each query in turn. Of
        several the latest, where it may stand `again`; where it may be `missing`, the one key that
        is whole in one row (`others`); whatever stands elsewhere. Raises CheckFailed where another
        key may win.

        `asked`: a row per group of queries, by what they ask of places; `inside`: (groups, places),
        for some groups, the places at which nothing but these ids stands.
        """
        queries, (of_tokens, of_places) = self.queries[0].mid, [rows.mid for rows in self.keys]
        (blank,) = self.others[0].mid
        own = (queries * of_tokens[ids]).sum(1)
        lead = self.own(0, ids)
        # of any token, number by number, and of the other key
        rise = np.maximum(of_tokens.max(0) * queries, of_tokens.min(0) * queries).sum(1)
        start = queries @ blank
        gap = np.inf
        count = max(1, CHUNK // len(of_places))
        for at in range(0, len(asked), count):
            some = asked[at : at + count]
            within = inside(slice(at, at + count))
            table = some @ of_places[: within.shape[1]].T
            to_start = some @ blank
            low = np.where(within, table, np.inf).min(1)
            kept = np.where(within, table, -np.inf)
            high = kept.max(1)
            outside = np.where(within, -np.inf, table).max(1, initial=-np.inf)
            gaps = [
                lead + low - high,
                low - to_start + float((own - start).min()),
                low - outside + float((own - rise).min()),
            ]
            if again:
                earlier = np.maximum.accumulate(kept, 1)[:, :-1]
                gaps.append((table[:, 1:] - earlier)[within[:, 1:]])
            if missing:
                gaps.append(to_start - high + lead + float((start - own).min()))
                gaps.append(to_start - outside + float((start - rise).min()))
            gap = min(gap, *(float(each.min(initial=np.inf)) for each in gaps))
        return self.least([gap], "the one asked for")

    def least(self, gaps: Iterable[float], wins: str) -> Lead:
        """The smallest of these leads, each a difference of two scores. Raises CheckFailed where
        rounding may leave none.
        """
        return least_of(gaps, self.error, wins, self.what)


def least_of(gaps: Iterable[float], error: float, wins: str, where: str) -> Lead:
    """The same of scores that are each off by no more than the error."""
    gap = min(gaps)
    least = gap - 2 * error * (1 + 2.0**-40)
    if not least > 0:
        how = "may score, by rounding," if gap > 0 else "scores"
        raise CheckFailed(f"{where}: for some query another key {how} no less than {wins}")
    return Lead(gap, error, least)


MOST_VALUES = 64
"""Of the keys in one pair."""


class Told(NamedTuple):
    """Rows whose products are the scores of queries with keys, at the most; and the score of each
    query with the key in its own row, at the least.
    """

    queries: Array
    keys: Array
    own: Array


def at_any_distance(
    queries: Array, keys: Array, rotation: Rotation | None, most: int, arithmetic: Arithmetic
) -> Told:
    """Rows before they are turned, at most so many places apart. Raises CheckFailed for keys of
    too many values.
    """
    turned = 0 if rotation is None else rotation.dims
    still = slice(turned, None)
    found = [(queries[:, still], keys[:, still])]
    own = (queries[:, still] * keys[: len(queries), still]).sum(1)
    for pair in range(turned // 2):
        both = [pair, pair + turned // 2]
        x, y = queries[:, both].T
        if rotation is None or not (x.any() or y.any()) or not keys[:, both].any():
            continue
        values, which = np.unique(keys[:, both], axis=0, return_inverse=True)
        near = 0.0
        if len(values) > MOST_VALUES:
            # alike but for what float64 leaves of a norm
            near = float(np.ldexp(1.0, np.frexp(np.abs(keys[:, both]).max())[1] - 40))
            grid = np.rint(keys[:, both] / near) * near
            values, which = np.unique(grid, axis=0, return_inverse=True)
        if len(values) > MOST_VALUES:
            raise CheckFailed(f"keys that turn have {len(values):,} values in one pair")
        # a product with the conjugate
        real = np.outer(x, values[:, 0]) + np.outer(y, values[:, 1])
        other = np.outer(y, values[:, 0]) - np.outer(x, values[:, 1])
        low, high = _arc(real, other, pair, rotation, most, arithmetic)
        lost = near * (np.abs(x) + np.abs(y))[:, None]
        low, high = low - lost, high + lost
        found.append((high, np.eye(len(values))[which]))
        own += low[np.arange(len(x)), which[: len(x)]]
    columns = [np.concatenate(rows, 1) for rows in zip(*found, strict=True)]
    return Told(columns[0], columns[1], own)


def _arc(
    x: Array, y: Array, pair: int, rotation: Rotation, most: int, arithmetic: Arithmetic
) -> tuple[Array, Array]:
    """The least and the most of the first number of (x, y), turned by 0 to so many places."""
    turns, slow = turns_between(rotation, most, arithmetic)
    long = np.sqrt(x * x + y * y) * (1 + 2.0**-40)
    if not slow[pair]:
        return -long, long
    corners = [(x * cos[pair] - y * sin[pair], x * sin[pair] + y * cos[pair]) for cos, sin in turns]
    ends = [own for own, _ in corners]
    low, high = np.minimum.reduce(ends), np.maximum.reduce(ends)
    for (own, other), (then, beside) in pairwise(corners):
        # within a right angle: where the other changes its sign, this one is as long as both
        crosses: NDArray[np.bool_] = other * beside <= 0
        low = np.where(crosses & (np.minimum(own, then) < 0), -long, low)
        high = np.where(crosses & (np.maximum(own, then) > 0), long, high)
    return low, high


@dataclass(frozen=True)
class Heads:
    """The heads of full attention that write, and the output map (width, heads * value_dim)."""

    each: list[Head]
    o: Array
    value_dim: int
    where: str
    seen: float = np.inf
    """Tokens that each sees, its own included."""

    @property
    def kind(self) -> str:
        """Under what name a record counts the layer."""
        return "layers" if self.seen == np.inf else "carriers"

    @classmethod
    def of(
        cls, part: Live, options: frozenset[str] = frozenset(), *, windows: bool = False
    ) -> Heads:
        """Raises CheckFailed for another mixer, other options than these, each with an evaluator
        (steps.py), a parameter that is not read, and for a head that does not write but is not
        zero; without options also for heads that share keys. `windows`: they may see the last
        tokens alone.
        """
        mixer = part.mixer
        kinds = FullMixer | WindowMixer if windows else FullMixer
        if not isinstance(mixer, kinds) or mixer.mechanism.altered - options:
            beside = f", or with {', '.join(sorted(options))}" if options else ""
            raise CheckFailed(f"{part.where}: the proof is about plain full attention{beside}")
        if mixer.kv != mixer.heads and not mixer.mechanism.altered:
            raise CheckFailed(f"{part.where}: its heads share keys, which the proof is not about")
        weights = weights_of(mixer, part.where, *(PARAMETERS if options else ()))
        return cls(
            [
                replace(weights.head(index, part), steps=steps(mixer, index, part.where))
                for index in weights.live
            ],
            array(mixer.o.weight),
            mixer.dv,
            part.where,
            mixer.size if isinstance(mixer, WindowMixer) else np.inf,
        )

    def written(self, averages: dict[int, Enclosure]) -> Enclosure:
        """What averages add to the stream: by the number of a head, all with as many rows; heads
        that are not named give 0.
        """
        some = next(iter(averages.values()))
        mid = np.zeros((len(some.mid), self.o.shape[1]))
        rad = np.zeros_like(mid)
        for index, given in averages.items():
            own = slice(index * self.value_dim, (index + 1) * self.value_dim)
            mid[:, own] = given.mid
            rad[:, own] = given.rad
        return linear(some.like(mid, rad), self.o, what=f"{self.where}, o")


OPTIONS = frozenset({"rope", "rope_dim", "rope_scaling", "qk_norm", "gate"})
"""Those that such heads may have."""


class Back(NamedTuple):
    """A head, and what it hands to the output map."""

    head: int
    offset: int
    """The largest there is where it reads the start token whatever the place."""
    reading: Reading
    fetched: Enclosure
    """A row for each of the contents given."""


def looking_back(
    heads: Heads,
    by_place: Enclosure,
    contents: Enclosure,
    fetches: str,
    due: list[int],
    asker: list[int] | None = None,
) -> list[Back]:
    """The heads by their offsets, which their weights tell. `by_place`: a row per place, the start
    token's first; `contents`: rows of which every token that is read is within one. `asker`: there
    is no start token, so that nothing is said of tokens whose offset does not exist; a token that
    asks stands last, whose first heads, one by one, look back so many places, whatever others do.
    What is proved of a softmax over all keys holds for those that a window sees, if the key that
    wins is one of them. Raises CheckFailed where a place may read another token, or heads look back
    other offsets than are due, or out of their sight.
    """
    at = np.arange(len(by_place.mid))
    last = at[-1:] if asker is None else at[-2:-1]
    each: list[tuple[int, Head]] = []
    for head in heads.each:
        query = head.asked(by_place.rows(last), last)
        keys = head.keys(by_place.rows(at[: last[0] + 1]), at[: last[0] + 1])
        each.append((int(last[0] - (query.mid @ keys.mid.T).argmax()), head))
    each.sort(key=lambda one: one[0])
    offsets = [offset for offset, _ in each]
    if offsets != due:
        raise CheckFailed(
            f"{heads.where}: its heads look back {offsets} places, where {due} are due"
        )
    found: list[Back] = []
    for number, (offset, head) in enumerate(each):
        wanted = np.maximum(at - offset, 0)
        if asker is not None:
            wanted[:offset] = -1
            wanted[-1] = at[-1] - asker[number] if number < len(asker) else -1
        turned = at if head.steps else None
        reading = Reading.each(head, by_place, by_place, wanted, fetches, places=turned)
        average = reading.read(head.values(contents))
        given = head.given(average, (contents if asker is None else by_place).hull())
        found.append(Back(head.index, offset, reading, given))
    if max([*offsets, *(asker or ())], default=0) >= heads.seen:
        raise CheckFailed(f"{heads.where}: {offsets[-1]} places back is out of the window's sight")
    return found


@dataclass(frozen=True)
class Numbered:
    """What tokens may hold, by the binary digits of a number that they have."""

    each: Sequence[Enclosure]
    """For each digit two rows: it is 0, and it is 1."""
    none: Enclosure | None = None
    """One row: there is no number; None where every token has one."""

    @property
    def bits(self) -> int:
        return len(self.each)

    @classmethod
    def of(cls, rows: Enclosure, numbers: NDArray[np.int64], bits: int) -> Numbered:
        """From rows for each number."""
        order = np.argsort(numbers)
        held, first = np.unique(numbers[order], return_index=True)
        # the least of a number, and of its opposite
        ends = np.full((2, 1 << bits, rows.mid.shape[1]), np.inf)
        for end, side in zip(ends, (rows.low, -rows.high), strict=True):
            alone = len(held) == len(order)
            end[held] = side[order] if alone else np.minimum.reduceat(side[order], first)
        each: list[Enclosure] = []
        for _ in range(bits):
            # by the lowest digit, and then whatever it is
            pairs = ends.reshape(2, -1, 2, rows.mid.shape[1])
            low, opposite = pairs.min(1)
            each.append(rows.spanning(low, -opposite))
            ends = pairs.min(2)
        return cls(each)

    @classmethod
    def split(cls, table: Enclosure, none: Enclosure | None = None) -> Numbered:
        """From the rows of all digits, in turn."""
        return cls([table.rows(slice(at, at + 2)) for at in range(0, len(table.mid), 2)], none)

    @property
    def digits(self) -> Enclosure:
        """The rows of all digits."""
        return stacked(*self.each)

    @property
    def absent(self) -> Enclosure:
        """What a token without a number holds."""
        assert self.none is not None
        return self.none

    def mapped(self, through: Callable[..., Enclosure], *beside: Numbered) -> Numbered:
        """Of a function of tables that leaves the number of rows, or of as many beside: digit by
        digit, so that what is exact in one need not be in others.
        """
        every = zip(self.each, *(one.each for one in beside), strict=True)
        each = [through(*rows) for rows in every]
        none = None
        if self.none is not None:
            none = through(self.none, *(one.absent for one in beside))
        return Numbered(each, none)

    def at(self, numbers: NDArray[np.int64]) -> Enclosure:
        """What a token of each number may hold. Raises CheckFailed where that is nothing."""
        digit = numbers[:, None] >> np.arange(self.bits) & 1
        low = np.full((len(numbers), self.each[0].mid.shape[1]), -np.inf)
        high = -low
        for place, rows in enumerate(self.each):
            np.maximum(low, rows.low[digit[:, place]], out=low)
            np.minimum(high, rows.high[digit[:, place]], out=high)
        if (low > high).any():
            raise CheckFailed("no token can hold what is proved of its number")
        return self.each[0].spanning(low, high)

    def any(self) -> Enclosure:
        """One row: what a token may hold, whatever its number: of each digit one row, or none."""
        first, *rest = (
            both.hull() if self.none is None else hull(both, self.none) for both in self.each
        )
        return reduce(Enclosure.within, rest, first)


def moved(part: Live, fetched: Numbered, at: Enclosure) -> Numbered:
    """Tokens within `at` (one row) behind a layer that adds these."""
    return fetched.mapped(lambda rows: part.after(at, rows))


@dataclass(frozen=True)
class Views:
    """What tokens hold before a layer, whatever the prompt: a row per place, and by numbers that
    they have.
    """

    by_place: Enclosure
    by: dict[str, Numbered]

    @property
    def anywhere(self) -> Enclosure:
        """One row: any token of the prompt."""
        return self.by_place.hull()

    def mapped(self, through: Callable[[Enclosure], Enclosure], **instead: Numbered) -> Views:
        """Of a function of tables that leaves the number of rows; some numbers as they are given
        `instead`.
        """
        by = {
            name: instead[name] if name in instead else numbered.mapped(through)
            for name, numbered in self.by.items()
        }
        return Views(through(self.by_place), by | instead)

    def tightened(self) -> Views:
        """The same, each view within what the others say of any token."""
        row = reduce(Enclosure.within, (one.any() for one in self.by.values()), self.anywhere)
        return self.mapped(lambda table: table.within(row))
