"""Every mechanism's declared sizes, one dict of them by name."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import fields
from typing import Any

from separatrix.errors import UnknownNameError
from separatrix.mechanisms.automaton import Automaton
from separatrix.mechanisms.base import LARGEST_SIZE, CacheItem, CacheKind, LayerKind, Mechanism
from separatrix.mechanisms.chunked import Chunked
from separatrix.mechanisms.compressed import Compressed
from separatrix.mechanisms.deltanet import DeltaNet
from separatrix.mechanisms.deltaproduct import DeltaProduct
from separatrix.mechanisms.dsa import DSA
from separatrix.mechanisms.fox import Fox
from separatrix.mechanisms.full import Full
from separatrix.mechanisms.gdn import GatedDeltaNet
from separatrix.mechanisms.gla import GLA
from separatrix.mechanisms.hgrn2 import HGRN2
from separatrix.mechanisms.indexed import Indexed
from separatrix.mechanisms.kda import KDA
from separatrix.mechanisms.latent_cache import LatentCache
from separatrix.mechanisms.lightning import Lightning
from separatrix.mechanisms.linear import Linear
from separatrix.mechanisms.loglinear import LogLinear
from separatrix.mechanisms.mamba import Mamba
from separatrix.mechanisms.mamba2 import Mamba2
from separatrix.mechanisms.matrix_state import MatrixState
from separatrix.mechanisms.mla import Latent
from separatrix.mechanisms.mlstm import MLSTM
from separatrix.mechanisms.moba import MoBA
from separatrix.mechanisms.nsa import NSA
from separatrix.mechanisms.position_wise import PositionWise
from separatrix.mechanisms.retnet import RetNet
from separatrix.mechanisms.reused import Reused, ReusedWindow
from separatrix.mechanisms.rglru import RGLRU
from separatrix.mechanisms.rwkv import RWKV
from separatrix.mechanisms.rwkv4 import RWKV4
from separatrix.mechanisms.shortconv import ShortConvolution
from separatrix.mechanisms.softmax import Softmax
from separatrix.mechanisms.sparse import Sparse
from separatrix.mechanisms.window import Window

__all__ = [
    "DSA",
    "GLA",
    "HGRN2",
    "KDA",
    "LARGEST_SIZE",
    "MECHANISMS",
    "MLSTM",
    "NSA",
    "RGLRU",
    "RWKV",
    "RWKV4",
    "Automaton",
    "CacheItem",
    "CacheKind",
    "Chunked",
    "Compressed",
    "DeltaNet",
    "DeltaProduct",
    "Fox",
    "Full",
    "GatedDeltaNet",
    "Indexed",
    "Latent",
    "LatentCache",
    "LayerKind",
    "Lightning",
    "Linear",
    "LogLinear",
    "Mamba",
    "Mamba2",
    "MatrixState",
    "Mechanism",
    "MoBA",
    "PositionWise",
    "RetNet",
    "Reused",
    "ReusedWindow",
    "ShortConvolution",
    "Softmax",
    "Sparse",
    "Window",
    "check_size_names",
    "mechanism",
]

MECHANISMS: dict[str, type[Mechanism]] = {
    cls.name: cls
    for cls in (
        Full,
        Fox,
        Latent,
        Window,
        Chunked,
        Sparse,
        NSA,
        MoBA,
        Indexed,
        DSA,
        Compressed,
        Reused,
        ReusedWindow,
        Linear,
        Lightning,
        RetNet,
        GLA,
        HGRN2,
        DeltaNet,
        GatedDeltaNet,
        DeltaProduct,
        KDA,
        MLSTM,
        RWKV,
        LogLinear,
        Mamba,
        Mamba2,
        RGLRU,
        RWKV4,
        ShortConvolution,
        Automaton,
        PositionWise,
    )
}
"""Name -> class, in the order of tables."""


def mechanism(name: str, *, where: str = "", **sizes: Any) -> Mechanism:
    """The mechanism of that name at those sizes. Raises UnknownNameError for a name or size
    nobody knows, SizeError for a bad value.
    """
    if name not in MECHANISMS:
        raise UnknownNameError.of(
            "mechanism", name, MECHANISMS, where=where, listing="separatrix mechanisms"
        )
    cls = MECHANISMS[name]
    check_size_names(cls, sizes, where=where)
    return cls(**sizes)


def check_size_names(cls: type[Mechanism], sizes: Iterable[str], *, where: str = "") -> None:
    """Raises UnknownNameError when one of `sizes` is no size of the mechanism."""
    known = {f.name for f in fields(cls)}
    for size in sizes:
        if size not in known:
            raise UnknownNameError.of(f"size of '{cls.name}'", size, known, where=where)
