"""What `design` is asked: tasks, whose missing sizes follow from a context, and spaces: the
mechanisms of a base model with their sizes varied, or a free choice of mechanisms.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields
from itertools import product
from typing import Any

from separatrix.cards.design.space import Place, Space
from separatrix.core.errors import SeparatrixError, SizeError, SpecError, UnknownNameError
from separatrix.core.numbers.amounts import LONGEST_CONTEXT, check_context
from separatrix.core.numbers.first_size import first_size
from separatrix.stacks.architecture import MECHANISMS, Architecture, Layer, Mechanism, mechanism
from separatrix.stacks.architecture.spec import parse_sizes
from separatrix.tasks import TASKS, Eva, Task, parse_task
from separatrix.tasks.base.described import add_sizes, name_of, read_sizes

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
    """What may be varied; None or empty: the base's own values and their halves and doubles, or
    the defaults of a free choice.
    """

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
    """The space of those choices, around a base model if one is given. Raises what specs and
    spaces raise.
    """
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
    """The layers of a spec; sizes it does not give come from `sizes` where the mechanism has
    them.
    """
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


def _cycle(layers: Sequence[Layer]) -> tuple[Layer, ...]:
    for period in range(1, len(layers) + 1):
        if all(layers[i] == layers[i - period] for i in range(period, len(layers))):
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
