"""State tracking, proved from the weights for prompts of every length: one layer whose tokens
reflect its state, and a head that reads the answer off the state they lead to. Parity and counts
modulo m, products of permutations, words of groups; and exchanges of neighbours after a first
permutation of any kind, where one head carries the first one, another follows the exchanges, and
the answer is the product of both.

Products of a group in full layers, each of which fetches the words at several offsets, and whose
MLP multiplies them with the token's own.

Places are found by addresses, or by rotations alone, where the start token must win whatever has no
token at its offset. By induction on layers, for every token of every prompt at once: before a layer
that looks back S places, 2 S, ... a token holds the product of its last S letters, or of all up to
itself, and the start token the identity. So each layer is proved for every place, whose offset must
win, and for every choice of words that it may multiply.

Eva by the automaton of its prefixes' classes, followed on every input: which rule each token
at each place has, the state that each prefix leads to, and the answer read off the last.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from math import prod
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from torch import nn

from separatrix.core.errors import CheckFailed
from separatrix.mixers.automaton import AutomatonMixer
from separatrix.models.model import Model
from separatrix.proofs.arithmetic import FP32, Arithmetic
from separatrix.proofs.derivations.parts.compared import OPTIONS, Back, Heads, looking_back
from separatrix.proofs.derivations.parts.derivation import (
    Derivation,
    Derived,
    Layer,
    derived,
    ids_of,
    unrounded,
)
from separatrix.proofs.derivations.parts.live_parts import Live, array, live_of, live_parts
from separatrix.proofs.derivations.parts.reading import CHUNK, all_of, leads, readout
from separatrix.proofs.derivations.parts.reflections import (
    Followed,
    Reached,
    live_heads,
    note_states,
    reach,
    updates_of,
)
from separatrix.proofs.derivations.parts.stream import Embedded
from separatrix.proofs.entries import entry
from separatrix.proofs.exact import Columns, Digits, Exactly
from separatrix.proofs.machine import (
    RESIDUAL,
    Array,
    Enclosure,
    add,
    hull,
    limited,
    linear,
    mapping,
    slack,
    stacked,
)
from separatrix.tasks import Eva, Group, Modular, Parity, Permutation, Task
from separatrix.tasks.base.task import Tokens
from separatrix.tasks.tracking import Arrangements, arrangements

_PAIRS = 1 << 22
"""Logits that are compared at once."""


@dataclass(frozen=True, kw_only=True)
class Tracking:
    """What a construction is to follow, a head for each, and which tokens may stand where."""

    followed: tuple[Followed, ...]
    first: Tokens
    """Ids that may stand first."""
    later: Tokens
    """Ids that may stand at any later place."""
    together: Callable[[Tokens, Tokens], Tokens] | None = None
    """With two heads: the answer, given the classes of both."""


@dataclass(frozen=True)
class Inputs:
    """What tokens hold before the layer: a row for each id, at the first place and at later
    ones.
    """

    first: Array
    later: Array

    @classmethod
    def of(cls, model: Model, digits: Digits) -> Inputs:
        """Raises CheckFailed where later places differ among themselves."""
        embed = array(model.embed.weight)
        if not isinstance(model.position, nn.Embedding):
            return cls(embed, embed)
        places = model.position.weight.detach()
        if bool((places[1:] != places[1:2]).any()):
            raise CheckFailed("places after the first differ: no prompt may be longer than others")
        start, rest = (array(places[i : i + 1]) for i in (0, min(1, len(places) - 1)))
        base = Columns.of(embed)
        for place in (start, rest):
            base.plus(Columns.of(place), digits, "the residual stream")
        return cls(embed + start, embed + rest)


def derive_tracking(
    task: Task, model: Model, tracking: Tracking, arithmetic: Arithmetic
) -> Derived:
    """The proof of one layer that follows what the task asks. Raises CheckFailed, naming the part,
    where the weights do not bear it out.
    """
    (part,) = live_of(model, 1, placed=False)
    whole = Exactly.of(model)
    digits = whole.digits
    inputs = Inputs.of(model, digits)
    alike = bool((inputs.first == inputs.later).all())
    mixer, heads = live_heads(part, len(tracking.followed))
    o = array(mixer.o.weight).reshape(mixer.width, mixer.heads, mixer.dv)
    reached: list[Reached] = []
    written: list[Array] = []
    used = 0
    for head, followed in zip(heads, tracking.followed, strict=True):
        every = [
            updates_of(mixer, head, x, whole, part.where)
            for x in ([inputs.later] if alike else [inputs.first, inputs.later])
        ]
        # which key and value numbers any update writes; the state is 0 in all others
        keys = np.logical_or.reduce([one.k.any((0, 1)) for one in every])
        values = np.logical_or.reduce([one.v.any((0, 1)) for one in every])
        if not (keys.any() and values.any()):
            raise CheckFailed(f"{part.where}: no token writes anything to the state")
        first, later = (one.only(keys, values) for one in (every[0], every[-1]))
        if len(every) == 1:
            first = later
        found = reach(first, later, followed, (tracking.first, tracking.later), part.where)
        note_states([first, later], found, digits, mixer.chunk, part.where)
        queries = later.q[tracking.later]
        if (queries != queries[:1]).any():
            raise CheckFailed(
                f"{part.where}: what is read of the state differs with the last token"
            )
        reached.append(found)
        y = np.einsum("d,sde->se", queries[0], found.states)
        Columns.of(y).through(np.eye(y.shape[1]), None, digits, f"{part.where}, what is read")
        written.append(whole.mapped(y, o[:, head, values], what=f"{part.where}, o"))
        acting = (first.b[tracking.first], later.b[tracking.later])
        used = max(used, *(int((b != 0).sum(1).max(initial=0)) for b in acting))
    margin = _read_out(model, part, inputs, tracking, reached, written, whole)
    # how many states prompts lead to, a number for each head; the binary digits that hold every
    # number and partial sum: of the weights' format, and of float32 for sums over keys and, in
    # parallel, over chunks of updates
    said = {
        "reflections": used,
        "states": " and ".join(f"{len(found.states)}" for found in reached),
        "digits": digits.own,
        "float32_digits": digits.summed,
        "chunk": mixer.chunk,
    }
    sizes = {
        "carriers": 1,
        "heads": len(heads),
        "head_dim": max(found.states.shape[1] for found in reached),
        "value_dim": max(found.states.shape[2] for found in reached),
    }
    return unrounded([(part, said)], digits, arithmetic, margin, **sizes)


def _read_out(
    model: Model,
    part: Live,
    inputs: Inputs,
    tracking: Tracking,
    reached: list[Reached],
    written: list[Array],
    whole: Exactly,
) -> Fraction:
    """The smallest lead of the right logit over all states and last tokens; `written` holds what
    the heads add in each state. Raises CheckFailed where another logit is as large, or the last
    token itself matters.
    """
    base, digits = inputs.later[tracking.later], whole.digits
    columns = Columns.of(base)
    for rows in written:
        columns = columns.plus(Columns.of(rows), digits, "the residual stream")
    weight, bias = array(model.head.weight), array(model.head.bias)
    varies = base - base[:1]
    for matrix, what in ((weight, "the head"), (part.mlp.get("up.weight"), "the MLP")):
        if matrix is not None and (varies @ matrix.T).any():
            raise CheckFailed(f"{what} reads the last token beside the state")
    smallest, worst = np.inf, -1
    after = columns
    for x, answers in _every(written, reached, tracking, base[0], len(weight)):
        if part.mlp:
            up, up_bias, *down = part.weights
            columns.through(up, up_bias, digits, "the MLP")
            hidden = np.maximum(x @ up.T + up_bias, 0.0)
            added = whole.mapped(hidden, *down, what="the MLP")
            after = columns.plus(Columns.of(added), digits, "the residual stream")
            x = x + added
        after.through(weight, bias, digits, "the head")
        lead = leads(Enclosure.point(x @ weight.T + bias), answers)
        if float(lead.min()) < smallest:
            smallest, worst = float(lead.min()), int(answers[lead.argmin()])
    if smallest <= 0:
        raise CheckFailed(
            f"answer {worst} has not the largest logit in the state that it is due in"
        )
    return Fraction(smallest)


def _every(
    written: Sequence[Array],
    reached: Sequence[Reached],
    tracking: Tracking,
    base: Array,
    answers: int,
) -> Iterator[tuple[Array, Tokens]]:
    """Rows that hold what was read of every state, or of every pair of states of two heads, some at
    a time, and the answer due in each.
    """
    classes = [found.classes for found in reached]
    if tracking.together is None:
        yield base + written[0], tracking.followed[0].answers[classes[0]]
        return
    one, other = written
    rows = max(1, _PAIRS // (answers * len(other)))
    for start in range(0, len(one), rows):
        some = slice(start, start + rows)
        x = base + one[some, None] + other[None]
        due = tracking.together(classes[0][some, None], classes[1][None])
        yield x.reshape(-1, x.shape[-1]), due.ravel()


def counted(m: int, ids: int = 2) -> Tracking:
    """Sums modulo m of ids 0, 1, ...: of two bits, or of so many numbers."""
    tokens = np.arange(ids)
    numbers = np.arange(m)
    sums = Followed(first=tokens % m, step=(numbers[:, None] + tokens) % m, answers=numbers)
    return Tracking(followed=(sums,), first=tokens, later=tokens)


def products(every: Arrangements) -> Tracking:
    """Products of any of these permutations, the first acting first."""
    ids = np.arange(every.order)
    step = every.table.reshape(every.order, every.order)
    return Tracking(followed=(Followed(first=ids, step=step, answers=ids),), first=ids, later=ids)


def neighbours(k: int) -> Tokens:
    """Ids of the permutations that exchange two neighbours."""
    rows = np.tile(np.arange(k), (k - 1, 1))
    for i, row in enumerate(rows):
        row[[i, i + 1]] = i + 1, i
    return arrangements(k).ids(rows)


def exchanges_and_first(task: Permutation) -> Tracking:
    """The heads in the order in which they stand."""
    every = arrangements(task.k)
    ids = np.arange(every.order)
    table = every.table.reshape(every.order, every.order)
    exchanged = Followed(first=np.zeros_like(ids), step=table, answers=ids)
    carried = Followed(first=ids, step=np.repeat(ids[:, None], every.order, axis=1), answers=ids)
    return Tracking(
        followed=(exchanged, carried),
        first=ids,
        later=neighbours(task.k),
        # the one carried acts first
        together=lambda exchanges, start: table[start, exchanges],
    )


def tracking(task: Task) -> Tracking:
    """What a task asks to be followed by one head."""
    match task:
        case Parity():
            return counted(2)
        case Modular():
            return counted(task.m)
        case Permutation():
            return products(arrangements(task.k))
        case Group():
            if task.degree:
                return products(arrangements(task.degree, even=True))
            return counted(task.vocabulary, task.vocabulary)
    raise CheckFailed(f"{task.spec}: nothing is followed")


def derive(task: Task, model: Model, arithmetic: Arithmetic = FP32) -> Derived:
    return derive_tracking(task, model, tracking(task), arithmetic)


def derive_swaps(task: Permutation, model: Model, arithmetic: Arithmetic = FP32) -> Derived:
    if task.shift != "swaps":
        raise CheckFailed(f"{task.spec}: this construction is about the prompts of shift=swaps")
    return derive_tracking(task, model, exchanges_and_first(task), arithmetic)


def about(task: Permutation, tokens: Tokens) -> NDArray[np.bool_]:
    return np.logical_and.reduce(np.isin(tokens[:, 1:], neighbours(task.k)), axis=1)


def hard(task: Permutation, rng: np.random.Generator) -> Tokens:
    """One exchange again and again, behind any permutation."""
    rows = np.repeat(rng.choice(neighbours(task.k), size=(4, 1)), task.length, 1)
    rows[:, 0] = rng.integers(task.vocabulary, size=4)
    return rows


MOST_COMBINED = 1 << 16
"""Choices of words of one layer."""


class Words(NamedTuple):
    """Elements of the group that tokens may hold, and a row of the stream for each."""

    elements: NDArray[np.int64]
    rows: Enclosure


@dataclass(frozen=True)
class Held:
    """What tokens hold before a layer."""

    by_place: Enclosure
    """A row per place, whatever the word: the start token's first, or that of the token that asks
    last.
    """
    words: Words
    """Whatever the place; with a token that asks, of those behind which enough letters stand."""
    asker: Words | None
    """Of the token that asks, if there is one."""


def derive_products(task: Task, model: Model, arithmetic: Arithmetic = FP32) -> Derived:
    """The proof of all layers. Raises CheckFailed where the weights do not bear it out."""
    table = elements(task)
    asks, n, ids = model.config.asks, task.length, task.vocabulary
    # whatever finds places, the score of the right key leads by it
    count = len(live_parts(model, placed=False, asks=asks))
    live = live_of(model, count, placed=False, start=not asks, asks=asks)
    at = Embedded.of(model, n + 1, arithmetic)
    # letters, each an element, and the start token, or that which asks, which is the identity, and
    # of which nothing but its place is exact
    letters = slice(0, ids)
    places = slice(0, n) if asks else slice(1, None)
    tokens, by_place = at.tokens(letters, places), at.places(places, letters)
    if asks:
        other = at.tokens(slice(ids, ids + 1), slice(n, n + 1))
        held = Held(
            stacked(by_place, other),
            Words(np.arange(ids), tokens),
            Words(np.zeros(1, np.int64), other),
        )
    else:
        start = at.start(ids)
        tokens = stacked(hull(start, tokens.rows(slice(0, 1))), tokens.rows(slice(1, None)))
        held = Held(stacked(start, by_place), Words(np.arange(ids), tokens), None)
    layers: list[Layer] = []
    most, back = 1, 1
    for part in live:
        heads = Heads.of(part, OPTIONS, windows=True)
        most = max(most, len(heads.each))
        found, held = _multiplied(part, heads, back, held, table)
        layers.append(found)
        back *= len(heads.each) + 1
    if back < n + asks:
        raise CheckFailed(f"{len(live)} layers multiply {back:,} letters, of {n + asks:,}")
    ends = held.asker or held.words
    margin = readout(model, ends.rows, answers=ends.elements)
    return derived(arithmetic, layers, margin, **({"most_heads": most} if most > 1 else {}))


def elements(task: Task) -> Tokens:
    """(order, order): the product of any two elements, the first acting first; element 0 is the
    identity, and the answer of each is its number.
    """
    bits = isinstance(task, Parity | Modular)
    # two bits are followed there, and here sums of them are multiplied
    found = counted(task.answers, task.answers) if bits else tracking(task)
    return found.followed[0].step


def _multiplied(
    part: Live, heads: Heads, back: int, before: Held, table: Tokens
) -> tuple[Layer, Held]:
    """A layer that multiplies the words at offsets of 0, `back`, twice that, ..."""
    n = len(before.by_place.mid) - 1
    fetches = "the products at these offsets"
    offsets = [(j + 1) * back for j in range(len(heads.each))]
    asker = None
    if before.asker is not None:
        # who asks has the last letters of n = sum over layers of d times `back`
        asker = [n % back + 1 + j * back for j in range(n // back % (len(offsets) + 1))]
    due = [min(offset, n - (asker is not None)) for offset in offsets]
    others = looking_back(heads, before.by_place, before.words.rows, fetches, due, asker)
    words = _products(part, heads, before.words, before.words, others, table)
    any_word, asking = words.rows.hull(), None
    if before.asker is not None and asker is not None:
        around = before.by_place.hull()
        # what heads hand on whatever they read
        loose = {one.head: one.reading.head.given(one.reading.anything(), around) for one in others}
        any_word = clamped(part, add(around, heads.written(loose), RESIDUAL))
        used = others[: len(asker)]
        asking = _products(part, heads, before.asker, before.words, used, table, loose)
    # at a place that the layer does not write to, what stood there
    _, _, down, bias = part.weights
    kept = ~((heads.o != 0.0).any(1) | (down != 0.0).any(1) | (bias != 0.0))
    still = before.by_place
    by_place = still.like(
        np.where(kept, still.mid, any_word.mid), np.where(kept, still.rad, any_word.rad)
    )
    said = {"words": len(words.elements)} | ({} if asker is None else {"asked": asker})
    read = all_of([one.reading for one in others])
    layer = read.layer(fetches, heads.kind, offsets=due, **said)
    return layer, Held(by_place, words, asking)


def _products(
    part: Live,
    heads: Heads,
    own: Words,
    words: Words,
    others: Sequence[Back],
    table: Tokens,
    loose: dict[int, Enclosure] | None = None,
) -> Words:
    """What tokens hold that multiply their own words with what these heads fetch. `loose`: what
    every head may hand on; these are not all, and the MLP does not read others for that.
    """
    count = len(words.elements)
    choices = len(own.elements) * count ** len(others)
    if choices > MOST_COMBINED:
        raise CheckFailed(
            f"{part.where}: {choices:,} choices of words are too many to go through; use fewer"
            " heads and more layers"
        )
    found: dict[int, Enclosure] = {}
    step = max(1, CHUNK // own.rows.mid.shape[1])
    for start in range(0, choices, step):
        some = np.arange(start, min(start + step, choices))
        mine, *rows = np.unravel_index(some, (len(own.elements), *[count] * len(others)))
        averages = {head: given.repeated(len(some)) for head, given in (loose or {}).items()}
        averages |= {one.head: one.fetched.rows(row) for one, row in zip(others, rows, strict=True)}
        mixed = add(own.rows.rows(mine), heads.written(averages), RESIDUAL)
        after = part.after_mlp(mixed) if loose is None else clamped(part, mixed)
        product = own.elements[mine]
        for row in rows:
            product = table[words.elements[row], product]
        for word in np.unique(product).tolist():
            held = after.rows(np.flatnonzero(product == word)).hull()
            found[word] = hull(found[word], held) if word in found else held
    elements = np.array(sorted(found))
    return Words(elements, stacked(*(found[word] for word in elements.tolist())))


def clamped(part: Live, x: Enclosure) -> Enclosure:
    """Rows after an MLP whose hidden units stand in pairs that read the same, of which the second
    takes off what the first adds but for a step: each pair adds between 0 and its step, however far
    numbers move. Raises CheckFailed for other units.
    """
    up, up_bias, down, down_bias = part.weights
    one, other = slice(0, None, 2), slice(1, None, 2)
    if len(up) % 2 or (up[one] != up[other]).any() or (down[:, one] != -down[:, other]).any():
        raise CheckFailed(f"{part.where}: hidden units of its MLP are no steps in pairs")
    steps = down[:, one] * (up_bias[one] - up_bias[other])
    bias = down_bias[None]
    ends = x.spanning(bias + np.minimum(steps, 0).sum(1), bias + np.maximum(steps, 0).sum(1))
    # what rounding adds to that
    size = (x.size @ np.abs(up).T + np.abs(up_bias)) * (1 + slack(up.shape[1]))
    off = mapping((up != 0.0).sum(1) + 1, size, x.arithmetic)
    total = ((size + off) @ np.abs(down).T + np.abs(down_bias)) * (1 + slack(len(up)))
    off = off @ np.abs(down).T + mapping((down != 0.0).sum(1) + 1, total, x.arithmetic)
    added = ends.repeated(len(x.mid)).wider(off + slack(len(up)) * total)
    return part.after_mlp(x).within(add(x, added, RESIDUAL))


MOST_INPUTS = 1 << 20


def derive_machine(task: Task, model: Model, ids: list[int], arithmetic: Arithmetic) -> Derived:
    """The proof for every input, of which ids 0..ids[p]-1 may stand at place p. Raises CheckFailed
    where the weights do not bear it out, or the inputs are too many to be followed.
    """
    if prod(ids) > MOST_INPUTS:
        raise CheckFailed(f"{task.spec}: its {prod(ids):,} inputs are too many to be followed")
    (part,) = live_of(model, 1, mlp=False)
    mixer = part.mixer
    if not isinstance(mixer, AutomatonMixer):
        raise part.other("an automaton")
    table = array(mixer.table)
    if not bool(np.isfinite(table).all()):
        raise CheckFailed(f"{part.where}: its table holds what is no number")
    digits = 1 << np.arange(mixer.bits)
    table = (table > 0) @ digits
    weight, bias = array(mixer.rules.weight), array(mixer.rules.bias)
    at = Embedded.of(model, len(ids), arithmetic)
    last = at.embed
    states = np.zeros(1, np.int64)
    most = 1
    lead = np.inf
    for place, count in enumerate(ids):
        last = at.tokens(slice(0, count), slice(place, place + 1))
        scores = linear(last, weight, bias, what=f"{part.where}, rules")
        # a mixer adds up all of them, times 0
        limited(scores.size.sum(1), f"{part.where}, rules", arithmetic)
        rule = scores.mid.argmax(1)
        lead = min(lead, float(leads(scores, rule).min()))
        # a row for each prefix, a column for each token that may follow
        states = table[rule].astype(np.int64).T[states].reshape(-1)
        most = max(most, len(np.unique(states)))
    if lead <= 0:
        raise CheckFailed(f"{part.where}: two rules may score alike for some token")
    # what is read of each state, its digits as +-1, beside each last token
    signs = np.where(np.arange(1 << mixer.bits)[:, None] & digits, 1.0, -1.0)
    what = f"{part.where}, o"
    read = linear(Enclosure.point(signs, arithmetic), array(mixer.o.weight), what=what)
    answers = task.answer(np.stack(np.unravel_index(np.arange(prod(ids)), ids), 1))
    tokens = np.arange(len(states)) % ids[-1]
    ends = np.unique(np.stack([states, tokens, answers]), axis=1)
    step = max(1, CHUNK // model.config.width)
    some = (ends[:, at : at + step] for at in range(0, ends.shape[1], step))
    margin = min(
        readout(model, add(last.rows(token), read.rows(state), RESIDUAL), answer)
        for state, token, answer in some
    )
    said = entry(
        part.place, states=most, bits=mixer.bits, rules=len(weight), rule_lead=Fraction(lead)
    )
    layer = Layer(said, "carriers", int(weight.any(0).sum()), mixer.bits)
    return derived(arithmetic, [layer], margin)


def derive_automaton(task: Eva, model: Model, arithmetic: Arithmetic = FP32) -> Derived:
    return derive_machine(task, model, ids_of(task), arithmetic)


DERIVATIONS: tuple[Derivation[Any], ...] = (
    Derivation(name="parity", task=Parity, derive=derive),
    Derivation(name="modular", task=Modular, derive=derive),
    Derivation(name="permutation", task=Permutation, derive=derive),
    Derivation(name="group", task=Group, derive=derive),
    Derivation(name="swaps", task=Permutation, derive=derive_swaps, about=about, hard=hard),
    *(
        Derivation(name=f"multiplied-{task.name}", task=task, derive=derive_products)
        for task in (Parity, Modular, Permutation, Group)
    ),
    Derivation(name="automaton", task=Eva, derive=derive_automaton),
)
