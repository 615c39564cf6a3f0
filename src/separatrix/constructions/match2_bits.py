"""2-Sum per query in one full layer by a bit code: a start token that ties with every match.

Every value has D = ceil(log2 M) bits, +-1. The query asks for the bits of the value that cancels
it, so that a match scores s^2 D; the start token scores s^2 D, too, and all else at most s^2 (D -
2), s = 4 (parts/flags.py). With c matches the start token weighs 1/(1 + c), but for n e^-32.

    space     width   start token   token x
    value     D       .             bits of x
    partner   D       .             bits of -x
    token     1       .             1
    start     1       1             .
    own       1       .             1/4 where x = -x
    weight    1       written by attention

The query is its own match where it cancels itself (0, and M/2 for even M): c is then one more. So
the sum of weight and own is

    1 or at most 1/2          without an earlier match, and with one, for other values
    3/4 or at most 7/12       for those

and the logits are (weight + own, 85/128). Nothing here knows places, and no weight depends on n.
"""

from __future__ import annotations

from separatrix.constructions.parts.built import Built, built
from separatrix.constructions.parts.comparing import last_comparing
from separatrix.constructions.parts.flags import (
    THRESHOLD,
    counting_keys,
    counting_spaces,
    write_counting,
)
from separatrix.constructions.parts.placement import empty_model
from separatrix.constructions.parts.recipe import Recipe
from separatrix.constructions.parts.spaces import Spaces, put
from separatrix.core.errors import SizeError
from separatrix.proofs.arithmetic import FP32, Arithmetic
from separatrix.stacks.architecture import Architecture, stack
from separatrix.stacks.mechanisms import Full
from separatrix.tasks import TwoSum


def match2_bits(
    task: TwoSum, architecture: Architecture | None = None, arithmetic: Arithmetic = FP32
) -> Built:
    """Weights that answer every input of `task` (per query) in one full layer of `architecture`
    (default: a single layer that just holds it).

    Raises SizeError for the decision form, when no full layer is wide enough, and for an n that the
    arithmetic cannot be bounded for.
    Source: theory.md, section 6 (Match2, "beyond, the bit code").
    """
    if task.form != "query":
        raise SizeError(f"{task.spec}: one layer answers the query form; use form=query")
    keys = counting_keys(task)
    if architecture is None:
        architecture = stack([Full(heads=1, head_dim=keys, value_dim=1)])
    reader = last_comparing(task, architecture, keys=keys, values=1)
    space = Spaces(**counting_spaces(task))
    model = empty_model(task, architecture, width=space.width, hidden=0, bos=True, placed=False)
    write_counting(task, model, space, reader)
    # logits (weight + own, 85/128)
    put(model.head.weight.T[space["weight"]].T, slice(0, 1))
    put(model.head.weight.T[space["own"]].T, slice(0, 1))
    model.head.bias[1] = THRESHOLD

    return built(task, model, name="match2-bits", arithmetic=arithmetic)


RECIPE = Recipe(
    name="match2-bits",
    task=TwoSum,
    build=match2_bits,
    theorem="match2",
    takes=(
        "form=query and any M; one full layer, with ceil(log2 M) + 1 key dimensions and 1 value"
        " dimension; no positions"
    ),
)
