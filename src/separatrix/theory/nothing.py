"""The answer where no theorem decides, so that no question is left without one, and why none does:
what full attention lacks to look up places or to compare contents, recurrences to hold a stack of
brackets, and bounds to bite.
"""

from __future__ import annotations

from separatrix import tasks
from separatrix.core.evidence.records import Verdict
from separatrix.core.numbers.selection import MOST_OFFSETS
from separatrix.stacks.architecture import Architecture
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
from separatrix.theory.solves.room import kind_of_readers
from separatrix.theory.solves.states import Needed, stacked
from separatrix.theory.words import Words, lack
from separatrix.theory.written import fitting

_LONG = 10**9
"""Sizes of prompts that nobody writes."""


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
        more = " for it, as far as it sees, or tokens that no layer before it chooses"
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
        return _unstacked(architecture, task)
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
    read = full or [part for layer in architecture for part in layer if part.group == "indexed"]
    if read and not any(part.formats <= EXACT_FORMATS for part in read):
        formats = sorted({name for part in read for name in part.formats} - EXACT_FORMATS)
        more = ": what it takes of a score's lead is known for fp64, fp32, bf16 and fp16 alone"
        return lack(f"rounding to {' and '.join(formats)} is not worked out", more)
    n = task.length
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
            told = max((known.many for known in told_places(architecture, n + 1)), default=1)
            if told > n or finders(architecture, address=1, payload=0, tokens=n, named=True):
                return lack("no two full layers address places", ", as a copy takes")
            more = f": {told:,} of {n + 1:,}, and so no token knows how far back to look"
            return unplaced(architecture, n) or lack("rotations alone tell too few places", more)
        case tasks.KHop() if (said := _unhopped(architecture, task)) is not None:
            return said
        case _ if wanted is not None:
            if not any(comparing(architecture, wanted, n + 1)):
                return _uncompared(architecture, wanted, n + 1)
            if wanted.averaged and wanted.letter * n > MOST_AVERAGED:
                more = f" from one of them: {n:,} of {wanted.letter} bits"
                return lack("averages of so many tokens not told", more)
            return unplaced(architecture, n)
        case _:
            return None if moved is None else unmultiplied(architecture, moved, n)


def _unhopped(architecture: Architecture, task: tasks.KHop) -> Words | None:
    full = len({one.layer for one in full_heads(architecture)})
    doubling = task.k.bit_length()
    if full > doubling or (full and architecture.positions != "embedded"):
        more = ": the latest place of a letter is looked for in one layer, or digit by digit"
        return lack("no layers tell places, search and hop", f" in turn{more}")
    if full:
        more = (
            f": {doubling} double the hops, behind some that look for the latest place of a letter"
        )
        return lack(f"takes {doubling + 1} full layers, and it has {full}", more)
    if any(part.registers(1) for layer in architecture for part in layer):
        more = f": {task.V:,} of them {task.k:,} times, behind one that brings the letter before"
        return lack("too few letters are kept", more)
    return None


def _unbuilt(architecture: Architecture, task: Task) -> Words:
    fit = fitting(task)
    reading = [part for layer in architecture for part in layer if part.reading]
    if not reading:
        if tracked(task) is not None:
            more = ", or to fetch by offset"
            return lack("no layer is shown to turn its state over", more, general=True)
        if task.name != "recall":
            return lack("no layer keeps every token", general=True)
    if fit is None:
        return lack("no construction for this task", general=True)
    wanted = wanted_by(task)
    heads = list(full_heads(architecture, choosing=True))
    many = fit in ("k-hop", "counting", "neighbour", "qsa") or (wanted and wanted.before > 1)
    if many and any(one.choice for one in heads):
        return lack("one choice of tokens for all heads", ", by its indexer", general=True)
    blocks = fit == "retrieval" and any(part.compresses_blocks for part in reading)
    if reading and not heads and not blocks:
        return lack(f"no construction for {reading[0].name} layers", f", as `{fit}` is")
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
        return f"; {short}", short
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
    reached = f"its layers that read are known to multiply {product - 1:,} letters by their offsets"
    if placed is not None:
        return placed._replace(why=f"{reached}; {placed.why}")
    return lack(f"weights are known up to n = {product - 1:,}", f": {reached}")


def _unstacked(architecture: Architecture, task: tasks.Dyck) -> Words | None:
    """Why no layers are known to count brackets and to keep them; None where some are."""
    needed = Needed.of(task)
    missing = by_levels(architecture, task)
    if not isinstance(missing, Words) or stacked(architecture, needed) is not None:
        return None
    if any(full_heads(architecture)):
        return missing
    return lack(
        "no layers are shown to keep brackets",
        ": a plain sum over all tokens, without decay, normaliser or norm (linear attention with"
        " normaliser=false), behind it a delta rule without convolution, norm or gate of"
        f" {needed.slots:,} key dimensions and {needed.bits} value dimensions, and one more, in"
        " formats that hold such sums",
    )


def _uncompared(architecture: Architecture, wanted: Wanted, tokens: int) -> Words | None:
    """Why no full layer compares what is looked up among so many tokens; None where one does."""
    heads, needed = list(full_heads(architecture, choosing=True)), wanted.key
    most = max((one.content_dims for one in heads), default=needed)
    if most >= needed:
        return None
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
    return lack("too few key dimensions to compare values", f"{left}, and that takes {needed:,}")


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
        more = f" (no embeddings, no rotation): layers before them count {counted:,} tokens"
        return lack("its full layers see no places", more)
    if tokens > MOST_OFFSETS:
        return lack(f"rotations examined up to {MOST_OFFSETS:,} tokens")
    part, head = rotated[0].part, rotated[0].head
    lead = rotated[0].place_lead(tokens)
    if lead is None:
        chosen = "its indexer finds no offset: it is not turned by places"
        return lack(chosen if rotated[0].choice else f"rounding of rotations in {head.format}")
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
