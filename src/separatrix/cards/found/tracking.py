"""What training found of layers that follow a state: parity, and products of permutations."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from fractions import Fraction

from separatrix.cards.found.finding import Finding
from separatrix.evidence.records import SOLVED
from separatrix.practice.longer import by_length
from separatrix.practice.shape import FULL, Shape, title
from separatrix.practice.table import Row
from separatrix.practice.tracking import tracked
from separatrix.practice.words import accuracy, decimal, enough, guessing, seeds

FOLLOWED = {
    "parity": "the parity of bits",
    "S3": "three things in changing order",
    "S5": "five things of which neighbours trade places",
}


def followed(shape: Shape, group: str, context: int, question: str) -> Finding | None:
    """What stacks of this stack's kinds of layers gave, each kind alone; None where one of them was
    not measured.
    """
    kinds = (*shape.kinds, *((FULL,) if shape.full else ()))
    rows: dict[str, dict[int, Row]] = {}
    for kind in kinds:
        found = {length: row for length, row in tracked(kind, group).items() if enough(row)}
        if not found:
            return None
        rows[kind] = by_length(found[max(found)])
    trained = {kind: next(iter(lengths.values())) for kind, lengths in rows.items()}
    able = [kind for kind, row in trained.items() if row.median >= SOLVED]
    # what failed to train, or was lost on the longest prompts that were tried, is not carried on
    lasting = [kind for kind in able if _solved(rows[kind]) == max(rows[kind])]
    reached = max((max(rows[kind]) for kind in lasting), default=0)
    said = ", ".join(f"{title(kind)} alone {_level(lengths)}" for kind, lengths in rows.items())
    tokens = ", ".join(f"{row.task.length:,}" for row in _unlike(trained.values()))
    first = next(iter(trained.values()))
    return Finding(
        question=question,
        experiment="state-tracking",
        measured=(
            f"trained layers followed {FOLLOWED[group]}: {said} (state-tracking experiment,"
            f" {tokens} tokens, {guessing(first)})"
        ),
        brief=", ".join(f"{title(kind)} {accuracy(row)}" for kind, row in trained.items()),
        result=f"followed by {' and '.join(map(title, lasting))}" if lasting else "",
        distances={"tokens": Fraction(context, reached)} if lasting else {},
        caution="that longer rows are followed too, or that what stayed at chance cannot",
        explain=(
            "Stacks of one kind of layer were trained on short rows and asked for the state after"
            " the last places. Layers together may do what neither does alone, and training may"
            " fail at what weights can do."
        ),
        rows=tuple(trained.values()),
        numbers=({"tokens": reached} if lasting else {})
        | {f"accuracy, {kind}": row.median for kind, row in trained.items()},
    )


def _level(lengths: Mapping[int, Row]) -> str:
    """The accuracy as trained, and at the longest prompts that were tried."""
    first, *longer = lengths.items()
    own = first[1]
    beyond = f", {decimal(longer[-1][1].median)} at {longer[-1][0]:,} tokens" if longer else ""
    return f"{accuracy(own)}{beyond} ({seeds(own)})"


def _solved(lengths: Mapping[int, Row]) -> int:
    """The most tokens at which it is still solved."""
    return max(length for length, row in lengths.items() if row.median >= SOLVED)


def _unlike(rows: Iterable[Row]) -> list[Row]:
    """Rows of different lengths, one of each."""
    return list({row.task.length: row for row in rows}.values())
