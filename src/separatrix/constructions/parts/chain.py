"""Chains of retrieval heads: each hop asks for an address, reads the bits stored there, and cleans
them.

The proof is derived from the weights (`separatrix.proofs.derivations`); here is what makes it hold.
"""

from __future__ import annotations

from fractions import Fraction

from separatrix.core.errors import SizeError
from separatrix.proofs.arithmetic import Arithmetic
from separatrix.proofs.softmax import mixing, off_target
from separatrix.tasks import Task

SCALE = 4
"""s: a power of two, so that scores are exact; the gap 2 s^2 = 32 makes everything off target
weigh less than n e^-32.
"""


def fits(task: Task, arithmetic: Arithmetic) -> None:
    """Raises SizeError for more keys than a softmax can be bounded for, before any weight is
    made.
    """
    if not arithmetic.claims:
        return
    # rounding of scores takes less than 1 of the gap; the threshold allows 1/2
    mass = off_target(task.length, Fraction(2 * SCALE * SCALE - 1), arithmetic)
    if mixing(task.length, mass, arithmetic) >= Fraction(1, 2):
        raise SizeError(
            f"{task.length:,} keys: {arithmetic.title} misses the thresholds of the construction;"
            " use a smaller n"
        )
