"""L-SeqComp in L+1 full layers with one head each: pointer chasing by retrieval heads (theory.md,
section 6).

Entry (a, i) of z_l, with a = w_{l-1} and i = i_{l-1}, has the address (bits of a, bits of i). z_0
counts as level 0 with an empty address. All bits are +-1, lowest first, so that a level with fewer
bits uses the first ones; s = 4.

    space       width                   position of (a, i) of z_l   position of w   token t
    row         max_l ceil(log2 n_l)    bits of a                   0               .
    column      ceil(log2 N_{L-2})      bits of i                   0               .
    level       L+1                     +1 at l, -1 elsewhere       -1              .
    w_l         ceil(log2 n_l), l < L   .                           .               bits of w_l
    value       ceil(log2 N_{L-1})      .                           .               bits of t
    fetched_l   ceil(log2 N_{l-1})      written by the attention of layer l+1 (N_{-1} = N_0 = m)
    i_l         the same, l = 0..L      written by the MLP of layer l+1; i_0 is z_0

Every token is also read as a w, whose parts w_l it holds.

Layer 1 fetches z_0 at the last token, layer l+1 asks for (l, w_{l-1}, i_{l-1}):

    K x_j = s (row, column, level_l)
    Q x_last = s (w_{l-1}, i_{l-1}, -level_l) = s (bits of w_{l-1}, bits of i_{l-1}, +1)
    V x_j = value

The threshold makes what was fetched +-1 again before the next layer asks with it.

Carried. L full layers and one bounded layer (theory.md, section 5, tightness for hybrids). z_0
stands right before w. The bounded layer hands a value on to the next token, which saves the
full layer that fetches z_0:

    before the first full layer    it hands on z_0, and the L full layers are those above
    between the first two          the first full layer fetches i_1 at the place of z_0, with z_0's
                                   own bits for a query, and the bounded layer hands on i_1

Spaces added to those above, the first three written by positions:

    space     width             z_0   w    other positions
    here      1                 1     .    .
    away      1                 .     1    1
    last      1                 .     1    .
    early     ceil(log2 N_0)    what a full layer before the bounded one fetches, at each token
    early_1   the same          its bits

How each kind of layer hands bits on: parts/carriers.py. The threshold after it makes +-1 of them.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

import numpy as np
from numpy.typing import NDArray
from torch import Tensor, nn

from separatrix.constructions.parts.built import (
    Named,
    Reads,
    Spaces,
    empty_model,
    look_up,
    mlp_after,
    recipe,
    signs,
    threshold,
)
from separatrix.constructions.parts.carriers import write_carrier
from separatrix.constructions.parts.readers import Reader, readers
from separatrix.models.model import Model
from separatrix.proofs.arithmetic import Arithmetic
from separatrix.stacks.architecture import Architecture, Place, stack
from separatrix.stacks.mechanisms import Full, Linear
from separatrix.tasks import SeqComp
from separatrix.theory.written import address_bits, bits_for, key_width


@recipe(
    "seqcomp",
    SeqComp,
    takes=(
        "L+1 full layers, with a key dimension for each address bit of the widest function and one"
        " more, and ceil(log2 N) value dimensions for N answers"
    ),
    rounded=True,
)
def seqcomp(task: SeqComp, architecture: Architecture | None, arithmetic: Arithmetic) -> Model:
    """L+1 full layers. Source: [CPW]; theory.md, section 6."""
    keys = key_width(task)
    values = bits_for(task.answers)
    # keys as wide as values run in the fused kernel
    architecture = architecture or stack([Full(heads=1, head_dim=max(keys, values))] * (task.L + 1))
    heads = readers("seqcomp", task, architecture, arithmetic)
    space = Spaces(**spaces(task, dict(enumerate(heads))))
    model = model_for(task, architecture, space, heads)
    for level, reader in enumerate(heads):
        before = heads[max(level - 1, 0)].place
        write_level(task, model, space, level=level, reader=reader, before=before)
    return model


def spaces(task: SeqComp, readers: Mapping[int, Reader]) -> dict[str, int]:
    """The widths of the residual stream, as in the tables above; `readers` by level."""
    rows, columns = zip(*(address_bits(task, level) for level in range(1, task.L + 1)), strict=True)
    outputs = [bits_for(task.m), *(bits_for(task.entries(level)) for level in range(1, task.L + 1))]
    asked = {
        f"asked_{level}": reader.asking.rotation.dims
        for level, reader in readers.items()
        if reader.asking is not None
    }
    return {
        "row": max(rows),
        "column": max(columns),
        **{f"level_{level}": 1 for level in range(task.L + 1)},
        **{f"w_{number}": bits_for(count) for number, count in enumerate(task.branching, 1)},
        "value": bits_for(task.answers),
        **{f"fetched_{level}": width for level, width in enumerate(outputs)},
        **{f"i_{level}": width for level, width in enumerate(outputs)},
        **({"one": 1} if asked else {}),
        **asked,
    }


def model_for(
    task: SeqComp, architecture: Architecture, space: Spaces, readers: Sequence[Reader]
) -> Model:
    """A model that holds what positions and tokens do (the first three columns of the tables
    above), and nothing else, with the hidden units that thresholds and look-ups take.
    """
    values = bits_for(task.answers)
    # a look-up has two units for each entry of the function that is asked for
    looked_up = 2 * task.entries(task.L) if any(reader.asking for reader in readers) else 0
    placed = architecture.positions == "embedded"
    model = empty_model(
        task,
        architecture,
        space,
        hidden=2 * values + looked_up,
        placed=placed or not all(reader.asking for reader in readers),
    )
    embed, position = model.embed.weight, model.position.weight
    # a layer that scales latents by their length: bits that are missing are +1 instead of 0
    latent = any(reader.latent for reader in readers)
    if latent:
        embed[:, space["value"]] = 1.0
    if isinstance(model.position, nn.Embedding):
        if latent:
            for name in ("row", "column"):
                position[:, space[name]] = 1.0
        # an entry is tagged as of its own level, and as of no other
        position[:, space["level_0"].start : space[f"level_{task.L}"].stop] = -1.0
        position[task.position_z0, space["level_0"]] = 1.0
        for level, entries, row, column in written_entries(task):
            position[entries, space["row", row.shape[1]]] = row
            position[entries, space["column", column.shape[1]]] = column
            position[entries, space[f"level_{level}"]] = 1.0
    write_parts(task, embed[: task.w_values], space, np.arange(task.w_values))
    embed[: task.answers, space["value"]] = signs(task.answers, values)
    if "one" in space.widths():
        embed[:, space["one"]] = 1.0
    model.head.weight[:, space[f"i_{task.L}"]] = signs(task.answers, values)
    return model


def write_parts(task: SeqComp, embed: Tensor, space: Spaces, of: NDArray[np.int64]) -> None:
    """The parts of each w, in rows of tokens that hold them."""
    for number, part in enumerate(task.split_w(of), 1):
        embed[:, space[f"w_{number}"]] = signs(part, bits_for(task.branching[number - 1]))


def entry_codes(task: SeqComp, level: int) -> tuple[Tensor, Tensor]:
    """The bits of row and column of every entry of z_l."""
    # (a, i) is entry a N_{l-2} + i of z_l; z_1 has a single row
    row, column = np.divmod(np.arange(task.entries(level)), task.N(max(level - 2, 0)))
    row_bits, column_bits = address_bits(task, level)
    return signs(row, row_bits), signs(column, column_bits)


def written_entries(task: SeqComp) -> Iterator[tuple[int, slice, Tensor, Tensor]]:
    """Of every level its number, the places of its entries, and their bits."""
    for level in range(1, task.L + 1):
        first = task.offset(level)
        yield level, slice(first, first + task.entries(level)), *entry_codes(task, level)


def level_keys(task: SeqComp, level: int) -> Reads:
    """Address and tag of the entries of z_l."""
    row_bits, column_bits = address_bits(task, level) if level else (0, 0)
    return {("row", row_bits): 1, ("column", column_bits): 1, f"level_{level}": 1}


def write_level(
    task: SeqComp,
    model: Model,
    space: Spaces,
    *,
    level: int,
    reader: Reader,
    before: Place,
    centre: float = 0.0,
) -> None:
    """The head and the threshold that fetch i_l; `before` is the layer that fetched i_{l-1}, as
    numbers on both sides of `centre`. i_0 is asked for by every token alike.
    """
    entries = task.entries(level) if level else task.m
    found = ("value", bits_for(entries)), f"fetched_{level}", f"i_{level}"
    if reader.asking is None:
        address = [f"w_{level - 1}"] * (level > 1) + [f"i_{level - 1}"] * (level > 0)
        query = dict.fromkeys(address, 1) | {f"level_{level}": -1}
        reader.write(model, space, query, level_keys(task, level), *found)
    else:
        asked = space[f"asked_{level}"]
        if level:
            fetched = space[f"fetched_{level - 1}"]
            rows, columns = entry_codes(task, level)
            sources = [(fetched, columns)]
            if level > 1:
                sources.append((space[f"w_{level - 1}"], rows))
            # the units before are those of the threshold
            start = 2 * (fetched.stop - fetched.start)
            table = reader.asking.queries(task.offset(level) + np.arange(entries))
            look_up(mlp_after(model, before), sources, asked, table, start=start, centre=centre)
        else:
            model.embed.weight[:, asked] = reader.asking.queries(np.array([task.position_z0]))
        reader.write_asking(model, space, f"asked_{level}", *found)


@recipe(
    "carried",
    SeqComp,
    takes=(
        "L full layers as wide as those of 'seqcomp', and before the first or the second of them a"
        " bounded layer that hands ceil(log2 m) bits on to the next token"
    ),
    rounded=True,
)
def carried(task: SeqComp, architecture: Architecture | None, arithmetic: Arithmetic) -> Model:
    """L full layers and a bounded one before the second of them (default: a linear one first)."""
    keys = key_width(task)
    values = bits_for(task.answers)
    code = bits_for(task.m)
    if architecture is None:
        carrier = Linear(heads=1, head_dim=1, value_dim=code, feature="identity", normaliser=False)
        # keys as wide as values run in the fused kernel
        architecture = stack([carrier, *[Full(heads=1, head_dim=max(keys, values))] * task.L])
    carrier, *full = readers("carried", task, architecture, arithmetic)
    between = carrier.place > full[0].place
    step = int(between)
    early = bits_for(task.entries(1)) if between else 0
    space = Spaces(
        **spaces(task, dict(enumerate(full, 1))),
        here=1,
        away=1,
        last=1,
        early=early,
        early_1=early,
    )
    model = model_for(task, architecture, space, full)
    position = model.position.weight
    position[task.position_z0, space["here"]] = 1.0
    position[:, space["away"]] = 1.0
    position[task.position_z0, space["away"]] = 0.0
    position[task.position_w, space["last"]] = 1.0
    source: Named = ("value", code)
    if between:
        # i_1 at the place of z_0, with the token's own bits for i_0
        query: Reads = {source: 1, "level_1": -1}
        found = ("value", early), "early", "early_1"
        full[0].write(model, space, query, level_keys(task, 1), *found)
        source = "early_1"
    fetched = space[f"fetched_{step}"]
    centre = write_carrier(model, carrier.place, space, space[source], fetched)
    threshold(mlp_after(model, carrier.place), fetched, space[f"i_{step}"], centre=centre)
    before = carrier.place
    for level, reader in enumerate(full[step:], 1 + step):
        write_level(task, model, space, level=level, reader=reader, before=before, centre=centre)
        before, centre = reader.place, 0.0
    return model
