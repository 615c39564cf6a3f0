"""Why no construction covers a stack: what full attention lacks to look up places or to compare
contents, and recurrences to hold a stack of brackets.
"""

from __future__ import annotations

from dataclasses import replace

from separatrix.architecture import Architecture
from separatrix.numbers.selection import MOST_OFFSETS
from separatrix.tasks import Dyck, Equality, Eva, Index, SeqComp, Task, TwoSum
from separatrix.theory.fails.p_parity import layer_settles
from separatrix.theory.solves.brackets import Needed, stacked
from separatrix.theory.solves.places import (
    blank_beside,
    content_dims,
    counted_tokens,
    down,
    place_lead,
    places,
    up,
)
from separatrix.theory.solves.room import TAGS, bits_of, full_heads


def why_open(architecture: Architecture, task: Task) -> str:
    """What keeps Theorem P or the constructions for this task from the stack, "" where that is no
    matter of positions, or nothing here is about the task.
    """
    if isinstance(task, Dyck):
        return why_unstacked(architecture, task)
    placed = architecture.positions != "none" and task.two_runs() is not None
    if placed and all(layer_settles(layer) is not None for layer, _ in architecture.counted()):
        return (
            "its layers only move one way, but tokens know their places"
            f" (positions={architecture.positions}; a spec means embedded unless it says"
            " otherwise), and Theorem P is about those that do not"
        )
    if not isinstance(task, TwoSum | Equality | Eva | Index | SeqComp):
        return ""
    full = [part for layer in architecture for part in layer if part.group == "full"]
    if full and not any(part.free_scores for part in full):
        return (
            "scores of its full layers are capped, bounded, or made behind a norm of another kind,"
            " and what that leaves of a lead is not worked out"
        )
    match task:
        case TwoSum():
            return why_uncompared(architecture, bits_of(task.M) + TAGS)
        case Equality():
            return why_unplaced(architecture, task.length) or _why_no_blank(
                architecture, task.length
            )
        case Eva() | Index() | SeqComp():
            return why_unplaced(architecture, task.length)


def why_unstacked(architecture: Architecture, task: Dyck) -> str:
    """Why no layers are known to count brackets and to keep them, "" where some are."""
    needed = Needed.of(task)
    if stacked(architecture, needed) is not None:
        return ""
    parts = [part for layer in architecture for part in layer]
    if not any(part.adds_up for part in parts):
        return (
            "no layer is shown to count open brackets: that takes a plain sum over all tokens,"
            " without decay, normaliser or norm (linear attention with normaliser=false)"
        )
    kept = [part.slots for part in parts if part.slots is not None]
    if not kept:
        return (
            "no layer is shown to keep what is open: that takes a delta rule that overwrites one"
            " slot for each depth, without convolution, norm or gate"
        )
    room = max(slots.places for slots in kept)
    if room < needed.slots:
        return (
            f"its delta-rule layers keep {room:,} open brackets in a head, one for each key"
            f" dimension, and here {needed.slots:,} may be open"
        )
    if stacked(architecture, replace(needed, tokens=1)) is not None:
        return "its formats do not hold every sum over so many tokens"
    return (
        "the layer that counts must stand before two delta-rule layers, the first of them with"
        f" {needed.slots:,} key dimensions and {needed.bits} value dimensions"
    )


def why_uncompared(architecture: Architecture, needed: int) -> str:
    """Why no full layer compares contents of so many dimensions, "" where one does."""
    found = [content_dims(architecture, part, head) for _, part, head in full_heads(architecture)]
    most = max(found, default=needed)
    if most >= needed:
        heads = [part for _, part, _ in full_heads(architecture)]
        if heads and all(part.normed for part in heads):
            return (
                "behind a norm of queries and keys the comparison of two values takes twice the"
                f" {needed:,} key dimensions, or in fp32 and wider one more"
            )
        return ""
    if architecture.positions in ("alibi", "unknown"):
        return _positions(architecture)
    if not most:
        return (
            "rotations turn every key dimension of its full layers with the distance, so that the"
            " bits of two values do not compare"
        )
    if not any(part.rotation for _, part, _ in full_heads(architecture)):
        return (
            f"its full layers compare contents in {most:,} key dimensions, and comparing two values"
            f" takes {needed:,}"
        )
    return (
        f"rotations leave {most:,} key dimensions of its full layers as they are, and comparing two"
        f" values takes {needed:,}"
    )


def why_unplaced(architecture: Architecture, tokens: int) -> str:
    """Why no full layer of a stack is known to find tokens by their places, "" where one is."""
    heads = list(full_heads(architecture))
    if not heads or any(
        places(architecture, part, head, index=i, address=1, payload=0, tokens=tokens) is not None
        for i, part, head in heads
    ):
        return ""
    if architecture.positions != "none":
        return _positions(architecture)
    rotated = [(part, head) for _, part, head in heads if part.rotation is not None]
    if not rotated:
        counted = max(counted_tokens(architecture, i) for i, _, _ in heads)
        supplied = (
            f"layers before them are shown to count {counted:,} tokens"
            if counted
            else "whether layers before them can supply places is not shown here"
        )
        return f"its full layers see no places (no embeddings, no rotation): {supplied}"
    if tokens > MOST_OFFSETS:
        return f"rotations are examined for up to {MOST_OFFSETS:,} tokens"
    part, head = rotated[0]
    lead = place_lead(architecture, part, head, tokens)
    if lead is None:
        return f"what rounding does to rotations in {head.format} is not known here"
    return (
        f"rotations alone ({part.rotation}) are not shown to tell {tokens:,} places apart in"
        f" {head.format}: the offset asked for leads by {down(lead.gap)} of the"
        f" largest score, and rounding may take {up(lead.rounding)}"
    )


def _positions(architecture: Architecture) -> str:
    """What positions that are neither embedded nor rotations leave open."""
    return {
        "alibi": "scores fall with distance (ALiBi), for which no construction is known here",
        "unknown": "what gives its tokens their places is not known",
    }.get(architecture.positions, "")


def _why_no_blank(architecture: Architecture, tokens: int) -> str:
    """Why no full layer can fetch by offset and leave tokens without a partner blank."""
    heads = list(full_heads(architecture))
    by_offset = [
        (part, head)
        for i, part, head in heads
        if (found := places(architecture, part, head, index=i, address=1, payload=1, tokens=tokens))
        is not None
        and not found.address
    ]
    # without a full layer, or with one that finds places by address, rotations are not at fault
    if (
        not by_offset
        or len(by_offset) < len(heads)
        or any(
            blank_beside(architecture, part, head, payload=1, tokens=tokens)
            for part, head in by_offset
        )
    ):
        return ""
    return (
        "by rotations alone the first string's tokens, which have no partner, are not shown to find"
        " none: the lead leaves no room for a start token at every distance"
    )
