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

Induction heads: what stood behind the last c tokens where they stood before, in two full layers
(c-grams; with c = 1 recall of keys that are written once, and promised), or for c-grams in a plain
full layer behind one of short convolutions [Wen25].

B = ceil(log2 V) bits for a token, +-1, lowest first; s = 4. A start token stands before the prompt;
it holds 0 in all of them, and so does every token for those before it that do not exist.

    space      width   token t
    code       B       bits of t
    none       1       0, and 1 at the start token; with c = 1 alone
    fetched    c B     written by c heads of layer 1: the codes of the tokens 1, ..., c before, and
                       with c = 1 `none`
    before     c B     written by the MLP of layer 1: the same, +-1 or 0 again
    read       B       written by the attention of layer 2
    answer     B       written by the MLP of layer 2

beside those that tell the first layer of places (parts/readers.py). The head of layer 2:

    Q x = s (code, the first c - 1 of before)    K x = s before    V x = code

    score = s^2 (c B - 2 hamming), over the tokens that stand before

`none`, which nobody asks for, keeps a norm of keys from making much of what is left of 0 where no
token stands. 2-Sum per query looks up what would cancel its last token, and whether it does:

    partner    B       bits of -t
    differs    1       written by the MLP of layer 2: sum |partner - read|

    Q x = s partner    K x = s before    V x = before

Where none cancels, whatever is averaged differs in a bit, so that the sum is 2 at least; the logits
are (differs, 1). As a decision every token looks up what would cancel it, and the start token holds
2 in place of partner, since before itself it finds 0. The MLP writes 1 - sum |partner - read|, and
one more layer looks for a token where that is 1, and elsewhere at most -1:

    one        1       1 at every token
    found      1       written by the attention of layer 3

    Q x = s one        K x = 2 s differs    V x = differs

in a dimension that no rotation turns, or the first one of the slowest pair. The logits are (1/4,
found). Source: Olsson et al., In-context learning and induction heads, arXiv 2209.11895,
for the two layers; the weights are ours.

Short convolutions write `before` at once, without a start token; `one`, which is 1 at every token,
opens them. Letters that are missing before the first tokens are 0. No place is asked for, and none
is known: positions hold nothing.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from separatrix.constructions.parts.built import (
    SCALE,
    Reads,
    Recipe,
    Spaces,
    empty_model,
    mixer_at,
    mlp_after,
    pick,
    put,
    recipe,
    signs,
    threshold,
)
from separatrix.constructions.parts.readers import (
    InPairs,
    LookBack,
    Reader,
    places_of,
    write_places,
)
from separatrix.mixers.base.softmax import SoftmaxMixer
from separatrix.mixers.channels import ShortConvolutionMixer
from separatrix.models.model import Model
from separatrix.proofs.arithmetic import Arithmetic
from separatrix.stacks.architecture import Architecture, Place, stack
from separatrix.stacks.mechanisms import Full, ShortConvolution
from separatrix.tasks import MQAR, CGram, NoisyRecall, Recall, Task, TwoSum
from separatrix.theory.solves.recall import asked_of
from separatrix.theory.written import INDUCTION, before_of, bits_for, slots

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
    model = empty_model(task, architecture, space, hidden=2 * answer)
    embed, position = model.embed.weight, model.position.weight
    of_keys, of_values = (slice(ids.start, ids.stop) for ids in (asked.keys, asked.values))
    embed[of_keys, space["key"]] = signs(len(asked.keys), asked.code)
    embed[of_keys, space["one"]] = 1.0
    embed[of_values, space["value"]] = signs(len(asked.values), answer)
    position[:, space["shut"]] = float(asked.code + 1)
    position[: 2 * asked.pairs : 2, space["shut"]] = float(asked.code - 1)
    position[: 2 * asked.pairs : 2, space["order"]] = signs(asked.pairs, asked.order)
    if asked.absent:
        position[0, space["none"]] = signs(np.array([len(asked.values)]), answer)
    mixer = mixer_at(model, place, SoftmaxMixer)
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


class Moved(NamedTuple):
    """A space of the token so many places back, and where it lands."""

    source: slice
    target: slice
    back: int


def write_taps(model: Model, place: Place, one: slice, moved: Sequence[Moved]) -> None:
    """`one` holds 1 at every token; channels are taken in turn."""
    mixer = mixer_at(model, place, ShortConvolutionMixer)
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


def induction(task: Task, architecture: Architecture | None, arithmetic: Arithmetic) -> Model:
    """Two full layers, the first with a head for each token before (default: a stack of these); a
    third one for 2-Sum as a decision.
    """
    cancels = isinstance(task, TwoSum)
    decides = cancels and task.form == "decision"
    before, bits, tokens = before_of(task), bits_for(task.vocabulary), task.length + 1
    if architecture is None:
        architecture = stack(
            [
                Full(heads=before, head_dim=max(bits_for(tokens), bits + (before == 1))),
                Full(heads=1, head_dim=before * bits + (before == 1)),
                *[Full(heads=1, head_dim=1)] * decides,
            ]
        )
    first, second, *third = slots(INDUCTION[task.name], task, architecture)
    heads = [LookBack(first, back - 1, back) for back in range(1, before + 1)]
    parts = places_of([first], tokens)
    for one in heads:
        parts |= one.asks(tokens)
    alone = int(before == 1)
    many = before * bits + alone
    parts |= {"code": bits, "none": alone, "fetched": many, "before": many, "read": bits}
    parts |= {"partner": bits, "differs": 1} if cancels else {"answer": bits}
    space = Spaces(**parts, **({"one": 1, "found": 1} if decides else {}))
    placed = "address" in parts
    model = empty_model(task, architecture, space, hidden=2 * many, bos=True, placed=placed)
    write_places(model, space)
    model.embed.weight[:-1, space["code"]] = signs(task.vocabulary, bits)
    model.embed.weight[-1, space["none"]] = 1.0
    read = slice(space["code"].start, space["none"].stop)
    start = space["fetched"].start
    for one in heads:
        target = slice(start + bits * one.head, start + bits * (one.head + 1) + alone)
        one.write(model, space, read, target)
    threshold(mlp_after(model, first.place), space["fetched"], space["before"])
    reader = Reader(second.place, start=second.start)
    asked: Reads = {"partner" if cancels else "code": 1, ("before", many - bits - alone): 1}
    value = ("before", bits) if cancels else "code"
    clean = None if cancels else "answer"
    slow, held = None, many
    if second.slow is not None:
        slow = InPairs(second.slow, bits, before, tokens)
        # behind a norm the key of no token must not be 0
        held -= alone * (mixer_at(model, second.place, SoftmaxMixer).k_norm is None)
    reader.write(model, space, asked, {("before", held): 1}, value, "read", clean, slow)
    if cancels:
        partners = -np.arange(task.vocabulary) % task.vocabulary
        model.embed.weight[:-1, space["partner"]] = signs(partners, bits)
        mlp = mlp_after(model, second.place)
        # the sum of |partner - read|
        pick(mlp.up.weight, [(space["partner"], 1.0), (space["partner"], -1.0)])
        pick(mlp.up.weight, [(space["read"], -1.0), (space["read"], 1.0)])
        mlp.down.weight[space["differs"], : 2 * bits] = 1.0
        if not decides:
            # logits (differs, 1)
            put(model.head.weight.T[space["differs"]].T, slice(0, 1))
            model.head.bias[1] = 1.0
            return model
        # 1 - sum |partner - read|
        mlp.down.weight[space["differs"]] *= -1.0
        mlp.down.bias[space["differs"]] = 1.0
        model.embed.weight[-1, space["partner"]] = 2.0
        model.embed.weight[:, space["one"]] = 1.0
        looking = Reader(third[0].place, start=third[0].start)
        looking.write(model, space, {"one": 1}, {"differs": 2}, "differs", "found")
        # logits (1/4, found), since a sink may leave 0 of -1
        model.head.bias[0] = 0.25
        put(model.head.weight.T[space["found"]].T, slice(1, 2))
        return model
    first_answer = task.first_value if isinstance(task, MQAR) else 0
    ids = first_answer + np.arange(task.answers)
    model.head.weight[:, space["answer"]] = signs(ids, bits)
    return model


@recipe(
    "cgram",
    CGram,
    takes=(
        "one full layer with c ceil(log2 V) key and ceil(log2 V) value dimensions, behind a layer"
        " of short convolutions with conv >= c + 1 and as many channels as key dimensions"
    ),
)
def cgram(task: CGram, architecture: Architecture | None, arithmetic: Arithmetic) -> Model:
    """A short convolution and one plain full layer."""
    bits = bits_for(task.V)
    dims = task.c * bits
    if architecture is None:
        taps = ShortConvolution(width=dims, conv=task.c + 1)
        architecture = stack([taps, Full(heads=1, head_dim=dims)])
    tap, place = (slot.place for slot in slots("cgram", task, architecture))
    space = Spaces(code=bits, one=1, before=dims, read=bits, answer=bits)
    model = empty_model(task, architecture, space, hidden=2 * bits, placed=False)
    model.embed.weight[:, space["code"]] = signs(task.V, bits)
    model.embed.weight[:, space["one"]] = 1.0
    start = space["before"].start
    lands = [slice(at, at + bits) for at in range(start, start + dims, bits)]
    moved = [Moved(space["code"], target, back) for back, target in enumerate(lands, 1)]
    write_taps(model, tap, space["one"], moved)
    query: Reads = {"code": 1, ("before", dims - bits): 1}
    Reader(place).write(model, space, query, {"before": 1}, "code", "read", "answer")
    model.head.weight[:, space["answer"]] = signs(task.answers, bits)
    return model


RECIPES: tuple[Recipe[Any], ...] = (
    *(
        Recipe(
            name=f"carried-{task.name}" if carried else task.name,
            task=task,
            weights=partial(lookup, carried=carried),
            takes=(_BEHIND if carried else "one full layer with conv >= 2, ") + _KEYS[task],
        )
        for carried in (False, True)
        for task in (Recall, MQAR)
    ),
    cgram,
    *(
        Recipe(
            name=INDUCTION[task.name],
            task=task,
            weights=induction,
            takes=(
                "two full layers: the first finds the token before, or c of them by a head each, by"
                " places, in a window, too, or by rotations alone; the second compares c ceil(log2"
                " of the vocabulary) bits; for twosum with form=decision a third looks for a token"
                " that is cancelled"
            ),
            rounded=True,
        )
        for task in (Recall, MQAR, NoisyRecall, CGram, TwoSum)
    ),
)
