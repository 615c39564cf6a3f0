"""Eva in one layer of indexed attention: retrieval in two looks, the first by the indexer.

The weights are those of retrieval.py, and the indexer's first head is the retrieval head once more:

    Q^I x_n = s (argument, -memory)    K^I x_j = s (address, memory)    w = -memory x_n = 1

With D address bits and x the last token, place j scores max(0, s^2 (D - 2 hamming(j, x) + 1)): s^2
(D + 1) at j = x, at most s^2 (D - 1) elsewhere, and 0 for the query itself. So the right token is
the first that is chosen, for every k >= 1, and among the k tokens read the head weighs it as
retrieval.py derives. Other heads of the indexer have a weight of 0.
"""

from __future__ import annotations

from separatrix.constructions.parts.built import Built, built
from separatrix.constructions.parts.chain import SCALE, fits
from separatrix.constructions.parts.placement import places, softmax_head, wide_enough
from separatrix.constructions.parts.readers import Reader
from separatrix.constructions.parts.recipe import Recipe
from separatrix.constructions.parts.spaces import Spaces, bits_for, pick
from separatrix.constructions.retrieval import head_sizes, write_retrieval
from separatrix.core.errors import SizeError
from separatrix.mixers.indexed import IndexedMixer
from separatrix.proofs.arithmetic import FP32, Arithmetic
from separatrix.stacks.architecture import Architecture, Mechanism, stack
from separatrix.stacks.mechanisms import Indexed
from separatrix.tasks import Eva


def indexed_retrieval(
    task: Eva, architecture: Architecture | None = None, arithmetic: Arithmetic = FP32
) -> Built:
    """Weights that answer every input of `task` in one indexed layer of `architecture` (default:
    one that reads a single token).

    Raises SizeError when no indexed layer is wide enough, or n is beyond what the arithmetic can
    be bounded for.
    """
    fits(task, arithmetic)
    keys, values = head_sizes(task)
    if architecture is None:
        dims = max(keys, values)
        architecture = stack([Indexed(heads=1, head_dim=dims, index_dim=keys, topk=1)])
    found = places(architecture, lambda part: holds(part, keys, values))
    if not found:
        raise SizeError(
            f"'{architecture.spec}' cannot hold the construction for {task.spec} in an indexed"
            f" layer: it needs one with head_dim >= {keys}, value_dim >= {values}, index_dim >="
            f" {keys}, block=1, numbers of at least 32 bits, and no conv or rope"
        )
    place = found[-1]
    model = write_retrieval(task, architecture, Reader(place), range(task.n))
    mixer = softmax_head(model, place)
    assert isinstance(mixer, IndexedMixer)
    # the spaces that retrieval.py begins with
    bits = bits_for(task.n)
    space = Spaces(address=bits, memory=1, argument=bits)
    pick(mixer.index_q.weight, [(space["argument"], SCALE), (space["memory"], -SCALE)])
    pick(mixer.index_k.weight, [(space["address"], SCALE), (space["memory"], SCALE)])
    pick(mixer.index_w.weight, [(space["memory"], -1.0)])
    return built(task, model, name="indexed-retrieval", arithmetic=arithmetic)


def holds(part: Mechanism, keys: int, values: int) -> bool:
    """Whether a mechanism is an indexed layer that can hold the head and its indexer."""
    return (
        isinstance(part, Indexed)
        and part.block == 1
        and part.index_dim >= keys
        and wide_enough(part, keys, values)
    )


RECIPE = Recipe(
    name="indexed-retrieval",
    task=Eva,
    build=indexed_retrieval,
    theorem="indexed-retrieval",
    takes=(
        "one indexed layer of single tokens, with ceil(log2 n) + 1 key and indexer dimensions and"
        " ceil(log2 V) value dimensions"
    ),
)
