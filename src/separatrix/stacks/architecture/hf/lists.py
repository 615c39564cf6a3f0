"""Layers named by index, by code or by several spellings at once, in config.json files."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import Any

from separatrix.core.evidence.canonical import json_list
from separatrix.stacks.architecture.hf.fields import Fields, shown


def indices(fields: Fields, name: str, layers: int, *, base: int | None) -> list[int]:
    """The layers that the list `name` names, numbered from 0 and in order.

    The file numbers them from `base`; if that is None, from 0 where the list holds a 0, from 1
    where it holds the number of layers. Raises ConfigError for anything that is no list of distinct
    layers, and where the base stays ambiguous.
    """
    found = _integers(fields, name, layers)
    if base is None and found:
        first = min(found) == 0
        last = max(found) == layers
        if first == last:
            why = (
                f"from 0 to {layers}, more numbers than layers"
                if first
                else f"neither 0 nor {layers}, so they may count from 0 or from 1"
            )
            raise fields.error(
                f"'{name}' holds layers {why}; write the kind of every layer in 'layer_types'"
                " instead"
            )
        base = 0 if first else 1
    low = base or 0
    for number in found:
        if not low <= number < low + layers:
            raise fields.error(
                f"'{name}' names layer {shown(number)}; this model numbers its layers {low} to"
                f" {low + layers - 1}"
            )
    return [number - low for number in found]


def partition(fields: Fields, first: str, second: str, layers: int) -> list[bool]:
    """Whether each layer stands in the list `first` rather than in `second`; together they name
    every layer once, from 0 or from 1.

    Raises ConfigError where they do not.
    """
    one = _integers(fields, first, layers)
    other = _integers(fields, second, layers)
    both = sorted([*one, *other])
    twice = next((a for a, b in pairwise(both) if a == b), None)
    if twice is not None:
        raise fields.error(
            f"layer {shown(twice)} stands in both '{first}' and '{second}'; remove it from one of"
            " them"
        )
    low = both[0] if both else 0
    if len(both) != layers or low not in (0, 1) or both[-1] != low + layers - 1:
        raise fields.error(
            f"'{first}' and '{second}' name {len(both)} layers; together they must name each of the"
            f" {layers} layers once, from 0 or from 1"
        )
    chosen = set(one)
    return [number in chosen for number in both]


def _integers(fields: Fields, name: str, layers: int) -> list[int]:
    value = fields.value(name)
    numbers = json_list(value)
    if numbers is None:
        raise fields.error(f"'{name}' is {shown(value)}; it must be a list of layer numbers")
    if len(numbers) > layers:
        raise fields.error(
            f"'{name}' has {len(numbers)} entries, more than the model has layers ({layers});"
            " correct one of them"
        )
    for place, number in enumerate(numbers, 1):
        if type(number) is not int:
            raise fields.error(
                f"entry {place} of '{name}' is {shown(number)}; it must be a layer number"
            )
    if len(set(numbers)) < len(numbers):
        twice = next(number for number in numbers if numbers.count(number) > 1)
        raise fields.error(f"'{name}' names layer {shown(twice)} twice; remove one")
    return sorted(numbers)


def only(fields: Fields, *names: str, usual: Sequence[Any] = ()) -> Fields:
    """The fields, where those of these names are absent or have one of the usual values. Raises
    ConfigError for another value, which means what no reader knows.
    """
    for name in names:
        value = fields.value(name)
        if value is not None and value not in usual:
            known = ", ".join(map(shown, usual)) or "no such field"
            raise fields.error(
                f"'{name}' is {shown(value)}, but of this model type {known} is read; pass the"
                " stack as a spec, or correct 'model_type'"
            )
    return fields
