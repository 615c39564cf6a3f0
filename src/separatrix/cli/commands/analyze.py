"""`separatrix analyze`."""

from __future__ import annotations

from separatrix.cli import complete
from separatrix.cli.options import (
    BATCH,
    CONTEXT,
    IMPORTS,
    JSON,
    MEMORY,
    SET_SIZES,
    WAYS,
    WEIGHTS_HELP,
    WHY,
    Asked,
    arg,
    chosen_sizes,
    command,
    opt,
    stack,
    tokens,
)
from separatrix.cli.printing import print_json, show

LONGEST = "the longest it was made for"


@command(
    model=arg(
        str,
        f"{WAYS} for standard input. A spec: '(gdn*3 + full)*12 @ heads=16, bf16'.",
        autocompletion=complete.models,
    ),
    context=CONTEXT,
    sizes=SET_SIZES,
    pattern=opt(
        str, "The stack of a config.json that does not say it, such as '(mamba2*7 + full)*4'."
    ),
    memory=MEMORY,
    weights=opt(str, f"{WEIGHTS_HELP}."),
    batch=BATCH,
    why=WHY,
    imports=IMPORTS,
    as_json=JSON,
)
def analyze(asked: Asked) -> None:
    """One screen about a model: what it carries and reads, what some weights provably do and none
    do, each with the number that decides it.
    """
    from separatrix.cards.costs import Serving
    from separatrix.cards.short import opened
    from separatrix.stacks.architecture.outline import UnknownSizes

    serving = Serving.parse(asked.memory, asked.weights, asked.batch)
    why = None if asked.why is None else opened(asked.why)
    if asked.context is not None:
        # before a file is read, so that a wrong one is refused first
        tokens(asked.context, None, whose="")
    try:
        settings = chosen_sizes(asked.sizes)
        architecture = stack(asked.model, settings=settings, pattern=asked.pattern)
    except UnknownSizes as error:
        from separatrix.cli.report.outline import outline_document, outline_json

        length, _ = tokens(asked.context, error.outline.context, whose=LONGEST)
        if asked.as_json:
            print_json(outline_json(error.outline, length))
        else:
            show(outline_document(error.outline, length))
        return
    from separatrix.cards import card_facts

    length, chosen = tokens(asked.context, architecture.context, whose=LONGEST)
    facts = card_facts(architecture, length, context_from=chosen, serving=serving)
    if asked.as_json:
        from separatrix.cli.report.card_json import card_json

        print_json(card_json(facts))
    else:
        from separatrix.cli.report.card import card_document, why_document

        show(card_document(facts) if why is None else why_document(facts, why))
