"""Softmax attention: grouped key-value heads, QK-norm, rotation, capped scores, sinks, output gate,
and the softmax under a mask.

    q_i = w * Q x_i / rms(Q x_i), k_j likewise   with QK-norm, before rotation;
                                                 rms(q)^2 = mean of squares + 1e-6
    s_ij = c tanh(<q_i, k_j> / c)                scores, with a softcap of c
    O (sigmoid(G x_i) * y_i)                     the output, with a gate

Shapes: b batch, t tokens, w model width, h query heads, g key-value heads, d key dimension, e value
dimension.
"""

from __future__ import annotations

from typing import ClassVar

import torch
import torch.nn.functional as F
from einops import rearrange, repeat
from jaxtyping import Bool, Float, Shaped
from torch import Tensor, nn

from separatrix.errors import SizeError
from separatrix.mechanisms import Softmax
from separatrix.mixers.base.heads import Projected, Projections, merge_heads, split_heads
from separatrix.mixers.base.mixer import Mixer, Shapes, State, linear, wide
from separatrix.mixers.ops.rope import rotate

EPSILON = 1e-6
"""Added to the mean square under the root of QK-norm."""
EXPLICIT_UP_TO = 128
"""Sequences up to this length use the explicit softmax, which is faster there than the fused
kernel.
"""


class HeadNorm(nn.Module):
    """RMS norm of heads: of each with one vector of weights for all, of each with its own, or of
    all heads together.
    """

    def __init__(self, kind: str, heads: int, head_dim: int) -> None:
        super().__init__()
        self.whole = kind == "all"
        self.weight = nn.Parameter(torch.ones((head_dim,) if kind == "head" else (heads, head_dim)))

    def forward(self, x: Float[Tensor, "b h t d"]) -> Float[Tensor, "b h t d"]:
        square = wide(x).square().mean((1, 3) if self.whole else 3, keepdim=True)
        weight = self.weight if self.weight.dim() == 1 else self.weight[:, None]
        return (wide(x) * (square + EPSILON).rsqrt()).to(x.dtype) * weight


class SoftmaxMixer(Projections, Mixer):
    """Queries, keys and values of softmax attention, rotated where the mechanism says so, and its
    sinks: a number s per head that adds exp(s) to the denominator of every softmax.
    """

    caps: ClassVar[bool] = False
    """Whether every form knows capped scores."""

    def __init__(
        self, mechanism: Softmax, *, width: int, sink: bool = False, kv_sets: int = 1
    ) -> None:
        """`kv_sets`: how many sets of keys and values a token has, side by side in k and v."""
        heads = mechanism.heads
        kv = mechanism.kv
        head_dim = mechanism.head_dim
        dv = mechanism.dv
        if mechanism.softcap and not self.caps:
            raise SizeError(
                f"{mechanism.name}: softcap={mechanism.softcap}: no mixer here caps scores of"
                f" '{mechanism.name}'; such layers can be judged, but not built"
            )
        if mechanism.bounded:
            raise SizeError(
                f"{mechanism.name}: bounded=true: no mixer here bounds scores; such layers can be"
                " judged, but not built"
            )
        sizes = mechanism.sizes()
        norm = sizes.get("qk_norm", "none")
        if norm == "other":
            raise SizeError(
                f"{mechanism.name}: qk_norm=other: no mixer here has that norm; such layers can be"
                " judged, but not built"
            )
        super().__init__(mechanism, width=width)
        self._add_maps(
            width,
            channels=(heads * head_dim, kv_sets * kv * head_dim, kv_sets * kv * dv),
            outputs=heads * dv,
            head_dim=head_dim,
            kernel=mechanism.conv,
            silu=False,
        )
        self.heads = heads
        self.kv = kv
        self.kv_sets = kv_sets
        self.head_dim = head_dim
        self.dv = dv
        self.rotation = mechanism.rotation
        self.cap = mechanism.softcap
        self.sink = nn.Parameter(torch.zeros(heads)) if sink else None
        self.q_norm = None if norm == "none" else HeadNorm(norm, heads, head_dim)
        self.k_norm = None if norm == "none" else HeadNorm(norm, kv, head_dim)
        self.gated = sizes.get("gate", "none")
        gates = {"none": 0, "head": heads, "sigmoid": heads * dv}[self.gated]
        self.gate = linear(width, gates) if gates else None

    def reset(self, generator: torch.Generator) -> None:
        super().reset(generator)
        self._draw_queries(generator)
        with torch.no_grad():
            if self.sink is not None:
                self.sink.normal_(generator=generator)
            if self.q_norm is not None and self.k_norm is not None:
                # the factor 1/sqrt(d), which a norm takes out of Q
                self.q_norm.weight.fill_(self.scale)
                self.k_norm.weight.fill_(1)

    def _cached(self, tokens: int) -> Shapes:
        return {"keys": (self.kv, tokens, self.head_dim), "values": (self.kv, tokens, self.dv)}

    def _qkv(self, projected: Projected, start: int = 0) -> Projected:
        """q (b h t d), k (b g t d), v (b g t e) of tokens whose keys stand at `start`, ..., the
        queries being the last of them.
        """
        q = split_heads(projected[0], self.heads)
        k = split_heads(projected[1], self.kv_sets * self.kv)
        v = split_heads(projected[2], self.kv_sets * self.kv)
        if self.q_norm is not None and self.k_norm is not None:
            q = self.q_norm(q)
            k = self.k_norm(k)
        if self.rotation is not None:
            q = rotate(q, self.rotation, start=start + k.shape[2] - q.shape[2])
            k = rotate(k, self.rotation, start=start)
        return q, k, v

    def _qkv_step(self, x: Float[Tensor, "b w"], state: State, t: int) -> tuple[Projected, State]:
        """As `_qkv` for one token, and the convolution's part of the new state."""
        projected, conv = self._project_step(x, state)
        return self._qkv(projected, t), self._store(**conv)

    def _shared(self, x: Shaped[Tensor, "b g ..."]) -> Shaped[Tensor, "b h ..."]:
        """Every key-value head copied to the query heads that share it."""
        if self.kv == self.heads:
            return x
        return repeat(x, "b g ... -> b (g r) ...", r=self.heads // self.kv)

    def _attend(
        self, q: Float[Tensor, "b h 1 d"], k: Float[Tensor, "b g t d"], v: Float[Tensor, "b g t e"]
    ) -> Float[Tensor, "b h 1 e"]:
        """The output of one token that sees all the keys and values given."""
        scores = capped(wide(q) @ wide(self._shared(k)).transpose(-1, -2), self.cap)
        return softmax(scores, self._shared(v), self.sink)

    def _out(
        self, y: Float[Tensor, "b h t e"], x: Float[Tensor, "b t w"] | None = None
    ) -> Float[Tensor, "b t w"]:
        """The output map, behind the gate of the tokens x where there is one."""
        if self.gate is not None and x is not None:
            shares = rearrange(self.gate(x).sigmoid(), "b t (h n) -> b h t n", h=self.heads)
            y = shares * y
        return self.o(merge_heads(y))


def capped(scores: Float[Tensor, "*b"], cap: int) -> Float[Tensor, "*b"]:
    """cap tanh(scores / cap); the scores themselves where cap is 0."""
    return cap * (scores / cap).tanh() if cap else scores


def latest(
    kept: Float[Tensor, "b g s d"], new: Float[Tensor, "b g 1 d"], size: int
) -> Float[Tensor, "b g r d"]:
    """The last `size` tokens of both, as no view of what is forgotten."""
    forgotten = max(0, kept.shape[2] + 1 - size)
    return torch.cat([kept[:, :, forgotten:], new], 2)


def softmax(
    scores: Float[Tensor, "*b h i j"],
    v: Float[Tensor, "*b h j e"],
    sink: Float[Tensor, "*#b h"] | None = None,
) -> Float[Tensor, "*b h i e"]:
    """softmax(scores) v in float32 at least, the softmax with one score more, `sink`, of a value of
    0; rounded to the format of v once, at the end.
    """
    scores = wide(scores)
    if sink is None:
        weights = scores.softmax(-1)
    else:
        scores = torch.cat([wide(sink)[..., None, None].expand(*scores.shape[:-1], 1), scores], -1)
        weights = scores.softmax(-1)[..., 1:]
    return (weights @ wide(v)).to(v.dtype)


def causal_softmax(
    q: Float[Tensor, "b h t d"],
    k: Float[Tensor, "b h t d"],
    v: Float[Tensor, "b h t e"],
    sink: Float[Tensor, " h"] | None = None,
) -> Float[Tensor, "b h t e"]:
    """Causal softmax attention with scores <q, k>, and with sinks."""
    tokens = q.shape[2]
    if not _fused(tokens):
        seen = torch.ones(tokens, tokens, dtype=torch.bool, device=q.device).tril()
        return masked_softmax(q, k, v, seen, sink)
    if sink is None:
        return _fused_softmax(q, k, v, is_causal=True)
    # a token before the first, of value 0, whose score with every query is the sink:
    # <(q, 1), (0, s)>
    q = F.pad(q, (0, 1), value=1.0)
    k = F.pad(k, (0, 1))
    first = F.pad(sink[:, None].expand(*k.shape[:2], 1), (k.shape[3] - 1, 0))[:, :, None]
    # a query beside that token keeps the causal mask in step; its output is cut off
    q = F.pad(q, (0, 0, 1, 0))
    k = torch.cat([first, k], 2)
    v = F.pad(v, (0, 0, 1, 0))
    return _fused_softmax(q, k, v, is_causal=True)[:, :, 1:]


def masked_softmax(
    q: Float[Tensor, "*b h i d"],
    k: Float[Tensor, "*b h j d"],
    v: Float[Tensor, "*b h j e"],
    seen: Bool[Tensor, "... i j"],
    sink: Float[Tensor, " h"] | None = None,
    cap: int = 0,
) -> Float[Tensor, "*b h i e"]:
    """Softmax attention with scores <q, k>, capped where `cap` is not 0, where query i sees key j
    if `seen[..., i, j]`; every query sees at least one key.
    """
    if _fused(k.shape[-2]) and q.dim() == 4 and sink is None and not cap:
        return _fused_softmax(q, k, v, attn_mask=seen)
    scores = capped(wide(q) @ wide(k).transpose(-1, -2), cap)
    return softmax(scores.masked_fill(~seen, float("-inf")), v, sink)


def _fused_softmax(
    q: Tensor, k: Tensor, v: Tensor, *, is_causal: bool = False, attn_mask: Tensor | None = None
) -> Tensor:
    """The fused kernel takes one dimension for q, k and v, or falls back to quadratic memory:
    the shorter ones are filled up with zeros.
    """
    d = q.shape[-1]
    e = v.shape[-1]
    q, k, v = (
        F.pad(x, (0, max(d, e) - x.shape[-1])) if x.shape[-1] < max(d, e) else x for x in (q, k, v)
    )
    return F.scaled_dot_product_attention(
        q, k, v, attn_mask=attn_mask, is_causal=is_causal, scale=1.0
    )[..., :e]


def _fused(tokens: int) -> bool:
    # the fused kernel has no batching rule, so under torch.func.vmap it would run model by model,
    # with a warning
    return tokens > EXPLICIT_UP_TO and not torch._C._are_functorch_transforms_active()
