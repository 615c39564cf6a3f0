"""The capability card as plain data: a stable interface for machines. Memory comes from the
declared sizes, verdicts from `separatrix.cards`.
"""

from __future__ import annotations

from collections.abc import Sequence
from decimal import Context, Decimal, InvalidOperation
from typing import TYPE_CHECKING, Any

from separatrix.architecture import Architecture
from separatrix.numbers.amounts import bytes_of, check_context
from separatrix.report.memory import FAR, largest_numbers, layer_counts, pattern, rows

if TYPE_CHECKING:
    from separatrix.cards import CardLine
    from separatrix.evidence.records import Verdict

_LOG10_OF_2 = Decimal(2).log10(Context(prec=40))


def card_lines(architecture: Architecture, context: int) -> list[CardLine]:
    """What the theory says about the architecture at `context` tokens. Raises SizeError for a
    context that is none.
    """
    from separatrix.cards import card

    check_context(context)
    return card(architecture, context)


def card_json(
    architecture: Architecture, context: int, *, lines: Sequence[CardLine] | None = None
) -> dict[str, Any]:
    """The card as plain data. Bytes are integers, floats where a number format leaves a
    fraction. Raises SizeError as `card_lines` does.
    """
    check_context(context)
    lines = card_lines(architecture, context) if lines is None else lines
    memory = {row.kind: row for row in rows(architecture, context)}
    kv = memory.get("kv")
    return {
        "name": str(architecture),
        "context": context,
        "layers": layer_counts(architecture),
        "pattern": pattern(architecture),
        "cache": {
            "recurrent_numbers": largest_numbers(architecture, "state", context),
            "convolution_numbers": largest_numbers(architecture, "convolution", FAR),
            "state_bytes": bytes_of(
                sum(memory[kind].bits for kind in ("state", "convolution") if kind in memory)
            ),
            "window_bytes": bytes_of(memory["window"].bits if "window" in memory else 0),
            "kv_bytes_per_token": bytes_of(kv.per_token if kv else 0),
            "total_bytes": bytes_of(sum(row.bits for row in memory.values())),
        },
        "verdicts": [_verdict_json(line) for line in lines],
        "assumptions": assumptions(architecture),
        "unknown": unknown(architecture),
    }


_SAID_BY_NOTES = {
    "the recurrent state holds": "recurrent state",
    "softmax accumulators": "softmax accumulators",
}
"""How a mechanism's own assumption begins, and how a reader's note that says the same and more
does.
"""


def assumptions(architecture: Architecture) -> list[str]:
    """What is taken for granted, each thing said once: a reader's note on a format stands for
    the mechanism's own words.
    """
    noted = [
        start
        for start in _SAID_BY_NOTES.values()
        if any(note.startswith(start) for note in architecture.notes)
    ]
    said = architecture.assumptions
    return [
        text
        for text in said
        if text in architecture.notes
        or not any(text.startswith(own) and start in noted for own, start in _SAID_BY_NOTES.items())
    ]


def unknown(architecture: Architecture) -> list[str]:
    """Facts the card would need and nobody gave."""
    facts = {"vocabulary": architecture.vocabulary, "context": architecture.context}
    return [name for name, value in facts.items() if value is None]


def _verdict_json(line: CardLine) -> dict[str, Any]:
    verdict = line.verdict
    data: dict[str, Any] = {
        "question": line.question.strip(),
        "task": verdict.task if verdict else None,
        "status": line.status,
        "theorem": line.theorem,
        "n": line.n,
        "text": line.text,
        "explain": line.explain,
        "sizes": dict(verdict.numbers) if verdict else {},
        "assumptions": list(verdict.assumptions) if verdict else [],
    }
    if line.n is None and verdict and verdict.log2_n:
        data["log10_n"] = log10_of(verdict)
    return data


def log10_of(verdict: Verdict) -> float | str | None:
    """The base-10 logarithm of an n too large to write: a number, as text where a float cannot
    hold it, None if it is no plain number.
    """
    try:
        value = Decimal(verdict.log2_n or "") * _LOG10_OF_2
    except InvalidOperation:
        return None
    return float(value) if value < Decimal("1e300") else f"{value:.6e}"
