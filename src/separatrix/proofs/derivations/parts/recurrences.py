"""Keys, queries, decays and strengths of every layer with a bounded state, as computed.

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
    mamba               -e^S D, by channel and number      D, by channel         C u, B u
    rglru               -8 ln(1 + e^s) sigmoid(R u + c)    sqrt(1 - a^2) times   1
                                                           sigmoid(G u + c)

b = sigmoid(B x), times 2 with negative eigenvalues. Of RWKV-7 nothing is erased, of RWKV-6 a token
reads what the one before it left. Of Mamba and RG-LRU the value u stands behind their convolution;
a short convolution alone has no state: y = O (c_i * sum_r w_r (b_{i-r} * u_{i-r})).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Literal

import numpy as np
from torch import Tensor

from separatrix.core.errors import CheckFailed
from separatrix.core.numbers.rotary import Rotation
from separatrix.mixers import Mixer
from separatrix.mixers.base.mixer import EPSILON
from separatrix.mixers.channels import SCALE, MambaMixer, RGLRUMixer, ShortConvolutionMixer
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
from separatrix.mixers.ops.delta_rule import EXPONENT
from separatrix.mixers.rwkv import DECAY, RWKV6Mixer, RWKVMixer
from separatrix.proofs.derivations.parts.carriers import (
    Arrival,
    Maps,
    Seen,
    Written,
    arrived,
    not_narrowed,
    taps,
)
from separatrix.proofs.derivations.parts.gates import (
    exponential,
    features,
    log_sigmoid,
    normed,
    sigmoid,
    silu,
    softplus,
    unit,
)
from separatrix.proofs.derivations.parts.live_parts import Live, array
from separatrix.proofs.derivations.parts.steps import Rotated, Where, own_group
from separatrix.proofs.derivations.parts.stream import Stream
from separatrix.proofs.machine import Enclosure, limited, linear


def _written(head: Maps, log_decay: Seen) -> Written:
    """Keys and queries as they are mapped, a strength of 1."""
    return Written(
        keys=head.keys,
        queries=head.queries,
        values=head.values,
        log_decay=log_decay,
        strength=head.values.all(1.0),
    )


def _through(
    head: Maps, found: Written, keys: Callable[..., Enclosure], queries: Callable[..., Enclosure]
) -> Written:
    """The same behind functions of keys and queries."""
    return replace(
        found,
        keys=found.keys.map(lambda x: keys(x, f"{head.where}, k")),
        queries=found.queries.map(lambda x: queries(x, f"{head.where}, q")),
    )


def _delta(head: Maps, log_decay: Seen) -> Written:
    """Of the delta rule: one update writes, all others have keys of 0."""
    mixer, what = head.mixer, f"{head.where}, b"
    b = array(mixer.get_parameter("b.weight"))
    b = own_group(b, head.index, len(b), what)
    strength = head.held.mapped(b[None], what).map(lambda x: sigmoid(x.summed(), what))
    found = replace(
        _written(head, log_decay),
        strength=strength.scaled(getattr(mixer, "largest", 1.0)),
        alone=True,
    )
    return _through(head, found, unit, unit)


def _steps(head: Maps, given: Seen, name: str) -> Seen:
    return given.map(lambda x: softplus(x, f"{head.where}, {name}"))


def _logs(head: Maps, given: Seen, name: str) -> Seen:
    return given.map(lambda x: log_sigmoid(x, f"{head.where}, {name}"))


def _gated_delta(head: Maps) -> Written:
    return _delta(head, head.rated(_steps(head, head.gate("a"), "a")))


def _kda(head: Maps) -> Written:
    return _delta(head, head.rated(_steps(head, head.low_rank("a"), "a")))


def _gla(head: Maps) -> Written:
    return _written(head, _logs(head, head.low_rank("a"), "a").scaled(1 / TEMPERATURE))


def _hgrn2(head: Maps) -> Written:
    found = _written(head, _logs(head, head.keys, "k"))
    return _through(head, found, lambda k, what: sigmoid(-k, what), silu)


def _lightning(head: Maps) -> Written:
    log_a = -(2.0 ** (-8.0 * (head.index + 1) / head.mixer.heads))
    return replace(_written(head, head.constant(log_a)), summed=True)


def _retnet(head: Maps) -> Written:
    log_a = float(np.log1p(-(2.0 ** (-5.0 - head.index))))
    found = _written(head, head.constant(log_a))
    rotated = Rotated(Rotation(BASE, head.mixer.head_dim))

    def turned(x: Seen) -> Seen:
        places: list[Where] = [np.array([head.tokens - 2]), np.array([head.tokens - 1]), None, None]
        turns = zip(x, places, strict=True)
        return Seen(*(rotated.mapped("k", rows, at, head.where) for rows, at in turns))

    return replace(
        found,
        keys=turned(found.keys),
        queries=turned(found.queries),
        summed=True,
        assumes=(rotated.assumes,),
    )


def _mamba2(head: Maps) -> Written:
    head.zero("skip")
    steps = _steps(head, head.gate("dt"), "dt")
    return replace(_written(head, head.rated(steps)), strength=steps)


def _mlstm(head: Maps) -> Written:
    where = head.where
    not_narrowed(head.arithmetic, where)
    logs = _logs(head, head.gate("f"), "f")
    log_g = head.gate("i")
    most = max(float(view.size.max()) for view in log_g)
    if most > 8:
        raise CheckFailed(f"{where}: its input gate may be e^{most:g}")
    found = _written(head, logs.map(lambda x: x.like(x.mid, x.rad + most)))
    strength = log_g.map(lambda x: exponential(x, f"{where}, i"))
    return replace(found, strength=strength, capped=True)


def _rwkv7(head: Maps) -> Written:
    # no token is mixed with the one before it, nothing is erased, keys are what is mapped to
    head.zero("mu", "erased", "written", "bonus", *_mixing(head))
    # sigmoid of anything that is finite, times 0
    head.low_rank("a")
    opened = head.low_rank("w", tanh=True).map(lambda x: sigmoid(x, f"{head.where}, w"))
    off = 8 * float(head.arithmetic.summed)
    logs = opened.map(lambda x: x.like(DECAY * x.mid, -DECAY * x.rad + off))
    return replace(_written(head, logs), alone=True, grown=float(np.exp(EXPONENT + 1)))


def _rwkv6(head: Maps) -> Written:
    where, mixer = head.where, head.mixer
    head.zero("mus", "up", "bonus", *_mixing(head))
    # what is mixed in is multiplied with 0, if it is finite: x + (x' - x) mu, of any two tokens
    most = 2 + 4 * float(mixer.get_parameter("mu").abs().max())
    mixed = head.held.anywhere.like(0 * head.held.anywhere.mid, head.held.anywhere.size * most)
    limited(mixed.size, f"{where}, what it mixes", head.arithmetic)
    linear(mixed, array(mixer.get_parameter("down.weight")), what=f"{where}, what it mixes")
    opened = head.low_rank("w", tanh=True).map(lambda x: exponential(x, f"{where}, w"))
    return replace(_written(head, opened.scaled(-1.0)), early=True)


def _mixing(head: Maps) -> list[str]:
    """The parameters of channel mixing, where the layer has that."""
    names = (name for name, _ in head.mixer.named_parameters())
    return [name for name in names if name.startswith("mixing.")]


def _levels(head: Maps, found: Written) -> Written:
    """Read with a weight for each level: between the smallest and the largest of all levels."""
    mixer, what = head.mixer, f"{head.where}, lambda"
    weight = array(mixer.get_parameter("level.weight")).reshape(LEVELS, mixer.heads, -1)
    weight = own_group(weight.swapaxes(0, 1), head.index, mixer.heads, what)
    # of the token that reads, wherever it stands
    rows = softplus(linear(head.held.anywhere, weight, what=what).summed(), what)
    level = rows.spanning(rows.low.min(1, keepdims=True), rows.high.max(1, keepdims=True))
    entering = max(float(view.size.max()) for view in found.strength)
    strength = found.strength.times(level, what)
    return replace(found, strength=strength, entering=entering, more=found.more + 2 * LEVELS)


def _log_linear(head: Maps) -> Written:
    return _levels(head, _featured(head, head.mixer.mechanism.sizes()["feature"]))


def _linear(head: Maps) -> Written:
    mixer = head.mixer
    assert isinstance(mixer, LinearMixer)
    found = replace(_featured(head, mixer.feature), decays=False)
    if mixer.normaliser:
        found = replace(found, averages=_AVERAGES.get(mixer.feature, "any"))
    return found


def _featured(head: Maps, feature: str) -> Written:
    """Keys and queries behind a feature map, without decay."""
    found = _written(head, head.constant(0.0))
    return _through(head, found, *[lambda x, what: features(feature, x)] * 2)


_AVERAGES: dict[str, Literal["positive", "half"]] = {"elu": "positive", "taylor": "half"}
"""Feature map -> what is known of all weights: taylor's 1 + s + s^2 / 2 is at least 1/2."""


def _short_convolution(mixer: ShortConvolutionMixer, held: Seen, where: str) -> Arrival:
    u, b, c = (held.mapped(array(one.weight), where) for one in (mixer.v, mixer.b, mixer.c))
    y = c.times(taps(mixer.conv, b.times(u, where), where), where)
    y = y.mapped(array(mixer.o.weight), where)
    return Arrival(y.last, y.anywhere, 0.0)


def _mamba(mixer: MambaMixer, held: Seen, where: str) -> Written:
    u = taps(mixer.conv, held.mapped(array(mixer.v.weight), where), where)
    arithmetic = held.last.arithmetic

    def point(parameter: Tensor) -> Enclosure:
        return Enclosure.point(array(parameter).reshape(1, -1), arithmetic)

    def scaled(x: Seen) -> Seen:
        return x if mixer.read is None else x.map(lambda y: normed(y, EPSILON, where))

    low = scaled(u.mapped(array(mixer.dt.down.weight), where))
    up = low.mapped(array(mixer.dt.up.weight), where, array(mixer.dt.up.bias))
    steps = up.map(lambda x: softplus(x, f"{where}, dt"))
    b, c = (scaled(u.mapped(array(one.weight), where)) for one in (mixer.b, mixer.c))
    if mixer.read is not None:
        c = c.times(point(mixer.read), where)
    rates = exponential(point(mixer.rate), f"{where}, rate")
    # a column for each number of each channel
    every = steps.map(
        lambda x: x.like(np.repeat(x.mid, mixer.numbers, 1), np.repeat(x.rad, mixer.numbers, 1))
    )
    return Written(
        keys=b,
        queries=c,
        values=u,
        log_decay=every.times(rates, where).scaled(-1.0),
        strength=steps,
        channels=mixer.channels,
        skip=point(mixer.skip),
        more=256,
    )


def _rglru(mixer: RGLRUMixer, held: Seen, where: str) -> Written:
    u = taps(mixer.conv, held.mapped(array(mixer.v.weight), where), where)
    rate = Enclosure.point(array(mixer.rate)[None], held.last.arithmetic)
    opened, gated = (
        u.mapped(array(gate.weight), where, array(gate.bias)).map(lambda x: sigmoid(x, where))
        for gate in (mixer.r, mixer.g)
    )
    slow = opened.times(softplus(rate, f"{where}, rate"), where).scaled(SCALE)
    return Written(
        keys=u.all(1.0),
        queries=u.all(1.0),
        values=u,
        log_decay=slow.scaled(-1.0),
        strength=slow.map(_root).times(gated, where),
        channels=len(mixer.rate),
        more=256,
    )


def _root(slow: Enclosure) -> Enclosure:
    """sqrt(-expm1(-2 x)), of at least the smallest normal number, within 16 u of its size."""
    off = max(2.0**-16, 16 * float(slow.arithmetic.summed))
    tiny = slow.arithmetic.tiny
    low = np.sqrt(-np.expm1(-2 * np.maximum(slow.low, 0.0))) * (1 - off)
    high = np.sqrt(np.maximum(-np.expm1(-2 * np.maximum(slow.high, 0.0)), tiny)) * (1 + off)
    return slow.spanning(np.minimum(low, high), high)


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
_CHANNELS: dict[type[Mixer], Callable[..., Written]] = {MambaMixer: _mamba, RGLRUMixer: _rglru}
"""Mixers whose channels do not meet."""


def arrival(stream: Stream, part: Live, place: int, at_place: Enclosure) -> Arrival:
    """What a recurrent layer writes at the last token, for each thing that may stand at the place.
    Raises CheckFailed for another layer.
    """
    mixer, kind, where = part.mixer, type(part.mixer), part.where
    if kind not in {*MATRIX_STATES, *_CHANNELS, ShortConvolutionMixer}:
        raise CheckFailed(f"{where}: no proof is known that {mixer.mechanism.name} carries a value")
    held = Seen.of(stream, place, at_place, where)
    tokens = len(stream.by_place.mid)
    if kind not in MATRIX_STATES:
        not_narrowed(held.last.arithmetic, where)
    if isinstance(mixer, ShortConvolutionMixer):
        return _short_convolution(mixer, held, where)
    if kind in MATRIX_STATES:
        reader, parameters = MATRIX_STATES[kind]
        head = Maps.of(part, held, tokens, *parameters)
        found, out = reader(head), head.out
    else:
        o = array(mixer.get_parameter("o.weight"))
        found, out = _CHANNELS[kind](mixer, held, where), lambda y, _: linear(y, o, what=where)
    last, anywhere, mass = arrived(found, tokens, where)
    return Arrival(out(last, held.last), out(anywhere, held.anywhere), mass, found.assumes)
