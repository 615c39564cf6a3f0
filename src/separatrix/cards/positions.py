"""Where the tokens of a model know their places from, in one line."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

from separatrix.stacks.architecture import Architecture
from separatrix.stacks.mechanisms import Mechanism

_BESIDE = {
    "embedded": "learned embeddings",
    "none": "none",
    "alibi": "ALiBi: scores fall with distance",
    "unknown": "not said in the file",
}
_UNREAD = "in a way that is read: "
_KINDS = {"full": "full", "windowed": "windowed", "indexed": "indexed"}


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
        kinds.setdefault(said, []).append(f"{number:,} {_KINDS.get(group, group)}")
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
    """Base, the part of a head that turns, and scaling of a rotation."""
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
