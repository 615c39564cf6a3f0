"""The answer where no theorem decides, so that no question is left without one, and why none does:
what full attention lacks to look up places or to compare contents, recurrences to hold a stack of
brackets, and bounds to bite.
"""

from __future__ import annotations

from dataclasses import replace

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
from separatrix.theory.solves.contents import by_levels
from separatrix.theory.solves.places import (
    counted_tokens,
    down,
    finders,
    full_heads,
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
from separatrix.theory.solves.room import bits_of, kind_of_readers
from separatrix.theory.solves.states import Needed, stacked
from separatrix.theory.words import Words, lack
from separatrix.theory.written import fitting

_LONG = 10**9
"""Sizes of prompts that nobody writes."""
_NO_CONTENTS = "too few key dimensions to compare values"


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
        more = ", and tokens see later ones (causal=false)"
        return lack("theorems here are about causal attention", more)
    if not architecture.owned:
        more = (
            " for it, or tokens that none chooses: it reads another's, full or a window at least as"
            " long, or what a dsa layer chose, no more than its own topk, before it"
        )
        return lack("a layer reads a cache that no layer keeps", more)
    # a window that sees the whole prompt is full attention
    seen = architecture.within(task.length + 1)
    found = _apart(seen, task)
    if found is not None:
        return found
    built = _unbuilt(seen, task)
    bound, short = _unbounded(seen, task)
    return built._replace(why=built.why + bound, short=short or built.short)


def _apart(architecture: Architecture, task: Task) -> Words | None:
    """What keeps Theorem P or the constructions for this task from the stack; None where that is
    another matter than places, contents, formats and scores.
    """
    if isinstance(task, tasks.Dyck):
        return unstacked(architecture, task)
    placed = architecture.positions != "none" and task.two_runs() is not None
    if placed and all(layer_settles(layer) is not None for layer, _ in architecture.counted()):
        return lack(
            "no theorem where tokens know places",
            f" (positions={architecture.positions}; a spec means embedded unless it says"
            " otherwise): its layers only move one way, and Theorem P is about tokens that do not",
            general=True,
        )
    full = [part for layer in architecture for part in layer if part.group == "full"]
    if full and not any(part.free_scores for part in full):
        more = " (or bounded, or made behind a norm of another kind)"
        return lack("capped scores: their leads not worked out", more)
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
            return lack("no two layers shown to keep a key", " and to wait for it")
        case tasks.Copying() if full:
            return _uncopied(architecture, n)
        case tasks.KHop() if (said := _unhopped(architecture, task)) is not None:
            return said
        case _ if wanted is not None:
            if not any(comparing(architecture, wanted, n + 1)):
                return uncompared(architecture, wanted, n + 1)
            if wanted.averaged and wanted.letter * n > MOST_AVERAGED:
                more = f" from one of them: {n:,} of {wanted.letter} bits"
                return lack("averages of so many tokens not told", more)
            return unplaced(architecture, n)
        case _:
            return None if moved is None else unmultiplied(architecture, moved, n)


def _rounded(full: list[Mechanism], tokens: int) -> Words | None:
    """Which number formats keep layers from all constructions; None where some are known."""
    if not full or any(part.formats <= EXACT_FORMATS for part in full):
        return None
    formats = sorted({name for part in full for name in part.formats} - EXACT_FORMATS)
    more = ": what it takes of a score's lead is known for fp64, fp32, bf16 and fp16 alone"
    turned = next((part.rotation for part in full if part.rotation is not None), None)
    lead = selection_lead(turned, tokens, "bf16") if turned and tokens <= MOST_OFFSETS else None
    if lead is not None:
        more += (
            f" (an offset leads by {down(lead.gap)} of the largest score; bf16 may take"
            f" {up(lead.rounding)}, and coarser formats more)"
        )
    return lack(f"rounding to {' and '.join(formats)} is not worked out", more)


def _uncopied(architecture: Architecture, tokens: int) -> Words | None:
    found = finders(architecture, address=1, payload=0, tokens=tokens, named=True)
    if len({one.layer for one, _ in found}) == 1:
        return lack("a copy takes two full layers", ", and one finds tokens by addresses")
    if found:
        return None
    _, told, _ = told_places(architecture, tokens + 1)
    if not finders(architecture, address=1, payload=0, tokens=tokens):
        return unplaced(architecture, tokens)
    if told > tokens:
        more = ": no two are shown to find the mark and to compare addresses"
        return lack("too few layers behind known places", more)
    more = f": {told:,} of {tokens + 1:,}, and so no token knows how far back to look"
    return lack("rotations alone tell too few places", more)


def _unhopped(architecture: Architecture, task: tasks.KHop) -> Words | None:
    found = len({one.layer for one in full_heads(architecture)})
    keeps = ""
    if any(part.registers(1) for layer in architecture for part in layer):
        keeps = (
            f"; its recurrences are not shown to keep {task.V:,} letters {task.k:,} times behind"
            " one that brings the letter before"
        )
    if not found:
        return lack("too few letters are kept", keeps) if keeps else None
    if architecture.positions != "embedded":
        return lack("no layers tell places, search and hop", f" in turn{keeps}")
    doubling = task.k.bit_length()
    searching = (
        f"look for the latest place of a letter, at once by {bits_of(task.n + 1)} heads in fp32 or"
        " digit by digit in several layers behind one that brings every token the letter before"
    )
    if found > doubling:
        more = (
            f": its {found} full ones are not shown to {searching}, and {doubling} to double them"
        )
        return lack("no layers search and hop in turn", more + keeps)
    more = f": {doubling} double the hops, behind some that {searching}"
    return lack(f"takes {doubling + 1} full layers, and it has {found}", more + keeps)


def _unbuilt(architecture: Architecture, task: Task) -> Words:
    fit = fitting(task)
    reading = [part for layer in architecture for part in layer if part.reading]
    if not reading and tracked(task) is not None:
        more = ", or to fetch by offset"
        return lack("no layer is shown to turn its state over", more, general=True)
    if not reading and task.name != "recall":
        return lack("no layer keeps every token", general=True)
    if fit is None:
        return lack("no construction for this task", general=True)
    wanted = wanted_by(task)
    heads = list(full_heads(architecture, choosing=True))
    many = fit in ("k-hop", "counting", "neighbour", "qsa") or (wanted and wanted.before > 1)
    if many and any(one.choice for one in heads):
        more = ": its indexer chooses for all of them at once, so that a layer asks for one"
        return lack("one choice of tokens for all heads", more, general=True)
    blocks = fit == "retrieval" and any(part.compresses_blocks for part in reading)
    if reading and not heads and not blocks:
        more = f": `{fit}` is for full attention, and it has {reading[0].title}"
        return lack(f"no construction for {reading[0].name} layers", more)
    if fit in ("pairs", "equality") and len({one.layer for one in heads}) < 2:
        return lack("takes two full layers", f", by the construction `{fit}`", general=True)
    if wanted is None:
        return lack(f"premises of construction `{fit}` not met", general=True)
    if wanted.each:
        return lack("no layers bring, compare and look in turn", general=True)
    before = "the one" if wanted.before == 1 else f"the {wanted.before}"
    more = f": one that compares needs {before} before every token"
    return lack("no earlier layer brings the token before", more, general=True)


def _unbounded(architecture: Architecture, task: Task) -> tuple[str, str]:
    """What bounds lack beside, behind what constructions do; and in a few words where that says
    more.
    """
    if isinstance(task, tasks.SeqComp):
        return "", ""
    if architecture.reading:
        return "; bounds on it need a small cache, or a single layer", ""
    if task.prefix_classes() is None and task.table() is None:
        short = "prefixes to tell apart are not counted"
        return f"; how many {short.partition(' are')[0]} there are is not counted", short
    said = "; no bound here names a size at which it fails"
    family = task.family()
    # a small vocabulary holds few contexts, or keys: no prompt is long enough for a bound
    if family.largest < _LONG:
        said += f": with {family.described} sizes end at {family.grows} = {family.largest:,}"
    return said, ""


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
        return placed._replace(why=f"{reached}; {placed.why}")
    return lack(f"weights are known up to n = {product - 1:,}", f": {reached}")


def unstacked(architecture: Architecture, task: tasks.Dyck) -> Words | None:
    """Why no layers are known to count brackets and to keep them; None where some are."""
    needed = Needed.of(task)
    missing = by_levels(architecture, task)
    if not isinstance(missing, Words) or stacked(architecture, needed) is not None:
        return None
    parts = [part for layer in architecture for part in layer]
    kept = [part.slots.places for part in parts if part.slots is not None]
    if any(full_heads(architecture)):
        return missing
    if not any(part.adds_up for part in parts):
        more = (
            ": that takes a plain sum over all tokens, without decay, normaliser or norm (linear"
            " attention with normaliser=false)"
        )
        return lack("no layer is shown to count brackets", more)
    if not kept:
        more = (
            ": that takes a delta rule that overwrites one slot for each depth, without"
            " convolution, norm or gate"
        )
        return lack("no layer is shown to keep a stack", more)
    if max(kept) < needed.slots:
        more = f": {max(kept):,}, one for each key dimension, and {needed.slots:,} may be open"
        return lack("too few slots for what is open", more)
    if stacked(architecture, replace(needed, tokens=1)) is not None:
        return lack("its formats hold no sums so long")
    more = (
        ": the layer that counts must stand before two delta-rule layers, the first of them with"
        f" {needed.slots:,} key dimensions and {needed.bits} value dimensions"
    )
    return lack("its layers stand in another order", more)


def uncompared(architecture: Architecture, wanted: Wanted, tokens: int) -> Words | None:
    """Why no full layer compares what is looked up among so many tokens; None where one does."""
    heads, needed = list(full_heads(architecture, choosing=True)), wanted.key
    most = max((one.content_dims for one in heads), default=needed)
    if most >= needed:
        if not heads or not all(one.part.normed and not one.choice for one in heads):
            return None
        more = f": twice {needed:,} behind a norm, or in fp32 and wider one more"
        return lack(_NO_CONTENTS, more)
    if architecture.positions in _POSITIONS:
        return _POSITIONS[architecture.positions]
    if not most:
        letter, many = wanted.letter, wanted.before
        each = (b for b in range(letter, 0, -1) if any(one.slow(b, many, tokens) for one in heads))
        if held := many * next(each, 0):
            short = f"slow pairs of rotations: {held:,} of {many * letter:,} bits"
            return lack(short, f" are shown to compare over {tokens:,} tokens")
        more = " of its full layers with the distance, so that values are not shown to compare"
        return lack("rotations turn every key dimension", more)
    left = f": its {kind_of_readers(architecture)} layers have {most:,}"
    left += " that no rotation turns" * any(one.part.rotation is not None for one in heads)
    return lack(_NO_CONTENTS, f"{left}, and that takes {needed:,}")


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
        more = "whether layers before them can supply places is not shown here"
        if counted:
            more = f"layers before them are shown to count {counted:,} tokens"
        return lack("its full layers see no places", f" (no embeddings, no rotation): {more}")
    if tokens > MOST_OFFSETS:
        return lack(f"rotations examined up to {MOST_OFFSETS:,} tokens")
    part, head = rotated[0].part, rotated[0].head
    lead = rotated[0].place_lead(tokens)
    if lead is None and rotated[0].choice:
        return lack("its indexer finds no offset", ": it is not turned by places")
    if lead is None:
        return lack(f"rounding of rotations in {head.format}: unknown")
    return lack(
        "rotations not shown to tell places apart",
        f" alone ({part.rotation}), {tokens:,} of them in {head.format}: the offset asked for leads"
        f" by {down(lead.gap)} of the largest score, and rounding may take {up(lead.rounding)}",
    )


_POSITIONS = {
    "alibi": lack("no construction where scores fall (ALiBi)", " with distance"),
    "unknown": lack("what gives tokens places is not known"),
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
    more = ": by rotations alone tokens of the first string, which have no partner, find some"
    return lack("no room for a start token", more)
