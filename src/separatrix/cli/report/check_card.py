"""A mixer's report card, for people and for machines."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

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


def render_check(card: ReportCard) -> RenderableType:
    """Laws, cache and speed, one block each."""
    from separatrix.mixers.plugins.check import LONGER, STEPS

    sizes = ", ".join(
        f"{name}={value}"
        for name, value in card.mechanism.sizes().items()
        if value is not None and name != "width"
    )
    laws = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), show_header=False)
    laws.add_column(no_wrap=True)
    laws.add_column(no_wrap=True)
    laws.add_column(overflow="fold")
    for result in card.laws:
        laws.add_row(result.law, *_outcome(result))
    lines: list[RenderableType] = [
        Text(f"{card.mechanism.name}   {card.origin}   model width {card.width}   {sizes}"),
        Text(),
        laws,
        Text(),
    ]
    if card.cache:
        cache = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), show_header=False)
        cache.add_row("tokens", *(f"{t:,}" for t in sorted(card.cache)))
        cache.add_row(
            "numbers kept",
            *(f"{card.cache[t][0]:,}" for t in sorted(card.cache)),
            f"growth: {card.growth}",
        )
        lines += [cache, Text()]
    if card.speed is not None:
        ratio = card.speed.step / card.speed.forward
        lines.append(
            Text(
                f"speed   {STEPS} tokens: step {1e3 * card.speed.step:.3g} ms, forward"
                f" {1e3 * card.speed.forward:.3g} ms ({ratio:.3g} times as fast); forward of"
                f" {2 * LONGER:,} tokens takes {card.speed.growth:.2g} times as long as of"
                f" {LONGER:,}"
            )
        )
    lines += [Text(note) for note in card.notes]
    lines.append(Text(f"drawn with seed {card.seed}; --seed {card.seed} draws the same again"))
    broken = card.broken
    checked = sum(result.applies for result in card.laws)
    said = (
        f"all {checked} laws hold"
        if not broken
        else f"{len(broken)} of {checked} laws broken: {', '.join(broken)}"
    )
    return Group(*lines, Text(said, style="bold green" if not broken else "bold red"))


def _outcome(result: LawResult) -> tuple[Text, Text]:
    if not result.holds:
        return Text("FAIL", style="bold red"), Text(result.broken_by)
    if not result.applies:
        return Text("-", style="dim"), Text(_NOT_ASKED[result.law], style="dim")
    return Text("ok", style="green"), Text(
        result.says.split(". ")[0].split(": ")[0].removesuffix("."), style="dim"
    )
