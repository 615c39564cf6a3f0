"""A mixer's report card, for people and for machines."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from separatrix.core.document import Document, Heading, Line, Part, Table

if TYPE_CHECKING:
    from separatrix.mixers.plugins.check import LawResult, ReportCard


_NOT_ASKED = {
    "chunks": "the module has no `chunk` to vary",
    "monotone": "the mechanism does not say that it is monotone",
    "forgets": "the mechanism does not say how far back it reads; all it keeps counts as state",
}
"""Laws that may have nothing to be about, and why."""


def check_json(card: ReportCard) -> dict[str, Any]:
    """Plain data; `holds` is true if no law is broken."""
    from separatrix.mixers.plugins.check import LONGER, STEPS

    speed = card.speed
    return {
        "mechanism": card.mechanism.name,
        "origin": card.origin,
        "width": card.width,
        "sizes": card.mechanism.sizes(),
        "seed": card.seed,
        "holds": not card.broken,
        "laws": [
            {
                "law": result.law,
                "holds": result.holds,
                "applies": result.applies,
                "broken_by": result.broken_by,
                "says": result.says,
            }
            for result in card.laws
        ],
        "cache": [{"t": t, "numbers": numbers} for t, (numbers, _) in sorted(card.cache.items())],
        "growth": card.growth,
        "speed": (
            None
            if speed is None
            else {
                "tokens": STEPS,
                "step_seconds": speed.step,
                "forward_seconds": speed.forward,
                "longer": [LONGER, 2 * LONGER],
                "growth": speed.growth,
            }
        ),
        "notes": list(card.notes),
    }


def check_document(card: ReportCard) -> Document:
    """Laws, cache and speed, one block each."""
    from separatrix.mixers.plugins.check import LONGER, STEPS

    sizes = ", ".join(
        f"{name}={value}"
        for name, value in card.mechanism.sizes().items()
        if value is not None and name != "width"
    )
    parts: list[Part] = [
        Heading(card.mechanism.name, f"{card.origin}   model width {card.width}   {sizes}"),
        Heading(),
        Table([(result.law, *_outcome(result)) for result in card.laws], labels=True),
        Heading(),
    ]
    if card.cache:
        tokens = sorted(card.cache)
        kept = ("numbers kept", *(f"{card.cache[t][0]:,}" for t in tokens))
        parts.append(Table([("tokens", *(f"{t:,}" for t in tokens)), kept]))
        parts += [Line(f"growth: {card.growth}"), Heading()]
    if card.speed is not None:
        ratio = card.speed.step / card.speed.forward
        parts.append(
            Line(
                f"speed   {STEPS} tokens: step {1e3 * card.speed.step:.3g} ms, forward"
                f" {1e3 * card.speed.forward:.3g} ms ({ratio:.3g} times as fast); forward of"
                f" {2 * LONGER:,} tokens takes {card.speed.growth:.2g} times as long as of"
                f" {LONGER:,}"
            )
        )
    parts += map(Line, card.notes)
    parts.append(Line(f"drawn with seed {card.seed}; --seed {card.seed} draws the same again"))
    checked = sum(result.applies for result in card.laws)
    broken = f"{len(card.broken)} of {checked} laws broken: {', '.join(card.broken)}"
    return Document(*parts, Line(broken if card.broken else f"all {checked} laws hold"))


def _outcome(result: LawResult) -> tuple[str, str]:
    if not result.holds:
        return "FAIL", result.broken_by
    if not result.applies:
        return "-", _NOT_ASKED[result.law]
    return "ok", result.says.split(". ")[0].split(": ")[0].removesuffix(".")
