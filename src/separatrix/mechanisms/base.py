"""What every mechanism is: a name, sizes that are checked, what it carries (`cache`) and what one
token can read of a prefix (`read_bits`).

A *reading* layer (full, sparse, indexed, compressed) has a cache that grows with the prompt and is
described by `read_bits`; every other mechanism is described by its cache alone. The formulas follow
theory.md, section 1; tests stream tokens through the mixers and count.
"""

from __future__ import annotations

from dataclasses import dataclass, field, fields
from typing import Any, ClassVar, Literal

from separatrix.errors import SizeError, SpecError, UnknownNameError
from separatrix.numbers.bits import Bits, sum_bits
from separatrix.numbers.formats import NumberFormat

CacheKind = Literal["state", "convolution", "window", "kv"]
LayerKind = Literal["full", "windowed", "indexed", "recurrent", "convolution", "other"]
LARGEST_SIZE = 10**12


@dataclass(frozen=True)
class CacheItem:
    """Numbers of one kind that a layer carries to later tokens."""

    kind: CacheKind
    bits: Bits


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


def flag(default: bool, text: str, *, alters: bool = False) -> Any:
    """A field that is true or false."""
    return field(default=default, metadata={"text": text, "alters": alters})


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

    format: str = number_format(
        "fp32",
        "number format of stored keys, values and buffers, and of all arithmetic unless said"
        " otherwise",
    )

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

    @property
    def p(self) -> int:
        """Bits per stored number."""
        return NumberFormat(self.format).bits

    def cache(self, t: int) -> tuple[CacheItem, ...]:
        """What the first t tokens leave to later ones."""
        raise NotImplementedError

    def cache_bits(self, t: int) -> int:
        """Bits of the first t tokens that this mechanism carries to later tokens. Raises
        SizeError for t < 0.
        """
        if t < 0:
            raise SizeError(f"t is {t}; a number of tokens cannot be negative")
        return sum_bits(item.bits for item in self.cache(t)).total

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

    def flops(self, t: int) -> int:
        """Floating-point operations that mixing the t-th token takes (a multiply-add counts 2),
        projections not counted.
        """
        raise NotImplementedError

    @property
    def plain(self) -> bool:
        """Whether every option that alters the function computed (fields marked `alters`) is at
        its default: what constructions are proved for.
        """
        return all(
            getattr(self, f.name) == f.default for f in fields(self) if f.metadata.get("alters")
        )

    @property
    def inner_width(self) -> int:
        """Heads times head dimension: the model width the sizes suggest; 0 where they suggest
        none.
        """
        return 0

    def assumptions(self) -> tuple[str, ...]:
        """What the declared sizes take for granted, to be printed with every verdict."""
        return ()

    def sizes(self) -> dict[str, Any]:
        """Every size by name."""
        return {f.name: getattr(self, f.name) for f in fields(self)}


def convolution(channels: int, kernel: int, t: int, p: int) -> CacheItem:
    """The last K-1 inputs of a causal convolution (fewer at the start)."""
    return CacheItem("convolution", Bits.of(channels * min(t, max(kernel - 1, 0)), p))
