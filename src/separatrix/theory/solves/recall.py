"""Facts by their addresses, and values by the keys before them: retrieval in one layer, copying in
two, recall behind convolutions, look-ups in two layers, and states that know the question first.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from functools import partial
from math import isqrt
from operator import itemgetter
from typing import NamedTuple

from separatrix.core.errors import SizeError
from separatrix.core.numbers.selection import Slow
from separatrix.stacks.architecture import Architecture
from separatrix.stacks.mechanisms import Full, Mechanism, ShortConvolution, Sparse
from separatrix.tasks import (
    MQAR,
    CGram,
    Copying,
    Eva,
    Index,
    NoisyRecall,
    Recall,
    Task,
    TwoSum,
)
from separatrix.tasks.recall import PROMISED
from separatrix.theory.solves.places import (
    BROUGHT,
    BY_AVERAGES,
    COUNTED,
    MOST_ADDRESS_BITS,
    NEEDS_NONE,
    Attending,
    Places,
    averages,
    averaging,
    counted_tokens,
    full_heads,
    heads_in_turn,
)
from separatrix.theory.solves.products import fetched, readers, seeing_heads
from separatrix.theory.solves.room import EMBEDDED, START, TAGS, WIDE, Room, bits_of, each, in_turn
from separatrix.theory.solves.states import SATURATED


def retrieval(
    architecture: Architecture, task: Eva | Index, *, indexed: bool = False
) -> Room | None:
    """In full attention, or in what an indexer chooses; that one may choose every token."""
    address, payload = bits_of(task.n), bits_of(task.V)
    for one in full_heads(architecture, choosing=indexed):
        if one.choice and one.choice.topk >= task.length:
            one = replace(one, choice=one.choice._replace(dims=one.head.head_dim))
        if indexed != (one.choice is not None):
            continue
        found = one.places(address=address + TAGS, payload=payload, tokens=task.length)
        if found is None:
            continue
        numbers = found.numbers(address, payload_bits=payload, layer=one.layer)
        return Room(numbers, (found.rests_on,))
    return None


def block_retrieval(architecture: Architecture, task: Eva | Index) -> Room | None:
    address, payload = bits_of(task.n), bits_of(task.V)
    for (index, _), part in each(architecture):
        if not isinstance(part, Sparse) or not part.plain or not part.formats <= WIDE:
            continue
        # low address bits cancel in the mean over whole powers of two only
        if part.block < 2 or part.block & (part.block - 1):
            continue
        if part.head.has_room(address + TAGS, payload) and address <= 256:
            numbers = {"address_bits": address, "payload_bits": payload}
            return Room(numbers | {"block": part.block, "layer": index})
    return None


def copying(architecture: Architecture, task: Copying) -> Room | None:
    address = bits_of(task.length)
    payload = max(address, bits_of(task.V))

    def finds(one: Attending) -> Places | None:
        return one.places(address=address + TAGS, payload=payload, tokens=task.length, named=True)

    layers = heads_in_turn(architecture, finds, finds, choosing=False)
    if layers is None:
        return _copying_behind(architecture, task)
    first, second = (one.layer for one, _ in layers)
    numbers = {"address_bits": address, "first": first, "second": second}
    return Room(numbers, (layers[0][1].rests_on,))


def _copying_behind(architecture: Architecture, task: Copying) -> Room | None:
    """The same behind layers that tell tokens their places, and where slow pairs hold addresses."""
    tokens = task.length + 1
    address, values = bits_of(tokens), bits_of(task.V)
    for known in told_places(architecture, tokens):

        def finds_mark(one: Attending, behind: int = known.behind) -> bool:
            return one.layer > behind and one.flags_carry(tokens) and one.head.has_room(1, address)

        layers = heads_in_turn(
            architecture, finds_mark, lambda one: one.finds(address, values, tokens)
        )
        if known.many >= tokens and layers is not None:
            first, second = (one.layer for one, _ in layers)
            numbers = {"address_bits": address, "layers": known.taken + 2}
            numbers |= {"first": first, "second": second}
            return Room(numbers, (*known.rests_on, START))
    return None


class Told(NamedTuple):
    """How tokens come to know their places."""

    many: int
    """How many of them."""
    layers: tuple[int, ...]
    """Those that tell places, and do nothing else."""
    rests_on: tuple[str, ...]
    behind: int
    """The last layer that this takes, -1 for none."""
    taken: int
    """How many layers that is."""


def told_places(architecture: Architecture, tokens: int) -> Iterator[Told]:
    """Each way that is known to tell so many tokens their places, the first one even where it tells
    fewer.

    Where places below P are told, a layer with h heads looks back P, 2 P, ..., h P, and tells those
    below (h + 1) P: the least of these offsets at which a token stands that was told its own adds
    to that. At smaller ones stand tokens that were told none; whatever is read at larger ones is
    not looked at. Or full layers count by equal weights, or recurrences.
    """
    if architecture.positions == "embedded":
        yield Told(tokens, (), (EMBEDDED,), -1, 0)
        return
    found = readers(architecture, isqrt(bits_of(tokens)) + 1, tokens, blank=False)
    used, told = list[int](), 1
    for index in sorted(found):
        if told < tokens and (more := fetched(found[index], told)) > 1:
            used.append(index)
            told *= more
    sources = tuple(dict.fromkeys(found[index].rests_on for index in used))
    counting = averaging(architecture, len(architecture), tokens)
    # what looks back by averages takes more layers than those
    if not counting or (told >= tokens and not any(s.startswith(BY_AVERAGES) for s in sources)):
        yield Told(told, tuple(used), sources, max(used, default=-1), len(used))
    if counting:
        yield Told(tokens, counting, (averages(counting),), counting[-1], len(counting))
    for index in range(1, len(architecture) if architecture.positions == "none" else 0):
        if counted_tokens(architecture, index) >= tokens:
            many, _ = architecture.counted_before[index]
            yield Told(tokens, (), (COUNTED.format(tokens),), index - 1, many)
            return


def digit_layers(
    architecture: Architecture, behind: int, place: int, held: int, payload: int, tokens: int
) -> list[int]:
    """The full layers that find the latest of so many tokens with some contents by the digits of
    its place, a head for each value of one; none where they do not reach all digits. They compare
    `held` bits, those of the place among them, and read so many.
    """
    found, left = list[int](), place
    for one in full_heads(architecture) if held * tokens <= MOST_AVERAGED else ():
        digits = one.part.head_shape.heads.bit_length() - 1
        new = left > 0 and one.layer > max([behind, *found])
        if new and one.sums_wide and digits and one.finds(held, payload, tokens, single=True):
            found.append(one.layer)
            left -= digits
    return found if left <= 0 else []


class Asked(NamedTuple):
    """What is looked up by its key: bits of its code, of the number of its pair where the last of
    equal keys counts, and of an answer; its ids.
    """

    code: int
    order: int
    answer: int
    keys: range = range(0)
    values: range = range(0)
    pairs: int = 0
    """Of key and value, from the first place on."""
    absent: bool = False
    """Whether a key may be missing: one answer more."""

    @property
    def head_dim(self) -> int:
        return self.code + 1 + self.order


def asked_of(task: CGram | Recall | MQAR) -> Asked:
    """What is looked up. Raises SizeError where the question stands before the pairs."""
    if isinstance(task, CGram):
        return Asked(task.c * bits_of(task.V), 0, bits_of(task.V))
    if isinstance(task, MQAR):
        keys, values = range(1, task.first_value), range(task.first_value, task.vocabulary)
        return Asked(_code(keys), 0, _code(values), keys, values, task.num_kv_pairs)
    if task.question == "first":
        raise SizeError(f"{task.spec}: the question stands before the pairs")
    order, absent = bits_of(task.n) if task.form == "last" else 0, task.form not in PROMISED
    keys, values = range(task.V, task.vocabulary), range(task.V)
    return Asked(_code(keys), order, bits_of(task.V + absent), keys, values, task.n, absent)


def _code(ids: range) -> int:
    """Bits that tell them apart. Not by len(), which 32 bits refuse beyond 2^31 ids."""
    return bits_of(ids.stop - ids.start)


def recall(architecture: Architecture, task: Recall | MQAR) -> Room | None:
    if isinstance(task, Recall) and task.question == "first":
        return None
    asked = asked_of(task)
    held = (index for (index, _), part in each(architecture) if _holds(part, asked))
    numbers = {"key_bits": asked.code, "order_bits": asked.order, "payload_bits": asked.answer}
    return next((Room(numbers | {"layer": index}) for index in held), None)


def _holds(part: Mechanism, asked: Asked) -> bool:
    joins = isinstance(part, Full) and part.altered == frozenset({"conv"}) and part.conv >= 2
    return joins and _compares(part, asked, asked.head_dim, wide=asked.order > 0)


def exact_scores(asked: Asked, form: str) -> bool:
    """Whether numbers of keys and partial sums of scores are held by a format, and by fp32."""
    # stored numbers up to code + 1 need eight digits
    most = MOST_ADDRESS_BITS if form in WIDE else 127
    return asked.code < most and (2 * asked.code + 2) << (asked.order + 1) <= 1 << 24


def last_layer(architecture: Architecture, task: CGram | Recall | MQAR) -> Room | None:
    grams = isinstance(task, CGram)
    known = ("embedded", "none") if grams else ("embedded",)
    first = isinstance(task, Recall) and task.question == "first"
    if first or architecture.positions not in known:
        return None
    c, asked = task.c if isinstance(task, CGram) else 1, asked_of(task)
    width = asked.code + asked.order + (not grams)

    def brings(part: Mechanism) -> bool:
        """Hands on so many numbers from so many tokens back, unrounded."""
        long = isinstance(part, ShortConvolution) and part.conv > c and part.width >= width
        return long and part.format in WIDE

    def compares(part: Mechanism) -> bool:
        return part.plain and _compares(part, asked, width)

    # the last ones: from behind, layers count down
    behind = (((-i, j), part) for (i, j), part in reversed([*each(architecture)]))
    found = in_turn(behind, compares, brings)
    if found is None:
        return None
    index, brought = (-layer for layer, _ in found)
    numbers = {"key_bits": asked.code, "payload_bits": asked.answer}
    numbers |= {"convolutions": brought, "layer": index}
    numbers |= {"order_bits": asked.order} if asked.order else {}
    return Room(numbers, (NEEDS_NONE if grams else EMBEDDED,))


def _compares(part: Mechanism, asked: Asked, width: int, *, wide: bool = True) -> bool:
    """Whether a head of full attention compares so many numbers of a key; `wide`: in fp32 or wider
    alone.
    """
    head = part.retrieval_head if isinstance(part, Full) and part.accumulator_bits >= 32 else None
    if head is None or (wide and head.format not in WIDE) or width > MOST_ADDRESS_BITS:
        return False
    return exact_scores(asked, head.format) and head.has_room(width, asked.answer)


MOST_AVERAGED = 1 << 22
"""Tokens of which an average is compared, times bits of each: sums of n numbers in float32, in any
order, are off by n 2^-24, numerators and denominators both, and all bits together by 1/2.
"""


FLAGGED = (
    "in the last layer a key dimension that no rotation turns, or a pair that turns by less than"
    " arccos(3/4) over the prompt"
)


class Wanted(NamedTuple):
    """What stands once behind so many tokens of a prompt, which are also its last ones."""

    before: int
    letter: int
    """Bits of a token."""
    averaged: bool = False
    """Whether what is read is compared, an average of tokens where none is found."""
    each: bool = False
    """Whether every token asks, and the last one whether any found it."""

    @property
    def key(self) -> int:
        """Key dimensions: the bits of these tokens, and tags."""
        return self.before * self.letter + TAGS


def lookup(architecture: Architecture, task: Task) -> Room | None:
    wanted = wanted_by(task)
    if wanted is None or (wanted.averaged and wanted.letter * task.length > MOST_AVERAGED):
        return None
    brings = bringing(architecture, wanted, task.length)
    for first, granted in sorted(brings, key=itemgetter(0)):
        for second, slow in comparing(architecture, wanted, task.length + 1):
            if second <= first:
                continue
            later = (one for one in full_heads(architecture, choosing=True) if one.layer > second)
            flags = (one.layer for one in later if one.flags_carry(task.length + 1))
            third = next(flags, None) if wanted.each else second
            if third is None:
                continue
            bits = wanted.before * wanted.letter
            numbers = {"key_bits": wanted.key if slow is None else bits}
            numbers |= {"payload_bits": wanted.letter, "first": first, "second": second}
            numbers |= {"third": third} if wanted.each else {}
            return Room(numbers, (*granted, *[FLAGGED] * wanted.each))
    return None


def wanted_by(task: Task) -> Wanted | None:
    """What a task asks to be looked up; None where it is something else, or may stand twice and
    differ."""
    match task:
        case CGram():
            before = task.c
        case Recall(question="last") if task.form in PROMISED:
            before = 1
        case MQAR() | NoisyRecall() | TwoSum():
            before = 1
        case _:
            return None
    sums = isinstance(task, TwoSum)
    every = sums and task.form == "decision"
    return Wanted(before, bits_of(task.vocabulary), averaged=sums, each=every)


def bringing(
    architecture: Architecture, wanted: Wanted, tokens: int
) -> Iterator[tuple[int, tuple[str, ...]]]:
    """The layers that bring every token those before it, and what that takes for granted."""
    for index, layer in enumerate(architecture):
        # one number more for each: whether there is such a token
        numbers = wanted.before * (wanted.letter + 1)
        if any(p.brought >= numbers and p.sizes()["conv"] > wanted.before for p in layer):
            yield index, (BROUGHT,)
    for one in seeing_heads(architecture):
        seen = min(tokens + 1, one.window or tokens + 1)
        if one.asks < wanted.before or seen <= wanted.before:
            continue
        address = bits_of(tokens) + TAGS
        found = one.places(address=address, payload=wanted.letter + 1, tokens=tokens + 1)
        if found is not None:
            yield one.layer, (found.rests_on, START)


def comparing(
    architecture: Architecture, wanted: Wanted, tokens: int
) -> Iterator[tuple[int, Slow | None]]:
    """The layers with a head that compares so many bits of contents and reads a token, and how
    slow pairs do; None where no rotation turns what is compared.
    """
    for one in full_heads(architecture, choosing=True):
        if wanted.averaged and not one.sums_wide:
            continue
        if one.still(wanted.key, wanted.letter):
            yield one.layer, None
        elif slow := one.slow(wanted.letter, wanted.before, tokens):
            yield one.layer, slow


def tells_before(part: Mechanism, numbers: int) -> bool:
    """Whether a token sees so many numbers of the one before it, behind a short convolution alone
    or in what it overwrites: what adds tokens up does not hand on what the last one was.
    """
    return part.sees_neighbour and max(part.latched, part.brought) >= numbers


def question_first(architecture: Architecture, task: Recall) -> Room | None:
    if task.question != "first":
        return None
    key, answer = bits_of(task.K), bits_of(task.answers)
    placed = architecture.positions == "embedded"

    def hands_on(part: Mechanism) -> bool:
        # or every key overwrites what the one before it left
        return tells_before(part, 1) or part.latched > 0

    first_told = () if placed else (partial(tells_before, numbers=1),)
    found = in_turn(
        each(architecture),
        *first_told,
        lambda part: part.latched >= key,
        hands_on,
        # one number more: whether anything was kept
        lambda part: part.latched > answer,
    )
    if found is None:
        return None
    layers = [layer for layer, _ in found]
    numbers = {"key_bits": key, "answer_bits": answer}
    numbers |= {f"layer_{i}": layer for i, layer in enumerate(layers, 1)}
    return Room(numbers, (SATURATED, *([EMBEDDED] if placed else [])))


def queue(architecture: Architecture, task: Recall | NoisyRecall) -> Room | None:
    """Recall of few facts that states keep one behind the other, amid whatever filler."""
    layers = 2 * task.n
    if (isinstance(task, Recall) and task.question == "first") or layers > len(architecture):
        return None
    bits = bits_of(task.K) + bits_of(task.V)

    def keeps(part: Mechanism) -> bool:
        # one number more: whether anything was kept
        return part.latched > bits

    found = in_turn(each(architecture), *[keeps] * layers)
    if found is None:
        return None
    numbers = {"key_bits": bits_of(task.K), "payload_bits": bits_of(task.V), "layers": layers}
    return Room(numbers, (SATURATED,))


def known_before(values: int) -> Recall:
    """Recall of one of two facts, question first: what it takes is the same for any number."""
    return Recall(n=2, K=max(2, values), V=max(2, values), question="first")
