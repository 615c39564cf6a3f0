"""Eva by the automaton of its prefixes' classes, with as few bits as any causal model can have
(theory.md, section 3, tightness of Theorem I): parts/machines.py.

The classes of a prefix of t values are all V^t lists of values, so that n log2 V bits are needed,
and are enough; after the query V classes are left, which are the answers.
"""

from __future__ import annotations

from separatrix.constructions.parts.built import Built, built
from separatrix.constructions.parts.machines import machine, too_many
from separatrix.constructions.parts.recipe import Recipe
from separatrix.proofs.arithmetic import FP32, Arithmetic
from separatrix.proofs.derivations.retrieval import ids
from separatrix.stacks.architecture import Architecture
from separatrix.tasks import Eva
from separatrix.theory.fits import MOST_LISTED


def automaton(
    task: Eva, architecture: Architecture | None = None, arithmetic: Arithmetic = FP32
) -> Built:
    """Weights that answer every input of `task` in one automaton of `architecture` (default: one
    of ceil(n log2 V) bits). Raises SizeError where it has too few bits or rules, or the task too
    many inputs to be listed.
    """
    # its inputs are no fewer than its arguments
    if task.n > MOST_LISTED:
        raise too_many(task)
    model = machine(task, ids(task), architecture)
    return built(task, model, name="automaton", arithmetic=arithmetic)


RECIPE = Recipe(
    name="automaton",
    task=Eva,
    build=automaton,
    theorem="tightness",
    takes=(
        "an automaton with ceil(n log2 V) bits and a rule for every token at every place, n V + n;"
        " at most 2^20 inputs"
    ),
)
