"""`separatrix design`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from separatrix.cli import complete
from separatrix.cli.options import TOKENS_HELP, Imports, stack, tokens
from separatrix.cli.printing import JsonFlag, print_json, show
from separatrix.core.errors import SizeError, SpecError
from separatrix.core.progress import bar

MOST_IN_A_RANGE = 10_000


def design(
    task: Annotated[
        list[str] | None,
        typer.Option(
            help=(
                "A task with sizes, repeatable: seqcomp:L=3, eva:V=50000, twosum:M=4096. Sizes left"
                " out fill the context."
            ),
            autocompletion=complete.tasks,
        ),
    ] = None,
    context: Annotated[
        str | None,
        typer.Option(
            help=f"Tokens of context: {TOKENS_HELP} (default: the base model's own, else 8192)."
        ),
    ] = None,
    cache: Annotated[
        str | None,
        typer.Option(
            help="Budget of cache at the context for one sequence, with a unit: 2GiB, 512MiB."
        ),
    ] = None,
    base: Annotated[
        str | None,
        typer.Option(
            help=(
                "A preset, config.json or spec whose layers, sizes and depth are varied (default:"
                " free choice)."
            ),
            autocompletion=complete.models,
        ),
    ] = None,
    layers: Annotated[
        str | None,
        typer.Option(
            help="Numbers of layers, such as 24 or 12,24 or 8-16 (default: the base's, else 24)."
        ),
    ] = None,
    readers: Annotated[
        str | None, typer.Option(help="Numbers of reading layers, such as 0-4 (default: all).")
    ] = None,
    place: Annotated[
        str, typer.Option(help="Where they stand: any, or some of even,start,end.")
    ] = "any",
    reading: Annotated[
        list[str] | None,
        typer.Option(
            help=(
                "A reading layer, repeatable: full, sparse, 'mla(latent=512)' (default: the base's,"
                " else full)."
            )
        ),
    ] = None,
    bounded: Annotated[
        list[str] | None,
        typer.Option(
            help=(
                "Bounded layers, repeatable: gdn, 'rglru*2 + window' (default: the base's, else"
                " gdn, window)."
            )
        ),
    ] = None,
    state: Annotated[
        str | None,
        typer.Option(
            help=(
                "Sizes of a state: key dimensions per head, or N of Mamba (default: the base's,"
                " half, double; else 64,128,256)."
            )
        ),
    ] = None,
    window: Annotated[
        str | None,
        typer.Option(help="Tokens of a window (default: the base's, half, double; else 512,2048)."),
    ] = None,
    block: Annotated[
        str | None,
        typer.Option(
            help=(
                "Tokens of a block of sparse attention (default: the base's, half, double; else"
                " 32,64)."
            )
        ),
    ] = None,
    topk: Annotated[
        str | None,
        typer.Option(
            help=(
                "Blocks or tokens opened by sparse attention (default: the base's, half, double;"
                " else 4,16)."
            )
        ),
    ] = None,
    heads: Annotated[int | None, typer.Option(help="Heads, without --base (default 16).")] = None,
    kv_heads: Annotated[
        int | None, typer.Option(help="Key-value heads, without --base (default: heads).")
    ] = None,
    head_dim: Annotated[
        int | None, typer.Option(help="Dimension of a head, without --base (default 128).")
    ] = None,
    format: Annotated[
        str | None, typer.Option(help="Number format, without --base (default bf16).")
    ] = None,
    state_format: Annotated[
        str | None, typer.Option(help="Number format of states, without --base (default: format).")
    ] = None,
    plot: Annotated[
        Path | None, typer.Option(help="Draw the fronts: a file ending in .html, .svg or .png.")
    ] = None,
    everything: Annotated[
        bool, typer.Option("--all", help="Print every point of the fronts, not the first 12.")
    ] = False,
    imports: Imports = None,
    as_json: JsonFlag = False,
) -> None:
    """Layouts that could do the tasks within a cache budget, and those that provably do: how many
    reading layers, of which kind, where. Example: design --task seqcomp:L=3 --task eva:V=50000
    --context 262144 --cache 2GiB --base qwen3-next-80b. Exit code 1 if nothing fits.
    """
    from separatrix.cards.design import Choices, space_of, task_for_context
    from separatrix.cards.design import design as search
    from separatrix.cli.report.pareto import design_document, design_json
    from separatrix.core.numbers.amounts import parse_bits

    if not task:
        raise SpecError(
            "--task is missing; name at least one, such as --task seqcomp:L=2 (`separatrix tasks`"
            " lists all)"
        )
    if cache is None:
        raise SizeError("--cache is missing; give the budget with its unit, such as --cache 2GiB")
    budget = parse_bits(cache, what="--cache")
    model = stack(base) if base is not None else None
    own = model.context if model is not None else None
    length, chosen = tokens(context, own, whose="the longest the base was made for")
    if plot is not None:
        from separatrix.core.document.plot_file import check_plot

        check_plot(plot)
    choices = Choices(
        layers=_integers("--layers", layers),
        readings=_integers("--readers", readers) if readers is not None else None,
        places=tuple(place.replace(" ", "").split(",")),  # type: ignore[arg-type]
        reading=tuple(reading or ()),
        bounded=tuple(bounded or ()),
        states=_integers("--state", state),
        windows=_integers("--window", window),
        blocks=_integers("--block", block),
        topks=_integers("--topk", topk),
        heads=heads,
        kv_heads=kv_heads,
        head_dim=head_dim,
        format=format,
        state_format=state_format,
    )
    tasks = [task_for_context(text, length) for text in task]
    space = space_of(choices, model)
    with bar("judging layouts", shown=not as_json) as progress:
        result = search(tasks, context=length, cache_bits=budget, space=space, progress=progress)
    if plot is not None:
        from separatrix.cli.report.pareto_plot import write_plot

        write_plot(result, plot)
    if as_json:
        print_json(design_json(result))
    else:
        show(design_document(result, everything=everything, context_from=chosen))
        if plot is not None:
            typer.echo(f"plot      {plot}")
    if not result.not_excluded:
        raise typer.Exit(1)


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
