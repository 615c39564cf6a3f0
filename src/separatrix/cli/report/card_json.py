"""The capability card as plain data: a stable interface for machines."""

from __future__ import annotations

from collections.abc import Iterable
from decimal import Context, Decimal, InvalidOperation
from typing import TYPE_CHECKING, Any

from separatrix.cli.report.costs import costs_json
from separatrix.core.numbers.amounts import bytes_of
from separatrix.theory.fits import built_by
from separatrix.theory.judge import THEOREMS

if TYPE_CHECKING:
    from separatrix.cards import CardFacts, CardLine
    from separatrix.cards.memory import Row
    from separatrix.cards.question import Bound, Grade
    from separatrix.core.evidence.records import Verdict

_LOG10_OF_2 = Decimal(2).log10(Context(prec=40))


def card_json(facts: CardFacts) -> dict[str, Any]:
    """The card as plain data. Bytes are integers, floats where a number format leaves a
    fraction.
    """
    return {
        "name": facts.name,
        "context": facts.context,
        "layers": facts.layers,
        "pattern": "".join(facts.symbols),
        "positions": facts.positions,
        "cache": {
            "recurrent_numbers": facts.recurrent_numbers,
            "convolution_numbers": facts.convolution_numbers,
            **held(facts.memory),
            "total_bytes": bytes_of(facts.bits),
        },
        "cost": costs_json(facts.costs),
        "forgets": facts.forgets,
        "holds": facts.holds,
        "rows": [row.to_json() for row in facts.table],
        "verdicts": [_verdict_json(line) for line in facts.lines],
        "defaults": list(facts.defaults),
        "assumptions": list(facts.assumptions),
        "unknown": list(facts.unknown),
    }


def held(memory: Iterable[Row]) -> dict[str, Any]:
    """Bytes of states, of windows, and of each token where keys and values grow."""
    kept = {row.kind: row.per_token if row.kind == "kv" else row.bits for row in memory}
    return {
        "state_bytes": bytes_of(kept.get("state", 0) + kept.get("convolution", 0)),
        "window_bytes": bytes_of(kept.get("window", 0)),
        "kv_bytes_per_token": bytes_of(kept.get("kv", 0)),
    }


def _verdict_json(line: CardLine) -> dict[str, Any]:
    verdict = line.verdict
    data: dict[str, Any] = {
        "key": line.key,
        "question": line.question.strip(),
        "task": verdict.task if verdict else None,
        "status": line.status,
        "theorem": line.theorem,
        "n": line.n,
        "text": line.reason,
        "explain": line.explain,
        "sizes": dict(verdict.numbers) if verdict else {},
        "assumptions": [*verdict.notes, *verdict.assumptions] if verdict else [],
    }
    if line.status == "SOLVABLE" and verdict is not None:
        data["built_by"] = list(built_by(verdict))
    if line.grade is not None:
        data["accuracy"] = _accuracy_json(line.grade)
    if line.bound is not None:
        data["bound"] = _bound_json(line.bound)
    if line.n is None and verdict and verdict.log2_n:
        data["log10_n"] = log10_of(verdict)
    return data


def _accuracy_json(grade: Grade) -> dict[str, Any]:
    """The highest accuracy on random questions of the task, as a number rounded up."""
    return {
        "theorem": grade.verdict.theorem,
        "task": grade.verdict.task,
        "at_most": grade.ceiling / 10**6,
        "text": grade.said,
        "explain": grade.why,
        "sizes": dict(grade.verdict.numbers),
    }


def _bound_json(bound: Bound) -> dict[str, Any]:
    """Where a theorem shows failure beyond the context: at n, or from n on if larger sizes fail
    too.
    """
    return {
        "theorem": bound.theorem,
        "n": bound.n,
        "larger_fail_too": THEOREMS[bound.theorem].larger_fail_too,
        "asked": bound.asked,
        "out_of_reach": bound.out_of_reach,
        "task": bound.verdict.task if bound.verdict else None,
        "sizes": dict(bound.verdict.numbers) if bound.verdict else {},
        # of a bound that was not searched for: no n up to it
        **({"no_n_up_to": bound.beyond} if bound.beyond else {}),
    }


def log10_of(verdict: Verdict) -> float | str | None:
    """The base-10 logarithm of an n too large to write: a number, as text where a float cannot
    hold it, None if it is no plain number.
    """
    try:
        value = Decimal(verdict.log2_n or "") * _LOG10_OF_2
    except InvalidOperation:
        return None
    return float(value) if value < Decimal("1e300") else f"{value:.6e}"
