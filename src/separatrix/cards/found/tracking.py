"""What training found of layers that follow a state: parity, and products of permutations."""

from __future__ import annotations

from fractions import Fraction

from separatrix.cards.found.finding import Finding
from separatrix.evidence.records import SOLVED
from separatrix.practice.longer import by_length
from separatrix.practice.shape import FULL, Shape, title
from separatrix.practice.table import Row
from separatrix.practice.tracking import tracked
from separatrix.practice.words import accuracy, chance, decimal, enough, seeds

_FOLLOWED = {"parity": "the parity of bits", "S3": "products in S_3", "S5": "products in S_5"}


def followed(shape: Shape, group: str, context: int, question: str) -> Finding | None:
    """What stacks of this stack's kinds of layers gave, each kind alone; None where one of them was
    not measured.
    """
    kinds = (*shape.kinds, *((FULL,) if shape.full else ()))
    rows: dict[str, Row] = {}
    for kind in kinds:
        found = {length: row for length, row in tracked(kind, group).items() if enough(row)}
        if not found:
            return None
        rows[kind] = found[max(found)]
    able = {kind: row for kind, row in rows.items() if row.median >= SOLVED}
    # as far as those went on that solved it; what failed to train is not carried on
    reached = max((max(_solved(row)) for row in able.values()), default=0)
    said = ", ".join(f"{title(kind)} alone {_level(row)}" for kind, row in rows.items())
    tokens = ", ".join(f"{length:,}" for length in dict.fromkeys(map(_trained, rows.values())))
    first = next(iter(rows.values()))
    return Finding(
        question=question,
        experiment="state-tracking",
        measured=(
            f"trained layers followed {_FOLLOWED[group]}: {said} (state-tracking experiment,"
            f" {tokens} tokens, {chance(first)})"
        ),
        brief=", ".join(f"{title(kind)} {accuracy(row)}" for kind, row in rows.items()),
        result=f"followed by {' and '.join(map(title, able))}" if able else "",
        distances={"tokens": Fraction(context, reached)} if able else {},
        caution="that longer rows are followed too, or that what stayed at chance cannot",
        explain=(
            "Stacks of one kind of layer were trained on short rows and asked for the state after"
            " the last places. Layers together may do what neither does alone, and training may"
            " fail at what weights can do."
        ),
        rows=tuple(rows.values()),
        numbers=({"tokens": reached} if able else {})
        | {f"accuracy, {kind}": row.median for kind, row in rows.items()},
    )


def _level(row: Row) -> str:
    """The accuracy as trained, and at the longest prompts that were tried."""
    length, share = max(by_length(row).items())
    longer = f", {decimal(share)} at {length:,} tokens" if length > _trained(row) else ""
    return f"{accuracy(row)}{longer} ({seeds(row)})"


def _trained(row: Row) -> int:
    return row.task.length


def _solved(row: Row) -> list[int]:
    return [length for length, share in by_length(row).items() if share >= SOLVED]
