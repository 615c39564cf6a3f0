"""`separatrix list [KIND] [NAME]`: what there is; one of them explained."""

from __future__ import annotations

from collections.abc import Iterable
from importlib import import_module
from textwrap import indent

from separatrix.cli.complete import KINDS
from separatrix.cli.options import Asked, command, given, only
from separatrix.cli.printing import Answer, Told, rows_table, width
from separatrix.core.document import Document, Line
from separatrix.core.errors import UnknownNameError

WIDE = 130
"""Columns of a terminal that has room for whole tables of tasks and mechanisms."""
PRECISION = ("sizes", "formats", "bits", "most", "tokens", "seed", "out")


@command
def list_(asked: Asked) -> Answer | None:
    """What there is; one of them explained. Examples: list mechanisms gdn; list theorems III; list
    constructions match2 --bits 14:32 --out map/; list experiments study --rows rows.jsonl
    """
    kind, name = asked.kind, asked.name
    if kind is None:
        only(asked.ctx, "list", ())
        rows = [{"list": one, "tells": tells} for one, tells in KINDS.items()]
        return Told(rows, Document(rows_table(rows)))
    if kind not in KINDS:
        raise UnknownNameError.of("kind", kind[:60], KINDS)
    own = import_module(f"separatrix.cli.report.{kind}")
    if name is None:
        only(asked.ctx, f"list {kind}", ())
        wide = width() >= WIDE
        shown = Document(rows_table(own.brief(wide) if hasattr(own, "brief") else own.rows()))
        if hasattr(own, "NOTE"):
            shown += Document(Line(f"\n{own.NOTE}{'' if wide else getattr(own, 'NARROW', '')}"))
        return Told(own.rows(), shown)
    takes = {"constructions": PRECISION, "experiments": ("rows", "check", "seed", "out")}
    only(asked.ctx, f"list {kind} NAME", takes.get(kind, ()))
    if kind == "constructions" and set(PRECISION) & set(given(asked.ctx)):
        from separatrix.cli.commands.precision import precision

        return precision(name, asked)
    if kind == "experiments":
        from separatrix.cli.commands.experiment import show

        return show(name, asked)
    return explained(own.describe(name))


def explained(pairs: Iterable[tuple[str, str]]) -> Told:
    """Headings and texts; for machines by keys: "about" has the first, prefix_classes what stands
    under "prefix classes", and what stands in brackets, such as "(after 4,096 tokens)", belongs to
    no key.
    """
    data = {}
    for heading, text in pairs:
        key = heading.partition(" (")[0].replace(" ", "_") if data else "about"
        data[key] = {"heading": heading, "text": text}
    texts = (f"{one['heading']}\n{indent(one['text'], '  ')}" for one in data.values())
    return Told(data, Document(*map(Line, texts)))
