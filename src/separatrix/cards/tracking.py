"""State tracking on a capability card: which layers of a stack can turn their state over at every
token and which cannot, and what follows from that, or would under a conjecture.
"""

from __future__ import annotations

from separatrix.stacks.architecture import Architecture, Layer
from separatrix.theory.fails.p_parity import layer_settles, standstill
from separatrix.theory.words import Words, counted_as, title_of

_Does = tuple[str, str]
"""What layers of a kind do, said of one and of several."""
_TURNS = ("turns its state over", "turn their state over")
_ONE_WAY = ("only moves one way while a token repeats", "only move one way while a token repeats")
_NEAR = ("sees the last tokens only", "see the last tokens only")
_READS = ("reads the prompt at a fixed depth", "read the prompt at a fixed depth")
_DIAGONAL = (
    "is a diagonal recurrence that Theorem P does not cover",
    "are diagonal recurrences that Theorem P does not cover",
)
_SHRINKS = (
    "shrinks its state along a key, and is not shown to turn it over",
    "shrink their state along a key, and are not shown to turn it over",
)
_OTHER = ("looks at places, or is not covered", "look at places, or are not covered")


def tracked_by(architecture: Architecture) -> str:
    """The layers that mix tokens, by kind, each with what it does: "18 RG-LRU layers only
    move one way while a token repeats; 1 full attention layer reads the prompt at a fixed depth".
    """
    kinds: dict[tuple[str, _Does], int] = {}
    for layer, times in architecture.counted():
        if title := title_of(layer):
            kind = (title, _does(layer))
            kinds[kind] = kinds.get(kind, 0) + times
    return "; ".join(
        f"{counted_as(times, f'{titles} layer')} {does[times != 1]}"
        for (titles, does), times in kinds.items()
    )


def undecided(architecture: Architecture, *, complete: bool) -> Words:
    """What is said where no theorem with an n decides. `complete`: whether the question is complete
    for NC^1, as products in S_5 are and parity is not.
    """
    listed = tracked_by(architecture)
    layers = [layer for layer, _ in architecture.counted()]
    if all(layer_settles(layer) is not None for layer in layers):
        return _far_away(architecture, listed)
    if complete and all(_shallow(layer) for layer in layers):
        return Words(
            f"{listed}; conditional: if TC0 != NC1 it fails at some length, and no n is known",
            "Softmax attention of fixed depth and states that only move one way lie in TC0"
            " (Merrill, Sabharwal, arXiv 2207.00729; 2404.08819), and following five things is"
            " complete for NC1 (Barrington 1989). That the two differ is believed and not proved,"
            " so this is no FAILS.",
            "fails at some length if TC0 != NC1",
        )
    if any(part.turning is not None for layer in layers for part in layer):
        return Words(
            f"{listed}; no theorem here decides it",
            "Layers that turn their state over can follow many things, where there is room for the"
            " construction. For five things that is ten key numbers per head, four updates per"
            " token, and no convolution, norm or gate around them.",
            "no room for the construction that is known",
        )
    one_way = [layer for layer in layers if _does(layer) is _DIAGONAL]
    return Words(
        f"{listed}; no theorem here decides it",
        "Following a long row of changes takes a state that every token can turn over. Where no"
        " layer is shown to do so, and no bound of this program covers the stack, nothing is"
        " claimed.",
        "no theorem about these recurrences" if one_way else "",
    )


def _far_away(architecture: Architecture, listed: str) -> Words:
    """Every layer only moves one way, and no n is named: places, or too many bits."""
    if standstill(architecture) is not None:
        return Words(
            f"{listed}; Theorem P's n is out of reach",
            "Runs of equal tokens bring such a stack to a standstill, so it fails. But that takes"
            " more tokens than any prompt here has.",
            "fails, but beyond 10^12 tokens",
        )
    where = {"embedded": "with position embeddings", "alibi": "with places"}
    why = where.get(architecture.positions, "with places unknown")
    return Words(
        f"{listed}; {why} it fails at some length, and no n is known (with positions=none"
        " Theorem P names one)",
        "Such states form an aperiodic monoid of constant size, which lies in AC0 with positions,"
        " too, and parity does not (Furst, Saxe, Sipser 1984). This is a remark about some length,"
        " so no FAILS.",
        "fails at some length, no n is known",
    )


def _shallow(layer: Layer) -> bool:
    """Whether all of it lies in TC0: softmax attention, or what only moves one way."""
    return all(
        part.group in ("full", "windowed") or layer_settles((part,)) is not None for part in layer
    )


def _does(layer: Layer) -> _Does:
    if any(part.turning is not None for part in layer):
        return _TURNS
    if layer_settles(layer) is not None:
        return _ONE_WAY if any(part.group == "recurrent" for part in layer) else _NEAR
    if any(part.reading for part in layer):
        return _READS
    if all(part.group == "recurrent" for part in layer):
        return _DIAGONAL if all(part.is_diagonal for part in layer) else _SHRINKS
    return _OTHER
