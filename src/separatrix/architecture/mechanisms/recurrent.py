"""Recurrences whose state is a matrix per head: linear attention and its gated and delta-rule descendants."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from separatrix.architecture.mechanisms._base import CacheItem, Heads, LayerKind, Mechanism, choice, flag, integer, number_format
from separatrix.bits import Bits, NumberFormat
from separatrix.errors import SizeError

NEGATIVE = "whether b_i lies in (0, 2) instead of (0, 1), so that I - b_i k_i k_i^T has eigenvalues down to -1 (arXiv 2411.12537)"


@dataclass(frozen=True, kw_only=True)
class Stateful(Mechanism):
    """A recurrent state with its own number format."""

    group: ClassVar[LayerKind] = "recurrent"

    state_format: str | None = number_format(None, "number format of the recurrent state; format if not given")

    @property
    def state_p(self) -> int:
        """Bits per number of the recurrent state."""
        return NumberFormat(self.state_format or self.format).bits

    def _state(self, numbers: int) -> CacheItem:
        return CacheItem("state", Bits.of(numbers, self.state_p))

    def assumptions(self) -> tuple[str, ...]:
        return (f"the recurrent state holds {self.state_p} bits per number",)


@dataclass(frozen=True, kw_only=True)
class MatrixState(Stateful, Heads):
    """A state of d x d_v numbers per head, with an optional short convolution on q, k, v."""

    operations: ClassVar[int] = 5
    """Operations per number of the state and token: outer product and read 2 each, decay 1, delta rule 2."""

    key_heads: int | None = integer(None, "number of query-key heads; heads if not given")
    gate: str = choice(
        "none",
        ("none", "norm", "silu", "sigmoid"),
        "what follows each head, position-wise: nothing, an RMS norm, or the norm times silu or sigmoid of a map of x",
        alters=True,
    )

    @property
    def qk(self) -> int:
        return self.heads if self.key_heads is None else self.key_heads

    def _check(self) -> None:
        if self.heads % self.qk:
            raise SizeError(f"{self.name}: key_heads={self.qk} does not divide heads={self.heads}; choose a divisor")

    @property
    def state_numbers(self) -> int:
        """Numbers in the recurrent state."""
        return self.heads * self.head_dim * self.dv

    @property
    def _channels(self) -> int:
        return 2 * self.qk * self.head_dim + self.heads * self.dv

    def cache(self, t: int) -> tuple[CacheItem, ...]:
        return (self._state(self.state_numbers), self._convolution(self._channels, t))

    def flops(self, t: int) -> int:
        return self.operations * self.state_numbers + 2 * self.conv * self._channels


@dataclass(frozen=True, kw_only=True)
class Linear(MatrixState):
    """Linear attention: S_i = S_{i-1} + V x_i (x) phi(K x_i), Z_i = Z_{i-1} + phi(K x_i), y_i = S_i phi(Q x_i) / <phi(Q x_i), Z_i>."""

    name: ClassVar[str] = "linear"
    title: ClassVar[str] = "linear attention"
    symbol: ClassVar[str] = "l"
    source: ClassVar[str] = "Katharopoulos et al. 2020; [Ye26] Lemma 2.2"
    operations: ClassVar[int] = 4

    feature: str = choice(
        "elu", ("elu", "relu", "identity", "taylor"), "feature map phi: elu(x)+1, relu(x), x, or (1, x, x (x) x / sqrt 2)"
    )
    normaliser: bool = flag(True, "whether the state carries the normaliser Z")

    @property
    def feature_dim(self) -> int:
        """d_phi."""
        return 1 + self.head_dim + self.head_dim**2 if self.feature == "taylor" else self.head_dim

    @property
    def state_numbers(self) -> int:
        """H d_phi (d + 1), or H d_phi d without normaliser [Ye26, Lemma 2.2]."""
        return self.heads * self.feature_dim * (self.dv + self.normaliser)


@dataclass(frozen=True, kw_only=True)
class Lightning(MatrixState):
    """Lightning attention: S_i = a S_{i-1} + v_i k_i^T with one fixed decay a per head, y_i = S_i q_i."""

    name: ClassVar[str] = "lightning"
    title: ClassVar[str] = "Lightning attention"
    symbol: ClassVar[str] = "y"
    source: ClassVar[str] = "Qin et al. 2024, arXiv 2401.04658; MiniMax 2025 (MiniMax-01), arXiv 2501.08313"


@dataclass(frozen=True, kw_only=True)
class RetNet(MatrixState):
    """Retention: S_i = a S_{i-1} + v_i k_i^T with one fixed decay a per head and rotated q, k; y_i = S_i q_i."""

    name: ClassVar[str] = "retnet"
    title: ClassVar[str] = "retention"
    symbol: ClassVar[str] = "t"
    source: ClassVar[str] = "Sun et al. 2023, arXiv 2307.08621"

    def _check(self) -> None:
        super()._check()
        if self.head_dim % 2:
            raise SizeError(f"retnet: head_dim={self.head_dim} is odd; its rotation turns pairs of dimensions")


@dataclass(frozen=True, kw_only=True)
class GLA(MatrixState):
    """Gated linear attention: S_i = S_{i-1} diag(a_i) + v_i k_i^T with data-dependent decay per key dimension, y_i = S_i q_i."""

    name: ClassVar[str] = "gla"
    title: ClassVar[str] = "gated linear attention"
    symbol: ClassVar[str] = "q"
    source: ClassVar[str] = "Yang et al. 2023, arXiv 2312.06635"


@dataclass(frozen=True, kw_only=True)
class HGRN2(MatrixState):
    """HGRN-2: S_i = S_{i-1} diag(f_i) + v_i (1 - f_i)^T, y_i = S_i q_i; head_dim is the expansion, so D x expansion numbers."""

    name: ClassVar[str] = "hgrn2"
    title: ClassVar[str] = "HGRN-2"
    symbol: ClassVar[str] = "e"
    source: ClassVar[str] = "Qin et al. 2024, arXiv 2404.07904"


@dataclass(frozen=True, kw_only=True)
class DeltaNet(MatrixState):
    """DeltaNet: S_i = S_{i-1} (I - b_i k_i k_i^T) + b_i v_i k_i^T, y_i = S_i q_i, with k_i of unit length."""

    name: ClassVar[str] = "deltanet"
    title: ClassVar[str] = "DeltaNet"
    symbol: ClassVar[str] = "d"
    source: ClassVar[str] = "Schlag, Irie, Schmidhuber 2021; Yang et al. 2024, arXiv 2406.06484"
    operations: ClassVar[int] = 6

    negative: bool = flag(False, NEGATIVE, alters=True)


@dataclass(frozen=True, kw_only=True)
class GatedDeltaNet(MatrixState):
    """Gated DeltaNet: S_i = a_i S_{i-1} (I - b_i k_i k_i^T) + b_i v_i k_i^T, y_i = S_i q_i, with k_i of unit length."""

    name: ClassVar[str] = "gdn"
    title: ClassVar[str] = "Gated DeltaNet"
    symbol: ClassVar[str] = "g"
    source: ClassVar[str] = "Yang, Kautz, Hatamizadeh 2024, arXiv 2412.06464"
    operations: ClassVar[int] = 7

    negative: bool = flag(False, NEGATIVE, alters=True)


@dataclass(frozen=True, kw_only=True)
class DeltaProduct(MatrixState):
    """Gated DeltaProduct: `householders` delta-rule updates per token, the decay a_i in the first of them; y_i = S_i q_i after the last."""

    name: ClassVar[str] = "deltaproduct"
    title: ClassVar[str] = "Gated DeltaProduct"
    symbol: ClassVar[str] = "p"
    source: ClassVar[str] = "Siems et al. 2025, arXiv 2502.10297"

    householders: int = integer(2, "delta-rule updates per token n_h, each with a key, a value and a b of its own")
    negative: bool = flag(True, NEGATIVE, alters=True)

    @property
    def _channels(self) -> int:
        return self.qk * self.head_dim * (1 + self.householders) + self.householders * self.heads * self.dv

    def flops(self, t: int) -> int:
        """Decay 1 and read 2 per number of the state, and 4 for every update."""
        return (3 + 4 * self.householders) * self.state_numbers + 2 * self.conv * self._channels


@dataclass(frozen=True, kw_only=True)
class KDA(MatrixState):
    """Kimi Delta Attention: S_i = S_{i-1} diag(a_i) (I - b_i k_i k_i^T) + b_i v_i k_i^T with decay per key dimension, y_i = S_i q_i."""

    name: ClassVar[str] = "kda"
    title: ClassVar[str] = "Kimi Delta Attention"
    symbol: ClassVar[str] = "k"
    source: ClassVar[str] = "Kimi Team 2025 (Kimi Linear), arXiv 2510.26692"
    operations: ClassVar[int] = 7


@dataclass(frozen=True, kw_only=True)
class MLSTM(MatrixState):
    """mLSTM: C_i = f_i C_{i-1} + g_i v_i k_i^T, n_i = f_i n_{i-1} + g_i k_i, m_i the gates' running maximum; y_i = C_i q_i / max(|n_i q_i|, 1)."""

    name: ClassVar[str] = "mlstm"
    title: ClassVar[str] = "mLSTM"
    symbol: ClassVar[str] = "x"
    source: ClassVar[str] = "Beck et al. 2024 (xLSTM), arXiv 2405.04517"

    @property
    def state_numbers(self) -> int:
        """H (d d_v + d + 1): matrix, normaliser, maximum."""
        return self.heads * (self.head_dim * self.dv + self.head_dim + 1)


@dataclass(frozen=True, kw_only=True)
class RWKV(MatrixState):
    """RWKV-6 and -7: S_i = S_{i-1} A_i + v_i k_i^T, A_i diagonal (6) or diagonal plus rank one (7); token shifts mix in the last input."""

    name: ClassVar[str] = "rwkv"
    title: ClassVar[str] = "RWKV"
    symbol: ClassVar[str] = "v"
    source: ClassVar[str] = "Peng et al. 2024, arXiv 2404.05892; 2025, arXiv 2503.14456"
    operations: ClassVar[int] = 7

    width: int | None = integer(None, "width D of a token shift; heads x head dimension if not given")
    version: int = integer(7, "generation: 6 or 7", alters=True)
    shifts: int = integer(1, "token shifts: 1 of time mixing; 2 with that of the layer's channel mixing, which remembers a token too")

    def _check(self) -> None:
        super()._check()
        if self.version not in (6, 7):
            raise SizeError(f"rwkv: version is {self.version}; it must be 6 or 7")

    def cache(self, t: int) -> tuple[CacheItem, ...]:
        width = self.inner_width if self.width is None else self.width
        shifted = Bits.of(self.shifts * width * min(t, 1), self.p)
        state, convolution = super().cache(t)
        return (CacheItem("state", state.bits + shifted), convolution)


@dataclass(frozen=True, kw_only=True)
class LogLinear(MatrixState):
    """Log-linear attention: Fenwick buckets over the past, one linear state each, at most floor(log2 t) + 1 of them after t tokens."""

    name: ClassVar[str] = "loglinear"
    title: ClassVar[str] = "log-linear attention"
    symbol: ClassVar[str] = "o"
    source: ClassVar[str] = "Guo et al. 2025, arXiv 2506.04761"

    base: str = choice("linear", ("linear", "gdn"), "recurrence of every bucket's state: linear attention or Gated DeltaNet", alters=True)
    feature: str = choice("identity", ("elu", "relu", "identity"), "feature map of the linear states; base=linear only")

    def _check(self) -> None:
        super()._check()
        if self.base != "linear" and self.feature != "identity":
            raise SizeError(f"loglinear: base={self.base} has no feature map; leave out feature={self.feature}")

    def cache(self, t: int) -> tuple[CacheItem, ...]:
        buckets = t.bit_length()  # floor(log2 t) + 1 for t >= 1
        return (self._state(buckets * self.state_numbers), self._convolution(self._channels, t))

    def flops(self, t: int) -> int:
        return self.operations * t.bit_length() * self.state_numbers + 2 * self.conv * self._channels
