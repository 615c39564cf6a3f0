"""Recall on a capability card: Eva with as many values as the vocabulary has tokens."""

from __future__ import annotations

from separatrix.architecture import Architecture
from separatrix.cards.line import CardLine, kinds
from separatrix.tasks import Eva
from separatrix.theory.base import number
from separatrix.theory.fails.i_bounded_caches import TheoremI
from separatrix.theory.judge import judge


def recall(architecture: Architecture, context: int, values: int) -> list[CardLine]:
    """Recall of one of n facts of that vocabulary, and the same with a chain of thought where
    that changes nothing.
    """
    question = f"recall of one of n facts (vocabulary {values:,})"
    verdict = judge(architecture, Eva(n=context, V=values))[0]
    if verdict.status == "SOLVABLE":
        explain = (
            "Some weights answer every question of this kind at this context: name any of"
            f" {context:,} facts, get its value. The layer looks the fact up by its address instead"
            " of remembering it, so the growing cache does the work; training may not find them."
        )
        return [
            CardLine(
                question, "SOLVABLE", None, verdict.statement, verdict.theorem, verdict, explain
            )
        ]
    theorem = TheoremI()
    n = theorem.threshold(architecture, Eva(n=1, V=values))  # V stays, whatever n is
    if n is None:
        explain = (
            "Neither a bound nor a construction of this program covers it. That is a statement"
            " about the theory, not about the model."
        )
        return [
            CardLine(
                question,
                verdict.status,
                verdict.n,
                verdict.statement,
                verdict.theorem,
                verdict,
                explain,
            )
        ]
    verdict = theorem.judge(architecture, Eva(n=n + (n == values), V=values))
    if verdict is None or verdict.status != "FAILS" or verdict.n != n:
        raise AssertionError(f"Theorem I at its own threshold n = {n} says {verdict}")
    text = (
        f"n log2 {values:,} > {number(verdict.numbers['cache_bits'])} bits of cache, which hold"
        f" {number(n - 1)} such facts at the most"
    )
    explain = (
        "Whatever its weights, the model answers some recall question wrongly once the prompt"
        f" holds {number(n)} facts. All it keeps of them is {kinds(architecture)} of"
        f" {number(verdict.numbers['cache_bits'])} bits, and there are more lists of facts than"
        " contents of that cache."
    )
    thought = (
        "Letting the model write before it answers does not help. What it writes is worked out from"
        " the same cache, so two lists of facts that look alike to the cache still look alike"
        " afterwards."
    )
    return [
        CardLine(question, "FAILS", n, text, "I", verdict, explain),
        CardLine(
            "recall with chain of thought",
            "FAILS",
            n,
            "what is written is a function of the cache",
            "I",
            verdict,
            thought,
        ),
    ]
