"""What training found of mixtures like a stack's: as many bounded layers for each full one, and the
full ones in the same places.
"""

from __future__ import annotations

from collections.abc import Mapping
from fractions import Fraction

from separatrix.cards.found.finding import Finding
from separatrix.practice.nearest import ALONE, PLACED, by_place, by_ratio, layers_of, trained
from separatrix.practice.placement import placed
from separatrix.practice.ratio import ratios
from separatrix.practice.shape import Shape, title
from separatrix.practice.table import Row
from separatrix.practice.words import accuracy, chance, enough, seeds
from separatrix.theory.words import counted_as


def mixed(shape: Shape, task: str, context: int, question: str) -> Finding | None:
    """What trained stacks with as many bounded layers per full one gave, or with the next fewer
    and the next more; None where none of that kind was measured.
    """
    kind = shape.kind
    if kind is None:
        return None
    rows = {ratio: row for ratio, row in ratios(kind, task).items() if enough(row)}
    chosen = by_ratio(rows, shape.ratio)
    if not chosen:
        return None
    said = ", ".join(
        f"with {_mixture(ratio, kind)} {accuracy(row)} ({seeds(row)})"
        for ratio, row in chosen.items()
    )
    first = next(iter(chosen.values()))
    return Finding(
        question=question,
        experiment="ratio",
        measured=(
            f"trained stacks {_did(first)} {said} (ratio experiment, {layers_of(first)} layers,"
            f" {first.task.length:,} tokens, {chance(first)})"
        ),
        brief=", ".join(
            f"{_mixture(ratio, kind)} {accuracy(row)}" for ratio, row in chosen.items()
        ),
        result="",
        distances={
            "layers": Fraction(shape.layers, max(layers_of(row) for row in chosen.values())),
            "tokens": Fraction(context, max(row.task.length for row in chosen.values())),
            "layers per full one": (shape.ratio or Fraction(1)) / max(1, *chosen),
        },
        caution="that as much is learned at this size, or that a seed which failed shows a limit",
        explain=(
            "Small models of these mixtures were trained alike from several seeds. That a mixture"
            " does better than another there is no law for deeper stacks and longer prompts."
        ),
        rows=tuple(chosen.values()),
        numbers=_numbers({f"ratio {ratio}": row for ratio, row in chosen.items()}),
    )


def standing(shape: Shape, task: str, context: int, question: str) -> Finding | None:
    """What it changed in trained stacks where the full layers stand; None where nobody measured
    this kind of layer, or stacks with the full layers where this one has them.
    """
    kind = shape.kind
    if kind is None or not shape.full:
        return None
    rows = {key: row for key, row in placed(kind, task).items() if enough(row)}
    alike = by_place(rows, shape)
    if not alike:
        return None
    here = alike[shape.place]
    # of one place alone there is nothing to compare
    if len(alike) == 1:
        return None
    full = next(count for (count, _), row in rows.items() if row is here)
    others = [f"{PLACED[place]} {accuracy(row)}" for place, row in alike.items() if row is not here]
    here_said = f"{PLACED[shape.place]} {accuracy(here)}"
    like = trained(here)
    same = like is not None and like.beside == shape.beside
    as_here = "as here" if same else "as here but for the first layer"
    return Finding(
        question=question,
        experiment="placement",
        measured=(
            f"trained stacks {_did(here)} with full layers {here_said} {as_here} ({seeds(here)}),"
            f" {', '.join(others)} (placement experiment, {full} full of {layers_of(here)} layers,"
            f" the others {title(kind)}, {here.task.length:,} tokens, {chance(here)})"
        ),
        brief=", ".join((here_said, *others)),
        result="",
        distances={
            "layers": Fraction(shape.layers, layers_of(here)),
            "tokens": Fraction(context, here.task.length),
            "layers per full one": Fraction(shape.layers * full, shape.full * layers_of(here)),
        },
        caution="that places differ whose intervals overlap, or that the order holds at this size",
        explain=(
            "Stacks of the same layers in another order were trained alike, with equal caches and"
            " parameters. Differences within the intervals are none; which place is best may"
            " change with depth, length and task."
        ),
        rows=tuple(alike.values()),
        numbers=_numbers({str(place): row for place, row in alike.items()}),
    )


def _did(row: Row) -> str:
    """What the trained stacks were asked for: "recalled", "composed 2 steps"."""
    steps = row.task.sizes().get("L")
    return f"composed {counted_as(steps, 'step')}" if isinstance(steps, int) else "recalled"


def _mixture(ratio: int, kind: str) -> str:
    if ratio == ALONE:
        return f"{title(kind)} alone"
    return f"{ratio} {title(kind)} per full layer" if ratio else "full attention alone"


def _numbers(rows: Mapping[str, Row]) -> dict[str, Fraction | int]:
    return {f"accuracy, {name}": row.median for name, row in rows.items()}
