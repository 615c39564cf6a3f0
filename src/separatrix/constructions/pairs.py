"""2-Sum as a decision in two full layers: the first flags every token that an earlier one cancels,
the second looks for a flag.

Layer 1 is that of `match2-bits`, asked by every token: the start token ties with the matches and
weighs 1/(1 + c). Of a pair that cancels the later token sees the earlier one. With D = ceil(log2 M)
bits and s = 4:

    space     width   start token   token x
    value     D       .             bits of x
    partner   D       .             bits of -x
    token     1       .             1
    start     1       1             .
    own       1       .             1/4 where x = -x
    weight    1       written by the attention of layer 1
    flag      1       written by the MLP of layer 1
    found     1       written by the attention of layer 2

The MLP of layer 1 takes z = weight + own, which is 3/4 or more without an earlier match and 7/12 or
less with one:

    flag = 1 - (relu(32 z - 77/4) - relu(32 z - 93/4)) / 4

is exactly 1 up to 77/128, where both units are 0, and 0 from 93/128 on, where what they differ by
is rounded. In layer 2 a flag leads by 2 s^2 = 32. What arrives is the share of flagged tokens: 0
without one, and within n e^-32 of 1 with any. The logits are (1/2, found). Nothing here knows
places, and no weight depends on n.
"""

from __future__ import annotations

from separatrix.constructions.parts.built import Built, built
from separatrix.constructions.parts.comparing import two_comparing
from separatrix.constructions.parts.flags import (
    THRESHOLD,
    counting_keys,
    counting_spaces,
    write_counting,
    write_looking,
)
from separatrix.constructions.parts.placement import empty_model, mlp_after
from separatrix.constructions.parts.recipe import Recipe
from separatrix.constructions.parts.spaces import Spaces, put
from separatrix.core.errors import SizeError
from separatrix.models.model import MLP
from separatrix.proofs.arithmetic import FP32, Arithmetic
from separatrix.stacks.architecture import Architecture, stack
from separatrix.stacks.mechanisms import Full
from separatrix.tasks import TwoSum

_HIDDEN = 2
_STEEP = 32.0
"""What z is multiplied by at the threshold."""
_HALF_STEP = 2.0
"""Half of the way, so multiplied, from 1 to 0."""


def pairs(
    task: TwoSum, architecture: Architecture | None = None, arithmetic: Arithmetic = FP32
) -> Built:
    """Weights that answer every input of `task` (as a decision) in two full layers of
    `architecture` (default: a stack of just those).

    Raises SizeError for the query form, when there are too few full layers that are wide enough,
    and for an n that the arithmetic cannot be bounded for.
    Source: [San23] for Match2; theory.md, section 6.
    """
    if task.form != "decision":
        raise SizeError(f"{task.spec}: two layers decide over all pairs; use form=decision")
    keys = counting_keys(task)
    if architecture is None:
        architecture = stack([Full(heads=1, head_dim=keys, value_dim=1)] * 2)
    first, second = two_comparing(task, architecture, keys=keys)
    space = Spaces(**counting_spaces(task), flag=1, found=1)
    model = empty_model(
        task, architecture, width=space.width, hidden=_HIDDEN, bos=True, placed=False
    )
    write_counting(task, model, space, first)
    _write_threshold(mlp_after(model, first.place), space)
    write_looking(model, space, second, one="token", flag="flag")
    # logits (1/2, found)
    model.head.bias[0] = 0.5
    put(model.head.weight.T[space["found"]].T, slice(1, 2))

    return built(task, model, name="pairs", arithmetic=arithmetic)


def _write_threshold(mlp: MLP, space: Spaces) -> None:
    """flag = 1 - (relu(32 z - 77/4) - relu(32 z - 93/4)) / 4 with z = weight + own."""
    for unit, (beside, sign) in enumerate(((_HALF_STEP, -1.0), (-_HALF_STEP, 1.0))):
        for source in ("weight", "own"):
            mlp.up.weight[unit, space[source]] = _STEEP
        mlp.up.bias[unit] = beside - _STEEP * THRESHOLD
        mlp.down.weight[space["flag"], unit] = sign / (2 * _HALF_STEP)
    mlp.down.bias[space["flag"]] = 1.0


RECIPE = Recipe(
    name="pairs",
    task=TwoSum,
    build=pairs,
    theorem="pairs",
    takes=(
        "form=decision and any M; two full layers, the first with ceil(log2 M) + 1 key dimensions;"
        " no positions"
    ),
)
