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

The threshold makes `fetched` +-1 again. The logit of answer v is <bits of v, answer>.

In a head whose places come from rotations alone (parts/readers.py) address, memory and argument
give way to

    one        1       1 at every token
    asked      2 r     of token t < n: the query for place t

Index. Token V + i alone holds the argument i, and token t < V its value alone.

Indexed attention: two looks, the first by the indexer, whose first head is the retrieval head once
more:

    Q^I x_n = s (argument, -memory)    K^I x_j = s (address, memory)    w = -memory x_n = 1

Other heads of the indexer have a weight of 0.

Block-sparse attention with blocks of B = 2^b tokens, one block read per head: bits are written
lowest first, so the b lowest address bits number the places inside a block. What is new is how the
layer finds the block:

    pooled key of a complete block m:  mean over its B keys = s (0 in the b low bits, bits of m, +1)

Pooled values are 0 and lambda = sigmoid(-32), so that the output is (1 - lambda) times what the
softmax over the tokens read fetched.

q-sparse averaging in two full layers with one head each [San23]: every token of a set looks its
value up, and the last one averages over the set.

D = ceil(log2 n), S = ceil(log2 sets), B = ceil(log2 V) bits, +-1, lowest first; s = 4
(8 in layer 2, in fp64).

    space      width   place j < n   place of set i   token t < V   token V + p
    address    D       bits of j     0                .             .
    memory     1       +1            -1               .             .
    argument   D       .             .                .             bits of p
    set        S       0             bits of i        .             .
    value      B       .             .                bits of t     .
    fetched    B       written by layer 1
    clean      B       written by its MLP: fetched, +-1 again
    sum        1       written by layer 2
    wraps      1       written by its MLP

Layer 1 is the retrieval head: K = s (address, memory), Q = s (argument, -memory).
Layer 2 compares sets, and reads z, the number whose bits are clean:

    K = s (set, -memory)    Q = s (set, -memory)    V = sum_b 2^(b-1) clean_b - (2^B - 1)/2 memory

The q tokens of the set tie, which gives the average of [San23], and times q, in `sum`, the sum. The
MLP takes V off for every w >= 1 with sum >= w V:

    wraps = -V sum_w (relu(2 (sum - w V) + 3/2) - relu(2 (sum - w V) + 1/2))

and the logit of a is a (sum + wraps) - a^2/2.

Nearest neighbour in two full layers: every label fetches the string before it, and the query
looks for the label whose string differs from it in the fewest bits.

Strings have d bits, labels L = ceil(log2 V), places of pairs D = ceil(log2(n + 1)); all bits are
+-1, and s = 4. The query stands where a next pair would begin.

    space     width   place of x_j   place of y_j   string x         label y
    pair      D       bits of j      bits of j      .                .
    leads     1       1              -1             .                .
    one       1       1              1              .                .
    bits      d       .              .              bits of x        .
    tag       1       .              .              -1               1
    label     L       .              .              .                bits of y
    fetched   d       written by the attention of layer 1
    near      d       written by the MLP of layer 1
    read      L       written by the attention of layer 2
    answer    L       written by the MLP of layer 2

Layer 1: K = s (pair, leads), Q = s (pair, one), V = bits. A threshold makes what is fetched +-1
again.

Layer 2: K = s (near, (d + 1) tag), Q = s (bits, one), V = label. Several strings may be nearest:
where they have one label nothing need tie exactly.
"""

from __future__ import annotations

import numpy as np
import torch

from separatrix.constructions.parts.built import (
    SCALE,
    Spaces,
    empty_model,
    mixer_at,
    mlp_after,
    pick,
    put,
    recipe,
    signs,
    step,
)
from separatrix.constructions.parts.readers import Reader, readers
from separatrix.core.errors import SizeError
from separatrix.mixers.base.softmax import SoftmaxMixer
from separatrix.mixers.indexed import IndexedMixer
from separatrix.mixers.sparse import SparseMixer
from separatrix.models.model import Model
from separatrix.proofs.arithmetic import FP32, Arithmetic
from separatrix.stacks.architecture import Architecture, stack
from separatrix.stacks.mechanisms import Full, Indexed, Sparse
from separatrix.tasks import QSA, Eva, Index, Neighbour
from separatrix.tasks.lookups import Lookup
from separatrix.theory.written import bits_for, slots

_TAKES = "one full layer, with ceil(log2 n) + 1 key and ceil(log2 V) value dimensions"
SHUT_GATE = -32.0
ARGUMENT = {"argument": 1, "memory": -1}
ADDRESS = {"address": 1, "memory": 1}
"""What a place is asked for with, and what its key is."""


def _retrieved(task: Lookup, architecture: Architecture | None, arithmetic: Arithmetic) -> Model:
    """One full layer (default: a single layer that just holds it). Source: [CPW]; theory.md,
    section 6.
    """
    keys, values = _head_sizes(task)
    # keys as wide as values run in the fused kernel
    architecture = architecture or stack([Full(heads=1, head_dim=max(keys, values))])
    (reader,) = readers("retrieval", task, architecture, arithmetic)
    return _write(task, architecture, reader)[0]


retrieval = recipe("retrieval", Eva, takes=_TAKES, rounded=True)(_retrieved)
index = recipe("index", Index, takes=_TAKES, rounded=True)(_retrieved)


@recipe(
    "sparse-retrieval",
    Eva,
    takes=(
        "one sparse layer with blocks of a power of two, ceil(log2 n) + 1 key and ceil(log2 V)"
        " value dimensions"
    ),
)
def sparse_retrieval(task: Eva, architecture: Architecture | None, arithmetic: Arithmetic) -> Model:
    """One sparse layer (default: one with blocks of about sqrt(n) tokens)."""
    keys, values = _head_sizes(task)
    if architecture is None:
        # about sqrt(n): as many blocks to compare as tokens to read in one
        block = 1 << (bits_for(task.n) + 1) // 2
        architecture = stack([Sparse(heads=1, head_dim=max(keys, values), block=block, topk=1)])
    ((place, *_),) = slots("sparse-retrieval", task, architecture)
    model, _ = _write(task, architecture, Reader(place))
    mixer = mixer_at(model, place, SparseMixer)
    assert mixer.mix is not None
    # exact: the block is a power of two
    mixer.pool_k.fill_(1 / mixer.block)
    mixer.mix[0] = SHUT_GATE
    return model


@recipe(
    "indexed-retrieval",
    Eva,
    takes=(
        "one indexed layer of single tokens, with ceil(log2 n) + 1 key and indexer dimensions and"
        " ceil(log2 V) value dimensions"
    ),
)
def indexed_retrieval(
    task: Eva, architecture: Architecture | None, arithmetic: Arithmetic
) -> Model:
    """One indexed layer (default: one that reads a single token)."""
    keys, values = _head_sizes(task)
    if architecture is None:
        dims = max(keys, values)
        architecture = stack([Indexed(heads=1, head_dim=dims, index_dim=keys, topk=1)])
    ((place, *_),) = slots("indexed-retrieval", task, architecture)
    model, space = _write(task, architecture, Reader(place))
    mixer = mixer_at(model, place, IndexedMixer)
    pick(mixer.index_q.weight, space.rows(ARGUMENT, SCALE))
    pick(mixer.index_k.weight, space.rows(ADDRESS, SCALE))
    pick(mixer.index_w.weight, [(space["memory"], -1.0)])
    return model


def _head_sizes(task: Lookup) -> tuple[int, int]:
    """Numbers in a key (address and tag) and in a value."""
    return bits_for(task.n) + 1, bits_for(task.V)


def _write(task: Lookup, architecture: Architecture, reader: Reader) -> tuple[Model, Spaces]:
    """A model of the architecture whose softmax mixer at `reader` is the head described above."""
    address = bits_for(task.n)
    code = bits_for(task.V)
    if reader.asking is None:
        finds = {"address": address, "memory": 1, "argument": address}
    else:
        finds = {"one": 1, "asked": reader.asking.rotation.dims}
    space = Spaces(**finds, value=code, fetched=code, answer=code)
    placed = reader.asking is None
    model = empty_model(task, architecture, space, hidden=2 * code, placed=placed)
    embed = model.embed.weight
    # the ids that ask for places 0, 1, ...
    first = task.V if isinstance(task, Index) else 0
    asking = slice(first, first + task.n)
    # a token may be read as a value and as an argument: it holds both codes
    embed[: task.V, space["value"]] = signs(task.V, code)
    if reader.latent:
        # latents are scaled by their length: entries of +-1 at every token and place
        embed[task.V :, space["value"]] = 1.0
    if reader.asking is None:
        position = model.position.weight
        position[: task.n, space["address"]] = signs(task.n, address)
        position[: task.n, space["memory"]] = 1.0
        position[task.n, space["memory"]] = -1.0
        if reader.latent:
            position[task.n, space["address"]] = 1.0
        embed[asking, space["argument"]] = signs(task.n, address)
        reader.write(model, space, ARGUMENT, ADDRESS, "value", "fetched", "answer")
    else:
        embed[:, space["one"]] = 1.0
        embed[asking, space["asked"]] = reader.asking.queries(np.arange(task.n))
        reader.write_asking(model, space, "asked", "value", "fetched", "answer")
    model.head.weight[:, space["answer"]] = signs(task.V, code)
    return model, space


MOST_READ = 1 << 24
"""Logits of all sums, which the proof compares."""


@recipe(
    "qsa",
    QSA,
    takes=(
        "two full layers: the first with ceil(log2 n) + 1 key and ceil(log2 V) value dimensions,"
        " the second with ceil(log2 sets) + 1 and 1"
    ),
)
def qsa(task: QSA, architecture: Architecture | None, arithmetic: Arithmetic) -> Model:
    """Two full layers."""
    if task.q * task.V**2 > MOST_READ:
        raise SizeError(
            f"{task.spec}: q V sums and V answers are compared one by one, at most {MOST_READ:,} in"
            " all; use a smaller V or q"
        )
    address, code, number = bits_for(task.n), bits_for(task.V), bits_for(task.sets)
    if architecture is None:
        dims = max(address + 1, number + 1, code)
        architecture = stack([Full(heads=1, head_dim=dims)] * 2)
    first, second = (slot.place for slot in slots("qsa", task, architecture))
    space = Spaces(
        address=address,
        memory=1,
        argument=address,
        set=number,
        value=code,
        fetched=code,
        clean=code,
        sum=1,
        wraps=1,
    )
    wraps = task.q * (task.V - 1) // task.V
    model = empty_model(task, architecture, space, hidden=2 * max(code, wraps))
    embed, position = model.embed.weight, model.position.weight
    position[: task.n, space["address"]] = signs(task.n, address)
    position[: task.n, space["memory"]] = 1.0
    position[task.n :, space["memory"]] = -1.0
    sets = signs(task.sets, number)
    position[task.n :, space["set"]] = sets.repeat_interleave(task.q, 0)
    embed[: task.V, space["value"]] = signs(task.V, code)
    embed[task.V :, space["argument"]] = signs(task.n, address)
    Reader(first).write(model, space, ARGUMENT, ADDRESS, "value", "fetched", "clean")
    head = mixer_at(model, second, SoftmaxMixer)
    # sums of ones are exact where others weigh less than the last digit of 1
    scale = 2 * SCALE if arithmetic.digits > FP32.digits else SCALE
    for matrix in (head.q.weight, head.k.weight):
        pick(matrix, [(space["set"], scale), (space["memory"], -scale)])
    head.v.weight[0, space["clean"]] = 2.0 ** (torch.arange(code) - 1.0)
    head.v.weight[0, space["memory"]] = -(2.0**code - 1) / 2
    put(head.o.weight, space["sum"], factor=float(task.q))
    # a step of -V at every multiple of V from V on
    for multiple in range(wraps):
        at = 2.0 * (multiple + 1) * task.V
        read, ends = [(space["sum"], 2.0)], (1.5 - at, 0.5 - at)
        step(mlp_after(model, second), 2 * multiple, read, ends, space["wraps"], -float(task.V))
    answers = torch.arange(task.V, dtype=torch.float64)
    for name in ("sum", "wraps"):
        model.head.weight[:, space[name]] = answers.float()[:, None]
    model.head.bias.copy_((-answers * answers / 2).float())
    return model


@recipe(
    "neighbour",
    Neighbour,
    takes=(
        "two full layers: the first with ceil(log2(n + 1)) + 1 key dimensions and d value"
        " dimensions, the second with d + 1 and ceil(log2 V)"
    ),
)
def neighbour(task: Neighbour, architecture: Architecture | None, arithmetic: Arithmetic) -> Model:
    """Two full layers. Source: [Bha24] for labelled vectors and a query; the weights are ours."""
    pair = bits_for(task.n + 1)
    labels = bits_for(task.V)
    if architecture is None:
        architecture = stack(
            [
                Full(heads=1, head_dim=pair + 1, value_dim=task.d),
                Full(heads=1, head_dim=task.d + 1, value_dim=labels),
            ]
        )
    first, second = readers("neighbour", task, architecture)
    space = Spaces(
        pair=pair,
        leads=1,
        one=1,
        bits=task.d,
        tag=1,
        label=labels,
        fetched=task.d,
        near=task.d,
        read=labels,
        answer=labels,
    )
    model = empty_model(task, architecture, space, hidden=2 * max(task.d, labels))
    places = np.arange(task.length)
    position = model.position.weight
    position[:, space["pair"]] = signs(places // 2, pair)
    position[:, space["leads"]] = signs(1 - places % 2, 1)
    position[:, space["one"]] = 1.0
    embed = model.embed.weight
    embed[: task.strings, space["bits"]] = signs(task.strings, task.d)
    embed[: task.strings, space["tag"]] = -1.0
    embed[task.strings :, space["tag"]] = 1.0
    embed[task.strings :, space["label"]] = signs(task.V, labels)
    query, key = {"pair": 1, "one": 1}, {"pair": 1, "leads": 1}
    first.write(model, space, query, key, "bits", "fetched", "near")
    query, key = {"bits": 1, "one": 1}, {"near": 1, "tag": task.d + 1}
    second.write(model, space, query, key, "label", "read", "answer")
    model.head.weight[:, space["answer"]] = signs(task.V, labels)
    return model
