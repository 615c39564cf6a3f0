"""Steps in turn: composition at once, in writing, or where tokens see later ones; and hops."""

from __future__ import annotations

from functools import partial
from operator import itemgetter

from separatrix.core.evidence.records import Verdict
from separatrix.core.numbers.selection import selection_lead
from separatrix.stacks.architecture import Architecture
from separatrix.stacks.mechanisms import Full, Mechanism
from separatrix.stacks.mechanisms.base import Head
from separatrix.tasks import KHop, SeqComp, Task
from separatrix.tasks import Thought as Written
from separatrix.theory.base import SOLVABLE, Theorem, number
from separatrix.theory.solves.places import (
    BY_ROTATIONS,
    MOST_ADDRESS_BITS,
    Attending,
    Places,
    finders,
    full_heads,
    heads_in_turn,
    kind_of_readers,
)
from separatrix.theory.solves.recall import (
    Wanted,
    bringing,
    digit_layers,
    telling,
    tells_before,
    told_places,
)
from separatrix.theory.solves.room import EMBEDDED, START, WIDE, Construction, Room, bits_of, each
from separatrix.theory.solves.states import SATURATED
from separatrix.theory.words import Words, counted_as

_EXACT = 24
"""Binary digits of scores in steps of 16."""


def composition(architecture: Architecture, task: SeqComp) -> Room | None:
    payload = bits_of(task.N(task.L - 1))
    # the address, and a tag for each of the levels 0 to L
    address = payload + task.L + 1
    heads = finders(
        architecture, address=address, payload=payload, tokens=task.length, choosing=True
    )
    found = {one.layer: how for one, how in heads}
    layers = sorted(found)
    steps, carried = composable(architecture, layers, bits_of(task.m))
    if steps < task.L:
        return None
    how = (
        "the first fetches z_0"
        if not carried or len(layers) > task.L
        else "a bounded layer carries z_0 or i_1 to w"
    )
    asked = f"{address} address and tag bits in the keys"
    addressed = [one.address > 0 for one in found.values()]
    if not any(addressed):
        asked = "its last token asks for offsets"
    elif not all(addressed):
        asked = f"{asked} of some, the last token asks for offsets in the others"
    who = counted_as(len(layers), f"{kind_of_readers(architecture)} layer")
    solve = "solve" if layers[1:] else "solves"
    said = f"{who} {solve} it ({how}, each further one follows a step): {asked}"
    numbers = {"payload_bits": payload, "full_layers": len(layers), "steps": steps}
    if all(addressed):
        numbers["address_bits"] = address
    return Room(said, numbers, _sources([found[i] for i in layers]))


class Composition(Construction):
    def least_full(self, task: SeqComp) -> int:
        return task.L

    def told(
        self, verdict: Verdict, task: Task, architecture: Architecture, *, thought: bool = False
    ) -> Words:
        layers = verdict.numbers["full_layers"]
        address = verdict.numbers.get("address_bits")
        kind = kind_of_readers(architecture)
        whose = f"{counted_as(layers, f'{kind} layer')} {'suffices' if layers == 1 else 'suffice'}"
        its = "its" if layers == 1 else "their"
        used = "some by addresses, some by rotations alone"
        if address is not None:
            used = f"{number(address)} of {its} key dimensions used"
        elif all(said.startswith(BY_ROTATIONS) for said in verdict.assumptions if _placed(said)):
            used = "by rotations alone"
        return Words(
            f"{whose}, {used}",
            f"Each {kind} layer takes one step, and one more layer, {kind} or bounded, brings the"
            " starting point along.",
        )


def composable(
    architecture: Architecture, full_layers: list[int], carried_bits: int
) -> tuple[int, bool]:
    """(largest L that the constructions cover with these full layers, whether a bounded layer
    carries z_0 or i_1, of that many bits).

    The carrier stands before the first full layer or between the first and the second; heads beside
    the first would come too late (Theorem IV). It hands the bits on from z_0 to w, which is the
    next token.
    """
    if not full_layers:
        return 0, False
    first = full_layers[0]
    second = full_layers[1] if len(full_layers) > 1 else full_layers[0]
    carried = any(
        part.carries(carried_bits + _taken(architecture, part))
        and _finds_neighbour(architecture, part)
        for i in range(second)
        if i != first
        for part in architecture.layers[i]
    )
    return len(full_layers) - 1 + carried, carried


def _placed(said: str) -> bool:
    return said.startswith("positions:")


def _sources(found: list[Places]) -> tuple[str, ...]:
    """What the layers rest on, first layer first, each thing once: later layers may use the places
    that were counted for the first one.
    """
    counted = [one.rests_on for one in found if one.counted]
    later = set(counted) - set(counted[:1])
    said = (one.rests_on for one in found if one.rests_on not in later)
    return tuple(dict.fromkeys(said))


def _finds_neighbour(architecture: Architecture, part: Mechanism) -> bool:
    """Whether a carrier can tell the token before the last from all others."""
    if architecture.positions == "embedded" or part.sees_neighbour:
        return True
    if architecture.positions != "none" or part.rotation is None or part.group != "windowed":
        return False
    seen = part.sizes()["size"]
    lead = selection_lead(part.rotation, seen, part.format, normed=part.rounded_again)
    return lead is not None and lead.holds


def _taken(architecture: Architecture, part: Mechanism) -> int:
    return 3 if architecture.positions == "none" and part.counted_bits else 0


class Thought(Theorem):
    key = "thought"
    shows = SOLVABLE
    at_once = False
    after_thought = True

    def judge(self, architecture: Architecture, task: Task) -> Verdict | None:
        """SOLVABLE with a chain of thought, or None where no full head has the room.

        The task may be the composition or that with its chain of pairs written out; the record
        names the latter, since the composition at once may well fail.
        """
        if isinstance(task, Written):
            # from a value alone the next query would not know its w
            return self.judge(architecture, task.task) if task.form == "pairs" else None
        if not isinstance(task, SeqComp):
            return None
        # a token does not know which part of w its step asks for: the keys of each level hold
        # theirs, and 0 for the others
        address = chain_keys(task, task.L + 1)
        payload = bits_of(task.N(task.L - 1))
        # the tokens written stand behind the prompt
        heads = finders(architecture, address=address, payload=payload, tokens=task.length + task.L)
        for one, found in heads:
            index, part, head = one.layer, one.part, one.head
            if not (found.address or _knows_its_step(part, head, task.L, payload)):
                continue
            asked = f"{address} address and tag bits of {head.head_dim} key dimensions"
            if not found.address:
                asked = (
                    f"{_heads_for(task.L):,} of its {part.head_shape.heads:,} heads ask for offsets"
                )
            sentence = (
                f"with a chain of thought of {task.L:,} tokens one full layer (layer"
                f" {index + 1}) solves it: {asked}, {payload} answer bits of {head.dv} value"
                " dimensions"
            )
            return self.verdict(
                architecture,
                Written(task=task, form="pairs"),
                "SOLVABLE",
                sentence,
                numbers=found.numbers(address, payload_bits=payload, layer=index, written=task.L),
                assumptions=(found.rests_on,),
            )
        return None


def chain_keys(task: SeqComp, levels: int) -> int:
    """Bits of every part of w, of a value that is written with it, and of so many levels."""
    return _parts(task) + bits_of(task.N(max(task.L - 2, 0))) + bits_of(levels)


def _parts(task: SeqComp) -> int:
    return sum((number - 1).bit_length() for number in task.branching)


def encoder_dims(task: SeqComp) -> tuple[int, int]:
    """Key and value dimensions of the encoder's layers."""
    values = bits_of(task.answers) + max(_parts(task), bits_of(task.L + 2) + 1)
    return chain_keys(task, task.L + 2), values


def _knows_its_step(part: Mechanism, head: Head, steps: int, payload: int) -> bool:
    """Whether heads that ask for offsets can answer whatever step a written token stands for.

    The offset of an entry depends on the step, and the same token may be written in any of them:
    a token fetches the entry of every step, and counts the written tokens before it, which are no
    tokens of the prompt. Values hold the bits of an entry, and whether the token was written.
    """
    if steps == 1:
        return True
    return _heads_for(steps) <= part.head_shape.heads and head.has_room(0, payload + 1)


def _heads_for(steps: int) -> int:
    """Heads that fetch the entry of each step, and ask whether a token 1, ..., steps - 1 places
    back was written.
    """
    return 2 * steps - 1


def encoder(architecture: Architecture, task: SeqComp) -> Room | None:
    address, payload = encoder_dims(task)

    def holds(part: Mechanism) -> bool:
        """Sees every token, with the room, in a format that keeps scores exact."""
        if not isinstance(part, Full) or part.altered != frozenset({"causal"}):
            return False
        return part.formats <= WIDE and part.head.has_room(address, payload)

    wide = sum(times * any(map(holds, layer)) for layer, times in architecture.counted())
    depth = 1 + task.L.bit_length()
    if wide < depth or address > MOST_ADDRESS_BITS:
        return None
    said = (
        f"{depth} full layers that see every token solve it: the first fetches w and z_0, each"
        f" of {depth - 1} further ones doubles the jump ({address} address and tag bits in the"
        f" keys, {payload} value dimensions)"
    )
    numbers = {"address_bits": address, "payload_bits": payload, "full_layers": depth}
    return Room(said, numbers)


def k_hop(architecture: Architecture, task: KHop) -> Room | None:
    place, letter = bits_of(task.n + 1), bits_of(task.V)
    depth = task.k.bit_length() + 1

    def asks(one: Attending) -> bool:
        return one.compares(place + 1) and one.head.has_room(place + 1, place + letter)

    searches = partial(_searches, place=place, letter=letter)
    layers = None
    # the sizes of what is added up to a score, in the head for the highest digit
    if architecture.positions == "embedded" and (2 * letter + 6) << place <= 1 << _EXACT:
        layers = heads_in_turn(architecture, searches, *[asks] * (depth - 1))
    if layers is None:
        return _hops_behind(architecture, task)
    first = layers[0][0].layer
    said = (
        f"{depth} full layers solve it: layer {first + 1} finds the latest earlier token of the"
        f" same letter ({place} of its heads, {place + letter + 1} key dimensions), each of"
        f" {depth - 1} further ones doubles the hops ({place + letter} value dimensions)"
    )
    numbers = {"address_bits": place, "letter_bits": letter}
    return Room(said, numbers | {"layers": depth, "first": first}, (EMBEDDED, START))


def _hops_behind(architecture: Architecture, task: KHop) -> Room | None:
    """The same where layers tell tokens their places, or heads are few or narrow: the latest token
    with the same letter before it is looked up digit by digit, a head for each value of a digit.
    """
    tokens = task.n + 1
    # a start token has a letter of its own
    place, letter = bits_of(tokens), bits_of(task.V + 1)
    held = place + letter
    used, told, rests_on = told_places(architecture, tokens)
    brings = sorted(bringing(architecture, Wanted(1, letter), task.n), key=itemgetter(0))
    first, sources = next((one for one in brings if one[0] not in used), (-1, ()))
    if told < tokens or first < 0:
        return None
    searching = digit_layers(architecture, max([first, *used]), place, held, held, tokens)
    last = searching[-1] if searching else len(architecture)
    after = (one for one in full_heads(architecture) if one.layer > last)
    found = dict.fromkeys(one.layer for one in after if one.finds(place, held, tokens))
    jumps = list(found)[: task.k.bit_length()]
    if len(jumps) < task.k.bit_length():
        return None
    layers = len(used) + 1 + len(searching) + len(jumps)
    knows = f"{telling(used)}, " if used else ""
    said = (
        f"{layers} layers solve it: {knows}layer {first + 1} brings every token the one before it,"
        f" {len(searching)} look digit by digit for the latest one of the same letter ({held} bits"
        f" compared), and {len(jumps)} double the hops"
    )
    numbers = {"address_bits": place, "letter_bits": letter, "layers": layers, "first": first}
    return Room(said, numbers, tuple(dict.fromkeys((*rests_on, *sources, START))))


def hops_kept(architecture: Architecture, task: KHop) -> Room | None:
    """A hop in each of k recurrences, or in several in turn, which keep for every letter what was
    known where it stood last, one place on.
    """
    letter = bits_of(task.V)

    # one number more: whether there is such a token
    convolved = [i for (i, _), part in each(architecture) if tells_before(part, letter + 1)]
    # a start token has a letter of its own
    attended = bringing(architecture, Wanted(1, bits_of(task.V + 1)), task.n)
    brought = [*((index, ()) for index in convolved), *attended]
    first, granted = min(brought, key=itemgetter(0), default=(len(architecture), ()))
    hops = kept = used = 0
    for layer in architecture.layers[first + 1 :]:
        # two numbers more: whether the letter is known, and whether not
        places = sum(part.registers(letter + 2) for part in layer)
        if hops < task.k and places:
            kept, used = kept + places, used + 1
            if kept >= task.V:
                hops, kept = hops + 1, 0
    if hops < task.k:
        return None
    said = (
        f"{used + 1} layers solve it: layer {first + 1} brings every token the letter before it,"
        f" {counted_as(used, 'recurrence')} behind it keep what stood behind the latest of each of"
        f" {task.V:,} letters, in {letter + 2} numbers: {counted_as(hops, 'hop')}"
    )
    numbers = {"letter_bits": letter, "layers": used + 1, "first": first, "recurrences": used}
    return Room(said, numbers, (*granted, SATURATED))


def _searches(one: Attending, place: int, letter: int) -> bool:
    """Whether a layer has a head for each digit of a place, with keys of its own in fp32."""
    head, shape = one.head, one.part.head_shape
    return (
        one.part.plain
        and shape.heads >= place
        and shape.kv in (None, shape.heads)
        and head.format in ("fp32", "fp64")
        and one.compares(place + letter + 1)
        and head.has_room(place + letter + 1, place + 1)
    )
