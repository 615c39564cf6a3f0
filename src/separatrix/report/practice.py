"""What training found, in a terminal and as data: under the words measured and extrapolated."""

from __future__ import annotations

from fractions import Fraction
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from rich.text import Text

    from separatrix.cards.practice import Finding
    from separatrix.practice.table import Row

COLOUR = "magenta"
"""Of what is measured: none of the colours of verdicts."""


def found_text(finding: Finding, *, explain: bool = False) -> list[Text]:
    """The sentences of a finding: what was measured, how far this is beyond it, and what does not
    follow.
    """
    from rich.text import Text

    said = Text.assemble(("measured", COLOUR), f": {finding.measured}")
    if finding.extrapolated:
        said.append("; ")
        said.append("extrapolated", COLOUR)
        said.append(f" {finding.extrapolated}")
    parts = [said, Text(f"do not conclude {finding.caution}", "dim")]
    if explain:
        parts.append(Text(finding.explain, "dim italic"))
    return parts


def found_briefly(finding: Finding) -> str:
    """The same in a cell of a comparison."""
    carried = f"; extrapolated {finding.extrapolated}" if finding.extrapolated else ""
    return f"measured: {finding.brief}{carried}"


def finding_json(finding: Finding) -> dict[str, Any]:
    """A finding as plain data, with the rows that it was read from."""
    return {
        "question": finding.question.strip(),
        "experiment": finding.experiment,
        "measured": finding.measured,
        "extrapolated": finding.extrapolated,
        "times_beyond": {what: float(far) for what, far in finding.distances.items()},
        "not_to_be_concluded": finding.caution,
        "explain": finding.explain,
        "numbers": {name: plain(value) for name, value in finding.numbers.items()},
        "rows": [row_json(row) for row in finding.rows],
    }


def row_json(row: Row) -> dict[str, Any]:
    """A row of an experiment in short: what it is about, and its seeds."""
    from separatrix.practice.words import interval

    low, high = interval(row)
    return {
        "labels": dict(row.labels),
        "architecture": row.run["architecture"],
        "task": row.run["task"],
        "accuracy": float(row.median),
        "interval": [float(low), float(high)],
        "chance": float(row.chance),
        "seeds": len(row.trials),
        "solved": row.solved,
    }


def plain(value: Fraction | int) -> float | int:
    """A number as JSON has it."""
    return value if isinstance(value, int) else float(value)
