"""Architectures: stacks of layers, each layer one mechanism or several head-wise, with declared
sizes.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import accumulate, groupby
from math import inf
from typing import Any

from separatrix.core.errors import SizeError, SpecError
from separatrix.core.evidence.canonical import json_list, json_object
from separatrix.core.numbers.bits import Bits
from separatrix.stacks.architecture.spec import (
    MOST_LAYERS,
    check_length,
    format_spec,
    parse_layers,
)
from separatrix.stacks.architecture.spec import Layer as Layer
from separatrix.stacks.architecture.weights import Mlp, Weights
from separatrix.stacks.mechanisms import MECHANISMS as MECHANISMS
from separatrix.stacks.mechanisms import Full, check_size_names
from separatrix.stacks.mechanisms import Mechanism as Mechanism
from separatrix.stacks.mechanisms import mechanism as mechanism
from separatrix.stacks.mechanisms.base import POSITIONS

Place = tuple[int, int]
"""Index of a layer, and of a kind of heads in it."""


@dataclass(frozen=True)
class Group:
    """What stands between two reading layers: sigma bits at a stated length, split by where they
    stand.
    """

    inside: int
    """Bits of the bounded heads inside the reading layer before this group (0 for group 0)."""
    between: int
    """Bits of the bounded layers of the group."""

    @property
    def sigma(self) -> int:
        return self.inside + self.between


@dataclass(frozen=True, repr=False)
class Architecture:
    """A stack of layers, first layer first; a layer is a tuple of mechanisms (more than one:
    head-wise hybrid).

    Raises SizeError for an empty stack, or one of more than 10,000 layers or 20,000 kinds of heads.
    """

    layers: tuple[Layer, ...]
    # two stacks are equal if their layers are: what follows tells where they come from
    name: str = field(default="", compare=False)
    notes: tuple[str, ...] = field(default=(), compare=False)
    """Assumptions made while reading it, to be printed with every verdict."""
    vocabulary: int | None = field(default=None, compare=False)
    context: int | None = field(default=None, compare=False)
    weights: Weights | None = field(default=None, compare=False)
    """How many weights it has, where a file tells."""
    uncounted: str = field(default="", compare=False)
    """Why a file does not tell them."""
    weight_bits: int | None = field(default=None, compare=False)
    """What they take where files beside the description tell, all of them, of other input too."""
    mlp: Mlp | None = field(default=None, compare=False)
    """Its MLPs, where a file tells."""
    written: str = field(default="", compare=False)
    """The spec as somebody wrote it, which tells what it leaves open; "" for what is no spec."""

    def __post_init__(self) -> None:
        if not self.layers or not all(self.layers):
            raise SizeError(
                "an architecture has at least one layer, and every layer at least one mechanism"
            )
        check_length([*map(len, self.layers)], where=self.name or "the architecture")

    @classmethod
    def parse(cls, text: str) -> Architecture:
        """The architecture a spec describes. Raises SpecError, UnknownNameError, SizeError."""
        return cls(parse_layers(text), written=text)

    def __repr__(self) -> str:
        return f"Architecture.parse({self.spec!r})"

    @cached_property
    def spec(self) -> str:
        """Canonical text; `Architecture.parse(a.spec) == a`."""
        return format_spec(self.layers)

    def __str__(self) -> str:
        return self.name or self.spec

    def __iter__(self) -> Iterator[Layer]:
        return iter(self.layers)

    def __len__(self) -> int:
        return len(self.layers)

    def to_json(self) -> dict[str, Any]:
        """Plain data: runs of equal layers with every size written out."""
        runs = [(layer, len(list(same))) for layer, same in groupby(self.layers)]
        return {
            "name": self.name,
            "layers": [
                {
                    "times": times,
                    "heads": [{"mechanism": part.name, **part.sizes()} for part in layer],
                }
                for layer, times in runs
            ],
            "notes": list(self.notes),
            "vocabulary": self.vocabulary,
            "context": self.context,
        }

    @classmethod
    def from_json(cls, data: Any) -> Architecture:
        """Inverse of `to_json`. Raises SpecError for missing or unknown fields, and what
        `mechanism` raises.
        """
        body = json_object(data)
        if (
            body is None
            or set(body) != {"name", "layers", "notes", "vocabulary", "context"}
            or (runs := json_list(body["layers"])) is None
        ):
            raise SpecError(
                "an architecture in JSON has exactly the fields name, layers (a list), notes,"
                " vocabulary, context"
            )
        layers: list[Layer] = []
        for number, data in enumerate(runs, 1):
            run = json_object(data) or {}
            times, heads = run.get("times"), json_list(run.get("heads"))
            if set(run) != {"times", "heads"} or type(times) is not int or heads is None:
                raise SpecError(
                    f"entry {number} of layers must have exactly the fields times (an integer) and"
                    " heads (a list)"
                )
            # before the layers are made, so that no number in a file can fill the memory
            if not 1 <= times <= MOST_LAYERS - len(layers):
                raise SizeError(
                    f"times is {times} in entry {number} of layers; the stack may have 1 to"
                    f" {MOST_LAYERS:,} layers"
                )
            layers += [tuple(_head(part, number) for part in heads)] * times
        name, notes = body["name"], json_list(body["notes"])
        if notes is None or not all(isinstance(text, str) for text in (name, *notes)):
            raise SpecError("name must be a text and notes a list of texts")
        sizes = vocabulary, context = body["vocabulary"], body["context"]
        if any(size is not None and (type(size) is not int or size < 1) for size in sizes):
            raise SizeError(
                f"vocabulary and context are {vocabulary!r} and {context!r}; each must be a"
                " positive integer or null"
            )
        return cls(tuple(layers), name, tuple(notes), vocabulary, context)

    @cached_property
    def _kinds(self) -> tuple[tuple[Layer, ...], tuple[int, ...]]:
        """The distinct layers, and for every layer which of them it is: real stacks repeat a few
        layers many times.
        """
        # most equal layers are one object, which costs no comparison
        objects = {id(layer): layer for layer in self.layers}
        numbers: dict[Layer, int] = {}
        which = {at: numbers.setdefault(layer, len(numbers)) for at, layer in objects.items()}
        return tuple(numbers), tuple(which[id(layer)] for layer in self.layers)

    def counted(self) -> list[tuple[Layer, int]]:
        """The distinct layers, each with how often it stands in the stack, in order of first
        appearance.
        """
        kinds, which = self._kinds
        return [(layer, which.count(number)) for number, layer in enumerate(kinds)]

    @cached_property
    def remembering(self) -> list[tuple[Layer, int]]:
        """The same of layers with memory, their own or another layer's that they read: others take
        nothing out of so long a prefix.
        """

        def takes(part: Mechanism) -> bool:
            reach = part.reach
            return reach is None or reach.window > 0 or part.cache_bits(1 << 20) > 0

        return [one for one in self.counted() if any(map(takes, one[0]))]

    @cached_property
    def owned(self) -> bool:
        """Whether each layer that reads the cache of an earlier one has one that keeps as much: a
        full layer, or a window no shorter than its own; and each that reads what an earlier
        indexer chose has one that chooses no more. Else nobody counts what it reads.
        """
        kinds, which = self._kinds
        reads = ("reused", "reused_window", "dsa_shared")
        if not any(part.name in reads for layer in kinds for part in layer):
            return True
        full, window, chosen = False, 0, inf
        for layer in (kinds[number] for number in which):
            sizes = dict[str, int]()
            for part in layer:
                sizes[part.name] = max(sizes.get(part.name, 0), part.sizes().get("size", 0))
            shared = [part.sizes()["topk"] for part in layer if part.name == "dsa_shared"]
            kept = (full or "reused" not in sizes) and sizes.get("reused_window", 0) <= window
            if not kept or any(topk < chosen for topk in shared):
                return False
            full = full or any(p.group == "full" and p.name != "reused" for p in layer)
            window = max(window, sizes.get("window", 0))
            chosen = min([chosen, *(p.sizes()["topk"] for p in layer if p.name == "dsa")])
        return True

    @property
    def only(self) -> Mechanism | None:
        """Its mechanism, where it is one layer with heads of one kind."""
        parts = [part for layer in self.layers for part in layer]
        return parts[0] if len(self.layers) == len(parts) == 1 else None

    @cached_property
    def reading(self) -> tuple[int, ...]:
        """Indices of the reading layers (those whose cache grows with every token)."""
        kinds, which = self._kinds
        reads = [any(part.reading for part in layer) for layer in kinds]
        return tuple(i for i, number in enumerate(which) if reads[number])

    @cached_property
    def causal(self) -> bool:
        """Whether no token sees later ones."""
        return all(part.left_to_right for layer in self._kinds[0] for part in layer)

    def read_bits(self, index: int) -> int:
        """h of layer `index`: the sum over its reading heads."""
        return sum(part.read_bits() for part in self.layers[index])

    def groups(self, t: int) -> tuple[Group, ...]:
        """Groups 0..k of bounded layers around the k reading layers, sized for lengths up to t
        (theory.md, section 5).
        """
        kinds, which = self._kinds
        bounded = [bounded_bits(layer, t) for layer in kinds]
        # -1: group 0 has no reading layer before it
        marks = (-1, *self.reading)
        groups: list[Group] = []
        for left, right in zip(marks, (*self.reading, len(self.layers)), strict=True):
            inside = bounded[which[left]] if left >= 0 else 0
            between = sum(bounded[number] for number in which[left + 1 : right])
            # what feeds the reading heads from earlier tokens is a bounded layer before theirs
            ends = self.layers[right : right + 1]
            fed = sum(part.fed_bits(t) for layer in ends for part in layer if part.reading)
            groups.append(Group(inside, between + fed))
        return tuple(groups)

    def cache(self, t: int) -> dict[str, Bits]:
        """Bits carried after t tokens, by kind (state, convolution, window, kv), over all layers
        together.
        """
        total: dict[str, Bits] = {}
        for layer, times in self.counted():
            for part in layer:
                for item in part.cache(t):
                    total[item.kind] = total.get(item.kind, Bits()) + item.bits * times
        return total

    def cache_bits(self, t: int) -> int:
        """Bits carried after t tokens, over all layers together."""
        return sum(part.cache_bits(t) * times for layer, times in self.counted() for part in layer)

    def within(self, tokens: int) -> Architecture:
        """The same stack on prompts of at most so many tokens: windows that see all of them are
        full attention.
        """
        kinds, which = self._kinds
        seen = tuple(tuple(part.within(tokens) for part in layer) for layer in kinds)
        return self if seen == kinds else replace(self, layers=tuple(seen[kind] for kind in which))

    def flops(self, t: int) -> int:
        """Floating-point operations that mixing the t-th token takes in all layers (a
        multiply-add counts 2), projections not counted.
        """
        return sum(part.flops(t) * times for layer, times in self.counted() for part in layer)

    @cached_property
    def positions(self) -> str:
        """What tokens know of their places where they enter the stack: embedded unless an attention
        layer says otherwise.
        """
        said = {part.seen_positions for layer in self._kinds[0] for part in layer}
        # a stack has one embedding: a layer that lacks it shows that there is none
        return next((kind for kind in POSITIONS[:0:-1] if kind in said), "embedded")

    @cached_property
    def counted_before(self) -> tuple[tuple[int, int], ...]:
        """For every layer: how many layers before it hand on a count of tokens, and how many bits
        of it they hand on together.
        """
        kinds, which = self._kinds
        each = [max(part.counted_bits for part in layer) for layer in kinds]
        bits = [each[number] for number in which[:-1]]
        layers = accumulate((int(count > 0) for count in bits), initial=0)
        return tuple(zip(layers, accumulate(bits, initial=0), strict=True))

    @cached_property
    def equal_weights(self) -> tuple[tuple[int, Full], ...]:
        """The full layers whose weights can all be equal, exactly, of each kind the first two; none
        where tokens know places before.
        """
        kinds, which = self._kinds if self.positions == "none" else ((), ())
        able = [[p for p in layer if isinstance(p, Full) and p.averages] for layer in kinds]
        places: dict[int, list[int]] = {}
        for at, kind in enumerate(which):
            if able[kind] and len(places.setdefault(kind, [])) < 2:
                places[kind].append(at)
        every = sorted(at for some in places.values() for at in some)
        return tuple((at, part) for at in every for part in able[which[at]])

    @cached_property
    def granted(self) -> tuple[str, ...]:
        """What the declared sizes take for granted, each said once: it follows from the spec."""
        said = [text for layer in self._kinds[0] for part in layer for text in part.assumptions()]
        return tuple(dict.fromkeys(said))

    @cached_property
    def assumptions(self) -> tuple[str, ...]:
        """The notes of whoever read the stack, and what its sizes take for granted."""
        return tuple(dict.fromkeys((*self.notes, *self.granted)))


def bounded_bits(layer: Layer, t: int) -> int:
    """Cache bits of a layer's bounded heads, and the open blocks and windows of its reading
    ones, at any length up to t.
    """
    return sum(part.open_bits(t) if part.reading else part.cache_bits(t) for part in layer)


def stack(layers: Sequence[Mechanism | Layer], name: str = "") -> Architecture:
    """An architecture from mechanisms (or tuples of them), first layer first."""
    return Architecture(
        tuple(layer if isinstance(layer, tuple) else (layer,) for layer in layers), name
    )


def _head(data: object, number: int) -> Mechanism:
    """The mechanism that an entry of `heads` of layers[number] stands for."""
    head = json_object(data) or {}
    name = head.get("mechanism")
    if not isinstance(name, str):
        raise SpecError(
            f"entry {number} of layers: each of its heads is an object with a 'mechanism'"
        )
    sizes = {key: value for key, value in head.items() if key != "mechanism"}
    if name in MECHANISMS:
        check_size_names(MECHANISMS[name], sizes, where=f" in entry {number} of layers")
    return mechanism(name, where=f" in entry {number} of layers", **sizes)
