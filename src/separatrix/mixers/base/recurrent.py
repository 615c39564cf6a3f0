"""Mixers with a matrix state: recurrences in two forms, apart from the maps that feed them; their
heads, the three forms, output norm and gate.

A mixer says what the terms are: queries, keys, values, decay, strength. A recurrence says what
happens to them: `step` is the truth, one token at a time, and `outputs` the parallel form.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from functools import partial

import torch
import torch.nn.functional as F
from jaxtyping import Float, Int
from torch import Tensor, nn

from separatrix.mixers.base.heads import Projected, Projections, merge_heads, split_heads
from separatrix.mixers.base.mixer import (
    EPSILON,
    Shapes,
    State,
    linear,
    normed,
    taken,
    taken_heads,
    wide,
)
from separatrix.mixers.base.tensors import (
    Keys,
    PerToken,
    Places,
    Reads,
    Token,
    Tokens,
    TokensAt,
    Values,
)
from separatrix.mixers.kernels import chosen
from separatrix.mixers.ops.decay import decayed, decayed_scores
from separatrix.mixers.ops.delta_rule import delta_rule, updated
from separatrix.stacks.mechanisms import Mamba2, MatrixState

Terms = tuple[Tensor, ...]
"""Queries (b h r d), keys (b h t d), values (b h t e), then what else the recurrence asks for."""


class Recurrence(ABC):
    """A recurrence in its two forms, for heads side by side."""

    most: float = 0
    """Up to how many places `at` reads at less cost than `outputs` reads every token."""

    @abstractmethod
    def outputs(self, terms: Terms, *, chunk: int, dtype: torch.dtype) -> Values:
        """The outputs of every token, in a layer of this format."""

    def shares(
        self, terms: Terms, places: Int[Tensor, "b r"], chunk: int
    ) -> tuple[Float[Tensor, "b h r t"], Values]:
        """What the tokens at some places, whose queries alone are among the terms, take of every
        token, and of what; where there is a `most`.
        """
        raise NotImplementedError

    def at(self, terms: Terms, places: Int[Tensor, "b r"], chunk: int) -> Reads:
        """The outputs there, in torch whatever the device."""
        shares, values = self.shares(terms, places, chunk)
        return shares @ values

    @abstractmethod
    def step(self, terms: Terms, state: State, t: int) -> tuple[Tensor, State]:
        """The output (b h 1 e) of one token and the new state; t tokens came before it."""


class Decayed(Recurrence):
    """S_i = S_{i-1} diag(a_i) + v_i k_i^T, or with `overwrites` the delta rule

        S_i = S_{i-1} diag(a_i) (I - b_i k_i k_i^T) + b_i v_i k_i^T,   y_i = S_i q_i

    Terms: q, k, v, log a (b h t d, or b h t 1 for one decay of all key dimensions, as `scalar` says
    of all) and, if it overwrites, the strength b (b h t 1); then there may be several updates to a
    token, one after the other among the keys. The state S holds S^T (b h d e). Parallel form:
    chunks (ops/decay.py, ops/delta_rule.py), on CUDA fla's kernels.
    """

    def __init__(self, *, scalar: bool = False, overwrites: bool = False) -> None:
        self.most = math.inf if scalar else 1
        self.overwrites = overwrites

    def outputs(self, terms: Terms, *, chunk: int, dtype: torch.dtype) -> Values:
        _, k, v, log_a, *_ = terms
        names = ("gated_delta_rule", "kda") if self.overwrites else ("simple_gla", "gla")
        kernel = chosen(names[log_a.shape[-1] > 1], k, v, dtype)
        own = partial(delta_rule if self.overwrites else decayed, chunk=chunk)
        return (own if kernel is None else kernel)(*terms)

    def shares(
        self, terms: Terms, places: Int[Tensor, "b r"], chunk: int
    ) -> tuple[Float[Tensor, "b h r t"], Values]:
        q, *updates = terms
        k, v, log_a, *_ = updates
        # the state of the delta rule is that of the other with u for v
        written = delta_rule(None, *updates, chunk=chunk) if self.overwrites else v
        return decayed_scores(q, k, log_a, places), written

    def step(self, terms: Terms, state: State, t: int) -> tuple[Tensor, State]:
        q, *updates = terms
        new = wide(state["S"])
        if updates[0].shape[-2] == 1:
            new = updated(new, *updates)
        else:
            # n updates of one token (b h n .), in turn; the query reads after the last
            for update in zip(*(x.split(1, -2) for x in updates), strict=True):
                new = updated(new, *update)
        return q @ new, {"S": new}


SHORTEST_LENGTH = 1e-6
"""Vectors shorter than this are divided by it instead of by their length, so that 0 stays 0."""
ACTIVATIONS = {"silu": F.silu, "sigmoid": torch.sigmoid}


class RecurrentMixer(Projections):
    """Maps to queries, keys and values, a recurrence over them, output norm and gate.

    Subclasses name their `recurrence` and say what its terms are. Several value heads may share one
    query-key head. With `gate` norm, every head's output is divided by its root mean square and
    scaled by a learned vector. With silu or sigmoid that is also multiplied by this function of a
    map G x.
    """

    recurrence: Recurrence

    def __init__(
        self,
        mechanism: MatrixState | Mamba2,
        *,
        width: int,
        updates: int = 1,
        silu: bool = True,
        unit_queries: bool = False,
    ) -> None:
        super().__init__(mechanism, width=width)
        heads, qk, head_dim, dv = mechanism.matrices
        self.heads, self.qk, self.head_dim, self.dv = heads, qk, head_dim, dv
        self.updates = updates
        self._add_maps(qk, updates * qk, updates * heads, kernel=mechanism.conv, silu=silu)
        tail = mechanism.sizes().get("gate", "none")
        self.norm = None if tail == "none" else nn.Parameter(torch.ones(dv))
        self.gate = linear(width, heads * dv) if tail in ACTIVATIONS else None
        self.activation = ACTIVATIONS.get(tail)
        # behind queries of unit length: released layers divide those by sqrt(d), and the norm takes
        # that factor out again, but not from its epsilon
        self.epsilon = EPSILON * head_dim if unit_queries else EPSILON

    @torch.no_grad()
    def reset(self, generator: torch.Generator) -> None:
        super().reset(generator)
        if self.norm is not None:
            self.norm.fill_(1)

    def shapes(self, t: int) -> Shapes:
        return {"S": (self.heads, self.head_dim, self.dv)} | self._conv_shapes(t)

    def _terms(self, qkv: Projected, x: Tokens, start: int) -> Terms:
        """The terms of the recurrence for the tokens x, the first of which stands at `start`;
        here q, k and v alone. Queries may be there for some tokens only.
        """
        return qkv

    def _beside(self, v: Reads) -> Reads | None:
        """What tokens with these values add to their own outputs, past the state."""
        return None

    def _forward(self, x: Tokens) -> Tokens:
        qkv = self._heads_of(self._project(x))
        q, *updates = self._terms(qkv, x, 0)
        # a token reads after the last of its updates: queries of 0 stand at the others
        last = self.updates - 1
        if last:
            q = F.pad(q[:, :, :, None], (0, 0, last, 0)).flatten(2, 3)
        y = self.recurrence.outputs((q, *updates), chunk=self.chunk, dtype=x.dtype)
        return self._out(y[:, :, last :: self.updates], x, self._beside(qkv[2]))

    def _at(self, x: Tokens, places: Places) -> TokensAt:
        # fla's kernels, which run on CUDA outside of transforms, take every query
        kernels = x.is_cuda and not torch._C._are_functorch_transforms_active()
        few = places.shape[1] <= self.recurrence.most and not kernels
        if not few and self.updates > 1:
            return super()._at(x, places)
        asked = places if few else None
        qkv = self._heads_of(self._project(x, asked), 0, asked)
        terms = self._terms(qkv, x, 0)
        # a token reads after the last of its updates
        read = places * self.updates + self.updates - 1
        if few:
            y = self.recurrence.at(terms, read, self.chunk)
        else:
            y = taken_heads(self.recurrence.outputs(terms, chunk=self.chunk, dtype=x.dtype), read)
        return self._out(y, taken(x, places), self._beside(taken_heads(qkv[2], read)))

    def _step(self, x: Token, state: State, t: int) -> tuple[Token, State]:
        projected, conv = self._convolve_step(self._maps(x, x), state)
        qkv = self._heads_of(projected, t)
        terms = self._terms(qkv, x[:, None], t)
        y, new = self.recurrence.step(terms, self._summed(state), t)
        return self._out(y, x[:, None], self._beside(qkv[2]))[:, 0], self._store(**new) | conv

    def _heads_of(
        self, projected: Projected, start: int = 0, places: Places | None = None
    ) -> Projected:
        """q (b h t d), k (b h (t n) d) and v (b h (t n) e) with n updates per token, in float32
        at least; the first token stands at `start`, queries at the places if given.
        """
        copies = self.heads // self.qk
        # sums over tokens need more digits than half formats have
        q, k, v = (wide(x) for x in projected)
        if self.updates > 1:
            k, v = (x.unflatten(2, (self.updates, -1)).flatten(1, 2) for x in (k, v))
        return (
            split_heads(q, self.qk, copies),
            split_heads(k, self.qk, copies),
            split_heads(v, self.heads),
        )

    def _out(self, y: Values, x: Tokens, beside: Values | None = None) -> Tokens:
        """The output map, after norm and gate; y are the heads' outputs for the tokens x,
        `beside` what is added between norm and gate.
        """
        if self.norm is not None:
            # of each head by itself: y / rms(y), then scaled
            y = normed(y, self.epsilon) * self.norm
        merged = merge_heads(y if beside is None else y + beside).to(x.dtype)
        if self.gate is not None and self.activation is not None:
            merged = merged * self.activation(self.gate(x))
        return self.o(merged)


def per_head(x: Float[Tensor, "b t h"]) -> PerToken:
    """A number per token and head, in float32 at least, to stand beside keys."""
    return wide(x).transpose(1, 2)[..., None]


def unit(x: Keys) -> Keys:
    """Vectors scaled to length 1; 0 stays 0."""
    return x / torch.linalg.vector_norm(x, dim=-1, keepdim=True).clamp_min(SHORTEST_LENGTH)


def divide(
    numerator: Float[Tensor, "*b e"], denominator: Float[Tensor, "*b 1"]
) -> Float[Tensor, "*b e"]:
    """The quotient, and 0 where the denominator is 0."""
    zero = denominator == 0
    # both ways finite: a quotient that is not taken still has a gradient, and NaN times 0 is NaN
    return torch.where(zero, 0.0, numerator / torch.where(zero, 1.0, denominator))
