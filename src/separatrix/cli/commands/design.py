"""`separatrix design`."""

from __future__ import annotations

from typing import Any

from separatrix.cli.options import Asked, command, stack, tokens
from separatrix.cli.printing import Told
from separatrix.core.document import Document, Line
from separatrix.core.errors import SizeError, SpecError, UnknownNameError
from separatrix.core.progress import bar

MOST_IN_A_RANGE = 10_000


@command
def design(asked: Asked) -> Told:
    """Layouts that could do the tasks within a cache budget, and those that provably do: how many
    reading layers, of which kind, where. Example: design --task seqcomp:L=3 --task eva:V=50000
    --context 262144 --cache 2GiB --base qwen3-next-80b. Exit code 1 if nothing fits.
    """
    from separatrix.cards.design import Choices, space_of, task_for_context
    from separatrix.cards.design import design as search
    from separatrix.cli.report.pareto import design_document, design_json
    from separatrix.core.numbers.amounts import parse_bits

    if not asked.task:
        raise SpecError(
            "--task is missing; name at least one, such as --task seqcomp:L=2 (`separatrix list"
            " tasks` lists all)"
        )
    if asked.cache is None:
        raise SizeError("--cache is missing; give the budget with its unit, such as --cache 2GiB")
    budget = parse_bits(asked.cache, what="--cache")
    model = stack(asked.base) if asked.base is not None else None
    own = model.context if model is not None else None
    length, chosen = tokens(asked.context, own, whose="the longest the base was made for")
    plot = asked.plot
    if plot is not None:
        from separatrix.core.document.plot import check_plot

        check_plot(plot)
    choices = Choices(
        layers=_integers("--layers", asked.layers),
        readings=None if asked.readers is None else _integers("--readers", asked.readers),
        places=tuple(asked.place.replace(" ", "").split(",")),
        reading=tuple(asked.reading or ()),
        bounded=tuple(asked.bounded or ()),
        **_sizes(asked.set or []),
    )
    tasks = [task_for_context(text, length) for text in asked.task]
    space = space_of(choices, model)
    with bar("judging layouts", shown=not asked.as_json) as progress:
        result = search(tasks, context=length, cache_bits=budget, space=space, progress=progress)
    if plot is not None:
        from separatrix.cli.report.charts import fronts

        fronts(result).write(plot)
    drawn = [] if plot is None else [Line(f"plot      {plot}")]
    shown = design_document(result, context_from=chosen) + Document(*drawn)
    return Told(design_json(result), shown, code=int(not result.not_excluded))


VARIED = {"state": "states", "window": "windows", "block": "blocks", "topk": "topks"}
"""What --set calls sizes that are varied -> what `Choices` does."""
CHOSEN = ("heads", "kv_heads", "head_dim")
FORMATS = ("format", "state_format")


def _sizes(texts: list[str]) -> dict[str, Any]:
    """Fields of `Choices` from texts such as "state=64,128". Raises UnknownNameError, SpecError."""
    found: dict[str, Any] = {}
    for name, _, text in (one.partition("=") for one in texts):
        name = name.strip()
        if name not in (*VARIED, *CHOSEN, *FORMATS):
            raise UnknownNameError.of("size", name[:60], (*VARIED, *CHOSEN, *FORMATS))
        field = VARIED.get(name, name)
        if field in found:
            raise SpecError(f"--set {name} is given twice; write --set {name}=4,8")
        if name in FORMATS:
            found[field] = text.strip()
            continue
        values = _integers(f"--set {name}", text)
        if name in CHOSEN and len(values) != 1:
            raise SpecError(f"--set {name}={text[:40]}: one number of {name}, such as {name}=16")
        found[field] = values[0] if name in CHOSEN else values
    return found


def _integers(option: str, text: str | None) -> tuple[int, ...]:
    """Whole numbers from "4,8" or "0-4". Raises SpecError for anything else."""
    values: list[int] = []
    for part in text.split(",") if text is not None else ():
        low, dash, high = (piece.strip() for piece in part.partition("-"))
        ends = [low, high] if dash else [low]
        if any(not end.isdecimal() or len(end) > 13 for end in ends):
            raise SpecError(
                f"{option} {text!r}: '{part.strip()}' is no whole number or range; write numbers"
                " such as 4,8 or a range such as 0-4"
            )
        first = int(ends[0])
        last = int(ends[-1])
        if last < first or last - first > MOST_IN_A_RANGE:
            raise SpecError(
                f"{option} {text!r}: the range {part.strip()} runs backwards or is too long; write"
                " the smaller number first"
            )
        values += range(first, last + 1)
    return tuple(values)
