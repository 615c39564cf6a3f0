"""Every mechanism's declared sizes, one dict of them by name."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import fields
from typing import Any

from separatrix.core.errors import UnknownNameError
from separatrix.stacks.mechanisms.base import DECLARED, ROWS
from separatrix.stacks.mechanisms.base import LARGEST_SIZE as LARGEST_SIZE
from separatrix.stacks.mechanisms.base import CacheItem as CacheItem
from separatrix.stacks.mechanisms.base import LayerKind as LayerKind
from separatrix.stacks.mechanisms.base import Mechanism as Mechanism
from separatrix.stacks.mechanisms.chosen import DSA as DSA
from separatrix.stacks.mechanisms.chosen import NSA as NSA
from separatrix.stacks.mechanisms.chosen import Chosen as Chosen
from separatrix.stacks.mechanisms.chosen import Compressed as Compressed
from separatrix.stacks.mechanisms.chosen import Indexed as Indexed
from separatrix.stacks.mechanisms.chosen import Latent as Latent
from separatrix.stacks.mechanisms.chosen import LatentCache as LatentCache
from separatrix.stacks.mechanisms.chosen import MoBA as MoBA
from separatrix.stacks.mechanisms.chosen import Sparse as Sparse
from separatrix.stacks.mechanisms.recurrent_state import GLA as GLA
from separatrix.stacks.mechanisms.recurrent_state import HGRN2 as HGRN2
from separatrix.stacks.mechanisms.recurrent_state import KDA as KDA
from separatrix.stacks.mechanisms.recurrent_state import MLSTM as MLSTM
from separatrix.stacks.mechanisms.recurrent_state import RGLRU as RGLRU
from separatrix.stacks.mechanisms.recurrent_state import RWKV as RWKV
from separatrix.stacks.mechanisms.recurrent_state import RWKV4 as RWKV4
from separatrix.stacks.mechanisms.recurrent_state import Automaton as Automaton
from separatrix.stacks.mechanisms.recurrent_state import DeltaNet as DeltaNet
from separatrix.stacks.mechanisms.recurrent_state import DeltaProduct as DeltaProduct
from separatrix.stacks.mechanisms.recurrent_state import GatedDeltaNet as GatedDeltaNet
from separatrix.stacks.mechanisms.recurrent_state import Lightning as Lightning
from separatrix.stacks.mechanisms.recurrent_state import Linear as Linear
from separatrix.stacks.mechanisms.recurrent_state import LogLinear as LogLinear
from separatrix.stacks.mechanisms.recurrent_state import Mamba as Mamba
from separatrix.stacks.mechanisms.recurrent_state import Mamba2 as Mamba2
from separatrix.stacks.mechanisms.recurrent_state import MatrixState as MatrixState
from separatrix.stacks.mechanisms.recurrent_state import PositionWise as PositionWise
from separatrix.stacks.mechanisms.recurrent_state import RetNet as RetNet
from separatrix.stacks.mechanisms.recurrent_state import ShortConvolution as ShortConvolution
from separatrix.stacks.mechanisms.softmax import Chunked as Chunked
from separatrix.stacks.mechanisms.softmax import Fox as Fox
from separatrix.stacks.mechanisms.softmax import Full as Full
from separatrix.stacks.mechanisms.softmax import Reused as Reused
from separatrix.stacks.mechanisms.softmax import ReusedWindow as ReusedWindow
from separatrix.stacks.mechanisms.softmax import Softmax as Softmax
from separatrix.stacks.mechanisms.softmax import Window as Window

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


OWN = "A mixer of your own is known once its module is imported: --import MODULE."


def mechanism_named(text: str, *, where: str = "") -> str:
    """The same. Raises UnknownNameError where there is none."""
    if name := called(text):
        return name
    listing = "separatrix list mechanisms"
    raise UnknownNameError.of("mechanism", text, MECHANISMS, where=where, listing=listing, more=OWN)


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
