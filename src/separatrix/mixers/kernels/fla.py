"""Calls of flash-linear-attention's kernels (fla-core 0.6) in our conventions: queries, keys,
values (b h t d), log decays of single tokens, no scale; their layout is (b t h d). The first
argument of every call is the operator, the second the format it computes in.

Head dimensions are filled up with zeros to multiples of 16: blocks of products are that large, and
odd ones break in 16 bits (fla-org's `chunk_bwd_dv`). Zeros change nothing: keys of 0 write 0,
decays of 0 keep it, and what values of 0 give is cut off. The kernels keep all exponents at or
below 0, as our forms do, so gates of any strength are safe; RWKV-7's bounded ones are told to it.

Shapes: b batch, h heads, t tokens, d key dimension, e value dimension, c channels, l levels.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from math import exp
from typing import Any

import torch
import torch.nn.functional as F
from jaxtyping import Float
from torch import Tensor

from separatrix.mixers.base.tensors import Channels, Decays, Keys, PerToken, Values

Operator = Callable[..., Any]
LARGEST_KEY = 256
MULTIPLE = 16
LOGLINEAR_MULTIPLE = 64
LOGLINEAR_LEVELS = 7
"""Key dimensions that `chunk_log_linear_attn` takes, and the levels inside its chunks of 64
tokens, which it reads unasked.
"""
HALF = {torch.bfloat16: torch.bfloat16}
FULL = HALF | {torch.float16: torch.float32, torch.float32: torch.float32}
"""Format of a layer -> format of the products. float16 goes in as float32: kernels keep sums in
the format of their inputs, which could overflow.
"""
SINGLE = dict.fromkeys((torch.bfloat16, torch.float16, torch.float32), torch.float32)


def simple_gla(
    operator: Operator, dtype: torch.dtype, q: Keys, k: Keys, v: Values, log_a: PerToken | None
) -> Values:
    """R_i = a_i R_{i-1} + k_i v_i^T, y_i = R_i^T q_i; without decay where log a is None."""
    g = None if log_a is None else _per_token(log_a)
    return _ours(operator(*(_theirs(x, dtype) for x in (q, k, v)), g=g, scale=1.0), v)


def gla(operator: Operator, dtype: torch.dtype, q: Keys, k: Keys, v: Values, log_a: Keys) -> Values:
    """R_i = diag(a_i) R_{i-1} + k_i v_i^T, y_i = R_i^T q_i."""
    return _ours(
        operator(
            *(_theirs(x, dtype) for x in (q, k, v)), g=_theirs(log_a, torch.float32), scale=1.0
        ),
        v,
    )


def delta(
    operator: Operator, dtype: torch.dtype, q: Keys, k: Keys, v: Values, log_a: Decays, b: PerToken
) -> Values:
    """R_i = (I - b_i k_i k_i^T) diag(a_i) R_{i-1} + b_i k_i v_i^T, y_i = R_i^T q_i, one decay
    for all key dimensions or one for each.
    """
    g = _per_token(log_a) if log_a.shape[-1] == 1 else _theirs(log_a, torch.float32)
    return _ours(
        operator(*(_theirs(x, dtype) for x in (q, k, v)), g=g, beta=_per_token(b), scale=1.0), v
    )


def rwkv7(
    operator: Operator,
    dtype: torch.dtype,
    q: Keys,
    k: Keys,
    v: Values,
    log_a: Keys,
    r: Keys,
    s: Keys,
) -> Values:
    """R_i = (diag(a_i) + s_i r_i^T) R_{i-1} + k_i v_i^T, y_i = R_i^T q_i, for log a of at least
    -e^{-1/2}; as fla's layer calls it.
    """
    q, k, v_, r, s = (_theirs(x, dtype) for x in (q, k, v, r, s))
    bounds = {"safe_gate": True, "lower_bound": -exp(-0.5)}  # the chunk is fla's to choose
    return _ours(
        operator(r=q, w=_theirs(log_a, torch.float32), k=k, v=v_, a=r, b=s, scale=1.0, **bounds), v
    )


def log_linear(
    operator: Operator,
    dtype: torch.dtype,
    q: Keys,
    k: Keys,
    v: Values,
    weights: Float[Tensor, "b h t l"],
) -> Values:
    """sum_{j<=i} weights[i, level(i, j)] <q_i, k_j> v_j."""
    q, k = (_theirs(x, dtype, LOGLINEAR_MULTIPLE) for x in (q, k))
    power = max(MULTIPLE, 1 << (v.shape[-1] - 1).bit_length())
    padded = F.pad(weights, (0, max(0, LOGLINEAR_LEVELS - weights.shape[-1])))
    scales = padded.to(dtype).transpose(1, 2)  # multiplied with no widening
    no_decay = torch.zeros(scales.shape[:3], dtype=torch.float32, device=scales.device)
    with warnings.catch_warnings():
        # said on every call; fla 0.6 itself asks for 3.3
        warnings.filterwarnings("ignore", message="Triton>3.2.0")
        return _ours(
            operator(q, k, _theirs(v, dtype, power), g=no_decay, level_scales=scales, scale=1.0), v
        )


def hgrn(operator: Operator, dtype: torch.dtype, log_a: Channels, added: Channels) -> Channels:
    """h_i = a_i h_{i-1} + added_i."""
    return operator(added.to(dtype), log_a.to(dtype))[0]


@dataclass(frozen=True)
class Kernel:
    """An operator of fla, how it is called, and what it takes: formats, whether it multiplies
    float32 in TF32, largest sizes. `gated`: its gradients go through `chunk_bwd_dqkwg` with a gate.
    """

    module: str
    operator: str
    call: Callable[..., Tensor]
    computes: Mapping[torch.dtype, torch.dtype]
    tf32: bool = True
    keys: int | None = LARGEST_KEY
    values: int | None = None
    tokens: int | None = None
    gated: bool = False


KERNELS = {
    "linear": Kernel("fla.ops.simple_gla", "chunk_simple_gla", simple_gla, FULL),
    "simple_gla": Kernel("fla.ops.simple_gla", "chunk_simple_gla", simple_gla, FULL, gated=True),
    "gla": Kernel("fla.ops.gla", "chunk_gla", gla, FULL),
    "gated_delta_rule": Kernel(
        "fla.ops.gated_delta_rule", "chunk_gated_delta_rule", delta, FULL, gated=True
    ),
    "kda": Kernel("fla.ops.kda", "chunk_kda", delta, FULL),
    # warns that float32 fails on some platforms
    "rwkv7": Kernel("fla.ops.rwkv7", "chunk_rwkv7", rwkv7, HALF),
    # sizes of fla's own layer: the state of a head stays in one block
    "log_linear": Kernel(
        "fla.ops.log_linear_attn",
        "chunk_log_linear_attn",
        log_linear,
        HALF,
        keys=128,
        values=64,
        tokens=1 << 17,
    ),
    "hgrn": Kernel("fla.ops.hgrn", "chunk_hgrn", hgrn, SINGLE, tf32=False, keys=None),
}


def _theirs(x: Keys, dtype: torch.dtype, multiple: int = MULTIPLE) -> Tensor:
    """(b t h d) in the format given, d filled up to a multiple."""
    missing = -x.shape[-1] % multiple
    return (F.pad(x, (0, missing)) if missing else x).to(dtype).transpose(1, 2)


def _per_token(x: PerToken) -> Float[Tensor, "b t h"]:
    return x[..., 0].float().transpose(1, 2)


def _ours(outputs: Any, v: Values) -> Values:
    """The first of an operator's outputs, in the layout, size and format of our values."""
    return outputs[0].transpose(1, 2)[..., : v.shape[-1]].to(v.dtype)
