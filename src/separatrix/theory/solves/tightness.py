"""The quotient automaton of a total task: Theorem I is tight."""

from __future__ import annotations

from separatrix.core.evidence.records import Verdict
from separatrix.stacks.architecture import Architecture
from separatrix.tasks import Disjointness, Equality, Eva, Modular, Parity, Task
from separatrix.theory.base import SOLVABLE, Theorem
from separatrix.theory.solves.places import EMBEDDED

TOTAL = (Eva, Equality, Disjointness, Parity, Modular)
"""Tasks that allow every continuation after every prefix, and that tell no more prefixes apart at
any length than `prefix_classes` says.
"""


class Tightness(Theorem):
    key = "tightness"
    title = "Theorem I is tight for total tasks"
    statement = (
        "An automaton with ceil(log2 max_t C(t)) bits, the maximum over prefix lengths t, solves a"
        " total task when the position is supplied."
    )
    premises = (
        "every continuation is allowed after every prefix",
        "the update is an arbitrary function of state, token and position: a layer of kind"
        " automaton with a rule for each token at each place, and positions embedded",
        "the table may be chosen, for this size",
    )
    source = "theory.md, section 3, Theorem I"
    proof_sketch = (
        "The states are the classes of prefixes: two prefixes of one class stay in one class"
        " whatever token follows, so that a token at a place is a map of classes; after the last"
        " token a class is an answer. One bit less and Theorem I refutes it."
    )
    shows = SOLVABLE

    def judge(self, architecture: Architecture, task: Task) -> Verdict | None:
        if not isinstance(task, TOTAL) or architecture.positions != "embedded":
            return None
        count = task.prefix_classes()
        needed = max(1, count.ceil_log2(), (task.answers - 1).bit_length())
        # ids that may stand at each place, added up
        tokens = task.length * task.vocabulary
        rules = task.n * (task.V + 1) if isinstance(task, Eva) else tokens
        for index, layer in enumerate(architecture):
            for part in layer:
                machine = part.machine
                if machine is None or machine.bits < needed or machine.rules < rules:
                    continue
                sentence = (
                    f"layer {index + 1} solves it as the automaton of its prefixes' classes:"
                    f" {needed} of {machine.bits} bits, {rules} of {machine.rules} rules"
                )
                return self.solved(
                    architecture,
                    task,
                    sentence,
                    {"layer": index, "bits": needed, "rules": rules},
                    EMBEDDED,
                )
        return None
