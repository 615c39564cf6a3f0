"""Linear attention.

    S_i = S_{i-1} + V x_i (x) phi(K x_i),   Z_i = Z_{i-1} + phi(K x_i),
    y_i = S_i phi(Q x_i) / <phi(Q x_i), Z_i>

Without normaliser there is no Z and y_i = S_i phi(Q x_i). phi as `features` has it.
Source: Katharopoulos et al. 2020; [Ye26] Lemma 2.2; taylor: Arora et al. 2024 (Based), arXiv
2402.18668. State: S (heads, d_phi, value_dim) and, with normaliser, Z (heads, d_phi).
Denominator: after i tokens taylor's is at least i/2, elu's is positive until it underflows, relu's
is at least 0, identity's has any sign. Where it is exactly 0, y_i is 0 (theory.md, section 6: 0/0
is 0). No epsilon is added: a denominator near 0 gives a large output, as the definition says.
Parallel form: chunks; inside a chunk the kernel under a causal mask, before it the sums of the
chunks.
"""

from __future__ import annotations

import math

import torch
import torch.nn.functional as F
from jaxtyping import Float, Int
from torch import Tensor

from separatrix.mixers.base.mixer import Shapes, State, join_chunks, split_chunks, wide
from separatrix.mixers.base.recurrent import Recurrence, RecurrentMixer, Terms, divide
from separatrix.mixers.base.tensors import Keys, Reads, Values
from separatrix.mixers.kernels import chosen
from separatrix.mixers.ops.decay import later
from separatrix.stacks.mechanisms import Linear


def features(name: str, x: Float[Tensor, "*b d"]) -> Float[Tensor, "*b f"]:
    """phi(x): elu(x)+1, relu(x), x, or taylor (1, x, x (x) x / sqrt 2), of d, d, d or 1+d+d^2
    numbers.
    """
    if name == "taylor":
        # <x (x) x, y (x) y> = <x, y>^2, so the root of 1/2 gives s^2 / 2
        squares = (x[..., :, None] * x[..., None, :]).flatten(-2) * 0.5**0.5
        return torch.cat([torch.ones_like(x[..., :1]), x, squares], -1)
    return {"elu": lambda x: F.elu(x) + 1, "relu": F.relu, "identity": lambda x: x}[name](x)


def kernel(
    name: str, q: Float[Tensor, "*b i d"], k: Float[Tensor, "*b j d"]
) -> Float[Tensor, "*b i j"]:
    """<phi(q_i), phi(k_j)>; for taylor 1 + s + s^2/2 with s = <q_i, k_j>, without writing the
    features out.
    """
    if name == "taylor":
        s = q @ k.transpose(-1, -2)
        return 1 + s + 0.5 * s * s
    return features(name, q) @ features(name, k).transpose(-1, -2)


class Sums(Recurrence):
    """The sums S and Z of linear attention. Terms: q, k, v, before the feature map.

    Values have a column of ones where there is a normaliser: its output is the denominator.
    """

    most = math.inf

    def __init__(self, feature: str, *, normaliser: bool) -> None:
        self.feature = feature
        self.normaliser = normaliser

    def outputs(self, terms: Terms, *, chunk: int, dtype: torch.dtype) -> Values:
        q, k, v = terms
        v = self._counted(v)
        # taylor's features would have to be written out
        fast = None if self.feature == "taylor" else chosen("linear", k, v, dtype)
        if fast is None:
            return self._divided(chunked(self.feature, q, k, v, chunk=chunk))
        return self._divided(fast(features(self.feature, q), features(self.feature, k), v, None))

    def shares(
        self, terms: Terms, places: Int[Tensor, "b r"], chunk: int
    ) -> tuple[Float[Tensor, "b h r t"], Values]:
        q, k, v = terms
        scores = kernel(self.feature, q, k).masked_fill(later(places, k.shape[2]), 0)
        return scores, self._counted(v)

    def at(self, terms: Terms, places: Int[Tensor, "b r"], chunk: int) -> Reads:
        return self._divided(super().at(terms, places, chunk))

    def _counted(self, v: Values) -> Float[Tensor, "b h t n"]:
        return torch.cat([v, torch.ones_like(v[..., :1])], -1) if self.normaliser else v

    def _divided(self, y: Float[Tensor, "b h r n"]) -> Reads:
        return divide(y[..., :-1], y[..., -1:]) if self.normaliser else y

    def step(self, terms: Terms, state: State, t: int) -> tuple[Tensor, State]:
        q, k, v = terms
        phi_q = features(self.feature, q)  # b h 1 f
        phi_k = features(self.feature, k)
        new = {"S": wide(state["S"]) + phi_k.transpose(-1, -2) * v}
        y = phi_q @ new["S"]
        if self.normaliser:
            new["Z"] = wide(state["Z"]) + phi_k[:, :, 0]
            y = divide(y, phi_q @ new["Z"][..., None])
        return y, new


class LinearMixer(RecurrentMixer):
    """Linear attention with a feature map, normalised or not."""

    def __init__(self, mechanism: Linear, *, width: int) -> None:
        super().__init__(mechanism, width=width)
        self.feature = mechanism.feature
        self.normaliser = mechanism.normaliser
        self.feature_dim = mechanism.feature_dim
        self.recurrence = Sums(self.feature, normaliser=self.normaliser)

    def shapes(self, t: int) -> Shapes:
        sums: Shapes = {"S": (self.heads, self.feature_dim, self.dv)}
        if self.normaliser:
            sums["Z"] = (self.heads, self.feature_dim)
        return sums | self._conv_shapes(t)


def chunked(feature: str, q: Keys, k: Keys, v: Values, *, chunk: int) -> Values:
    """sum_{j<=i} <phi(q_i), phi(k_j)> v_j for every i."""
    tokens = q.shape[2]
    q, k, v = (split_chunks(x, chunk) for x in (q, k, v))  # b h n c ...
    y = kernel(feature, q, k).tril() @ v
    if q.shape[2] > 1:
        # no chunk comes after the last to read its sum, and the first has none to read
        sums = features(feature, k[:, :, :-1]).transpose(-1, -2) @ v[:, :, :-1]
        y = y + F.pad(features(feature, q[:, :, 1:]) @ sums.cumsum(2), (0, 0, 0, 0, 1, 0))
    return join_chunks(y, tokens)
