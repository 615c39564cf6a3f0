"""The shape of a source tree: its files, classes, rooms and imports, and three walks through it.

    python benchmarks/shape.py [ROOT] [--json]

ROOT is a checkout, by default the one that this script lies in. So one script measures a tree
before and after a change. Its tests must hold `FLOORS` (tests/contract/test_floors.py).

Files. Lines are lines of text, a comment line holds nothing but a comment, and pragmas are none.
A packed assignment gives one tuple to another, `a, b = x, y`; its share is that among all plain
assignments.
A chain of classes goes from a class up through bases of the same tree. Exceptions of errors.py
do not count.

Rooms. A room is a first-level folder or module of the package; its `__init__` is a room, too.
An arrow is a pair of rooms of which one imports the other. At start means: when the module is
loaded. Ever means: inside functions, too. Imports under TYPE_CHECKING are arrows in writing only.
A circle is a set of rooms, or of modules, each of which reaches all the others by imports.
That a module loads the packages it lies in does not count.

Walks. Each runs in a process of its own, which notes who calls whom among our own functions.
What runs while a module is loaded is left out. Calls through other libraries count as ours.
  - A door is a pair of files in two rooms of which one calls the other. The walk takes every door
    once, in the order of first calls, and each door leads into the room of the file that is called.
  - A return is an arrival in a room that the walk had left before.
  - Returns by function count the same on another path: all named functions, by their first calls.
    There also the way back up from a call is seen, so the number is larger.
  - A climb is a pair of functions of which the lower one calls the higher one, by the floors.
    As imports point down, the higher one was handed down: mostly a closure, or a generator
    whose values are asked for below.
"""

from __future__ import annotations

import argparse
import ast
import inspect
import io
import json
import os
import re
import runpy
import statistics
import subprocess
import sys
import tempfile
import tokenize
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import redirect_stdout
from dataclasses import asdict, dataclass
from functools import cached_property
from importlib import import_module
from itertools import groupby
from pathlib import Path
from types import CodeType, FrameType
from typing import Any, Literal, NamedTuple

PACKAGE = "separatrix"
WIDTH = 100
PRAGMA = re.compile(r"#\s*(type:|pyright|noqa|ruff|fmt)")
FLOORS_FILE = Path("tests", "contract", "test_floors.py")

When = Literal["start", "later", "typing"]
Graph = Mapping[str, set[str]]


# Sources


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


# Files


@dataclass(frozen=True)
class Files:
    """How a tree's files are written. Shares are fractions of 1."""

    files: int
    median_lines: float
    largest_lines: int
    largest_file: str
    wide_lines: float
    comment_lines: float
    packed_assignments: float
    longest_chain: list[str]
    underscore_files: int


def files_of(sources: Mapping[str, Source], base: Path) -> Files:
    largest = max(sources.values(), key=lambda source: len(source.lines))
    lines = [line for source in sources.values() for line in source.lines]
    assignments = [node for source in sources.values() for node in assignments_of(source)]
    comments = sum(count_comments(source.text) for source in sources.values())
    return Files(
        files=len(sources),
        median_lines=statistics.median(len(source.lines) for source in sources.values()),
        largest_lines=len(largest.lines),
        largest_file=str(largest.path.relative_to(base)),
        wide_lines=sum(len(line) > WIDTH for line in lines) / len(lines),
        comment_lines=comments / len(lines),
        packed_assignments=sum(map(is_packed, assignments)) / len(assignments),
        longest_chain=longest_chain(sources),
        underscore_files=sum(map(is_private, sources.values())),
    )


def assignments_of(source: Source) -> Iterator[ast.Assign]:
    return (node for node in ast.walk(source.tree) if isinstance(node, ast.Assign))


def is_packed(node: ast.Assign) -> bool:
    """Whether an assignment is `a, b = x, y`."""
    return isinstance(node.targets[0], ast.Tuple) and isinstance(node.value, ast.Tuple)


def is_private(source: Source) -> bool:
    return source.path.name.startswith("_") and not source.path.name.startswith("__")


def count_comments(text: str) -> int:
    """Lines with a comment and nothing else, pragmas left out."""
    tokens = tokenize.generate_tokens(io.StringIO(text).readline)
    comments = (token for token in tokens if token.type == tokenize.COMMENT)
    alone = (token.string for token in comments if token.line.lstrip().startswith("#"))
    return sum(not PRAGMA.match(comment) for comment in alone)


# Classes


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


def handed_on(name: str, sources: Mapping[str, Source]) -> str | None:
    """What a name of a module is an import of, None where the module defines it."""
    module, _, last = name.rpartition(".")
    origin = sources[module].imported.get(last) if module in sources else None
    return None if origin == name else origin


# Rooms


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


# Walks


@dataclass(frozen=True)
class Climb:
    """A function that calls one of a higher floor, and what kind of function that one is."""

    caller: str
    callee: str
    kind: str


@dataclass(frozen=True)
class Walk:
    """The rooms that one run goes through, in order, as the head of this file describes it."""

    path: list[str]
    rooms: int
    transitions: int
    returns: int
    returns_by_function: int
    climbs: list[Climb]


class Function(NamedTuple):
    """A function of ours, by the file it stands in and its name there."""

    file: str
    name: str
    is_generator: bool

    @classmethod
    def of(cls, code: CodeType) -> Function:
        is_generator = bool(code.co_flags & inspect.CO_GENERATOR)
        return cls(code.co_filename, code.co_qualname, is_generator)

    @property
    def is_closure(self) -> bool:
        return "<locals>" in self.name

    @property
    def is_named(self) -> bool:
        """Whether it was written with `def`: no lambda, no comprehension."""
        return not self.name.endswith(">")


class Call(NamedTuple):
    """One function of ours calls another; what is called from outside has no caller."""

    caller: Function | None
    callee: Function


class Recorder:
    """A profiler that keeps each pair of caller and callee, in the order of their first calls."""

    def __init__(self, package: Path) -> None:
        self.prefix = f"{package}{os.sep}"
        self.calls: dict[Call, None] = {}

    def __call__(self, frame: FrameType, event: str, _argument: Any) -> None:
        if event != "call" or not frame.f_code.co_filename.startswith(self.prefix):
            return
        stack = list(self.own_code(frame))
        if any(code.co_name == "<module>" for code in stack):
            return
        caller = Function.of(stack[1]) if len(stack) > 1 else None
        self.calls[Call(caller, Function.of(stack[0]))] = None

    def own_code(self, frame: FrameType | None) -> Iterator[CodeType]:
        """The code of our own that is running, the innermost first."""
        while frame is not None:
            if frame.f_code.co_filename.startswith(self.prefix):
                yield frame.f_code
            frame = frame.f_back


def prepare_analyze(_folder: Path) -> Callable[[], object]:
    """A spec to its card, as the command line does it."""
    sys.argv = [PACKAGE, "analyze", "qwen3-next-80b", "--json"]
    return import_module(f"{PACKAGE}.__main__").main


def prepare_train(_folder: Path) -> Callable[[], object]:
    """A task's tokens to an accuracy: two steps of training, then what it gets right."""
    import separatrix as sx

    run = sx.Run(
        architecture="gdn + full @ heads=1, head_dim=4, value_dim=4",
        task="eva:n=4,V=4",
        seed=0,
        steps=2,
        batch=4,
        width=8,
        hidden=8,
        tested=8,
    )
    train = sx.train
    return lambda: train(run)


def prepare_construct(folder: Path) -> Callable[[], object]:
    """A construction to its check, by way of the files that it writes."""
    import separatrix as sx

    task = sx.parse_task("seqcomp:L=2,m=4,n_1=2")
    construct = sx.construct
    verify = sx.verify

    def walk() -> None:
        built = construct(task)
        built.save(folder)
        verify(built.record, folder=folder)

    return walk


WALKS = {
    "analyze": prepare_analyze,
    "train": prepare_train,
    "construct": prepare_construct,
}


def take_walk(name: str, root: Path) -> Walk:
    """Runs one walk in this process, where `import separatrix` must find the package of ROOT."""
    recorder = Recorder(root / "src" / PACKAGE)
    with tempfile.TemporaryDirectory() as folder, redirect_stdout(io.StringIO()):
        walk = WALKS[name](Path(folder))
        sys.setprofile(recorder)
        try:
            walk()
        except SystemExit as end:
            if end.code:
                raise
        finally:
            sys.setprofile(None)
    return walk_of(list(recorder.calls), floors_in(root), root / "src")


def floors_in(root: Path) -> dict[str, int]:
    """Room -> its floor, counted from below, as the test of the floors says."""
    floors = runpy.run_path(str(root / FLOORS_FILE))["FLOORS"]
    if isinstance(floors, Mapping):
        floors = floors.values()
    return {room: floor for floor, rooms in enumerate(floors) for room in rooms}


def walk_of(calls: Sequence[Call], floors: Mapping[str, int], base: Path) -> Walk:
    def module(function: Function) -> str:
        return module_name(Path(function.file), base)

    def room(function: Function) -> str:
        return room_of(module(function))

    def full_name(function: Function) -> str:
        return f"{module(function).removeprefix(f'{PACKAGE}.')}:{function.name}"

    doors = {
        (caller.file if caller else None, callee.file): room(callee)
        for caller, callee in calls
        if caller is None or room(caller) != room(callee)
    }
    functions = dict.fromkeys(callee for _, callee in calls if callee.is_named)
    path = without_repeats(doors.values())
    return Walk(
        path=path,
        rooms=len(set(path)),
        transitions=len(path) - 1,
        returns=count_returns(path),
        returns_by_function=count_returns(without_repeats(map(room, functions))),
        climbs=[
            Climb(full_name(caller), full_name(callee), kind_of(callee))
            for caller, callee in calls
            if caller and floors[room(callee)] > floors[room(caller)]
        ],
    )


def without_repeats(path: Iterable[str]) -> list[str]:
    """The path with each stay in a room written once."""
    return [room for room, _ in groupby(path)]


def count_returns(path: Sequence[str]) -> int:
    return len(path) - len(set(path))


def kind_of(function: Function) -> str:
    if function.is_generator:
        return "generator"
    return "closure" if function.is_closure else "function"


def walk_elsewhere(name: str, root: Path) -> Walk:
    """Runs one walk in a process that finds the package of ROOT and writes no bytecode there."""
    environment = os.environ | {
        "PYTHONPATH": os.pathsep.join([str(root / "src"), str(root / "tests")]),
        "PYTHONDONTWRITEBYTECODE": "1",
        "PYTHONHASHSEED": "0",
        "OMP_NUM_THREADS": "1",
    }
    command = [sys.executable, __file__, str(root), "--walk", name]
    done = subprocess.run(command, env=environment, check=True, stdout=subprocess.PIPE, text=True)
    body = json.loads(done.stdout)
    return Walk(**body | {"climbs": [Climb(**climb) for climb in body["climbs"]]})


# Printing


@dataclass(frozen=True)
class Shape:
    source: Files
    tests: Files
    rooms: Rooms
    walks: dict[str, Walk]


def shape_of(root: Path) -> Shape:
    source = sources_in(root / "src" / PACKAGE, root / "src")
    tests = sources_in(root / "tests", root / "tests")
    return Shape(
        source=files_of(source, root),
        tests=files_of(tests, root),
        rooms=rooms_of(source),
        walks={name: walk_elsewhere(name, root) for name in WALKS},
    )


def print_shape(shape: Shape) -> None:
    print_table(["files", "src", "tests"], file_rows(shape.source, shape.tests))
    print_table(["rooms", "ever", "at start"], room_rows(shape.rooms))
    print_table(["walks", *shape.walks], walk_rows(list(shape.walks.values())))
    print("\n".join(details(shape)))


def print_table(head: Sequence[str], rows: Sequence[Sequence[object]]) -> None:
    first = max(len(str(row[0])) for row in [head, *rows])
    for row in [head, *rows]:
        print(str(row[0]).ljust(first), *(str(cell).rjust(12) for cell in row[1:]))
    print()


def file_rows(*columns: Files) -> list[list[object]]:
    return [
        ["files", *(f.files for f in columns)],
        ["lines of a file, median", *(f"{f.median_lines:g}" for f in columns)],
        ["lines of a file, largest", *(f.largest_lines for f in columns)],
        [f"lines over {WIDTH} columns", *(f"{f.wide_lines:.1%}" for f in columns)],
        ["comment lines", *(f"{f.comment_lines:.1%}" for f in columns)],
        ["assignments `a, b = x, y`", *(f"{f.packed_assignments:.1%}" for f in columns)],
        ["deepest chain of classes", *(len(f.longest_chain) for f in columns)],
        ["files that begin with _", *(f.underscore_files for f in columns)],
    ]


def room_rows(rooms: Rooms) -> list[list[object]]:
    return [
        ["arrows between rooms", rooms.arrows_ever, rooms.arrows_at_start],
        ["circles of rooms", len(rooms.circles_ever), len(rooms.circles_at_start)],
        ["circles of modules", len(rooms.module_circles_ever), len(rooms.module_circles_at_start)],
    ]


def walk_rows(walks: Sequence[Walk]) -> list[list[object]]:
    return [
        ["rooms", *(walk.rooms for walk in walks)],
        ["transitions", *(walk.transitions for walk in walks)],
        ["returns", *(walk.returns for walk in walks)],
        ["returns by function", *(walk.returns_by_function for walk in walks)],
        ["climbs", *(len(walk.climbs) for walk in walks)],
    ]


def details(shape: Shape) -> Iterator[str]:
    """The names behind the numbers, one line each."""
    rooms = shape.rooms
    for title, files in {"src": shape.source, "tests": shape.tests}.items():
        yield f"largest file of {title}: {files.largest_file}"
        yield f"deepest chain of {title}: {' < '.join(files.longest_chain)}"
    yield f"{len(rooms.rooms)} rooms: {' '.join(rooms.rooms)}"
    yield f"{rooms.arrows} arrows with imports under TYPE_CHECKING"
    for circle in [*rooms.circles_ever, *rooms.module_circles_ever]:
        yield f"circle: {' '.join(circle)}"
    for name, walk in shape.walks.items():
        yield f"walk of {name}: {' '.join(walk.path)}"
        for climb in walk.climbs:
            yield f"  climb: {climb.caller} -> {climb.callee} ({climb.kind})"


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("root", nargs="?", type=Path, default=Path(__file__).parents[1])
    parser.add_argument("--json", action="store_true", help="everything, as JSON")
    parser.add_argument("--walk", choices=WALKS, help=argparse.SUPPRESS)
    options = parser.parse_args()
    root = options.root.resolve()
    if options.walk:
        print(json.dumps(asdict(take_walk(options.walk, root))))
        return
    shape = shape_of(root)
    if options.json:
        print(json.dumps(asdict(shape), indent=1))
    else:
        print_shape(shape)


if __name__ == "__main__":
    main()
