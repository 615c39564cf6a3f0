"""`separatrix list [KIND] [NAME]`: what there is; one of them explained."""

from __future__ import annotations

from importlib import import_module

import typer

from separatrix.cli.options import Asked, command, given, only
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


@command
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
            print_rows(own.brief(wide) if hasattr(own, "brief") else own.rows(), False)
            if hasattr(own, "NOTE"):
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
