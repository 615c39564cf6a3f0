"""Softmax attention: grouped key-value heads, QK-norm, rotation, capped scores, sinks, output gate,
and the softmax under a mask.

    q_i = w * Q x_i / rms(Q x_i), k_j likewise   with QK-norm, before rotation;
                                                 rms(q)^2 = mean of squares + 1e-6
    s_ij = c tanh(<q_i, k_j> / c)                scores, with a softcap of c
    O (sigmoid(G x_i) * y_i)                     the output, with a gate
"""

from __future__ import annotations

from abc import abstractmethod
from typing import Any, ClassVar

import torch
from jaxtyping import Bool, Float, Shaped
from torch import Tensor, nn

from separatrix.mixers.base.heads import Projected, Projections, merge_heads, split_heads
from separatrix.mixers.base.mixer import (
    Shapes,
    State,
    appended,
    last_place,
    linear,
    normed,
    taken,
    unbuilt,
    wide,
)
from separatrix.mixers.base.tensors import (
    GroupKeys,
    GroupValues,
    Keys,
    OneToken,
    Places,
    Queries,
    Reads,
    Token,
    Tokens,
    TokensAt,
    Values,
)
from separatrix.mixers.ops.maps import rotate
from separatrix.mixers.ops.softmax import KEPT, capped, masked_softmax, softmax
from separatrix.stacks.mechanisms import Softmax


class HeadNorm(nn.Module):
    """RMS norm of heads: of each with one vector of weights for all, of each with its own, or of
    all heads together.
    """

    def __init__(self, kind: str, heads: int, head_dim: int) -> None:
        super().__init__()
        self.whole = kind == "all"
        self.weight = nn.Parameter(torch.ones((head_dim,) if kind == "head" else (heads, head_dim)))

    def forward(self, x: Keys) -> Keys:
        weight = self.weight if self.weight.dim() == 1 else self.weight[:, None]
        return normed(x, axes=(1, 3) if self.whole else 3) * weight


class CachedMixer(Projections):
    """Keeps something of every token (`_stored`), of which a later one reads (`_read`), with the
    queries that `_qkv` makes.
    """

    kept: int | None = None
    """How many of the latest tokens are kept; all if None."""

    def shapes(self, t: int) -> Shapes:
        kept = t if self.kept is None else min(t, self.kept)
        return self._cached(kept) | self._more(t) | self._conv_shapes(t)

    @abstractmethod
    def _cached(self, tokens: int) -> Shapes:
        """What is kept of so many tokens."""

    def _more(self, t: int) -> Shapes:
        """What is kept of t tokens beside that."""
        return {}

    @abstractmethod
    def _qkv(self, projected: Projected, start: int = 0, places: Places | None = None) -> Projected:
        """Queries (b h r d) and what keys and values are made of, of tokens whose keys stand at
        `start`, ..., the queries at the places, or being the last of them.
        """

    @abstractmethod
    def _stored(self, k: Tensor, v: Tensor, x: Tokens, start: int) -> State:
        """What is kept of the tokens x, which stand at `start`, ..., with these keys and values."""

    @abstractmethod
    def _read(self, x: OneToken, q: Queries, kept: State, place: int) -> OneToken:
        """The output of the token x at a place, from what is kept of all up to it."""

    def _whole(self, k: Tensor, v: Tensor, x: Tokens) -> State:
        """What is read of a whole sequence."""
        return self._stored(k, v, x, 0)

    def _room(self, name: str) -> int | None:
        """How many of the latest tokens stand under a name; all if None."""
        return self.kept

    def _extended(self, state: State, new: State, t: int) -> State:
        """What is kept of t tokens and one more."""
        return {name: appended(state[name], y, self._room(name)) for name, y in new.items()}

    def _trimmed(self, kept: State, t: int) -> State:
        """What later tokens read of it."""
        return kept

    def _step(self, x: Token, state: State, t: int) -> tuple[Token, State]:
        projected, conv = self._convolve_step(self._maps(x, x), state)
        q, k, v = self._qkv(projected, t)
        kept = self._extended(state, self._stored(k, v, x[:, None], t), t)
        y = self._read(x[:, None], q, kept, t)[:, 0]
        return y, self._trimmed(kept, t + 1) | conv

    def _last(self, x: Tokens) -> Token:
        q, k, v = self._qkv(self._project(x, last_place(x)))
        return self._read(x[:, -1:], q, self._whole(k, v, x), x.shape[1] - 1)[:, 0]


class SoftmaxMixer(CachedMixer):
    """Queries, keys and values of softmax attention, rotated where the mechanism says so, and its
    sinks: a number s per head that adds exp(s) to the denominator of every softmax.
    """

    caps: ClassVar[bool] = False
    """Whether every form knows capped scores."""
    chooses: bool = False
    """Whether which tokens are read hangs on what they hold, by the largest of some scores."""

    def __init__(
        self, mechanism: Softmax, *, width: int, sink: bool = False, kv_sets: int = 1
    ) -> None:
        """`kv_sets`: how many sets of keys and values a token has, side by side in k and v."""
        sizes = mechanism.sizes()
        norm = sizes.get("qk_norm", "none")
        capped = mechanism.softcap and not self.caps
        unbuilt(mechanism, softcap=capped, bounded=mechanism.bounded, qk_norm=norm == "other")
        super().__init__(mechanism, width=width)
        self.heads, self.head_dim, self.dv = mechanism.heads, mechanism.head_dim, mechanism.dv
        self.kv, self.kv_sets = mechanism.kv, kv_sets
        heads, kv = self.heads, self.kv
        self._add_maps(heads, kv_sets * kv, kv_sets * kv, kernel=mechanism.conv, silu=False)
        self.rotation = mechanism.rotation
        self.cap = mechanism.softcap
        self.sink = nn.Parameter(torch.zeros(heads)) if sink else None
        self.q_norm = None if norm == "none" else HeadNorm(norm, heads, self.head_dim)
        self.k_norm = None if norm == "none" else HeadNorm(norm, kv, self.head_dim)
        self.gated = sizes.get("gate", "none")
        gates = {"none": 0, "head": heads, "sigmoid": heads * self.dv}[self.gated]
        self.gate = linear(width, gates) if gates else None

    @torch.no_grad()
    def reset(self, generator: torch.Generator) -> None:
        super().reset(generator)
        if self.sink is not None:
            self.sink.normal_(generator=generator)
        if self.q_norm is not None and self.k_norm is not None:
            # the factor 1/sqrt(d), which a norm takes out of Q
            self.q_norm.weight.fill_(self.scale)
            self.k_norm.weight.fill_(1)

    def _cached(self, tokens: int) -> Shapes:
        return {"keys": (self.kv, tokens, self.head_dim), "values": (self.kv, tokens, self.dv)}

    def _qkv(self, projected: Projected, start: int = 0, places: Places | None = None) -> Projected:
        """q (b h r d), k (b g t d), v (b g t e)."""
        q = split_heads(projected[0], self.heads)
        k = split_heads(projected[1], self.kv_sets * self.kv)
        v = split_heads(projected[2], self.kv_sets * self.kv)
        if self.q_norm is not None and self.k_norm is not None:
            q = self.q_norm(q)
            k = self.k_norm(k)
        if self.rotation is not None:
            q = rotate(q, self.rotation, start=start + k.shape[2] - q.shape[2], places=places)
            k = rotate(k, self.rotation, start=start)
        return q, k, v

    def _stored(self, k: Tensor, v: Tensor, x: Tokens, start: int) -> State:
        return {"keys": k, "values": v}

    def _read(self, x: OneToken, q: Queries, kept: State, place: int) -> OneToken:
        seen = self._reach(place)
        return self._out(self._attend(q, *(kept[y][:, :, -seen:] for y in ("keys", "values"))), x)

    def _reach(self, place: Any) -> Any:
        """How many tokens the one at a place reads, itself included (places may be a tensor)."""
        return place + 1

    def _sees(self, places: Places, tokens: int) -> Bool[Tensor, "b 1 k t"]:
        """Which tokens queries at the places read."""
        back = places[:, None, :, None] - torch.arange(tokens, device=places.device)
        return (back >= 0) & (back < self._reach(places[:, None, :, None]))

    def _at(self, x: Tokens, places: Places) -> TokensAt:
        if self.chooses or self.heads * places.numel() * x.shape[1] > KEPT:
            return super()._at(x, places)
        q, k, v = self._qkv(self._project(x, places), places=places)
        y = self._masked(q, k, v, self._sees(places, x.shape[1]), x, places)
        return self._out(y, taken(x, places))

    def _masked(
        self, q: Queries, k: GroupKeys, v: GroupValues, seen: Tensor, x: Tokens, places: Places
    ) -> Reads:
        return masked_softmax(q, self._shared(k), self._shared(v), seen, self.sink, self.cap)

    def _shared(self, x: Shaped[Tensor, "b g ..."]) -> Shaped[Tensor, "b h ..."]:
        """Every key-value head copied to the query heads that share it."""
        if x.shape[1] == self.heads:
            return x
        return x.repeat_interleave(self.heads // x.shape[1], 1)

    def _attend(self, q: Queries, k: GroupKeys, v: GroupValues) -> Reads:
        """The output of one token that sees all the keys and values given."""
        return softmax(self._scores(q, k), self._shared(v), self.sink)

    def _scores(self, q: Queries, k: GroupKeys) -> Float[Tensor, "b h r t"]:
        return capped(wide(q) @ wide(self._shared(k)).transpose(-1, -2), self.cap)

    def _out(self, y: Values, x: Tokens) -> Tokens:
        """The output map, behind the gate of the tokens x where there is one."""
        if self.gate is not None:
            y = split_heads(self.gate(x).sigmoid(), self.heads) * y
        return self.o(merge_heads(y.to(x.dtype)))
