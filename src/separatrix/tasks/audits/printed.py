"""The audit as a table for people: plain text, at most 80 columns."""

from __future__ import annotations

from fractions import Fraction

from separatrix.tasks.audits.power import SPREADS
from separatrix.tasks.audits.rows import Audit, Row

HEADINGS = ("probe", "accuracy", "level", "z", "verdict")
_LONGEST = 9
"""Characters of a fraction that is written as one."""


def table(audit: Audit) -> str:
    """What was drawn, one line per probe, and the outcome."""
    cells = [HEADINGS, *map(_cells, audit.rows)]
    widths = [max(len(row[column]) for row in cells) for column in range(len(HEADINGS))]
    lines = [
        "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip()
        for row in cells
    ]
    head = (
        f"{audit.task}   {audit.fitted:,} instances to fit, {audit.tested:,} others to judge, seed"
        f" {audit.seed}"
    )
    return "\n".join(
        [
            head,
            _power(audit),
            *([f"({audit.note})"] if audit.note else []),
            "",
            *lines,
            "",
            outcome(audit),
        ]
    )


def _power(audit: Audit) -> str:
    """The smallest leaks found nine times of ten, as accuracy gained."""
    gains = ", ".join(f"{audit.smallest_leak(values):.3f} by {values}" for values in SPREADS)
    return f"finds 9 times of 10 a gain of {gains} values of a known token"


def legend(audit: Audit) -> str:
    """What every probe sees, a line each."""
    widest = max(len(row.probe) for row in audit.rows)
    return "\n".join(f"{row.probe:{widest}}  {row.sees}" for row in audit.rows)


def outcome(audit: Audit) -> str:
    """One sentence."""
    if gains := [row.probe for row in audit.rows if row.verdict == "above"]:
        return f"{audit.task}: {', '.join(gains)} above the level of the task without its shift"
    if not audit.leaks:
        return f"{audit.task}: no shortcut goes beyond its level"
    return (
        f"{audit.task}: LEAK; {', '.join(audit.leaks)} above the level of the task twice, by more"
        " than 3 standard errors each time"
    )


def _cells(row: Row) -> tuple[str, ...]:
    z = f"{row.z:+.1f}" + ("" if row.test == "accuracy" else f" ({row.test})")
    more = (
        f" ({row.drawn:,} drawn)" if row.drawn > 2 * row.judged and row.probe != "answers" else ""
    )
    return (row.probe, f"{row.accuracy:.4f}", level(row.level), z, row.verdict + more)


def level(value: Fraction) -> str:
    """1/8 = 0.1250, or the decimals alone where the fraction is long."""
    text = str(value)
    return f"{text} = {float(value):.4f}" if len(text) <= _LONGEST else f"{float(value):.4f}"
