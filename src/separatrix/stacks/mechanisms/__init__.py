"""Every mechanism's declared sizes, one dict of them by name."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import fields
from typing import Any

from separatrix.core.errors import UnknownNameError
from separatrix.stacks.mechanisms.automaton import Automaton
from separatrix.stacks.mechanisms.base import (
    LARGEST_SIZE,
    CacheItem,
    CacheKind,
    LayerKind,
    Mechanism,
)
from separatrix.stacks.mechanisms.chunked import Chunked
from separatrix.stacks.mechanisms.compressed import Compressed
from separatrix.stacks.mechanisms.deltanet import DeltaNet
from separatrix.stacks.mechanisms.deltaproduct import DeltaProduct
from separatrix.stacks.mechanisms.dsa import DSA
from separatrix.stacks.mechanisms.fox import Fox
from separatrix.stacks.mechanisms.full import Full
from separatrix.stacks.mechanisms.gdn import GatedDeltaNet
from separatrix.stacks.mechanisms.gla import GLA
from separatrix.stacks.mechanisms.hgrn2 import HGRN2
from separatrix.stacks.mechanisms.indexed import Indexed
from separatrix.stacks.mechanisms.kda import KDA
from separatrix.stacks.mechanisms.latent_cache import LatentCache
from separatrix.stacks.mechanisms.lightning import Lightning
from separatrix.stacks.mechanisms.linear import Linear
from separatrix.stacks.mechanisms.loglinear import LogLinear
from separatrix.stacks.mechanisms.mamba import Mamba
from separatrix.stacks.mechanisms.mamba2 import Mamba2
from separatrix.stacks.mechanisms.matrix_state import MatrixState
from separatrix.stacks.mechanisms.mla import Latent
from separatrix.stacks.mechanisms.mlstm import MLSTM
from separatrix.stacks.mechanisms.moba import MoBA
from separatrix.stacks.mechanisms.nsa import NSA
from separatrix.stacks.mechanisms.position_wise import PositionWise
from separatrix.stacks.mechanisms.retnet import RetNet
from separatrix.stacks.mechanisms.reused import Reused, ReusedWindow
from separatrix.stacks.mechanisms.rglru import RGLRU
from separatrix.stacks.mechanisms.rwkv import RWKV
from separatrix.stacks.mechanisms.rwkv4 import RWKV4
from separatrix.stacks.mechanisms.shortconv import ShortConvolution
from separatrix.stacks.mechanisms.softmax import Softmax
from separatrix.stacks.mechanisms.sparse import Sparse
from separatrix.stacks.mechanisms.window import Window

__all__ = [
    "ALSO_CALLED",
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
    "called",
    "check_size_names",
    "mechanism",
    "mechanism_named",
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


ALSO_CALLED = {
    "full": "attention softmax mha mqa gqa",
    "window": "swa sliding sliding_window local",
    "gdn": "gated_deltanet gateddeltanet",
    "deltanet": "delta",
    "kda": "kimi_delta",
    "mamba": "mamba1",
    "mamba2": "ssd",
    "rglru": "rg_lru hawk",
    "retnet": "retention",
    "mlstm": "xlstm",
}
"""Name -> what papers and files call it too."""
_ALIASES = {alias: name for name, aliases in ALSO_CALLED.items() for alias in aliases.split()}


def called(text: str) -> str:
    """The name in `MECHANISMS` that is meant, in any case or as others call it; "" for none."""
    folded = text.casefold()
    found = (text, folded, _ALIASES.get(folded, folded))
    return next((name for name in found if name in MECHANISMS), "")


def mechanism_named(text: str, *, where: str = "") -> str:
    """The same. Raises UnknownNameError where there is none."""
    if name := called(text):
        return name
    raise UnknownNameError.of(
        "mechanism", text, MECHANISMS, where=where, listing="separatrix list mechanisms"
    )


def mechanism(name: str, *, where: str = "", **sizes: Any) -> Mechanism:
    """The mechanism of that name at those sizes. Raises UnknownNameError for a name or size
    nobody knows, SizeError for a bad value.
    """
    cls = MECHANISMS[mechanism_named(name, where=where)]
    check_size_names(cls, sizes, where=where)
    return cls(**sizes)


def check_size_names(cls: type[Mechanism], sizes: Iterable[str], *, where: str = "") -> None:
    """Raises UnknownNameError when one of `sizes` is no size of the mechanism."""
    known = {f.name for f in fields(cls)}
    for size in sizes:
        if size not in known:
            raise UnknownNameError.of(f"size of '{cls.name}'", size, known, where=where)
