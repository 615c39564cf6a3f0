"""2-Sum, equality, nested brackets and state tracking on a capability card."""

from __future__ import annotations

from separatrix.architecture import Architecture
from separatrix.cards.line import CardLine, kinds
from separatrix.tasks import Dyck, Equality, TwoSum
from separatrix.tasks.base.task import LARGEST_SIZE
from separatrix.tasks.twosum import Form
from separatrix.theory.base import first_excess, number
from separatrix.theory.fails.i_bounded_caches import TheoremI
from separatrix.theory.fails.i_prime_one_layer import TheoremIPrime
from separatrix.theory.judge import judge
from separatrix.theory.nothing import NothingKnown

RATIO = 1024
"""M / n of the 2-Sum line: values are drawn from many more than there are tokens."""
_UNDECIDED = (
    "Neither a bound nor a construction of this program covers it. That is a statement about the"
    " theory, not about the model."
)


def two_sum(architecture: Architecture, context: int) -> list[CardLine]:
    """Does some earlier token cancel the last one, and do any two cancel, modulo M = 1,024 n?"""
    return [_two_sum(architecture, context, "query"), _two_sum(architecture, context, "decision")]


def _two_sum(architecture: Architecture, context: int, form: Form) -> CardLine:
    question = f"2-Sum {'per query' if form == 'query' else 'of any pair'} (M = {RATIO:,} n)"
    n = max(2, min(context, LARGEST_SIZE // RATIO))
    verdict = judge(architecture, TwoSum(n=n, M=RATIO * n, form=form))[0]
    if verdict.status == "SOLVABLE":
        explain = _SOLVES[form].format(n=f"{n:,}")
        return CardLine(
            question, "SOLVABLE", None, verdict.statement, verdict.theorem, verdict, explain
        )
    if verdict.n is None:
        return CardLine(
            question, "OPEN", None, verdict.statement, verdict.theorem, verdict, _UNDECIDED
        )
    record = next(
        v
        for v in judge(architecture, TwoSum(n=verdict.n, M=RATIO * verdict.n, form=form))
        if v.status == "FAILS"
    )
    missed = (
        "Whatever its weights, the model misses a match, or sees one that is not there, in some"
        f" prompt of {number(verdict.n)} tokens."
    )
    if record.theorem == TheoremI.key:
        cache = number(record.numbers["cache_bits"])
        text = (
            f"more sets of n values than {cache} bits of cache can hold, with or without chain of"
            " thought"
        )
        why = (
            f"It keeps {kinds(architecture)} of {cache} bits, and there are more sets of values"
            " than contents of that cache."
        )
    elif record.theorem == TheoremIPrime.key:
        h = number(record.numbers["h"])
        text = f"more sets of n values than one full layer reads in {h} bits"
        why = (
            f"Its only layer with memory reads {h} bits of all values, in one go, and there are"
            " more sets of values than such readings."
        )
    else:
        text = record.statement
        why = (
            "It opens too few blocks, and what it keeps of the others in short cannot tell all"
            " their contents apart."
        )
    return CardLine(question, "FAILS", verdict.n, text, record.theorem, record, f"{missed} {why}")


_SOLVES = {
    "query": (
        "Some weights tell, for each new token, whether an earlier one of {n} cancels it. The layer"
        " compares it with all others at once."
    ),
    "decision": (
        "Some weights tell whether any two of {n} tokens cancel. One full layer flags each token"
        " that an earlier one cancels, a second one looks for a flag."
    ),
}


def equality(architecture: Architecture, context: int) -> list[CardLine]:
    """Are two strings of n bits equal, both within the context?"""
    question = "equality of two strings"
    strings = Equality(n=max(1, context // 2))
    verdict = judge(architecture, strings)[0]
    if verdict.status == "SOLVABLE":
        explain = (
            "Some weights compare two strings of any length at hand bit by bit. One full layer"
            " fetches each bit's partner, a second one looks for a pair that differs."
        )
        return [
            CardLine(
                question, "SOLVABLE", None, verdict.statement, verdict.theorem, verdict, explain
            )
        ]
    if verdict.n is None:
        return [
            CardLine(
                question,
                "OPEN",
                None,
                "no theorem here decides it for a cache that grows",
                "none",
                verdict,
                _UNDECIDED,
            )
        ]
    record = next(
        found for found in judge(architecture, Equality(n=verdict.n)) if found.status == "FAILS"
    )
    if record.theorem == "I'":
        h = number(record.numbers["h"])
        text = f"strings of n bits, of which one full layer reads {h}"
        explain = (
            "Whatever its weights, the model takes some two different strings of"
            f" {number(verdict.n)} bits for equal, or the reverse. Its only layer with memory reads"
            f" {h} bits of the first string, in one go, and two strings with the same reading look"
            " alike."
        )
    else:
        cache = number(record.numbers["cache_bits"])
        text = f"two strings of n bits differ in 2^n ways; {cache} bits of cache"
        explain = (
            "Whatever its weights, the model takes some two different strings of"
            f" {number(verdict.n)} bits for equal, or the reverse. It keeps {kinds(architecture)}"
            f" of {cache} bits, too few to hold every such string."
        )
    return [CardLine(question, "FAILS", verdict.n, text, record.theorem, record, explain)]


def dyck(architecture: Architecture, context: int) -> list[CardLine]:
    """Nested brackets of two kinds: the depth from which the cache cannot hold what is open (d
    brackets after d tokens).
    """
    question = "nested brackets of 2 kinds"
    depth = first_excess(
        lambda d: Dyck(n=2 * d, k=2, D=d).prefix_classes(),
        lambda d: architecture.cache_bits(d),
        1,
        limit=LARGEST_SIZE // 2,
    )
    if depth is None:
        pairs = min(max(1, context // 2), LARGEST_SIZE // 2)
        verdict = NothingKnown().judge(architecture, Dyck(n=2 * pairs, k=2, D=pairs))
        text = (
            f"no bound up to depth {LARGEST_SIZE // 2:,}"
            if not architecture.reading
            else "no theorem here decides it for a cache that grows"
        )
        return [CardLine(question, "OPEN", None, text, "none", verdict, _UNDECIDED)]
    verdict = next(
        found
        for found in judge(architecture, Dyck(n=2 * depth, k=2, D=depth))
        if found.status == "FAILS"
    )
    cache = number(verdict.numbers["cache_bits"])
    text = (
        f"from nesting depth {number(depth)} on: more stacks of open brackets than {cache} bits of"
        " cache can hold"
    )
    explain = (
        f"Whatever its weights, the model misjudges some brackets nested {number(depth)} deep. It"
        f" has to remember which brackets are open, a bit each, and keeps {kinds(architecture)} of"
        f" {cache} bits; whether it uses them well at smaller depths is another question."
    )
    return [CardLine(question, "FAILS", verdict.n, text, "I", verdict, explain)]


def permutation(architecture: Architecture) -> CardLine:
    """Tracking a permutation of five things: no theorem here."""
    bounded = [
        part for layer, _ in architecture.counted() for part in layer if part.group == "recurrent"
    ]
    diagonal = bool(bounded) and not architecture.reading and all(part.diagonal for part in bounded)
    text = (
        "diagonal recurrence; no theorem here covers it"
        if diagonal
        else "no theorem here covers it"
    )
    explain = (
        "Following a long row of swaps needs one small state updated at every token. Recurrences"
        " with negative eigenvalues can, and full attention of fixed depth is believed not to;"
        " nothing of the kind is proved here."
    )
    return CardLine("permutation tracking (S_5)", "OPEN", None, text, "none", None, explain)
