"""Every mechanism's declared sizes, one dict of them by name."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import fields
from typing import Any

from separatrix.architecture.mechanisms._base import LARGEST_SIZE, CacheItem, CacheKind, LayerKind, Mechanism, PositionWise
from separatrix.architecture.mechanisms.diagonal import RGLRU, RWKV4, Mamba, Mamba2, ShortConvolution
from separatrix.architecture.mechanisms.latent import Latent
from separatrix.architecture.mechanisms.recurrent import (
    GLA,
    HGRN2,
    KDA,
    MLSTM,
    RWKV,
    DeltaNet,
    DeltaProduct,
    GatedDeltaNet,
    Lightning,
    Linear,
    LogLinear,
    MatrixState,
    RetNet,
)
from separatrix.architecture.mechanisms.softmax import Chunked, Full, Softmax, Window
from separatrix.architecture.mechanisms.sparse import Compressed, Indexed, MoBA, Sparse
from separatrix.errors import UnknownNameError

__all__ = [
    "GLA",
    "HGRN2",
    "KDA",
    "LARGEST_SIZE",
    "MECHANISMS",
    "MLSTM",
    "RGLRU",
    "RWKV",
    "RWKV4",
    "CacheItem",
    "CacheKind",
    "Chunked",
    "Compressed",
    "DeltaNet",
    "DeltaProduct",
    "Full",
    "GatedDeltaNet",
    "Indexed",
    "Latent",
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
    "ShortConvolution",
    "Softmax",
    "Sparse",
    "Window",
    "check_size_names",
    "mechanism",
]

MECHANISMS: dict[str, type[Mechanism]] = {
    c.name: c
    for c in (
        *(Full, Latent, Window, Chunked, Sparse, MoBA, Indexed, Compressed),
        *(Linear, Lightning, RetNet, GLA, HGRN2, DeltaNet, GatedDeltaNet, DeltaProduct, KDA, MLSTM, RWKV, LogLinear),
        *(Mamba, Mamba2, RGLRU, RWKV4, ShortConvolution, PositionWise),
    )
}
"""Name -> class."""


def mechanism(name: str, *, where: str = "", **sizes: Any) -> Mechanism:
    """The mechanism of that name at those sizes. Raises UnknownNameError for a name or size nobody knows, SizeError for a bad value."""
    if name not in MECHANISMS:
        raise UnknownNameError.of("mechanism", name, MECHANISMS, where=where, listing="separatrix mechanisms")
    cls = MECHANISMS[name]
    check_size_names(cls, sizes, where=where)
    return cls(**sizes)


def check_size_names(cls: type[Mechanism], sizes: Iterable[str], *, where: str = "") -> None:
    """Raises UnknownNameError when one of `sizes` is no size of the mechanism."""
    known = {f.name for f in fields(cls)}
    for size in sizes:
        if size not in known:
            raise UnknownNameError.of(f"size of '{cls.name}'", size, known, where=where)
