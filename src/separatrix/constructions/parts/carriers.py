"""How each kind of bounded layer hands a value on to the next token: what its head 0, or its
channels, do with keys, queries and gates.

The value v stands at the place marked `here`, +-1 in each bit; the token marked `last` comes next.
`away` is 1 at every other place than `here`. All weights that are not named are 0, so that
b = sigmoid(0) = 1/2 and softplus(0) = ln 2; a bias of -32 or 32 makes a decay 1 up to e^-32.

    mixer                    keys and queries                     y at the last token
    linear, identity, relu   k = here, q = last                   v
    linear, elu              k = 2^40 here, q = 0                 2^40 v, or v if normalised
    linear, taylor           k = 2^10 here, q = 2^10 last         (1 + s + s^2/2) v, s = 2^20, or v
    deltanet, gdn, kda,      k = here, q = last, no decay         v/2, or v with b up to 2
    deltaproduct
    gla, mlstm               k = here, q = last, no decay         v
    lightning                k = here, q = last                   exp(-2^(-8/H)) v
    retnet                   k = here, q = last in pair r         31/32 cos(theta_r) v
    hgrn2                    k = sigmoid(128 (here - away)),      silu(8) v
                             q = 8 last
    mamba2                   k = here, q = last, no decay         ln 2 v
    rwkv                     k = here, q = last, no decay         v
    loglinear                as its base                          ln 2 times that
    shortconv                b = here, c = last, tap 1            v
    window                   k = 8 here, q = 8 last               v: it leads by 64
    rglru, conv >= 2         tap 1, a = exp(-8 64/2)              v/2
    rglru                    one channel holds 72 last beside     v/2: a = e^-512 at all tokens but
                             its bit, r = sigmoid(132 - 4 u)      the last, 1 there
    mamba, conv >= 2         tap 1, E = 1                         silu(1.278 v)
    mamba                    u_e = 256 here + 8 last in one       8 256 ln 2 v
                             channel, B = C = u_e,
                             D = softplus(u_e/2 - 128)

Behind a convolution with SiLU keys and queries are 8 times as large, as silu(8) is almost 8, and
bits +-1.278, where silu is 0.9996 or, at its lowest, -0.2784: that is what arrives instead of +-1.
Behind a norm a bit of +1 becomes the root of e/bits, of e dimensions, or more, and one of -1 that
times -0.2784, or less. A gate is silu(8) or sigmoid(8) at the last token. What arrives of a bit is
read off the layer itself, and sets the output map's factor.
"""

from __future__ import annotations

from collections.abc import Callable
from copy import deepcopy

import torch

from separatrix.constructions.parts.built import Spaces, mixer_at, pick, put
from separatrix.constructions.parts.readers import settle, write_norms
from separatrix.mixers.base.mixer import Mixer
from separatrix.mixers.base.recurrent import RecurrentMixer
from separatrix.mixers.base.softmax import SoftmaxMixer
from separatrix.mixers.channels import MambaMixer, RGLRUMixer, ShortConvolutionMixer
from separatrix.mixers.decayed import GLAMixer, HGRN2Mixer
from separatrix.mixers.mlstm import MLSTMMixer
from separatrix.models.model import Model
from separatrix.stacks.architecture import Place

FAR = 8.0
"""Where silu is the identity, and 0 on the other side, up to 1/300."""
TURN = 1.278
"""silu is smallest at -TURN."""
KEEP = 32.0
SATURATED = 128.0
STEEP = 2.0**40
TAYLOR = 2.0**10


def write_carrier(model: Model, place: Place, space: Spaces, source: slice, target: slice) -> float:
    """Writes the layer that brings the bits of `source` at `here` to `target` at `last`, as numbers
    1 above and below the one returned, or further from it.
    """
    mixer = mixer_at(model, place, Mixer)
    FORMS.get(mixer.mechanism.name, _matrix)(mixer, space, source)
    put(mixer.get_parameter("o.weight"), target)
    low, high = _arriving(mixer, space, source, target)
    factor = 2 / (high - low)
    put(mixer.get_parameter("o.weight"), target, factor=factor)
    return factor * (high + low) / 2


def _arriving(mixer: Mixer, space: Spaces, source: slice, target: slice) -> tuple[float, float]:
    """The most that arrives of a bit of -1 and the least of one of +1, of prompts of two tokens
    whose bits are alike but for one at most.
    """
    bits = source.stop - source.start
    alike = torch.cat([torch.ones(1, bits), 1 - 2 * torch.eye(bits)])
    rows = torch.cat([alike, -alike]).double()
    width = len(mixer.get_parameter("o.weight"))
    x = torch.zeros(len(rows), 2, width, dtype=torch.float64)
    x[:, 0, source] = rows
    x[:, 0, space["here"]] = 1.0
    for name in ("last", "away"):
        if name in space.widths():
            x[:, 1, space[name]] = 1.0
    read = deepcopy(mixer).double()(x)[:, -1, target]
    return float(read[rows < 0].max()), float(read[rows > 0].min())


def _matrix(mixer: Mixer, space: Spaces, source: slice) -> None:
    """Every mechanism with a matrix state."""
    assert isinstance(mixer, RecurrentMixer)
    behind = mixer.conv is not None and mixer.conv.silu
    row, key, query = _pair(mixer, FAR if behind else 1.0)
    if query:
        pick(mixer.q.weight, [(space["last"], query)], start=row)
    pick(mixer.k.weight, [(space["here"], key)], start=row)
    if isinstance(mixer, HGRN2Mixer):
        pick(mixer.k.weight, [(space["away"], -key)], start=row)
    pick(mixer.v.weight, [(source, TURN if behind else 1.0)])
    if mixer.conv is not None:
        # 1 for each channel that holds anything
        maps = (mixer.q.weight, mixer.k.weight, mixer.v.weight)
        mixer.conv.weight[:, -1] = torch.cat([matrix.any(1) for matrix in maps]).float()
    _keep(mixer)
    if mixer.norm is not None:
        mixer.norm.fill_(1.0)
    if mixer.gate is not None:
        mixer.gate.weight[: mixer.dv, space["last"]] = FAR


def _pair(mixer: RecurrentMixer, scale: float) -> tuple[int, float, float]:
    """The key's dimension, its number at `here`, and the query's at `last`."""
    match mixer.mechanism.name:
        case "linear" | "loglinear" if mixer.mechanism.sizes()["feature"] == "elu":
            return 0, STEEP, 0.0
        case "linear" if mixer.mechanism.sizes()["feature"] == "taylor":
            return 0, TAYLOR, TAYLOR
        case "hgrn2":
            return 0, -SATURATED, FAR
        case "retnet":
            # the pair that turns least
            return mixer.head_dim // 2 - 1, scale, scale
        case _:
            return 0, scale, scale


def _keep(mixer: RecurrentMixer) -> None:
    """Decays of head 0 that are 1 up to e^-32."""
    maps = dict(mixer.named_parameters())
    # the first that it has: gates that are a bias, and rates where the step is a factor, too
    for name in ("w.up.bias", "a.up.bias", "f.bias", "a.bias", "rate"):
        if name in maps:
            dims = mixer.head_dim if ".up." in name else 1
            opens = isinstance(mixer, GLAMixer | MLSTMMixer)
            maps[name][:dims] = KEEP if opens else -KEEP
            return


def _convolved(mixer: Mixer, space: Spaces, source: slice) -> None:
    assert isinstance(mixer, ShortConvolutionMixer)
    bits = source.stop - source.start
    pick(mixer.v.weight, [(source, 1.0)])
    mixer.b.weight[:bits, space["here"]] = 1.0
    mixer.c.weight[:bits, space["last"]] = 1.0
    mixer.conv.weight[:bits, -2] = 1.0


def _window(mixer: Mixer, space: Spaces, source: slice) -> None:
    assert isinstance(mixer, SoftmaxMixer)
    turned = 0 if mixer.rotation is None else mixer.rotation.dims
    pick(mixer.q.weight, [(space["last"], FAR)], start=turned)
    pick(mixer.k.weight, [(space["here"], FAR)], start=turned)
    pick(mixer.v.weight, [(source, 1.0)])
    write_norms(mixer, 1, FAR)
    settle(mixer)


def _rglru(mixer: Mixer, space: Spaces, source: slice) -> None:
    assert isinstance(mixer, RGLRUMixer)
    bits = source.stop - source.start
    pick(mixer.v.weight, [(source, 1.0)])
    mixer.rate[:bits] = 64.0
    if mixer.conv is not None and mixer.conv.weight.shape[1] >= 2:
        mixer.conv.weight[:bits, -2] = 1.0
        return
    if mixer.conv is not None:
        mixer.conv.weight[:bits, -1] = 1.0
    pick(mixer.v.weight, [(space["last"], 72.0)])
    mixer.r.weight[:bits, 0] = -4.0
    mixer.r.bias[:bits] = 132.0


def _mamba(mixer: Mixer, space: Spaces, source: slice) -> None:
    assert isinstance(mixer, MambaMixer)
    bits = source.stop - source.start
    if mixer.conv is not None and mixer.conv.weight.shape[1] >= 2:
        pick(mixer.v.weight, [(source, TURN)])
        mixer.conv.weight[:bits, -2] = 1.0
        mixer.skip[:bits] = 1.0
        return
    behind = mixer.conv is not None
    pick(mixer.v.weight, [(source, TURN if behind else 1.0)])
    pick(mixer.v.weight, [(space["here"], 256.0)], start=bits)
    pick(mixer.v.weight, [(space["last"], FAR)], start=bits)
    if mixer.conv is not None:
        mixer.conv.weight[: bits + 1, -1] = 1.0
    mixer.b.weight[0, bits] = 1.0
    mixer.c.weight[0, bits] = 1.0
    mixer.dt.down.weight[0, bits] = 1.0
    mixer.dt.up.weight[:bits, 0] = 0.5
    mixer.dt.up.bias[:bits] = -SATURATED


FORMS: dict[str, Callable[[Mixer, Spaces, slice], None]] = {
    "shortconv": _convolved,
    "window": _window,
    "rglru": _rglru,
    "mamba": _mamba,
}
"""Mechanisms of the table above that have no matrix state."""
