"""What a card shows of layers: their kinds, the memory at a context and how it grows, where tokens
know their places from, and sizes that nobody gave.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, fields
from fractions import Fraction
from math import lcm

from separatrix.core.numbers.amounts import bytes_of, format_bytes
from separatrix.stacks.architecture import Architecture
from separatrix.stacks.architecture.outline import Outline, Part
from separatrix.stacks.architecture.spec import parse_sizes
from separatrix.stacks.mechanisms import Mechanism
from separatrix.stacks.mechanisms.base import ATTENTION

KINDS = {
    "state": "recurrent state",
    "convolution": "convolution buffers",
    "window": "windows",
    "kv": "keys and values",
}
FAR = 1 << 62
"""Tokens by which every window and convolution buffer is full."""
_FAR = 10**13


@dataclass(frozen=True)
class Row:
    """A kind of memory: bits at the context, at any length (None: no bound), and growth."""

    kind: str
    bits: int
    limit: int | None
    per_token: Fraction
    per_doubling: int

    @property
    def title(self) -> str:
        """The kind in words."""
        return KINDS[self.kind]

    @property
    def growth(self) -> str:
        """What it becomes: its size at any length, or by how much it grows."""
        if self.limit is not None:
            return format_bytes(self.limit)
        if self.per_token:
            return f"{bytes_of(self.per_token):,} bytes per token"
        return f"{format_bytes(self.per_doubling)} more per doubling"


def rows(architecture: Architecture, context: int) -> list[Row]:
    """A row for every kind of memory that is there. Raises SizeError for a negative context."""
    here, far, twice = (architecture.cache(t) for t in (context, FAR, 2 * FAR))
    found = []
    for kind in KINDS:
        if not far.get(kind) or not far[kind].total:
            continue
        bits, at, later = (cache[kind].total for cache in (here, far, twice))
        per_token = _per_token(architecture) if kind == "kv" else Fraction(0)
        doubling = later - at if kind == "state" else 0
        found.append(Row(kind, bits, None if per_token or doubling else at, per_token, doubling))
    return found


def _per_token(architecture: Architecture) -> Fraction:
    """Bits of keys and values per token; compressed blocks count by their share."""
    # after a common multiple every cache has grown by whole blocks
    period = lcm(*(part.cache_stride for part in _parts(architecture)))
    # far beyond the first block, which may be longer than the stride
    far = _FAR * period
    kept = (architecture.cache(t)["kv"].total for t in (far, far + period))
    return Fraction(-next(kept) + next(kept), period)


def _parts(architecture: Architecture) -> Iterator[Mechanism]:
    return (part for layer, _ in architecture.counted() for part in layer)


def layer_counts(architecture: Architecture | Outline) -> dict[str, int]:
    """Layers by kind; a layer with attention and recurrence counts in both and in `parallel`."""
    counts: dict[str, int] = dict.fromkeys(
        ("full", "windowed", "indexed", "recurrent", "convolution", "parallel", "other"), 0
    )
    for layer, times in architecture.counted():
        kinds = {part.group for part in layer}
        for kind in kinds:
            counts[kind] += times
        counts["parallel"] += times * ("recurrent" in kinds and bool(kinds & ATTENTION))
    return {"total": len(architecture), **counts}


def symbol(layer: tuple[Part, ...]) -> str:
    """One character for a layer: its mechanism's own, or h for heads of several mechanisms."""
    own = {part.symbol for part in layer}
    return own.pop() if len(own) == 1 else "h"


def symbols(architecture: Architecture | Outline) -> tuple[str, ...]:
    """One symbol per layer, first layer first."""
    return tuple(symbol(layer) for layer in architecture)


def largest_numbers(architecture: Architecture, kind: str, t: int) -> dict[str, int]:
    """The most numbers of that kind of memory that a layer holds after t tokens, by mechanism;
    mechanisms without any are left out.
    """
    largest: dict[str, int] = {}
    for part in _parts(architecture):
        numbers = sum(item.bits.numbers for item in part.cache(t) if item.kind == kind)
        if numbers:
            largest[part.name] = max(numbers, largest.get(part.name, 0))
    return dict(sorted(largest.items()))


FORMAT = "format"
"""Written in specs without its name: "fp32"."""
_LIKE_HEADS = "kv_heads"
"""The one size that is another's where it is not given, and that every cache depends on."""


def taken_by_default(architecture: Architecture) -> tuple[str, ...]:
    """Sizes that the text of a spec leaves open, as specs write them: "heads=4", "fp32"; with the
    mechanism's name where the text gives the same size to another. Empty for models of files.
    """
    if not architecture.written:
        return ()
    given: set[str] = set()
    left: dict[str, dict[str, str]] = {}
    texts = parse_sizes(architecture.written)
    for heads, layer in zip(texts, architecture.layers, strict=True):
        for (name, sizes), part in zip(heads, layer, strict=True):
            given |= set(sizes)
            for size, value in _open(part, set(sizes)):
                left.setdefault(size, {})[name] = value
    return tuple(
        text
        for size, values in sorted(left.items(), key=lambda item: item[0] == FORMAT)
        for text in _texts(size, values, alike=size not in given)
    )


def _open(part: Mechanism, given: set[str]) -> list[tuple[str, str]]:
    """Sizes that were not given and have their default: what is counted, not what is switched."""
    found: list[tuple[str, str]] = []
    turns = part.sizes().get("rope", True)
    for f in fields(part):
        value = getattr(part, f.name)
        if f.name in given or value != f.default or (f.name.startswith("rope_") and not turns):
            continue
        if f.name == _LIKE_HEADS:
            found.append((f.name, "heads"))
        elif f.name == FORMAT or (type(value) is int and value > 0):
            found.append((f.name, str(value)))
    return found


def _texts(size: str, values: dict[str, str], *, alike: bool) -> list[str]:
    if alike and len(set(values.values())) == 1:
        value = next(iter(values.values()))
        return [value if size == FORMAT else f"{size}={value}"]
    return [f"{name}.{size}={value}" for name, value in values.items()]


_BESIDE = {
    "embedded": "learned embeddings",
    "none": "none",
    "alibi": "ALiBi: scores fall with distance",
    "unknown": "not said in the file",
}
_UNREAD = "in a way that is read: "


def positions_text(architecture: Architecture) -> str:
    """Rotations by the layers that have them, and what else there is; "" where no layer says."""
    mixing = [part for layer in architecture for part in layer if part.seen_positions is not None]
    if not mixing:
        return ""
    beside = architecture.positions
    parts = [part for part in mixing if part.group not in ("recurrent", "convolution")]
    still = sum(part.rotation is None for part in parts)
    if still == len(parts):
        # a note of the file's reader says what it found and did not read
        why = next(
            (note.partition(_UNREAD)[2] for note in architecture.notes if _UNREAD in note), ""
        )
        return f"not known: {why}" if beside == "unknown" and why else _BESIDE[beside]
    text = _rotations([part for part in parts if part.rotation is not None], parts)
    if still:
        text += f"; {still:,} of {len(parts):,} attention layers without (NoPE)"
    return text if beside == "none" else f"{text}; {_BESIDE[beside]} besides"


def _rotations(rotating: list[Mechanism], parts: list[Mechanism]) -> str:
    """The rotations, each with the layers that have it where they differ."""
    counts = Counter((_rotation(part), part.group) for part in rotating)
    kinds: dict[str, list[str]] = {}
    for (said, group), number in counts.items():
        kinds.setdefault(said, []).append(f"{number:,} {group}")
    if len(kinds) > 1:
        return "rotary: " + "; ".join(
            f"{said} in {' and '.join(layers)} layers" for said, layers in kinds.items()
        )
    (said,) = kinds
    where = " in the windows" if _all_windows(rotating) else ""
    if where and not _all_windows(parts):
        where = " in the windows alone"
    return f"rotary{where}, {said}"


def _all_windows(parts: Iterable[Mechanism]) -> bool:
    return all(part.group == "windowed" for part in parts)


def _rotation(part: Mechanism) -> str:
    rotation = part.rotation
    assert rotation is not None
    words = [f"base {rotation.base:,}"]
    width = part.sizes().get("head_dim")
    if rotation.dims != width or part.sizes().get("latent"):
        words.append(f"{rotation.dims:,} numbers of each head")
    if rotation.scaling is not None:
        kind, first, *others = rotation.scaling.split("_")
        name = kind.removesuffix("exact")
        words.append(f"scaled {name} x{first}" if others or kind == "linear" else name)
    return ", ".join(words)
