"""`separatrix list [KIND] [NAME]`: what there is; one of them explained."""

from __future__ import annotations

from importlib import import_module
from pathlib import Path

import typer

from separatrix.cli import complete
from separatrix.cli.options import IMPORTS, JSON, Asked, arg, command, flag, given, only, opt
from separatrix.cli.printing import print_description, print_json, print_rows, print_text, width
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


@command(
    kind=arg(
        str | None,
        f"{', '.join(KINDS)}.",
        default=None,
        metavar="[KIND]",
        autocompletion=complete.kinds,
    ),
    name=arg(
        str | None,
        "One of them, explained.",
        default=None,
        metavar="[NAME]",
        autocompletion=complete.named,
    ),
    markdown=flag("Print a kind's page of docs/ instead.", "--markdown"),
    formats=opt(
        str,
        "How large a construction these number formats carry, such as fp64,fp32,bf16,p20:"
        " the largest size proved, and the smallest at which a wrong answer is found.",
    ),
    bits=opt(
        str, "The same of formats of so many bits: 12:32 is p12, ..., p32.", metavar="FROM:TO"
    ),
    sizes=opt(
        str, "With {} for the size that grows: eva:n={},V=16, twosum:n=8,M={}.", metavar="TASK"
    ),
    most=opt(int, "Largest size that --formats tries.", default=1 << 10, min=2, max=1 << 20),
    tokens=opt(
        int, "Tokens that --formats searches at each size.", default=1 << 16, min=1, max=1 << 26
    ),
    seed=opt(int, "Of the inputs that --formats searches, or which run --check draws.", min=0),
    out=opt(Path, "New folder: the map of --formats, or an experiment's page and table."),
    rows=opt(Path, "Show an experiment's runs from a file with a run a line."),
    check=flag("Train one recorded run of an experiment again; compare.", "--check"),
    imports=IMPORTS,
    as_json=JSON,
)
def list_(asked: Asked) -> None:
    """What there is; one of them explained. Examples: list mechanisms gdn; list theorems III; list
    constructions match2 --bits 14:32 --out map/; list experiments study --rows rows.jsonl
    """
    kind, name, as_json = asked.kind, asked.name, asked.as_json
    if kind is None:
        only(asked.ctx, "list", ())
        print_rows([{"list": one, "tells": tells} for one, tells in KINDS.items()], as_json)
        return
    if kind not in KINDS:
        raise UnknownNameError.of("kind", kind[:60], KINDS)
    own = import_module(f"separatrix.cli.report.{kind}")
    if name is None:
        only(asked.ctx, f"list {kind}", ("markdown",) if hasattr(own, "page") else ())
        if asked.markdown and as_json:
            raise SpecError("--markdown and --json are two forms of the same list; give one")
        if asked.markdown:
            typer.echo(own.page(), nl=False)
        elif as_json:
            print_json(own.rows())
        else:
            wide = width() >= WIDE
            print_rows(own.brief(wide), False)
            if own.NOTE:
                print_text(f"\n{own.NOTE}{'' if wide else getattr(own, 'NARROW', '')}")
        return
    takes = {"constructions": PRECISION, "experiments": ("rows", "check", "seed", "out")}
    only(asked.ctx, f"list {kind} NAME", takes.get(kind, ()))
    if kind == "constructions" and set(PRECISION) & set(given(asked.ctx)):
        from separatrix.cli.commands.precision import precision

        precision(name, asked)
    elif kind == "experiments":
        from separatrix.cli.commands.experiment import show

        show(name, asked)
    else:
        from separatrix.cli.report.parts import keyed

        print_description(keyed(own.describe(name)), as_json)
