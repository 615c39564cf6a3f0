"""The outcome of an audit: plain data, and a table for people, at most 80 columns wide."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import Any, Literal

from separatrix.tasks.audits.statistics import BOUND, SPREADS, smallest_leak, standard_error

Finding = Literal["within", "above", "leak"]
Test = Literal["accuracy", "correlation", "chi-square", "most frequent"]
__all__ = ["BOUND", "Audit", "Finding", "Row", "Test"]


@dataclass(frozen=True, kw_only=True)
class Row:
    """One probe: `right` of `judged` instances, none of which it was fitted to, and what the
    task says it may reach.
    """

    probe: str
    sees: str
    right: int
    judged: int
    level: Fraction
    z: float
    """Standard errors above the level, by the test that sees most."""
    test: Test
    """Which test that is."""
    drawn: int
    """Instances drawn for this probe: to fit, to judge, and again where it was suspected at
    first.
    """

    promised: bool = True
    """Whether the task promises the level."""

    @property
    def accuracy(self) -> float:
        return self.right / self.judged

    @property
    def standard_error(self) -> float:
        return standard_error(self.level, self.judged)

    @property
    def verdict(self) -> Finding:
        return "within" if self.z <= BOUND else "leak" if self.promised else "above"


@dataclass(frozen=True, kw_only=True)
class Audit:
    """What every shortcut gains on a task. `verdict` is "leak" if any row's is."""

    task: str
    seed: int
    fitted: int
    tested: int
    rows: tuple[Row, ...]
    answers: int = 2
    """How many answers there are."""
    note: str = ""
    """What a reader must know about this task's sampler; mostly empty."""

    @property
    def leaks(self) -> tuple[str, ...]:
        """Probes that found one."""
        return tuple(row.probe for row in self.rows if row.verdict == "leak")

    @property
    def verdict(self) -> Finding:
        return "leak" if self.leaks else "within"

    def smallest_leak(self, values: int = 1) -> float:
        """The smallest gain in accuracy over equally likely answers that an audit of this size
        finds nine times of ten, where each of `values` values of a token favours an answer.
        """
        return smallest_leak(self.answers, self.fitted, self.tested, values)

    def __getitem__(self, probe: str) -> Row:
        """The row of a probe, or of "answers". Raises KeyError."""
        return {row.probe: row for row in self.rows}[probe]

    def to_json(self) -> dict[str, Any]:
        """Plain data for `evidence.canonical`: levels are fractions, measured numbers have six
        decimals.
        """
        return {
            "task": self.task,
            "seed": self.seed,
            "fitted": self.fitted,
            "tested": self.tested,
            "verdict": self.verdict,
            "note": self.note,
            "smallest_leak": {
                str(values): f"{self.smallest_leak(values):.6f}" for values in SPREADS
            },
            "rows": [_plain(row) for row in self.rows],
        }


def _plain(row: Row) -> dict[str, Any]:
    return {
        "probe": row.probe,
        "sees": row.sees,
        "right": row.right,
        "judged": row.judged,
        "accuracy": f"{row.accuracy:.6f}",
        "level": str(row.level),
        "standard_error": f"{row.standard_error:.6f}",
        "z": f"{row.z:.6f}",
        "test": row.test,
        "verdict": row.verdict,
        "drawn": row.drawn,
    }


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
