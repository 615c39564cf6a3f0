"""Which layers of a stack each recipe of `separatrix construct` writes weights into: asked by cards
for what they promise, and by the recipes for where to write.

Recipes write float32. A stack that declares one narrower format is first read as if it declared
float32 wherever that leaves it room for its own (`in_numbers`); what its numbers leave of a lead is
told by the format beside it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from itertools import groupby
from math import inf, log, prod
from typing import Any, NamedTuple

from separatrix.core.errors import SizeError
from separatrix.core.evidence.records import Verdict
from separatrix.core.numbers.formats import NumberFormat
from separatrix.core.numbers.selection import Lead, Slow
from separatrix.stacks.architecture import Architecture, Place
from separatrix.stacks.mechanisms import (
    Fox,
    Full,
    Indexed,
    Latent,
    Mechanism,
    ShortConvolution,
    Sparse,
    Window,
)
from separatrix.tasks import (
    MQAR,
    CGram,
    Copying,
    Dyck,
    Eva,
    KHop,
    Modular,
    Parity,
    Recall,
    SeqComp,
    Task,
    Thought,
    TwoSum,
    parse_task,
)
from separatrix.tasks.lookups import Lookup
from separatrix.tasks.recall import PROMISED
from separatrix.tasks.tracking import Tracked, tracked
from separatrix.theory.solves.contents import MATCH_LIMIT
from separatrix.theory.solves.places import Attending
from separatrix.theory.solves.recall import asked_of
from separatrix.theory.solves.states import Needed, automaton_of, room_for, stacked
from separatrix.theory.solves.steps import chain_keys, encoder_dims
from separatrix.theory.words import counted_as

AROUND = frozenset({"conv", "qk_norm", "rope", "rope_dim", "rope_scaling", "sink", "gate"})
"""Options of a head that finds places which recipes write around."""
TURNED = frozenset({"rope", "rope_dim", "rope_scaling", "qk_norm", "gate"})
"""Those that are alike in all heads, where norms have one vector of weights."""
_COMPARED = AROUND - {"qk_norm"}
"""The same where numbers of unlike size are compared, which a norm would make equally long."""
MOST_EVEN = 1 << 11
"""Bits that an average tells the number of at most, where every weight may be rounded."""
MOST_CHOICES = 1 << 15
"""Choices of words that one layer multiplies, which its proof goes through, at most."""
MOST_UNITS = 1 << 12
"""Units of the MLP that multiplies them."""
MOST_TOLD = 1 << 16
"""Places that rotations alone tell apart for all of them, or token ids that are told apart: their
proofs compare each with each.
"""
MOST_COPIED = 1 << 10
"""Values that the recipe `copying` takes at most: beyond, rounding of squares eats the lead."""
MOST_DIFFERING = 1 << 22
"""Keys, times bits of each, that recall with the question first compares at most."""
PLACED = ("embedded", "none")
"""Positions of the models that weights are written into."""
CARRIERS = frozenset(
    (
        *("linear", "lightning", "retnet", "gla", "hgrn2", "deltanet", "gdn", "deltaproduct"),
        *("kda", "mlstm", "rwkv", "loglinear", "mamba", "mamba2", "rglru", "shortconv", "window"),
    )
)
"""Mechanisms that the recipe `carried` takes to hand a value on."""
_UNSTORED = ("mamba", "mlstm", "rglru", "shortconv")
"""Those of which nothing is proved where results are rounded again when they are stored."""


class Slot(NamedTuple):
    """A layer that weights are written into, and how its head finds what it reads."""

    place: Place = (0, 0)
    start: int = 0
    """The first key dimension that no rotation turns."""
    lead: Lead | None = None
    """By how much an offset leads, where it is offsets that are asked for."""
    latent: bool = False
    """Whether keys and values are maps of a latent."""
    score: float = 0.0
    """The largest score, where a start token leads if the offset asked for has no token."""
    slow: Slow | None = None
    """Where contents are compared in slow pairs, how."""


Holds = Callable[[Mechanism], Slot | None]


class Want(NamedTuple):
    """A layer that a recipe writes into."""

    holds: Holds
    """How a part of a layer serves; None where it does not."""
    said: str
    """What is needed, behind the number of layers: "full layer with head_dim >= 3"."""


def cannot_hold(task: Task, stack: Architecture, needs: str) -> SizeError:
    """The refusal of a stack."""
    return SizeError(
        f"'{stack.spec}' cannot hold the construction for {task.spec}: it needs {needs}"
    )


def such(stack: Architecture, want: Want) -> list[Slot]:
    """The first kind of heads in each layer that serves, first layer first."""
    found: list[Slot] = []
    for layer, parts in enumerate(stack):
        for number, part in enumerate(parts):
            slot = want.holds(part)
            if slot is not None:
                found.append(slot._replace(place=(layer, number)))
                break
    return found


def last_in_turn(task: Task, stack: Architecture, wants: Sequence[Want]) -> list[Slot]:
    """The last layers that serve, in turn. Raises SizeError that says what is needed."""
    chosen: list[Slot] = []
    for want in reversed(wants):
        before = chosen[0].place[0] if chosen else len(stack.layers)
        found = [slot for slot in such(stack, want) if slot.place[0] < before]
        if not found:
            raise cannot_hold(task, stack, _needs(stack, wants))
        chosen.insert(0, found[-1])
    return chosen


def first_of(task: Task, stack: Architecture, want: Want) -> list[Slot]:
    """The first layer that serves. Raises SizeError that says what is needed."""
    found = such(stack, want)[:1]
    if not found:
        raise cannot_hold(task, stack, _needs(stack, [want]))
    return found


def _needs(stack: Architecture, wants: Sequence[Want]) -> str:
    return " and behind it ".join(
        f"{counted_as(len(list(alike)), 'layer')} of this kind (it has {len(such(stack, want))}):"
        f" {want.said}"
        for want, alike in groupby(wants)
    )


def place_wanted(
    stack: Architecture,
    tokens: int,
    form: str,
    *,
    keys: int,
    values: int,
    norms: bool = True,
    rotations: bool = True,
) -> Want:
    """A full head that finds one of so many places, by addresses of `keys` bits and tags or, with
    `rotations`, by rotations alone, and reads `values` bits.
    """

    def holds(part: Mechanism) -> Slot | None:
        if not isinstance(part, Full | Fox | Latent) or part.altered - AROUND:
            return None
        head = _head(part)
        latent = isinstance(part, Latent)
        # a latent stands behind a norm
        if head is None or ((part.normed or latent) and not norms):
            return None
        # latent attention keeps its rotated numbers beside those of the head
        turned = 0 if part.rotation is None or latent else part.rotation.dims
        if stack.positions == "embedded" and head.has_room(keys + turned, values):
            return Slot(start=turned, latent=latent)
        lead = Attending(stack, 0, part, head).place_lead(tokens, form) if rotations else None
        offered = lead is not None and lead.holds and head.has_room(0, values)
        return Slot(lead=lead, latent=latent) if offered else None

    instead = f" or rope that tells {tokens:,} places apart" if rotations else ""
    return Want(
        holds,
        f"full layer with head_dim >= {keys}, value_dim >= {values} and numbers of at least 32"
        f" bits, positions=embedded{instead}, and no {'softcap' if norms else 'softcap or norm'}",
    )


def content_wanted(
    stack: Architecture,
    keys: int,
    values: int = 1,
    *,
    norms: bool = False,
    slow: Callable[[Attending], Slow | None] = lambda one: None,
    told: str = "",
) -> Want:
    """A full head that compares so many numbers and hands on so many values; `norms`: all keys are
    equally long; `slow`: how its slowest pairs compare them, where they serve, as `told`.
    """

    def holds(part: Mechanism) -> Slot | None:
        if not isinstance(part, Full | Fox) or part.altered - (AROUND if norms else _COMPARED):
            return None
        head = _head(part)
        turned = 0 if part.rotation is None else part.rotation.dims
        if head is None:
            return None
        if head.has_room(keys + turned, values):
            return Slot(start=turned)
        found = slow(Attending(stack, 0, part, head))
        return Slot(slow=found) if found else None

    return Want(
        holds,
        f"full layer with head_dim >= {keys} beside what rotations turn{told}, value_dim >="
        f" {values},"
        " numbers of at least 32 bits, positions embedded or none, and no"
        f" {'softcap' if norms else 'norm or cap'}",
    )


def flags_wanted(stack: Architecture, tokens: int) -> Want:
    """A full head that tells tokens by the sign of one number, of which no rotation changes it."""
    content = content_wanted(stack, 1, norms=True)

    def holds(part: Mechanism) -> Slot | None:
        slot = content.holds(part)
        if slot is not None or not isinstance(part, Full | Fox) or part.altered - AROUND:
            return slot
        head = _head(part)
        if head is None or part.rotation is None:
            return None
        # the first number of the slowest pair
        carries = Attending(stack, 0, part, head).flags_carry(tokens)
        return Slot(start=part.rotation.dims // 2 - 1) if carries else None

    return Want(holds, f"{content.said}, or a pair turned up to 41 degrees by {tokens:,} tokens")


def _head(part: Full | Fox | Latent) -> Any:
    wide = in_float32(part) and part.accumulator_bits >= 32 and part.free_scores
    return part.retrieval_head if wide else None


def plain_wanted(
    keys: int,
    values: int,
    other: Callable[[Any], bool] = lambda part: True,
    *,
    kind: type[Full | Sparse | Indexed | Window] = Full,
    without: frozenset[str] = frozenset(),
    more: str = "",
) -> Want:
    """A head with no option but those in `without`, so wide, of which `other` is true: `more`."""

    def holds(part: Mechanism) -> Slot | None:
        if not isinstance(part, kind) or part.altered - without or not other(part):
            return None
        wide = part.head_dim >= keys and part.dv >= values
        return Slot() if wide and in_float32(part) and part.accumulator_bits >= 32 else None

    return Want(
        holds,
        f"{kind.__name__.lower()} layer with {more}head_dim >= {keys}, value_dim >= {values},"
        f" numbers of at least 32 bits and no option{' but ' * bool(without)}"
        f"{', '.join(sorted(without))}",
    )


def in_float32(part: Mechanism) -> bool:
    """Whether the declared numbers are at least as wide as the float32 the proof is about."""
    return NumberFormat(part.format).bits >= 32


def hands_on(part: Mechanism, bits: int) -> bool:
    """Whether weights are known with which a mechanism hands that many bits, in float32, from the
    place of one token to the next token.
    """
    state = NumberFormat(part.sizes().get("state_format") or part.format)
    if not part.carries(bits) or part.name not in CARRIERS or min(part.p, state.bits) < 32:
        return False
    sizes = part.sizes()
    if part.name == "window":
        # all options but a cap of scores, and some dimension that is not turned
        turned = 0 if part.rotation is None else part.rotation.dims
        return part.altered <= AROUND and turned < sizes["head_dim"]
    if part.name == "mamba":
        # without a convolution over tokens it marks the place in one channel more
        return sizes["conv"] >= 2 or (sizes["width"] > bits and not sizes["norms"])
    return not (part.name == "lightning" and sizes["rotated"])


def bits_for(count: int) -> int:
    """ceil(log2 count): bits that number `count` things."""
    return (count - 1).bit_length()


def _sparse(task: Eva, stack: Architecture, form: str) -> list[Want]:
    want = plain_wanted(
        bits_for(task.n) + 1,
        bits_for(task.V),
        lambda part: part.block & (part.block - 1) == 0,
        kind=Sparse,
        more="a block of 2, 4, 8, ... tokens, ",
    )
    return [want]


def _indexed(task: Eva, stack: Architecture, form: str) -> list[Want]:
    keys = bits_for(task.n) + 1
    want = plain_wanted(
        keys,
        bits_for(task.V),
        lambda part: part.block == 1 and part.index_dim >= keys,
        kind=Indexed,
        more=f"index_dim >= {keys}, block=1, ",
    )
    return [want]


def address_bits(task: SeqComp, level: int) -> tuple[int, int]:
    """Bits of the row and of the column of an entry of z_l, l >= 1."""
    if level == 1:
        return 0, bits_for(task.m)
    return bits_for(task.branching[level - 2]), bits_for(task.N(level - 2))


def key_width(task: SeqComp) -> int:
    """Address bits and tag of the widest level."""
    return max(sum(address_bits(task, level)) for level in range(1, task.L + 1)) + 1


def _composed(task: SeqComp, stack: Architecture, form: str, *, layers: int) -> list[Slot]:
    values = bits_for(task.answers)
    want = place_wanted(stack, task.length, form, keys=key_width(task), values=values)
    return last_in_turn(task, stack, [want] * layers)


def _carried(task: SeqComp, stack: Architecture, form: str) -> list[Slot]:
    """The full layers, first the bounded one: the last one before them that hands on z_0, or else
    one between the first two that hands on i_1.
    """
    full = _composed(task, stack, form, layers=task.L)
    if stack.positions != "embedded":
        raise SizeError(
            f"'{stack.spec}': the bounded layer finds z_0 by an embedding of its place; use"
            " positions=embedded"
        )

    def carriers(bits: int) -> list[Slot]:
        def holds(part: Mechanism) -> Slot | None:
            # what halves round once more is proved of plain matrix states and of windows
            known = (part.plain and part.name not in _UNSTORED) or part.name == "window"
            return Slot() if hands_on(part, bits) and (known or form == "fp32") else None

        return such(stack, Want(holds, ""))

    code = bits_for(task.m)
    first = full[0].place[0]
    end = full[1].place[0] if len(full) > 1 else len(stack.layers)
    before = [slot for slot in carriers(code) if slot.place[0] < first]
    between = [slot for slot in carriers(bits_for(task.entries(1))) if first < slot.place[0] < end]
    if before:
        return [before[-1], *full]
    # by rotations alone it is the last token that asks, whose place is known
    if between and full[0].lead is None:
        return [between[0], *full]
    needs = (
        f"before the first or second of these full layers a bounded one that hands on {code} bits"
    )
    raise cannot_hold(task, stack, needs)


def paired(task: Thought) -> SeqComp:
    """The composition thought about. Raises SizeError for others, and for values without w."""
    if not isinstance(task.task, SeqComp):
        raise SizeError(f"{task.spec}: of chains of thought, those of seqcomp are constructed")
    if task.form != "pairs":
        raise SizeError(
            f"{task.spec}: one layer cannot know w from a value that was written alone; take"
            " thought=pairs"
        )
    return task.task


def _encoder(task: SeqComp, stack: Architecture, form: str) -> list[Want]:
    want = plain_wanted(
        *encoder_dims(task),
        lambda part: not part.causal,
        without=frozenset({"causal"}),
        more="causal=false, ",
    )
    return [want] * (1 + bits_for(task.L + 1))


def _khop(task: KHop, stack: Architecture, form: str) -> list[Slot]:
    bits, letters, depth = bits_for(task.n + 1), bits_for(task.V), task.k.bit_length() + 1
    searching = plain_wanted(
        letters + bits + 1,
        bits + 1,
        lambda part: part.heads >= bits and part.kv == part.heads,
        more=f"{bits} heads, each with keys of its own, ",
    )
    asking = plain_wanted(bits + 1, bits + letters)
    first, *_ = first_of(task, stack, searching)
    after = [slot for slot in such(stack, asking) if slot.place[0] > first.place[0]]
    if len(after) < depth - 1:
        raise cannot_hold(task, stack, _needs(stack, [searching, *[asking] * (depth - 1)]))
    return [first, *after[len(after) - depth + 1 :]]


def _recall(task: Recall | MQAR, stack: Architecture, form: str) -> list[Want]:
    asked = asked_of(task)
    want = plain_wanted(
        asked.head_dim,
        asked.answer,
        lambda part: part.conv >= 2,
        without=frozenset({"conv"}),
        more="a convolution to join a key and its value, two tokens: conv >= 2, ",
    )
    return [want]


def _question_first(task: Recall, stack: Architecture, form: str) -> list[Want]:
    if task.question != "first":
        raise SizeError(f"{task.spec}: the question stands behind the pairs; add question=first")
    key, answer = bits_for(task.K), bits_for(task.answers)
    # what keys leave behind one another, twice the bits in which each differs, adds up in float32
    if (task.n + 1) * key > MOST_DIFFERING:
        raise SizeError(f"{task.spec}: at most {MOST_DIFFERING // key - 1:,} keys are told apart")

    def keeps(numbers: int) -> Want:
        def holds(part: Mechanism) -> Slot | None:
            return Slot() if part.slots and part.slots.numbers >= numbers else None

        return Want(
            holds,
            f"deltanet or gdn layer with value_dim >= {numbers}, without negative, conv or gate, in"
            " fp32, bf16 or fp16",
        )

    return [keeps(key), keeps(1), keeps(answer)]


def _behind_taps(task: CGram | Recall | MQAR, stack: Architecture, form: str) -> list[Slot]:
    """The last short convolution that hands on so many numbers from so many tokens back and that
    stands before a full layer of such heads, and the last such layer.
    """
    asked, back = asked_of(task), before_of(task)
    width = asked.code if isinstance(task, CGram) else asked.head_dim

    def holds(part: Mechanism) -> Slot | None:
        wide = isinstance(part, ShortConvolution) and part.conv > back and part.width >= width
        return Slot() if wide and in_float32(part) else None

    taps = Want(holds, f"shortconv layer with conv={back + 1}, width={width}, or wider,")
    return last_in_turn(task, stack, [taps, plain_wanted(width, asked.answer)])


def _turning(task: Task, stack: Architecture, form: str, *, swaps: bool = False) -> list[Slot]:
    moved = tracked(task)
    assert moved is not None
    placed = stack.positions == "embedded"
    kind = "swaps" if swaps else "flip" if moved.order == 2 else "reflections"

    def holds(part: Mechanism) -> Slot | None:
        room = room_for(moved, task, part, placed=placed)
        bare = part.turning is not None and part.turning.bare
        return Slot() if room is not None and room.form == kind and bare else None

    keys, values, updates = 2 * moved.things, len(moved.followed), moved.swaps
    needs = f"head_dim >= {keys}, value_dim >= {values}, {updates} updates per token"
    if swaps:
        needs = f"2 heads of head_dim >= {keys} and value_dim >= {moved.things**2}, embedded places"
    want = Want(
        holds,
        "deltanet, gdn, kda or deltaproduct layer with negative=true"
        f"{f', {needs},' * (kind != 'flip')} and no conv or gate, in fp32, bf16 or fp16",
    )
    return first_of(task, stack, want)


def _even(task: Parity | Modular, stack: Architecture, form: str) -> list[Want]:
    """A head whose queries may be 0, so that it weighs all tokens alike."""
    if task.n > MOST_EVEN:
        raise SizeError(f"{task.spec}: at most {MOST_EVEN:,} bits are counted by equal weights")
    return [plain_wanted(1, 1, without=AROUND)]


def seen_by(part: Mechanism) -> float:
    """Tokens that a layer which reads sees at once, the token itself included."""
    return part.size if isinstance(part, Window) else inf


def word_numbers(moved: Tracked) -> int:
    """Numbers that tell of every thing in which place of its block it stands."""
    return sum(length**2 for length in moved.blocks)


def offset_wanted(
    stack: Architecture,
    tokens: int,
    values: int,
    heads: int = 1,
    *,
    blank: bool = True,
    start: bool = True,
) -> Want:
    """A layer of at least so many heads that read the token at an offset of their own, of so many
    with the start token, or the start token where there is none: by addresses, each head with keys
    of its own, in a window, too, that sees so far; or by rotations alone. `blank`: whether there
    may be none; without `start` there is no start token.
    """
    keys = bits_for(tokens)

    def apart(part: Full | Window) -> bool:
        one = isinstance(part, Window) and part.shared
        return part.kv == part.heads and not one and heads <= min(part.heads, seen_by(part) - 1)

    addressed = [plain_wanted(keys, values, apart, kind=kind) for kind in (Full, Window)]

    def holds(part: Mechanism) -> Slot | None:
        found = (want.holds(part) for want in addressed if stack.positions == "embedded")
        slot = next(filter(None, found), None)
        if slot is not None or not isinstance(part, Full) or part.altered - TURNED:
            return slot
        head = _head(part)
        alike = part.heads >= heads and (not part.normed or part.qk_norm == "head")
        if head is None or part.rotation is None or head.dv < values or not alike:
            return None
        if tokens > MOST_TOLD:
            return None
        lead = Attending(stack, 0, part, head).place_lead(tokens)
        margin = Attending(stack, 0, part, head).blank_margin(values, tokens)
        if lead is not None and (not start or (margin is None and not blank)):
            margin = lead.gap - lead.rounding
        if margin is None or margin <= 0:
            return None
        # all tokens that are not asked for weigh less than e^-17 together
        return Slot(start=part.rotation.dims, lead=lead, score=(log(tokens) + 17) / margin)

    return Want(
        holds,
        f"full layer with {heads} heads of head_dim >= {keys} and value_dim >= {values}, keys for"
        " each, numbers of at least 32 bits, positions=embedded and no option; or rope that tells"
        f" {tokens:,} places{' and a start token' * start} apart (at most {MOST_TOLD:,}), gate,"
        " qk_norm=head",
    )


def before_of(task: Task) -> int:
    """How many tokens before the one that is asked for tell that it is."""
    return task.c if isinstance(task, CGram) else 1


def _induction(task: Task, stack: Architecture, form: str) -> list[Want]:
    if isinstance(task, Recall) and (task.question != "last" or task.form not in PROMISED):
        raise SizeError(f"{task.spec}: a key that is promised, and asked for last, is found")
    if task.vocabulary > MOST_TOLD:
        raise SizeError(f"{task.spec}: at most {MOST_TOLD:,} token ids are told apart")
    before, bits = before_of(task), bits_for(task.vocabulary)
    # a number more says that there is none, so that a norm finds something in every key
    told = before * bits + (before == 1)
    # with a start token every token has one before it, so that none has to be blank
    alone = before == 1
    first = offset_wanted(stack, task.length + 1, bits + alone, before, blank=not alone)

    def slow(one: Attending) -> Slow | None:
        return one.slow(bits, before, task.length + 1, written=form)

    pairs = " (or pairs for them that turn slowly enough)"
    second = content_wanted(stack, told, bits, norms=before == 1, slow=slow, told=pairs)
    decides = isinstance(task, TwoSum) and task.form == "decision"
    return [first, second, *[flags_wanted(stack, task.length + 1)] * decides]


class FanIns(NamedTuple):
    """The layers that multiply, and how many words each."""

    layers: list[tuple[Slot, int]]
    asks: bool
    """Whether a token of its own asks behind the letters, and no start token stands before them."""


def fan_ins(task: Task, stack: Architecture) -> FanIns:
    """As evenly as heads allow, for every prefix or, where no start token serves, for this n.
    Raises SizeError where layers are too few, or there are too many choices of words to go through.
    """
    try:
        return FanIns(_fan_ins(task, stack), asks=False)
    except SizeError:
        try:
            return FanIns(_fan_ins(task, stack, start=False), asks=True)
        except SizeError:
            pass
        raise


def _fan_ins(task: Task, stack: Architecture, *, start: bool = True) -> list[tuple[Slot, int]]:
    moved = tracked(task)
    assert moved is not None
    asked = task.length + (not start)

    def few(words: int) -> bool:
        # without a start token the word so far is multiplied beside that of the last letters
        units = (2 if start else 4) * sum(length ** (words + 1) for length in moved.blocks)
        return moved.order**words <= MOST_CHOICES and units <= MOST_UNITS

    if not few(2):
        raise SizeError(
            f"{task.spec}: layers multiply words of at most {MOST_CHOICES:,} choices together, by"
            f" at most {MOST_UNITS:,} units of an MLP; two words of this task take more"
        )
    want = offset_wanted(stack, task.length + 1, word_numbers(moved), start=start)
    found = such(stack, want)
    parts = [stack.layers[layer][number] for layer, number in (slot.place for slot in found)]
    words = [1] * len(found)

    def further(i: int) -> bool:
        """Whether layer i may multiply one word more, and windows see as far as they are to."""
        more = [count + (i == other) for other, count in enumerate(words)]
        far = [(count - 1) * prod(more[:level]) for level, count in enumerate(more)]
        sees = all(back < seen_by(part) for back, part in zip(far, parts, strict=True))
        return sees and words[i] <= parts[i].sizes()["heads"] and few(more[i])

    while prod(words) < asked:
        able = [i for i in range(len(found)) if further(i)]
        if not able:
            multiplied = f"multiply {prod(words):,} of {asked:,} letters"
            needs = f"more layers that multiply: its {len(found)} {multiplied} ({want.said})"
            raise cannot_hold(task, stack, needs)
        words[min(able, key=lambda i: words[i])] += 1
    return [(slot, count) for slot, count in zip(found, words, strict=True) if count > 1]


def _brackets(task: Dyck, stack: Architecture, form: str) -> list[Slot]:
    needed = Needed.of(task)
    found = stacked(stack, needed)
    if found is None:
        raise cannot_hold(
            task,
            stack,
            "a linear layer (identity or relu, no normaliser) and two deltanet or gdn layers behind"
            f" it without conv or gate, the first with head_dim >= {needed.slots} and value_dim >="
            f" {needed.bits}, in formats that hold integers up to {4 * (task.n + 2):,}",
        )
    return [Slot(place) for place in found]


def _automaton(task: Task, stack: Architecture, form: str) -> list[Slot]:
    bits, rules = automaton_of(task)

    def holds(part: Mechanism) -> Slot | None:
        machine = part.machine
        room = machine is not None and machine.bits >= bits and machine.rules >= rules
        return Slot() if room and in_float32(part) else None

    want = Want(
        holds,
        f"automaton layer with bits >= {bits}, rules >= {rules} and numbers of at least 32 bits",
    )
    return first_of(task, stack, want)


def _bits(task: TwoSum, stack: Architecture, form: str) -> list[Want]:
    return [content_wanted(stack, bits_for(task.M) + 1), content_wanted(stack, 1)]


def _copying(task: Copying, stack: Architecture, form: str) -> list[Want]:
    if task.n > MOST_COPIED:
        raise SizeError(f"{task.spec}: at most n = {MOST_COPIED:,} values are copied")
    return [flags_wanted(stack, task.length), content_wanted(stack, 2, bits_for(task.V))]


def _found(task: Lookup, stack: Architecture, form: str) -> list[Want]:
    keys, values = bits_for(task.n) + 1, bits_for(task.V)
    return [place_wanted(stack, task.length, form, keys=keys, values=values)]


COUNTED = ("counted-parity", "counted-modular")
INDUCTION = {
    name: f"induction-{name}" for name in ("recall", "mqar", "noisy-recall", "cgram", "twosum")
}
MULTIPLIED = tuple(f"multiplied-{task}" for task in ("parity", "modular", "permutation", "group"))
WANTED: dict[str, Callable[[Any, Architecture, str], list[Want]]] = {
    "retrieval": _found,
    "index": _found,
    "sparse-retrieval": _sparse,
    "indexed-retrieval": _indexed,
    # a norm would scale cosines, and round them; an offset finds no match
    "match2": lambda task, stack, form: [
        place_wanted(stack, task.length, form, keys=3, values=1, norms=False, rotations=False)
    ],
    "match2-bits": lambda task, stack, form: _bits(task, stack, form)[:1],
    "pairs": _bits,
    "equality": lambda task, stack, form: [
        content_wanted(stack, bits_for(task.n) + 1),
        content_wanted(stack, 1),
    ],
    "neighbour": lambda task, stack, form: [
        plain_wanted(bits_for(task.n + 1) + 1, task.d),
        plain_wanted(task.d + 1, bits_for(task.V)),
    ],
    "qsa": lambda task, stack, form: [
        plain_wanted(bits_for(task.n) + 1, bits_for(task.V)),
        plain_wanted(bits_for(task.sets) + 1, 1),
    ],
    "counting": lambda task, stack, form: [plain_wanted(bits_for(task.V) + 1, 1)],
    **dict.fromkeys(COUNTED, _even),
    "copying": _copying,
    "thought": lambda task, stack, form: [
        plain_wanted(chain_keys(paired(task), paired(task).L + 1), bits_for(task.task.answers))
    ],
    "encoder": _encoder,
    "recall": _recall,
    "mqar": _recall,
    "question-first": _question_first,
    **dict.fromkeys(INDUCTION.values(), _induction),
}
"""Recipe -> what it writes into: the last layers that serve, one behind the other."""
SLOTS: dict[str, Callable[[Any, Architecture, str], list[Slot]]] = {
    "seqcomp": lambda task, stack, form: _composed(task, stack, form, layers=task.L + 1),
    "carried": _carried,
    "khop": _khop,
    **dict.fromkeys(("carried-recall", "carried-mqar", "cgram"), _behind_taps),
    "automaton": _automaton,
    "brackets": _brackets,
    **dict.fromkeys(
        MULTIPLIED, lambda task, stack, form: [s for s, _ in fan_ins(task, stack).layers]
    ),
    **dict.fromkeys(("parity", "modular", "group", "permutation"), _turning),
    "swaps": partial(_turning, swaps=True),
}
"""Recipe -> the layers that others write into, in the order of their use."""
UNPLACED = frozenset(
    (
        *("match2-bits", "pairs", "counting", "cgram", "brackets"),
        *("parity", "modular", "group", "permutation"),
        *COUNTED,
        *MULTIPLIED,
        *INDUCTION.values(),
    )
)
"""Recipes that write no embeddings of positions, or take layers that need none instead."""


def slots(recipe: str, task: Task, stack: Architecture, form: str = "fp32") -> list[Slot]:
    """The layers that a recipe writes into. Raises SizeError that says what is needed."""
    if stack.positions not in PLACED:
        raise SizeError(
            f"positions={stack.positions}: such a stack can be judged, but not built; take"
            " positions=embedded or positions=none"
        )
    for part in (part for layer in stack for part in layer if part.mixes_tokens):
        if part.declared_only:
            raise SizeError(f"'{stack.spec}': {part.title} is declared, and has no mixer")
        if not getattr(part, "running_max", True):
            raise SizeError(
                f"'{stack.spec}': weights are for accumulators with a running maximum; leave out"
                " running_max=false"
            )
    wanted = WANTED.get(recipe)
    found = (
        SLOTS[recipe](task, stack, form)
        if wanted is None
        else last_in_turn(task, stack, wanted(task, stack, form))
    )
    asked = recipe not in UNPLACED and not all(slot.lead for slot in found)
    if asked and stack.positions != "embedded":
        raise SizeError(
            f"'{stack.spec}': constructions write embeddings of positions; use positions=embedded"
        )
    return found


def in_numbers(stack: Architecture, name: str = "fp32", kept: str | None = None) -> Architecture:
    """The same stack in one format, with states in another where one is given, but for layers that
    keep sums, gates or states in fewer than 32 bits.
    """

    def moved(part: Mechanism) -> Mechanism:
        sizes = part.sizes()
        summed = [getattr(part, "accumulator_format", None), sizes.get("gate_format")]
        if "state_format" in sizes:
            summed.append(sizes["state_format"] or part.format)
        if not part.mixes_tokens or any(n and NumberFormat(n).bits < 32 for n in summed):
            return part
        formats = {"format": name, "state_format": kept, "accumulator": None}
        return replace(part, **{key: other for key, other in formats.items() if key in sizes})

    return replace(stack, layers=tuple(tuple(map(moved, layer)) for layer in stack), name="")


def ways(stack: Architecture) -> list[tuple[Architecture, str]]:
    """The stack as recipes read it, and the format that their numbers are put into, in order: as it
    is, and, where its layers declare one narrower format, as if they declared float32.
    """
    parts = [part for layer in stack for part in layer if part.mixes_tokens]
    names = {part.format for part in parts}
    names |= {part.sizes().get("state_format") or part.format for part in parts}
    narrow = names - {"fp32", "fp64"}
    if len(narrow) != 1 or not narrow & {"bf16", "fp16"}:
        return [(stack, "fp32")]
    return [(stack, "fp32"), (in_numbers(stack), min(narrow))]


FITS: dict[str, dict[str, tuple[str, ...]]] = {
    "retrieval": {"eva": ("retrieval",), "index": ("index",)},
    "block-retrieval": {"eva": ("sparse-retrieval",), "index": ()},
    "indexed-retrieval": {"eva": ("indexed-retrieval",), "index": ()},
    "pairs": {"twosum:decision": ("pairs",)},
    "lookup": {
        **{f"recall:{form}": (INDUCTION["recall"],) for form in PROMISED},
        **{name: (INDUCTION[name],) for name in ("mqar", "noisy-recall", "cgram")},
        "twosum": (INDUCTION["twosum"],),
    },
    "recall": {"recall": ("recall",), "mqar": ("mqar",)},
    "last-layer": {"recall": ("carried-recall",), "mqar": ("carried-mqar",), "cgram": ("cgram",)},
    "question-first": {"recall": ("question-first",)},
    "copying": {"copying": ("copying",)},
    "counting": {"counting": ("counting",)},
    "qsa": {"qsa": ("qsa",)},
    "composition": {"seqcomp": ("seqcomp", "carried")},
    "thought": {"thought:pairs": ("thought",)},
    "match2": {"twosum:query": ("match2", "match2-bits")},
    "equality": {"equality": ("equality",)},
    "neighbour": {"neighbour": ("neighbour",)},
    "k-hop": {"khop": ("khop",)},
    "encoder": {"seqcomp": ("encoder",)},
    "tightness": {"eva": ("automaton",)},
    "brackets": {"dyck": ("brackets",)},
    "S": {
        "parity": (COUNTED[0], MULTIPLIED[0]),
        "modular": (COUNTED[1], MULTIPLIED[1]),
        "permutation": MULTIPLIED[2:3],
        "group": MULTIPLIED[3:],
    },
    "state-tracking": {name: (name,) for name in ("parity", "modular", "group")}
    | {"permutation": ("permutation", "swaps")},
}
"""Key of a theorem -> task, with its form where the construction is for one -> recipes that
`construct` has; in the order in which the nearest construction for a task is named.
"""
BUILT = {
    key: tuple(dict.fromkeys(sum(recipes.values(), ())))
    for key, recipes in FITS.items()
    if any(recipes.values())
}
"""Key of a theorem -> recipes that it stands behind. What is missing here is not built yet."""
EXACT = ("brackets", "question-first", "state-tracking")
"""Those of which nothing is rounded, in whatever formats hold the answers."""
MOST_FOLLOWED = 43
"""Things that the recipes for state tracking follow at most: of more, the sums of a chunk are not
shown to fit in float32.
"""
NOT_BUILT = "not built yet"
TOKEN_SHIFT = "a token shift fixes the model's width, which may be too narrow"
ROUNDED = "rounding to 16 bits may eat a lead: only a proof of the weights tells"
"""Where a card promises nothing, and `construct` may build."""
MOST_LISTED = 1 << 20
"""Inputs that the recipe `automaton` lists at most."""
MOST_AVERAGED = 5 << 17
"""Tokens, times bits of each, of which a proof in float32 compares an average."""
LARGEST_MODULUS = MATCH_LIMIT["fp32"]
"""The largest M that the recipe `match2` takes, written for float32; beyond, `match2-bits`."""


def recipes_of(key: str, task: Task) -> tuple[str, ...] | None:
    """The recipes of a theorem for a task; None where its construction is for others."""
    named, of = (task.name, f"{task.name}:{getattr(task, 'form', '')}"), FITS.get(key, {})
    return next((of[name] for name in named if name in of), None)


def fitting(task: Task) -> str | None:
    """The theorem of the nearest construction for a task; None where none is known."""
    return next((key for key in FITS if recipes_of(key, task) is not None), None)


def built_by(verdict: Verdict) -> tuple[str, ...]:
    """The recipe that writes down what a verdict says exists; empty where none does."""
    return written(verdict)[0]


def written(verdict: Verdict) -> tuple[tuple[str, ...], str]:
    """The same, and why no recipe writes down what a verdict says exists: what `construct` says."""
    if verdict.status != "SOLVABLE" or verdict.theorem not in FITS:
        return (), ""
    stack, task = Architecture.parse(verdict.architecture), parse_task(verdict.task)
    if any(part.model_width is not None for layer in stack for part in layer):
        return (), TOKEN_SHIFT
    reason = NOT_BUILT
    for seen, form in ways(stack):
        for recipe in recipes_of(verdict.theorem, task) or ():
            try:
                _check_sizes(recipe, task, form)
                _check_leads(slots(recipe, task, seen, form), task, form)
            except SizeError as error:
                reason = reason if reason == ROUNDED else str(error)
            else:
                return (recipe,), ""
    return (), reason


def _check_leads(found: Sequence[Slot], task: Task, form: str) -> None:
    """Raises SizeError for what only a proof of the weights can tell: `construct` tries it, a card
    promises nothing.
    """
    turned = any(slot.lead for slot in found) and isinstance(task, SeqComp)
    if form != "fp32" and (turned or any(slot.score or slot.slow for slot in found)):
        raise SizeError(ROUNDED)


def _check_sizes(recipe: str, task: Task, form: str) -> None:
    if recipe in (*COUNTED, "copying", INDUCTION["twosum"]) and form != "fp32":
        raise SizeError(ROUNDED)
    bits = task.length * bits_for(task.vocabulary)
    if recipe == INDUCTION["twosum"] and bits > MOST_AVERAGED:
        raise SizeError(f"{task.spec}: too many tokens are averaged for their bits to be told")
    most = min(MATCH_LIMIT.get(form, 0), LARGEST_MODULUS)
    if recipe == "match2" and isinstance(task, TwoSum) and most < task.M:
        raise SizeError(f"{task.spec}: at most M = {most:,} values are told apart")
    if recipe == "automaton" and isinstance(task, Eva) and task.n * task.V**task.n > MOST_LISTED:
        raise SizeError(f"{task.spec}: more inputs than can be listed, {MOST_LISTED:,}")
    moved = tracked(task)
    if moved is not None and recipe == task.name and moved.things > MOST_FOLLOWED:
        raise SizeError(f"{task.spec}: at most {MOST_FOLLOWED} things are shown to be followed")


def in_construct(verdict: Verdict) -> str:
    """The same for a card: that `construct` makes a construction; "" where it is not known to."""
    return "`construct` builds it" if built_by(verdict) else ""
