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

    linear, feature identity or relu   k = here, q = last: every other key is 0, S = v (x) 1, Z = 1          y = v          fetched_0 = y
    linear, feature elu, normalised    k = -64 away in every dimension, q = 0: phi(k) = 1 at z_0, at most
                                       e^-64 elsewhere, phi(q) = 1                                           y = v (1 +-)   fetched_0 = y
    gated DeltaNet                     k = here, q = last, b = sigmoid(0) = 1/2, a = sigmoid(32), s = 0      y = a v / 2    fetched_0 = 2 y

The threshold after the layer makes +-1 of it again.
"""

from __future__ import annotations

from fractions import Fraction

from separatrix.architecture import Architecture, Mechanism, stack
from separatrix.constructions.parts.built import Built, built
from separatrix.constructions.parts.chain import CLAMP, chain_proof
from separatrix.constructions.parts.placement import (
    Place,
    empty_model,
    in_float32,
    last_full,
    mlp_after,
    places,
    recurrent_head,
)
from separatrix.constructions.parts.spaces import Spaces, bits_for, pick, put, threshold
from separatrix.constructions.seqcomp import (
    key_width,
    level_hops,
    spaces,
    write_embeddings,
    write_level,
)
from separatrix.errors import SizeError
from separatrix.mechanisms import Full, GatedDeltaNet, Linear
from separatrix.mixers.gdn import GDNMixer
from separatrix.model import Model
from separatrix.numbers.formats import NumberFormat
from separatrix.proofs.entries import carry_entry
from separatrix.proofs.float32 import ELU_OFF, GATES_OFF, Carry
from separatrix.tasks import SeqComp

AWAY = 64.0
KEEP = 32.0


def carried(task: SeqComp, architecture: Architecture | None = None) -> Built:
    """Weights that answer every input of `task` in L full layers and one recurrent layer before
    them (default: a stack of just those).

    Raises SizeError when the architecture lacks the full layers, or a linear (not taylor; elu only
    with its normaliser) or gated DeltaNet layer before them, and for an n that float32 cannot be
    bounded for.
    """
    keys = key_width(task)
    values = bits_for(task.answers)
    code = bits_for(task.m)
    if architecture is None:
        carrier = Linear(heads=1, head_dim=1, value_dim=code, feature="identity", normaliser=False)
        architecture = stack(
            [carrier, *[Full(heads=1, head_dim=max(keys, values))] * task.L]
        )  # equal dimensions run in the fused kernel
    rest = last_full(task, architecture, task.L, head_dim=keys, value_dim=values)
    before = [
        place
        for place in places(architecture, lambda part: carries(part, code))
        if place[0] < rest[0][0]
    ]
    if not before:
        raise SizeError(
            f"'{architecture.spec}' cannot hold the construction for {task.spec} with {task.L} full"
            " layers: it needs a linear (identity, relu, or elu with normaliser) or gdn layer with"
            f" value_dim >= {code} and numbers of at least 32 bits before them"
        )
    first = before[-1]

    space = Spaces(**spaces(task).widths(), here=1, away=1, last=1)
    model = empty_model(task, architecture, width=space.width, hidden=2 * values)
    write_embeddings(task, model, space)
    model.position.weight[task.position_z0, space["here"]] = 1.0
    model.position.weight[:, space["away"]] = 1.0
    model.position.weight[task.position_z0, space["away"]] = 0.0
    model.position.weight[task.position_w, space["last"]] = 1.0
    write_carrier(task, model, space, first)
    threshold(mlp_after(model, first), space["fetched_0"], space["i_0"])
    for level, place in enumerate(rest, 1):
        write_level(task, model, space, level=level, place=place)

    part = architecture.layers[first[0]][first[1]]
    carry = carry_of(part, keys=task.length)
    entry = carry_entry(
        first, fetches="z_0", mechanism=part.name, carry=carry, bounds=carry.bounds()
    )
    layers, margin = chain_proof(
        level_hops(task, rest), keys=task.length, code=values, before=carry.bounds().clean_error
    )
    sizes = {"carriers": 1, "layers": task.L, "head_dim": keys, "value_dim": values}
    return built(task, model, name="carried", sizes=sizes, layers=[entry, *layers], margin=margin)


def carries(part: Mechanism, code: int) -> bool:
    """Whether a mechanism can carry `code` bits to the last token in the way described above."""
    if (
        not isinstance(part, Linear | GatedDeltaNet)
        or not part.plain
        or part.dv < code
        or not in_float32(part)
    ):
        return False
    if NumberFormat(part.state_format or part.format).bits < 32:
        return False
    return (
        not isinstance(part, Linear)
        or part.feature in ("identity", "relu")
        or (part.feature == "elu" and part.normaliser)
    )


def carry_of(part: Mechanism, *, keys: int) -> Carry:
    """The proof of a carrier, in closed form."""
    soft = isinstance(part, Linear) and part.feature == "elu"
    gated = isinstance(part, GatedDeltaNet)
    zero = Fraction(0)
    return Carry(
        keys=keys,
        others=ELU_OFF if soft else zero,
        shrinks=GATES_OFF if gated else zero,
        value=Fraction(1),
        threshold=CLAMP,
    )


def write_carrier(task: SeqComp, model: Model, space: Spaces, place: Place) -> None:
    """The weights of the recurrent layer."""
    mixer = recurrent_head(model, place)
    part = mixer.mechanism
    if isinstance(part, Linear) and part.feature == "elu":
        for row in range(part.head_dim):
            pick(mixer.k.weight, [(space["away"], -AWAY)], start=row)
    else:
        pick(mixer.q.weight, [(space["last"], 1.0)])
        pick(mixer.k.weight, [(space["here"], 1.0)])
    if isinstance(mixer, GDNMixer):
        mixer.a.bias[0] = -KEEP
    pick(mixer.v.weight, [(space.first("value", bits_for(task.m)), 1.0)])
    put(mixer.o.weight, space["fetched_0"], factor=2.0 if isinstance(mixer, GDNMixer) else 1.0)
