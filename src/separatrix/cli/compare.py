"""`separatrix compare`."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from separatrix.cli import complete
from separatrix.cli.options import (
    TOKENS_HELP,
    WAYS,
    Explain,
    Imports,
    SetSizes,
    named,
    stack,
    tokens,
)
from separatrix.cli.printing import JsonFlag, print_json, show
from separatrix.errors import OutputError, SpecError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from separatrix.architecture import Architecture


def compare(
    models: Annotated[
        list[str],
        typer.Argument(
            help=f"Two or more of: {WAYS} for standard input.", autocompletion=complete.models
        ),
    ],
    context: Annotated[
        str | None,
        typer.Option(
            help=(
                f"Tokens of context: {TOKENS_HELP} (default: the smallest of the models' own, else"
                " 8192)."
            )
        ),
    ] = None,
    sizes: SetSizes = None,
    plot: Annotated[
        Path | None,
        typer.Option(
            help=(
                "Draw how many of random facts each recalls at the most: a file ending in .html,"
                " .svg or .png."
            )
        ),
    ] = None,
    explain: Explain = False,
    imports: Imports = None,
    as_json: JsonFlag = False,
) -> None:
    """Capability cards side by side, differences marked, and how many random facts each model
    recalls at the most as contexts grow. Example: compare qwen3-next-80b recurrentgemma-2b. A size
    given with --set holds for every model that has it.
    """
    from separatrix.cards import card_facts
    from separatrix.cards.curve import few_contexts, recall_curve
    from separatrix.report.compare import compare_json, render_comparison

    if len(models) < 2:
        raise SpecError("compare needs at least two models; `separatrix analyze` shows one")
    stacks = _stacks([named(model) for model in models], sizes or [])
    own = [stack.context for stack in stacks if stack.context is not None]
    whose = "the smallest of the models' own" if len(own) > 1 else "a model's own"
    length, chosen = tokens(context, min(own, default=None), whose=whose)
    if plot is not None:
        _draw(stacks, plot)
    cards = [card_facts(stack, length, context_from=chosen) for stack in stacks]
    contexts = few_contexts(stacks, length)
    curves = [recall_curve(stack, contexts) for stack in stacks]
    if as_json:
        print_json(compare_json(cards, curves))
        return
    show(render_comparison(cards, curves, explain=explain))
    if plot is not None:
        typer.echo(f"plot      {plot}")


def _draw(stacks: Sequence[Architecture], path: Path) -> None:
    """Draws the curves. Raises OutputError for a file that cannot be written, and where no stack
    has a bound.
    """
    from separatrix.cards.curve import many_contexts, recall_curve
    from separatrix.report.curve_plot import curves_spec
    from separatrix.report.plot_file import check_plot, write_spec

    check_plot(path)
    contexts = many_contexts(stacks)
    if not contexts:
        raise OutputError(f"--plot {path}: none of the models has a bound on recall to be drawn")
    curves = {str(stack): recall_curve(stack, contexts) for stack in stacks}
    write_spec(curves_spec(curves), f"compare: {', '.join(curves)}", path)


def _stacks(models: Sequence[str], sizes: Sequence[str]) -> list[Architecture]:
    """The models, with each size that is set by hand in those that have such a layer. Raises
    UnknownNameError for a size that fits none of them.
    """
    from separatrix.architecture.settings import Settings

    settings = Settings.parse(sizes)
    if not settings:
        return [stack(model) for model in models]
    there = [_mechanisms(model) for model in models]
    settings.check_used(set().union(*there))
    return [
        stack(model, settings=settings.of(own)) for model, own in zip(models, there, strict=True)
    ]


def _mechanisms(model: str) -> set[str]:
    """The names of a model's mechanisms, also of one whose file leaves sizes open."""
    from separatrix.architecture.outline import UnknownSizes

    try:
        layers = stack(model).counted()
    except UnknownSizes as error:
        layers = error.outline.counted()
    return {part.name for layer, _ in layers for part in layer}
