"""L-SeqComp in L full layers behind one recurrent layer (theory.md, section 5, tightness for
hybrids; section 6).

The recurrent layer carries z_0 to the last token, which saves the full layer that fetches it; the L
full layers are those of seqcomp.py. Three spaces are added to those of seqcomp.py, all written by
positions:

    space   width   z_0   w    other positions
    here    1       1     .    .
    away    1       .     1    1
    last    1       .     1    .

With v = the bits of z_0, what arrives at the last token, and how `fetched_0` gets it:

    carrier                        keys and queries                      arrives      fetched_0
    linear, identity or relu       k = here, q = last                    y = v        y
    linear, elu, normalised        k = -64 away in every dimension,      y = v (1+-)  y
                                   q = 0
    gated DeltaNet, b = 1/2,       k = here, q = last                    y = a v / 2  2 y
    a = sigmoid(32), s = 0

In the first form every other key is 0, so S = v (x) 1 and Z = 1. In the second phi(k) = 1 at z_0
and at most e^-64 elsewhere, and phi(q) = 1. In the third b = sigmoid(0).

The threshold after the layer makes +-1 of it again.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from separatrix.architecture import Architecture, Mechanism, Place, stack
from separatrix.constructions.parts.built import Built, built
from separatrix.constructions.parts.chain import fits_float32
from separatrix.constructions.parts.placement import (
    in_float32,
    mlp_after,
    places,
    recurrent_head,
)
from separatrix.constructions.parts.readers import last_readers
from separatrix.constructions.parts.recipe import Recipe
from separatrix.constructions.parts.spaces import Spaces, bits_for, pick, put, threshold
from separatrix.constructions.seqcomp import (
    key_width,
    model_for,
    spaces,
    write_embeddings,
    write_level,
)
from separatrix.errors import SizeError
from separatrix.mechanisms import Full, GatedDeltaNet, Linear, MatrixState
from separatrix.mixers.base.recurrent import RecurrentMixer
from separatrix.mixers.gdn import GDNMixer
from separatrix.numbers.formats import NumberFormat
from separatrix.proofs.arithmetic import FP32, Arithmetic
from separatrix.tasks import SeqComp

AWAY = 64.0
KEEP = 32.0


def carried(
    task: SeqComp, architecture: Architecture | None = None, arithmetic: Arithmetic = FP32
) -> Built:
    """Weights that answer every input of `task` in L full layers and one recurrent layer before
    them (default: a stack of just those).

    Raises SizeError when the architecture lacks the full layers, or a linear (not taylor; elu only
    with its normaliser) or gated DeltaNet layer before them, and for an n that float32 cannot be
    bounded for.
    """
    fits_float32(task)
    keys = key_width(task)
    values = bits_for(task.answers)
    code = bits_for(task.m)
    if architecture is None:
        carrier = Linear(heads=1, head_dim=1, value_dim=code, feature="identity", normaliser=False)
        # keys as wide as values run in the fused kernel
        architecture = stack([carrier, *[Full(heads=1, head_dim=max(keys, values))] * task.L])
    rest = last_readers(task, architecture, task.L, key_dim=keys, value_dim=values)
    first, form = carrier_before(rest[0].place, task, architecture)

    space = Spaces(**spaces(task, dict(enumerate(rest, 1))), here=1, away=1, last=1)
    model = model_for(task, architecture, space, rest)
    write_embeddings(task, model, space, latent=any(reader.latent for reader in rest))
    model.position.weight[task.position_z0, space["here"]] = 1.0
    model.position.weight[:, space["away"]] = 1.0
    model.position.weight[task.position_z0, space["away"]] = 0.0
    model.position.weight[task.position_w, space["last"]] = 1.0
    mixer = recurrent_head(model, first)
    form.write(mixer, space)
    pick(mixer.v.weight, [(space.first("value", bits_for(task.m)), 1.0)])
    # makes up for the factor with which the value arrives
    put(mixer.o.weight, space["fetched_0"], factor=form.factor)
    threshold(mlp_after(model, first), space["fetched_0"], space["i_0"])
    before = first
    for level, reader in enumerate(rest, 1):
        write_level(task, model, space, level=level, reader=reader, before=before)
        before = reader.place

    return built(task, model, name="carried", arithmetic=arithmetic)


@dataclass(frozen=True, kw_only=True)
class Form:
    """A row of the table above: how one kind of recurrent layer carries z_0."""

    fits: Callable[[Mechanism], bool]
    """Whether a mechanism with room for the bits carries in this form."""
    write: Callable[[RecurrentMixer, Spaces], None]
    """Writes what the layer does with keys, queries and gates."""
    factor: float = 1.0
    """`fetched_0` over what arrives."""


def carrier_before(full: Place, task: SeqComp, architecture: Architecture) -> tuple[Place, Form]:
    """The last layer before a full one that can carry z_0, and how. Raises SizeError, saying what
    is needed, where there is none.
    """
    code = bits_for(task.m)
    found = places(architecture, lambda part: form_of(part, code) is not None)
    for place in reversed(found):
        form = form_of(architecture.layers[place[0]][place[1]], code)
        if place[0] < full[0] and form is not None:
            return place, form
    raise SizeError(
        f"'{architecture.spec}' cannot hold the construction for {task.spec} with {task.L} full"
        " layers: it needs a linear (identity, relu, or elu with normaliser) or gdn layer with"
        f" value_dim >= {code} and numbers of at least 32 bits before them"
    )


def form_of(part: Mechanism, code: int) -> Form | None:
    """The form in which a mechanism carries `code` bits to the last token; None if it cannot."""
    form = next((form for form in FORMS if form.fits(part)), None)
    if form is None or not isinstance(part, MatrixState) or not part.plain or part.dv < code:
        return None
    # the proof is about float32, in the state too
    wide = in_float32(part) and NumberFormat(part.state_format or part.format).bits >= 32
    return form if wide else None


def write_lookup(mixer: RecurrentMixer, space: Spaces) -> None:
    """k = here, q = last."""
    pick(mixer.q.weight, [(space["last"], 1.0)])
    pick(mixer.k.weight, [(space["here"], 1.0)])


def write_away(mixer: RecurrentMixer, space: Spaces) -> None:
    """k = -64 away in every dimension, q = 0."""
    for row in range(mixer.head_dim):
        pick(mixer.k.weight, [(space["away"], -AWAY)], start=row)


def write_gated(mixer: RecurrentMixer, space: Spaces) -> None:
    """k = here, q = last, and a gate that keeps: a = exp(-softplus(-32)) = sigmoid(32)."""
    assert isinstance(mixer, GDNMixer)
    write_lookup(mixer, space)
    mixer.a.bias[0] = -KEEP


FORMS = (
    Form(
        fits=lambda part: isinstance(part, Linear) and part.feature in ("identity", "relu"),
        write=write_lookup,
    ),
    Form(
        fits=lambda part: isinstance(part, Linear) and part.feature == "elu" and part.normaliser,
        write=write_away,
    ),
    Form(
        fits=lambda part: isinstance(part, GatedDeltaNet),
        write=write_gated,
        factor=2.0,
    ),
)
"""The table above, row by row."""

RECIPE = Recipe(
    name="carried",
    task=SeqComp,
    build=carried,
    theorem="composition",
    takes=(
        "a linear or gdn layer with ceil(log2 m) value dimensions, and L full layers after it as"
        " wide as those of 'seqcomp'"
    ),
)
