"""Checkpoints of a pack: tensors and plain numbers in one file in the format of safetensors."""

from __future__ import annotations

import json
from typing import Any

from safetensors import SafetensorError
from safetensors.torch import load, save
from torch import Tensor

from separatrix.core.errors import EvidenceError
from separatrix.core.evidence.code import code_version
from separatrix.training.packs import Pack

FORMAT = 1
_STATE = "state"
WINDOW_NAME = "window"
"""The tensor of losses and accuracies."""
ENDED = "ended."
"""Before the keys of members that have ended, whose parameters are kept."""


def packed_bytes(tensors: dict[str, Tensor], state: dict[str, Any]) -> bytes:
    """A checkpoint. `state` holds what JSON can."""
    own = {name: tensor.detach().cpu().contiguous() for name, tensor in tensors.items()}
    text = json.dumps({"format": FORMAT, "version": code_version()} | state)
    return save(own, metadata={_STATE: text})


def unpacked(data: bytes) -> tuple[dict[str, Tensor], dict[str, Any]]:
    """Inverse of `packed_bytes`. Raises EvidenceError for what is no checkpoint of this format."""
    try:
        # safetensors: 8 bytes of length, then a header of JSON
        length = int.from_bytes(data[:8], "little")
        state = json.loads(json.loads(data[8 : 8 + length])["__metadata__"][_STATE])
        tensors = load(data)
    except (SafetensorError, ValueError, KeyError, TypeError) as error:
        raise EvidenceError("a checkpoint is damaged, or is none of a training") from error
    if state.get("format") != FORMAT:
        raise EvidenceError(
            f"a checkpoint has format {state.get('format')!r}; this version reads {FORMAT}"
        )
    return tensors, state


def halved(
    pack: Pack, data: bytes | None
) -> tuple[int, tuple[Pack, Pack] | None, tuple[bytes | None, bytes | None]]:
    """A pack's members that still train, in two packs, with the checkpoint of each; and the steps
    done. No packs where a single member is left.
    """
    if data is None:
        return 0, pack.halves() if len(pack.runs) > 1 else None, (None, None)
    tensors, state = unpacked(data)
    members: list[int] = state["members"]
    if len(members) < 2:
        return state["step"], None, (None, None)
    halves = Pack(tuple(pack.runs[member] for member in members)).halves()
    first = len(halves[0].runs)
    return (
        state["step"],
        halves,
        (
            _part(halves[0], members, slice(0, first), tensors, state),
            _part(halves[1], members, slice(first, None), tensors, state),
        ),
    )


def _part(
    pack: Pack,
    members: list[int],
    chosen: slice,
    tensors: dict[str, Tensor],
    state: dict[str, Any],
) -> bytes:
    """The checkpoint of some members, as a pack of their own."""
    own = {
        # the window has its members last
        name: tensor[..., chosen] if name == WINDOW_NAME else tensor[chosen]
        for name, tensor in tensors.items()
        if not name.startswith(ENDED)
    }
    places = members[chosen]
    changed = {
        "pack": pack.key,
        "keys": pack.keys,
        "members": list(range(len(places))),
        "outcomes": {},
    } | {name: [state[name][place] for place in places] for name in ("shares", "watches")}
    return packed_bytes(own, state | changed)
