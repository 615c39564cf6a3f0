"""What the shell completes: names of what `list` lists."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from importlib import import_module

from typer import Context

KINDS = {
    "mechanisms": "token mixers: what they carry and read, what a token costs, other names",
    "tasks": "what models are asked: sizes, samplers, chance, sources",
    "presets": "released models known by name, or by their id on the Hugging Face hub",
    "theorems": "what `analyze` and `reproduce` apply, further statements, counts of prefixes",
    "constructions": "explicit weights with a proof, and how far each number format carries",
    "experiments": "what training found, beside what is proved",
}
"""Kind -> what its table tells; separatrix.cli.report has a file for each."""


def names(kind: str) -> list[str]:
    """The first column of a kind's table."""
    return [
        next(iter(row.values())) for row in import_module(f"separatrix.cli.report.{kind}").rows()
    ]


def completing(what: str) -> Callable[[Context, str], list[str]]:
    """What completes a kind; `kinds` themselves; `trained`: what `train` takes by name; `named`: of
    the kind that stands before. A file or a spec is not completed.
    """

    def beginning(context: Context, incomplete: str) -> list[str]:
        found: Iterable[str] = KINDS
        if what != "kinds":
            before = context.params.get("kind") or ""
            kinds = {"trained": ["presets", "experiments"], "named": [before]}.get(what, [what])
            found = [name for kind in kinds if kind in KINDS for name in names(kind)]
        return [name for name in found if name.startswith(incomplete)]

    return beginning
