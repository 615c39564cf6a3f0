"""How many steps of composition training found in stacks with as many full layers, and with the
other layers where this stack has them.
"""

from __future__ import annotations

from fractions import Fraction

from separatrix.cards.found.finding import Finding
from separatrix.evidence.records import SOLVED
from separatrix.practice.depth import composed_like
from separatrix.practice.nearest import layers_of
from separatrix.practice.shape import Beside, Shape, title
from separatrix.practice.words import accuracy, chance, seeds
from separatrix.theory.words import counted_as

_BESIDE: dict[Beside, str] = {
    "none": "alone",
    "before": "behind {title}",
    "between": "around {title}",
    "after": "before {title}",
}


def steps_found(shape: Shape, context: int, question: str) -> Finding | None:
    """The steps that trained stacks of this shape composed; None for no full layer, bounded layers
    of several kinds, and what was not measured.
    """
    if not shape.full or len(shape.kinds) > 1:
        return None
    found = composed_like(shape)
    if found is None:
        return None
    full, rows = found
    said = ", ".join(
        f"{counted_as(steps, 'step')} {accuracy(row)} ({seeds(row)}, {chance(row)})"
        for steps, row in rows.items()
    )
    most = max((steps for steps, row in rows.items() if row.median >= SOLVED), default=0)
    # what failed to train is not carried on
    beyond = (
        {
            "full layers": Fraction(shape.full, full),
            "layers": Fraction(shape.layers, layers_of(rows[most])),
            "tokens": Fraction(context, rows[most].task.length),
        }
        if most
        else {}
    )
    beside = _BESIDE[shape.beside].format(title=title(shape.kind or ""))
    return Finding(
        question=question,
        experiment="depth",
        measured=(
            f"trained stacks of {counted_as(full, 'full layer')} {beside} composed {said}"
            f" (depth experiment, up to {max(row.task.length for row in rows.values()):,} tokens)"
        ),
        brief=", ".join(
            f"{counted_as(steps, 'step')} {accuracy(row)}" for steps, row in rows.items()
        ),
        result=f"at least {counted_as(most, 'step')}" if most else "",
        distances=beyond,
        caution="that more steps cannot be learned: a seed that failed proves nothing",
        explain=(
            "Small stacks of this shape were trained on tables of a few entries. What they did not"
            " learn, more training or larger models may; what they learned, tables of this context"
            " may undo."
        ),
        rows=tuple(rows.values()),
        numbers={"steps": most, "full_layers": full}
        | {f"accuracy, {steps} steps": row.median for steps, row in rows.items()},
    )
