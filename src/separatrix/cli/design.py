"""`separatrix design` and `separatrix compare`: registered in cli.py; everything heavy is
imported when a command runs.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Any

import typer

from separatrix.cli import complete
from separatrix.cli.mechanisms import Imports
from separatrix.errors import SizeError, SpecError

DEFAULT_CONTEXT = 8192


def compare(
    models: Annotated[
        list[str],
        typer.Argument(
            help=(
                "Two or more of: a preset, a config.json or its folder, a spec such as 'full +"
                " gdn*24'."
            ),
            autocompletion=complete.models,
        ),
    ],
    context: Annotated[
        str | None,
        typer.Option(
            help="Tokens of context (default: the smallest of the models' own, else 8192)."
        ),
    ] = None,
    imports: Imports = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON for machines.")] = False,
) -> None:
    """Capability cards side by side, differences marked. Example: compare qwen3-next-80b
    recurrentgemma-2b
    """
    from separatrix.architecture.resolve import resolve
    from separatrix.numbers.amounts import parse_context
    from separatrix.report.compare import compare_json, render_comparison

    if len(models) < 2:
        raise SpecError("compare needs at least two models; `separatrix analyze` shows one")
    stacks = [resolve(model) for model in models]
    own = [stack.context for stack in stacks if stack.context is not None]
    tokens = min(own, default=DEFAULT_CONTEXT) if context is None else parse_context(context)
    if as_json:
        typer.echo(json.dumps(compare_json(stacks, tokens), indent=2, allow_nan=False))
    else:
        _console().print(render_comparison(stacks, tokens))


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
        typer.Option(help="Tokens of context (default: the base model's own, else 8192)."),
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
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON for machines.")] = False,
) -> None:
    """Layouts that could do the tasks within a cache budget, and those that provably do: how many
    reading layers, of which kind, where. Example: design --task seqcomp:L=3 --task eva:V=50000
    --context 262144 --cache 2GiB --base qwen3-next-80b. Exit code 1 if nothing fits.
    """
    from separatrix.architecture.resolve import resolve
    from separatrix.design import Choices, space_of, task_for_context
    from separatrix.design import design as search
    from separatrix.numbers.amounts import parse_bits, parse_context
    from separatrix.report.pareto import design_json, render_design

    if not task:
        raise SpecError(
            "--task is missing; name at least one, such as --task seqcomp:L=2 (`separatrix tasks`"
            " lists all)"
        )
    if cache is None:
        raise SizeError("--cache is missing; give the budget with its unit, such as --cache 2GiB")
    budget = parse_bits(cache, what="--cache")
    model = resolve(base) if base is not None else None
    own = model.context if model is not None else None
    tokens = parse_context(context) if context is not None else own or DEFAULT_CONTEXT
    if plot is not None:
        from separatrix.report.pareto_plot import check_plot

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
    tasks = [task_for_context(text, tokens) for text in task]
    space = space_of(choices, model)
    with _late_bar("design", shown=not as_json) as progress:
        result = search(tasks, context=tokens, cache_bits=budget, space=space, progress=progress)
    if plot is not None:
        from separatrix.report.pareto_plot import write_plot

        write_plot(result, plot)
    if as_json:
        typer.echo(json.dumps(design_json(result), indent=2, allow_nan=False))
    else:
        _console().print(render_design(result, everything=everything))
        if plot is not None:
            typer.echo(f"plot      {plot}")
    if not result.not_excluded:
        raise typer.Exit(1)


def _integers(option: str, text: str | None) -> tuple[int, ...]:
    """Whole numbers from "4,8" or "0-4". Raises SpecError for anything else."""
    values: list[int] = []
    for part in (text or "").split(",") if text is not None else ():
        low, dash, high = (piece.strip() for piece in part.partition("-"))
        if (
            not low.isdecimal()
            or (dash and not high.isdecimal())
            or len(low) > 13
            or len(high) > 13
        ):
            raise SpecError(
                f"{option} {text!r}: '{part.strip()}' is no whole number or range; write numbers"
                " such as 4,8 or a range such as 0-4"
            )
        first = int(low)
        last = int(high) if dash else int(low)
        if last < first or last - first > 10_000:
            raise SpecError(
                f"{option} {text!r}: the range {part.strip()} runs backwards or is too long; write"
                " the smaller number first"
            )
        values += range(first, last + 1)
    return tuple(values)


class _late_bar:
    """A progress bar that appears once the work has taken more than a second."""

    def __init__(self, title: str, *, shown: bool) -> None:
        from separatrix.progress import bar

        self._bar = bar(title, shown=shown)

    def __enter__(self) -> Callable[[int, int], None]:
        from time import monotonic

        advance = self._bar.__enter__()
        start = monotonic()
        last = 0.0

        def late(done: int, total: int) -> None:
            nonlocal last
            now = monotonic()
            if now - start > 1 and now - last > 0.1:
                last = now
                advance(done, total)

        return late

    def __exit__(self, *error: Any) -> bool | None:
        return self._bar.__exit__(*error)


def _console() -> Any:
    from rich.console import Console

    return Console(highlight=False)
