"""`separatrix analyze`."""

from __future__ import annotations

from typing import Annotated

import typer

from separatrix.cli import complete
from separatrix.cli.options import (
    WAYS,
    WEIGHTS_HELP,
    Batch,
    Context,
    Imports,
    Memory,
    SetSizes,
    Why,
    chosen_sizes,
    stack,
    tokens,
)
from separatrix.cli.printing import JsonFlag, print_json, show

LONGEST = "the longest it was made for"


def analyze(
    model: Annotated[
        str,
        typer.Argument(
            help=f"{WAYS} for standard input. A spec: '(gdn*3 + full)*12 @ heads=16, bf16'.",
            autocompletion=complete.models,
        ),
    ],
    context: Context = None,
    sizes: SetSizes = None,
    pattern: Annotated[
        str | None,
        typer.Option(
            help="The stack of a config.json that does not say it, such as '(mamba2*7 + full)*4'."
        ),
    ] = None,
    memory: Memory = None,
    weights: Annotated[str | None, typer.Option("--weights", help=f"{WEIGHTS_HELP}.")] = None,
    batch: Batch = 1,
    why: Why = None,
    imports: Imports = None,
    as_json: JsonFlag = False,
) -> None:
    """One screen about a model: what it carries and reads, what some weights provably do and none
    do, each with the number that decides it.
    """
    from separatrix.cards.costs import Serving
    from separatrix.cards.short import opened
    from separatrix.stacks.architecture.outline import UnknownSizes

    serving = Serving.parse(memory, weights, batch)
    asked = None if why is None else opened(why)
    if context is not None:
        # before a file is read, so that a wrong one is refused first
        tokens(context, None, whose="")
    try:
        architecture = stack(model, settings=chosen_sizes(sizes), pattern=pattern)
    except UnknownSizes as error:
        from separatrix.cli.report.outline import outline_document, outline_json

        length, _ = tokens(context, error.outline.context, whose=LONGEST)
        if as_json:
            print_json(outline_json(error.outline, length))
        else:
            show(outline_document(error.outline, length))
        return
    from separatrix.cards import card_facts

    length, chosen = tokens(context, architecture.context, whose=LONGEST)
    facts = card_facts(architecture, length, context_from=chosen, serving=serving)
    if as_json:
        from separatrix.cli.report.card_json import card_json

        print_json(card_json(facts))
    else:
        from separatrix.cli.report.card import card_document, why_document

        show(card_document(facts) if asked is None else why_document(facts, asked))
