"""`separatrix mechanisms` and `separatrix check-mechanism`."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from separatrix.cli import complete
from separatrix.cli.groups import Listing
from separatrix.cli.options import Imports
from separatrix.cli.printing import (
    JsonFlag,
    print_description,
    print_json,
    print_rows,
    print_text,
    show,
    width,
)
from separatrix.core.errors import SpecError, UnknownNameError
from separatrix.core.progress import bar

WIDE = 130
"""Columns of a terminal that has room for the whole table of mechanisms."""

mechanisms_app = typer.Typer(cls=Listing, rich_markup_mode=None)


@mechanisms_app.callback(invoke_without_command=True)
def mechanisms(
    context: typer.Context,
    imports: Imports = None,
    markdown: Annotated[
        bool, typer.Option("--markdown", help="Print all of them as one Markdown page.")
    ] = False,
    as_json: JsonFlag = False,
) -> None:
    """The token mixers: what they carry and read, what a token costs, what others call them, and
    whether a model can be built here.
    """
    if context.invoked_subcommand:
        return
    from separatrix.cli.report.mechanisms import LEGEND, page, rows, shown

    if markdown and as_json:
        raise SpecError("--markdown and --json are two forms of the same list; give one")
    if markdown:
        typer.echo(page(), nl=False)
        return
    if as_json:
        print_json(rows())
        return
    narrow = ("symbol", "grows", "elsewhere") if width() < WIDE else ()
    listed = [shown(row) for row in rows()]
    print_rows(
        [{key: value for key, value in row.items() if key not in narrow} for row in listed], False
    )
    more = "; a wider terminal also shows how the state grows, and other names" if narrow else ""
    print_text(f"\n{LEGEND}{more}")


@mechanisms_app.command("show")
def mechanisms_show(
    name: Annotated[str, typer.Argument(autocompletion=complete.mechanisms)],
    imports: Imports = None,
    as_json: JsonFlag = False,
) -> None:
    """One mechanism: its recurrence, sizes, cost, other names and source."""
    from separatrix.cli.report.mechanisms import describe
    from separatrix.cli.report.parts import keyed

    print_description(keyed(describe(name)), as_json)


def check_mechanism(
    target: Annotated[
        str,
        typer.Argument(
            help="module:Class, path/to/file.py:Class, or the name of a mechanism, such as gdn.",
            autocompletion=complete.mechanisms,
        ),
    ],
    model_width: Annotated[
        int | None,
        typer.Option(
            "--width",
            min=1,
            max=65536,
            help="Model width (default: the class's own, else 16).",
        ),
    ] = None,
    sizes: Annotated[
        list[str] | None,
        typer.Option("--set", help="A size, repeatable: state=32, negative=true, bf16."),
    ] = None,
    within: Annotated[
        float,
        typer.Option(
            "--tolerance",
            min=0,
            max=0.1,
            help=(
                "How far forms may differ, of the largest number; 1e-5 for a layer that computes in"
                " float32 inside."
            ),
        ),
    ] = 1e-9,
    formats: Annotated[
        str,
        typer.Option(
            "--formats",
            help="Formats that laws look at beside float64, such as fp32,bf16 for a layer that"
            " fp16 is too narrow for.",
        ),
    ] = "fp32,bf16,fp16",
    seed: Annotated[
        int | None,
        typer.Option(
            min=0, help="What the laws draw follows from it (default: another one in each run)."
        ),
    ] = None,
    imports: Imports = None,
    as_json: JsonFlag = False,
) -> None:
    """Runs every law of a token mixer on a class of your own: equal forms, causality, measured
    cache, half formats, vmap, speed.

    Exit code 1 if a law is broken. Example: check-mechanism my_module:MyMixer --set state=32
    """
    # the bar comes before torch does: loading it is most of the waiting
    with bar(f"checking {target}", shown=not as_json) as advance:
        from separatrix.cli.report.check_card import check_json, render_check
        from separatrix.mixers.plugins.check import check, find

        asked = _formats(formats)
        mixer, origin = find(target, width=model_width, sizes=_sizes(sizes or []))
        card = check(
            mixer, origin=origin, within=within, formats=asked, seed=seed, progress=advance
        )
    if as_json:
        print_json(check_json(card))
    else:
        show(render_check(card))
    if card.broken:
        raise typer.Exit(1)


def _formats(text: str) -> list[str]:
    """Names of formats from a text such as "fp32,bf16". Raises UnknownNameError."""
    from separatrix.mixers.laws import FORMATS

    names = [name.strip() for name in text.split(",")]
    for name in names:
        if name not in FORMATS:
            raise UnknownNameError.of("format", name[:60], FORMATS)
    return names


def _sizes(texts: list[str]) -> dict[str, Any]:
    """Sizes from texts such as "state=32", "negative=true", "bf16". Raises SpecError."""
    found: dict[str, Any] = {}
    for text in texts:
        name, equals, value = (part.strip() for part in text.partition("="))
        if not equals:
            name, value = "format", name
        if not name or not value:
            raise SpecError(
                f"--set {text[:60]!r} is no setting; write SIZE=VALUE, such as --set state=32"
            )
        if name in found:
            raise SpecError(f"--set {name} is given twice; keep one")
        number = value.replace("_", "")
        if number.isascii() and number.isdecimal() and len(number) < 14:
            found[name] = int(number)
        else:
            found[name] = {"true": True, "false": False}.get(value, value)
    return found
