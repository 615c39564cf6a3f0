"""How many bits of a prompt's facts a trained state holds, at least.

A prompt lists N facts f(1), ..., f(N), each uniform over V values and independent of all else, and
then asks for them one after another, in an order that does not depend on them. The model has one
layer. Let S be its state after the list and B what a short convolution keeps beside it, all given
what else the list says (the keys).

1. Every answer is given from (S, B) and the questions so far. So, whatever the model's guess p of
   the answer to a question is, on average -log2 p(right) >= H(the fact asked for | S, B).
2. Let CE_j be that average for the j-th question alone. It asks for each fact equally often. So
   N CE_j >= the sum over facts of H(f(i) | S, B) >= H(f | S, B), by subadditivity. This holds for
   each j, and so for the mean CE over the questions of a prompt, however many are asked.
3. Hence I(f; S, B) = N log2 V - H(f | S, B) >= N (log2 V - CE).
4. B of a first layer is a function of the last c - 1 tokens, c the convolution's length, and each
   of these tells at most one fact. So I(f; S) >= I(f; S, B) - H(B) >= N (log2 V - CE) -
   (c - 1) log2 V.

Step 3 needs H(f) = N log2 V: facts that are independent and uniform. Where values differ from one
another, or the answer is drawn first, a model can know something of a fact that it never stored.

CE is estimated on fresh prompts. The mean over a prompt's answers is one draw, and prompts are
independent: the interval is that of a mean of so many draws (normal). Whoever names the best of m
trained models has an interval for each of the m (Bonferroni), and shows the best one's.

What comes out is what training found in this budget: "learned at least", never a capacity.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from math import ceil, floor, log2, sqrt
from statistics import NormalDist

from separatrix.architecture import Architecture
from separatrix.errors import SpecError
from separatrix.mechanisms import Mechanism
from separatrix.practice.table import Row, Table, Trial, read
from separatrix.tasks import Task
from separatrix.tasks.base.facts import Facts

NAME = "capacity"
CONFIDENCE = 0.95
"""Of the intervals of all candidates together."""
KEPT = ("state", "window", "kv")
"""What a layer carries that no last token alone explains."""
_DIGITS = 1000
"""Bits per number are told in thousandths."""


@dataclass(frozen=True, kw_only=True)
class Learned:
    """Bits of the facts that a state holds at least, with the interval of that bound."""

    low: float
    bits: float
    high: float


@dataclass(frozen=True, kw_only=True)
class Best:
    """The trained model, of all candidates, whose state holds most."""

    row: Row
    trial: Trial
    learned: Learned
    candidates: int
    """Trained models among which it was chosen, those that diverged included."""


@dataclass(frozen=True, kw_only=True)
class Held:
    """What is measured of a mechanism, at the largest state that was trained."""

    low: Fraction
    best: Fraction
    high: Fraction
    """Bits per number of the state, at least: of the best seed, rate, optimiser, vocabulary and
    number of facts, with an interval that holds for all candidates at once.
    """
    numbers: int
    """Numbers of that state."""
    facts: int
    """Most facts that were asked of it."""
    values: tuple[int, ...]
    """Vocabularies of all its rows."""
    formats: tuple[str, ...]
    """In which the state was tested."""
    seeds: int
    """Fewest of a row, at one learning rate."""
    row: Row
    """The one that gave `best`."""


def numbers(row: Row) -> int:
    """Numbers that the state, or the window, holds after the list of facts: all that is carried but
    the buffer of a short convolution.
    """
    return kept(_mechanism(row), row.task)


def kept(layer: Mechanism, task: Task) -> int:
    """The same of a layer, after the part of the task's prompts that lists facts."""
    carried = layer.cache(task.prefix_length)
    return sum(item.bits.numbers for item in carried if item.kind in KEPT)


def facts(row: Row) -> Facts:
    """The facts of a row's prompts. Raises SpecError where they are not independent and uniform:
    the bound needs it.
    """
    found = row.task.facts()
    if found is None or found.different:
        raise SpecError(
            f"{row.task.spec}: bits are counted of independent uniform facts, such as those of eva"
            " or recall with form=independent"
        )
    return found


def bits_learned(row: Row, trial: Trial, candidates: int = 1) -> Learned:
    """Bits of the facts that the state of a trained model holds, at least, with the interval of one
    of so many candidates. A model that diverged holds none.
    """
    listed = facts(row)
    of_last_tokens = max(0, _mechanism(row).sizes().get("conv", 0) - 1)
    if trial.diverged or not trial.due:
        return Learned(low=0.0, bits=0.0, high=0.0)
    most = (listed.number - of_last_tokens) * log2(listed.values)
    # rounding may leave the difference below 0
    variance = max(0.0, trial.bits_squares - trial.bits**2)
    error = deviations(candidates) * sqrt(variance / trial.tested)
    return Learned(
        low=max(0.0, most - listed.number * (trial.bits + error)),
        bits=max(0.0, most - listed.number * trial.bits),
        high=max(0.0, most - listed.number * (trial.bits - error)),
    )


def deviations(candidates: int) -> float:
    """How many standard errors the two-sided interval of one of so many candidates reaches."""
    return NormalDist().inv_cdf(1 - (1 - CONFIDENCE) / (2 * candidates))


def best(rows: Sequence[Row]) -> Best | None:
    """The candidate with most bits per number, of all trials of these rows; None of none."""
    every = [(row, trial) for row in rows for trial in row.every]
    found = [
        Best(
            row=row,
            trial=trial,
            learned=bits_learned(row, trial, len(every)),
            candidates=len(every),
        )
        for row, trial in every
    ]
    return max(found, key=lambda one: one.learned.bits / numbers(one.row), default=None)


def held(mechanism: str, table: Table | None = None) -> Held | None:
    """What is measured of a mechanism (`Mechanism.measured_as`), in this table or the one of the
    package; None where it was not trained, or learned nothing: that says nothing of its state.
    """
    table = read(NAME) if table is None else table
    rows = [] if table is None else table.where(mechanism=mechanism)
    most = max((numbers(row) for row in rows), default=0)
    largest = [row for row in rows if numbers(row) == most]
    chosen = best(largest)
    if chosen is None or not chosen.learned.low:
        return None
    rounded = {one.format: None for row in largest for trial in row.every for one in trial.formats}
    return Held(
        low=Fraction(floor(chosen.learned.low / most * _DIGITS), _DIGITS),
        best=Fraction(round(chosen.learned.bits / most * _DIGITS), _DIGITS),
        high=Fraction(ceil(chosen.learned.high / most * _DIGITS), _DIGITS),
        numbers=most,
        facts=max(facts(row).number for row in largest),
        values=tuple(sorted({facts(row).values for row in rows})),
        formats=(_mechanism(chosen.row).format, *rounded),
        seeds=min(len(rate.trials) for row in largest for rate in row.rates),
        row=chosen.row,
    )


def _mechanism(row: Row) -> Mechanism:
    """The one layer of a row's stack. Raises SpecError for other stacks: of later layers, a buffer
    is no function of the last tokens.
    """
    stack = Architecture.parse(row.run["architecture"])
    if len(stack) != 1 or len(stack.layers[0]) != 1:
        raise SpecError(f"{stack.spec}: bits are counted in stacks of one layer of one kind")
    return stack.layers[0][0]
