"""The answer where no theorem decides, so that no question is left without one, and why none does:
what full attention lacks to look up places or to compare contents, recurrences to hold a stack of
brackets, and bounds to bite.
"""

from __future__ import annotations

from dataclasses import replace
from functools import partial

from separatrix import tasks
from separatrix.core.evidence.records import Verdict
from separatrix.core.numbers.selection import MOST_OFFSETS, selection_lead
from separatrix.stacks.architecture import Architecture
from separatrix.stacks.mechanisms import Mechanism
from separatrix.stacks.mechanisms.base import EXACT_FORMATS
from separatrix.tasks import Task
from separatrix.tasks.tracking import Tracked, tracked
from separatrix.theory.base import NEITHER, Theorem
from separatrix.theory.fails.p_parity import layer_settles
from separatrix.theory.solves.levels import Missing, by_levels
from separatrix.theory.solves.places import (
    counted_tokens,
    down,
    finders,
    full_heads,
    kind_of_readers,
    up,
)
from separatrix.theory.solves.products import mlp_of, numbers_of, readers, steps
from separatrix.theory.solves.recall import (
    MOST_AVERAGED,
    Wanted,
    comparing,
    told_places,
    wanted_by,
)
from separatrix.theory.solves.room import bits_of
from separatrix.theory.solves.states import Needed, stacked
from separatrix.theory.words import Words
from separatrix.theory.written import fitting

_LONG = 10**9
"""Sizes of prompts that nobody writes."""
_NO_CONTENTS = "too few key dimensions to compare values"


_lack = partial(Words, "")
"""What keeps theorems from deciding: in a sentence, and in a few words for a table; whether that
says no more than that nothing is known, of whatever else a stack may lack.
"""


class NothingKnown(Theorem):
    key = "none"
    shows = NEITHER

    def speaks_of(self, architecture: Architecture) -> bool:
        return True

    @property
    def cited(self) -> str:
        return ""

    def judge(self, architecture: Architecture, task: Task) -> Verdict:
        sentence = f"{self.title}: {why_open(architecture, task).why}"
        told = architecture.mlp is not None and tracked(task) is not None
        numbers = numbers_of(mlp_of(architecture)) if told else {}
        return self.verdict(architecture, task, "OPEN", sentence, numbers=numbers)

    def told(
        self, verdict: Verdict, task: Task, architecture: Architecture, *, thought: bool = False
    ) -> Words:
        return why_open(architecture, task)._replace(text=verdict.statement)


def why_open(architecture: Architecture, task: Task) -> Words:
    """What keeps theorems from deciding the task in this stack: the nearest thing that is known."""
    if not architecture.causal:
        return _lack(
            "tokens see later ones (causal=false), and theorems here are about causal attention",
            "theorems here are about causal attention",
        )
    # a window that sees the whole prompt is full attention
    seen = architecture.within(task.length + 1)
    found = _apart(seen, task)
    if found is not None:
        return found
    built = _unbuilt(seen, task)
    bound = _unbounded(seen, task)
    return _lack(built.why + bound.why, bound.short or built.short, built.general)


def _apart(architecture: Architecture, task: Task) -> Words | None:
    """What keeps Theorem P or the constructions for this task from the stack; None where that is
    another matter than places, contents, formats and scores.
    """
    if isinstance(task, tasks.Dyck):
        return unstacked(architecture, task)
    placed = architecture.positions != "none" and task.two_runs() is not None
    if placed and all(layer_settles(layer) is not None for layer, _ in architecture.counted()):
        return _lack(
            "its layers only move one way, but tokens know their places"
            f" (positions={architecture.positions}; a spec means embedded unless it says"
            " otherwise), and Theorem P is about those that do not",
            "no theorem where tokens know places",
            general=True,
        )
    full = [part for layer in architecture for part in layer if part.group == "full"]
    if full and not any(part.free_scores for part in full):
        return _lack(
            "scores of its full layers are capped, bounded, or made behind a norm of another kind,"
            " and what that leaves of a lead is not worked out",
            "capped scores: their leads not worked out",
        )
    n = task.length
    chosen = [part for layer in architecture for part in layer if part.group == "indexed"]
    rounded = _rounded(full or chosen, n)
    if rounded is not None:
        return rounded
    wanted = wanted_by(task)
    moved = tracked(task)
    match task:
        case tasks.Equality():
            return unplaced(architecture, n) or _no_blank(architecture, n)
        case tasks.Eva() | tasks.Index() | tasks.SeqComp():
            return unplaced(architecture, n)
        case tasks.Recall(question="first") if not full:
            said = "no two layers are shown to keep a key and to wait for it"
            return _lack(said, "no two layers shown to keep a key")
        case tasks.Copying() if full:
            return _uncopied(architecture, n)
        case tasks.KHop() if (said := _unhopped(architecture, task)) is not None:
            return said
        case _ if wanted is not None:
            if not any(comparing(architecture, wanted, n + 1)):
                return uncompared(architecture, wanted, n + 1)
            if wanted.averaged and wanted.letter * n > MOST_AVERAGED:
                said = f"of {n:,} tokens of {wanted.letter} bits an average is not shown to be told"
                return _lack(f"{said} from one of them", "averages of so many tokens not told")
            return unplaced(architecture, n)
        case _:
            return None if moved is None else unmultiplied(architecture, moved, n)


def _rounded(full: list[Mechanism], tokens: int) -> Words | None:
    """Which number formats keep layers from all constructions; None where some are known."""
    if not full or any(part.formats <= EXACT_FORMATS for part in full):
        return None
    formats = sorted({name for part in full for name in part.formats} - EXACT_FORMATS)
    those = " and ".join(formats)
    said = (
        f"its reading layers keep numbers in {those}: what rounding takes of a score's lead is"
        " worked out for fp64, fp32, bf16 and fp16 alone"
    )
    turned = next((part.rotation for part in full if part.rotation is not None), None)
    lead = selection_lead(turned, tokens, "bf16") if turned and tokens <= MOST_OFFSETS else None
    if lead is not None:
        said += (
            f" (an offset leads by {down(lead.gap)} of the largest score; bf16 may take"
            f" {up(lead.rounding)}, and coarser formats more)"
        )
    return _lack(said, f"rounding to {those} is not worked out")


def _uncopied(architecture: Architecture, tokens: int) -> Words | None:
    found = finders(architecture, address=1, payload=0, tokens=tokens, named=True)
    if len({one.layer for one, _ in found}) == 1:
        said = "one full layer finds tokens by addresses, and a copy takes two"
        return _lack(said, "a copy takes two full layers")
    if found:
        return None
    _, told, _ = told_places(architecture, tokens + 1)
    if finders(architecture, address=1, payload=0, tokens=tokens):
        if told > tokens:
            said = (
                "behind the layers that tell tokens their places no two are shown to find the mark"
                " and to compare addresses"
            )
            return _lack(said, "too few layers behind known places")
        return _lack(
            "by rotations alone no token knows its place, and so how far back to look: looking back"
            f" tells {told:,} of {tokens + 1:,} places",
            "rotations alone tell too few places",
        )
    return unplaced(architecture, tokens)


def _unhopped(architecture: Architecture, task: tasks.KHop) -> Words | None:
    found = len({one.layer for one in full_heads(architecture)})
    kept = any(part.registers(1) for layer in architecture for part in layer)
    keeps = f"its recurrences are not shown to keep {task.V:,} letters {task.k:,} times behind one"
    keeps = f"; {keeps} that brings the letter before" if kept else ""
    if not found:
        return _lack(keeps[2:], "too few letters are kept") if kept else None
    if architecture.positions != "embedded":
        said = (
            "its full layers are not shown in turn to tell tokens their places, to bring each the"
            " one before it, to find the latest one of a letter and to double the hops"
        )
        return _lack(said + keeps, "no layers tell places, search and hop")
    doubling = task.k.bit_length()
    ways = (
        f"look for the latest place of a letter, at once by {bits_of(task.n + 1)} heads in fp32 or"
        " digit by digit in several layers behind one that brings every token the letter before"
    )
    if found > doubling:
        said = f"its {found} full layers are not shown to {ways}, and {doubling} to double the hops"
        return _lack(said + keeps, "no layers search and hop in turn")
    said = (
        f"{task.k:,} hops take {doubling + 1} full layers, and it has {found}: {doubling} double"
        f" the hops, behind some that {ways}"
    )
    return _lack(said + keeps, f"takes {doubling + 1} full layers, and it has {found}")


def _unbuilt(architecture: Architecture, task: Task) -> Words:
    fit = fitting(task)
    reading = [part for layer in architecture for part in layer if part.reading]
    if not reading and tracked(task) is not None:
        said = "no layer is shown to turn its state over, or to fetch by offset"
        return _lack(said, "no layer is shown to turn its state over", general=True)
    if not reading and task.name != "recall":
        return _lack("no layer keeps every token", "no layer keeps every token", general=True)
    if fit is None:
        said = "no construction here is for this task"
        return _lack(said, "no construction for this task", general=True)
    wanted = wanted_by(task)
    heads = list(full_heads(architecture, choosing=True))
    many = fit in ("k-hop", "counting", "neighbour", "qsa") or (wanted and wanted.before > 1)
    if many and any(one.choice for one in heads):
        said = "an indexer chooses for all heads at once, so that a layer asks for one token"
        return _lack(said, "one choice of tokens for all heads", general=True)
    blocks = fit == "retrieval" and any(part.compresses_blocks for part in reading)
    if reading and not heads and not blocks:
        return _lack(
            f"the construction `{fit}` is for full attention, and it has {reading[0].title}",
            f"no construction for {reading[0].name} layers",
        )
    said = f"it is not shown to meet the premises of the construction `{fit}`"
    short = f"premises of construction `{fit}` not met"
    if fit in ("pairs", "equality") and len({one.layer for one in heads}) < 2:
        said, short = f"the construction `{fit}` takes two full layers", "takes two full layers"
    elif wanted is not None:
        brought = f"every token the {'one' if wanted.before == 1 else wanted.before} before it"
        said = f"no layer that compares stands behind one that brings {brought}"
        short = "no earlier layer brings the token before"
        if wanted.each:
            said += ", and before one that looks whether any found what it asks for"
            short = "no layers bring, compare and look in turn"
    return _lack(said, short, general=True)


def _unbounded(architecture: Architecture, task: Task) -> Words:
    if isinstance(task, tasks.SeqComp):
        return _lack("")
    if architecture.reading:
        return _lack("; bounds on it need a small cache, or a single layer")
    if task.prefix_classes() is None and task.table() is None:
        return _lack(
            "; how many of its prefixes must be told apart is not counted here",
            "prefixes to tell apart are not counted",
        )
    said = "; no bound here names a size at which it fails"
    family = task.family()
    # a small vocabulary holds few contexts, or keys: no prompt is long enough for a bound
    if family.largest < _LONG:
        said += f": with {family.described} sizes end at {family.grows} = {family.largest:,}"
    return _lack(said)


def unmultiplied(architecture: Architecture, moved: Tracked, letters: int) -> Words | None:
    """Why no layers are known to multiply so many letters; None where none reads."""
    found = readers(architecture, moved.things, letters, blank=False)
    _, product = steps(architecture, found, moved.things, mlp_of(architecture), letters + 1)
    placed = unplaced(architecture, letters)
    if product <= 1:
        return placed
    windows = all(reader.window is not None for reader in found.values())
    who = "windows" if windows else "layers that read"
    reached = f"its {who} are known to multiply {product - 1:,} letters by their offsets"
    if placed is not None:
        return _lack(f"{reached}; {placed.why}", placed.short)
    return _lack(reached, f"weights are known up to n = {product - 1:,}")


def unstacked(architecture: Architecture, task: tasks.Dyck) -> Words | None:
    """Why no layers are known to count brackets and to keep them; None where some are."""
    needed = Needed.of(task)
    missing = by_levels(architecture, task)
    if not isinstance(missing, Missing) or stacked(architecture, needed) is not None:
        return None
    parts = [part for layer in architecture for part in layer]
    if any(full_heads(architecture)):
        return _lack(missing.why, missing.short)
    if not any(part.adds_up for part in parts):
        return _lack(
            "no layer is shown to count open brackets: that takes a plain sum over all tokens,"
            " without decay, normaliser or norm (linear attention with normaliser=false)",
            "no layer is shown to count brackets",
        )
    kept = [part.slots for part in parts if part.slots is not None]
    if not kept:
        return _lack(
            "no layer is shown to keep what is open: that takes a delta rule that overwrites one"
            " slot for each depth, without convolution, norm or gate",
            "no layer is shown to keep a stack",
        )
    room = max(slots.places for slots in kept)
    if room < needed.slots:
        return _lack(
            f"its delta-rule layers keep {room:,} open brackets in a head, one for each key"
            f" dimension, and here {needed.slots:,} may be open",
            "too few slots for what is open",
        )
    if stacked(architecture, replace(needed, tokens=1)) is not None:
        said = "its formats do not hold every sum over so many tokens"
        return _lack(said, "its formats hold no sums so long")
    return _lack(
        "the layer that counts must stand before two delta-rule layers, the first of them with"
        f" {needed.slots:,} key dimensions and {needed.bits} value dimensions",
        "its layers stand in another order",
    )


def uncompared(architecture: Architecture, wanted: Wanted, tokens: int) -> Words | None:
    """Why no full layer compares what is looked up among so many tokens; None where one does."""
    heads, needed = list(full_heads(architecture, choosing=True)), wanted.key
    most = max((one.content_dims for one in heads), default=needed)
    if most >= needed:
        if not heads or not all(one.part.normed and not one.choice for one in heads):
            return None
        return _lack(
            "behind a norm of queries and keys the comparison of two values takes twice the"
            f" {needed:,} key dimensions, or in fp32 and wider one more",
            _NO_CONTENTS,
        )
    if architecture.positions in _POSITIONS:
        return _POSITIONS[architecture.positions]
    if not most:
        turned = "rotations turn every key dimension"
        letter, many = wanted.letter, wanted.before
        each = (b for b in range(letter, 0, -1) if any(one.slow(b, many, tokens) for one in heads))
        if held := many * next(each, 0):
            return _lack(
                f"{turned} of its full layers with the distance: over {tokens:,} tokens their"
                f" slowest pairs are shown to compare {held:,} bits of {many * letter:,}",
                f"slow pairs of rotations: {held:,} of {many * letter:,} bits",
            )
        return _lack(
            f"{turned} of its full layers with the distance, so that the bits of two values are not"
            " shown to compare",
            turned,
        )
    kind = kind_of_readers(architecture)
    left = f"its {kind} layers compare contents in {most:,} key dimensions"
    if any(one.part.rotation for one in heads):
        left = f"rotations leave {most:,} key dimensions of its {kind} layers as they are"
    return _lack(f"{left}, and comparing two values takes {needed:,}", _NO_CONTENTS)


def unplaced(architecture: Architecture, tokens: int) -> Words | None:
    """Why no full layer of a stack is known to find tokens by their places; None where one is."""
    heads = list(full_heads(architecture, choosing=True))
    if not heads or finders(architecture, address=1, payload=0, tokens=tokens, choosing=True):
        return None
    if architecture.positions != "none":
        return _POSITIONS.get(architecture.positions)
    rotated = [one for one in heads if one.part.rotation is not None]
    if not rotated:
        counted = max(counted_tokens(architecture, one.layer) for one in heads)
        supplied = (
            f"layers before them are shown to count {counted:,} tokens"
            if counted
            else "whether layers before them can supply places is not shown here"
        )
        return _lack(
            f"its full layers see no places (no embeddings, no rotation): {supplied}",
            "its full layers see no places",
        )
    if tokens > MOST_OFFSETS:
        upto = f"examined for up to {MOST_OFFSETS:,} tokens"
        return _lack(f"rotations are {upto}", f"rotations {upto}")
    part, head = rotated[0].part, rotated[0].head
    lead = rotated[0].place_lead(tokens)
    if lead is None and rotated[0].choice:
        said = "its indexer is not turned by places, and so finds no offset"
        return _lack(said, "its indexer finds no offset")
    if lead is None:
        return _lack(
            f"what rounding does to rotations in {head.format} is not known here",
            f"rounding of rotations in {head.format}: unknown",
        )
    return _lack(
        f"rotations alone ({part.rotation}) are not shown to tell {tokens:,} places apart in"
        f" {head.format}: the offset asked for leads by {down(lead.gap)} of the"
        f" largest score, and rounding may take {up(lead.rounding)}",
        "rotations not shown to tell places apart",
    )


_POSITIONS = {
    "alibi": _lack(
        "scores fall with distance (ALiBi), for which no construction is known here",
        "no construction where scores fall (ALiBi)",
    ),
    "unknown": _lack(
        "what gives its tokens their places is not known", "what gives tokens places is not known"
    ),
}
"""What positions that are neither embedded nor rotations leave open."""


def _no_blank(architecture: Architecture, tokens: int) -> Words | None:
    """Why no full layer can fetch by offset and leave tokens without a partner blank."""
    heads = finders(architecture, address=1, payload=1, tokens=tokens, choosing=True)
    # without a full layer, or with one that finds places by address, rotations are not at fault
    if len(heads) < max(1, len(list(full_heads(architecture, choosing=True)))) or any(
        found.address or one.blank_beside(1, tokens) for one, found in heads
    ):
        return None
    return _lack(
        "by rotations alone the first string's tokens, which have no partner, are not shown to find"
        " none: the lead leaves no room for a start token at every distance",
        "no room for a start token",
    )
