"""The layouts that `design` looks at: which layers read, where they stand, what fills the rest."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, fields
from itertools import combinations, islice, pairwise, product
from math import comb
from typing import Any, Literal

from separatrix.core.errors import SeparatrixError, SizeError, SpecError, UnknownNameError
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
    told_apart: int = TOLD_APART

    @property
    def depth(self) -> int:
        return self.reading + self.bounded

    def filled(self) -> Iterator[Layer]:
        """The bounded layers, first one first."""
        return (self.fill[i % len(self.fill)] for i in range(self.bounded))

    def placements(self, places: Sequence[Place] = ("any",)) -> Iterator[tuple[int, ...]]:
        """Numbers of bounded layers in the reading + 1 gaps: one placement for every class that
        the theorems can tell apart.
        """
        if self.reading == 0:
            yield (self.bounded,)
        elif "any" not in places:
            yield from dict.fromkeys(self.named(place) for place in places)
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

    def classes(self, places: Sequence[Place] = ("any",)) -> int:
        """How many placements `placements` yields; with "any" they are not counted one by one."""
        if self.reading == 0:
            return 1
        if "any" not in places:
            return len({self.named(place) for place in places})
        return (
            comb(self.depth, self.reading)
            if self.reading <= self.told_apart
            else min(len(self.fill), self.bounded) + 1
        )

    def named(self, place: Place) -> tuple[int, ...]:
        """The gaps of evenly spaced reading layers (each after its share of the bounded ones),
        or of all at the start or the end.
        """
        k = self.reading
        rest = self.bounded
        if place == "start":
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

    @property
    def layers(self) -> tuple[Layer, ...]:
        bounded = self.arrangement.filled()
        layers: list[Layer] = []
        for number, gap in enumerate(self.gaps):
            layers += islice(bounded, gap)
            if number < self.arrangement.reading and self.arrangement.reader is not None:
                layers.append(self.arrangement.reader)
        return tuple(layers)

    @property
    def architecture(self) -> Architecture:
        return Architecture(self.layers)

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

    Raises SizeError for an empty or too large space, SpecError for a reader that does not read or a
    filling layer that does.
    """

    depths: tuple[int, ...]
    readers: tuple[Layer, ...]
    fills: tuple[tuple[Layer, ...], ...]
    readings: tuple[int, ...] | None = None
    places: tuple[Place, ...] = ("any",)
    told_apart: int = TOLD_APART
    """Up to how many reading layers placements in every gap are looked at."""

    def __post_init__(self) -> None:
        if not self.depths or any(
            type(depth) is not int or not 1 <= depth <= MOST_LAYERS for depth in self.depths
        ):
            raise SizeError(
                f"layers: {', '.join(map(str, self.depths)) or 'none given'}; give numbers of"
                f" layers from 1 to {MOST_LAYERS:,}"
            )
        if not self.readers and not self.fills:
            raise SizeError(
                "neither a reading nor a bounded layer may be used; name at least one mechanism"
            )
        if any(not fill for fill in self.fills):
            raise SizeError("a cycle of bounded layers is empty; it has at least one layer")
        if self.readings is not None and any(type(k) is not int or k < 0 for k in self.readings):
            raise SizeError(
                f"numbers of reading layers: {', '.join(map(str, self.readings))}; none may be"
                " negative"
            )
        if not self.places or any(place not in PLACES for place in self.places):
            raise SpecError(
                f"places: {', '.join(self.places) or 'none given'}; choose from {', '.join(PLACES)}"
            )
        for layer in self.readers:
            if not any(part.reading for part in layer):
                raise SpecError(
                    f"{Architecture((layer,)).spec} is no reading layer: its cache does not grow"
                    " with every token"
                )
        for layer in (layer for fill in self.fills for layer in fill):
            if any(part.reading for part in layer):
                raise SpecError(
                    f"{Architecture((layer,)).spec} is a reading layer; it cannot stand among the"
                    " bounded ones"
                )

    def arrangements(self) -> list[Arrangement]:
        """Every arrangement once, however it is written. Raises SizeError for too many, or none."""
        numbers: dict[Layer, int] = {}

        def own(layers: Sequence[Layer]) -> tuple[int, ...]:
            return tuple(numbers.setdefault(layer, len(numbers)) for layer in layers)

        # numbers in place of layers: short keys, which are compared many times
        readers = {own((reader,))[0]: reader for reader in self.readers}
        fills = {own(cycle): cycle for cycle in (_cycle(fill, whole=True) for fill in self.fills)}
        found: dict[tuple[int | None, int, tuple[int, ...], int], Arrangement] = {}
        classes = 0
        for depth in sorted(set(self.depths)):
            for k in sorted(set(range(depth + 1) if self.readings is None else self.readings)):
                bounded = depth - k
                if bounded < 0 or (k and not readers) or (bounded and not fills):
                    continue
                for key, reader in readers.items() if k else ((None, None),):
                    for ids, fill in fills.items() if bounded else (((), ()),):
                        # of a cycle longer than the rest only its beginning is used
                        name = (key, k, ids[:bounded], bounded)
                        if name not in found:
                            found[name] = Arrangement(
                                reader, k, fill[:bounded], bounded, self.told_apart
                            )
                            classes += found[name].classes(self.places)
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
        return list(found.values())


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


class Costs:
    """Costs of arrangements at a context: the same sums as those of their stacks, of which none is
    written out; every layer is asked once.
    """

    def __init__(self, context: int) -> None:
        self._context = context
        self._known: dict[int, tuple[Layer, int, int]] = {}

    def cost(self, arrangement: Arrangement) -> Cost:
        layers = [] if arrangement.reader is None else [(arrangement.reader, arrangement.reading)]
        if arrangement.bounded:
            times, rest = divmod(arrangement.bounded, len(arrangement.fill))
            layers += [(layer, times + (i < rest)) for i, layer in enumerate(arrangement.fill)]
        bits = flops = 0
        for layer, times in layers:
            _, own, work = self._of(layer)
            bits += times * own
            flops += times * work
        return Cost(bits, flops, arrangement.reading)

    def _of(self, layer: Layer) -> tuple[Layer, int, int]:
        # identity is faster than comparing layers; what is kept here keeps its id
        if id(layer) not in self._known:
            bits = sum(part.cache_bits(self._context) for part in layer)
            flops = sum(part.flops(self._context) for part in layer)
            self._known[id(layer)] = (layer, bits, flops)
        return self._known[id(layer)]


_COMPOSITIONS = ("seqcomp", "seqcomp-forward")


def used_tokens(task: Task) -> int:
    """Tokens of the context a task takes where its sizes are given: its prompt, of Eva the facts
    alone, whose question is the next token.
    """
    return task.n if isinstance(task, Eva) else task.length


def check_fits(task: Task, context: int) -> None:
    """Raises SizeError for a task that is longer than the context."""
    if used_tokens(task) > context:
        raise SizeError(
            f"task '{task.spec}' takes {used_tokens(task):,} tokens, the context is {context:,};"
            f" give smaller sizes or a longer --context, or leave {_growing(task.name)} out to fill"
            " the context"
        )


def task_for_context(text: str, context: int) -> Task:
    """The task of a text such as "seqcomp:L=3" or "eva:V=50000" at a context of that many tokens.

    A missing n (m of seqcomp) becomes the largest that fits; missing n_l of seqcomp are 1, and
    recall has as many keys and values as facts, where it does not say. Raises
    what `parse_task` raises, and SizeError for a task that does not fit.
    """
    check_context(context)
    name = name_of(text)
    if name not in TASKS:
        parse_task(text)
        raise UnknownNameError.of("task", name, TASKS, listing="separatrix list tasks")
    given = read_sizes(text.rstrip(" ,:"), TASKS[name].usage)
    if name in _COMPOSITIONS and "n" not in given and "form" not in given:
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

    def at(value: int) -> Task:
        """The task at that size, or one below where only even sizes exist."""
        try:
            return parse_task(add_sizes(text, [f"{size}={value}" for size in sizes]))
        except SizeError:
            return parse_task(add_sizes(text, [f"{size}={value - 1}" for size in sizes]))

    def beyond(value: int) -> bool:
        try:
            # as on a capability card, the question fits as well
            return at(value).length > context
        except SizeError:
            return True

    # tasks differ in their smallest size
    tried = (*range(1, 65), *(1 << power for power in range(7, 40)))
    smallest = next((value for value in tried if not _raises(lambda value=value: at(value))), 1)
    least = at(smallest)
    first = first_size(beyond, smallest, limit=10 * LONGEST_CONTEXT)
    if first is None or first == smallest:
        raise SizeError(
            f"task '{text}' does not fit in a context of {context:,} tokens: with {sizes[0]} ="
            f" {least.sizes()[sizes[0]]} it takes {least.length:,}; give a longer --context or"
            " smaller sizes"
        )
    return at(first - 1)


def _raises(read: Callable[[], Task]) -> bool:
    try:
        read()
    except SeparatrixError:
        return True
    return False


FREE_LAYERS = 24
FREE_HEADS = 16
FREE_HEAD_DIM = 128
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
    width: int | None = None
    """The model width that a base's sizes suggest."""
    attention: Mechanism | None = None
    """Attention of a base model, whose sizes other attention gets; None without one."""


def space_of(choices: Choices, base: Architecture | None = None) -> Space:
    """The space of choices, around a base model if given. Raises what specs and spaces do."""
    if base is not None:
        _check_no_free_sizes(choices)
    like = choices if base is None else _like(base)
    mixing = [layer for layer in base or () if any(part.cache_bits(1 << 20) for part in layer)]
    reading = {layer: any(part.reading for part in layer) for layer in mixing}
    own_fill = _cycle([layer for layer in mixing if not reading[layer]])
    readers = (
        [_parsed(text, like) for text in choices.reading]
        or [(layer,) for layer, reads in reading.items() if reads]
        or [_parsed("full", like)]
    )
    fills = (
        [_parsed(text, like) for text in choices.bounded]
        or ([own_fill] if own_fill else [])
        or [_parsed(text, like) for text in ("gdn", "window")]
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


def _check_no_free_sizes(choices: Choices) -> None:
    for name in ("heads", "kv_heads", "head_dim", "format", "state_format"):
        if getattr(choices, name) is not None:
            raise SpecError(
                f"{name} comes from the base model; give --{name.replace('_', '-')} without --base,"
                " or name layers with sizes"
            )


def _like(base: Architecture) -> Choices:
    """The sizes a mechanism gets that the base does not have: those of the base's own attention
    for attention, else heads and formats of its widest layer.
    """
    parts = [part for layer, _ in base.counted() for part in layer]
    widest = max(parts, key=lambda part: part.inner_width)
    attention = [part for part in parts if part.head_shape.kv is not None]
    states = [part.sizes()["state_format"] for part in parts if "state_format" in part.sizes()]
    heads, head_dim, _ = widest.head_shape
    return Choices(
        heads=heads,
        head_dim=head_dim,
        format=widest.format,
        state_format=next(iter(states), None),
        width=widest.inner_width or None,
        # one that reads all of the past tells more than a window
        attention=max(attention, key=lambda part: (part.reading, part.inner_width), default=None),
    )


def _parsed(text: str, sizes: Choices) -> tuple[Layer, ...]:
    """The layers of a spec; sizes that it leaves open come from `sizes`."""
    stack = Architecture.parse(text)
    # the text gives sizes to all its layers
    if "@" in text:
        return stack.layers
    return tuple(
        tuple(mechanism(name, **(_sizes_like(name, sizes) | given)) for name, given in layer)
        for layer in parse_sizes(text)
    )


def _sizes_like(name: str, sizes: Choices) -> dict[str, Any]:
    wanted: dict[str, Any] = {
        "heads": FREE_HEADS if sizes.heads is None else sizes.heads,
        "kv_heads": sizes.kv_heads,
        "head_dim": FREE_HEAD_DIM if sizes.head_dim is None else sizes.head_dim,
        "format": sizes.format or "bf16",
        "state_format": sizes.state_format,
        "width": sizes.width,
    }
    cls = MECHANISMS[name]
    own = {f.name for f in fields(cls)}
    like = sizes.attention
    if like is not None and "kv_heads" in own:
        # how far it sees is what sets mechanisms apart; all else is the base's
        wanted |= {size: value for size, value in like.sizes().items() if size not in _REACH}
    return {size: value for size, value in wanted.items() if value is not None and size in own}


def _cycle(layers: Sequence[Layer], *, whole: bool = False) -> tuple[Layer, ...]:
    """The shortest cycle that repeats to these layers; `whole`: that ends where they end."""
    for period in range(1, len(layers) + 1):
        alike = all(layers[i] == layers[i - period] for i in range(period, len(layers)))
        if alike and not (whole and len(layers) % period):
            return tuple(layers[:period])
    return ()


def _varied(
    stack: tuple[Layer, ...], wanted: dict[str, tuple[int, ...]]
) -> list[tuple[Layer, ...]]:
    """The layers at every combination of sizes; a size that none is given for takes its own
    value, half and double, all layers alike.
    """
    own = {kind for layer in stack for part in layer for kind in part.varied_sizes()}
    scales = {kind: wanted[kind] or ("half", "same", "double") for kind in wanted if kind in own}
    found: list[tuple[Layer, ...]] = []
    for picked in product(*scales.values()):
        chosen = dict(zip(scales, picked, strict=True))
        found.append(tuple(tuple(_resized(part, chosen) for part in layer) for layer in stack))
    return list(dict.fromkeys(found))


def _resized(part: Mechanism, chosen: dict[str, Any]) -> Mechanism:
    changes: dict[str, Any] = {}
    for kind, name in part.varied_sizes().items():
        old = getattr(part, name)
        wanted = chosen[kind]
        changes[name] = {"half": max(1, old // 2), "same": old, "double": 2 * old}.get(
            wanted, wanted
        )
    return part.resized(**changes) if changes else part
