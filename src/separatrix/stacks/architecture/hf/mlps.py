"""How wide the MLPs of a released model are, from the sizes in its file."""

from __future__ import annotations

from math import frexp

from separatrix.core.errors import ConfigError
from separatrix.stacks.architecture import Architecture
from separatrix.stacks.architecture.hf.fields import Fields
from separatrix.stacks.architecture.weights import Mlp


def mlp(fields: Fields, architecture: Architecture, *, bare: bool) -> Mlp | None:
    """The units that every token has in each MLP, or None where the file does not tell them.
    `bare`: whether recurrent layers have no MLP behind them.

    Of the k experts of a token, 2^j, the largest power of two, can be given one weight, a power of
    two, by a constant routing that leaves the others next to nothing; a factor of their sum that is
    no power of two would have to be undone, so that such experts do not count. Shared experts do.
    """
    try:
        found = _widths(fields)
    except ConfigError:
        # of a field that nothing else is read from: a width is assumed, the card is there
        return None
    if not found or min(found) < 1:
        return None
    apart = any(not part.mixes_tokens for layer, _ in architecture.counted() for part in layer)
    return Mlp(min(found), stated=True, every=not (bare or apart))


def _widths(fields: Fields) -> list[int]:
    """The width of every kind of MLP that layers have; empty where one is not known."""
    dense = fields.optional_size("intermediate_size", "n_inner", "ffn_dim")
    chosen = fields.optional_size(
        "num_experts_per_tok", "num_experts_per_token", "top_k_experts", low=0
    )
    if not chosen:
        return [] if dense is None else [dense]
    own = fields.optional_size("moe_intermediate_size")
    hidden = dense if own is None else own
    if hidden is None:
        return []
    shared = fields.optional_size(
        "shared_expert_intermediate_size", "shared_intermediate_size", low=0
    )
    if shared is None:
        shared = hidden * (fields.optional_size("n_shared_experts", low=0) or 0)
    scale = fields.value("routed_scaling_factor")
    # where such files are silent, classes have factors of their own
    silent = scale is None and not fields.has("n_routed_experts")
    try:
        clean = silent or (isinstance(scale, int | float) and frexp(scale)[0] == 0.5)
    except OverflowError:
        clean = False
    routed = hidden << (chosen.bit_length() - 1) if clean else 0
    # layers without experts have the dense width: all that a file without sizes of its own
    # for experts may hold is one width for both
    mixed = (fields.optional_size("expert_layer_period") or 1) > 1 or own is not None
    return [routed + shared, *([dense] if mixed and dense is not None else [])]
