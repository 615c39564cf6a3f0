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
    loglinear           that of its base                   times lambda          as in its base

b = sigmoid(B x), times 2 with negative eigenvalues. Of RWKV-7 nothing is erased, of RWKV-6 a token
reads what the one before it left.
"""

from __future__ import annotations

from collections.abc import Callable

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
from separatrix.mixers.loglinear import LogLinearGDNMixer, LogLinearMamba2Mixer, LogLinearMixer
from separatrix.mixers.mlstm import MLSTMMixer
from separatrix.mixers.ops.fenwick import LEVELS
from separatrix.mixers.rwkv import DECAY, RWKVMixer
from separatrix.mixers.rwkv6 import RWKV6Mixer
from separatrix.proofs.derivations.parts.arriving import Written
from separatrix.proofs.derivations.parts.gates import (
    exponential,
    log_sigmoid,
    sigmoid,
    silu,
    softplus,
)
from separatrix.proofs.derivations.parts.live_parts import Live, array
from separatrix.proofs.derivations.parts.recurrent_maps import Maps, not_narrowed, own, zero
from separatrix.proofs.derivations.parts.steps import Rotated, Rows
from separatrix.proofs.derivations.parts.stream import Stream
from separatrix.proofs.derivations.parts.sums import features
from separatrix.proofs.derivations.parts.unit import unit
from separatrix.proofs.machine import Array, Enclosure, linear, times

Reader = Callable[[Stream, Live], tuple[Maps, Written]]


def _still(stream: Stream) -> Enclosure:
    """No decay at any place."""
    inner = stream.by_place.arithmetic.inner
    return Enclosure.point(np.zeros((len(stream.by_place.mid), 1)), inner)


def _queries(maps: Maps, stream: Stream) -> tuple[Enclosure, Enclosure]:
    """Of the last token, and of any."""
    return maps.queries(stream.at_last()), maps.queries(stream.by_place.hull())


def _gate(
    maps: Maps, stream: Stream, name: str, axes: tuple[int, ...] = (), index: int | None = None
) -> Enclosure:
    """What the map of a gate gives at each place: its weight, and its bias where it has one."""
    mixer, what = maps.mixer, f"{maps.where}, {name}"
    head = maps.index if index is None else index
    parameters = dict(mixer.named_parameters())
    weight = own(array(parameters[f"{name}.weight"]), (mixer.heads, *axes), head, what)
    bias = None
    if f"{name}.bias" in parameters:
        bias = own(array(parameters[f"{name}.bias"]), (mixer.heads, *axes), head, what)
        bias = np.atleast_1d(bias)
    return linear(stream.by_place, np.atleast_2d(weight), bias, what=what).summed()


def _low_rank(
    maps: Maps, stream: Stream, name: str, axes: tuple[int, ...], *, tanh: bool = False
) -> Enclosure:
    """W_2 f(W_1 x) + c at each place, of the live head."""
    what = f"{maps.where}, {name}"
    parameters = dict(maps.mixer.named_parameters())
    x = linear(stream.by_place, array(parameters[f"{name}.down.weight"]), what=what)
    if tanh:
        # whatever it is, it lies between -1 and 1
        most = 1.0 + 80 * float(x.arithmetic.stored)
        x = x.like(np.zeros_like(x.mid), np.where(x.size == 0, 0.0, most))
    heads = (maps.mixer.heads, *axes)
    weight = own(array(parameters[f"{name}.up.weight"]), heads, maps.index, what)
    bias = own(array(parameters[f"{name}.up.bias"]), heads, maps.index, what)
    return linear(x, weight, bias, what=what).summed()


def _rated(maps: Maps, steps: Enclosure) -> Enclosure:
    """-e^s times the steps."""
    what = f"{maps.where}, rate"
    parameters = dict(maps.mixer.named_parameters())
    s = own(array(parameters["rate"]), (maps.mixer.heads,), maps.index, what)
    rate = exponential(Enclosure.point(np.array([[float(s)]]), steps.arithmetic), what)
    product = times(steps, rate, what)
    return product.like(-product.mid, product.rad)


def _strength(maps: Maps, stream: Stream, weight: Array, largest: float) -> Enclosure:
    what = f"{maps.where}, b"
    rows = linear(stream.by_place.hull(), weight, what=what).summed()
    b = sigmoid(rows, what)
    return b.like(b.mid * largest, b.rad * largest)


def _delta(stream: Stream, maps: Maps, log_decay: Enclosure) -> Written:
    """Of the delta rule: one update writes, all others have keys of 0."""
    mixer, where = maps.mixer, maps.where
    largest = getattr(mixer, "largest", 1.0)
    for update in range(1, mixer.updates):
        if maps.keys(stream.by_place, update).size.any():
            raise CheckFailed(f"{where}: update {update + 1} of a token has a key that is not zero")
    b = array(mixer.get_parameter("b.weight"))
    b = own(b, (mixer.updates * mixer.heads,), maps.index, f"{where}, b")
    last, anyone = _queries(maps, stream)
    return Written(
        keys=unit(maps.keys(stream.by_place), f"{where}, k"),
        last=unit(last, f"{where}, q"),
        anyone=unit(anyone, f"{where}, q"),
        log_decay=log_decay,
        strength=_strength(maps, stream, b[None], largest),
        alone=True,
    )


def _deltanet(stream: Stream, part: Live) -> tuple[Maps, Written]:
    maps = Maps.of(part, stream, "b.weight")
    return maps, _delta(stream, maps, _still(stream))


def _gated_delta(stream: Stream, part: Live) -> tuple[Maps, Written]:
    maps = Maps.of(part, stream, "a.weight", "a.bias", "b.weight", "rate")
    steps = softplus(_gate(maps, stream, "a"), f"{maps.where}, a")
    return maps, _delta(stream, maps, _rated(maps, steps))


def _kda(stream: Stream, part: Live) -> tuple[Maps, Written]:
    maps = Maps.of(part, stream, "a.down.weight", "a.up.weight", "a.up.bias", "b.weight", "rate")
    steps = _low_rank(maps, stream, "a", (maps.mixer.head_dim,))
    return maps, _delta(stream, maps, _rated(maps, softplus(steps, f"{maps.where}, a")))


def _plainly(stream: Stream, maps: Maps, log_decay: Enclosure) -> Written:
    last, anyone = _queries(maps, stream)
    return Written(
        keys=maps.keys(stream.by_place),
        last=last,
        anyone=anyone,
        log_decay=log_decay,
        strength=last.like(np.ones((1, 1)), np.zeros((1, 1))),
    )


def _with(found: Written, **changed: object) -> Written:
    """The same with other fields."""
    return Written(**(vars(found) | changed))  # type: ignore[arg-type]


def _gla(stream: Stream, part: Live) -> tuple[Maps, Written]:
    maps = Maps.of(part, stream, "a.down.weight", "a.up.weight", "a.up.bias")
    logs = log_sigmoid(_low_rank(maps, stream, "a", (maps.mixer.head_dim,)), f"{maps.where}, a")
    # a power of two: exact
    scaled = logs.like(logs.mid / TEMPERATURE, logs.rad / TEMPERATURE)
    return maps, _plainly(stream, maps, scaled)


def _hgrn2(stream: Stream, part: Live) -> tuple[Maps, Written]:
    maps = Maps.of(part, stream)
    forget = maps.keys(stream.by_place)
    last, anyone = _queries(maps, stream)
    what = f"{maps.where}, k"
    return maps, Written(
        keys=sigmoid(forget.like(-forget.mid, forget.rad), what),
        last=silu(last, f"{maps.where}, q"),
        anyone=silu(anyone, f"{maps.where}, q"),
        log_decay=log_sigmoid(forget, what),
        strength=last.like(np.ones((1, 1)), np.zeros((1, 1))),
    )


def _fixed(stream: Stream, log_a: float) -> Enclosure:
    """The same decay at every place, computed in a few operations."""
    full = np.full((len(stream.by_place.mid), 1), log_a)
    inner = stream.by_place.arithmetic.inner
    return Enclosure(full, np.abs(full) * 80 * float(inner.summed), inner)


def _lightning(stream: Stream, part: Live) -> tuple[Maps, Written]:
    maps = Maps.of(part, stream)
    log_a = -(2.0 ** (-8.0 * (maps.index + 1) / maps.mixer.heads))
    found = _plainly(stream, maps, _fixed(stream, log_a))
    return maps, _with(found, summed=True)


def _retnet(stream: Stream, part: Live) -> tuple[Maps, Written]:
    maps = Maps.of(part, stream)
    log_a = float(np.log1p(-(2.0 ** (-5.0 - maps.index))))
    found = _plainly(stream, maps, _fixed(stream, log_a))
    rotated = Rotated(Rotation(BASE, maps.mixer.head_dim))
    tokens = len(stream.by_place.mid)

    def turned(x: Enclosure, places: NDArray[np.int64] | None) -> Enclosure:
        (rows,) = rotated.mapped("k", Rows((x,), places), maps.where).parts
        return rows

    return maps, _with(
        found,
        keys=turned(found.keys, np.arange(tokens)),
        last=turned(found.last, np.array([tokens - 1])),
        anyone=turned(found.anyone, None),
        summed=True,
        assumes=(rotated.assumes,),
    )


def _mamba2(stream: Stream, part: Live) -> tuple[Maps, Written]:
    maps = Maps.of(part, stream, "dt.weight", "dt.bias", "rate", "skip")
    return maps, _stepped(stream, maps)


def _stepped(stream: Stream, maps: Maps) -> Written:
    zero({"skip": maps.mixer.get_parameter("skip")}, maps.where)
    steps = softplus(_gate(maps, stream, "dt"), f"{maps.where}, dt")
    found = _plainly(stream, maps, _rated(maps, steps))
    return _with(found, strength=steps.hull())


def _mlstm(stream: Stream, part: Live) -> tuple[Maps, Written]:
    maps = Maps.of(part, stream, "f.weight", "f.bias", "i.weight", "i.bias")
    not_narrowed(maps.stored, maps.where)
    log_f = log_sigmoid(_gate(maps, stream, "f"), f"{maps.where}, f")
    log_g = _gate(maps, stream, "i")
    if float(log_g.size.max()) > 8:
        raise CheckFailed(f"{maps.where}: its input gate may be e^{float(log_g.size.max()):g}")
    found = _plainly(stream, maps, log_f.like(log_f.mid, log_f.rad + log_g.size))
    gate = exponential(log_g.hull(), f"{maps.where}, i")
    return maps, _with(found, strength=gate, capped=True)


def _own_parameters(maps: Maps, *names: str) -> None:
    zero({name: maps.mixer.get_parameter(name) for name in names}, maps.where)


def _channel_mixing(maps: Maps) -> None:
    inner = {n: p for n, p in maps.mixer.named_parameters() if n.startswith("mixing.")}
    zero(inner, maps.where)


_MIXING = ("mixing.mu", "mixing.k.weight", "mixing.v.weight", "mixing.r.weight")


def _rwkv7(stream: Stream, part: Live) -> tuple[Maps, Written]:
    decay = ("w.down.weight", "w.up.weight", "w.up.bias")
    rate = ("a.down.weight", "a.up.weight", "a.up.bias")
    learned = ("mu", "erased", "written", "bonus")
    maps = Maps.of(part, stream, *decay, *rate, *learned, *_MIXING)
    # no token is mixed with the one before it, nothing is erased, keys are what is mapped to
    _own_parameters(maps, *learned)
    _channel_mixing(maps)
    # sigmoid of anything that is finite, times 0
    _low_rank(maps, stream, "a", (maps.mixer.head_dim,))
    opened = sigmoid(
        _low_rank(maps, stream, "w", (maps.mixer.head_dim,), tanh=True), f"{maps.where}, w"
    )
    off = 8 * float(opened.arithmetic.summed)
    logs = opened.like(DECAY * opened.mid, -DECAY * opened.rad + off)
    return maps, _with(_plainly(stream, maps, logs), alone=True)


def _rwkv6(stream: Stream, part: Live) -> tuple[Maps, Written]:
    decay = ("w.down.weight", "w.up.weight", "w.up.bias")
    learned = ("mus", "up", "bonus")
    maps = Maps.of(part, stream, *decay, *learned, "mu", "down.weight", *_MIXING)
    _own_parameters(maps, *learned)
    _channel_mixing(maps)
    # what is mixed in is multiplied with 0, if it is finite
    linear(stream.by_place.hull(), array(maps.mixer.get_parameter("down.weight")), what=maps.where)
    if float(maps.mixer.get_parameter("mu").abs().max()) > 2.0**20:
        raise CheckFailed(f"{maps.where}: mu is too large")
    opened = exponential(
        _low_rank(maps, stream, "w", (maps.mixer.head_dim,), tanh=True), f"{maps.where}, w"
    )
    found = _plainly(stream, maps, opened.like(-opened.mid, opened.rad))
    return maps, _with(found, early=True)


def _levels(stream: Stream, maps: Maps, found: Written) -> Written:
    """Read with a weight for each level: between the smallest and the largest of all levels."""
    mixer, what = maps.mixer, f"{maps.where}, lambda"
    weight = array(mixer.get_parameter("level.weight")).reshape(LEVELS, mixer.heads, -1)
    if np.delete(weight, maps.index, 1).any():
        raise CheckFailed(f"{what}: of a head that is not used it is not zero")
    given = linear(stream.by_place.hull(), weight[:, maps.index], what=what).summed()
    rows = softplus(given, what)
    level = rows.spanning(rows.low.min(1, keepdims=True), rows.high.max(1, keepdims=True))
    strength = times(found.strength, level, what)
    return _with(found, strength=strength, more=found.more + 2 * LEVELS)


def _log_linear(stream: Stream, part: Live) -> tuple[Maps, Written]:
    maps = Maps.of(part, stream, "level.weight")
    found = _plainly(stream, maps, _still(stream))
    feature = maps.mixer.mechanism.sizes()["feature"]
    mapped = _with(
        found,
        keys=features(feature, found.keys),
        last=features(feature, found.last),
        anyone=features(feature, found.anyone),
    )
    return maps, _levels(stream, maps, mapped)


def _log_linear_delta(stream: Stream, part: Live) -> tuple[Maps, Written]:
    maps = Maps.of(part, stream, "a.weight", "a.bias", "b.weight", "rate", "level.weight")
    steps = softplus(_gate(maps, stream, "a"), f"{maps.where}, a")
    found = _delta(stream, maps, _rated(maps, steps))
    return maps, _levels(stream, maps, found)


def _log_linear_mamba2(stream: Stream, part: Live) -> tuple[Maps, Written]:
    maps = Maps.of(part, stream, "dt.weight", "dt.bias", "rate", "skip", "level.weight")
    return maps, _levels(stream, maps, _stepped(stream, maps))


MATRIX_STATES: dict[type[Mixer], Reader] = {
    DeltaNetMixer: _deltanet,
    GDNMixer: _gated_delta,
    DeltaProductMixer: _gated_delta,
    KDAMixer: _kda,
    GLAMixer: _gla,
    HGRN2Mixer: _hgrn2,
    LightningMixer: _lightning,
    RetNetMixer: _retnet,
    Mamba2Mixer: _mamba2,
    MLSTMMixer: _mlstm,
    RWKVMixer: _rwkv7,
    RWKV6Mixer: _rwkv6,
    LogLinearMixer: _log_linear,
    LogLinearGDNMixer: _log_linear_delta,
    LogLinearMamba2Mixer: _log_linear_mamba2,
}
"""Mixer -> how its head is read."""
