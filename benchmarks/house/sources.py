"""Python sources with their names as modules, and what their imports stand for."""

from __future__ import annotations

import ast
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

PACKAGE = "separatrix"


@dataclass(frozen=True)
class Source:
    """One Python file and its name as a module."""

    path: Path
    module: str
    text: str

    @cached_property
    def tree(self) -> ast.Module:
        return ast.parse(self.text)

    @cached_property
    def lines(self) -> list[str]:
        return self.text.splitlines()

    @cached_property
    def imported(self) -> dict[str, str]:
        """The name that an import gives here -> the full name of what it stands for."""
        found = {}
        for node in ast.walk(self.tree):
            if isinstance(node, ast.ImportFrom):
                found |= {
                    alias.asname or alias.name: f"{node.module}.{alias.name}"
                    for alias in node.names
                }
            elif isinstance(node, ast.Import):
                for alias in node.names:
                    head = alias.name.partition(".")[0]
                    found |= {alias.asname: alias.name} if alias.asname else {head: head}
        return found


def module_name(path: Path, base: Path) -> str:
    parts = path.relative_to(base).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def sources_in(folder: Path, base: Path) -> dict[str, Source]:
    """The Python files of a folder by module name; `base` is where imports start."""
    found = {}
    for path in sorted(folder.rglob("*.py")):
        name = module_name(path, base)
        found[name] = Source(path, name, path.read_text())
    return found


def room_of(module: str) -> str:
    """The first level below the package; the package's own `__init__` is a room by itself."""
    levels = module.split(".")
    return levels[0] if len(levels) == 1 else levels[1]


def handed_on(name: str, sources: Mapping[str, Source]) -> str | None:
    """What a name of a module is an import of, None where the module defines it."""
    module, _, last = name.rpartition(".")
    origin = sources[module].imported.get(last) if module in sources else None
    return None if origin == name else origin
