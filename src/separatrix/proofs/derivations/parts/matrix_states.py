"""Keys, queries, decays and strengths of every recurrence with a matrix state, as computed.

    mixer               log a                              g                     q, k
    deltanet            0                                  b                     of length 1
    gdn, deltaproduct   -e^s softplus(A x + c)             b                     of length 1
    kda                 the same, by key dimension         b                     of length 1
    gla                 log sigmoid(W_2 W_1 x + c) / 16    1                     as mapped
    hgrn2               log sigmoid(K x)                   1                     silu, sigmoid(-K x)
    lightning           of the head                        1                     as mapped
    retnet              of the head                        1                     rotated
    mamba2              -e^s D                             D = softplus(W x + c) as mapped
    mlstm               log sigmoid(F x + c)               exp(G x + c)          as mapped
    rwkv, version 7     -e^(-1/2) sigmoid(W_2 tanh + w_0)  1                     as mapped
    rwkv, version 6     -exp(W_2 tanh + w_0)               1                     as mapped
    linear              0                                  1                     behind features
    loglinear           that of its base                   times lambda          as in its base

b = sigmoid(B x), times 2 with negative eigenvalues. Of RWKV-7 nothing is erased, of RWKV-6 a token
reads what the one before it left.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from separatrix.core.errors import CheckFailed
from separatrix.core.numbers.rotary import Rotation
from separatrix.mixers import Mixer
from separatrix.mixers.decayed import (
    BASE,
    TEMPERATURE,
    GLAMixer,
    HGRN2Mixer,
    LightningMixer,
    Mamba2Mixer,
    RetNetMixer,
)
from separatrix.mixers.delta import DeltaNetMixer, DeltaProductMixer, GDNMixer, KDAMixer
from separatrix.mixers.linear import LinearMixer
from separatrix.mixers.loglinear import (
    LEVELS,
    LogLinearGDNMixer,
    LogLinearMamba2Mixer,
    LogLinearMixer,
)
from separatrix.mixers.mlstm import MLSTMMixer
from separatrix.mixers.rwkv import DECAY, RWKV6Mixer, RWKVMixer
from separatrix.proofs.balls import exp_bounds
from separatrix.proofs.derivations.parts.arriving import Written
from separatrix.proofs.derivations.parts.live_parts import Live, array
from separatrix.proofs.derivations.parts.recurrent_maps import (
    Maps,
    each,
    exponential,
    log_sigmoid,
    not_narrowed,
    sigmoid,
    silu,
    softplus,
    unit,
)
from separatrix.proofs.derivations.parts.steps import Rotated, Rows, own_group
from separatrix.proofs.derivations.parts.stream import Stream
from separatrix.proofs.machine import Enclosure, linear, times


def _written(head: Maps, log_decay: Enclosure) -> Written:
    """Keys and queries as they are mapped, a strength of 1."""
    last = head.queries(head.stream.at_last())
    return Written(
        keys=head.keys(head.stream.by_place),
        last=last,
        anyone=head.queries(head.stream.by_place.hull()),
        log_decay=log_decay,
        strength=last.like(np.ones((1, 1)), np.zeros((1, 1))),
    )


def _through(
    head: Maps, found: Written, keys: Callable[..., Enclosure], queries: Callable[..., Enclosure]
) -> Written:
    """The same behind functions of keys and queries."""
    return replace(
        found,
        keys=keys(found.keys, f"{head.where}, k"),
        last=queries(found.last, f"{head.where}, q"),
        anyone=queries(found.anyone, f"{head.where}, q"),
    )


def _delta(head: Maps, log_decay: Enclosure) -> Written:
    """Of the delta rule: one update writes, all others have keys of 0."""
    stream, mixer, where = head.stream, head.mixer, head.where
    largest = getattr(mixer, "largest", 1.0)
    for update in range(1, mixer.updates):
        if head.keys(stream.by_place, update).size.any():
            raise CheckFailed(f"{where}: update {update + 1} of a token has a key that is not zero")
    b = array(mixer.get_parameter("b.weight"))
    b = own_group(b, head.index, len(b), f"{where}: b")
    rows = linear(stream.by_place.hull(), b[None], what=f"{where}, b").summed()
    strength = sigmoid(rows, f"{where}, b")
    strength = strength.like(strength.mid * largest, strength.rad * largest)
    found = replace(_written(head, log_decay), strength=strength, alone=True)
    return _through(head, found, unit, unit)


def _gated_delta(head: Maps) -> Written:
    return _delta(head, head.rated(softplus(head.gate("a"), f"{head.where}, a")))


def _kda(head: Maps) -> Written:
    return _delta(head, head.rated(softplus(head.low_rank("a"), f"{head.where}, a")))


def _gla(head: Maps) -> Written:
    logs = log_sigmoid(head.low_rank("a"), f"{head.where}, a")
    # a power of two: exact
    return _written(head, logs.like(logs.mid / TEMPERATURE, logs.rad / TEMPERATURE))


def _hgrn2(head: Maps) -> Written:
    forget = head.keys(head.stream.by_place)
    found = _written(head, log_sigmoid(forget, f"{head.where}, k"))
    return _through(head, found, lambda k, what: sigmoid(-k, what), silu)


def _lightning(head: Maps) -> Written:
    log_a = -(2.0 ** (-8.0 * (head.index + 1) / head.mixer.heads))
    return replace(_written(head, head.constant(log_a)), summed=True)


def _retnet(head: Maps) -> Written:
    log_a = float(np.log1p(-(2.0 ** (-5.0 - head.index))))
    found = _written(head, head.constant(log_a))
    rotated = Rotated(Rotation(BASE, head.mixer.head_dim))
    tokens = len(head.stream.by_place.mid)

    def turned(x: Enclosure, places: NDArray[np.int64] | None) -> Enclosure:
        (rows,) = rotated.mapped("k", Rows((x,), places), head.where).parts
        return rows

    return replace(
        found,
        keys=turned(found.keys, np.arange(tokens)),
        last=turned(found.last, np.array([tokens - 1])),
        anyone=turned(found.anyone, None),
        summed=True,
        assumes=(rotated.assumes,),
    )


def _mamba2(head: Maps) -> Written:
    head.zero("skip")
    steps = softplus(head.gate("dt"), f"{head.where}, dt")
    return replace(_written(head, head.rated(steps)), strength=steps.hull())


def _mlstm(head: Maps) -> Written:
    where = head.where
    not_narrowed(head.stream.last.arithmetic, where)
    log_f = log_sigmoid(head.gate("f"), f"{where}, f")
    log_g = head.gate("i")
    if float(log_g.size.max()) > 8:
        raise CheckFailed(f"{where}: its input gate may be e^{float(log_g.size.max()):g}")
    found = _written(head, log_f.like(log_f.mid, log_f.rad + log_g.size))
    return replace(found, strength=exponential(log_g.hull(), f"{where}, i"), capped=True)


def _rwkv7(head: Maps) -> Written:
    # no token is mixed with the one before it, nothing is erased, keys are what is mapped to
    head.zero("mu", "erased", "written", "bonus", *_mixing(head))
    # sigmoid of anything that is finite, times 0
    head.low_rank("a")
    opened = sigmoid(head.low_rank("w", tanh=True), f"{head.where}, w")
    off = 8 * float(opened.arithmetic.summed)
    logs = opened.like(DECAY * opened.mid, -DECAY * opened.rad + off)
    return replace(_written(head, logs), alone=True)


def _rwkv6(head: Maps) -> Written:
    where, mixer = head.where, head.mixer
    head.zero("mus", "up", "bonus", *_mixing(head))
    # what is mixed in is multiplied with 0, if it is finite
    linear(head.stream.by_place.hull(), array(mixer.get_parameter("down.weight")), what=where)
    if float(mixer.get_parameter("mu").abs().max()) > 2.0**20:
        raise CheckFailed(f"{where}: mu is too large")
    opened = exponential(head.low_rank("w", tanh=True), f"{where}, w")
    return replace(_written(head, -opened), early=True)


def _mixing(head: Maps) -> list[str]:
    """The parameters of channel mixing, where the layer has that."""
    names = (name for name, _ in head.mixer.named_parameters())
    return [name for name in names if name.startswith("mixing.")]


def _levels(head: Maps, found: Written) -> Written:
    """Read with a weight for each level: between the smallest and the largest of all levels."""
    mixer, what = head.mixer, f"{head.where}, lambda"
    weight = array(mixer.get_parameter("level.weight")).reshape(LEVELS, mixer.heads, -1)
    if np.delete(weight, head.index, 1).any():
        raise CheckFailed(f"{what}: of a head that is not used it is not zero")
    given = linear(head.stream.by_place.hull(), weight[:, head.index], what=what).summed()
    rows = softplus(given, what)
    level = rows.spanning(rows.low.min(1, keepdims=True), rows.high.max(1, keepdims=True))
    strength = times(found.strength, level, what)
    entering = float(found.strength.size.max())
    return replace(found, strength=strength, entering=entering, more=found.more + 2 * LEVELS)


def _log_linear(head: Maps) -> Written:
    feature = head.mixer.mechanism.sizes()["feature"]
    found = _written(head, head.constant(0.0))
    return _levels(head, _through(head, found, *[lambda x, what: features(feature, x)] * 2))


def _linear(head: Maps) -> Written:
    mixer, stream = head.mixer, head.stream
    assert isinstance(mixer, LinearMixer)
    found = _written(head, head.constant(0.0))
    # the last token's queries are known apart; here those of the others
    others = stream.by_place.rows(slice(0, len(stream.by_place.mid) - 1)).hull()
    found = replace(found, anyone=head.queries(others), decays=False)
    if mixer.normaliser:
        found = replace(found, averages=_AVERAGES.get(mixer.feature, "any"))
    return _through(head, found, *[lambda x, what: features(mixer.feature, x)] * 2)


_AVERAGES: dict[str, Literal["positive", "half"]] = {"elu": "positive", "taylor": "half"}
"""Feature map -> what is known of all weights: taylor's 1 + s + s^2 / 2 is at least 1/2."""


_LOW = ("down.weight", "up.weight", "up.bias")
_DELTA = ("b.weight", "a.weight", "a.bias", "rate")
_STEPPED = ("dt.weight", "dt.bias", "rate", "skip")
_RWKV = (
    *(f"w.{name}" for name in _LOW),
    "bonus",
    *(f"mixing.{name}" for name in ("mu", "k.weight", "v.weight", "r.weight")),
)
MATRIX_STATES: dict[type[Mixer], tuple[Callable[[Maps], Written], tuple[str, ...]]] = {
    DeltaNetMixer: (lambda head: _delta(head, head.constant(0.0)), ("b.weight",)),
    GDNMixer: (_gated_delta, _DELTA),
    DeltaProductMixer: (_gated_delta, _DELTA),
    KDAMixer: (_kda, ("b.weight", "rate", *(f"a.{name}" for name in _LOW))),
    GLAMixer: (_gla, tuple(f"a.{name}" for name in _LOW)),
    HGRN2Mixer: (_hgrn2, ()),
    LightningMixer: (_lightning, ()),
    RetNetMixer: (_retnet, ()),
    Mamba2Mixer: (_mamba2, _STEPPED),
    MLSTMMixer: (_mlstm, ("f.weight", "f.bias", "i.weight", "i.bias")),
    RWKVMixer: (_rwkv7, (*_RWKV, *(f"a.{name}" for name in _LOW), "mu", "erased", "written")),
    RWKV6Mixer: (_rwkv6, (*_RWKV, "mus", "up", "mu", "down.weight")),
    LinearMixer: (_linear, ()),
    LogLinearMixer: (_log_linear, ("level.weight",)),
    LogLinearGDNMixer: (
        lambda head: _levels(head, _gated_delta(head)),
        (*_DELTA, "level.weight"),
    ),
    LogLinearMamba2Mixer: (
        lambda head: _levels(head, _mamba2(head)),
        (*_STEPPED, "level.weight"),
    ),
}
"""Mixer -> how its head is read, and its parameters beside those of `Maps`."""


def matrix_state(stream: Stream, part: Live) -> tuple[Maps, Written]:
    """What the live head of such a mixer writes and reads."""
    reader, parameters = MATRIX_STATES[type(part.mixer)]
    maps = Maps.of(part, stream, *parameters)
    return maps, reader(maps)


def features(name: str, x: Enclosure) -> Enclosure:
    """phi(x) as computed."""
    if name == "identity":
        return x
    if name == "relu":
        return x.spanning(np.maximum(x.low, 0.0), np.maximum(x.high, 0.0))
    if name == "taylor":
        return _taylor(x)
    return _elu(x)


def _taylor(x: Enclosure) -> Enclosure:
    """(1, x, x (x) x / sqrt 2), or the products that a kernel forms of them."""
    rows, dims = x.mid.shape
    ends = [
        (a[:, :, None] * b[:, None, :]).reshape(rows, dims * dims) * 0.5**0.5
        for a in (x.low, x.high)
        for b in (x.low, x.high)
    ]
    squares = x.spanning(np.min(ends, 0), np.max(ends, 0))
    # the root of 1/2 and the two products
    off = 8 * float(x.arithmetic.summed) * squares.size + x.arithmetic.summed_tiny
    rad = np.where(squares.size == 0, 0.0, (squares.rad + off) * (1 + 2.0**-40))
    ones = np.ones((rows, 1))
    return x.like(
        np.concatenate([ones, x.mid, squares.mid], 1),
        np.concatenate([0 * ones, x.rad, rad], 1),
    )


def _elu(x: Enclosure) -> Enclosure:
    """elu(x) + 1."""
    # elu, and the rounding of the sum
    off = (x.arithmetic.gate_units + 2) * float(x.arithmetic.summed)
    below, over = (each(np.minimum(y, 0), exp_bounds, end) for end, y in enumerate((x.low, x.high)))
    # e^x falls to nothing: what is below -500 is bounded by that of -500
    below = np.where(x.low < -500, 0.0, below)
    low = np.where(x.low >= 0, (x.low + 1) * (1 - off), below - off)
    high = np.where(x.high >= 0, (x.high + 1) * (1 + off), over + off)
    return x.spanning(np.maximum(low, 0.0), high)
