"""Verdicts in short, as tables and cards of a report hold them: derived here once, so that
`verify` can derive them again.
"""

from __future__ import annotations

from typing import Any

from separatrix.cards.facts import card_facts
from separatrix.core.evidence.records import Evidence, Verdict
from separatrix.core.numbers.amounts import format_bytes
from separatrix.stacks.architecture import Architecture, bounded_bits
from separatrix.tasks import parse_task
from separatrix.theory.base import counted, number, size_in_words
from separatrix.theory.judge import THEOREMS


def decisive(verdict: Verdict) -> str:
    """The number that decides a cell, short: the n at which, or from which on, it fails; or the n
    it is built for.
    """
    if verdict.status == "SOLVABLE":
        task = parse_task(verdict.task)
        return f"n = {number(size_in_words(task)[1])}"
    if verdict.n is None:
        return "undecided"
    return THEOREMS[verdict.theorem].failing_briefly(verdict.n)


def bound_curve(verdict: Verdict) -> dict[str, Any]:
    """The curve of Theorem I on a verdict's family: bits that n values need, and bits carried,
    around the n where they cross. Of a stack that reads a growing cache, also the bits that its
    other heads carry, which alone would fail.
    """
    architecture = Architecture.parse(verdict.architecture)
    task = parse_task(verdict.task)
    tasks = task.family()
    ns = sorted({max(tasks.smallest, round(2 ** (k / 4))) for k in range(8, 41)})
    members = [tasks.at(n) for n in ns]
    lengths = [member.prefix_length for member in members]
    own: dict[str, Any] = {}
    if architecture.reading:
        fixed = [sum(bounded_bits(layer, t) for layer in architecture) for t in lengths]
        own = {"fixed": fixed, "fixed_title": "bits that do not grow"}
    return own | {
        "x": size_in_words(task)[0],
        "n": [size_in_words(member)[1] for member in members],
        "have": [architecture.cache_bits(t) for t in lengths],
        "need": [counted(member).log2_str(6) for member in members],
        "have_title": "bits of cache",
        "need_title": f"bits needed to tell all prefixes apart ({tasks.described})",
    }


def model_summary(
    architecture: Architecture, context: int, records: dict[str, Evidence]
) -> dict[str, Any]:
    """A real model's card in short; the verdicts behind its rows are added to `records`."""
    facts = card_facts(architecture, context)
    lines: list[dict[str, Any]] = []
    for row in facts.table:
        behind = [line.record for line in row.lines]
        behind += [line.grade.verdict for line in row.lines if line.grade is not None]
        found = {record.digest: record for record in behind if record is not None}
        records |= found
        # a row that goes on from the one above stands by itself here
        asks = row.asks.replace("  up to ", "compose up to ")
        said = {"question": asks, "status": row.status, "text": row.said}
        lines.append(said | {"records": list(found)})
    still = "does not grow"
    return {
        "spec": architecture.spec,
        "vocabulary": architecture.vocabulary,
        "pattern": " ".join("|".join(part.symbol for part in layer) for layer in architecture),
        "context": context,
        "memory": [
            [row.title, f"{format_bytes(row.bits)}, {row.growth if row.limit is None else still}"]
            for row in facts.memory
        ],
        "lines": lines,
    }
