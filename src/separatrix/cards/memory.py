"""What a card shows of layers: their kinds, the memory at a context and how it grows, where tokens
know their places from, and sizes that nobody gave.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, fields
from fractions import Fraction
from math import lcm

from separatrix.core.numbers.amounts import bytes_of, format_bytes
from separatrix.stacks.architecture import Architecture
from separatrix.stacks.architecture.spec import parse_sizes
from separatrix.stacks.mechanisms import Mechanism
from separatrix.stacks.mechanisms.base import ATTENTION
from separatrix.theory.words import counted_as

KINDS = {
    "state": "recurrent state",
    "convolution": "convolution buffers",
    "window": "windows",
    "kv": "keys and values",
}
FAR = 1 << 41
"""Tokens by which every window, block and convolution buffer is full: sizes end at 10^12."""


@dataclass(frozen=True)
class Row:
    """A kind of memory: bits at the context, at any length (None: no bound), and growth."""

    kind: str
    bits: int
    limit: int | None
    per_token: Fraction
    per_doubling: int

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
    # after a common multiple every cache has grown by whole blocks, and blocks count by their share
    period = lcm(*(p.cache_stride for layer, _ in architecture.counted() for p in layer))
    far = -(-FAR // period) * period
    caches = [architecture.cache(t) for t in (context, far, far + period, 2 * far)]
    found = []
    for kind in KINDS:
        if not caches[1].get(kind) or not caches[1][kind].total:
            continue
        bits, at, next_to, twice = (cache[kind].total for cache in caches)
        per_token = Fraction(next_to - at, period) if kind == "kv" else Fraction(0)
        doubling = twice - at if kind == "state" else 0
        found.append(Row(kind, bits, None if per_token or doubling else at, per_token, doubling))
    return found


def layer_counts(architecture: Architecture) -> dict[str, int]:
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


def layer_titles(architecture: Architecture) -> str:
    """Layers of each set of mechanisms, most frequent first: "18 RG-LRU, 8 windowed (2,048)"."""
    kinds = (dict.fromkeys(part.card_title for part in layer) for layer in architecture)
    counts = Counter(map(" | ".join, kinds))
    return ", ".join(f"{number:,} {kind}" for kind, number in counts.most_common())


def formats_text(architecture: Architecture) -> str:
    """Number formats in words: "bf16, recurrent state fp32 (assumed)"."""
    mixing = [part for layer in architecture for part in layer if part.mixes_tokens]
    formats = sorted({part.format for part in mixing})
    sizes = [part.sizes() for part in mixing]
    states = sorted({s["state_format"] or s["format"] for s in sizes if "state_format" in s})
    words = ["/".join(formats)] if formats else []
    if states and states != formats:
        notes = (note for note in architecture.notes if note.startswith("recurrent state"))
        assumed = " (assumed)" * any("(assumed)" in note for note in notes)
        words.append(f"recurrent state {'/'.join(states)}{assumed}")
    return ", ".join(words)


def symbols(architecture: Architecture) -> tuple[str, ...]:
    """One character per layer, first layer first: its mechanism's own, or h for several."""
    kinds = ({part.symbol for part in layer} for layer in architecture)
    return tuple(own.pop() if len(own) == 1 else "h" for own in kinds)


def largest_numbers(architecture: Architecture, kind: str, t: int) -> dict[str, int]:
    """The most numbers of that kind of memory that a layer holds after t tokens, by mechanism;
    mechanisms without any are left out.
    """
    largest: dict[str, int] = {}
    for part in (part for layer, _ in architecture.counted() for part in layer):
        numbers = sum(item.bits.numbers for item in part.cache(t) if item.kind == kind)
        if numbers:
            largest[part.name] = max(numbers, largest.get(part.name, 0))
    return dict(sorted(largest.items()))


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
            for size, value in _by_default(part).items():
                if size not in sizes:
                    left.setdefault(size, {})[name] = value
    found: list[str] = []
    for size, values in sorted(left.items(), key=lambda item: item[0] == "format"):
        one, *others = sorted(set(values.values()))
        if others or size in given:
            found += [f"{name}.{size}={value}" for name, value in values.items()]
        else:
            found.append(one if size == "format" else f"{size}={one}")
    return tuple(found)


def _by_default(part: Mechanism) -> dict[str, str]:
    """Sizes that are as by default: what is counted, not what is switched."""
    turns = part.sizes().get("rope", True)
    same = {f.name: f.default for f in fields(part) if getattr(part, f.name) == f.default}
    return {
        name: "heads" if name == "kv_heads" else str(value)
        for name, value in same.items()
        if (name in ("format", "kv_heads") or (type(value) is int and value > 0))
        and (turns or not name.startswith("rope_"))
    }


_BESIDE = {
    "embedded": "learned embeddings",
    "none": "none",
    "alibi": "ALiBi: scores fall with distance",
    "unknown": "not said in the file",
}
_UNREAD = "in a way that is read: "


def positions_text(architecture: Architecture) -> str:
    """Rotations, with the layers that have them where not all do so alike, and what else there is;
    "" where no layer says.
    """
    mixing = [part for layer in architecture for part in layer if part.seen_positions is not None]
    if not mixing:
        return ""
    beside = architecture.positions
    parts = [part for part in mixing if part.group not in ("recurrent", "convolution")]
    kinds: dict[str, Counter[str]] = {}
    for part in parts:
        if part.rotation is not None:
            kinds.setdefault(_rotation(part), Counter())[part.group] += 1
    if not kinds:
        # a note of the file's reader says what it found and did not read
        unread = (note.partition(_UNREAD)[2] for note in architecture.notes if _UNREAD in note)
        why = next(unread, "") if beside == "unknown" else ""
        return f"not known: {why}" if why else _BESIDE[beside]
    still = sum(part.rotation is None for part in parts)
    said = list(kinds)
    if still or len(kinds) > 1:
        own = {
            kind: " and ".join(counted_as(n, f"{of} layer") for of, n in found.items())
            for kind, found in kinds.items()
        }
        said = [f"{kind} in {layers}" for kind, layers in own.items()]
    if still:
        said.append(f"{still:,} of {len(parts):,} attention layers without (NoPE)")
    if beside != "none":
        said.append(f"{_BESIDE[beside]} besides")
    return f"rotary, {'; '.join(said)}"


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
