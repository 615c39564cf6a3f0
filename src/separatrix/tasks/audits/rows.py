"""The outcome of an audit: data, a document, standard errors (benchmarks/audits.py: its power)."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from math import inf, sqrt
from statistics import NormalDist
from typing import Any, Literal

from separatrix.core.document import Document, Heading, Line, Table
from separatrix.core.numbers.lazy import np
from separatrix.tasks.base.task import Tokens

BOUND = 3.0
"""Standard errors above its level from which a probe is suspected."""
_NORMAL = NormalDist()
_FARTHEST = 8.0
"""Beyond it tails of the normal distribution are lost in rounding."""


def standard_error(level: Fraction, instances: int) -> float:
    """Of the share of right answers among `instances`, each right with probability `level`."""
    return sqrt(float(level * (1 - level)) / instances)


def above(right: int, instances: int, level: Fraction) -> float:
    """Standard errors by which `right` of `instances` lies above `level`."""
    error = standard_error(level, instances)
    excess = float(Fraction(right, instances) - level)
    if error:
        return excess / error
    # a level of 0 or 1 leaves nothing to luck
    return 0.0 if excess <= 0 else inf


def largest_above(targets: Tokens, answers: int, level: Fraction) -> float:
    """Standard errors of the most frequent of `answers` answers above `level` (Šidák)."""
    z = above(int(np.bincount(targets).max()), len(targets), level)
    if not -_FARTHEST < z < _FARTHEST:
        return z
    none = _NORMAL.cdf(z) ** answers
    return -_FARTHEST if none == 0 else z if none == 1 else _NORMAL.inv_cdf(none)


Finding = Literal["within", "above", "leak"]
Test = Literal["accuracy", "correlation", "most frequent"]


@dataclass(frozen=True, kw_only=True)
class Row:
    """One probe: `right` of `judged` instances it was not fitted to, and what it may reach."""

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
    note: str = ""
    """What a reader must know about this task's sampler; mostly empty."""

    @property
    def leaks(self) -> tuple[str, ...]:
        """Probes that found one."""
        return tuple(row.probe for row in self.rows if row.verdict == "leak")

    @property
    def verdict(self) -> Finding:
        return "leak" if self.leaks else "within"

    def __getitem__(self, probe: str) -> Row:
        """The row of a probe, or of "answers". Raises KeyError."""
        return {row.probe: row for row in self.rows}[probe]

    def to_json(self) -> dict[str, Any]:
        """Plain data for `evidence.canonical`: fractions, and numbers of six decimals."""
        named = ("task", "seed", "fitted", "tested", "verdict", "note")
        own = {name: getattr(self, name) for name in named}
        return own | {"rows": [_plain(row) for row in self.rows]}


def _plain(row: Row) -> dict[str, Any]:
    named = ("probe", "sees", "right", "judged", "test", "verdict", "drawn")
    measured = ("accuracy", "standard_error", "z")
    plain = {name: getattr(row, name) for name in named} | {"level": str(row.level)}
    return plain | {name: f"{getattr(row, name):.6f}" for name in measured}


HEADINGS = ("probe", "accuracy", "level", "z", "verdict")
_LONGEST = 9
"""Characters of a fraction that is written as one."""


def table(audit: Audit) -> Document:
    """What was drawn, one line per probe, and the outcome."""
    drawn = f"{audit.fitted:,} instances to fit, {audit.tested:,} others to judge"
    return Document(
        Line(f"{audit.task}   {drawn}, seed {audit.seed}"),
        *([Line(f"({audit.note})")] if audit.note else []),
        Heading(),
        Table([*map(_cells, audit.rows)], HEADINGS, labels=True),
        Heading(),
        Line(outcome(audit)),
    )


def legend(audit: Audit) -> Table:
    """What every probe sees."""
    return Table([(row.probe, row.sees) for row in audit.rows], labels=True)


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
