"""Index lookup in one full layer with one head: the retrieval head [CPW], asked by ids of places.

The weights are those of retrieval.py but for who asks. There a token is a value and an argument at
once; here token V + i alone holds the argument i:

    space      width   position j < n   position n (the query)   token t < V    token V + i
    address    D       bits of j        0                        .              .
    memory     1       +1               -1                       .              .
    argument   D       .                .                        .              bits of i
    value      B       .                .                        bits of t      .

The query's own key is s (0, -1) as there, and scores s^2 (D + 2) below the place asked for.
"""

from __future__ import annotations

from separatrix.constructions.parts.built import Built
from separatrix.constructions.parts.recipe import Recipe
from separatrix.constructions.retrieval import retrieved
from separatrix.proofs.arithmetic import FP32, Arithmetic
from separatrix.stacks.architecture import Architecture
from separatrix.tasks import Index


def index(
    task: Index, architecture: Architecture | None = None, arithmetic: Arithmetic = FP32
) -> Built:
    """Weights that answer every input of `task` in one full layer of `architecture` (default: a
    single layer that just holds it).

    Raises SizeError when no full layer is wide enough, or n is beyond what float32 can be bounded
    for. Source: [CPW]; theory.md, section 6.
    """
    arguments = range(task.V, task.vocabulary)
    return retrieved(task, architecture, arithmetic, arguments=arguments, name="index")


RECIPE = Recipe(
    name="index",
    task=Index,
    build=index,
    theorem="retrieval",
    takes="one full layer, with ceil(log2 n) + 1 key and ceil(log2 V) value dimensions",
)
