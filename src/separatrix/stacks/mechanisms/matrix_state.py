"""Recurrences whose state is a matrix per head."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar, Self

from separatrix.core.errors import SizeError
from separatrix.core.numbers.growth import Growth, doublings
from separatrix.stacks.mechanisms.base import (
    EXACT_FORMATS,
    Heads,
    Slots,
    Stores,
    Turning,
    choice,
    flag,
    integer,
)
from separatrix.stacks.mechanisms.recurrent_state import Matrices, Shifted, Stateful

NEGATIVE = (
    "whether b_i lies in (0, 2) instead of (0, 1), so that I - b_i k_i k_i^T has eigenvalues down"
    " to -1 (arXiv 2411.12537)"
)


@dataclass(frozen=True, kw_only=True)
class MatrixState(Stateful, Heads):
    """A state of d x d_v numbers per head, with an optional short convolution on q, k, v."""

    delta_rule: ClassVar[bool] = False
    """Whether a token overwrites what its key finds, as far as its b in [0, 1] says."""

    key_heads: int | None = integer(None, "number of query-key heads; heads if not given")
    gate: str = choice(
        "none",
        ("none", "norm", "silu", "sigmoid"),
        "what follows each head, position-wise: nothing, an RMS norm, or the norm times silu or"
        " sigmoid of a map of x",
        alters=True,
    )

    @property
    def qk(self) -> int:
        return self.heads if self.key_heads is None else self.key_heads

    def _check(self) -> None:
        self._must_divide("key_heads", self.qk, self.heads)

    @property
    def matrices(self) -> Matrices:
        return Matrices(self.heads, self.qk, self.head_dim, self.dv)

    @property
    def state_numbers(self) -> int:
        return self.heads * self.head_dim * self.dv

    @property
    def channels(self) -> int:
        return 2 * self.qk * self.head_dim + self.heads * self.dv

    @property
    def turning(self) -> Turning | None:
        reflections = self._reflections
        if not reflections or not self.formats <= EXACT_FORMATS:
            return None
        bare = not self.conv and self.gate == "none"
        return Turning(reflections, self.qk, self.head_dim, self.dv, bare)

    @property
    def _reflections(self) -> int:
        """Updates of a token that can be reflections: of the delta rule, with b_i up to 2."""
        return 0

    @property
    def _handed_on(self) -> int:
        return self.dv

    @property
    def latched(self) -> int:
        # one key for all tokens: b = 1 overwrites, and b = 0 with a decay of 1 keeps
        known = self.delta_rule and self.formats <= EXACT_FORMATS
        return self.heads * self.dv if known else 0

    def resized(self, **sizes: Any) -> Self:
        """At other sizes; another key dimension leaves the dimension of the values as it was."""
        if sizes.get("head_dim", self.head_dim) != self.head_dim:
            sizes = {"value_dim": self.dv} | sizes
        return super().resized(**sizes)


@dataclass(frozen=True, kw_only=True)
class Linear(MatrixState, row="linear"):
    """Linear attention: S_i = S_{i-1} + V x_i (x) phi(K x_i), Z_i = Z_{i-1} + phi(K x_i), y_i =
    S_i phi(Q x_i) / <phi(Q x_i), Z_i>.
    """

    feature: str = choice(
        "elu",
        ("elu", "relu", "identity", "taylor"),
        "feature map phi: elu(x)+1, relu(x), x, or (1, x, x (x) x / sqrt 2)",
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

    @property
    def adds_up(self) -> bool:
        return self.plain and not self.normaliser and self.feature in ("identity", "relu")


@dataclass(frozen=True, kw_only=True)
class Lightning(MatrixState, row="lightning"):
    """Lightning attention: S_i = a S_{i-1} + v_i k_i^T with one fixed decay a per head, y_i =
    S_i q_i.
    """

    rotated: bool = flag(
        False,
        "whether queries and keys are rotated by their places (Ring-linear)",
        alters=True,
    )

    @property
    def is_monotone(self) -> bool:
        # rotated keys add unlike things for equal tokens, as in retention
        return not self.rotated


@dataclass(frozen=True, kw_only=True)
class RetNet(MatrixState, row="retnet"):
    """Retention: S_i = a S_{i-1} + v_i k_i^T with one fixed decay a per head and rotated q, k;
    y_i = S_i q_i.
    """

    # not `monotone`: keys are rotated by their places, so that equal tokens add unlike things

    def _check(self) -> None:
        super()._check()
        if self.head_dim % 2:
            raise SizeError(
                f"retnet: head_dim={self.head_dim} is odd; its rotation turns pairs of dimensions"
            )


@dataclass(frozen=True, kw_only=True)
class GLA(MatrixState, row="gla"):
    """Gated linear attention: S_i = S_{i-1} diag(a_i) + v_i k_i^T with data-dependent decay per
    key dimension, y_i = S_i q_i.
    """


@dataclass(frozen=True, kw_only=True)
class HGRN2(MatrixState, row="hgrn2"):
    """HGRN-2: S_i = S_{i-1} diag(f_i) + v_i (1 - f_i)^T, y_i = S_i q_i; head_dim is the
    expansion, so D x expansion numbers.
    """


@dataclass(frozen=True, kw_only=True)
class Delta(MatrixState):
    """A token overwrites what its key finds, as far as its b says."""

    negative: bool = flag(False, NEGATIVE, alters=True)

    @property
    def _reflections(self) -> int:
        return int(self.negative)

    @property
    def slots(self) -> Slots | None:
        # a key of length 1, with b = 1
        return Slots(self.head_dim, self.dv) if self.plain else None


@dataclass(frozen=True, kw_only=True)
class DeltaNet(Delta, row="deltanet"):
    """DeltaNet: S_i = S_{i-1} (I - b_i k_i k_i^T) + b_i v_i k_i^T, y_i = S_i q_i, with k_i of
    unit length.
    """


@dataclass(frozen=True, kw_only=True)
class GatedDeltaNet(Delta, row="gdn"):
    """Gated DeltaNet: S_i = a_i S_{i-1} (I - b_i k_i k_i^T) + b_i v_i k_i^T, y_i = S_i q_i, with
    k_i of unit length.
    """


@dataclass(frozen=True, kw_only=True)
class DeltaProduct(MatrixState, row="deltaproduct"):
    """Gated DeltaProduct: `householders` delta-rule updates per token, the decay a_i in the
    first of them; y_i = S_i q_i after the last.
    """

    householders: int = integer(
        2, "delta-rule updates per token n_h, each with a key, a value and a b of its own"
    )
    negative: bool = flag(True, NEGATIVE, alters=True)

    @property
    def _reflections(self) -> int:
        return self.householders if self.negative else 0

    @property
    def channels(self) -> int:
        return (
            self.qk * self.head_dim * (1 + self.householders)
            + self.householders * self.heads * self.dv
        )

    def work(self) -> Growth:
        """Decay 1 and read 2 per number of the state, and 4 for every update."""
        return Growth(
            (3 + 4 * self.householders) * self.state_numbers + 2 * self.conv * self.channels
        )


@dataclass(frozen=True, kw_only=True)
class KDA(Delta, row="kda"):
    """Kimi Delta Attention: S_i = S_{i-1} diag(a_i) (I - b_i k_i k_i^T) + b_i v_i k_i^T with
    decay per key dimension, y_i = S_i q_i.
    """

    @property
    def slots(self) -> Slots | None:
        return None


@dataclass(frozen=True, kw_only=True)
class MLSTM(MatrixState, row="mlstm"):
    """mLSTM: C_i = f_i C_{i-1} + g_i v_i k_i^T, n_i = f_i n_{i-1} + g_i k_i, m_i the gates'
    running maximum; y_i = C_i q_i / max(|n_i q_i|, 1).
    """

    # the running maximum comes to rest first, and what it scales after it
    stages: ClassVar[int] = 2

    @property
    def state_numbers(self) -> int:
        """H (d d_v + d + 1): matrix, normaliser, maximum."""
        return self.heads * (self.head_dim * self.dv + self.head_dim + 1)


@dataclass(frozen=True, kw_only=True)
class RWKV(Shifted, MatrixState, row="rwkv"):
    """RWKV-6 and -7: S_i = S_{i-1} A_i + v_i k_i^T, A_i diagonal (6) or diagonal plus rank one
    (7); token shifts mix in the last input.
    """

    width: int | None = integer(
        None, "width D of a token shift; heads x head dimension if not given"
    )
    version: int = integer(7, "generation: 6 or 7", alters=True)
    shifts: int = integer(
        1,
        "token shifts: 1 of time mixing; 2 with that of the layer's channel mixing, which remembers"
        " a token too",
    )

    def _check(self) -> None:
        super()._check()
        if self.version not in (6, 7):
            raise SizeError(f"rwkv: version is {self.version}; it must be 6 or 7")

    @property
    def model_width(self) -> int:
        """What its token shift holds is the model's own input."""
        return self.inner_width if self.width is None else self.width

    @property
    def is_diagonal(self) -> bool:
        return self.version == 6

    @property
    def is_monotone(self) -> bool:
        # A_i of generation 7 has a part of rank one, as in the delta rule
        return self.version == 6

    @property
    def _shift_width(self) -> int:
        return self.model_width


@dataclass(frozen=True, kw_only=True)
class LogLinear(MatrixState, row="loglinear"):
    """Log-linear attention: Fenwick buckets over the past, one linear state each, at most
    floor(log2 t) + 1 of them after t tokens.
    """

    base: str = choice(
        "linear",
        ("linear", "mamba2", "gdn"),
        "recurrence of every bucket's state: linear attention, Mamba-2 or Gated DeltaNet",
        alters=True,
    )
    feature: str = choice(
        "identity",
        ("elu", "relu", "identity"),
        "feature map of the linear states; base=linear only",
    )

    def _check(self) -> None:
        super()._check()
        if self.base != "linear" and self.feature != "identity":
            raise SizeError(
                f"loglinear: base={self.base} has no feature map; leave out feature={self.feature}"
            )

    def stores(self) -> Stores:
        buckets = (doublings() * self.state_numbers, self.state_p)
        return {**super().stores(), "state": [buckets]}

    def roundings(self, t: int) -> int:
        """A bucket of linear attention is rounded when it merges; one that decays or is
        overwritten, at every token.
        """
        return t.bit_length() if self.base == "linear" else t

    def work(self) -> Growth:
        buckets = doublings() * (self.operations * self.state_numbers)
        return buckets + Growth(2 * self.conv * self.channels)
