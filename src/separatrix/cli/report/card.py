"""The capability card of an architecture, for people and for machines: one screen, and what `--why`
opens. Lays facts out and decides nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from decimal import Context, Decimal, InvalidOperation
from typing import Any

from separatrix.cards import DEFAULT_VOCABULARY, CardFacts, CardLine, memory
from separatrix.cards.facts import ALL, ASKED, FAR, NOTHING_SPEAKS, TOPICS, Row
from separatrix.cards.question import Bound, Grade
from separatrix.cli.report.costs import (
    EXPLAINED,
    cost_rows,
    costs_json,
    costs_notes,
    memory_text,
    serving_notes,
)
from separatrix.cli.report.notation import theorem_name
from separatrix.core.document import Document, Fold, Heading, Line, Part, Table
from separatrix.core.errors import SpecError
from separatrix.core.evidence.records import Verdict
from separatrix.core.numbers.amounts import bytes_of, format_bytes, format_count
from separatrix.stacks.architecture.hf.fields import OF_THE_TYPE
from separatrix.stacks.architecture.spec import fold
from separatrix.tasks import parse_task
from separatrix.theory.base import readers
from separatrix.theory.judge import THEOREMS
from separatrix.theory.solves.room import from_one, kind_of_readers
from separatrix.theory.words import counted_as
from separatrix.theory.written import built_by, in_construct

LEGEND = "SOLVABLE: weights are known. FAILS: no weights do it. OPEN: neither is known."
DEFAULTS = "not said in the spec, taken by default: "
SPELT = "one token per value"
_UNKNOWN = {
    "vocabulary": "the size of the vocabulary",
    "context": "the longest context it was made for",
}


def card_document(facts: CardFacts) -> Document:
    """One screen: what is carried, read and forgotten, and what is asked of it."""
    asked: list[Part] = [Table([(f"  {row.asks}", row.status, row.said) for row in facts.table])]
    notes = [LEGEND] if facts.table else []
    if not facts.table:
        asked = [Line(f"  Nothing that is asked here has room in {tokens(facts.context)}.")]
    if any(row.decides == FAR for row in facts.table):
        notes.append(NOTHING_SPEAKS.replace("full", kind_of_readers(facts.architecture)))
    notes += [text for text in facts.assumptions if text.startswith(OF_THE_TYPE)]
    granted = len(facts.assumptions) + bool(facts.defaults) + bool(facts.unknown)
    if facts.defaults:
        notes.append(f"{DEFAULTS}{', '.join(facts.defaults)}")
    if facts.context_from:
        notes.append(f"{tokens(facts.context)}: {facts.context_from}; --context asks at another")
    opens = [*dict.fromkeys(row.key for row in facts.table if row.key), "memory", "costs"]
    notes.append(f"--why {', '.join(opens)}, assumptions ({granted}) or all")
    return Document(
        *_header(facts),
        Heading(),
        Table([*_carried(facts)], labels=True),
        Heading(f"Can some weights do it at {tokens(facts.context)}?"),
        *asked,
        Heading(),
        *map(Line, notes),
    )


def card_page(facts: CardFacts) -> list[Part]:
    """The same for a page: each answer, and each topic, opens what stands behind it."""
    carried = Table([*_carried(facts)], labels=True)
    return [*_header(facts), carried, *folds(facts.table), *topics(facts)]


def folds(rows: Iterable[Row]) -> Iterator[Fold]:
    """Rows of a card, each with its lines behind it."""
    for row in rows:
        asks = row.asks.replace("  up to", "compose up to")
        yield Fold((asks, f"{row.status} {row.said}"), lines_opened(row.lines))


def topics(*cards: CardFacts) -> Iterator[Fold]:
    """What belongs to no question, of each model."""
    for title, said in _TOPICS.values():
        yield Fold((title,), of_each(cards, map(said, cards)))


def of_each(cards: Sequence[CardFacts], said: Iterable[Sequence[Part]]) -> list[Part]:
    """What is said of each model, of several under its name."""
    parts: list[Part] = []
    for facts, own in zip(cards, said, strict=True):
        parts += [*([Heading(facts.name)] if cards[1:] else []), *own]
    return parts


def why_document(facts: CardFacts, asked: str) -> Document:
    """What stands behind a question, a topic, or the whole card: theorem, sentence, numbers,
    assumptions, sources. Raises SpecError for a question that is not asked of this model.
    """
    parts = opened(facts, asked)
    if not parts:
        raise SpecError(
            f"--why {asked}: '{ASKED[asked]}' is not asked of {facts.name}: no theorem here speaks"
            f" of it, or {facts.context:,} tokens have no room for it"
        )
    return Document(*_header(facts), *parts)


def opened(facts: CardFacts, asked: str) -> list[Part]:
    """The same without the head; nothing of a question that is not asked."""
    parts: list[Part] = []
    for name in (*TOPICS[:2], *ASKED, *TOPICS[2:]):
        if asked in (name, ALL):
            lines = (line for line in facts.lines if line.key == name)
            parts += _TOPICS[name][1](facts) if name in _TOPICS else lines_opened(lines)
    return parts


def lines_opened(lines: Iterable[CardLine]) -> list[Part]:
    """Lines, each with its answer and all that stands behind it, each record once."""
    parts: list[Part] = []
    seen: set[str] = set()
    for line in lines:
        where = line.where if line.bound is None else ""
        head = Heading(" ".join(filter(None, (f"{line.question}: {line.status}", where))))
        said = [("says", line.reason), ("means", line.explain)]
        if line.grade is not None:
            accuracy = f"{theorem_name(line.grade.verdict.theorem)}: {line.grade.said}"
            said.append(("at best", f"{accuracy}. {line.grade.why}"))
        if line.record is not None and line.record.digest not in seen:
            seen.add(line.record.digest)
            said += _recorded(line.record)
        theorem = THEOREMS.get(line.theorem)
        if theorem is not None and line.theorem != "none" and line.theorem not in seen:
            seen.add(line.theorem)
            said.append(("by", f"{theorem.cited}: {theorem.title}"))
            said.append(("source", f"{theorem.source}; `separatrix list theorems {theorem.key}`"))
        parts += [head, Table([(f"  {label}", text) for label, text in said if text])]
    return parts


def _recorded(record: Verdict) -> Iterator[tuple[str, str]]:
    """What a record adds; the sizes of the file and its formats stand with all assumptions."""
    numbers = (f"{name} {value:,}" for name, value in from_one(record.numbers).items())
    yield "numbers", ", ".join(numbers)
    # one word of a hundred letters has no room in a terminal
    yield "task", record.task.replace(",", ", ")
    yield "built", in_construct(record)
    for i, text in enumerate(record.assumptions):
        # keys and values together are often more than it has
        many = text.startswith(SPELT) and parse_task(record.task).vocabulary > DEFAULT_VOCABULARY
        yield "" if i else "assumes", text + ", however many the model has" * many


def tokens(number: int) -> str:
    """So many of them, in words."""
    return f"{number:,} token{'s' if number > 1 else ''}"


def _header(facts: CardFacts) -> tuple[Heading, Line]:
    stack = facts.architecture
    kinds = memory.layer_titles(stack)
    layers = f"{counted_as(len(stack), 'layer')}: {kinds}   {tokens(facts.context)}"
    drawn = "   ".join(filter(None, (fold(memory.symbols(stack)), memory.formats_text(stack))))
    return Heading(facts.name, layers), Line(drawn)


def _carried(facts: CardFacts) -> Iterator[tuple[str, str]]:
    """What a card says before its questions."""
    kinds = (
        f"{memory.KINDS[row.kind]} {format_bytes(row.bits)}"
        f"{'' if row.limit is not None else f' ({row.growth})'}"
        for row in facts.memory
    )
    settled = all(row.bits == row.limit for row in facts.memory)
    whole = ", whatever the length" if settled else ""
    yield "Carries", f"{format_bytes(facts.bits)}{whole}"
    if len(facts.memory) > 1 or not whole:
        yield "", ", ".join(kinds)
    costs = facts.costs
    here = costs.here(facts.context)
    if here.fetched is not None:
        weights = (
            "" if here.weights is None else f" and {format_bytes(round(here.weights))} of weights"
        )
        yield "Reads", f"{format_bytes(here.fetched)} of cache{weights} for a token"
    mixing = f"{format_count(here.decode)} operations a token to mix"
    if costs.known is not None:
        whole_token = here.decode + costs.known.operations(head=True)
        mixing += f", {format_count(whole_token)} in all"
    yield "Computes", mixing
    if costs.serving.memory is not None:
        fits = "any number of" if here.sequences is None else f"{here.sequences:,}"
        fits = "not known how many" if costs.longest is None else fits
        sequences = "sequence" if here.sequences == 1 else "sequences"
        within = memory_text(costs.serving)
        yield "Serves", f"{fits} {sequences} in {within}; {costs_notes(costs)[-1]}"
        for note in serving_notes(costs):
            yield "", note
    if facts.holds:
        yield "Holds", facts.holds
    if facts.forgets:
        yield "Forgets", facts.forgets


def _memory(facts: CardFacts) -> list[Part]:
    limits = [row.limit for row in facts.memory if row.limit is not None]
    grows = "grows with the context"
    if len(limits) == len(facts.memory):
        grows = f"{format_bytes(sum(limits))}, does not grow"
    rows = [
        *((f"  {memory.KINDS[r.kind]}", format_bytes(r.bits), r.growth) for r in facts.memory),
        ("  together", format_bytes(facts.bits), grows),
        ("", f"{facts.bits:,} bits", ""),
    ]
    positions, read = memory.positions_text(facts.architecture), readers(facts.architecture)
    said = [f"  positions: {positions}"] if positions else []
    if read:
        where = f"each of the {len(read):,} reading layers" if read[1:] else "the reading layer"
        said.append(f"  one query returns at most {max(read):,} bits of the past in {where}")
    columns = ("Memory of the past", tokens(facts.context), "any length")
    return [Heading(), Table(rows, columns), *map(Line, said)]


def _costs(facts: CardFacts) -> list[Part]:
    found = facts.costs
    rows = [(f"  {title}", *map(said, found.at)) for title, said in cost_rows(found)]
    columns = ("Cost of a token after", *(tokens(cost.context) for cost in found.at))
    notes = (*costs_notes(found), EXPLAINED)
    return [Heading(), Table(rows, columns), *(Line(f"  {note}") for note in notes)]


def _assumptions(facts: CardFacts) -> list[Part]:
    granted = [*facts.assumptions]
    if facts.defaults:
        granted.insert(0, f"{DEFAULTS}{', '.join(facts.defaults)}")
    if facts.unknown:
        granted.append(f"not known: {', '.join(_UNKNOWN[name] for name in facts.unknown)}")
    return [Heading("Assumptions"), *(Line(f"  {text}") for text in granted)]


_TOPICS: dict[str, tuple[str, Callable[[CardFacts], list[Part]]]] = {
    "memory": ("Memory", _memory),
    "costs": ("Costs of a token", _costs),
    "assumptions": ("Assumptions", _assumptions),
}
_LOG10_OF_2 = Decimal(2).log10(Context(prec=40))


def card_json(facts: CardFacts) -> dict[str, Any]:
    """The card as plain data. Bytes are integers, floats where a number format leaves a
    fraction.
    """
    stack = facts.architecture
    return {
        "name": facts.name,
        "context": facts.context,
        "layers": memory.layer_counts(stack),
        "pattern": "".join(memory.symbols(stack)),
        "positions": memory.positions_text(stack),
        "cache": {
            "recurrent_numbers": memory.largest_numbers(stack, "state", facts.context),
            "convolution_numbers": memory.largest_numbers(stack, "convolution", memory.FAR),
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


def held(rows: Iterable[memory.Row]) -> dict[str, Any]:
    """Bytes of states, of windows, and of each token where keys and values grow."""
    kept = {row.kind: row.per_token if row.kind == "kv" else row.bits for row in rows}
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
