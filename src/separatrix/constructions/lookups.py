"""Lookup by content in one full layer behind a short convolution, its own or that of a layer before
it: a head whose keys are made of the token before, so that the place of a value carries the key in
front of it.

D = ceil(log2 K) bits for a key, B for an answer, all +-1, lowest first; s = 4; r = ceil(log2 n)
bits of a number of a pair where later writes must win, else r = 0; c = 2^(r+1).

    space     width   place of the i-th key   of its value   first place   elsewhere   token
    key       D       .                       .              .             .           bits of a key
    one       1       .                       .              .             .           1 for keys
    shut      1       D - 1                   D + 1          D - 1         D + 1       .
    order     r       bits of i               0              bits of 0     0           .
    value     B       .                       .              .             .           bits
    none      B       0                       0              bits of none  0           .
    fetched   B       written by attention
    answer    B       written by the MLP

The head, at a token that asks for key q; its key at place j is made of the token at j - 1:

    K x_{j-1} = s (key, shut, order)
    Q x       = s (c key, -c one, 2^0 one, 2^1 one, ...)
    V x_j     = value + none

    behind the i-th key k:   s^2 (c (1 - 2 hamming(k, q)) + 2 i - (2^r - 1))
    elsewhere:               at most -s^2 c
    the first place:         0, for no token stands before it

The first place is the blank between what matches and the rest, and holds the code of "none".

Where the convolution is a layer of its own it copies key, shut and order of the token before to the
space `before`, which K then reads: the same keys, number for number [Wen25].

    u_h = x[source]     b_h = c_h = x[one] = 1     one tap of 1, `back` tokens back

so that y_h = x_{i - back}[source], and 0 where no such token stands: nothing is rounded.

MQAR: r = 0, and every key behind the pairs asks, wherever it stands. What stands there itself is
shut out: the place behind it has a key of `shut` = D + 1, which no code outweighs. So filler may be
anything. Associative recall:

    present, independent   the key is there: its value wins
    absent                 the first place, whose key is 0, wins where nothing matches: "none"
    last                   the same, and of equal keys the last one wins by the number of its pair
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np

from separatrix.constructions.parts.built import Recipe
from separatrix.constructions.parts.placement import (
    SCALE,
    empty_model,
    fits,
    mixer_at,
    mlp_after,
    softmax_head,
)
from separatrix.constructions.parts.spaces import Spaces, pick, put, signs, threshold
from separatrix.mixers.channels import ShortConvolutionMixer
from separatrix.models.model import Model
from separatrix.proofs.arithmetic import Arithmetic
from separatrix.stacks.architecture import Architecture, Place, stack
from separatrix.stacks.mechanisms import Full, ShortConvolution
from separatrix.tasks import MQAR, Recall
from separatrix.theory.written import Asked, asked_of, slots

KEYED = ("key", "shut", "order")
"""What a key is made of, at the token before."""


def lookup(
    task: Recall | MQAR,
    architecture: Architecture | None,
    arithmetic: Arithmetic,
    *,
    carried: bool,
) -> Model:
    """The weights above, in the last full layer with a convolution that holds them; or `carried`,
    in a short convolution and the last plain full layer behind it (default: a stack of just these).
    Raises SizeError, saying what is needed, where they are missing.
    """
    fits(task, arithmetic)
    asked = asked_of(task)
    keys, answer = asked.head_dim, asked.answer
    if architecture is None:
        full = Full(heads=1, head_dim=max(keys, answer))
        # the theorem counts one bit at least
        behind = [ShortConvolution(width=max(2, keys), conv=2), full]
        architecture = stack(behind if carried else [replace(full, conv=2)])
    name = "carried-recall" if carried else "recall"
    *taps, place = (slot.place for slot in slots(name, task, architecture))
    keyed = {"key": asked.code, "one": 1, "shut": 1, "order": asked.order}
    read = {"value": answer, "none": answer, "fetched": answer, "answer": answer}
    space = Spaces(**keyed, **read, **({"before": keys, "unit": 1} if carried else {}))
    model = empty_model(task, architecture, width=space.width, hidden=2 * answer)
    write_embeddings(model, asked, space)
    mixer = softmax_head(model, place)
    over = float(SCALE << (asked.order + 1))
    counted = [(space["one"], float(SCALE << bit)) for bit in range(asked.order)]
    pick(mixer.q.weight, [(space["key"], over), (space["one"], -over), *counted])
    pick(mixer.k.weight, [(space[name], SCALE) for name in (("before",) if carried else KEYED)])
    for name in ("value", "none"):
        pick(mixer.v.weight, [(space[name], 1.0)])
    put(mixer.o.weight, space["fetched"])
    if carried:
        model.embed.weight[:, space["unit"]] = 1.0
        start = space["before"].start
        moved = []
        for name in KEYED:
            target = slice(start, start + keyed[name])
            moved.append(Moved(space[name], target, 1))
            start = target.stop
        write_taps(model, taps[0], space["unit"], moved)
    else:
        assert mixer.conv is not None
        queries, count, _ = mixer.channels
        # the newest token's weight stands last
        mixer.conv.weight[:, -1] = 1.0
        mixer.conv.weight[queries : queries + count] = 0.0
        mixer.conv.weight[queries : queries + count, -2] = 1.0
    threshold(mlp_after(model, place), space["fetched"], space["answer"])
    model.head.weight[:, space["answer"]] = signs(task.answers, answer)
    return model


def write_embeddings(model: Model, asked: Asked, space: Spaces) -> None:
    """What tokens and places hold."""
    embed = model.embed.weight
    position = model.position.weight
    keys = slice(asked.keys.start, asked.keys.stop)
    embed[keys, space["key"]] = signs(len(asked.keys), asked.code)
    embed[keys, space["one"]] = 1.0
    values = slice(asked.values.start, asked.values.stop)
    embed[values, space["value"]] = signs(len(asked.values), asked.answer)
    position[:, space["shut"]] = float(asked.code + 1)
    position[: 2 * asked.pairs : 2, space["shut"]] = float(asked.code - 1)
    position[: 2 * asked.pairs : 2, space["order"]] = signs(asked.pairs, asked.order)
    if asked.absent:
        position[0, space["none"]] = signs(np.array([len(asked.values)]), asked.answer)


_ONE = "one full layer with conv >= 2, "
_BEHIND = (
    "one full layer behind a layer of short convolutions with conv >= 2 and a channel for each key"
    " dimension: "
)
_KEYS = {
    Recall: (
        "ceil(log2 K) + 1 key dimensions (form=last: ceil(log2 n) more) and ceil(log2 V) value"
        " dimensions (of V + 1 answers where keys may be missing)"
    ),
    MQAR: (
        "a key dimension for each bit of a key and one more, a value dimension for each bit of a"
        " value"
    ),
}


def _recipe(task: type[Recall | MQAR], *, carried: bool) -> Recipe[Any]:
    return Recipe(
        name=f"carried-{task.name}" if carried else task.name,
        task=task,
        weights=partial(lookup, carried=carried),
        takes=(_BEHIND if carried else _ONE) + _KEYS[task],
    )


@dataclass(frozen=True)
class Moved:
    """A space of the token so many places back, and where it lands."""

    source: slice
    target: slice
    back: int


def write_taps(model: Model, place: Place, one: slice, moved: Sequence[Moved]) -> None:
    """`one` holds 1 at every token; channels are taken in turn."""
    mixer = mixer_at(model, place)
    assert isinstance(mixer, ShortConvolutionMixer)
    pick(mixer.v.weight, [(move.source, 1.0) for move in moved])
    channel = 0
    for move in moved:
        count = move.source.stop - move.source.start
        channels = slice(channel, channel + count)
        mixer.b.weight[channels, one] = 1.0
        mixer.c.weight[channels, one] = 1.0
        # the newest token's weight stands last
        mixer.conv.weight[channels, -1 - move.back] = 1.0
        put(mixer.o.weight[:, channels], move.target)
        channel += count


RECIPES = tuple(
    _recipe(task, carried=carried) for carried in (False, True) for task in (Recall, MQAR)
)
