"""How many prefixes a task tells apart: the counts of theory.md, section 3, each an exact integer
at any size; and statements of theory.md that decide nothing by themselves here.

Two prefixes are equivalent when every continuation has the same answer after both. For promise
tasks, where not every continuation is allowed, the count is the size of the largest set of prefixes
that are told apart two by two. `tests/quality/test_counts.py` counts all of them by brute force.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from separatrix.core.errors import SizeError
from separatrix.core.numbers.binomials import Binomial, BinomialSum
from separatrix.core.numbers.counts import Count, Exact, Power, Product
from separatrix.tasks.dyck import stack_classes


@dataclass(frozen=True)
class PrefixCount:
    """One row of the table: `count` takes the sizes named in `sizes`."""

    title: str
    formula: str
    sizes: tuple[str, ...]
    count: Callable[[Mapping[str, int]], Count]
    sketch: str
    source: str = "theory.md, section 3"

    def __call__(self, **sizes: int) -> Count:
        """The number of classes at these sizes. Raises SizeError for sizes that are missing,
        unknown, not positive, or admit no prefix.
        """
        if set(sizes) != set(self.sizes):
            raise SizeError(
                f"{self.title}: sizes are {', '.join(self.sizes)}; given are"
                f" {', '.join(sizes) or 'none'}"
            )
        for name, value in sizes.items():
            if type(value) is not int or value < 1:
                raise SizeError(
                    f"{self.title}: {name} is {value!r}; it must be an integer of at least 1"
                )
        return self.count(sizes)


def _choose(upper: int, lower: int, what: str) -> Binomial:
    if lower > upper:
        raise SizeError(f"there are no {lower:,} different {what} among {upper:,}; choose fewer")
    return Binomial(upper, lower)


COUNTS: dict[str, PrefixCount] = {
    "eva": PrefixCount(
        "Eva, and a sequence indexed by position",
        "V^n",
        ("n", "V"),
        lambda s: Power(s["V"], s["n"]),
        sketch=(
            "Two functions f differ at some x, and the continuation x asks for it; equal ones have"
            " the same answers. Hence [Ye26]: L H d (d+1) p >= n log n for V = n."
        ),
        source="[Ye26]; theory.md, section 3",
    ),
    "equality": PrefixCount(
        "equality of two strings of n bits",
        "2^n",
        ("n",),
        lambda s: Power(2, s["n"]),
        sketch="After a string u the continuation u is accepted and every other is not.",
        source="[Bha24]; theory.md, section 3",
    ),
    "disjointness": PrefixCount(
        "disjointness of two sets of n elements",
        "2^n",
        ("n",),
        lambda s: Power(2, s["n"]),
        sketch=(
            "Two sets differ at some element, and the continuation that holds this element alone"
            " meets one of them."
        ),
        source="[Bha24]; theory.md, section 3",
    ),
    "two-sum": PrefixCount(
        "2-Sum as a decision, n distinct values of the half range",
        "binom(N', n), N' = floor((M-1)/2)",
        ("n", "M"),
        lambda s: _choose((s["M"] - 1) // 2, s["n"], "values of the half range"),
        sketch=(
            "No two values of 1..N' cancel, so the answer hangs on what follows; of two sets one"
            " holds some x that the other lacks, and -x tells. Between n log(N'/n) and n log(e"
            " N'/n)."
        ),
    ),
    "match2-distinct": PrefixCount(
        "2-Sum per query, n distinct values",
        "binom(M, n)",
        ("n", "M"),
        lambda s: _choose(s["M"], s["n"], "values"),
        sketch="The answers to all queries -x list the values seen.",
        source="[San23]; theory.md, section 3",
    ),
    "match2": PrefixCount(
        "2-Sum per query, values may repeat",
        "sum over j = 1..min(n, M) of binom(M, j)",
        ("n", "M"),
        lambda s: BinomialSum(s["M"], min(s["n"], s["M"])),
        sketch=(
            "The answers to all queries list the set of values seen, of which n tokens hold between"
            " 1 and min(n, M)."
        ),
        source="[San23]; theory.md, section 3",
    ),
    "recall-distinct": PrefixCount(
        'recall, n distinct keys of K, absent keys answered "none"',
        "binom(K, n) V^n",
        ("n", "K", "V"),
        lambda s: Product((_choose(s["K"], s["n"], "keys"), Power(s["V"], s["n"]))),
        sketch="Asking for every key lists the keys that were written and their values.",
    ),
    "recall": PrefixCount(
        'recall, keys may repeat, the last write wins, absent keys answered "none"',
        "sum over j = 1..min(n, K) of binom(K, j) V^j",
        ("n", "K", "V"),
        lambda s: BinomialSum(s["K"], min(s["n"], s["K"]), s["V"]),
        sketch=(
            "Asking for every key lists the keys that were written and their last values: between 1"
            " and min(n, K) keys."
        ),
    ),
    "recall-promise": PrefixCount(
        "recall with the queried key promised present (MQAR)",
        "V^n (promise)",
        ("n", "V"),
        lambda s: Power(s["V"], s["n"]),
        sketch=(
            "With the same keys, different values are told apart. No larger set is: prefixes told"
            " apart two by two are disjoint subcubes of all V^K assignments, each a V^-n part of"
            " them."
        ),
    ),
    "counting": PrefixCount(
        "counting ones",
        "n + 1",
        ("n",),
        lambda s: Exact(s["n"] + 1),
        sketch="What matters of n bits is how many are ones, from 0 to n.",
    ),
    "counting-queried": PrefixCount(
        "counting the queried symbol",
        "binom(n + V - 1, V - 1)",
        ("n", "V"),
        # stars and bars: V counts of at least 0 that add up to n
        lambda s: Binomial(s["n"] + s["V"] - 1, s["V"] - 1),
        sketch="Asking for every symbol lists the V counts, which are n in total.",
    ),
    "dyck-valid": PrefixCount(
        "bounded Dyck-(k, D), valid prefixes of n brackets",
        "sum over j <= min(D, n), j = n mod 2, of k^j",
        ("k", "D", "n"),
        lambda s: stack_classes(k=s["k"], D=s["D"], t=s["n"], dead=False),
        sketch=(
            "What matters is the stack of open brackets; closing them in order is accepted after"
            " this stack and after no other."
        ),
        source="[Bha24]; theory.md, section 3",
    ),
    "dyck": PrefixCount(
        "bounded Dyck-(k, D), prefixes of n brackets, invalid ones too",
        "1 + sum over j <= min(D, n), j = n mod 2, of k^j",
        ("k", "D", "n"),
        lambda s: stack_classes(k=s["k"], D=s["D"], t=s["n"], dead=True),
        sketch=(
            "As for valid prefixes, and one class for those that nothing can repair. A recurrent"
            " layer of ceil(log(1 + sum_{j <= D} k^j)) bits, one state for each stack and one for"
            " failure, solves it at every length."
        ),
        source="[Bha24]; theory.md, section 3",
    ),
}
"""Key -> count, in the order of the table."""


@dataclass(frozen=True)
class Statement:
    """A theorem without a finite evaluation in this program."""

    title: str
    statement: str
    premises: tuple[str, ...]
    source: str
    proof_sketch: str


KNOWN: dict[str, Statement] = {
    "dyck-automaton": Statement(
        "bounded Dyck in a recurrent layer",
        "A recurrent layer of ceil(log2(1 + sum_{j <= D} k^j)) bits solves bounded Dyck-(k, D) at"
        " every length.",
        ("the update is an arbitrary function of state and token",),
        "[Bha24]; theory.md, sections 3 and 6",
        "The state is the stack of open brackets, or failure. Whether a given mechanism can update"
        " such a state is another question.",
    ),
    "qsa-one-layer": Statement(
        "q-sparse averaging in one full layer, where one token names all places",
        "One full layer of embedding dimension about q + log n averages the q tokens that each"
        " token names.",
        ("full attention", "precision about log n"),
        "[San23]; theory.md, section 6",
        "Random directions for the tokens: a query with product 1 on its q keys and at most 1/2"
        " elsewhere exists, and a large scale does the rest.",
    ),
    "tc0": Statement(
        "conditional: softmax attention of fixed depth does not track S_5",
        "If TC0 != NC1, a stack of softmax attention and of recurrences that only move one way, of"
        " fixed depth and with numbers of O(log n) bits, fails the product of n permutations of"
        " five things at some n. No n is known, and the premise is believed and not proved.",
        ("TC0 != NC1", "fixed depth; numbers of O(log n) bits"),
        "Merrill, Sabharwal, arXiv 2207.00729; Merrill, Petty, Sabharwal, arXiv 2404.08819;"
        " Barrington 1989; theory.md, section 10",
        "Such stacks are computed by threshold circuits of constant depth, and the word problem of"
        " S_5 is complete for NC1. Parity lies in TC0, so nothing follows for it.",
    ),
    "aperiodic": Statement(
        "with positions, recurrences that only move one way fail parity at some n",
        "A stack of monotone recurrences, windows and short convolutions at fixed sizes fails"
        " parity at some n, whatever it knows of places. No n is named; without positions"
        " Theorem P names one.",
        ("the sizes and formats of the stack are fixed", "states are rounded after every token"),
        "Furst, Saxe, Sipser 1984; theory.md, section 10 [here]",
        "At each place a token acts on each layer's state by a non-decreasing map, and such maps"
        " generate an aperiodic monoid of constant size, whose products lie in AC0 with arbitrary"
        " maps at each place. Parity does not.",
    ),
}
"""Key -> statement."""
