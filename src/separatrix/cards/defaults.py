"""The sizes that a spec leaves open, and what they are then: a card names what nobody said."""

from __future__ import annotations

from dataclasses import fields

from separatrix.stacks.architecture import Architecture, Mechanism
from separatrix.stacks.architecture.spec import parse_sizes

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
    """Sizes of a mechanism that were not given and have their default: what is counted, not what is
    switched.
    """
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
    """One text for all mechanisms that take the same, else one for each."""
    if alike and len(set(values.values())) == 1:
        value = next(iter(values.values()))
        return [value if size == FORMAT else f"{size}={value}"]
    return [f"{name}.{size}={value}" for name, value in values.items()]
