"""Chains of classes: each from a class up through bases of the same tree.

Exceptions of errors.py do not count.
"""

from __future__ import annotations

import ast
from collections.abc import Mapping

from house.sources import Source, handed_on, room_of


def longest_chain(sources: Mapping[str, Source]) -> list[str]:
    """The full names of the classes on the longest way up, the lowest class first."""
    bases = {
        f"{name}.{node.name}": node.bases
        for name, source in sources.items()
        if room_of(name) != "errors"
        for node in ast.walk(source.tree)
        if isinstance(node, ast.ClassDef)
    }

    def up_from(name: str) -> list[str]:
        module = name.rpartition(".")[0]
        above = (own_class(base, sources[module], sources) for base in bases[name])
        ways = (up_from(base) for base in above if base in bases)
        return [name, *max(ways, key=len, default=[])]

    return max(map(up_from, bases), key=len, default=[])


def own_class(base: ast.expr, source: Source, sources: Mapping[str, Source]) -> str:
    """The full name of the class that a base stands for, through imports and what they pass on."""
    if isinstance(base, ast.Subscript):
        base = base.value
    first, _, rest = ast.unparse(base).partition(".")
    name = source.imported.get(first, f"{source.module}.{first}")
    name = f"{name}.{rest}" if rest else name
    while passed_on := handed_on(name, sources):
        name = passed_on
    return name
