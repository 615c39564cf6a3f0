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
from dataclasses import dataclass, field
from math import exp
from typing import Any

import torch
import torch.nn.functional as F
from jaxtyping import Float
from torch import Tensor

from separatrix.mixers.base.tensors import Channels, Keys, Values

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
    """An operator of fla, and what it takes: formats, whether it multiplies float32 in TF32,
    largest sizes. `gated`: its gradients go through `chunk_bwd_dqkwg` with a gate.

    It is called with the arguments `names` in the order of our tensors, or as `call` says.
    """

    module: str
    operator: str
    computes: Mapping[torch.dtype, torch.dtype]
    names: tuple[str, ...] = ()
    fixed: Mapping[str, Any] = field(default_factory=dict)
    call: Callable[..., Tensor] | None = None
    tf32: bool = True
    keys: int | None = LARGEST_KEY
    values: int | None = None
    tokens: int | None = None
    gated: bool = False

    def run(self, operator: Operator, dtype: torch.dtype, *tensors: Tensor | None) -> Tensor:
        """The outputs of the operator in a layer of this format."""
        dtype = self.computes[dtype]
        if self.call is not None:
            return self.call(operator, dtype, *tensors)
        named = {
            name: x if x is None else _argument(name, x, dtype)
            for name, x in zip(self.names, tensors, strict=True)
        }
        v = tensors[self.names.index("v")]
        assert v is not None
        return _ours(operator(**named, **self.fixed, scale=1.0), v)


GATED = ("q", "k", "v", "g")
DELTA = (*GATED, "beta")
KERNELS = {
    # R_i = a_i R_{i-1} + k_i v_i^T, y_i = R_i^T q_i; without decay where log a is None
    # key dimensions are read block by block: any number of them
    "linear": Kernel("fla.ops.simple_gla", "chunk_simple_gla", FULL, GATED, keys=None),
    "simple_gla": Kernel(
        "fla.ops.simple_gla", "chunk_simple_gla", FULL, GATED, keys=None, gated=True
    ),
    # the same with a decay for each key dimension
    "gla": Kernel("fla.ops.gla", "chunk_gla", FULL, GATED, keys=None),
    # R_i = (I - b_i k_i k_i^T) diag(a_i) R_{i-1} + b_i k_i v_i^T, one decay or one for each key
    # dimension
    "gated_delta_rule": Kernel(
        "fla.ops.gated_delta_rule", "chunk_gated_delta_rule", FULL, DELTA, gated=True
    ),
    "kda": Kernel("fla.ops.kda", "chunk_kda", FULL, DELTA),
    # R_i = (diag(a_i) + s_i r_i^T) R_{i-1} + k_i v_i^T, y_i = R_i^T q_i, for log a of at least
    # -e^{-1/2}, in our order q, k, v, log a, r, s; as fla's layer calls it, which warns that
    # float32 fails on some platforms
    "rwkv7": Kernel(
        "fla.ops.rwkv7",
        "chunk_rwkv7",
        HALF,
        ("r", "k", "v", "w", "a", "b"),
        {"safe_gate": True, "lower_bound": -exp(-0.5)},  # the chunk is fla's to choose
    ),
    # sizes of fla's own layer: the state of a head stays in one block
    "log_linear": Kernel(
        "fla.ops.log_linear_attn",
        "chunk_log_linear_attn",
        HALF,
        call=log_linear,
        keys=128,
        values=64,
        tokens=1 << 17,
    ),
    # softmax attention with scores <q_i, k_j> + f_{j+1} + ... + f_i, f as g
    "forgetting_attn": Kernel("fla.ops.forgetting_attn", "parallel_forgetting_attn", FULL, GATED),
    "hgrn": Kernel("fla.ops.hgrn", "chunk_hgrn", SINGLE, call=hgrn, tf32=False, keys=None),
}


def _argument(name: str, x: Tensor, dtype: torch.dtype) -> Tensor:
    """Our tensor as the operator takes it: log decays in float32, numbers per token without the
    last axis.
    """
    if name in ("g", "beta") and x.shape[-1] == 1:
        return x[..., 0].float().transpose(1, 2)
    return _theirs(x, torch.float32 if name in ("g", "w") else dtype)


def _theirs(x: Keys, dtype: torch.dtype, multiple: int = MULTIPLE) -> Tensor:
    """(b t h d) in the format given, d filled up to a multiple."""
    missing = -x.shape[-1] % multiple
    return (F.pad(x, (0, missing)) if missing else x).to(dtype).transpose(1, 2)


def _ours(outputs: Any, v: Values) -> Values:
    """An operator's output, or the first of several, in the layout, size and format of our
    values.
    """
    first = outputs if isinstance(outputs, Tensor) else outputs[0]
    return first.transpose(1, 2)[..., : v.shape[-1]].to(v.dtype)
