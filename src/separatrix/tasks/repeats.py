"""How often a test prompt has been drawn before, where there are few prompts."""

from __future__ import annotations

from fractions import Fraction

from separatrix.tasks.base.task import Task

MOST_DRAWN = 1 << 80
"""More prompts than this are drawn by nobody."""


def repeats(task: Task, drawn: int) -> str:
    """A sentence, where of the prompts drawn after `drawn` others at least half are among those, on
    average; else nothing.

    Of P prompts with probabilities p_i, the next one is new with the probability sum p_i (1 -
    p_i)^N. Each term is at most that of p = 1/(N + 1), which is at most 1/(2 (N + 1)) for N >= 1:
    together at most P/(2 (N + 1)), however prompts are drawn.
    """
    count = task.prompts()
    if drawn < 1 or drawn > MOST_DRAWN or count.exceeds_bits(drawn.bit_length() + 1):
        return ""
    prompts = count.exact()
    known = 1 - Fraction(prompts, 2 * (drawn + 1))
    if known < Fraction(1, 2):
        return ""
    tenths = int(known * 1000)
    return (
        f"{task.spec} has at most {prompts:,} prompts, and training drew {drawn:,} times: on"
        f" average at least {tenths // 10}.{tenths % 10} % of the test prompts had been trained on"
    )
