"""Why nothing decides a task in a stack: what full attention lacks to look up places or to compare
contents, recurrences to hold a stack of brackets, and bounds to bite.
"""

from __future__ import annotations

from dataclasses import replace

from separatrix.core.numbers.selection import MOST_OFFSETS, selection_lead
from separatrix.stacks.architecture import Architecture
from separatrix.stacks.mechanisms import Mechanism
from separatrix.stacks.mechanisms.base import EXACT_FORMATS
from separatrix.tasks import (
    Copying,
    Dyck,
    Equality,
    Eva,
    Index,
    KHop,
    Recall,
    SeqComp,
    Task,
    TwoSum,
)
from separatrix.tasks.functions.tracked import Tracked, tracked
from separatrix.theory.fails.p_parity import layer_settles
from separatrix.theory.solves.brackets import Needed, stacked
from separatrix.theory.solves.fan_in import mlp_of, readers, steps
from separatrix.theory.solves.lookup import comparing, wanted_by
from separatrix.theory.solves.places import (
    blank_beside,
    content_dims,
    counted_tokens,
    down,
    finders,
    place_lead,
    up,
)
from separatrix.theory.solves.room import TAGS, bits_of, full_heads

FITTING = {
    **dict.fromkeys(("eva", "index"), "retrieval"),
    **dict.fromkeys(("mqar", "noisy-recall", "cgram"), "lookup"),
    **dict.fromkeys(("parity", "modular", "permutation", "group"), "S"),
    **{name: name for name in ("copying", "counting", "equality", "neighbour", "qsa", "recall")},
    "khop": "k-hop",
    "seqcomp": "composition",
    "twosum": "match2",
}
"""Name of a task -> key of the theorem whose premises a stack must meet."""


def why_open(architecture: Architecture, task: Task) -> str:
    """What keeps theorems from deciding the task in this stack: the nearest thing that is known."""
    return _why_apart(architecture, task) or (
        _why_unbuilt(architecture, task) + _why_unbounded(architecture, task)
    )


def _why_apart(architecture: Architecture, task: Task) -> str:
    """What keeps Theorem P or the constructions for this task from the stack, "" where that is
    another matter than places, contents, formats and scores.
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
    full = [part for layer in architecture for part in layer if part.group == "full"]
    if full and not any(part.free_scores for part in full):
        return (
            "scores of its full layers are capped, bounded, or made behind a norm of another kind,"
            " and what that leaves of a lead is not worked out"
        )
    wanted = wanted_by(task)
    moved = tracked(task)
    rounded = _why_rounded(full, task.length)
    if rounded:
        return rounded
    match task:
        case TwoSum():
            return why_uncompared(architecture, bits_of(task.M) + TAGS)
        case Equality():
            return why_unplaced(architecture, task.length) or _why_no_blank(
                architecture, task.length
            )
        case Eva() | Index() | SeqComp():
            return why_unplaced(architecture, task.length)
        case Recall(question="first"):
            return "" if full else "no two layers are shown to keep a key and to wait for it"
        case Copying() if full:
            return _why_uncopied(architecture, task.length)
        case KHop():
            return _why_unhopped(architecture, task) if full else ""
        case _ if wanted is not None:
            return (
                why_unplaced(architecture, task.length)
                if comparing(architecture, wanted)
                else why_uncompared(architecture, wanted.key)
            )
        case _:
            return "" if moved is None else why_unmultiplied(architecture, moved, task.length)


def _why_rounded(full: list[Mechanism], tokens: int) -> str:
    """Which number formats keep full layers from all constructions, "" where some are known."""
    if not full or any(part.formats <= EXACT_FORMATS for part in full):
        return ""
    formats = sorted({name for part in full for name in part.formats} - EXACT_FORMATS)
    said = (
        f"its full layers keep numbers in {' and '.join(formats)}: what rounding takes of a score's"
        " lead is worked out for fp64, fp32, bf16 and fp16 alone"
    )
    turned = next((part.rotation for part in full if part.rotation is not None), None)
    lead = selection_lead(turned, tokens, "bf16") if turned and tokens <= MOST_OFFSETS else None
    if lead is None:
        return said
    return (
        f"{said} (an offset leads by {down(lead.gap)} of the largest score; bf16 may take"
        f" {up(lead.rounding)}, and coarser formats more)"
    )


def _why_uncopied(architecture: Architecture, tokens: int) -> str:
    found = finders(architecture, address=1, payload=0, tokens=tokens, named=True)
    if found:
        one = len({index for index, *_ in found}) == 1
        return "one full layer finds tokens by addresses, and a copy takes two" if one else ""
    if finders(architecture, address=1, payload=0, tokens=tokens):
        return "by rotations alone no token knows its place, and so how far back to look"
    return why_unplaced(architecture, tokens)


def _why_unhopped(architecture: Architecture, task: KHop) -> str:
    if architecture.positions != "embedded":
        return "k hops are built where embeddings give every token its place"
    depth = task.k.bit_length() + 1
    found = len({index for index, _, _ in full_heads(architecture)})
    if found < depth:
        return f"{task.k:,} hops take {depth} full layers, and it has {found}"
    return ""


def _why_unbuilt(architecture: Architecture, task: Task) -> str:
    key = FITTING.get(task.name)
    if isinstance(task, TwoSum) and task.form == "decision":
        key = "pairs"
    if not architecture.reading and tracked(task) is not None:
        return "no layer is shown to turn its state over, or to fetch by offset"
    if not architecture.reading and task.name != "recall":
        return "no layer keeps every token"
    if key is None:
        return "no construction here is for this task"
    reading = [part for layer in architecture for part in layer if part.reading]
    if reading and key != "retrieval" and not any(part.group == "full" for part in reading):
        return f"the construction `{key}` is for full attention, and it has {reading[0].title}"
    return f"it is not shown to meet the premises of the construction `{key}`"


def _why_unbounded(architecture: Architecture, task: Task) -> str:
    """Why no bound speaks either."""
    if isinstance(task, SeqComp):
        return ""
    if architecture.reading:
        return "; bounds on it need a small cache, or a single layer"
    if task.prefix_classes() is None and task.table() is None:
        return "; how many of its prefixes must be told apart is not counted here"
    return "; no bound here names a size at which it fails"


def why_unmultiplied(architecture: Architecture, moved: Tracked, letters: int) -> str:
    """Why no layers are known to multiply so many letters, "" where none reads."""
    found = readers(architecture, moved.things, letters, blank=False)
    _, product = steps(architecture, found, moved.things, mlp_of(architecture), letters + 1)
    reached = ""
    if product > 1:
        windows = all(reader.window is not None for reader in found.values())
        who = "windows" if windows else "layers that read"
        reached = f"its {who} multiply up to {product - 1:,} letters by their offsets"
    unplaced = why_unplaced(architecture, letters)
    return "; ".join(filter(None, (reached, unplaced)))


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
    if not heads or finders(architecture, address=1, payload=0, tokens=tokens):
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
    heads = finders(architecture, address=1, payload=1, tokens=tokens)
    # without a full layer, or with one that finds places by address, rotations are not at fault
    if len(heads) < max(1, len(list(full_heads(architecture)))) or any(
        found.address or blank_beside(architecture, part, head, payload=1, tokens=tokens)
        for _, part, head, found in heads
    ):
        return ""
    return (
        "by rotations alone the first string's tokens, which have no partner, are not shown to find"
        " none: the lead leaves no room for a start token at every distance"
    )
