"""Proves that the value at one position arrives at the last token through a recurrent layer."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from fractions import Fraction

import numpy as np

from separatrix.checks.exact import Array
from separatrix.checks.live_parts import Head, Live, Writers, array
from separatrix.errors import CheckFailed
from separatrix.mixers import Mixer
from separatrix.mixers.gdn import GDNMixer
from separatrix.mixers.linear import LinearMixer
from separatrix.proofs.float32 import ELU_OFF, GATES_OFF

_AWAY = -64.0
_KEEP = 32.0


@dataclass(frozen=True)
class Arrival:
    """What arrives at the last token: `scale` times the value at the place, up to what
    `proofs.float32.Carry` makes of the other two.
    """

    scale: float
    """A power of two."""
    others: Fraction
    """Largest weight of another token relative to that of the place."""
    shrinks: Fraction
    """What gates take from the value, and the rounding of the gates."""


def prove_arrival(
    writers: Writers, part: Live, position: Array, place: int
) -> tuple[Head, Arrival]:
    """The live head, and what it brings from `place` to the last of the positions. Raises
    CheckFailed where the weights do not bear it out.
    """
    index, head = part.recurrent_head()
    where = f"layer {part.layer + 1}"
    for matrix, name, source in (
        (head.q, "q", "positions"),
        (head.k, "k", "positions"),
        (head.v, "v", "tokens"),
    ):
        writers.allow(matrix.reads, f"{where}, {name}", source)
    lookups = Lookups(index, head.q.of_rows(position), head.k.of_rows(position), place, where)
    prove = _ARRIVALS.get(type(part.mixer))
    arrival = None if prove is None else prove(part.mixer, lookups)
    if arrival is None:
        raise CheckFailed(
            f"{where}: no proof is known that {part.mixer.mechanism.name} with these options"
            " carries a value"
        )
    return head, arrival


@dataclass(frozen=True)
class Lookups:
    """The live head's queries and keys (positions, head_dim), and the place that must arrive."""

    head: int
    queries: Array
    keys: Array
    place: int
    where: str
    """The layer, for messages."""


def _by_linear(mixer: Mixer, lookups: Lookups) -> Arrival | None:
    """Linear attention: by phi = elu + 1, which keeps all but one key near 0, or by a product that
    is not zero at the place only.
    """
    assert isinstance(mixer, LinearMixer)
    nothing = Fraction(0)
    queries = lookups.queries
    keys = lookups.keys
    if mixer.feature == "elu" and mixer.normaliser:
        away = np.delete(keys, lookups.place, 0)
        # phi(0) = 1 in every dimension, phi(-64) is at most e^-64
        if queries.any() or keys[lookups.place].any() or (away > _AWAY).any():
            raise CheckFailed(
                f"{lookups.where}: with feature elu, queries and the key at position"
                f" {lookups.place} are 0, and other keys at most {_AWAY:g}"
            )
        return Arrival(1.0, ELU_OFF, nothing)
    if mixer.feature not in ("identity", "relu"):
        return None
    if mixer.feature == "relu":
        queries = np.maximum(queries, 0.0)
        keys = np.maximum(keys, 0.0)
    weight = _only_product(replace(lookups, queries=queries, keys=keys))
    # the normaliser divides by the same one product
    return Arrival(1.0 if mixer.normaliser else weight, nothing, nothing)


def _by_gated_delta(mixer: Mixer, lookups: Lookups) -> Arrival:
    """Gated DeltaNet: one write with b = 1/2, kept by gates that hardly close."""
    assert isinstance(mixer, GDNMixer)
    weight = _only_product(lookups)
    _open_gates(mixer, lookups.head, lookups.where)
    # keys and queries are scaled to unit length: of the weight only its sign is left
    return Arrival(float(np.sign(weight)) / 2, Fraction(0), GATES_OFF)


_ARRIVALS: dict[type[Mixer], Callable[[Mixer, Lookups], Arrival | None]] = {
    LinearMixer: _by_linear,
    GDNMixer: _by_gated_delta,
}
"""The mixers of which a proof is known; None where their options are not covered."""


def _only_product(lookups: Lookups) -> float:
    """The one product <q, k> that is not zero: of the last query with the key at the place, in one
    dimension, a power of two.
    """
    place = lookups.place
    key = lookups.keys[place]
    query = lookups.queries[-1]
    if np.delete(lookups.keys, place, 0).any() or lookups.queries[:-1].any():
        raise CheckFailed(
            f"{lookups.where}: a key other than that of position {place}, or a query other than"
            " the last, is not zero"
        )
    products = query * key
    # where they meet in different dimensions the sum is 0, whose mantissa is 0
    if (
        (query != 0.0).sum() != 1
        or (key != 0.0).sum() != 1
        or np.frexp(abs(products.sum()))[0] != 0.5
    ):
        raise CheckFailed(
            f"{lookups.where}: the last query and the key of position {place} do not meet in one"
            " dimension, in a power of two"
        )
    return float(products.sum())


def _open_gates(mixer: GDNMixer, head: int, where: str) -> None:
    """Raises CheckFailed unless every gate is a constant: b = 1/2, and a = exp(-softplus(z)) =
    sigmoid(-z) at least sigmoid(32) in the live head.
    """
    bias = array(mixer.a.bias)
    # a = sigmoid(-bias) where the rate is e^0 = 1 and the gate does not depend on the token
    if (
        array(mixer.a.weight).any()
        or array(mixer.b.weight).any()
        or array(mixer.rate).any()
        or -bias[head] < _KEEP
        or np.delete(bias, head).any()
    ):
        raise CheckFailed(f"{where}: its gates are not b = 1/2 and a = sigmoid({_KEEP:g}) or more")
