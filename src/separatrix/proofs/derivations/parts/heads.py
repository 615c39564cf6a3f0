"""All heads of a layer of full attention, where several write."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from separatrix.core.errors import CheckFailed
from separatrix.mixers.full import FullMixer
from separatrix.proofs.derivations.parts.live_parts import MATRICES, Head, Live, array
from separatrix.proofs.machine import Array, Enclosure, linear


@dataclass(frozen=True)
class Heads:
    """The heads that write, and the output map of all (width, heads * value_dim)."""

    each: tuple[Head, ...]
    o: Array
    value_dim: int
    where: str

    def written(self, averages: dict[int, Enclosure]) -> Enclosure:
        """What averages add to the stream: by the number of a head, all with as many rows; heads
        that are not named give 0.
        """
        some = next(iter(averages.values()))
        rows = len(some.mid)
        mid = np.zeros((rows, self.o.shape[1]))
        rad = np.zeros_like(mid)
        for index, given in averages.items():
            own = slice(index * self.value_dim, (index + 1) * self.value_dim)
            mid[:, own] = given.mid
            rad[:, own] = given.rad
        return linear(some.like(mid, rad), self.o, what=f"{self.where}, o")


def full_heads(part: Live) -> Heads:
    """The heads of plain full attention, each with keys of its own. Raises CheckFailed for another
    mixer, for a parameter that is not read, and for a head that does not write but is not zero.
    """
    mixer = part.mixer
    if not isinstance(mixer, FullMixer) or not mixer.mechanism.plain:
        raise CheckFailed(f"{part.where}: the proof is about plain full attention")
    for name, _ in mixer.named_parameters():
        if name not in MATRICES:
            raise CheckFailed(f"{part.where}: nothing is proved about its parameter {name}")
    o = array(mixer.get_parameter("o.weight"))
    q, k, v = (array(mixer.get_parameter(f"{name}.weight")) for name in "qkv")
    q = q.reshape(mixer.heads, mixer.head_dim, -1)
    if len(k) != mixer.heads * mixer.head_dim or len(v) != mixer.heads * mixer.dv:
        raise CheckFailed(f"{part.where}: its heads share keys, which the proof is not about")
    k = k.reshape(mixer.heads, mixer.head_dim, -1)
    v = v.reshape(mixer.heads, mixer.dv, -1)
    own = o.reshape(len(o), mixer.heads, mixer.dv)
    live: list[Head] = []
    for index in range(mixer.heads):
        if own[:, index].any():
            live.append(Head(index, q[index], k[index], v[index], own[:, index]))
        elif q[index].any() or k[index].any() or v[index].any():
            raise CheckFailed(f"{part.where}: head {index} writes nothing, but is not zero")
    return Heads(tuple(live), o, mixer.dv, part.where)
