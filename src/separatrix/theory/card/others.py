"""2-Sum, equality, nested brackets and state tracking on a capability card."""

from __future__ import annotations

from separatrix.architecture import Architecture
from separatrix.bits import smallest
from separatrix.evidence import Verdict
from separatrix.tasks import Dyck, Equality, TwoSum
from separatrix.tasks._base import LARGEST_SIZE
from separatrix.theory._base import number
from separatrix.theory.card._line import CardLine, kinds
from separatrix.theory.classes import TheoremI
from separatrix.theory.judge import judge

RATIO = 1024
"""M / n of the 2-Sum line: values are drawn from many more than there are tokens."""
_UNDECIDED = "Neither a bound nor a construction of this program covers it. That is a statement about the theory, not about the model."


def two_sum(architecture: Architecture, context: int) -> list[CardLine]:
    """Does some earlier token cancel the last one, modulo M = 1,024 n?"""
    question = f"2-Sum per query (M = {RATIO:,} n)"
    n = min(context, LARGEST_SIZE // RATIO)
    verdict = judge(architecture, TwoSum(n=n, M=RATIO * n))[0]
    if verdict.status == "SOLVABLE":
        explain = f"Some weights tell, for each new token, whether an earlier one of {n:,} cancels it. The layer compares it with all others at once."
        return [CardLine(question, "SOLVABLE", None, verdict.statement, verdict.theorem, verdict, explain)]
    if verdict.n is None:
        return [CardLine(question, "OPEN", None, verdict.statement, verdict.theorem, verdict, _UNDECIDED)]
    if verdict.theorem != TheoremI.key:
        explain = (
            f"Whatever its weights, the layer misses a match in some prompt of {number(verdict.n)} tokens. It opens too few blocks, and what it keeps "
            "of the others in short cannot tell all their contents apart."
        )
        return [CardLine(question, "FAILS", verdict.n, verdict.statement, verdict.theorem, _at(architecture, verdict.n), explain)]
    record = _at(architecture, verdict.n)
    cache = number(record.numbers["cache_bits"])
    explain = (
        f"Whatever its weights, the model misses a match, or sees one that is not there, in some prompt of {number(verdict.n)} tokens. It keeps "
        f"{kinds(architecture)} of {cache} bits, and there are more sets of values than contents of that cache."
    )
    text = f"more sets of n values than {cache} bits of cache can hold, with or without chain of thought"
    return [CardLine(question, "FAILS", verdict.n, text, "I", record, explain)]


def _at(architecture: Architecture, n: int) -> Verdict:
    return next(verdict for verdict in judge(architecture, TwoSum(n=n, M=RATIO * n)) if verdict.status == "FAILS")


def equality(architecture: Architecture, context: int) -> list[CardLine]:
    """Are two strings of n bits equal, both within the context?"""
    question = "equality of two strings"
    strings = Equality(n=max(1, context // 2))
    verdict = judge(architecture, strings)[0]
    if verdict.status == "SOLVABLE":
        explain = (
            "Some weights compare two strings of any length at hand bit by bit. One full layer fetches each bit's partner, a second one looks for a "
            "pair that differs."
        )
        return [CardLine(question, "SOLVABLE", None, verdict.statement, verdict.theorem, verdict, explain)]
    if verdict.n is None:
        return [CardLine(question, "OPEN", None, "no theorem here decides it for a cache that grows", "none", verdict, _UNDECIDED)]
    record = next(found for found in judge(architecture, Equality(n=verdict.n)) if found.status == "FAILS")
    if record.theorem == "I'":
        h = number(record.numbers["h"])
        text = f"strings of n bits, of which one full layer reads {h}"
        explain = (
            f"Whatever its weights, the model takes some two different strings of {number(verdict.n)} bits for equal, or the reverse. Its only layer "
            f"with memory reads {h} bits of the first string, in one go, and two strings with the same reading look alike."
        )
    else:
        cache = number(record.numbers["cache_bits"])
        text = f"two strings of n bits differ in 2^n ways; {cache} bits of cache"
        explain = (
            f"Whatever its weights, the model takes some two different strings of {number(verdict.n)} bits for equal, or the reverse. It keeps "
            f"{kinds(architecture)} of {cache} bits, too few to hold every such string."
        )
    return [CardLine(question, "FAILS", verdict.n, text, record.theorem, record, explain)]


def dyck(architecture: Architecture) -> list[CardLine]:
    """Nested brackets of two kinds: the depth from which no bounded cache can hold what is open."""
    question = "nested brackets of 2 kinds"
    cache = architecture.cache_bits(1 << 62)
    if architecture.reading or cache != architecture.cache_bits(1 << 63):
        return [CardLine(question, "OPEN", None, "no theorem here decides it for a cache that grows", "none", None, _UNDECIDED)]
    depth = smallest(lambda d: Dyck(n=2 * d, k=2, D=d).prefix_classes().exceeds_bits(cache), 1, limit=LARGEST_SIZE // 8)
    if depth is None:
        return [CardLine(question, "OPEN", None, f"no bound up to depth {LARGEST_SIZE // 8:,}", "none", None, _UNDECIDED)]
    verdict = next(found for found in judge(architecture, Dyck(n=2 * depth, k=2, D=depth)) if found.status == "FAILS")
    text = f"from nesting depth {number(depth)} on: more stacks of open brackets than {number(cache)} bits of cache can hold"
    explain = (
        f"Whatever its weights, the model misjudges some brackets nested {number(depth)} deep. It has to remember which brackets are open, a bit each, "
        f"and keeps {kinds(architecture)} of {number(cache)} bits; whether it uses them well at smaller depths is another question."
    )
    return [CardLine(question, "FAILS", verdict.n, text, "I", verdict, explain)]


def permutation(architecture: Architecture) -> CardLine:
    """Tracking a permutation of five things: no theorem here."""
    names = {part.name for layer, _ in architecture.counted() for part in layer}
    diagonal = "rglru" in names and not names & {"gdn", "mamba2", "full"}
    text = "diagonal recurrence; no theorem here covers it" if diagonal else "no theorem here covers it"
    explain = (
        "Following a long row of swaps needs one small state updated at every token. Recurrences with negative eigenvalues can, and full attention "
        "of fixed depth is believed not to; nothing of the kind is proved here."
    )
    return CardLine("permutation tracking (S_5)", "OPEN", None, text, "none", None, explain)
