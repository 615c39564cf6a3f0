"""Composition of L functions in L+1 full layers, or in L behind a recurrent layer."""

from __future__ import annotations

from separatrix.core.evidence.records import Verdict
from separatrix.core.numbers.selection import selection_lead
from separatrix.stacks.architecture import Architecture
from separatrix.stacks.mechanisms import Mechanism
from separatrix.tasks import SeqComp, Task
from separatrix.theory.base import SOLVABLE, Sees, Theorem, number
from separatrix.theory.solves.places import BY_ROTATIONS, Places, finders
from separatrix.theory.solves.room import CHOSEN_WEIGHTS, PLACES, bits_of
from separatrix.theory.words import Words


class Composition(Theorem):
    key = "composition"
    title = "L+1 full layers, or L and a bounded one, compose L steps"
    statement = (
        "L+1 full layers solve L-SeqComp: the first fetches z_0, each further one follows one step."
        " L full layers and one recurrent layer, window or short convolution before the first full"
        " layer (it carries z_0 to w, the next token) or between the first and the second (it"
        " carries i_1) do too."
    )
    premises = (
        (
            "full heads with room for the values' bits in their values and, for addresses, for"
            " their bits and a tag for each level in their keys"
        ),
        PLACES,
        (
            "a carrier, where one is used, with room for the bits of z_0 in one head; without"
            " embedded positions it has a short convolution, or is a rotated window that tells its"
            " offsets apart"
        ),
        "scores of addresses exact in the format: s a power of two, at most 256 address bits",
        CHOSEN_WEIGHTS,
    )
    source = "[CPW]; theory.md, sections 5 (tightness) and 6"
    proof_sketch = (
        "Every layer is a retrieval head for the address (level, w_{l-1}, i_{l-1}); z_0 comes by"
        " one more of them, or by the recurrence."
    )
    shows = SOLVABLE
    start_token = False
    sees = Sees.CARRIERS

    def judge(self, architecture: Architecture, task: Task) -> Verdict | None:
        if not isinstance(task, SeqComp):
            return None
        # the address, and a tag for each of the levels 0 to L
        address = bits_of(task.N(task.L - 1)) + task.L + 1
        payload = bits_of(task.N(task.L - 1))
        found = {
            i: how
            for i, _, _, how in finders(
                architecture, address=address, payload=payload, tokens=task.length
            )
        }
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
        if not any(one.address for one in found.values()):
            asked = "its last token asks for offsets"
        elif not all(one.address for one in found.values()):
            asked = f"{asked} of some, the last token asks for offsets in the others"
        sentence = (
            f"{len(layers)} full layers solve it ({how}, each further one follows a step): {asked}"
        )
        numbers = {"payload_bits": payload, "full_layers": len(layers), "steps": steps}
        if all(one.address for one in found.values()):
            numbers["address_bits"] = address
        return self.solved(
            architecture, task, sentence, numbers, *_sources([found[i] for i in layers])
        )

    def told(
        self, verdict: Verdict, task: Task, architecture: Architecture, *, thought: bool = False
    ) -> Words:
        layers = verdict.numbers["full_layers"]
        address = verdict.numbers.get("address_bits")
        whose = "1 full layer suffices" if layers == 1 else f"{number(layers)} full layers suffice"
        its = "its" if layers == 1 else "their"
        used = "some by addresses, some by rotations alone"
        if address is not None:
            used = f"{number(address)} of {its} key dimensions used"
        elif all(said.startswith(BY_ROTATIONS) for said in verdict.assumptions if _placed(said)):
            used = "by rotations alone"
        return Words(
            f"{whose}, {used}",
            "Each full layer takes one step, and one more layer, full or bounded, brings the"
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
    later = set([one.rests_on for one in found if one.counted][1:])
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
