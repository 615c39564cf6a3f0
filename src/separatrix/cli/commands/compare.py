"""`separatrix compare`."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from separatrix.cli.options import Asked, chosen_sizes, command, named, stack, tokens
from separatrix.cli.printing import Answer
from separatrix.core.errors import OutputError, SizeError, SpecError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from separatrix.cards.costs import Serving
    from separatrix.stacks.architecture import Architecture
    from separatrix.stacks.architecture.settings import Settings


@command
def compare(asked: Asked) -> Answer:
    """What separates models: first what theorems do, then what costs do, then what nothing here
    does. Example: compare qwen3-next-80b recurrentgemma-2b. A size given with --set holds for
    every model that has it.
    """
    from separatrix.cards.short import opened
    from separatrix.cli.asked import Cards

    models, plot = asked.models, asked.plot
    why = "" if asked.why is None else opened(asked.why)
    settings = chosen_sizes(asked.set)
    servings = _servings(models, asked.memory, asked.weights or [], asked.batch, settings)
    if len(models) < 2:
        raise SpecError("compare needs at least two models; `separatrix analyze` shows one")
    stacks = _stacks([named(model) for model in models], settings)
    own = [stack.context for stack in stacks if stack.context is not None]
    whose = "the smallest of the models' own" if len(own) > 1 else "a model's own"
    length, chosen = tokens(asked.context, min(own, default=None), whose=whose)
    if plot is not None:
        _draw(stacks, plot)
    drawn = "" if plot is None else str(plot)
    return Cards.of(stacks, length, chosen=chosen, servings=servings, why=why, drawn=drawn)


def _draw(stacks: Sequence[Architecture], path: Path) -> None:
    """Draws the curves. Raises OutputError for a file that cannot be written, and where no stack
    has a bound.
    """
    from separatrix.cards.apart import many_contexts, recall_curve
    from separatrix.cli.report.charts import curves
    from separatrix.core.document.plot import check_plot

    check_plot(path)
    contexts = many_contexts(stacks)
    if not contexts:
        raise OutputError(f"--plot {path}: none of the models has a bound on recall to be drawn")
    found = {str(stack): recall_curve(stack, contexts) for stack in stacks}
    curves(found).write(path, f"compare: {', '.join(found)}")


def _servings(
    models: Sequence[str],
    memory: str | None,
    weights: Sequence[str],
    batch: int,
    settings: Settings,
) -> list[Serving]:
    """What each model is served with. Raises SizeError for more sizes of weights than one, unless
    there is one for each model.
    """
    from separatrix.cards.costs import Serving

    if len(weights) not in (0, 1, len(models)):
        raise SizeError(
            f"--weights is given {len(weights)} times for {len(models)} models; give it once for"
            " all, or once for each in their order"
        )
    each = weights if len(weights) == len(models) else [*weights, None][:1] * len(models)
    return [Serving.parse(memory, own, batch, settings) for own in each]


def _stacks(models: Sequence[str], settings: Settings) -> list[Architecture]:
    """The models, with each size that is set by hand in those that have such a layer. Raises
    UnknownNameError for a size that fits none of them.
    """
    if not settings:
        return [stack(model) for model in models]
    there = [_mechanisms(model) for model in models]
    settings.check_used(set().union(*there))
    return [
        stack(model, settings=settings.of(own)) for model, own in zip(models, there, strict=True)
    ]


def _mechanisms(model: str) -> set[str]:
    """The names of a model's mechanisms, also of one whose file leaves sizes open."""
    from separatrix.stacks.architecture.outline import UnknownSizes

    try:
        layers = stack(model).counted()
    except UnknownSizes as error:
        layers = error.outline.counted()
    return {part.name for layer, _ in layers for part in layer}
