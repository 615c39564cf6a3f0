"""The outcome of an audit: plain data, and a document for people. How far a measured number lies
above what it should be, in standard errors of a normal distribution; and the power of an audit: the
smallest leak that it finds nine times of ten.

Of one place, that is: in which of many places the leak stands must be learnt as well, and the
places that tell nothing are told from it by chance. Of a gain over 64 values that is found in 0.9
of the audits where the place is known, the probe "position" found 88 of 100 among 3 places, 73 of
100 among 11 and 44 of 74 among 63 (4,000 + 4,000 instances, two answers); over 512 values 55 of 60
among 3. Of eight answers, among 3 places, 49 of 60 over 64 values and 51 of 60 over 512.
`benchmarks/audits.py` measures it.

The leak is told by a token of m equally frequent values, each of which favours an answer. Of k
equally likely answers, the favoured one has probability 1/k + d, and d is the gain in accuracy of
whoever knows which value favours what. A probe must learn that from the f instances that it is
fitted to, and is suspected where it lies `BOUND` standard errors above its level on the t others.
So its z must be BOUND + 1.28 times its spread on average, 1.28 being the ninth decile of a normal
number. What is found once in so many instances is found again in four times as many, so that the
second drawing costs nothing worth counting.

Two answers: the share of answer 1 beside a value is 1/2 + d or 1/2 - d, measured with variance 1/(4
f/m). So the score has correlation 2d / sqrt(1 + m / (4 d^2 f)) with the answer, and its z is that
times sqrt(t), with spread 1.

k > 2 answers: of f/m instances of a value the favoured answer has (1/k + d) f/m on average, any
other (1/k - d/(k-1)) f/m, all about Poisson. The favoured one is the most frequent, ties broken
fairly, with probability P. The gain is d P - d (1 - P)/(k - 1), and z is that over s = sqrt((1/k)(1
- 1/k)/t). Its spread over s: of an accuracy a on t instances, and of how many of the m values are
learnt, sqrt(a (1 - a)/t + (d + d/(k-1))^2 P (1 - P)/m).
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from math import inf, log, sqrt
from statistics import NormalDist
from typing import Any, Literal

from separatrix.core.document import Document, Heading, Line, Table
from separatrix.core.numbers.lazy import Floats, np
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


def uneven(targets: Tokens, answers: int) -> float:
    """Pearson's chi-square of the answers against the uniform distribution, as the normal
    deviate of Wilson and Hilferty (1931).
    """
    seen = np.bincount(targets, minlength=answers)
    expected = len(targets) / answers
    per_degree = float(((seen - expected) ** 2).sum() / expected) / (answers - 1)
    spread = 2 / (9 * (answers - 1))
    return (per_degree ** (1 / 3) - (1 - spread)) / sqrt(spread)


def largest_above(targets: Tokens, answers: int, level: Fraction) -> float:
    """Standard errors by which the most frequent answer lies above `level`, as rare by luck
    among `answers` of them (Šidák) as that many by itself.
    """
    z = above(int(np.bincount(targets).max()), len(targets), level)
    if not -_FARTHEST < z < _FARTHEST:
        return z
    none = _NORMAL.cdf(z) ** answers
    return -_FARTHEST if none == 0 else z if none == 1 else _NORMAL.inv_cdf(none)


_NINTH = NormalDist().inv_cdf(0.9)
SPREADS = (1, 64, 512)
"""Values over which the leaks are spread whose sizes an audit states."""
_HALVINGS = 40
_TINY = 1e-12


def smallest_leak(answers: int, fitted: int, tested: int, values: int) -> float:
    """The smallest gain d that is found nine times of ten; 1 - 1/k where none is."""
    low, high = 0.0, 1 - 1 / answers
    for _ in range(_HALVINGS):
        gain = (low + high) / 2
        z, spread = expected(gain, answers, fitted, tested, values)
        if z - _NINTH * spread < BOUND:
            low = gain
        else:
            high = gain
    return high


def expected(
    gain: float, answers: int, fitted: int, tested: int, values: int
) -> tuple[float, float]:
    """The mean of a probe's z for a leak of this gain, and its spread, as derived above."""
    if answers == 2:
        return 2 * gain / sqrt(1 + values / (4 * gain**2 * fitted)) * sqrt(tested), 1.0
    chance = 1 / answers
    seen = fitted / values
    other = gain / (answers - 1)
    picked = _picked(seen * (chance + gain), seen * (chance - other), answers)
    reached = gain * picked - other * (1 - picked)
    accuracy = chance + reached
    learnt = (gain + other) ** 2 * picked * (1 - picked) / values
    unit = sqrt(chance * (1 - chance) / tested)
    return reached / unit, sqrt(accuracy * (1 - accuracy) / tested + learnt) / unit


def _picked(favoured: float, other: float, answers: int) -> float:
    """The probability that of Poisson numbers with these means, `answers` - 1 of the latter, the
    former is the largest.
    """
    most = int(favoured + 10 * sqrt(favoured) + 20)
    own, rival = (_poisson(mean, most) for mean in (favoured, other))
    upto = np.cumsum(rival)
    below = upto - rival
    # among j rivals as large, one chance in j + 1: the sum over j is this difference
    won = (upto**answers - below**answers) / (answers * np.maximum(rival, _TINY))
    return float((own * np.where(rival > _TINY, won, 1.0)).sum())


def _poisson(mean: float, most: int) -> Floats:
    counts = np.arange(most + 1)
    logs = np.cumsum(np.log(np.maximum(counts, 1)))
    return np.exp(counts * log(max(mean, _TINY)) - mean - logs)


Finding = Literal["within", "above", "leak"]
Test = Literal["accuracy", "correlation", "chi-square", "most frequent"]


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
        named = ("task", "seed", "fitted", "tested", "verdict", "note")
        found = {str(values): f"{self.smallest_leak(values):.6f}" for values in SPREADS}
        return {name: getattr(self, name) for name in named} | {
            "smallest_leak": found,
            "rows": [_plain(row) for row in self.rows],
        }


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
    gains = ", ".join(f"{audit.smallest_leak(values):.3f} by {values}" for values in SPREADS)
    return Document(
        Line(f"{audit.task}   {drawn}, seed {audit.seed}"),
        Line(f"finds 9 times of 10 a gain of {gains} values of a known token"),
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
