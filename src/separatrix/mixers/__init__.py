"""Token mixers: every mechanism as an `nn.Module` with a parallel form and a recurrence."""

from __future__ import annotations

from separatrix.core.errors import SizeError
from separatrix.mixers.automaton import AutomatonMixer
from separatrix.mixers.base.mixer import Mixer, State, state_numbers
from separatrix.mixers.channels import MambaMixer, RGLRUMixer, ShortConvolutionMixer
from separatrix.mixers.decayed import GLAMixer, HGRN2Mixer, LightningMixer, Mamba2Mixer, RetNetMixer
from separatrix.mixers.delta import DeltaNetMixer, DeltaProductMixer, GDNMixer, KDAMixer
from separatrix.mixers.full import FoxMixer, FullMixer
from separatrix.mixers.indexed import DSAMixer, IndexedMixer
from separatrix.mixers.kernels import backend
from separatrix.mixers.linear import LinearMixer
from separatrix.mixers.loglinear import LogLinearGDNMixer, LogLinearMamba2Mixer, LogLinearMixer
from separatrix.mixers.mla import MLAMixer
from separatrix.mixers.mlstm import MLSTMMixer
from separatrix.mixers.rwkv import RWKV6Mixer, RWKVMixer
from separatrix.mixers.sparse import MoBAMixer, NSAMixer, SparseMixer
from separatrix.mixers.window import ChunkedMixer, WindowMixer
from separatrix.stacks.mechanisms import MECHANISMS, Mechanism

__all__ = [
    "DECLARED_ONLY",
    "MIXERS",
    "OTHER_FORMS",
    "Mixer",
    "State",
    "backend",
    "mixer",
    "state_numbers",
]

MIXERS: dict[str, type[Mixer]] = {
    "full": FullMixer,
    "fox": FoxMixer,
    "mla": MLAMixer,
    "window": WindowMixer,
    "chunked": ChunkedMixer,
    "sparse": SparseMixer,
    "nsa": NSAMixer,
    "moba": MoBAMixer,
    "indexed": IndexedMixer,
    "dsa": DSAMixer,
    "linear": LinearMixer,
    "lightning": LightningMixer,
    "retnet": RetNetMixer,
    "gla": GLAMixer,
    "hgrn2": HGRN2Mixer,
    "mamba": MambaMixer,
    "mamba2": Mamba2Mixer,
    "mlstm": MLSTMMixer,
    "deltanet": DeltaNetMixer,
    "gdn": GDNMixer,
    "deltaproduct": DeltaProductMixer,
    "kda": KDAMixer,
    "rwkv": RWKVMixer,
    "rglru": RGLRUMixer,
    "loglinear": LogLinearMixer,
    "shortconv": ShortConvolutionMixer,
    "automaton": AutomatonMixer,
}

OTHER_FORMS: dict[tuple[str, str, object], type[Mixer]] = {
    ("loglinear", "base", "gdn"): LogLinearGDNMixer,
    ("loglinear", "base", "mamba2"): LogLinearMamba2Mixer,
    ("rwkv", "version", 6): RWKV6Mixer,
}
"""(mechanism, size, value) -> the mixer of a mechanism where that size has that value."""

DECLARED_ONLY = tuple(name for name, cls in MECHANISMS.items() if cls.declared_only)
"""Mechanisms with declared sizes and no mixer: those not built yet, and the layer that mixes no
tokens.
"""


def mixer(mechanism: Mechanism, *, width: int) -> Mixer:
    """The mixer of a mechanism at its sizes, for a model of that width. Raises SizeError for one
    that has declared sizes only, or keeps more than it declares (a user's own).
    """
    if mechanism.name not in MIXERS:
        raise SizeError(
            f"'{mechanism.name}' has declared sizes but no mixer yet; mechanisms that can be built:"
            f" {', '.join(MIXERS)}"
        )
    for (name, size, value), form in OTHER_FORMS.items():
        if name == mechanism.name and mechanism.sizes()[size] == value:
            return form(mechanism, width=width)
    if mechanism.left_to_right:
        mechanism.cache(0)  # compares what a user's own mechanism declares with its state
    return MIXERS[mechanism.name](mechanism, width=width)
