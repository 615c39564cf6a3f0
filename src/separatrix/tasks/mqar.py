from __future__ import annotations

from dataclasses import dataclass, replace
from fractions import Fraction
from functools import lru_cache
from math import fsum, isfinite
from typing import Any, ClassVar, Self

from flint import arb, ctx

from separatrix.core.errors import SizeError
from separatrix.core.numbers.lazy import Bools, Floats, NDArray, np
from separatrix.tasks.base.described import ladder, shown, size
from separatrix.tasks.base.layout import Facts, Layout, Part, Table
from separatrix.tasks.base.task import NO_ANSWER, PLAIN, Batch, Family, Task, Tokens
from separatrix.tasks.drawing.distinct import (
    FEW,
    check_zipf,
    distinct,
    enough,
    first_different,
    lookup_chance,
    occurring,
    shuffled,
    smallest,
    spread,
    uniform,
)

_SLOTS = 1 << 13
"""Slots of a row's sieve, at least, where there are as many ids."""
_SIEVE = 128
"""Slots of a row's sieve per key, at least: one token in so many is looked up though it is no
key.
"""


def find(keys: Tokens, tokens: Tokens, vocabulary: int) -> Tokens | None:
    """Which of its row's keys each token is, or -1; keys (batch, k), tokens (batch, length). None
    where a row has a key twice.

    `batch * vocabulary` must lie below 2^63.
    """
    # each row has a range of ids of its own, so that one sorted array serves all rows
    base = vocabulary * np.arange(len(keys))[:, None]
    order = np.argsort(keys, axis=1)
    ordered = (np.take_along_axis(keys, order, axis=1) + base).ravel()
    if (ordered[1:] == ordered[:-1]).any():
        return None
    return _look_up(ordered, order.ravel(), (tokens + base).ravel()).reshape(tokens.shape)


def _look_up(ordered: Tokens, order: Tokens, asked: Tokens) -> Tokens:
    at = np.minimum(np.searchsorted(ordered, asked), len(ordered) - 1)
    return np.where(ordered[at] == asked, order[at], -1)


def without(keys: Tokens, length: int, vocabulary: int, rng: np.random.Generator) -> NDArray[Any]:
    """Shape (batch, length): independent tokens, uniform over all ids but the row's `keys` (batch,
    k). Needs vocabulary <= 2^32.

    Ids that agree in their low bits share a slot of their row, and what falls on a key's slot is
    looked up.
    """
    batch, k = keys.shape
    rows = np.arange(batch)[:, None]
    # a power of two, so that a mask takes an id to its slot
    slots = 1 << (min(vocabulary, max(_SLOTS, _SIEVE * k)) - 1).bit_length()
    held = np.zeros(batch * slots, np.bool_)
    held[(keys & (slots - 1)) + slots * rows] = True
    ordered = np.sort((keys + vocabulary * rows).ravel())
    tokens = uniform(vocabulary, (batch, length), rng)
    slot = (tokens & tokens.dtype.type(slots - 1)) + slots * rows
    # mode "raise" would make a copy of what it reads
    at = np.flatnonzero(np.take(held, slot, mode="wrap"))
    flat = tokens.reshape(-1)
    # a key is drawn again until it is none, which leaves all other ids equally likely
    while len(at := at[_look_up(ordered, ordered, flat[at] + vocabulary * (at // length)) >= 0]):
        flat[at] = uniform(vocabulary, at.shape, rng)
    return tokens


_CELLS = 1 << 16
_CUTS = 1 << 12
"""Pieces of [0, 1) in each of which a logarithm is a line and a little more."""
_BITS = 128
"""Of balls, so that no float made of one depends on how it was computed."""


@dataclass(frozen=True, eq=False)
class Weighted:
    """Places with their weights, from which sets are drawn; `weighted` makes and keeps one."""

    weights: Floats
    """Of all places; they sum to 1."""
    number: int
    draws: int | None
    """Draws with replacement that nearly always show that many different places; None where it
    takes too many.
    """
    ends: Floats
    """Where the part of each place in [0, _CELLS) ends; parts are proportional to weights."""

    def sets(self, batch: int, rng: np.random.Generator) -> Tokens:
        """Shape (batch, number), in no order that matters."""
        if self.number == len(self.weights):
            return np.broadcast_to(np.arange(self.number), (batch, self.number))
        if self.draws is None:
            return self._race(batch, rng)
        nothing = np.empty((batch, 0), np.int64)
        return first_different(
            self.number,
            len(self.weights),
            self.draws,
            lambda shape: self._with_replacement(shape, rng),
            held=nothing,
        )

    def _race(self, batch: int, rng: np.random.Generator) -> Tokens:
        """The places that arrive first, at exponential times whose rates are the weights.

        Whoever has arrived, the next one is each place with probability proportional to its weight:
        that is drawing without replacement.
        """
        shape = (batch, len(self.weights))
        return smallest(lambda: _exponential(shape, rng) / self.weights, self.number)

    def _with_replacement(
        self, shape: tuple[int, int], rng: np.random.Generator
    ) -> NDArray[np.int32]:
        """Places drawn one by one, each by a uniform number of [0, _CELLS)."""
        whole = uniform(_CELLS, shape, rng).reshape(-1)
        drawn = np.searchsorted(self.ends, whole, side="right").astype(np.int32)
        # most whole numbers belong to one place; where several share one, the fraction decides
        shared = np.flatnonzero(self.ends[drawn] < whole + 1.0)
        number = whole[shared] + rng.random(len(shared))
        drawn[shared] = np.searchsorted(self.ends, number, side="right")
        return drawn.reshape(shape)


def _exponential(shape: tuple[int, int], rng: np.random.Generator) -> Floats:
    """-log of uniform numbers, by sums and products alone, which every processor rounds alike.

    Of u = m 2^e with 1/2 <= m < 1 and the middle c of m's piece, log u = e log 2 + log c + log(1 +
    r) with |r| <= 2^-12, within 2^-37 of r - r^2/2 there.
    """
    significands, exponents = np.frexp(1 - rng.random(shape))
    pieces = (significands * _CUTS).astype(np.int64)
    middles = (pieces + 0.5) / _CUTS
    r = (significands - middles) / middles
    negative, halved = _logarithms()
    return exponents * halved + negative[pieces] - r + r * r / 2


@lru_cache(maxsize=1)
def _logarithms() -> tuple[Floats, float]:
    """-log of the middles of the pieces, and of 1/2 with its sign."""
    with ctx.workprec(_BITS):
        logs = [float(((2 * arb(_CUTS)) / (2 * i + 1)).log().mid()) for i in range(_CUTS)]
        return np.array(logs), float((arb(1) / 2).log().mid())


@lru_cache(maxsize=16)
def weighted(places: int, a: float, number: int) -> Weighted:
    """Sets of `number` of `places` places g, of weights (g + 1)^(a - 1)."""
    with ctx.workprec(_BITS):
        weights = np.array([float((arb(g) ** (arb(a) - 1)).mid()) for g in range(1, places + 1)])
    weights /= fsum(weights.tolist())
    ends = np.minimum(_CELLS * np.cumsum(weights), _CELLS)
    # what rounding leaves over falls to the last place, where every search ends
    ends[-1] = np.inf
    draws = enough(weights, number, places // 2)  # more take longer than the race
    return Weighted(weights, number, draws, ends)


LARGEST_VOCABULARY = 1 << 32


class MQAR(Task):
    """MQAR: multi-query associative recall, with the parameters of Zoology.

        position   0     1     ...   2k-2   2k-1   2k    2k+1   2k+2   2k+3   2k+4   ...
        input      k_1   v_1   ...   k_k    v_k    k_2   .      .      .      k_1    ...
        target     .     .     ...   .      .      v_2   .      .      .      v_1    ...
        k_1 stands at some later even place, here 2k+4, and so on

        vocab_size = 12, num_kv_pairs = 2, no filler:
        input    2  8  4  7  0  0  4  0  0  0  0  0  2  0  0  0
        target   .  .  .  .  .  .  1  .  .  .  .  .  2  .  .  .

    Keys are the ids 1..vocab_size/2 - 1, values those from floor(vocab_size/2) on; answer a is the
    value of id floor(vocab_size/2) + a. After the pairs every key stands once more, at an even
    place, and its value is due there. All other tokens are filler: any ids but the keys of the
    prompt.

    Drawn: input_seq_len is even, and power_a above 0 and at most 16.

    No two pairs of a prompt have the same key. Values may repeat as far as the question goes; drawn
    prompts have different ones, but under a shift.

    Drawn as in Zoology: different uniform keys, different uniform values, query places 2k + 2g with
    gaps g drawn without replacement with weights (g + 1)^(power_a - 1), filler of uniform ids
    (random_non_queries=1) or of zeros (0). Two things differ. Filler there may be a key of the
    prompt, which then seems to be asked without an answer or to get another value; here it is no
    key. The j-th pair there has the j-th gap drawn, so that early pairs tend to be asked early;
    here every order of the queries is as likely as any other.

    With k = num_kv_pairs and V values, answers are uniform. Whatever does not bind values to keys
    knows at best which k values stand in the prompt, or one of them: 1/k, which no sampler avoids.
    The value of another key is not the answer: 1/(V-1). Boosted trees look keys up at small sizes,
    not 16 pairs among 128 tokens.

    Counted: V^k for the k pairs (a promise: what is asked is there), by the argument that recall
    has for form=present (theory.md, section 3).

    From: [Aro24] Arora et al., Zoology, arXiv 2312.04927, and its generator multiquery_ar;
    theory.md, section 3
    """

    name = "mqar"
    title = (
        "multi-query associative recall: pairs of key and value, then every key once, amid filler;"
        " answer its value"
    )
    usage = (
        "vocab_size, input_seq_len, num_kv_pairs, power_a (default 0.01), random_non_queries=0|1"
        " (default 1)"
    )
    source = "[Aro24]"
    several = True
    shifts: ClassVar[dict[str, str]] = {
        "zipf": "values are independent and Zipf-distributed, so that they repeat",
        "few": f"values are independent and among the first {FEW} only",
    }
    grid = ladder("""
        vocab_size=16,input_seq_len=16,num_kv_pairs=4 vocab_size=24,input_seq_len=24,num_kv_pairs=4
        vocab_size=32,input_seq_len=40,num_kv_pairs=8
        vocab_size=8192,input_seq_len=64,num_kv_pairs=4
        vocab_size=8192,input_seq_len=256,num_kv_pairs=16
        vocab_size=8192,input_seq_len=512,num_kv_pairs=64
    """)

    vocab_size: int = size(lambda task: max(4, 2 * task.num_kv_pairs + 2), LARGEST_VOCABULARY)
    input_seq_len: int = size(lambda task: 4 * task.num_kv_pairs)
    num_kv_pairs: int = size(1, LARGEST_VOCABULARY // 2 - 1)
    power_a: float = 0.01
    random_non_queries: int = size(0, 1, default=1)

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.input_seq_len % 2:
            raise SizeError(
                f"{self.name}: input_seq_len is {self.input_seq_len}; it must be even, so the"
                " smallest from here is one more"
            )
        object.__setattr__(self, "power_a", _power(self.name, self.power_a))
        check_zipf(self.name, "the number of values with shift=zipf", self.answers, self.shift)

    def layout(self) -> Layout:
        """Any pair may be asked for by the token behind all of them."""
        k, first = self.num_kv_pairs, self.first_value
        values = self.vocab_size - first
        return Layout.listing(
            Table(k, values, tokens=2),
            {"filler": 1, "key": first - 1, "value": values},
            length=self.input_seq_len,
            parts={
                "a key": Part("key", slice(0, 2 * k, 2)),
                "a value": Part("value", slice(1, 2 * k, 2)),
            },
            spelling=f"Id j below {first} is written kj, id {first} + a as the value a.",
        )

    def family(self) -> Family[Self]:
        """More pairs over the same vocabulary, in prompts long enough for them."""

        def at(k: int) -> Self:
            length = max(self.input_seq_len, 4 * k)
            return replace(self, num_kv_pairs=k, input_seq_len=length, shift=PLAIN)

        said = f"a vocabulary of {self.vocab_size:,}, {self.input_seq_len:,} tokens or more"
        return Family(said, at, 1, "num_kv_pairs")

    @property
    def first_value(self) -> int:
        """The id of answer 0: floor(vocab_size/2). Keys are the ids from 1 to one less."""
        return self.vocab_size // 2

    @property
    def chance(self) -> Fraction:
        return lookup_chance(self.answers, self.shift)

    def level(self, probe: str) -> Fraction:
        """Beside what `words.drawn` derives: the token before a query is a value only where the
        query follows the pairs at once, as at most one in k does; and where the nearest token is a
        value, the largest key is asked for, and that value is among the k.
        """
        k = self.num_kv_pairs
        values = self.answers
        match probe:
            case "counts" | "position":
                return Fraction(1, k)
            case "last tokens":
                return Fraction(1, k * k) + Fraction(k - 1, k * values)
            case "nearest key":
                return max(Fraction(1, k), Fraction(1, values - 1)) / k + Fraction(
                    k - 1, k * (values - 1)
                )
        return self.chance

    def facts(self) -> Facts | None:
        """The values of the pairs, different unless a shift draws them independently."""
        if self.shift == "zipf":
            return None
        values = occurring(self.answers, self.shift)
        return Facts(self.num_kv_pairs, values, different=self.shift == PLAIN)

    def draw(self, batch: int, rng: np.random.Generator) -> Batch:
        k = self.num_kv_pairs
        tokens = np.zeros((batch, self.length), np.int64)
        targets = np.full(tokens.shape, NO_ANSWER, np.int64)
        keys = 1 + distinct(batch, k, self.first_value - 1, rng)
        values = spread(batch, k, self.answers, rng, shift=self.shift)
        if self.random_non_queries:
            # queries are written over it, or stand at every other place
            filled = tokens[:, 2 * k + 1 :: 2] if self.length == 4 * k else tokens[:, 2 * k :]
            filled[:] = without(keys, filled.shape[1], self.vocab_size, rng)
        tokens[:, 0 : 2 * k : 2] = keys
        tokens[:, 1 : 2 * k : 2] = self.first_value + values
        rows = np.arange(batch)[:, None]
        gaps = weighted(self.length // 2 - k, self.power_a, k).sets(batch, rng)
        places = self.length * rows + 2 * (k + gaps)
        order = k * rows + shuffled(batch, k, rng)
        tokens.reshape(-1)[places] = keys.reshape(-1)[order]
        targets.reshape(-1)[places] = values.reshape(-1)[order]
        return Batch(tokens, targets)

    def word(self, token: int) -> str:
        return f"k{token}" if token < self.first_value else str(token - self.first_value)

    def answer(self, tokens: Tokens) -> Tokens:
        k = self.num_kv_pairs
        keys, values = self.read(tokens)
        tokens = self._checked(tokens)
        pair = find(1 + keys, tokens[:, 2 * k :], self.vocab_size)
        if pair is None:
            raise self.refused("a key is paired twice; the keys of a prompt must differ")
        row, place = np.divmod(np.flatnonzero(pair >= 0), pair.shape[1])
        pair = pair[row, place]
        asked: Bools = np.zeros(keys.shape, np.bool_)
        asked[row, pair] = True
        if len(row) != keys.size or not asked.all() or (place % 2).any():
            raise self.refused(
                "after the pairs every key must stand exactly once, at an even place"
            )
        targets = np.full(tokens.shape, NO_ANSWER, np.int64)
        targets[row, 2 * k + place] = values[row, pair]
        return targets


def _power(task: str, value: Any) -> float:
    try:
        number = float(value)
    # OverflowError: an integer beyond all floats
    except (TypeError, ValueError, OverflowError):
        number = float("nan")
    if isinstance(value, bool) or not isfinite(number) or not 0 < number <= 16:
        raise SizeError(
            f"{task}: power_a is {shown(value)}; it must be a number above 0 and at most 16"
            " (Zoology uses 0.01)"
        )
    return number
