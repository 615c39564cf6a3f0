"""Layers of the delta rule, evaluated exactly: DeltaNet, Gated DeltaNet, KDA and Gated DeltaProduct
where every gate is saturated, a = 1 and b = 0 or what it is at most, and every key has length
exactly 1. With b = 2 tokens reflect the state.

    R <- R + b k (v - R^T k)^T   for each of a token's updates in turn,   y = R^T q

For a prompt of any length: the states that tokens lead to from the empty one are found one after
the other until no token leads out of them. Each state belongs to one class of what the task asks
to be followed, so that it tells the answer.

The parallel form solves (I + L) U = b (V - K R) with L_ij = b_i <k_i, k_j>. With b k of whole
multiples and L of integers all of U is, since U is made by sums and products of those; and it is
small: a row of U for R = 0 is b (v - R^T k) for a state R that tokens lead to from the empty one,
a row of what hangs on R is -b k^T P for a product P of reflections, which is orthogonal, and an
entry of the inverse of I + L, or of a block of it, is -b <k_i, P k_j>: at most 2.

A delta-rule head that overwrites or leaves: with k_i a unit vector and b_i = 1 in S_i = S_{i-1}
(I - b_i k_i k_i^T) + b_i v_i k_i^T the token's value replaces one column of S, its slot; with k_i
or b_i 0 nothing changes. Every number is a value, or a difference of two: in the parallel form,
too, where the triangular system of a chunk has entries 0 and 1, and its solution is v_i less what
the slot held.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from separatrix.core.errors import CheckFailed
from separatrix.mixers import Mixer
from separatrix.mixers.base.recurrent import SHORTEST_LENGTH, RecurrentMixer
from separatrix.mixers.delta import DeltaNetMixer, DeltaProductMixer, GDNMixer, KDAMixer
from separatrix.proofs.derivations.parts.live_parts import Head, Live, array, weights_of
from separatrix.proofs.exact import SATURATED, Digits, Exactly, lowest
from separatrix.proofs.machine import Array
from separatrix.tasks.base.task import Tokens

_STEEPEST = 64.0
"""Largest rate e^s of a decay, as its s."""
_LARGEST_GATE = 2.0**14
"""Largest argument of a gate."""
_PARAMETERS: dict[type[Mixer], tuple[str, ...]] = {
    DeltaNetMixer: ("b.weight",),
    GDNMixer: ("b.weight", "a.weight", "a.bias", "rate"),
    DeltaProductMixer: ("b.weight", "a.weight", "a.bias", "rate"),
    KDAMixer: ("b.weight", "a.down.weight", "a.up.weight", "a.up.bias", "rate"),
}
"""The mixers that are evaluated, and their parameters beside q, k, v and o."""
_NUMBERS = 1 << 22
"""Numbers of states that are held at once."""


@dataclass(frozen=True, kw_only=True)
class Updates:
    """What tokens do to the state of a head, a row for each token: keys (t, m, d), values (t, m, e)
    and strengths (t, m) of m updates in turn, and queries (t, d).
    """

    k: Array
    v: Array
    b: Array
    q: Array

    def only(self, keys: NDArray[np.bool_], values: NDArray[np.bool_]) -> Updates:
        """The same in these key and value numbers."""
        return Updates(k=self.k[..., keys], v=self.v[..., values], b=self.b, q=self.q[:, keys])


@dataclass(frozen=True, kw_only=True)
class Followed:
    """What a task asks to be followed: classes of prefixes, how tokens move them, and the answer
    that is due after each.
    """

    first: Tokens
    """(ids,): the class of a prefix of one token."""
    step: Tokens
    """(classes, ids): the class after one more token."""
    answers: Tokens

    @property
    def free(self) -> Followed:
        """The same with a single class: anything may be answered."""
        return Followed(
            first=np.zeros_like(self.first),
            step=np.zeros_like(self.step[:1]),
            answers=np.zeros(1, np.int64),
        )


@dataclass(frozen=True, kw_only=True)
class Reached:
    """The states that some prompt leads to (s, d, e), the class of each, and the largest number of
    all on the way.
    """

    states: Array
    classes: Tokens
    largest: float
    lowest: int


def live_heads(part: Live, heads: int) -> tuple[RecurrentMixer, list[int]]:
    """The mixer, and the heads that write. Raises CheckFailed for a mixer of another kind, options
    that are not evaluated, another number of heads, or a head beside them that is not all zero.
    """
    mixer = part.mixer
    where = part.where
    known = _PARAMETERS.get(type(mixer))
    turning = mixer.mechanism.turning
    if known is None or turning is None or not turning.bare:
        raise CheckFailed(
            f"{where}: {mixer.mechanism.name} has no negative eigenvalues, or options (a"
            " convolution, a gate, ...) that the proof does not cover"
        )
    assert isinstance(mixer, RecurrentMixer)
    live = weights_of(mixer, where, *known, updates=mixer.updates).live
    if len(live) != heads:
        raise CheckFailed(f"{where}: {len(live)} heads write, where the construction uses {heads}")
    return mixer, live


def tame(mixer: RecurrentMixer, x: Array, where: str) -> None:
    """Raises CheckFailed unless the gates of every head, of those that are not used too, are
    numbers in any format: a head that writes 0 adds 0 only then.
    """
    size = through = np.abs(x).max(0, initial=0.0)
    maps = dict(mixer.named_parameters())
    for name in ("b", "a.down", "a.up", "a"):
        if f"{name}.weight" not in maps:
            continue
        sums = np.abs(array(maps[f"{name}.weight"])) @ (through if name == "a.up" else size)
        if f"{name}.bias" in maps:
            sums = sums + np.abs(array(maps[f"{name}.bias"]))
        if not (sums <= _LARGEST_GATE).all():
            raise CheckFailed(f"{where}, {name}: a gate's argument may overflow a half format")
        through = sums
    rates = np.abs(array(maps["rate"])) if "rate" in maps else np.zeros(1)
    if not (rates <= _STEEPEST).all():
        raise CheckFailed(f"{where}, a: a rate e^{float(rates.max()):g} may overflow")


def updates_of(
    mixer: RecurrentMixer,
    head: int,
    x: Array,
    whole: Exactly,
    where: str,
    more: Array | float = 0.0,
) -> Updates:
    """What tokens of these inputs, a row each, do to a head's state; `more`: what the argument of
    their gates is beside what the inputs say. Raises CheckFailed unless all of it is exact: gates
    saturated, and keys and queries of length 0 or 1.
    """
    m = mixer.updates
    weights = weights_of(mixer, where, *_PARAMETERS[type(mixer)], updates=m)
    (q,), k, v = (weights.own(x, head) for x in (weights.q, weights.k, weights.v))
    b = array(mixer.get_parameter("b.weight")).reshape(m, mixer.heads, -1)[:, head]
    tokens = len(x)
    keys = whole.mapped(x, k.reshape(-1, k.shape[-1]), what=f"{where}, k")
    values = whole.mapped(x, v.reshape(-1, v.shape[-1]), what=f"{where}, v")
    queries = whole.mapped(x, q, what=f"{where}, q")
    gates = (whole.mapped(x, b, what=f"{where}, b").T + more).T
    _keeps(mixer, head, x, whole, where)
    tame(mixer, x, where)
    found = Updates(
        k=_unit(keys.reshape(tokens, m, -1), f"{where}, k"),
        v=values.reshape(tokens, m, -1),
        b=_strengths(mixer, gates, where),
        q=_unit(queries, f"{where}, q"),
    )
    idle = ~found.k.any(-1)
    # a key of 0 adds nothing, whatever the gate says
    return Updates(k=found.k, v=found.v, b=np.where(idle, 0.0, found.b), q=found.q)


def _strengths(mixer: RecurrentMixer, gates: Array, where: str) -> Array:
    """b = 0, or the most there is. Raises CheckFailed where a gate is not saturated."""
    open_ = np.abs(gates) < SATURATED
    # a key of 0 needs no gate, but none is left in between
    if open_.any():
        raise CheckFailed(
            f"{where}, b: a gate of {float(gates[open_][0]):g} is not saturated, so that b is"
            " neither 0 nor the most there is"
        )
    return np.where(gates > 0, getattr(mixer, "largest", 1.0), 0.0)


def _keeps(mixer: RecurrentMixer, head: int, x: Array, whole: Exactly, where: str) -> None:
    """Raises CheckFailed unless the decay is exactly 1 for every token."""
    if isinstance(mixer, DeltaNetMixer):
        return
    name, up, own = f"{where}, a", "a", slice(head, head + 1)
    if isinstance(mixer, KDAMixer):
        up, own = "a.up", slice(head * mixer.head_dim, (head + 1) * mixer.head_dim)
        x = whole.mapped(x, array(mixer.get_parameter("a.down.weight")), what=name)
    weight, bias = (array(mixer.get_parameter(f"{up}.{one}"))[own] for one in ("weight", "bias"))
    steps = whole.mapped(x, weight, bias, what=name)
    if (steps > -SATURATED).any():
        raise CheckFailed(
            f"{name}: a decay's argument is {float(steps.max()):g}, so that it is not exactly 1"
        )


def _unit(x: Array, what: str) -> Array:
    """Vectors divided by their length, which must be 0, a power of two or that of their one number:
    root and quotient are exact then.
    """
    squares = (x * x).sum(-1, keepdims=True)
    mantissa, exponent = np.frexp(squares)
    # 4^s is 1/2 times 2^(2 s + 1); entries have few digits, so that float64 adds them exactly
    power = (mantissa == 0.5) & (exponent % 2 == 1)
    alone = (x != 0.0).sum(-1, keepdims=True) == 1
    if not ((squares == 0) | ((power | alone) & (squares > SHORTEST_LENGTH**2))).all():
        raise CheckFailed(f"{what}: a vector's length is no power of two, so that it is rounded")
    # all squares are multiples of 4^lowest
    if x.any() and float(squares.max()) > 2.0 ** (24 + 2 * lowest(x)):
        raise CheckFailed(f"{what}: the squares of a vector may be rounded")
    return x / np.sqrt(np.where(squares == 0, 1.0, squares))


def reach(
    first: Updates, later: Updates, followed: Followed, allowed: tuple[Tokens, Tokens], where: str
) -> Reached:
    """Every state that a prompt leads to, and its class. The first token is one of `allowed[0]`, as
    `first` has it, any later one of `allowed[1]`. Raises CheckFailed where one state has two
    answers, or states do not close.
    """
    most = 2 * len(followed.answers) + 2
    found = _explored(first, later, followed, allowed, most, where)
    if first is later:
        return found
    # a chunk of the parallel form starts from 0 wherever it stands
    within = _explored(later, later, followed.free, (allowed[1], allowed[1]), most, where)
    return replace(
        found,
        largest=max(found.largest, within.largest),
        lowest=min(found.lowest, within.lowest),
    )


def _explored(
    first: Updates,
    later: Updates,
    followed: Followed,
    allowed: tuple[Tokens, Tokens],
    most: int,
    where: str,
) -> Reached:
    """Takes steps until no new state is met, of which there are so many at most."""
    shape = (later.k.shape[2], later.v.shape[2])
    known: dict[bytes, int] = {}
    states: list[Array] = []
    largest, least = 0.0, 0

    def stepped(states: Array, updates: Updates, tokens: Tokens) -> Array:
        """(s t, d, e): each state after each token."""
        nonlocal largest, least
        after = np.repeat(states[:, None], len(tokens), axis=1)
        for j in range(updates.k.shape[1]):
            k, v, b = (x[tokens, j] for x in (updates.k, updates.v, updates.b))
            asked = np.einsum("td,stde->ste", k, after)
            after = after + (b[:, None] * k)[:, :, None] * (v - asked)[:, :, None]
            largest = max(largest, float(np.abs(after).max(initial=0.0)))
            least = min(least, lowest(after))
            if largest > 2.0**20 or least < -20:
                raise CheckFailed(f"{where}: states do not stay small")
        return after.reshape(-1, *shape)

    def note(after: Array, classes: Tokens) -> None:
        """States with their classes."""
        rows = np.ascontiguousarray(after.reshape(len(after), -1)) + 0.0  # -0 is 0
        view = rows.view(np.dtype((np.void, rows.shape[1] * 8))).ravel()
        _, at, back = np.unique(view, return_index=True, return_inverse=True)
        alike = (classes[at[back]] == classes).all()
        for index in at.tolist():
            key = rows[index].tobytes()
            if key not in known:
                states.append(after[index] + 0.0)
            alike &= known.setdefault(key, int(classes[index])) == classes[index]
        # of two classes with one answer some continuation may tell apart
        if not alike:
            raise CheckFailed(f"{where}: prompts of two answers leave the same state")
        if len(states) > most:
            raise CheckFailed(f"{where}: states do not close: more than {most:,} of them")

    note(stepped(np.zeros((1, *shape)), first, allowed[0]), followed.first[allowed[0]])
    rows = max(1, _NUMBERS // (len(allowed[1]) * shape[0] * shape[1]))
    at = 0
    while at < len(states):
        some = np.stack(states[at : at + rows])
        kinds = np.array(list(known.values())[at : at + rows], np.int64)
        at += len(some)
        classes = followed.step[np.ix_(kinds, allowed[1])]
        note(stepped(some, later, allowed[1]), classes.ravel())
    kinds = np.array(list(known.values()), np.int64)
    return Reached(states=np.stack(states), classes=kinds, largest=largest, lowest=least)


def note_states(
    parts: list[Updates], found: Reached, digits: Digits, chunk: int, what: str
) -> None:
    """Notes the digits of everything the recurrence computes, in both forms, in chunks of so many
    updates. Raises CheckFailed where float32 may round any of it.
    """
    k = np.concatenate([part.k.reshape(-1, part.k.shape[2]) for part in parts])
    v = np.concatenate([part.v.reshape(-1, part.v.shape[2]) for part in parts])
    q = np.concatenate([part.q for part in parts])
    dims = k.shape[1]
    fine = {name: lowest(x) for name, x in (("k", k), ("v", v), ("q", q))}
    row = float(np.abs(k).sum(1).max(initial=0.0))
    reads = float(np.abs(q).sum(1).max(initial=0.0))
    value = float(np.abs(v).max(initial=0.0))
    state, bits = found.largest, found.lowest

    # step form: R^T k, v less that, b times it, b k (...), and the new state
    asked = min(fine["k"] + bits, fine["v"])
    change = 2 * (value + row * state)
    digits.sum(change, asked, f"{what}, an update")
    digits.sum(state + change, min(bits, fine["k"] + asked + 1), f"{what}, an update")
    digits.keep(state, bits, f"{what}, the state")
    digits.sum(reads * state, fine["q"] + bits, f"{what}, what is read")

    # parallel form: L, U from both right-hand sides, what a chunk does to the state, and reads
    products = k @ np.unique(k, axis=0).T
    if lowest(2 * products) < 0:
        raise CheckFailed(f"{what}: 2 <k, k'> of two keys is no integer: the parallel form rounds")
    digits.sum(2 * row, 2 * fine["k"], f"{what}, keys against keys")
    solved = 2 * (value + row * state)
    for size, lowest_ in ((solved, fine["v"] + 1), (2.0, fine["k"] + 1)):
        # each row is made by subtracting up to `chunk` multiples, by at most 2, of other rows
        digits.sum((1 + 2 * chunk) * max(size, 2.0), min(lowest_, 0), f"{what}, the solution")
        digits.sum(1 + chunk * size, fine["k"] + min(lowest_, 0), f"{what}, the change of a chunk")
    moved = 1 + 2.0 * chunk
    carried = min(2 * fine["k"] + 1, 0) + bits
    total = dims * moved * state + chunk * solved
    digits.sum(total, min(carried, fine["k"] + fine["v"] + 1), f"{what}, the state of a chunk")
    asks = fine["q"] + fine["k"]
    digits.sum(
        reads * (1 + 2.0 * chunk) * (1 + dims * state) + reads * chunk * solved,
        min(asks + min(fine["k"] + 1, 0), fine["q"]) + min(bits, fine["v"] + 1, 0),
        f"{what}, the output of a chunk",
    )


@dataclass(frozen=True, kw_only=True)
class Moves:
    """What a delta-rule head does at some rows: slots are numbered as dimensions of keys, and -1 is
    none.
    """

    writes: NDArray[np.int64]
    reads: NDArray[np.int64]
    values: Array
    made_of: Array
    """(n, .): keys, queries, values and strengths."""

    def same(self, some: NDArray[np.bool_], others: NDArray[np.bool_]) -> bool:
        """Whether some rows are made of the same numbers as others, and so are all between them
        where what they are mapped from is affine: whole multiples of a unit vector on its one side
        are such between each other, and gates as far open or shut.
        """
        return bool(np.array_equal(self.made_of[some], self.made_of[others]))


def delta_head(part: Live) -> Head:
    """The live head of DeltaNet, gated or not."""
    known = _PARAMETERS.get(type(part.mixer), ())
    return part.head(DeltaNetMixer | GDNMixer, "DeltaNet, gated or not", *known)


def moves(part: Live, rows: Array, tokens: int, whole: Exactly, more: Array | float = 0.0) -> Moves:
    """What the head of a layer does at rows of the residual stream, in prompts of so many tokens
    that write; `more`: what the gate's argument is beside what the rows say. Raises CheckFailed
    where it neither overwrites nor leaves, or not exactly.
    """
    head, mixer, where = delta_head(part), part.mixer, part.where
    assert isinstance(mixer, DeltaNetMixer | GDNMixer)
    found = updates_of(mixer, head.index, rows, whole, where, more)
    (keys,), (values,) = (x.swapaxes(0, 1) for x in (found.k, found.v))
    note_sums(part, float(np.abs(values).max(initial=0.0)), lowest(values), tokens, whole)
    return Moves(
        writes=np.where(found.b[:, 0] > 0, _slot(keys, f"{where}, k"), -1),
        reads=_slot(found.q, f"{where}, q"),
        values=values,
        made_of=np.concatenate([keys, found.q, values, found.b], 1),
    )


def note_sums(part: Live, most: float, bits: int, tokens: int, whole: Exactly) -> None:
    """Notes the digits of values of at most this size, all multiples of 2^bits, where so many
    tokens write: what is solved for in the parallel form is a difference of two; sums over tokens.
    """
    whole.digits.sum(4 * tokens * most, bits, f"{part.where}, sums")


def _slot(rows: Array, what: str) -> NDArray[np.int64]:
    """The dimension of each row that is a unit vector; -1 for 0."""
    if not (np.isin(rows, (0.0, 1.0)).all() and (rows.sum(1) <= 1).all()):
        raise CheckFailed(f"{what}: neither 0 nor a multiple of a unit vector")
    return np.where(rows.any(1), rows.argmax(1), -1)
