"""Eva and index lookup in one layer: one hop, to the position that the last token names, by full,
block-sparse or indexed attention. Of block-sparse attention the block that holds the place asked
for is read, and in it the place; of indexed attention the place asked for has the indexer's largest
score, and among the tokens chosen it outweighs the others.

q-sparse averaging in two full layers: what every token of a set fetches, and the mean of the
tokens of one set, whose scores tie exactly.

Nearest neighbour: labels fetch the strings before them, and the query compares its bits with
those of all strings at once.

Neither the 2^d strings nor their pairs are gone through one by one: what a token may hold is known
by each bit of its string (parts/compared.py), and a score is a sum over bits of one of four numbers
each (parts/compared.py). Of what two bits tell together nothing is claimed.
"""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from functools import partial
from typing import Any

import numpy as np

from separatrix.core.errors import CheckFailed
from separatrix.mixers.indexed import IndexedMixer
from separatrix.mixers.sparse import SparseMixer
from separatrix.models.model import Model
from separatrix.proofs.arithmetic import FP32, Arithmetic
from separatrix.proofs.balls import sigmoid_bounds
from separatrix.proofs.derivations.parts.chain import (
    Fetched,
    Fetcher,
    Read,
    derive_chain,
    full_fetch,
    read_one,
)
from separatrix.proofs.derivations.parts.compared import Compared, Numbered, moved
from separatrix.proofs.derivations.parts.derivation import Derivation, Derived, Layer, derived
from separatrix.proofs.derivations.parts.live_parts import Head, Live, array, live_of
from separatrix.proofs.derivations.parts.queries import (
    Lead,
    Queries,
    Wanted,
    lead_of_rows,
    must_tie,
    winning,
)
from separatrix.proofs.derivations.parts.reading import (
    Reading,
    any_average,
    readout,
)
from separatrix.proofs.derivations.parts.steps import own_group
from separatrix.proofs.derivations.parts.stream import Stream
from separatrix.proofs.entries import entry
from separatrix.proofs.machine import (
    Enclosure,
    Scores,
    above,
    add,
    flushed,
    limited,
    linear,
    roundings,
    stacked,
    times,
)
from separatrix.proofs.softmax import averaging, exact_share, growth
from separatrix.tasks import QSA, Eva, Index, Neighbour
from separatrix.tasks.base.task import Tokens
from separatrix.tasks.drawing.distinct import distinct


def sparse_fetch(stream: Stream, part: Live, hop: Wanted) -> Fetched:
    """One block-sparse head at the last token.

    It reads only some keys, the right one among them if its block is chosen: what is proved of a
    softmax over all keys holds for those.
    """
    head = part.head(SparseMixer, "sparse attention", "pool_k", "pool_v", "mix")
    mixer = part.mixer
    assert isinstance(mixer, SparseMixer)
    read = read_one(stream, part, hop, head, kept=True)
    lead = _block_lead(mixer, read, hop, part.where)
    compressed = _compressed(mixer, stream, head, read, part.where)
    arithmetic = stream.last.arithmetic
    shut, opened = _shares(mixer, head, arithmetic.inner)

    def mixed(selected: Enclosure) -> Enclosure:
        what = f"{part.where}, its gate"
        both = add(times(compressed, shut, what), times(selected, opened, what), what)
        return linear(both.stored_in(arithmetic), head.o, what=f"{part.where}, o")

    anywhere = mixed(read.reading.anything())
    more = {"block_gap": None if lead is None else lead.gap, "gate_error": float(shut.high.max())}
    return read.fetched("sparse", stream, part, hop, mixed(read.values), anywhere, **more)


def _pooled(numbers: Enclosure, weights: np.ndarray, block: int, what: str) -> Enclosure:
    """One row per complete block: the sum of its rows, each times the weight of its place."""
    complete = len(numbers.mid) // block

    def turned(table: np.ndarray) -> np.ndarray:
        # (complete, dimensions, block)
        return table[: complete * block].reshape(complete, block, -1).swapaxes(1, 2)

    rows = numbers.like(
        turned(numbers.mid).reshape(-1, block), turned(numbers.rad).reshape(-1, block)
    )
    sums = linear(rows, weights[None], what=what)
    return sums.like(sums.mid.reshape(complete, -1), sums.rad.reshape(complete, -1))


def _block_lead(mixer: SparseMixer, read: Read, hop: Wanted, where: str) -> Lead | None:
    """The smallest lead of the block that holds the place asked for, over all queries whose place
    is in a complete block; None without a rival. Raises CheckFailed when another block may win.

    The last token sees the blocks before its own as complete; its own is read in any case.
    """
    block = mixer.block
    complete = (len(read.keys.mid) - 1) // block
    if complete == 0:
        return None
    places = slice(0, complete * block)
    pooled = _pooled(
        read.keys.rows(places).summed(), array(mixer.pool_k), block, f"{where}, pooled keys"
    )
    scores = Scores(pooled, read.queries.used, f"{where}, scores of blocks")
    if complete == 1:
        # alone it is read whatever its score, if that is a number
        scores.errors(read.queries.every)
        return None

    def block_of(part: Any, before: Any) -> Any:
        place = np.asarray(hop.place(part, before))
        return np.where(place < complete * block, place // block, -1)

    found = read.queries.lead(scores, replace(hop, place=block_of))
    return None if found is None else winning(found, f"{where}, choice of blocks: block")


def _compressed(
    mixer: SparseMixer, stream: Stream, head: Head, read: Read, where: str
) -> Enclosure:
    """What the branch of pooled values gives, at any position: one row."""
    what = f"{where}, pooled"
    weights = array(mixer.pool_k)[None], array(mixer.pool_v)[None]
    # a block of places that hold anything, dimension by dimension
    every = linear(stream.by_place.hull(), head.k, what=what).summed()
    keys, values = (
        linear(
            row.like(np.repeat(row.mid.T, mixer.block, 1), np.repeat(row.rad.T, mixer.block, 1)),
            weight,
            what=what,
        )
        for row, weight in ((every, weights[0]), (read.reading.seen, weights[1]))
    )
    table = keys.like(keys.mid.T, keys.rad.T)
    for rows in (stream.by_place.hull(), stream.at_last()):
        queries = linear(rows, head.q, what=what)
        Scores(table, queries.used, f"{where}, scores of blocks").errors(queries)
    pooled = values.like(values.mid.T, values.rad.T)
    blocks = max(1, len(read.keys.mid) // mixer.block)
    # before the first complete block the branch is 0
    some = any_average(pooled, blocks, where)
    return some.or_zero()


def _shares(mixer: SparseMixer, head: Head, arithmetic: Arithmetic) -> tuple[Enclosure, Enclosure]:
    """The shares of the compressed and of the selected branch: a softmax of (mix, 0)."""
    assert mixer.mix is not None  # no gates: options are refused
    mix = float(array(mixer.mix)[head.index])
    off, tiny = above(averaging(2, arithmetic)), arithmetic.summed_tiny

    def share(score: float) -> Enclosure:
        low, high = (np.array([[end]]) for end in sigmoid_bounds(score, score))
        low, high = np.maximum(0.0, low * (1 - off) - tiny), high * (1 + off) + tiny
        return Enclosure.between(low, high, arithmetic)

    return share(mix), share(-mix)


def indexed_fetch(stream: Stream, part: Live, hop: Wanted) -> Fetched:
    """One indexed head at the last token.

    It reads only some keys, the right one first among them: what is proved of a softmax over all
    keys holds for those.
    """
    evaluated = ("index_q.weight", "index_k.weight", "index_w.weight")
    head = part.head(IndexedMixer, "indexed attention", *evaluated)
    mixer = part.mixer
    assert isinstance(mixer, IndexedMixer)
    read = read_one(stream, part, hop, head)
    lead = _choice(mixer, head, stream, hop, part.where)
    written = linear(read.values, head.o, what=f"{part.where}, o")
    anywhere = read.reading.anywhere(stream.by_place.hull())
    more = {"topk": mixer.topk, "index_gap": lead.gap, "index_error": lead.error}
    return read.fetched("indexed", stream, part, hop, written, anywhere, **more)


def _choice(mixer: IndexedMixer, head: Head, stream: Stream, hop: Wanted, where: str) -> Lead:
    """The smallest lead of the place asked for in the one head of the indexer that has a weight,
    over all queries. Raises CheckFailed where another token may be chosen before it.

    The indexer's score is the weight times the product, or 0 where that is negative. Times a power
    of two nothing is rounded that is not tiny, so what leads, and is positive, leads still.
    """
    where = f"{where}, the indexer"
    weights = array(mixer.index_w.weight)
    live = np.flatnonzero(weights.any(1))
    if len(live) != 1:
        raise CheckFailed(
            f"{where}: {len(live)} of its heads have a weight; the proof is about one"
        )
    (number,) = live.tolist()
    asked = array(mixer.index_q.weight).reshape(len(weights), -1, head.q.shape[1])
    own = own_group(asked, number, len(weights), f"{where}: q")
    chooser = replace(head, where=where, q=own, k=array(mixer.index_k.weight))
    # one and the same power of two for every query, and a number everywhere
    given = linear(stream.at_last(), weights[live], what=f"{where}, weight")
    linear(stream.by_place.hull(), weights[live], what=f"{where}, weight")
    if given.rad.any() or np.frexp(given.mid)[0] != 0.5:
        raise CheckFailed(f"{where}: the weight is no power of two, the same for every query")
    factor = float(given.mid[0, 0])
    keys = chooser.keys(stream.by_place, np.arange(len(stream.by_place.mid)))
    queries = Queries.of(chooser, hop, stream)
    scores = Scores(keys, queries.used, f"{where}, scores")
    lead = winning(queries.lead(scores, hop), f"{where}: position")
    lowest = queries.lowest(scores, hop)
    if lowest <= 0:
        raise CheckFailed(f"{where}: the token asked for may score nothing")
    inner = keys.arithmetic.inner
    # what is less may be rounded or flushed, and is less still
    if lowest * factor < 2 * inner.tiny:
        raise CheckFailed(f"{where}: the score of the token asked for may be flushed to zero")
    products = float(queries.every.size[0] @ keys.size.max(0)) * (1 + 2.0**-30)
    limited(np.array([products * max(1.0, factor)]), where, inner)
    chooser.numbers(keys, stream.by_place.hull(), stream.at_last())
    return lead


def derive(
    task: Eva | Index, model: Model, arithmetic: Arithmetic = FP32, *, fetch: Fetcher = full_fetch
) -> Derived:
    """The one place to read: position x, for a last token x, or, of an index, V + x."""
    said, first = ("x_i", task.V) if isinstance(task, Index) else ("f(x)", 0)
    hop = Wanted(said, task.V, np.arange(task.n), lambda x, before: x, first=first)
    return derive_chain(task, model, [hop], [fetch], arithmetic)


def derive_mean(task: QSA, model: Model, arithmetic: Arithmetic = FP32) -> Derived:
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
    written = head.written(means, stream.at_last())
    after = replace(stream, ends=True).after(second, written, written.hull())
    sums = after.rows()
    margin = readout(model, sums, np.arange(len(sums.mid)) % task.V)
    averages = entry(
        second.place,
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
    keys = head.keys(stream.by_place, places)
    queries = head.asked(stream.by_place.rows(places[task.n :]), places[task.n :])
    must_tie(queries, keys, where)
    head.numbers(keys, stream.by_place.hull(), stream.at_last())
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
    values = head.values(stream.rows())
    if len(values.mid) != task.V or int(values.used.sum()) != 1:
        raise CheckFailed(f"{where}: what is averaged is not one number of every value")
    (column,) = np.flatnonzero(values.used).tolist()
    numbers = np.arange(task.V)
    away = float((np.abs(values.mid[:, column] - numbers) + values.rad[:, column]).max())
    seen = head.values(stream.by_place.hull())
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


def hard_sets(task: QSA, rng: np.random.Generator) -> Tokens:
    """Any values and any sets, also of a size that the task draws nothing of."""
    sets = distinct(16 * task.sets, task.q, task.n, rng).reshape(16, -1)
    return task.write(rng.integers(task.V, size=(16, task.n)), sets)


_FETCHES = "the string before each label"
_FINDS = "the label of the nearest string"


def derive_nearest(task: Neighbour, model: Model, arithmetic: Arithmetic = FP32) -> Derived:
    """The proof of both layers. Raises CheckFailed where the weights do not bear it out."""
    first, second = live_of(model, 2)
    stream = Stream.of(model, task.length, task.strings, arithmetic)
    at, places, every = stream.by_place, np.arange(task.length), np.arange(task.strings)
    head = first.softmax_head()
    fetched = Reading.each(head, at, at, places // 2 * 2, _FETCHES, places=places)
    of_string, query = (
        Numbered.of(rows, every, task.d) for rows in (stream.by_token.rows(every), stream.last)
    )
    written = of_string.mapped(lambda rows: fetched.written(head.values(rows), at.hull()))
    # a label whose string has each bit, and strings, which fetch themselves
    labels = stream.by_token.rows(slice(task.strings, task.vocabulary))
    near = moved(first, written, labels.hull())
    strings, query = (rows.mapped(first.after, written) for rows in (of_string, query))
    labels = first.after(labels, written.digits.hull())
    head, where = second.full_head(), second.where
    values = head.values(labels)
    seen = stacked(values, head.values(strings.digits)).hull()
    lead, terms = _nearest_lead(near, strings, query, head, where)
    keys = stacked(*(head.keys(view.digits) for view in (near, strings)))
    head.numbers(keys, labels, strings.digits)
    reading = Reading.of(
        head, lead, seen, queries=task.strings, keys=task.length, key_numbers=terms
    )
    # several may be nearest, with one label
    last = query.digits.hull()
    found = head.written(reading.grouped(values), last)
    any_token = stacked(labels, strings.digits)
    second.after(any_token, reading.anywhere(any_token.hull()))
    layers = [fetched.layer(_FETCHES), reading.layer(_FINDS)]
    margin = readout(model, second.after(last, found))
    return derived(arithmetic, layers, margin)


def _nearest_lead(
    near: Numbered, strings: Numbered, query: Numbered, head: Head, where: str
) -> tuple[Lead, int]:
    """The smallest lead of a label with the nearest string, and the numbers of a key in use. Raises
    CheckFailed where a bit that differs need not cost what any other costs, or where a string may
    outscore a label.
    """
    keys = [head.keys(stacked(*rows)) for rows in zip(near.each, strings.each, strict=True)]
    compared = Compared.of([head.asked(rows) for rows in query.each], keys, where)
    # (d, 2, 4): a bit of the query against that of a label's string, and of a string
    table = np.array(
        [q.mid @ k.mid.T for q, k in zip(compared.queries, compared.keys, strict=True)]
    )
    losses = table[:, [0, 1], [0, 1]] - table[:, [0, 1], [1, 0]]
    least, most = float(losses.min()), float(losses.max())
    # h + 1 bits or more against h, of which d - 1 at most differ
    nearer = least - (near.bits - 1) * (most - least)
    over = float((table[..., :2].min(2) - table[..., 2:].max(2)).min(1).sum())
    lead = compared.least([min(nearer, over) * (1 - 2.0**-40)], "the nearest string")
    return lead, compared.terms


def hard_strings(task: Neighbour, rng: np.random.Generator) -> Tokens:
    """One string nearest by a single bit, or two that tie and share a label, with all others of
    another label one bit further away: near the query, as far as can be, and in between.
    """
    rows = []
    for far in sorted({0, 1, task.d // 2, task.d - 1}):
        for ties in (1, 2):
            query = int(rng.integers(task.strings))
            numbers = [far + (i >= ties) for i in range(task.n)]
            bits = [1 << rng.permutation(task.d)[:number] for number in numbers]
            one, other = rng.choice(task.V, size=2, replace=False)
            prompt = np.empty((task.n, 2), np.int64)
            prompt[:, 0] = query ^ np.array([some.sum() for some in bits])
            prompt[:, 1] = task.strings + np.where(np.arange(task.n) < ties, one, other)
            rows.append(np.append(prompt[rng.permutation(task.n)].ravel(), query))
    return np.array(rows, np.int64)


DERIVATIONS: tuple[Derivation[Any], ...] = (
    Derivation(name="retrieval", task=Eva, derive=derive),
    Derivation(name="sparse-retrieval", task=Eva, derive=partial(derive, fetch=sparse_fetch)),
    Derivation(name="indexed-retrieval", task=Eva, derive=partial(derive, fetch=indexed_fetch)),
    Derivation(name="index", task=Index, derive=derive),
    Derivation(name="qsa", task=QSA, derive=derive_mean, hard=hard_sets),
    Derivation(name="neighbour", task=Neighbour, derive=derive_nearest, hard=hard_strings),
)
