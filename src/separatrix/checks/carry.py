"""Proves that a recurrent layer brings the value at one position to the last token, from its
weights.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from separatrix.checks.exact import Array
from separatrix.checks.stack import Head, Live, Writers, array
from separatrix.errors import CheckFailed
from separatrix.mixers.gdn import GDNMixer
from separatrix.mixers.linear import LinearMixer
from separatrix.proofs.float32 import ELU_OFF, GATES_OFF

_AWAY = -64.0
_KEEP = 32.0


@dataclass(frozen=True)
class Arrival:
    """What arrives at the last token: `scale` times the value at the place, up to what
    `roundoff.Carry` makes of the other two.
    """

    scale: float
    others: Fraction
    shrinks: Fraction


def prove_arrival(
    writers: Writers, part: Live, position: Array, place: int
) -> tuple[Head, Arrival]:
    """The live head, and what it brings from `place` to the last of the positions. Raises
    CheckFailed where the weights do not bear it out.
    """
    index, head = part.recurrent_head()
    where = f"layer {part.layer}"
    for matrix, name, source in (
        (head.q, "q", "positions"),
        (head.k, "k", "positions"),
        (head.v, "v", "tokens"),
    ):
        writers.allow(matrix.reads, f"{where}, {name}", source)
    queries = head.q.of_rows(position)
    keys = head.k.of_rows(position)
    mixer = part.mixer
    if isinstance(mixer, LinearMixer) and mixer.feature == "elu" and mixer.normaliser:
        away = np.delete(keys, place, 0)
        if queries.any() or keys[place].any() or (away > _AWAY).any():
            raise CheckFailed(
                f"{where}: with feature elu, queries and the key at position {place} are 0, and"
                f" other keys at most {_AWAY:g}"
            )
        return head, Arrival(1.0, ELU_OFF, Fraction(0))
    if isinstance(mixer, LinearMixer) and mixer.feature in ("identity", "relu"):
        if mixer.feature == "relu":
            queries = np.maximum(queries, 0.0)
            keys = np.maximum(keys, 0.0)
        weight = _only_product(queries, keys, place, where)
        return head, Arrival(1.0 if mixer.normaliser else weight, Fraction(0), Fraction(0))
    if isinstance(mixer, GDNMixer):
        weight = _only_product(queries, keys, place, where)
        _open_gates(mixer, index, where)
        return head, Arrival(float(np.sign(weight)) / 2, Fraction(0), GATES_OFF)
    raise CheckFailed(
        f"{where}: no proof is known that {mixer.mechanism.name} with these options carries a value"
    )


def _only_product(queries: Array, keys: Array, place: int, where: str) -> float:
    """The one product <q, k> that is not zero: of the last query with the key at `place`, in one
    dimension, a power of two.
    """
    if np.delete(keys, place, 0).any() or queries[:-1].any():
        raise CheckFailed(
            f"{where}: a key other than that of position {place}, or a query other than the last,"
            " is not zero"
        )
    products = queries[-1] * keys[place]
    if (
        (queries[-1] != 0.0).sum() != 1
        or (keys[place] != 0.0).sum() != 1
        or np.frexp(abs(products.sum()))[0] != 0.5
    ):
        raise CheckFailed(
            f"{where}: the last query and the key of position {place} do not meet in one dimension,"
            " in a power of two"
        )
    return float(products.sum())


def _open_gates(mixer: GDNMixer, head: int, where: str) -> None:
    """Raises CheckFailed unless every gate is a constant: b = 1/2, and a = exp(-softplus(z)) =
    sigmoid(-z) at least sigmoid(32) in the live head.
    """
    bias = array(mixer.a.bias)
    if (
        array(mixer.a.weight).any()
        or array(mixer.b.weight).any()
        or array(mixer.rate).any()
        or -bias[head] < _KEEP
        or np.delete(bias, head).any()
    ):
        raise CheckFailed(f"{where}: its gates are not b = 1/2 and a = sigmoid({_KEEP:g}) or more")
