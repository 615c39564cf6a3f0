"""`separatrix list [KIND] [NAME]`: what there is; one of them explained."""

from __future__ import annotations

from importlib import import_module
from pathlib import Path
from typing import Annotated

import typer

from separatrix.cli import complete
from separatrix.cli.options import Imports, given, only
from separatrix.cli.printing import (
    JsonFlag,
    print_description,
    print_json,
    print_rows,
    print_text,
    width,
)
from separatrix.core.errors import SpecError, UnknownNameError

WIDE = 130
"""Columns of a terminal that has room for whole tables of tasks and mechanisms."""
PRECISION = ("sizes", "formats", "bits", "most", "tokens", "seed", "out")
KINDS = {
    "mechanisms": "token mixers: what they carry and read, what a token costs, other names",
    "tasks": "what models are asked: sizes, samplers, chance, sources",
    "presets": "released models known by name, or by their id on the Hugging Face hub",
    "theorems": "what `analyze` and `reproduce` apply, further statements, counts of prefixes",
    "constructions": "explicit weights with a proof, and how far each number format carries",
    "experiments": "what training found, beside what is proved",
}
"""Kind -> what its table tells."""


def list_(
    context: typer.Context,
    kind: Annotated[
        str | None,
        typer.Argument(
            metavar="[KIND]", help=f"{', '.join(KINDS)}.", autocompletion=complete.kinds
        ),
    ] = None,
    name: Annotated[
        str | None,
        typer.Argument(
            metavar="[NAME]", help="One of them, explained.", autocompletion=complete.named
        ),
    ] = None,
    markdown: Annotated[
        bool, typer.Option("--markdown", help="Print a kind's page of docs/ instead.")
    ] = False,
    formats: Annotated[
        str | None,
        typer.Option(
            help="How large a construction these number formats carry, such as fp64,fp32,bf16,p20:"
            " the largest size proved, and the smallest at which a wrong answer is found.",
        ),
    ] = None,
    bits: Annotated[
        str | None,
        typer.Option(
            metavar="FROM:TO", help="The same of formats of so many bits: 12:32 is p12, ..., p32."
        ),
    ] = None,
    sizes: Annotated[
        str | None,
        typer.Option(
            metavar="TASK", help="With {} for the size that grows: eva:n={},V=16, twosum:n=8,M={}."
        ),
    ] = None,
    most: Annotated[
        int, typer.Option(min=2, max=1 << 20, help="Largest size that --formats tries.")
    ] = 1 << 10,
    tokens: Annotated[
        int, typer.Option(min=1, max=1 << 26, help="Tokens that --formats searches at each size.")
    ] = 1 << 16,
    seed: Annotated[
        int | None,
        typer.Option(
            min=0, help="Of the inputs that --formats searches, or which run --check draws."
        ),
    ] = None,
    out: Annotated[
        Path | None,
        typer.Option(help="New folder: the map of --formats, or an experiment's page and table."),
    ] = None,
    rows: Annotated[
        Path | None,
        typer.Option(help="Show an experiment's runs from a file with a run a line."),
    ] = None,
    check: Annotated[
        bool,
        typer.Option("--check", help="Train one recorded run of an experiment again; compare."),
    ] = False,
    imports: Imports = None,
    as_json: JsonFlag = False,
) -> None:
    """What there is; one of them explained. Examples: list mechanisms gdn; list theorems III; list
    constructions match2 --bits 14:32 --out map/; list experiments study --rows rows.jsonl
    """
    if kind is None:
        only(context, "list", ())
        print_rows([{"list": one, "tells": tells} for one, tells in KINDS.items()], as_json)
        return
    if kind not in KINDS:
        raise UnknownNameError.of("kind", kind[:60], KINDS)
    own = import_module(f"separatrix.cli.report.{kind}")
    if name is None:
        only(context, f"list {kind}", ("markdown",) if hasattr(own, "page") else ())
        if markdown and as_json:
            raise SpecError("--markdown and --json are two forms of the same list; give one")
        if markdown:
            typer.echo(own.page(), nl=False)
        elif as_json:
            print_json(own.rows())
        else:
            wide = width() >= WIDE
            print_rows(own.brief(wide), False)
            if own.NOTE:
                print_text(f"\n{own.NOTE}{'' if wide else getattr(own, 'NARROW', '')}")
        return
    if kind == "constructions":
        only(context, "list constructions NAME", PRECISION)
        if set(PRECISION) & set(given(context)):
            from separatrix.cli.commands.precision import precision

            precision(name, sizes, formats, bits, most, tokens, seed or 0, out, as_json)
            return
    elif kind == "experiments":
        from separatrix.cli.commands.experiment import show

        only(context, "list experiments NAME", ("rows", "check", "seed", "out"))
        show(name, rows=rows, check=check, seed=seed, out=out, as_json=as_json)
        return
    else:
        only(context, f"list {kind} NAME", ())
    from separatrix.cli.report.parts import keyed

    print_description(keyed(own.describe(name)), as_json)
