"""Every mechanism's declared sizes, one dict of them by name."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import fields
from typing import Any

from separatrix.core.errors import UnknownNameError
from separatrix.stacks.mechanisms.base import (
    DECLARED,
    LARGEST_SIZE,
    ROWS,
    CacheItem,
    CacheKind,
    LayerKind,
    Mechanism,
)
from separatrix.stacks.mechanisms.blocks import NSA, MoBA, Sparse
from separatrix.stacks.mechanisms.latent_cache import (
    DSA,
    Chosen,
    Compressed,
    Indexed,
    Latent,
    LatentCache,
)
from separatrix.stacks.mechanisms.matrix_state import (
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
from separatrix.stacks.mechanisms.recurrent_state import (
    RGLRU,
    RWKV4,
    Automaton,
    Mamba,
    Mamba2,
    PositionWise,
    ShortConvolution,
)
from separatrix.stacks.mechanisms.softmax import (
    Chunked,
    Fox,
    Full,
    Reused,
    ReusedWindow,
    Softmax,
    Window,
)

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
    "Chosen",
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

MECHANISMS: dict[str, type[Mechanism]] = {name: DECLARED[name] for name in ROWS}
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
