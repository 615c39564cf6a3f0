"""Rooms, the arrows between them, and circles of arrows.

A room is a first-level folder or module of the package; its `__init__` is a room, too.
An arrow is a pair of rooms of which one imports the other. At start means: when the module is
loaded. Ever means: inside functions, too. Imports under TYPE_CHECKING are arrows in writing only.
A circle is a set of rooms, or of modules, each of which reaches all the others by imports.
That a module loads the packages it lies in does not count.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Literal

from house.sources import Source, handed_on, room_of

When = Literal["start", "later", "typing"]
Graph = Mapping[str, set[str]]


@dataclass(frozen=True)
class Rooms:
    """The rooms of the package, the arrows between them and the circles of these arrows."""

    rooms: list[str]
    arrows: int
    arrows_ever: int
    arrows_at_start: int
    circles_ever: list[list[str]]
    circles_at_start: list[list[str]]
    module_circles_ever: list[list[str]]
    module_circles_at_start: list[list[str]]


def rooms_of(sources: Mapping[str, Source]) -> Rooms:
    everything = module_graph(sources, {"start", "later", "typing"})
    ever = module_graph(sources, {"start", "later"})
    at_start = module_graph(sources, {"start"})
    return Rooms(
        rooms=sorted({room_of(name) for name in sources}),
        arrows=count_arrows(room_graph(everything)),
        arrows_ever=count_arrows(room_graph(ever)),
        arrows_at_start=count_arrows(room_graph(at_start)),
        circles_ever=circles(room_graph(ever)),
        circles_at_start=circles(room_graph(at_start)),
        module_circles_ever=circles(ever),
        module_circles_at_start=circles(at_start),
    )


def module_graph(sources: Mapping[str, Source], when: set[When]) -> Graph:
    """Module -> the other modules of the package that it imports at one of these times."""
    return {
        name: (
            {
                target
                for statement, time in dated_imports(source.tree, "start")
                if time in when
                for target in targets(statement, sources)
            }
            - {name}
        )
        for name, source in sources.items()
    }


def dated_imports(node: ast.AST, when: When) -> Iterator[tuple[ast.stmt, When]]:
    """The imports below a node, each with the time at which it happens."""
    if isinstance(node, ast.Import | ast.ImportFrom):
        yield node, when
    if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and when == "start":
        when = "later"
    unseen: list[ast.stmt] = []
    if isinstance(node, ast.If) and "TYPE_CHECKING" in ast.unparse(node.test):
        unseen = node.body
    for child in ast.iter_child_nodes(node):
        yield from dated_imports(child, "typing" if child in unseen else when)


def targets(statement: ast.stmt, sources: Mapping[str, Source]) -> set[str]:
    """The modules of the package that an import statement names."""
    if isinstance(statement, ast.ImportFrom):
        module = statement.module or ""
        named = {submodule_or(module, alias.name, sources) for alias in statement.names}
    elif isinstance(statement, ast.Import):
        named = {alias.name for alias in statement.names}
    else:
        named = set()
    return named & set(sources)


def submodule_or(module: str, name: str, sources: Mapping[str, Source]) -> str:
    """What `from module import name` reaches: the submodule, or the module where it hides that."""
    submodule = f"{module}.{name}"
    if submodule not in sources:
        return module
    hidden = handed_on(submodule, sources) is not None
    return module if hidden else submodule


def room_graph(modules: Graph) -> Graph:
    graph: dict[str, set[str]] = {room_of(module): set() for module in modules}
    for module, imported in modules.items():
        room = room_of(module)
        graph[room] |= {room_of(target) for target in imported} - {room}
    return graph


def count_arrows(graph: Graph) -> int:
    return sum(map(len, graph.values()))


def circles(graph: Graph) -> list[list[str]]:
    """Sets of several nodes that all reach each other, the largest first."""
    reached = {node: reachable(node, graph) for node in graph}
    around = {
        frozenset(other for other in reached[node] if node in reached[other]) for node in graph
    }
    return sorted((sorted(circle) for circle in around if len(circle) > 1), key=len, reverse=True)


def reachable(start: str, graph: Graph) -> set[str]:
    """The nodes that one or more arrows lead to."""
    found: set[str] = set()
    ahead = [start]
    while ahead:
        new = graph[ahead.pop()] - found
        found |= new
        ahead.extend(new)
    return found
