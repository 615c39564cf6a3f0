"""Token mixers: every mechanism as an `nn.Module` with a parallel form and a recurrence."""

from __future__ import annotations

from separatrix.architecture.mechanisms import Mechanism
from separatrix.errors import SizeError
from separatrix.mixers._base import Mixer, State, state_numbers
from separatrix.mixers.full import FullMixer
from separatrix.mixers.gdn import GDNMixer
from separatrix.mixers.linear import LinearMixer
from separatrix.mixers.loglinear import LogLinearMixer
from separatrix.mixers.sparse import SparseMixer
from separatrix.mixers.window import WindowMixer

__all__ = ["DECLARED_ONLY", "MIXERS", "Mixer", "State", "mixer", "state_numbers"]

MIXERS: dict[str, type[Mixer]] = {
    "full": FullMixer,
    "window": WindowMixer,
    "linear": LinearMixer,
    "gdn": GDNMixer,
    "loglinear": LogLinearMixer,
    "sparse": SparseMixer,
}

DECLARED_ONLY = (
    *("mla", "chunked", "indexed", "compressed"),
    *(
        "lightning",
        "retnet",
        "gla",
        "hgrn2",
        "deltanet",
        "deltaproduct",
        "kda",
        "mlstm",
        "rwkv",
        "rwkv4",
        "mamba",
        "mamba2",
        "rglru",
        "shortconv",
        "mlp",
    ),
)
"""Mechanisms with declared sizes and no mixer: those not built yet, and the layer that mixes no tokens."""


def mixer(mechanism: Mechanism, *, width: int) -> Mixer:
    """The mixer of a mechanism at its sizes, for a model of that width. Raises SizeError for one that has declared sizes only."""
    if mechanism.name not in MIXERS:
        raise SizeError(f"'{mechanism.name}' has declared sizes but no mixer yet; mechanisms that can be built: {', '.join(MIXERS)}")
    if getattr(mechanism, "shared", False):
        raise SizeError(f"'{mechanism.name}' with shared=true (key and value in one) has declared sizes but no mixer; set shared=false")
    return MIXERS[mechanism.name](mechanism, width=width)
