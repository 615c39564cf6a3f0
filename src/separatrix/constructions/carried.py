"""L-SeqComp in L full layers and one bounded layer (theory.md, section 5, tightness for hybrids;
section 6).

z_0 stands right before w. The bounded layer hands a value on to the next token, which saves the
full layer that fetches z_0:

    before the first full layer    it hands on z_0, and the L full layers are those of seqcomp.py
    between the first two          the first full layer fetches i_1 at the place of z_0, with z_0's
                                   own bits for a query, and the bounded layer hands on i_1

Spaces added to those of seqcomp.py, the first three written by positions:

    space     width             z_0   w    other positions
    here      1                 1     .    .
    away      1                 .     1    1
    last      1                 .     1    .
    early     ceil(log2 N_0)    what a full layer before the bounded one fetches, at each token
    early_1   the same          its bits

How each kind of layer hands bits on: parts/carriers.py. The threshold after it makes +-1 of them.
"""

from __future__ import annotations

from separatrix.constructions.parts.built import recipe
from separatrix.constructions.parts.carriers import write_carrier
from separatrix.constructions.parts.placement import SCALE, fits, mlp_after
from separatrix.constructions.parts.readers import readers
from separatrix.constructions.parts.spaces import Spaces, threshold
from separatrix.constructions.seqcomp import (
    level_keys,
    model_for,
    spaces,
    tag,
    write_embeddings,
    write_level,
)
from separatrix.models.model import Model
from separatrix.proofs.arithmetic import Arithmetic
from separatrix.stacks.architecture import Architecture, stack
from separatrix.stacks.mechanisms import Full, Linear
from separatrix.tasks import SeqComp
from separatrix.theory.written import bits_for, key_width


@recipe(
    "carried",
    SeqComp,
    theorem="composition",
    takes=(
        "L full layers as wide as those of 'seqcomp', and before the first or the second of them a"
        " bounded layer that hands ceil(log2 m) bits on to the next token"
    ),
    rounded=True,
)
def carried(task: SeqComp, architecture: Architecture | None, arithmetic: Arithmetic) -> Model:
    """L full layers and a bounded one before the second of them (default: a linear one first)."""
    fits(task, arithmetic)
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
    write_embeddings(task, model, space, latent=any(reader.latent for reader in full))
    mark(task, model, space)
    source = space.first("value", code)
    if between:
        # i_1 at the place of z_0, with the token's own bits for i_0
        full[0].write(
            model,
            query=[(source, SCALE), (tag(space, 1), -SCALE)],
            key=level_keys(task, space, 1),
            value=[(space.first("value", early), 1.0)],
            target=space["early"],
        )
        threshold(mlp_after(model, full[0].place), space["early"], space["early_1"])
        source = space["early_1"]
    fetched = space[f"fetched_{step}"]
    centre = write_carrier(model, carrier.place, space, source, fetched)
    threshold(mlp_after(model, carrier.place), fetched, space[f"i_{step}"], centre=centre)
    before = carrier.place
    for level, reader in enumerate(full[step:], 1 + step):
        write_level(task, model, space, level=level, reader=reader, before=before, centre=centre)
        before, centre = reader.place, 0.0

    return model


def mark(task: SeqComp, model: Model, space: Spaces) -> None:
    """The places of z_0 and w."""
    position = model.position.weight
    position[task.position_z0, space["here"]] = 1.0
    position[:, space["away"]] = 1.0
    position[task.position_z0, space["away"]] = 0.0
    position[task.position_w, space["last"]] = 1.0
