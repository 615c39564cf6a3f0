"""Checks recorded results: one run, drawn at random, is trained again and compared.

On the same kind of machine and with the same code a training gives the same counts. Elsewhere
float32 rounds otherwise, and a long training may end like another seed: then the two accuracies are
compared as shares of two independent sets of test prompts, by Fisher's exact test. Bits per answer
feed no sentence and are not compared.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Literal

import numpy as np

from separatrix.cards.measured.table import Table
from separatrix.core.errors import SizeError
from separatrix.core.evidence.outcome import Outcome
from separatrix.findings.base import recorded_run
from separatrix.findings.exact import fisher

RARE = 1e-3
"""Share of comparisons of equally good models, at most, in which luck says that they differ."""
Found = Literal["equal", "agrees", "differs"]


def compared(recorded: Outcome, seeds: Sequence[Outcome], again: Outcome) -> Found:
    """What a training is, beside the recorded one of its seed and those of all seeds: equal counts;
    an accuracy among theirs, or luck away from one of them; or another one.
    """
    if _counts(recorded) == _counts(again):
        return "equal"
    if recorded.parameters != again.parameters or recorded.diverged or again.diverged:
        return "differs"
    found = [seed.accuracy for seed in seeds]
    near = min(found) <= again.accuracy <= max(found)
    return "agrees" if near or any(alike(seed, again) for seed in seeds) else "differs"


def alike(*two: Outcome) -> bool:
    """Whether models that are equally good are told so far apart in more than `RARE` of all cases,
    each prompt a coin: where several answers are due in it, its share varies no more than that.
    """
    counts = [(round(one.accuracy * one.tested), one.tested) for one in two if one.tested]
    return len(counts) == 2 and fisher(*counts[0], *counts[1]) > RARE


def check(
    table: Table, *, seed: int | None = None, told: Callable[[int, int], None] | None = None
) -> tuple[Found, str]:
    """Trains one of the runs of a table again, drawn with `seed`; anew each time without one. What
    was found, in a word and in sentences.

    Raises SizeError for a table without runs, and what training raises where this version cannot
    train the run.
    """
    from separatrix.training.alone import train

    choices = [(row, rate, one) for row in table.rows for rate in row.rates for one in rate.trials]
    if not choices:
        raise SizeError(f"the recorded results of {table.experiment} hold no run")
    row, rate, recorded = choices[int(np.random.default_rng(seed).integers(len(choices)))]
    run = recorded_run(row, rate.learning_rate, recorded.seed)
    again = train(run, progress=told).outcome
    found = compared(recorded, rate.trials, again)
    labels = ", ".join(f"{name} {value}" for name, value in row.labels.items())
    shares = [100 * float(seed.accuracy) for seed in rate.trials]
    return found, (
        f"{found}: {labels}, learning rate {rate.learning_rate:g}, seed {recorded.seed}:"
        f" {again.right:,} of {again.due:,} answers right after {again.steps_done:,} steps;"
        f" recorded: {recorded.right:,} of {recorded.due:,} after {recorded.steps_done:,}."
        f" Recorded seeds lie from {min(shares):.1f} to {max(shares):.1f} %."
    )


def _counts(one: Outcome) -> Outcome:
    """What two equal trainings have in common."""
    formats = tuple(replace(each, bits=0.0) for each in one.formats)
    return replace(one, seconds=0.0, bits=0.0, bits_squares=0.0, formats=formats)
