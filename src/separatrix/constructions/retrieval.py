"""Eva in one full layer with one head: the retrieval head [CPW].

D = ceil(log2 n) address bits and B = ceil(log2 V) value bits, all +-1, s = 4. The residual stream
is split into named spaces:

    space      width   position j < n   position n (the query)   token t
    address    D       bits of j        0                        .
    memory     1       +1               -1                       .
    argument   D       .                .                        bits of t  (t < n)
    value      B       .                .                        bits of t  (t < V)
    fetched    B       written by attention
    answer     B       written by the MLP

The head, at the last token, whose token is x:

    K x_j = s (address, memory)
    Q x_n = s (argument, -memory) = s (bits of x, +1)
    V x_j = value

    score of j < n:   s^2 (D - 2 hamming(j, x) + 1)   largest at j = x, others at least 2 s^2 below
    score of itself:  s^2 (0 - 1)                     s^2 (D + 2) below

So the weight off j = x is at most n e^(-2 s^2), and `fetched` is +-1 up to twice that. The
threshold makes it +-1 again. The logit of answer v is <bits of v, answer> = B - 2 hamming(v, f(x)):
the right one leads by 2.

In a head whose places come from rotations alone (parts/readers.py) address, memory and argument
give way to

    one        1       1 at every token
    asked      2 r     of token t < n: the query for place t
"""

from __future__ import annotations

import numpy as np

from separatrix.constructions.parts.built import Built, built
from separatrix.constructions.parts.chain import SCALE, fits
from separatrix.constructions.parts.placement import empty_model, mlp_after, on_grid, padded
from separatrix.constructions.parts.readers import Read, Reader, last_readers
from separatrix.constructions.parts.recipe import Recipe
from separatrix.constructions.parts.spaces import Spaces, bits_for, signs, threshold
from separatrix.models.model import Model
from separatrix.proofs.arithmetic import FP32, Arithmetic
from separatrix.stacks.architecture import Architecture, stack
from separatrix.stacks.mechanisms import Full
from separatrix.tasks import Eva
from separatrix.tasks.functions.lookup import Lookup


def retrieval(
    task: Eva, architecture: Architecture | None = None, arithmetic: Arithmetic = FP32
) -> Built:
    """Weights that answer every input of `task` in one full layer of `architecture` (default: a
    single layer that just holds it).

    Raises SizeError when no full layer is wide enough, or n is beyond what float32 can be bounded
    for. Source: [CPW]; theory.md, section 6.
    """
    return retrieved(task, architecture, arithmetic, arguments=range(task.n), name="retrieval")


def retrieved(
    task: Lookup,
    architecture: Architecture | None,
    arithmetic: Arithmetic,
    *,
    arguments: range,
    name: str,
) -> Built:
    """The construction of that name, whose `arguments` are the ids that ask for places 0, 1, ...
    Raises SizeError.
    """
    fits(task, arithmetic)
    keys, values = head_sizes(task)
    if architecture is None:
        # keys as wide as values run in the fused kernel
        architecture = stack([Full(heads=1, head_dim=max(keys, values))])
    (reader,) = last_readers(
        task, architecture, 1, key_dim=keys, value_dim=values, arithmetic=arithmetic
    )
    model = write_retrieval(task, architecture, reader, arguments)
    return built(task, on_grid(model, arithmetic), name=name, arithmetic=arithmetic)


def head_sizes(task: Lookup) -> tuple[int, int]:
    """Numbers in a key (address and tag) and in a value."""
    return bits_for(task.n) + 1, bits_for(task.V)


def write_retrieval(
    task: Lookup, architecture: Architecture, reader: Reader, arguments: range
) -> Model:
    """A model of the architecture whose softmax mixer at `reader` is the head described above;
    `arguments` are the ids that ask for places 0, 1, ...
    """
    address = bits_for(task.n)
    code = bits_for(task.V)
    if reader.asking is None:
        finds = {"address": address, "memory": 1, "argument": address}
    else:
        finds = {"one": 1, "asked": reader.asking.rotation.dims}
    space = Spaces(**finds, value=code, fetched=code, answer=code)
    placed = reader.asking is None
    width = padded(architecture, space.width)
    model = empty_model(task, architecture, width=width, hidden=2 * code, placed=placed)
    embed = model.embed.weight
    asking = slice(arguments.start, arguments.stop)
    # a token may be read as a value and as an argument: it holds both codes
    embed[: task.V, space["value"]] = signs(task.V, code)
    if reader.latent:
        # latents are scaled by their length: entries of +-1 at every token and place
        embed[task.V :, space["value"]] = 1.0
    read: Read = {"value": [(space["value"], 1.0)], "target": space["fetched"]}
    if reader.asking is None:
        position = model.position.weight
        position[: task.n, space["address"]] = signs(task.n, address)
        position[: task.n, space["memory"]] = 1.0
        position[task.n, space["memory"]] = -1.0
        if reader.latent:
            position[task.n, space["address"]] = 1.0
        embed[asking, space["argument"]] = signs(task.n, address)
        query = [(space["argument"], SCALE), (space["memory"], -SCALE)]
        key = [(space["address"], SCALE), (space["memory"], SCALE)]
        reader.write(model, query=query, key=key, **read)
    else:
        embed[:, space["one"]] = 1.0
        embed[asking, space["asked"]] = reader.asking.queries(np.arange(task.n))
        reader.write_asking(model, asked=space["asked"], one=space["one"], **read)
    threshold(mlp_after(model, reader.place), space["fetched"], space["answer"])
    model.head.weight[:, space["answer"]] = signs(task.V, code)
    return model


RECIPE = Recipe(
    name="retrieval",
    task=Eva,
    build=retrieval,
    theorem="retrieval",
    takes="one full layer, with ceil(log2 n) + 1 key and ceil(log2 V) value dimensions",
)
