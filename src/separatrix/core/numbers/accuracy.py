"""Accuracies that a number of bits allows: the highest one about random facts, what storing facts
reaches, and how lucky a measured one would be. Balls decide; accuracies are whole millionths.
"""

from __future__ import annotations

from decimal import ROUND_CEILING, ROUND_FLOOR, Decimal

from flint import arb, ctx, fmpq, fmpz

from separatrix.core.errors import SizeError, Undecided
from separatrix.core.numbers.counts import Count
from separatrix.core.numbers.first_size import first_size
from separatrix.core.numbers.logs import PRECISIONS, floored, log2_ball

WHOLE = 10**6
"""An accuracy of 1."""
_ENOUGH = 1 << 14
"""Bits in which the luck of every measurement is told."""


def highest_accuracy(contents: Count, facts: int, values: int, bits: int) -> int:
    """The highest average accuracy about `facts` random facts, each of `values` values and all
    together one of `contents` equally likely lists, of whoever keeps `bits` bits of the list.

    It is the largest a in [1/values, 1] with facts * phi(a) >= log2(contents) - bits, where phi(a)
    = h(a) + (1 - a) log2(values - 1); phi falls from log2(values) to 0. Rounded up to millionths,
    certified; 1 where the list fits in the bits. Raises Undecided where it stays open whether it
    does, and SizeError for sizes that are none.
    """
    _check(facts, values, bits)
    if not contents.exceeds_bits(bits):
        return WHOLE

    def beyond(accuracy: int) -> bool:
        """Whether a comparison shows that no such accuracy is reached; one that stays open does
        not.
        """
        for precision in PRECISIONS:
            with ctx.workprec(precision):
                left = facts * _phi(accuracy, values) + bits - contents.log2_ball()
            if left < 0 or left > 0:
                return bool(left < 0)
        return False

    # at an accuracy of 1, phi is 0, and the list does not fit
    found = first_size(beyond, -(-WHOLE // values), limit=WHOLE)
    return WHOLE if found is None else found


def stored_accuracy(facts: int, values: int, bits: int) -> int:
    """The average accuracy of whoever stores as many facts as fit in the bits and guesses the
    others among all values, in millionths, rounded down.
    """
    _check(facts, values, bits)
    stored = min(facts, facts_that_fit(values, bits))
    return WHOLE * (stored * values + facts - stored) // (facts * values)


def facts_that_fit(values: int, bits: int) -> int:
    """floor(bits / log2(values)): how many facts that many bits hold."""
    _check(1, values, bits)
    # a whole number of facts fills the bits only where values are a power of two
    if values & (values - 1) == 0:
        return bits // (values.bit_length() - 1)
    found = floored(lambda: bits / log2_ball(values))
    if found is None:
        raise Undecided(f"how many facts of {values:,} values fit in {bits:,} bits is open")
    return found


def luck(correct: int, total: int, highest: int) -> int:
    """How unlikely it is that `correct` of `total` independent answers are right, or more, where
    each is with at most `highest` millionths: -log2 of the probability is at least this.

    Chernoff: total * D(correct/total || highest), rounded down; 0 where it is no more than
    expected. Raises SizeError for counts that are none.
    """
    if total < 1 or not 0 <= correct <= total or not 0 < highest <= WHOLE:
        raise SizeError(f"{correct} right of {total} with at most {highest:,} millionths")
    if correct * WHOLE <= highest * total:
        return 0
    with ctx.workprec(128):
        a = fmpq(correct, total)
        c = fmpq(highest, WHOLE)
        wrong = arb(1 - a) * _log2((1 - a) / (1 - c)) if correct < total else arb(0)
        bits = total * (arb(a) * _log2(a / c) + wrong)
        return min(_ENOUGH, int(bits.lower().floor().unique_fmpz() or 0))


def percent(millionths: int, *, up: bool = True) -> str:
    """An accuracy for people, rounded up (else down): "80.7 %", "0.0004 %"; less than 1 is never
    "100 %", and more than 0 never "0 %".
    """
    value = Decimal(millionths) / 10**4
    if millionths in (0, WHOLE):
        return f"{value:.0f} %"
    way = ROUND_CEILING if up else ROUND_FLOOR
    for digits in range(1 if value >= 10 else 2 if value >= 1 else 3, 4):
        shown = value.quantize(Decimal(1).scaleb(-digits), way)
        if 0 < shown < 100:
            return f"{shown} %"
    return f"{value:.4f} %"


def _check(facts: int, values: int, bits: int) -> None:
    if facts < 1 or values < 2 or bits < 0:
        raise SizeError(
            f"{facts:,} facts of {values:,} values in {bits:,} bits: need at least 1 fact, 2 values"
            " and 0 bits"
        )


def _phi(accuracy: int, values: int) -> arb:
    """h(a) + (1 - a) log2(values - 1): what is not known of a fact that is guessed with accuracy
    a.
    """
    a = fmpq(accuracy, WHOLE)
    if a == 1:
        return arb(0)
    unknown = log2_ball(values - 1) * arb(1 - a)
    return unknown - arb(a) * _log2(a) - arb(1 - a) * _log2(1 - a)


def _log2(ratio: fmpq) -> arb:
    return log2_ball(int(fmpz(ratio.p))) - log2_ball(int(fmpz(ratio.q)))
