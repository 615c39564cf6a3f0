"""Statements of theory.md that decide nothing by themselves here: upper bounds about tasks or
machines that no record is made for yet.
"""

from __future__ import annotations

from dataclasses import dataclass


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
