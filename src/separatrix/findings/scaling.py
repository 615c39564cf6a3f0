"""Layouts scaled down by rules: ratio and placement are kept, as whole periods of layers; layers,
heads and states are smaller.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import fields, replace
from math import lcm

from separatrix.cards.design.space import period
from separatrix.core.errors import SizeError, SpecError
from separatrix.stacks.architecture import Architecture, Layer, stack
from separatrix.stacks.mechanisms import Mechanism

WIDTH = 32
"""Of every model."""
LAYERS, FEW_LAYERS = 16, 8
"""Stacks with more layers than the first are cut, to about the second where periods allow."""
_RECURRENT = "linear lightning retnet gla hgrn2 deltanet gdn kda deltaproduct mlstm loglinear"
SIZES: dict[str, str] = {
    **dict.fromkeys(("full", "fox"), "heads=2,head_dim=16"),
    **dict.fromkeys(_RECURRENT.split(), "heads=1,head_dim=4"),
    "mamba2": "heads=1,head_dim=4,state=4",
    "rwkv": f"heads=1,head_dim=4,width={WIDTH}",
    "mamba": f"width={WIDTH},state=4",
    "rglru": f"width={WIDTH}",
    "window": "heads=1,head_dim=16,size=4",
    "sparse": "heads=2,head_dim=16,block=4,topk=2",
}
"""The rule of each mechanism: a state is too small to answer by itself what is asked."""
_SCALED = {"heads", "head_dim", "value_dim", "conv", "state", "width", "size", "block", "topk"}
CONV = 4
"""Most tokens of a short convolution."""


def scaled(layouts: Mapping[str, Architecture]) -> dict[str, Architecture]:
    """What stands for each layout. Raises SpecError for a mechanism without a rule and for layouts
    that become one, and SizeError for layers that cannot be cut.
    """
    small = {name: [tuple(map(_small, layer)) for layer in own] for name, own in layouts.items()}
    depths = {name: len(layers) for name, layers in small.items()}
    if max(depths.values()) > LAYERS:
        if len(set(depths.values())) > 1:
            told = ", ".join(f"{name} {many}" for name, many in depths.items())
            raise SizeError(
                f"layers: {told}; stacks of more than {LAYERS} are cut, and only those of one depth"
                " stay comparable"
            )
        depth = _depth(small)
        small = {name: layers[:depth] for name, layers in small.items()}
    found: dict[str, Architecture] = {}
    for name, layers in small.items():
        one = stack(layers)
        if unplaced(layouts[name]):
            mark = ", " if "@" in one.spec else " @ "
            one = Architecture.parse(f"{one.spec}{mark}positions=none")
        for other, beside in found.items():
            if beside == one:
                raise SpecError(
                    f"{other} and {name} are one layout at this size, {one.spec}: nothing is left"
                    " to compare"
                )
        found[name] = one
    return found


def left_out(own: Architecture) -> list[str]:
    """Options of a layout that the rules drop, by name."""
    kept = _SCALED | ({"positions"} if unplaced(own) else set())
    parts = dict.fromkeys(part for layer, _ in own.counted() for part in layer)
    dropped = dict.fromkeys(
        field.name
        for part in parts
        for field in fields(part)
        if getattr(part, field.name) != field.default
        and field.name not in kept.union(part.another_recurrence, own_sizes(part) or ())
    )
    return list(dropped)


def unplaced(own: Architecture) -> bool:
    """Whether nothing tells tokens their places, which a trial keeps."""
    rotated = any(getattr(part, "rope", False) for layer, _ in own.counted() for part in layer)
    return own.positions == "none" and not rotated


def own_sizes(part: Mechanism) -> dict[str, int] | None:
    """Sizes in a trial beside the width that the class of an own mixer gives, as `small`; None
    where it gives none. Raises SpecError for what are no sizes of it.
    """
    small = getattr(getattr(part, "maker", None), "small", None)
    if small is None or (isinstance(small, dict) and {*small} <= {*part.sizes()}):
        return small
    sizes = ", ".join(part.sizes())
    raise SpecError(f"small = {small!r} of {part.name} gives no sizes of it in a trial: {sizes}")


def _small(part: Mechanism) -> Mechanism:
    """A mechanism at the sizes of its rule, with what makes another recurrence of it."""
    if (small := own_sizes(part)) is not None:
        return replace(part, **{"width": WIDTH, **small})
    if part.name not in SIZES:
        sizes = {name: size for name, size in part.sizes().items() if type(size) is int}
        sizes.pop("width", None)
        own = f"give its class the sizes of a trial, such as small = {sizes}"
        how = own if part.origin else f"those that have: {', '.join(SIZES)}"
        raise SpecError(f"{part.name} has no rule by which it is scaled; {how}")
    kept = {name: getattr(part, name) for name in part.another_recurrence}
    options = [f"{name}={str(value).lower()}" for name, value in kept.items()]
    if conv := getattr(part, "conv", 0):
        options.append(f"conv={min(int(conv), CONV)}")
    text = ",".join([SIZES[part.name], *options])
    return Architecture.parse(f"{part.name}({text})").layers[0][0]


def _depth(stacks: Mapping[str, Sequence[Layer]]) -> int:
    """Layers to which all are cut: whole periods of each."""
    periods = {name: period(layers) for name, layers in stacks.items()}
    common = lcm(*periods.values())
    if common > LAYERS:
        told = ", ".join(f"{name} {period}" for name, period in periods.items())
        raise SizeError(
            f"layers: periods ({told}) fit together in {common} only; a trial has {LAYERS} at most,"
            " and keeps ratio and placement by keeping whole periods"
        )
    return common * max(1, FEW_LAYERS // common)
