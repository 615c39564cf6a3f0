"""The layouts that `design` looks at: which layers read, where they stand, what fills the rest."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, fields
from functools import cached_property, lru_cache
from itertools import chain, combinations, cycle, islice, pairwise, product
from math import comb
from typing import Any, Literal

from separatrix.core.errors import SizeError, SpecError
from separatrix.core.numbers.amounts import LONGEST_CONTEXT, check_context
from separatrix.core.numbers.first_size import first_size
from separatrix.stacks.architecture import MECHANISMS, Architecture, Layer, Mechanism, mechanism
from separatrix.stacks.architecture.spec import MOST_LAYERS, parse_sizes
from separatrix.tasks import TASKS, Eva, Task, parse_task
from separatrix.tasks.base.described import add_sizes, name_of, read_sizes
from separatrix.theory.words import counted_as

Place = Literal["any", "even", "start", "end"]
PLACES: tuple[Place, ...] = ("any", "even", "start", "end")
NAMED: dict[Place, str] = {"even": "evenly spaced", "end": "at the end", "start": "at the start"}
TOLD_APART = 2
"""Up to that many reading layers Theorems III, IV and V see how much stands in every gap;
beyond, only what stands before the second counts, but for tasks that VI and VII may speak of.
"""
MOST_ARRANGEMENTS = 500_000
MOST_CLASSES = 20_000_000


@dataclass(frozen=True)
class Arrangement:
    """Layouts of the same layers in the same order of the bounded ones: they differ in where the
    reading layers stand, and cost the same.

    `fill` is repeated over the bounded layers, first layer first. Up to `told_apart` reading layers
    every gap counts.
    """

    reader: Layer | None
    reading: int
    fill: tuple[Layer, ...]
    bounded: int
    places: tuple[Place, ...] = ("any",)
    told_apart: int = TOLD_APART

    @property
    def depth(self) -> int:
        return self.reading + self.bounded

    def cost(self, context: int) -> Cost:
        """What each of its stacks costs, of which none is written out."""
        times, rest = divmod(self.bounded, len(self.fill) or 1)
        counted = [(layer, times + (i < rest)) for i, layer in enumerate(self.fill)]
        if self.reader is not None:
            counted.append((self.reader, self.reading))
        costs = [(times, *_costs(layer, context)) for layer, times in counted]
        bits = sum(times * own for times, own, _ in costs)
        return Cost(bits, sum(times * flops for times, _, flops in costs), self.reading)

    def layouts(self) -> list[Layout]:
        """One for every class of placements that the theorems can tell apart."""
        return [Layout(self, gaps) for gaps in self._gaps()]

    def _gaps(self) -> Iterator[tuple[int, ...]]:
        """Numbers of bounded layers in the reading + 1 gaps."""
        if not self.reading or "any" not in self.places:
            yield from dict.fromkeys(map(self.named, self.places))
        elif self.reading <= self.told_apart:
            for marks in combinations(range(self.depth), self.reading):
                ends = (-1, *marks, self.depth)
                yield tuple(right - left - 1 for left, right in pairwise(ends))
        else:
            # beyond one cycle no new kind of layer stands before the second reader; the even
            # placement stands for its own class
            even = self.named("even")
            for before in range(min(len(self.fill), self.bounded) + 1):
                own = min(sum(even[:2]), len(self.fill)) == before
                yield even if own else (before, *(0,) * (self.reading - 1), self.bounded - before)

    def classes(self) -> int:
        """How many layouts there are, without making them."""
        if not self.reading or "any" not in self.places:
            return len({*map(self.named, self.places)})
        if self.reading <= self.told_apart:
            return comb(self.depth, self.reading)
        return min(len(self.fill), self.bounded) + 1

    def named(self, place: Place) -> tuple[int, ...]:
        """The gaps of evenly spaced reading layers (each after its share of the bounded ones),
        or of all at the start or the end.
        """
        k = self.reading
        rest = self.bounded
        if place == "start" or not k:
            return (*(0,) * k, rest)
        if place == "end":
            return (rest, *(0,) * k)
        ends = [-(-rest * i // k) for i in range(k + 1)]
        return (*(right - left for left, right in pairwise(ends)), 0)


@dataclass(frozen=True)
class Layout:
    """One stack: how many bounded layers stand before, between and after the reading layers."""

    arrangement: Arrangement
    gaps: tuple[int, ...]

    @cached_property
    def architecture(self) -> Architecture:
        bounded = cycle(self.arrangement.fill)
        layers: list[Layer] = []
        for number, gap in enumerate(self.gaps):
            layers += islice(bounded, gap)
            if number < self.arrangement.reading and self.arrangement.reader is not None:
                layers.append(self.arrangement.reader)
        return Architecture(tuple(layers))

    @property
    def place(self) -> str:
        """Where the reading layers stand, in words."""
        k = self.arrangement.reading
        gaps = self.gaps
        if k == 0:
            return "none"
        if not self.arrangement.bounded:
            return "every layer"
        for name, said in NAMED.items():
            if gaps == self.arrangement.named(name):
                return said
        layers = [sum(gaps[: i + 1]) + i + 1 for i in range(k)]
        if k <= 4:
            return f"layer{'s' if k > 1 else ''} {' and '.join(str(layer) for layer in layers)}"
        return f"after {counted_as(gaps[0], 'bounded layer')}"


@dataclass(frozen=True)
class Space:
    """What may be chosen: numbers of layers, kinds of reading layers, cycles of bounded layers,
    numbers of reading layers (None: all), places.

    Raises SizeError for numbers out of range, SpecError for a reader that does not read or a
    filling layer that does.
    """

    depths: tuple[int, ...]
    readers: tuple[Layer, ...]
    fills: tuple[tuple[Layer, ...], ...]
    readings: tuple[int, ...] | None = None
    places: tuple[Place, ...] = ("any",)

    def __post_init__(self) -> None:
        asked = (("layers", self.depths, 1), ("reading layers", self.readings or (0,), 0))
        for of, numbers, least in asked:
            if not numbers or any(
                type(one) is not int or not least <= one <= MOST_LAYERS for one in numbers
            ):
                raise SizeError(
                    f"{of}: {', '.join(map(str, numbers)) or 'none given'}; give numbers of layers"
                    f" from {least} to {MOST_LAYERS:,}"
                )
        if not self.places or any(place not in PLACES for place in self.places):
            said = ", ".join(self.places) or "none given"
            raise SpecError(f"--place: {said}; choose from {', '.join(PLACES)}")
        for layers, reads in ((self.readers, True), (chain(*self.fills), False)):
            for spec in (Architecture((x,)).spec for x in layers if _reads(x) != reads):
                raise SpecError(
                    f"{spec} is no reading layer: its cache does not grow with every token"
                    if reads
                    else f"{spec} is a reading layer; it cannot stand among the bounded ones"
                )

    def arrangements(self, told_apart: int = TOLD_APART) -> list[Arrangement]:
        """Every arrangement once, however it is written. Raises SizeError for too many, or none."""
        readers = dict.fromkeys(self.readers)
        fills = dict.fromkeys(fill[: period(fill)] for fill in self.fills)
        found: dict[Arrangement, None] = {}
        classes = 0
        for depth in sorted(set(self.depths)):
            for k in sorted(set(range(depth + 1) if self.readings is None else self.readings)):
                bounded = depth - k
                if bounded < 0:
                    continue
                for reader, fill in product(readers if k else (None,), fills if bounded else ((),)):
                    # of a cycle longer than the rest only its beginning is used
                    own = fill[:bounded]
                    one = Arrangement(reader, k, own, bounded, self.places, told_apart)
                    classes += 0 if one in found else one.classes()
                    found[one] = None
                if len(found) > MOST_ARRANGEMENTS or classes > MOST_CLASSES:
                    raise SizeError(
                        "more than 20 million layouts; name fewer numbers of layers, state sizes,"
                        " windows or blocks"
                    )
        if not found:
            raise SizeError(
                "no stack has that many layers of these kinds; allow other numbers of layers or"
                " reading layers, or name more mechanisms"
            )
        return list(found)


@dataclass(frozen=True, order=True)
class Cost:
    """Bits of cache after the context, of one sequence; floating-point operations that mixing
    one token there takes; reading layers.
    """

    cache_bits: int
    flops: int
    reading: int

    def dominates(self, other: Cost) -> bool:
        """Whether it is no larger anywhere, and smaller somewhere."""
        return (
            self != other
            and self.cache_bits <= other.cache_bits
            and self.flops <= other.flops
            and self.reading <= other.reading
        )


def _reads(layer: Layer) -> bool:
    return any(part.reading for part in layer)


@lru_cache(maxsize=4096)
def _costs(layer: Layer, context: int) -> tuple[int, int]:
    """Bits of cache, and operations to mix a token."""
    return sum(p.cache_bits(context) for p in layer), sum(p.flops(context) for p in layer)


def check_fits(task: Task, context: int) -> None:
    """Raises SizeError for a task that is longer than the context. Of Eva the facts count alone,
    whose question is the next token.
    """
    taken = task.n if isinstance(task, Eva) else task.length
    if taken > context:
        raise SizeError(
            f"task '{task.spec}' takes {taken:,} tokens, the context is {context:,};"
            f" give smaller sizes or a longer --context, or leave {_growing(task.name)} out to fill"
            " the context"
        )


def task_for_context(text: str, context: int) -> Task:
    """The task of a text such as "seqcomp:L=3" or "eva:V=50000" at a context of that many tokens.

    A missing n (m of seqcomp) becomes the largest that fits, missing n_l of seqcomp 1, missing keys
    and values of recall as many. Raises what `parse_task` does, and SizeError for what never fits.
    """
    check_context(context)
    name = name_of(text)
    if name not in TASKS:
        # says why it is none
        return parse_task(text)
    given = read_sizes(text.rstrip(" ,:"), TASKS[name].usage)
    if name in ("seqcomp", "seqcomp-forward") and not {"n", "form"} & {*given}:
        steps = given.get("L")
        # a wrong L is refused when the whole text is read
        branches = range(1, min(steps, 100)) if isinstance(steps, int) else ()
        names = (f"n_{level}" for level in branches)
        text = add_sizes(text, (f"{size}=1" for size in names if size not in given))
    grows = _growing(name)
    if grows in given or "n" in given:
        task = parse_task(text)
        check_fits(task, context)
        return task
    alike = [size for size in ("K", "V") if name == "recall" and size not in given]
    return _largest(text, [grows, *alike], context)


def _growing(name: str) -> str:
    return parse_task(f"{name}:{TASKS[name].grid[0]}").family().grows


def _largest(text: str, sizes: Sequence[str], context: int) -> Task:
    """The task with the largest value of these sizes that fits in the context."""

    def read(value: int) -> Task:
        return parse_task(add_sizes(text, [f"{size}={value}" for size in sizes]))

    def at(value: int) -> Task | None:
        """The task at that size, or one below where only even sizes exist."""
        for size in (value, value - 1):
            with suppress(SizeError):
                return read(size)
        return None

    def beyond(value: int) -> bool:
        # as on a capability card, the question fits as well
        return (task := at(value)) is None or task.length > context

    # tasks differ in their smallest size
    tried = (*range(1, 65), *(1 << power for power in range(7, 40)))
    least = next(filter(None, map(at, tried)), None) or read(1)
    smallest = least.sizes()[sizes[0]]
    first = first_size(beyond, smallest, limit=10 * LONGEST_CONTEXT)
    found = None if first in (None, smallest) else at(first - 1)
    if found is None:
        raise SizeError(
            f"task '{text}' does not fit in a context of {context:,} tokens: with {sizes[0]} ="
            f" {smallest} it takes {least.length:,}; give a longer --context or smaller sizes"
        )
    return found


FREE_LAYERS = 24
FREE_SIZES = {"heads": 16, "head_dim": 128, "format": "bf16"}
FREE = {"state": (64, 128, 256), "window": (512, 2048), "block": (32, 64), "topk": (4, 16)}
"""Sizes that a free choice varies."""
_REACH = frozenset({"size", "block", "topk", "window", "latent", "shared"})
"""Sizes of attention that say what it sees and what of it is kept."""


@dataclass(frozen=True, kw_only=True)
class Choices:
    """What may be varied; if not given, the base's values, halved and doubled, or the defaults."""

    layers: tuple[int, ...] = ()
    readings: tuple[int, ...] | None = None
    places: tuple[Place, ...] = ("any",)
    reading: tuple[str, ...] = ()
    """Reading layers as specs: 'full', 'sparse', 'mla(latent=512)', 'full|gdn'."""
    bounded: tuple[str, ...] = ()
    """Cycles of bounded layers as specs: 'gdn', 'mamba2(state=128)', 'rglru*2 + window'."""
    states: tuple[int, ...] = ()
    """Key dimensions per head of matrix states, and state sizes N of Mamba."""
    windows: tuple[int, ...] = ()
    """Tokens of windows and chunks."""
    blocks: tuple[int, ...] = ()
    """Tokens per block of block-sparse and block-indexed attention."""
    topks: tuple[int, ...] = ()
    """Blocks or tokens that sparse, indexed and compressed attention reads."""
    heads: int | None = None
    kv_heads: int | None = None
    head_dim: int | None = None
    format: str | None = None
    state_format: str | None = None


def space_of(choices: Choices, base: Architecture | None = None) -> Space:
    """The space of choices, around a base model if given. Raises what specs and spaces do."""
    sizes = _sizes(choices, base)
    mixing = [layer for layer in base or () if any(part.cache_bits(1 << 20) for part in layer)]
    bounded = tuple(layer for layer in mixing if not _reads(layer))
    own_fill = bounded[: period(bounded, whole=False)]
    readers = (
        [_parsed(text, *sizes) for text in choices.reading]
        or [(layer,) for layer in dict.fromkeys(mixing) if _reads(layer)]
        or [_parsed("full", *sizes)]
    )
    fills = (
        [_parsed(text, *sizes) for text in choices.bounded]
        or ([own_fill] if own_fill else [])
        or [_parsed(text, *sizes) for text in ("gdn", "window")]
    )
    given = (choices.states, choices.windows, choices.blocks, choices.topks)
    vary = {
        kind: own or (usual if base is None else ())
        for (kind, usual), own in zip(FREE.items(), given, strict=True)
    }
    depths = choices.layers or (FREE_LAYERS if base is None else len(mixing) or 1,)
    for stack in readers:
        if len(stack) != 1:
            raise SpecError(
                f"a reading layer is one layer; {Architecture(stack).spec} has {len(stack)}"
            )
    return Space(
        depths=tuple(dict.fromkeys(depths)),
        readers=tuple(
            dict.fromkeys(stack[0] for reader in readers for stack in _varied(reader, vary))
        ),
        fills=tuple(dict.fromkeys(cycle for fill in fills for cycle in _varied(fill, vary))),
        readings=choices.readings,
        places=choices.places,
    )


def _sizes(choices: Choices, base: Architecture | None) -> tuple[dict[str, Any], dict[str, Any]]:
    """The sizes that a spec leaves open, and those that attention has before them: of a base the
    heads and formats of its widest layer, and what its own attention has.
    """
    names = ("heads", "kv_heads", "head_dim", "format", "state_format")
    given = {name: size for name in names if (size := getattr(choices, name)) is not None}
    if base is None:
        return FREE_SIZES | given, {}
    for name in given:
        raise SpecError(
            f"{name} comes from the base model; give --{name.replace('_', '-')} without --base,"
            " or name layers with sizes"
        )
    parts = [part for layer, _ in base.counted() for part in layer]
    widest = max(parts, key=lambda part: part.inner_width)
    heads, head_dim, _ = widest.head_shape
    sizes: dict[str, Any] = {"heads": heads, "head_dim": head_dim, "format": widest.format}
    if widest.inner_width:
        sizes["width"] = widest.inner_width
    states = [part.sizes()["state_format"] for part in parts if "state_format" in part.sizes()]
    if states:
        sizes["state_format"] = states[0]
    attention = [part for part in parts if part.head_shape.kv is not None]
    if not attention:
        return sizes, {}
    # one that reads all of the past tells more than a window
    like = max(attention, key=lambda part: (part.reading, part.inner_width)).sizes()
    # how far it sees is what sets mechanisms apart; all else is the base's
    return sizes, {name: size for name, size in like.items() if name not in _REACH}


def _parsed(text: str, sizes: dict[str, Any], attention: dict[str, Any]) -> tuple[Layer, ...]:
    """The layers of a spec, with these sizes where it leaves them open."""
    stack = Architecture.parse(text)
    # the text gives sizes to all its layers
    if "@" in text:
        return stack.layers

    def made(name: str, given: dict[str, Any]) -> Mechanism:
        own = {f.name for f in fields(MECHANISMS[name])}
        wanted = sizes | attention if "kv_heads" in own else sizes
        known = {size: value for size, value in wanted.items() if size in own and value is not None}
        return mechanism(name, **(known | given))

    return tuple(tuple(made(*part) for part in layer) for layer in parse_sizes(text))


def period(layers: Sequence[Layer], *, whole: bool = True) -> int:
    """After how many layers they repeat: in `whole` periods, or with a part of one at the end."""
    many = len(layers)
    every = (p for p in range(1, many + 1) if not (whole and many % p))
    return next((p for p in every if layers[p:] == layers[:-p]), many)


def _varied(
    stack: tuple[Layer, ...], wanted: dict[str, tuple[int, ...]]
) -> list[tuple[Layer, ...]]:
    """The layers at every combination of sizes; a size that none is given for takes its own
    value, half and double, all layers alike.
    """
    own = {kind for layer in stack for part in layer for kind in part.varied_sizes()}
    scales = {
        kind: sizes or ("half", "same", "double") for kind, sizes in wanted.items() if kind in own
    }

    def resized(part: Mechanism, chosen: dict[str, Any]) -> Mechanism:
        changes: dict[str, Any] = {}
        for kind, name in part.varied_sizes().items():
            old, size = getattr(part, name), chosen[kind]
            scaled = {"half": max(1, old // 2), "same": old, "double": 2 * old}
            changes[name] = scaled.get(size, size)
        return part.resized(**changes) if changes else part

    found: list[tuple[Layer, ...]] = []
    for picked in product(*scales.values()):
        chosen = dict(zip(scales, picked, strict=True))
        found.append(tuple(tuple(resized(part, chosen) for part in layer) for layer in stack))
    return list(dict.fromkeys(found))
