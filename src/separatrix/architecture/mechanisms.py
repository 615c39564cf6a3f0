"""Every mechanism's declared sizes: what it carries (`cache`) and what one token can read of a prefix (`read_bits`).

A *reading* layer (full, sparse) has a cache that grows with the prompt and is described by `read_bits`; every other
mechanism is described by its cache alone. The formulas follow theory.md, section 1; tests stream tokens through the mixers and count.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field, fields
from typing import Any, ClassVar, Literal

from separatrix.bits import Bits, NumberFormat, sum_bits
from separatrix.errors import SizeError, SpecError, UnknownNameError

CacheKind = Literal["state", "convolution", "window", "kv"]
LARGEST_SIZE = 10**12


@dataclass(frozen=True)
class CacheItem:
    """Numbers of one kind that a layer carries to later tokens."""

    kind: CacheKind
    bits: Bits


def _size(default: int | None, text: str) -> Any:
    return field(default=default, metadata={"text": text})


def _choice(default: str, options: tuple[str, ...], text: str) -> Any:
    return field(default=default, metadata={"text": text, "options": options})


def _format(default: str | None, text: str) -> Any:
    return field(default=default, metadata={"text": text, "format": True})


def _flag(default: bool, text: str) -> Any:
    return field(default=default, metadata={"text": text})


@dataclass(frozen=True, kw_only=True)
class Mechanism:
    """A token mixer with its sizes. Subclasses are final; sizes are validated on construction (SizeError, SpecError)."""

    name: ClassVar[str] = ""
    title: ClassVar[str] = ""
    symbol: ClassVar[str] = ""
    reading: ClassVar[bool] = False
    source: ClassVar[str] = ""

    format: str = _format("fp32", "number format of stored keys, values and buffers, and of all arithmetic unless said otherwise")

    def __post_init__(self) -> None:
        for f in fields(self):
            value, text = getattr(self, f.name), f.metadata.get("text", "")
            if "format" in f.metadata:
                if value is not None or f.default is not None:
                    if not isinstance(value, str):
                        raise SpecError(f"{self.name}: {f.name} is {value!r}; it must be a number format such as bf16 or p8 ({text})")
                    NumberFormat(value)
            elif "options" in f.metadata:
                if value not in f.metadata["options"]:
                    raise UnknownNameError.of(f"{f.name} of '{self.name}'", str(value), f.metadata["options"])
            elif isinstance(f.default, bool):
                if not isinstance(value, bool):
                    raise SpecError(f"{self.name}: {f.name} is {value!r}; it must be true or false ({text})")
            elif value is not None or f.default is not None:
                low = 0 if f.default == 0 else 1
                if type(value) is not int or not low <= value <= LARGEST_SIZE:
                    raise SizeError(f"{self.name}: {f.name} is {value!r}; it must be an integer from {low} to 10^12 ({text})")
        self._check()

    def _check(self) -> None:
        """Rules between sizes; raises SizeError."""

    @property
    def p(self) -> int:
        """Bits per stored number."""
        return NumberFormat(self.format).bits

    def cache(self, t: int) -> tuple[CacheItem, ...]:
        """What the first t tokens leave to later ones."""
        raise NotImplementedError

    def cache_bits(self, t: int) -> int:
        """Bits of the first t tokens that this mechanism carries to later tokens. Raises SizeError for t < 0."""
        if t < 0:
            raise SizeError(f"t is {t}; a number of tokens cannot be negative")
        return sum_bits(item.bits for item in self.cache(t)).total

    def read_bits(self) -> int:
        """h: a later token takes one of at most 2^h values from a prefix, once its query is fixed. 0 unless `reading`."""
        return 0

    @property
    def inner_width(self) -> int:
        """Heads times head dimension: the model width the sizes suggest; 0 where they suggest none."""
        return 0

    def assumptions(self) -> tuple[str, ...]:
        """What the declared sizes take for granted, to be printed with every verdict."""
        return ()

    def sizes(self) -> dict[str, Any]:
        """Every size by name."""
        return {f.name: getattr(self, f.name) for f in fields(self)}


@dataclass(frozen=True, kw_only=True)
class _Heads(Mechanism):
    heads: int = _size(4, "number of heads H")
    head_dim: int = _size(64, "dimension of queries and keys per head d")
    value_dim: int | None = _size(None, "dimension of values per head; head_dim if not given")
    conv: int = _size(0, "kernel size of the short convolution on q, k, v; 0 for none")

    @property
    def dv(self) -> int:
        return self.head_dim if self.value_dim is None else self.value_dim

    @property
    def inner_width(self) -> int:
        return self.heads * max(self.head_dim, self.dv)

    def _convolution(self, channels: int, t: int) -> CacheItem:
        """The last K-1 inputs of a causal convolution (fewer at the start)."""
        return CacheItem("convolution", Bits.of(channels * min(t, max(self.conv - 1, 0)), self.p))


@dataclass(frozen=True, kw_only=True)
class _Softmax(_Heads):
    kv_heads: int | None = _size(None, "number of key-value heads (GQA); heads if not given")
    accumulator: str | None = _format(None, "number format of the softmax accumulators; format if not given")
    running_max: bool = _flag(False, "whether the accumulator also carries a running maximum")

    @property
    def kv(self) -> int:
        return self.heads if self.kv_heads is None else self.kv_heads

    @property
    def accumulator_bits(self) -> int:
        return NumberFormat(self.accumulator or self.format).bits

    def _check(self) -> None:
        if self.heads % self.kv:
            raise SizeError(f"{self.name}: kv_heads={self.kv} does not divide heads={self.heads}; choose a divisor")

    def _keys_values(self, tokens: int) -> Bits:
        return Bits.of(tokens * self.kv * (self.head_dim + self.dv), self.p)

    @property
    def _channels(self) -> int:
        return self.heads * self.head_dim + self.kv * (self.head_dim + self.dv)

    def assumptions(self) -> tuple[str, ...]:
        what = "numerators, denominator and running maximum" if self.running_max else "numerators and denominator"
        return (f"softmax accumulators ({what}) hold {self.accumulator_bits} bits per number",)


@dataclass(frozen=True, kw_only=True)
class Full(_Softmax):
    """Full causal softmax attention: y_i = sum_j a_ij V x_j, a_ij = exp(<Q x_i, K x_j>) / sum_j' exp(<Q x_i, K x_j'>)."""

    name: ClassVar[str] = "full"
    title: ClassVar[str] = "full attention"
    symbol: ClassVar[str] = "f"
    reading: ClassVar[bool] = True
    source: ClassVar[str] = "Vaswani et al. 2017; [Ye26] section 2"

    def cache(self, t: int) -> tuple[CacheItem, ...]:
        return (CacheItem("kv", self._keys_values(t)), self._convolution(self._channels, t))

    def read_bits(self) -> int:
        """H (d_v + 1) p; with a running maximum H (d_v + 2) p (theory.md, section 1)."""
        return self.heads * (self.dv + 1 + self.running_max) * self.accumulator_bits


@dataclass(frozen=True, kw_only=True)
class Window(_Softmax):
    """Softmax attention to the last `size` tokens (the token itself included)."""

    name: ClassVar[str] = "window"
    title: ClassVar[str] = "sliding-window attention"
    symbol: ClassVar[str] = "w"
    source: ClassVar[str] = "Beltagy, Peters, Cohan 2020 (Longformer)"

    size: int = _size(128, "tokens seen, the token itself included")

    def cache(self, t: int) -> tuple[CacheItem, ...]:
        return (CacheItem("window", self._keys_values(min(t, self.size))), self._convolution(self._channels, t))


@dataclass(frozen=True, kw_only=True)
class _Stateful(Mechanism):
    state_format: str | None = _format(None, "number format of the recurrent state; format if not given")

    @property
    def state_p(self) -> int:
        """Bits per number of the recurrent state."""
        return NumberFormat(self.state_format or self.format).bits

    def assumptions(self) -> tuple[str, ...]:
        return (f"the recurrent state holds {self.state_p} bits per number",)


@dataclass(frozen=True, kw_only=True)
class _Recurrent(_Stateful, _Heads):
    key_heads: int | None = _size(None, "number of query-key heads; heads if not given")

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

    def cache(self, t: int) -> tuple[CacheItem, ...]:
        channels = 2 * self.qk * self.head_dim + self.heads * self.dv
        return (CacheItem("state", Bits.of(self.state_numbers, self.state_p)), self._convolution(channels, t))


@dataclass(frozen=True, kw_only=True)
class Linear(_Recurrent):
    """Linear attention: S_i = S_{i-1} + V x_i (x) phi(K x_i), Z_i = Z_{i-1} + phi(K x_i), y_i = S_i phi(Q x_i) / <phi(Q x_i), Z_i>."""

    name: ClassVar[str] = "linear"
    title: ClassVar[str] = "linear attention"
    symbol: ClassVar[str] = "l"
    source: ClassVar[str] = "Katharopoulos et al. 2020; [Ye26] Lemma 2.2"

    feature: str = _choice(
        "elu", ("elu", "relu", "identity", "taylor"), "feature map phi: elu(x)+1, relu(x), x, or (1, x, x (x) x / sqrt 2)"
    )
    normaliser: bool = _flag(True, "whether the state carries the normaliser Z")

    @property
    def feature_dim(self) -> int:
        """d_phi."""
        return 1 + self.head_dim + self.head_dim**2 if self.feature == "taylor" else self.head_dim

    @property
    def state_numbers(self) -> int:
        """H d_phi (d + 1), or H d_phi d without normaliser [Ye26, Lemma 2.2]."""
        return self.heads * self.feature_dim * (self.dv + self.normaliser)


@dataclass(frozen=True, kw_only=True)
class GatedDeltaNet(_Recurrent):
    """Gated DeltaNet: S_i = a_i S_{i-1} (I - b_i k_i k_i^T) + b_i v_i k_i^T, y_i = S_i q_i, with k_i of unit length."""

    name: ClassVar[str] = "gdn"
    title: ClassVar[str] = "Gated DeltaNet"
    symbol: ClassVar[str] = "g"
    source: ClassVar[str] = "Yang, Kautz, Hatamizadeh 2024, arXiv 2412.06464"


@dataclass(frozen=True, kw_only=True)
class Mamba2(_Stateful):
    """Mamba-2 (SSD): one scalar decay per head, a state of head_dim x `state` numbers per head."""

    name: ClassVar[str] = "mamba2"
    title: ClassVar[str] = "Mamba-2"
    symbol: ClassVar[str] = "m"
    source: ClassVar[str] = "Dao, Gu 2024, arXiv 2405.21060"

    heads: int = _size(4, "number of heads H")
    head_dim: int = _size(64, "channels per head")
    state: int = _size(128, "state size N per channel")
    groups: int = _size(1, "groups G of heads that share B and C")
    conv: int = _size(0, "kernel size of the short convolution on x, B, C; 0 for none")

    def _check(self) -> None:
        if self.heads % self.groups:
            raise SizeError(f"{self.name}: groups={self.groups} does not divide heads={self.heads}; choose a divisor")

    @property
    def inner_width(self) -> int:
        return self.heads * self.head_dim

    @property
    def state_numbers(self) -> int:
        """Numbers in the recurrent state."""
        return self.heads * self.head_dim * self.state

    def cache(self, t: int) -> tuple[CacheItem, ...]:
        channels = self.heads * self.head_dim + 2 * self.groups * self.state
        columns = min(t, max(self.conv - 1, 0))
        return (
            CacheItem("state", Bits.of(self.state_numbers, self.state_p)),
            CacheItem("convolution", Bits.of(channels * columns, self.p)),
        )


@dataclass(frozen=True, kw_only=True)
class RGLRU(_Stateful):
    """RG-LRU (Griffin): a gated diagonal recurrence of `width` numbers."""

    name: ClassVar[str] = "rglru"
    title: ClassVar[str] = "RG-LRU"
    symbol: ClassVar[str] = "r"
    source: ClassVar[str] = "De et al. 2024, arXiv 2402.19427"

    width: int = _size(256, "width of the recurrence")
    conv: int = _size(0, "kernel size of the short convolution; 0 for none")

    def cache(self, t: int) -> tuple[CacheItem, ...]:
        return (
            CacheItem("state", Bits.of(self.width, self.state_p)),
            CacheItem("convolution", Bits.of(self.width * min(t, max(self.conv - 1, 0)), self.p)),
        )


@dataclass(frozen=True, kw_only=True)
class LogLinear(_Recurrent):
    """Log-linear attention: Fenwick buckets over the past, one linear state each, at most floor(log2 t) + 1 of them after t tokens."""

    name: ClassVar[str] = "loglinear"
    title: ClassVar[str] = "log-linear attention"
    symbol: ClassVar[str] = "o"
    source: ClassVar[str] = "Guo et al. 2025, arXiv 2506.04761"

    feature: str = _choice("identity", ("elu", "relu", "identity"), "feature map of the linear states")

    def cache(self, t: int) -> tuple[CacheItem, ...]:
        buckets = t.bit_length()  # floor(log2 t) + 1 for t >= 1
        _, convolution = super().cache(t)
        return (CacheItem("state", Bits.of(buckets * self.state_numbers, self.state_p)), convolution)


@dataclass(frozen=True, kw_only=True)
class Sparse(_Softmax):
    """(B, k)-sparse attention: every full block of B tokens is compressed to one key and value per head; the k best blocks and the
    open block are read in full; y = lambda y_compressed + (1 - lambda) y_selected."""

    name: ClassVar[str] = "sparse"
    title: ClassVar[str] = "block-sparse attention"
    symbol: ClassVar[str] = "s"
    reading: ClassVar[bool] = True
    source: ClassVar[str] = "Yuan et al. 2025 (NSA), arXiv 2502.11089; [Ye26] section 2"

    block: int = _size(32, "tokens per block B")
    topk: int = _size(4, "blocks read in full per head, k")

    def cache(self, t: int) -> tuple[CacheItem, ...]:
        compressed = Bits.of(t // self.block * self.kv * (self.head_dim + self.dv), self.p)
        return (CacheItem("kv", self._keys_values(t) + compressed), self._convolution(self._channels, t))

    def read_bits(self) -> int:
        """H ((d_v + 1) + k (d_v + 2)) p: compressed accumulator, then score and partial sum of the k best blocks (theory.md, section 1)."""
        return self.heads * ((self.dv + 1) + self.topk * (self.dv + 2)) * self.accumulator_bits

    def open_block_bits(self, t: int) -> int:
        """Bits of the block that is not yet full after t tokens: they count as cache at a cut (theory.md, section 1)."""
        return self._keys_values(t % self.block).total

    def message_bits(self) -> int:
        """c of Theorem II: one compressed key and value per head, in bits."""
        return self.kv * (self.head_dim + self.dv) * self.p


@dataclass(frozen=True, kw_only=True)
class PositionWise(Mechanism):
    """A layer without token mixing (MLP or experts only): it carries nothing."""

    name: ClassVar[str] = "mlp"
    title: ClassVar[str] = "no token mixing"
    symbol: ClassVar[str] = "-"
    source: ClassVar[str] = "theory.md, section 1: position-wise parts are free"

    def cache(self, t: int) -> tuple[CacheItem, ...]:
        return ()


MECHANISMS: dict[str, type[Mechanism]] = {
    c.name: c for c in (Full, Window, Linear, GatedDeltaNet, LogLinear, Sparse, Mamba2, RGLRU, PositionWise)
}


def mechanism(name: str, *, where: str = "", **sizes: Any) -> Mechanism:
    """The mechanism of that name at those sizes. Raises UnknownNameError for a name or size nobody knows, SizeError for a bad value."""
    if name not in MECHANISMS:
        raise UnknownNameError.of("mechanism", name, MECHANISMS, where=where, listing="separatrix mechanisms")
    cls = MECHANISMS[name]
    check_size_names(cls, sizes, where=where)
    return cls(**sizes)


def check_size_names(cls: type[Mechanism], sizes: Iterable[str], *, where: str = "") -> None:
    """Raises UnknownNameError when one of `sizes` is no size of the mechanism."""
    known = {f.name for f in fields(cls)}
    for size in sizes:
        if size not in known:
            raise UnknownNameError.of(f"size of '{cls.name}'", size, known, where=where)
