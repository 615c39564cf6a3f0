"""Composition of L functions in L+1 full layers, or in L behind a recurrent layer."""

from __future__ import annotations

from separatrix.architecture import Architecture
from separatrix.evidence.records import Verdict
from separatrix.tasks import SeqComp, Task
from separatrix.theory.base import SOLVABLE, Sees, Theorem, number
from separatrix.theory.solves.room import CHOSEN_WEIGHTS, bits_of, full_heads
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
            "full heads with room for the address bits and a tag for each level in their keys and"
            " for the values' bits in their values"
        ),
        "a carrier, where one is used, with room for the bits of z_0 in one head",
        "scores exact in the format: s a power of two, at most 256 address bits",
        CHOSEN_WEIGHTS,
    )
    source = "[CPW]; theory.md, sections 5 (tightness) and 6"
    proof_sketch = (
        "Every layer is a retrieval head for the address (level, w_{l-1}, i_{l-1}); z_0 comes by"
        " one more of them, or by the recurrence."
    )
    shows = SOLVABLE
    sees = Sees.CARRIERS

    def judge(self, architecture: Architecture, task: Task) -> Verdict | None:
        if not isinstance(task, SeqComp):
            return None
        # the address, and a tag for each of the levels 0 to L
        address = bits_of(task.N(task.L - 1)) + task.L + 1
        payload = bits_of(task.N(task.L - 1))
        layers = sorted(
            {
                i
                for i, part in full_heads(architecture)
                if part.has_room(address, payload) and address <= 256
            }
        )
        steps, carried = composable(architecture, layers, bits_of(task.m))
        if steps < task.L:
            return None
        how = (
            "the first fetches z_0"
            if not carried or len(layers) > task.L
            else "a bounded layer carries z_0 or i_1 to w"
        )
        sentence = (
            f"{len(layers)} full layers solve it ({how}, each further one follows a step):"
            f" {address} address and tag bits in the keys"
        )
        numbers = {
            "address_bits": address,
            "payload_bits": payload,
            "full_layers": len(layers),
            "steps": steps,
        }
        return self.verdict(architecture, task, "SOLVABLE", sentence, numbers=numbers)

    def told(
        self, verdict: Verdict, task: Task, architecture: Architecture, *, thought: bool = False
    ) -> Words:
        layers = verdict.numbers["full_layers"]
        used = f"{number(verdict.numbers['address_bits'])} of"
        if layers == 1:
            suffice = f"1 full layer suffices, {used} its"
        else:
            suffice = f"{number(layers)} full layers suffice, {used} their"
        return Words(
            f"{suffice} key dimensions used",
            "Each full layer takes one step, and one more layer, full or recurrent, brings the"
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
        part.carries(carried_bits)
        for i in range(second)
        if i != first
        for part in architecture.layers[i]
    )
    return len(full_layers) - 1 + carried, carried
