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
from separatrix.theory.base import SOLVABLE, Theorem
from separatrix.theory.solves.places import (
    MOST_ADDRESS_BITS,
    Attending,
    Places,
    finders,
    full_heads,
    heads_in_turn,
)
from separatrix.theory.solves.recall import (
    Wanted,
    bringing,
    digit_layers,
    tells_before,
    told_places,
)
from separatrix.theory.solves.room import (
    EMBEDDED,
    START,
    WIDE,
    Room,
    bits_of,
    brief,
    each,
)
from separatrix.theory.solves.states import SATURATED

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
    steps = composable(architecture, layers, bits_of(task.m))
    if steps < task.L:
        return None
    numbers = {"payload_bits": payload, "full_layers": len(layers), "steps": steps}
    if all(one.address > 0 for one in found.values()):
        numbers["address_bits"] = address
    return Room(numbers, _sources([found[i] for i in layers]))


def composable(architecture: Architecture, full_layers: list[int], carried_bits: int) -> int:
    """The largest L that the constructions cover with these full layers, a bounded layer carrying
    z_0 or i_1, of that many bits, where one does.

    The carrier stands before the first full layer or between the first and the second; heads beside
    the first would come too late (Theorem IV). It hands the bits on from z_0 to w, which is the
    next token.
    """
    if not full_layers:
        return 0
    # what counts places takes room of a carrier
    placeless = architecture.positions == "none"
    first = full_layers[0]
    second = full_layers[1] if len(full_layers) > 1 else full_layers[0]
    return (
        len(full_layers)
        - 1
        + any(
            part.carries(carried_bits + 3 * (placeless and part.counted_bits > 0))
            and _finds_neighbour(architecture, part)
            for i in range(second)
            if i != first
            for part in architecture.layers[i]
        )
    )


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
            numbers = found.numbers(address, payload_bits=payload, layer=index, written=task.L)
            said = f"weights exist: {brief(self.says, architecture, numbers)}, which writes first"
            return self.verdict(
                architecture,
                Written(task=task, form="pairs"),
                "SOLVABLE",
                said,
                numbers=numbers,
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
    # a head for the entry of each step, and one for each of steps - 1 places back
    heads = 2 * steps - 1
    return steps == 1 or (heads <= part.head_shape.heads and head.has_room(0, payload + 1))


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
    numbers = {"address_bits": address, "payload_bits": payload, "full_layers": depth}
    return Room(numbers)


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
    numbers = {"address_bits": place, "letter_bits": letter}
    return Room(numbers | {"layers": depth, "first": first}, (EMBEDDED, START))


def _hops_behind(architecture: Architecture, task: KHop) -> Room | None:
    """The same where layers tell tokens their places, or heads are few or narrow: the latest token
    with the same letter before it is looked up digit by digit, a head for each value of a digit.
    """
    tokens = task.n + 1
    # a start token has a letter of its own
    place, letter = bits_of(tokens), bits_of(task.V + 1)
    held = place + letter
    brings = sorted(bringing(architecture, Wanted(1, letter), task.n), key=itemgetter(0))
    jumps = task.k.bit_length()
    for known in told_places(architecture, tokens):
        # recurrences that count leave nothing known to be left for a letter
        free = [one for one in brings if one[0] > known.behind or known.layers]
        first, sources = next((one for one in free if one[0] not in known.layers), (-1, ()))
        if known.many < tokens or first < 0:
            continue
        behind = max(first, known.behind)
        searching = digit_layers(architecture, behind, place, held, held, tokens)
        last = searching[-1] if searching else len(architecture)
        after = (one for one in full_heads(architecture) if one.layer > last)
        if len({one.layer for one in after if one.finds(place, held, tokens)}) >= jumps:
            layers = known.taken + 1 + len(searching) + jumps
            numbers = {"address_bits": place, "letter_bits": letter, "layers": layers}
            sources = (*known.rests_on, *sources, START)
            return Room(numbers | {"first": first}, tuple(dict.fromkeys(sources)))
    return None


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
    numbers = {"letter_bits": letter, "layers": used + 1, "first": first, "recurrences": used}
    return Room(numbers, (*granted, SATURATED))


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
