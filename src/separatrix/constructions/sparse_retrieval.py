"""Eva in one block-sparse layer with blocks of B = 2^b tokens, one block read per head: retrieval
in two looks.

The weights are those of retrieval.py; bits are written lowest first, so the b lowest address bits
number the places inside a block. What is new is how the layer finds the block:

    pooled key of a complete block m:  mean over its B keys = s (0 in the b low bits, bits of m, +1)

since every low bit is +1 as often as -1 in a block, exactly. With D address bits the block of x
scores s^2 (D - b + 1). Every other complete block scores at least 2 s^2 less, so the block of x is
read. In it, and in the open block, the tokens score as in retrieval.py. If x stands in the open
block, that is read in any case, and a block read for nothing holds no better key. Pooled values are
0 and lambda = sigmoid(-32), so the output is (1 - lambda) times what the softmax over those tokens
fetched.
"""

from __future__ import annotations

from separatrix.constructions.parts.built import Built, built
from separatrix.constructions.parts.chain import fits
from separatrix.constructions.parts.placement import places, softmax_head, wide_enough
from separatrix.constructions.parts.readers import Reader
from separatrix.constructions.parts.recipe import Recipe
from separatrix.constructions.parts.spaces import bits_for
from separatrix.constructions.retrieval import head_sizes, write_retrieval
from separatrix.core.errors import SizeError
from separatrix.mixers.sparse import SparseMixer
from separatrix.proofs.arithmetic import FP32, Arithmetic
from separatrix.stacks.architecture import Architecture, Mechanism, stack
from separatrix.stacks.mechanisms import Sparse
from separatrix.tasks import Eva

SHUT_GATE = -32.0


def sparse_retrieval(
    task: Eva, architecture: Architecture | None = None, arithmetic: Arithmetic = FP32
) -> Built:
    """Weights that answer every input of `task` in one sparse layer of `architecture` (default: one
    with blocks of about sqrt(n) tokens).

    Raises SizeError when no sparse layer is wide enough with blocks of a power of two, or n is
    beyond what float32 can be bounded for.
    """
    fits(task, arithmetic)
    keys, values = head_sizes(task)
    if architecture is None:
        # about sqrt(n): as many blocks to compare as tokens to read in one
        block = 1 << (bits_for(task.n) + 1) // 2
        architecture = stack([Sparse(heads=1, head_dim=max(keys, values), block=block, topk=1)])
    found = places(architecture, lambda part: holds(part, keys, values))
    if not found:
        raise SizeError(
            f"'{architecture.spec}' cannot hold the construction for {task.spec} in a sparse layer:"
            f" it needs one with head_dim >= {keys}, value_dim >= {values}, a block of 2, 4, 8, ..."
            " tokens, numbers of at least 32 bits, and no conv, rope, window or gates"
        )
    place = found[-1]
    model = write_retrieval(task, architecture, Reader(place), range(task.n))
    mixer = softmax_head(model, place)
    assert isinstance(mixer, SparseMixer)
    assert mixer.mix is not None
    # exact: the block is a power of two
    mixer.pool_k.fill_(1 / mixer.block)
    mixer.mix[0] = SHUT_GATE

    return built(task, model, name="sparse-retrieval", arithmetic=arithmetic)


def holds(part: Mechanism, keys: int, values: int) -> bool:
    """Whether a mechanism is a sparse layer that can hold the head."""
    return (
        isinstance(part, Sparse)
        and part.block & (part.block - 1) == 0
        and wide_enough(part, keys, values)
    )


RECIPE = Recipe(
    name="sparse-retrieval",
    task=Eva,
    build=sparse_retrieval,
    theorem="block-retrieval",
    takes=(
        "one sparse layer with blocks of a power of two, ceil(log2 n) + 1 key and ceil(log2 V)"
        " value dimensions"
    ),
)
