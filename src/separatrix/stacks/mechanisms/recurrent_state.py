"""Recurrences: a state with a number format of its own, of channels or of a matrix per head, and
what else tokens hand on; and layers that hand on a few tokens, a few bits, or nothing.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple, Self

from separatrix.core.errors import SizeError
from separatrix.core.numbers.bits import Bits
from separatrix.core.numbers.formats import DIGITS, NumberFormat, summed_in
from separatrix.core.numbers.growth import NOTHING, Growth, doublings, tokens
from separatrix.stacks.mechanisms.base import (
    EXACT_FORMATS,
    Heads,
    LayerKind,
    Machine,
    Mechanism,
    Reach,
    Slots,
    Stores,
    Turning,
    choice,
    flag,
    integer,
    number_format,
    positions_field,
)


class Matrices(NamedTuple):
    """A state of one matrix per head, and how many heads share queries and keys."""

    heads: int
    key_heads: int
    key_dim: int
    value_dim: int


@dataclass(frozen=True, kw_only=True)
class Stateful(Mechanism):
    """The number format of a recurrent state, and what rounding to it after every token does."""

    group: ClassVar[LayerKind] = "recurrent"
    operations: ClassVar[int] = 5
    """Operations per number of the state and token: outer product and read 2 each, decay 1,
    delta rule 2.
    """
    _counters: ClassVar[str] = ""
    """The size that says how many counts of tokens it can keep; "" where it cannot."""
    stages: ClassVar[int] = 1
    """How many kinds of its numbers stand still one after the other: a running maximum does before
    what it scales.
    """

    state_format: str | None = number_format(
        None, "number format of the recurrent state; format if not given"
    )

    positions: str = positions_field()

    @property
    def state_numbers(self) -> int:
        """Numbers in the recurrent state."""
        raise NotImplementedError

    def stores(self) -> Stores:
        state = (Growth(self.state_numbers), self.state_p)
        return {"state": [state], "convolution": [(self._buffer, self.p)]}

    def work(self) -> Growth:
        conv = self.sizes().get("conv", 0)
        return Growth(self.operations * self.state_numbers + 2 * conv * self.convolved)

    @property
    def counted_bits(self) -> int:
        # one counts while another is emptied, and a third stays for other uses
        if not self._counters or self.sizes()[self._counters] < 3:
            return 0
        # decays can be (nearly) 1 at one token and 0 at another: two less than its format's
        state = self.state_format or self.format
        if state not in ("fp32", "fp64") or self.format not in EXACT_FORMATS:
            return 0
        return min(DIGITS[self.format], DIGITS["fp32"]) - 2

    @property
    def tokens_mixed(self) -> int:
        """K of Theorem P: the tokens that what is added to the state, and its decay, come from."""
        return max(1, self.sizes().get("conv", 0))

    @property
    def reach(self) -> Reach:
        return Reach(before=self.tokens_mixed - 1)

    @property
    def settles_after(self) -> int | None:
        """2^p - 1 steps of each kind of number, after the K - 1 tokens that its inputs take
        (theory.md, section 10).
        """
        if not self.monotone:
            return None
        return self.stages * ((1 << self.state_p) - 1) + self.tokens_mixed - 1

    @property
    def rounded_to(self) -> str | None:
        stored = NumberFormat(self.state_format or self.format)
        return stored.name if stored.bits < NumberFormat(summed_in(self.format)).bits else None

    def roundings(self, t: int) -> int:
        """How often a number of the state may be rounded while t tokens are read."""
        return t

    def drift(self, t: int) -> str | None:
        if self.rounded_to is None:
            return None
        # a sum of 2^digits like numbers takes in no further one: half a unit of its last digit
        # is lost
        most = 1 << NumberFormat(self.rounded_to).digits
        if self.roundings(t) < most:
            return None
        return (
            f"the state is rounded to {self.rounded_to} after every token, and a sum of {most:,}"
            " like numbers takes in no more"
        )

    def assumptions(self) -> tuple[str, ...]:
        if self.rounded_to is None:
            return super().assumptions()
        said = (
            f"step-by-step decoding: the state is rounded to {self.rounded_to} after every"
            f" token; a parallel form that carries {summed_in(self.format)} between tokens is"
            " another model"
        )
        return (*super().assumptions(), said)


@dataclass(frozen=True, kw_only=True)
class Shifted(Stateful):
    """Token shifts mix in the last input: that of time mixing, before all else; and with two of
    them channel mixing's, which reads the last token's output of time mixing, too.
    """

    @property
    def _shifts(self) -> int:
        return self.sizes().get("shifts", 2)

    @property
    def _shift_width(self) -> int:
        raise NotImplementedError

    @property
    def tokens_mixed(self) -> int:
        return super().tokens_mixed + 1

    @property
    def settles_after(self) -> int | None:
        after = super().settles_after
        return None if after is None else after + max(0, self._shifts - 1)

    @property
    def reach(self) -> Reach:
        return super().reach._replace(after=max(0, self._shifts - 1))

    def handed_over(self, t: int) -> Bits:
        # the shifts hold a token, as a convolution does
        return Bits.of(self.state_numbers, self.state_p)

    def stores(self) -> Stores:
        whole = super().stores()
        shifted = (tokens(1) * (self._shifts * self._shift_width), self.p)
        return {**whole, "state": [*whole["state"], shifted]}


@dataclass(frozen=True, kw_only=True)
class Channels(Stateful):
    """A recurrence of channels that do not mix, behind a convolution of each."""

    width: int = integer(256, "channels")

    @property
    def state_numbers(self) -> int:
        return self.width

    @property
    def convolved(self) -> int:
        return self.width

    @property
    def brought(self) -> int:
        # Mamba: beside the state, SiLU leaves 0 and 128 as they are; RG-LRU: r = 1 forgets all else
        return self.latched if self.sees_neighbour else 0

    @property
    def latched(self) -> int:
        # a step or an r of 0 keeps, and a large one, or r = 1 at a large rate, forgets all before
        return self.width if self.formats <= EXACT_FORMATS else 0

    @property
    def _handed_on(self) -> int:
        return self.width


@dataclass(frozen=True, kw_only=True)
class Mamba(Channels, row="mamba"):
    """Mamba: h_i = exp(D_i A) h_{i-1} + D_i B_i x_i, y_i = C_i h_i, `state` numbers for each of
    `width` channels.
    """

    width: int = integer(256, "channels (d_inner)")
    state: int = integer(16, "state size N per channel")
    conv: int = integer(0, "kernel size of the short convolution on x; 0 for none")
    rank: int | None = integer(
        None, "numbers that the step size comes from (dt_rank); model width / 16 if not given"
    )
    norms: bool = flag(
        False,
        "whether B, C and what the step size comes from are RMS-normed (Falcon Mamba, Jamba)",
        alters=True,
    )

    @property
    def state_numbers(self) -> int:
        return self.width * self.state

    def registers(self, numbers: int) -> int:
        # a channel says which place is written, and one is 1; steps come from the binary code of a
        # place and a flag, which agree in all their numbers or lack 2
        rank = self.width // 32 if self.rank is None else self.rank
        channels = max(0, self.latched - 1) // (numbers + 1)
        return min(channels, 1 << min(rank - 1, 64)) if rank > 1 else 0


@dataclass(frozen=True, kw_only=True)
class Mamba2(Stateful, row="mamba2"):
    """Mamba-2 (SSD): one scalar decay per head, a state of head_dim x `state` numbers per head."""

    heads: int = integer(4, "number of heads H")
    head_dim: int = integer(64, "channels per head")
    state: int = integer(128, "state size N per channel")
    groups: int = integer(1, "groups G of heads that share B and C")
    conv: int = integer(0, "kernel size of the short convolution on x, B, C; 0 for none")

    def _check(self) -> None:
        self._must_divide("groups", self.groups, self.heads)

    @property
    def matrices(self) -> Matrices:
        """B is the key and C the query, shared by the heads of a group; x is the value."""
        return Matrices(self.heads, self.groups, self.state, self.head_dim)

    @property
    def state_numbers(self) -> int:
        return self.heads * self.head_dim * self.state

    @property
    def convolved(self) -> int:
        return self.heads * self.head_dim + 2 * self.groups * self.state

    @property
    def latched(self) -> int:
        # a step of 0 keeps, and a large one forgets all before it
        return self.heads * self.head_dim if self.formats <= EXACT_FORMATS else 0

    def registers(self, numbers: int) -> int:
        # heads have a step each, and share their keys
        return self.heads // -(-numbers // self.head_dim) if self.latched else 0

    @property
    def _handed_on(self) -> int:
        return self.head_dim


@dataclass(frozen=True, kw_only=True)
class RGLRU(Channels, row="rglru"):
    """RG-LRU (Griffin): a gated diagonal recurrence of `width` numbers."""

    width: int = integer(256, "width of the recurrence")
    conv: int = integer(0, "kernel size of the short convolution; 0 for none")

    @property
    def slotted(self) -> int:
        # beside r a gate of its own lets an input in; released ones read blocks: half, as below
        return self.brought // 2

    def registers(self, numbers: int) -> int:
        # a flag beside each in the block that its gates read: half of what blocks hold, at least
        return self.latched // (2 * (numbers + 1))


@dataclass(frozen=True, kw_only=True)
class RWKV4(Shifted, row="rwkv4"):
    """RWKV-4: numerator, denominator and running maximum per channel; token shifts of time and
    channel mixing keep the last input.
    """

    width: int = integer(256, "channels of time mixing (attention_hidden_size)")
    hidden: int | None = integer(None, "width of a token shift (hidden_size); width if not given")

    @property
    def state_numbers(self) -> int:
        """Beside its shifts."""
        return 3 * self.width

    @property
    def _shift_width(self) -> int:
        return self.width if self.hidden is None else self.hidden

    def work(self) -> Growth:
        return Growth(10 * self.width)


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
    def convolved(self) -> int:
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

    def registers(self, numbers: int) -> int:
        # a key dimension for each place, the same in all heads
        return self.head_dim if numbers <= self.latched else 0

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
    def monotone(self) -> bool:
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
    def convolved(self) -> int:
        return (
            self.qk * self.head_dim * (1 + self.householders)
            + self.householders * self.heads * self.dv
        )

    def work(self) -> Growth:
        """Decay 1 and read 2 per number of the state, and 4 for every update."""
        return Growth(
            (3 + 4 * self.householders) * self.state_numbers + 2 * self.conv * self.convolved
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
    def diagonal(self) -> bool:
        return self.version == 6

    @property
    def monotone(self) -> bool:
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
        return buckets + Growth(2 * self.conv * self.convolved)


@dataclass(frozen=True, kw_only=True)
class ShortConvolution(Mechanism, row="shortconv"):
    """A causal convolution over the last `conv` tokens, channel by channel, as the layer's only
    mixer.
    """

    width: int = integer(256, "channels")
    conv: int = integer(3, "kernel size, the token itself included")
    positions: str = positions_field()

    @property
    def settles_after(self) -> int | None:
        return self.conv - 1

    @property
    def convolved(self) -> int:
        return self.width

    def stores(self) -> Stores:
        return {"convolution": [(self._buffer, self.p)]}

    def work(self) -> Growth:
        return Growth(2 * self.conv * self.width)

    @property
    def brought(self) -> int:
        return self.width if self.conv >= 2 and self.formats <= EXACT_FORMATS else 0

    @property
    def _handed_on(self) -> int:
        # a kernel of 1 sees no token but its own
        return self.width if self.conv >= 2 else 0


@dataclass(frozen=True, kw_only=True)
class Automaton(Mechanism, row="automaton"):
    """A state of `bits` single bits, which each token replaces by what the table of its rule has
    for it: s_i = T[r_i, s_{i-1}].
    """

    bits: int = integer(8, "bits of the state, of one bit each")
    rules: int = integer(64, "rows of the table: each token follows one of so many rules")
    positions: str = positions_field()

    @property
    def state_numbers(self) -> int:
        """Numbers in the recurrent state, of one bit each."""
        return self.bits

    @property
    def machine(self) -> Machine | None:
        return Machine(self.bits, self.rules)

    def stores(self) -> Stores:
        return {"state": [(Growth(self.bits), 1)]}

    def work(self) -> Growth:
        # a product with each rule's key is a map of the input; then one row is looked up
        return Growth(self.rules + self.bits)


@dataclass(frozen=True, kw_only=True)
class PositionWise(Mechanism, row="mlp"):
    """A layer without token mixing (MLP or experts only): it carries nothing."""

    @property
    def settles_after(self) -> int | None:
        return 0

    def stores(self) -> Stores:
        return {}

    def work(self) -> Growth:
        return NOTHING
