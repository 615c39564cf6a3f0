"""The outcome of an audit, as plain data."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import Any, Literal

from separatrix.tasks.audits.power import SPREADS, smallest_leak
from separatrix.tasks.audits.statistics import BOUND, standard_error

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
