"""A mechanism: a name, sizes that are checked, what it carries (`cache`) and what one token can
read of a prefix (`read_bits`).

A *reading* layer (full, sparse, indexed, compressed) has a cache that grows with the prompt and is
described by `read_bits`; every other mechanism is described by its cache alone. The formulas follow
theory.md, section 1; tests stream tokens through the mixers and count.

Whatever theory, cards, design and reports ask of a mechanism is a property of its class, with an
answer here that claims nothing. Nobody else tells mechanisms apart.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from functools import cached_property
from math import prod
from pathlib import Path
from typing import Any, ClassVar, Generic, Literal, NamedTuple, Self, TypeVar

from separatrix.core.errors import SizeError, SpecError, UnknownNameError
from separatrix.core.numbers.bits import Bits, sum_bits
from separatrix.core.numbers.formats import NumberFormat
from separatrix.core.numbers.growth import NOTHING, Growth, tokens
from separatrix.core.numbers.rotary import SCALINGS, Rotation, check_scaling

T = TypeVar("T")
CacheKind = Literal["state", "convolution", "window", "kv"]
LayerKind = Literal["full", "windowed", "indexed", "recurrent", "convolution", "other"]
ATTENTION: frozenset[LayerKind] = frozenset({"full", "windowed", "indexed"})
"""Kinds of layers that keep keys and values of tokens, or read those of an earlier layer."""
Varied = Literal["state", "window", "block", "topk"]
"""Kinds of sizes that `design` varies."""
LARGEST_SIZE = 10**12
EXACT_FORMATS = frozenset({"fp64", "fp32", "bf16", "fp16"})
"""Formats in which a power-of-two scale keeps scores of up to 256 address bits exact, and +-1 is
carried as it is.
"""


ROWS: dict[str, dict[str, Any]] = json.loads(
    Path(__file__).with_name("mechanisms.json").read_text(encoding="utf-8")
)
"""Name of a mechanism -> what is constant of it, in the order of tables."""


@dataclass(frozen=True)
class CacheItem:
    """Numbers of one kind that a layer carries to later tokens."""

    kind: CacheKind
    bits: Bits


Stores = Mapping[CacheKind, Sequence[tuple[Growth, int]]]
"""Numbers that are carried, by kind, and how many bits each of them has."""


@dataclass(frozen=True)
class Facts:
    """Formulas in the names of a mechanism's sizes (a space multiplies), and what others call
    it.
    """

    carried: str
    """Numbers carried after t >= 1 tokens, short convolution left out."""
    read: str = "0"
    """Numbers one token can take of a prefix (read_bits); a flag counts 1 where it is true."""
    elsewhere: str = ""
    """transformers: value of layer_types, or the model type; fla: layer of
    flash-linear-attention.
    """


class Head(NamedTuple):
    """The room of one attention head, for constructions that write bits into keys and values."""

    head_dim: int
    dv: int
    format: str
    latent: int | None = None
    """Numbers that are all that is kept of a token, if keys and values come from them."""

    def has_room(self, keys: int, values: int) -> bool:
        """Whether keys and values have that many dimensions. A latent must hold both."""
        stored = self.latent is None or keys + values <= self.latent
        return keys <= self.head_dim and values <= self.dv and stored


POSITIONS = ("embedded", "none", "alibi", "unknown")
POSITIONS_TEXT = (
    "where places come from beside rotations: embedded in the tokens (learned or free position"
    " embeddings), none, alibi (scores fall with distance), or unknown"
)


class HeadShape(NamedTuple):
    """Heads as a model has them in all its layers; `kv` is None where no key-value heads are."""

    heads: int
    head_dim: int
    kv: int | None = None


class OpenedBlocks(NamedTuple):
    """Heads that each open the k blocks of B tokens whose messages score highest (Theorem II)."""

    heads: int
    block: int
    topk: int
    message_bits: int
    """Bits that all heads together keep of a block that is not opened."""
    window: int = 0
    """Last tokens that are read in any case."""


class TokenChoice(NamedTuple):
    """An indexer that chooses single tokens, for all heads at once."""

    topk: int
    dims: int
    """Dimensions in which its keys tell bits, each as +-1."""
    head: Head
    """One of the heads that read what it chose."""
    asking: int | None = None
    """Numbers that queries, the indexer's too, are maps of, where these are few."""
    turned: bool = False
    """Whether its queries and keys turn as those of the heads do."""


class Turning(NamedTuple):
    """Heads whose state a token can reflect: turn over along a direction of its choice, exactly
    (theory.md, section 10).
    """

    reflections: int
    """How many reflections one token can apply, one after the other."""
    heads: int
    """Heads with keys of their own."""
    key_dim: int
    value_dim: int
    bare: bool
    """Whether nothing comes before and after the recurrence: no convolution with SiLU, no norm, no
    gate.
    """


class Slots(NamedTuple):
    """Numbers that a token may overwrite, in a place of its choice among so many; every other token
    leaves them as they are.
    """

    places: int
    numbers: int
    """In each place."""


class Reach(NamedTuple):
    """How many tokens back a layer reads directly; what a recurrent state hands on is not read."""

    before: int = 0
    """What it takes in: a short convolution of K tokens or a token shift, K - 1."""
    window: int = 0
    """Its window, as the kernel masks: one less than it sees, the token itself included."""
    chunk: int = 0
    """Tokens of a chunk, across whose borders it sees nothing; 0 without borders."""
    after: int = 0
    """A token shift behind its state, as of channel mixing."""

    def handed(self, place: int) -> int:
        """The token after which the state is handed over, where what comes in depends on nothing
        before a cut from the token behind `place` on.
        """
        return place + self.before

    def beyond(self, place: int) -> int:
        """The token behind which its outputs depend on nothing before the cut, but for the
        state.
        """
        place = self.handed(place)
        if self.chunk:
            place += -place % self.chunk
        return place + self.window + self.after


class Machine(NamedTuple):
    """A state of so many bits, which each token maps by one of so many arbitrary maps."""

    bits: int
    rules: int


def integer(default: int | None, text: str, *, alters: bool = False) -> Any:
    """A field that holds an integer of at least 1 (0 where the default is 0), or None where the
    default is None.
    """
    return field(default=default, metadata={"text": text, "alters": alters})


def choice(default: str, options: tuple[str, ...], text: str, *, alters: bool = False) -> Any:
    """A field that holds one of a few words."""
    return field(default=default, metadata={"text": text, "options": options, "alters": alters})


def number_format(default: str | None, text: str) -> Any:
    """A field that names a number format."""
    return field(default=default, metadata={"text": text, "format": True})


def positions_field() -> Any:
    """A field that says where places come from beside rotations."""
    return choice("embedded", POSITIONS, POSITIONS_TEXT)


def rotation_scaling() -> Any:
    """A field that says how the angles of a rotation are scaled, or None."""
    text = f"how the rotation's angles are scaled: {', '.join(SCALINGS.values())}"
    return field(default=None, metadata={"text": text, "scaling": True, "alters": True})


def flag(default: bool, text: str, *, alters: bool = False) -> Any:
    """A field that is true or false."""
    return field(default=default, metadata={"text": text, "alters": alters})


class Unclaimed(Generic[T]):
    """What a class says of a question that others ask, unless it has a property of that name."""

    def __init__(self, answer: T) -> None:
        self.answer = answer

    def __get__(self, mechanism: object, cls: type | None = None) -> T:
        return self.answer


DECLARED: dict[str, type[Mechanism]] = {}
"""The class of each row."""


@dataclass(frozen=True, kw_only=True)
class Mechanism:
    """A token mixer with its sizes. Subclasses are final; sizes are validated on construction
    (SizeError, SpecError).
    """

    name: ClassVar[str] = ""
    title: ClassVar[str] = ""
    symbol: ClassVar[str] = ""
    group: ClassVar[LayerKind] = "other"
    """The kind of layer it makes, as capability cards count layers."""
    reading: ClassVar[bool] = False
    source: ClassVar[str] = ""
    _card: ClassVar[str] = ""
    """What cards call it, with its sizes in braces, if not by its title."""
    _unit: ClassVar[str] = ""
    """The size of a unit by which its cache grows, if not by tokens."""
    _inner: ClassVar[tuple[str, ...]] = ()
    """The sizes whose product is `inner_width`."""
    _assumes: ClassVar[str] = ""
    """What its sizes take for granted beside their formats, with them in braces."""
    _varied: ClassVar[Mapping[Varied, str]] = {}
    """The sizes that `design` varies, by kind."""
    facts: ClassVar[Facts | None] = None
    """Its formulas and its names elsewhere, for tables."""
    origin: ClassVar[str] = ""
    """module:name of the user's own module that is its mixer; "" for what is built in."""
    declared_only: ClassVar[bool] = False
    """Whether sizes are all there is: no mixer of it can be built."""
    grows_as_told: ClassVar[bool] = True
    """Whether `work`, `kept` and `fetched` are known at all lengths, and not at single ones."""
    mixes_tokens: ClassVar[bool] = True
    """False for a layer in which no token sees another."""
    compresses_blocks: ClassVar[bool] = False
    """Whether each full block of tokens leaves one key and one value that scores choose by."""
    another_recurrence: ClassVar[tuple[str, ...]] = ()
    """Options with which its state follows another rule: what was measured of one rule says nothing
    of the other.
    """

    format: str = number_format(
        "fp32",
        "number format of stored keys, values and buffers, and of all arithmetic unless said"
        " otherwise",
    )

    def __init_subclass__(cls, row: str = "") -> None:
        """`row`: the name in mechanisms.json, which says what is constant of the class."""
        super().__init_subclass__()
        if not row:
            return
        constant = dict(ROWS[row])
        cls.name = row
        DECLARED[row] = cls
        cls.facts = Facts(**{f.name: constant.pop(f.name, f.default) for f in fields(Facts)})
        for name, value in constant.items():
            own = name if hasattr(cls, name) else f"_{name}"
            setattr(cls, own, tuple(value) if isinstance(value, list) else value)

    def __post_init__(self) -> None:
        for f in fields(self):
            value = getattr(self, f.name)
            text = f.metadata.get("text", "")
            if "format" in f.metadata:
                if value is not None or f.default is not None:
                    if not isinstance(value, str):
                        raise SpecError(
                            f"{self.name}: {f.name} is {value!r}; it must be a number format such"
                            f" as bf16 or p8 ({text})"
                        )
                    NumberFormat(value)
            elif "scaling" in f.metadata:
                check_scaling(value)
            elif "options" in f.metadata:
                if value not in f.metadata["options"]:
                    raise UnknownNameError.of(
                        f"{f.name} of '{self.name}'", str(value), f.metadata["options"]
                    )
            elif isinstance(f.default, bool):
                if not isinstance(value, bool):
                    raise SpecError(
                        f"{self.name}: {f.name} is {value!r}; it must be true or false ({text})"
                    )
            elif value is not None or f.default is not None:
                low = 0 if f.default == 0 else 1
                if type(value) is not int or not low <= value <= LARGEST_SIZE:
                    raise SizeError(
                        f"{self.name}: {f.name} is {value!r}; it must be an integer from {low} to"
                        f" 10^12 ({text})"
                    )
        self._check()

    def _check(self) -> None:
        """Rules between sizes; raises SizeError."""

    def _must_divide(self, name: str, part: int, heads: int) -> None:
        if heads % part:
            raise SizeError(
                f"{self.name}: {name}={part} does not divide heads={heads}; choose a divisor"
            )

    @property
    def p(self) -> int:
        """Bits per stored number."""
        return NumberFormat(self.format).bits

    @property
    def state_p(self) -> int:
        """Bits per number of a recurrent state: `state_format` where that is a size, and given."""
        return NumberFormat(self.sizes().get("state_format") or self.format).bits

    @cached_property
    def formats(self) -> frozenset[str]:
        """Every number format it stores or computes in."""
        named = (getattr(self, f.name) for f in fields(self) if "format" in f.metadata)
        return frozenset(name or self.format for name in named)

    def stores(self) -> Stores:
        """What tokens leave to later ones, as it grows."""
        raise NotImplementedError

    @cached_property
    def _stores(self) -> Stores:
        return self.stores()

    def cache(self, t: int) -> tuple[CacheItem, ...]:
        """What the first t tokens leave to later ones."""
        found: list[CacheItem] = []
        for kind, parts in self._stores.items():
            bits = [Bits.of(grown.at(t), width) for grown, width in parts]
            # nearly all kinds have one part, and this is asked very often
            found.append(CacheItem(kind, bits[0] if len(bits) == 1 else sum_bits(bits)))
        return tuple(found)

    def cache_bits(self, t: int) -> int:
        """Bits of the first t tokens that this mechanism carries to later tokens. Raises
        SizeError for t < 0.
        """
        if t < 0:
            raise SizeError(f"t is {t}; a number of tokens cannot be negative")
        return sum(item.bits.total for item in self.cache(t))

    @property
    def reach(self) -> Reach | None:
        """How far back it reads directly, None where no token is ever out of reach. Only what is
        `handed_over` passes beyond it.
        """
        return None if self.reading else Reach(before=max(0, self.sizes().get("conv", 0) - 1))

    def handed_over(self, t: int) -> Bits:
        """What it carries after t tokens but for windows and buffers, which hold tokens: all that
        passes beyond its reach.
        """
        return sum_bits([item.bits for item in self.cache(t) if item.kind in ("state", "kv")])

    def within(self, tokens: int) -> Mechanism:
        """The same on prompts of at most so many tokens, of which it may see all."""
        return self

    def read_bits(self) -> int:
        """h: a later token takes one of at most 2^h values from a prefix, once its query is
        fixed. 0 unless `reading`.
        """
        return 0

    def open_bits(self, t: int) -> int:
        """What a reading layer carries beside `read_bits` across a cut after at most t tokens, in
        bits: blocks not yet full and windows (theory.md, section 1). 0 where every token is read
        alike.
        """
        return 0

    def fed_bits(self, t: int) -> int:
        """Bits that feed a reading layer from earlier tokens before it reads, and so count as a
        bounded layer before it (theory.md, section 1): its short convolution's.
        """
        return sum(item.bits.total for item in self.cache(t) if item.kind == "convolution")

    def work(self) -> Growth:
        """Floating-point operations that mixing the t-th token takes when decoding (a multiply-add
        counts 2), projections not counted.
        """
        raise NotImplementedError

    def prefill_work(self) -> Growth:
        """The same where a whole prompt is read at once."""
        return self.work()

    def kept(self) -> Growth:
        """What `cache_bits` says, as it grows."""
        parts = (part for several in self._stores.values() for part in several)
        return sum((grown * width for grown, width in parts), NOTHING)

    convolved = Unclaimed(0)
    """Of its short convolution."""

    @property
    def _buffer(self) -> Growth:
        """Numbers of the last K - 1 inputs of its short convolution."""
        return tokens(max(0, self.sizes().get("conv", 0) - 1)) * self.convolved

    def fetched(self) -> Growth:
        """Bits of the cache that decoding the t-th token reads, its own entry among them: all that
        is kept, unless a choice is made.
        """
        return self.kept()

    def flops(self, t: int) -> int:
        """`work` at token t."""
        return self.work().at(t)

    @cached_property
    def altered(self) -> frozenset[str]:
        """The options that alter the function computed (fields marked `alters`) and are not at
        their default.
        """
        return frozenset(
            f.name
            for f in fields(self)
            if f.metadata.get("alters") and getattr(self, f.name) != f.default
        )

    left_to_right = Unclaimed(True)
    """Whether no token sees later ones: all theorems of caches and reads are about such."""

    @property
    def plain(self) -> bool:
        """Whether every option that alters the function computed is at its default."""
        return not self.altered

    diagonal = Unclaimed(False)
    """Whether it is a recurrence that scales each number of its state by itself."""

    monotone = Unclaimed(False)
    """Whether each number of its recurrent state moves by a non-decreasing map of that number
    alone, which its last tokens determine and their place does not (Theorem P); the law `monotone`
    measures it.
    """

    settles_after = Unclaimed[int | None](None)
    """c of Theorem P: the most tokens after which its output stands still, once its input does,
    from any state; None where no such number is known, or where it looks at places.
    """

    @property
    def inner_width(self) -> int:
        """Heads times head dimension: the model width the sizes suggest; 0 where they suggest
        none.
        """
        sizes = self.sizes()
        return prod(sizes[name] for name in self._inner) if self._inner else 0

    model_width = Unclaimed[int | None](None)
    """The width that a model must have to hold it; None where any will do."""

    @property
    def head_shape(self) -> HeadShape:
        """Its heads, or heads of 128 numbers where it has none of that kind."""
        return HeadShape(max(1, self.inner_width // 128), 128)

    @property
    def card_title(self) -> str:
        """What a capability card calls it when it lists layers."""
        return self._card.format(**self.sizes()) or self.title

    @property
    def cache_stride(self) -> int:
        """Tokens after which a growing cache has grown by a whole unit, such as a block."""
        return self.sizes()[self._unit] if self._unit else 1

    def carries(self, bits: int) -> bool:
        """Whether one head can hand that many bits, each as +-1, from one token to the next."""
        return bits <= self._handed_on and self.formats <= EXACT_FORMATS

    @cached_property
    def sees_neighbour(self) -> bool:
        """Whether each token sees the one before it as such, wherever both stand: by a short
        convolution over at least two tokens.
        """
        return self.sizes().get("conv", 0) >= 2

    brought = Unclaimed(0)
    """Numbers, 0 or 128, that its short convolution brings a token, each from any of its last
    `conv` tokens, and that pass all else unrounded; 0 where none are known.
    """

    slotted = Unclaimed(0)
    """Numbers that a token may keep, clear, or overwrite by those of the token before, each as
    numbers of its own say, exactly; 0 where none are known.
    """

    counted_bits = Unclaimed(0)
    """Bits of a count of tokens, started anew where a token says so, that it hands on; 0 where
    no such count is known (docs/theory.md, "Counting").
    """

    _handed_on = Unclaimed(0)
    """Numbers that one head can hand to the next token as they are; 0 where none is known."""

    turning = Unclaimed[Turning | None](None)
    """Its heads, where tokens can reflect their state exactly; None for all others."""

    adds_up = Unclaimed(False)
    """Whether a head can hand on the plain sum of a number of every token: nothing decays, and
    nothing is divided.
    """

    machine = Unclaimed[Machine | None](None)
    """What its state may be replaced by, where each token may replace it by any other; None
    where it may not.
    """

    slots = Unclaimed[Slots | None](None)
    """What one head can keep in places that tokens overwrite; None where none is known."""

    latched = Unclaimed(0)
    """Numbers of 0 or more that a token may overwrite, in all its heads, while every other
    token leaves them exactly as they are, whatever convolution, norm or gate stands around; 0
    where none are known.
    """

    def registers(self, numbers: int) -> int:
        """How many places of so many numbers of 0 or more it has, of which a token overwrites the
        one that it says and leaves all others exactly as they are, whatever convolution, norm or
        gate stands around; 0 where none are known.
        """
        return 0

    retrieval_head = Unclaimed[Head | None](None)
    """One of its heads, where each can find one token among all earlier ones by its key.

    None where heads see less than the whole prefix, or where their scores are not exact.
    """

    @property
    def seen_positions(self) -> str | None:
        """What its tokens know of their places before any rotation; None where it is no attention
        and nobody says.
        """
        return getattr(self, "positions", None)

    free_scores = Unclaimed(True)
    """Whether weights can make a score as large, and so a lead as clear, as they like."""

    normed = Unclaimed(False)
    """Whether a norm with learned weights scales queries and keys before they meet."""

    @property
    def rounded_again(self) -> bool:
        """Whether queries are rounded once more than by their map, behind a norm of them or of what
        they are maps of.
        """
        return self.normed

    rotation = Unclaimed[Rotation | None](None)
    """What turns its queries and keys by their places; None without a rotation."""

    token_choice = Unclaimed[TokenChoice | None](None)
    """How an indexer chooses the tokens that are read; None without one, where it chooses
    blocks, or where its scores are not exact.
    """

    opened_blocks = Unclaimed[OpenedBlocks | None](None)
    """What Theorem II asks of heads that open blocks by messages; None for all others."""

    def varied_sizes(self) -> Mapping[Varied, str]:
        """What `design` varies of it: the kind of size -> the name of the size."""
        return self._varied

    def resized(self, **sizes: Any) -> Self:
        """The mechanism at other sizes."""
        return replace(self, **sizes)

    rounded_to = Unclaimed[str | None](None)
    """The format in which tokens leave a sum to later ones, where a parallel form carries it
    in a wider one; None where both are the same.
    """

    def drift(self, t: int) -> str | None:
        """Why decoding, which stores what is declared, may differ after t tokens from the parallel
        form by more than one rounding; None where it cannot.
        """
        return None

    def assumptions(self) -> tuple[str, ...]:
        """What the declared sizes take for granted, to be printed with every verdict."""
        if "state_format" not in self.sizes():
            return ()
        return (f"the recurrent state holds {self.state_p} bits per number",)

    def sizes(self) -> dict[str, Any]:
        """Every size by name."""
        return {f.name: getattr(self, f.name) for f in fields(self)}


@dataclass(frozen=True, kw_only=True)
class Heads(Mechanism):
    """Sizes of heads with keys, values and an optional short convolution on q, k, v."""

    heads: int = integer(4, "number of heads H")
    head_dim: int = integer(64, "dimension of queries and keys per head d")
    value_dim: int | None = integer(None, "dimension of values per head; head_dim if not given")
    conv: int = integer(
        0, "kernel size of the short convolution on q, k, v; 0 for none", alters=True
    )

    @property
    def dv(self) -> int:
        return self.head_dim if self.value_dim is None else self.value_dim

    @property
    def inner_width(self) -> int:
        return self.heads * max(self.head_dim, self.dv)

    @property
    def head_shape(self) -> HeadShape:
        return HeadShape(self.heads, self.head_dim)
