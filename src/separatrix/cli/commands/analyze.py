"""`separatrix analyze`."""

from __future__ import annotations

from separatrix.cli.options import Asked, chosen_sizes, command, stack, tokens
from separatrix.cli.printing import Answer
from separatrix.core.errors import SpecError

LONGEST = "the longest it was made for"


@command
def analyze(asked: Asked) -> Answer:
    """One screen about a model: what it carries and reads, what some weights provably do and none
    do, each with the number that decides it.
    """
    from separatrix.cards.costs import Serving
    from separatrix.cards.short import MEASURED, opened
    from separatrix.stacks.architecture.outline import UnknownSizes

    settings = chosen_sizes(asked.set)
    serving = Serving.parse(asked.memory, asked.weights, asked.batch, settings)
    why = "" if asked.why is None else opened(asked.why)
    if asked.context is not None:
        # before a file is read, so that a wrong one is refused first
        tokens(asked.context, None, whose="")
    try:
        architecture = stack(asked.model, settings=settings, pattern=asked.pattern)
    except UnknownSizes as error:
        from separatrix.cli.report.outline import Outlined

        if why == MEASURED:
            raise SpecError(
                "--why measured takes a layout whose sizes are all known; give them with --set"
            ) from None
        return Outlined(error.outline, tokens(asked.context, error.outline.context, whose="")[0])
    from separatrix.cli.asked import Cards

    length, chosen = tokens(asked.context, architecture.context, whose=LONGEST)
    return Cards.of([architecture], length, chosen=chosen, servings=[serving], why=why)
