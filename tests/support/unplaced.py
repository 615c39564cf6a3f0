"""Layers without what a file says of positions: for tests of sizes, which tests of positions
complete.
"""

from __future__ import annotations

from dataclasses import fields, replace
from typing import Any

from separatrix.stacks.architecture import Architecture
from separatrix.stacks.architecture.hf import from_config
from separatrix.stacks.mechanisms import LatentCache, Mechanism
from separatrix.stacks.mechanisms.softmax import GatedSoftmax

_SAYS = ("positions", "rope", "rope_base", "rope_dim", "rope_scaling", "softcap", "bounded")


def unplaced(model: Architecture) -> Architecture:
    """The stack with the defaults of every field that speaks of positions, or that a model class
    fixes."""
    return replace(model, layers=tuple(tuple(map(_plain, layer)) for layer in model.layers))


def sizes_of(config: dict[str, Any]) -> Architecture:
    """What a file says but for positions."""
    return unplaced(from_config(config))


def _plain(part: Mechanism) -> Mechanism:
    # rope_dim of latent attention is a size of its cache
    kept = {"rope_dim"} if isinstance(part, LatentCache) else set[str]()
    # what a model class has around its softmax
    said = (*_SAYS, "qk_norm", "gate") if isinstance(part, GatedSoftmax) else _SAYS
    defaults = {f.name: f.default for f in fields(part) if f.name in said and f.name not in kept}
    return replace(part, **defaults) if defaults else part
