"""`separatrix design`."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import typer

from separatrix.cli import complete
from separatrix.cli.options import IMPORTS, JSON, TOKENS_HELP, Asked, command, opt, stack, tokens
from separatrix.cli.printing import print_json, show
from separatrix.core.errors import SizeError, SpecError, UnknownNameError
from separatrix.core.progress import bar

MOST_IN_A_RANGE = 10_000


@command(
    task=opt(
        list[str],
        "A task with sizes, repeatable: seqcomp:L=3, eva:V=50000, twosum:M=4096. Sizes left"
        " out fill the context.",
        autocompletion=complete.tasks,
    ),
    context=opt(
        str, f"Tokens of context: {TOKENS_HELP} (default: the base model's own, else 8192)."
    ),
    cache=opt(str, "Budget of cache at the context for one sequence, with a unit: 2GiB, 512MiB."),
    base=opt(
        str,
        "A preset, config.json or spec whose layers, sizes and depth are varied (default:"
        " free choice).",
        autocompletion=complete.models,
    ),
    layers=opt(
        str, "Numbers of layers, such as 24 or 12,24 or 8-16 (default: the base's, else 24)."
    ),
    readers=opt(str, "Numbers of reading layers, such as 0-4 (default: all)."),
    place=opt(str, "Where they stand: any, or some of even,start,end.", default="any"),
    reading=opt(
        list[str],
        "A reading layer, repeatable: full, sparse, 'mla(latent=512)' (default: the base's,"
        " else full).",
    ),
    bounded=opt(
        list[str],
        "Bounded layers, repeatable: gdn, 'rglru*2 + window' (default: the base's, else"
        " gdn, window).",
    ),
    sizes=opt(
        list[str],
        "Sizes to vary, repeatable: state=64,128 (key dimensions per head, or N of Mamba),"
        " window=512,2048, block=32,64 and topk=4,16 of sparse attention (default: the"
        " base's, half, double; without a base as here, and state=64,128,256). Without a"
        " base, too: heads=16, kv_heads=4, head_dim=128, format=bf16, state_format=fp32.",
        "--set",
        metavar="NAME=VALUES",
    ),
    plot=opt(Path, "Draw the fronts: a file ending in .html, .svg or .png."),
    imports=IMPORTS,
    as_json=JSON,
)
def design(asked: Asked) -> None:
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
        **_sizes(asked.sizes or []),
    )
    tasks = [task_for_context(text, length) for text in asked.task]
    space = space_of(choices, model)
    with bar("judging layouts", shown=not asked.as_json) as progress:
        result = search(tasks, context=length, cache_bits=budget, space=space, progress=progress)
    if plot is not None:
        from separatrix.cli.report.plots import fronts

        fronts(result).write(plot)
    if asked.as_json:
        print_json(design_json(result))
    else:
        show(design_document(result, context_from=chosen))
        if plot is not None:
            typer.echo(f"plot      {plot}")
    if not result.not_excluded:
        raise typer.Exit(1)


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
