"""How much the tests catch: small changes of the sources, one at a time, and the share of them that
makes a test fail.

    python tests/mutants.py --out mutants.json           every change against `make test`
    python tests/mutants.py --only theory --per-room 20  some of them; --list names them and stops
    python tests/mutants.py --suite OTHER_CHECKOUT       the tests of another version, these sources
    python tests/mutants.py --again mutants.json         what was caught then: is it still?
    python tests/mutants.py --report NEW.json OLD.json   rates by room, nothing is run

A run without a change comes first and records which test executes which line (not what the tests
run in processes of their own). A change is then judged by the tests that execute its line, or,
where it runs at import only, that execute any line of its file; the first failure ends it. A test
that takes ten times as long as usual and half a minute more, and a test process that dies, have
caught it too.

Which changes are made depends on --seed and on the functions themselves, not on the rest of the
tree. A change is known by the body of its function and its place there, not by its file: moves and
rewritten imports lose none, --again finds each wherever its function now stands.
"""

from __future__ import annotations

import argparse
import ast
import hashlib
import json
import multiprocessing
import os
import shutil
import signal
import sys
import tempfile
import time
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).resolve().parent.parent
SHARES = {
    "core": 20,
    "stacks": 24,
    "tasks": 32,
    "theory": 28,
    "protocols": 20,
    "cards": 20,
    "mixers": 28,
    "models": 20,
    "constructions": 20,
    "proofs": 40,
    "checks": 20,
    "training": 40,
    "findings": 20,
    "cli": 36,
}
"""How many changes each room gets: twenty for each of what was a room of its own and had few."""
FEW = ("--few", "3")
"""As `make test` runs them."""
FOLDERS = ("contract", "golden", "quality", "unit")
COPIED = (
    "src",
    "tests",
    "docs",
    "examples",
    "benchmarks",
    "README.md",
    "CONTRIBUTING.md",
    "CHANGELOG.md",
    "Makefile",
    ".pre-commit-config.yaml",
    "LICENSE",
    "pyproject.toml",
    "constraints.txt",
    ".ci",
    "tools",
)
"""What a copy of the checkout needs for its tests."""
UNORDERED = ("min", "max", "minimum", "maximum", "gcd", "equal", "isinstance", "cast")
"""Functions whose first two arguments are not swapped: it would change nothing, or fail at once."""
WITHOUT = ("mixers/kernels",)
"""Sources left out: nothing but a GPU runs them."""
START = 5.0
"""Seconds that a change takes before its first test: a process, the imports, the collection."""
GRACE = 30.0
"""Seconds that a test may take beyond ten times its usual time, and all tests of a change beyond
four times theirs.
"""


# ---- the changes


@dataclass(frozen=True)
class Mutant:
    """One change: the bytes `start` to `end` of a file of src/separatrix replaced by `new`."""

    file: str
    function: str
    body: str
    """A hash of the function, or of the statement of a class: see `body_of`."""
    place: int
    """Which of the expressions of the function."""
    kind: str
    line: int
    last_line: int
    start: int
    end: int
    old: str
    new: str

    @property
    def key(self) -> str:
        """What it is known by, wherever its function stands."""
        return f"{self.function} {self.body} {self.place} {self.kind} {self.new}"

    @property
    def title(self) -> str:
        return f"{self.file}:{self.line} {self.function}: {_short(self.old)} -> {_short(self.new)}"

    def apply(self, source: bytes) -> bytes:
        assert source[self.start : self.end].decode() == self.old, (
            f"{self.title}: the file has changed"
        )
        return source[: self.start] + self.new.encode() + source[self.end :]


class _Unmoved(ast.NodeTransformer):
    """Imports without the modules they name, functions and classes without their docstrings."""

    def visit_Import(self, node: ast.Import) -> ast.AST:
        return ast.Pass()

    def visit_ImportFrom(self, node: ast.ImportFrom) -> ast.AST:
        return ast.Pass()

    def visit_FunctionDef(self, node: ast.FunctionDef) -> ast.AST:
        self.generic_visit(node)
        if ast.get_docstring(node) is not None:
            node.body = node.body[1:]
        return node


def body_of(node: ast.stmt) -> str:
    """A hash of a function, or of another statement: neither where it stands nor how it is laid out
    counts, nor which modules it imports from.
    """
    copied = ast.parse(ast.unparse(node)).body[0]
    return hashlib.sha256(ast.dump(_Unmoved().visit(copied)).encode()).hexdigest()[:16]


def _short(text: str) -> str:
    text = " ".join(text.split())
    return text if len(text) <= 70 else f"{text[:67]}..."


COMPARISONS: dict[type[ast.cmpop], type[ast.cmpop]] = {
    ast.Lt: ast.LtE,
    ast.LtE: ast.Lt,
    ast.Gt: ast.GtE,
    ast.GtE: ast.Gt,
    ast.Eq: ast.NotEq,
    ast.NotEq: ast.Eq,
    ast.In: ast.NotIn,
    ast.NotIn: ast.In,
    ast.Is: ast.IsNot,
    ast.IsNot: ast.Is,
}


def changes(node: ast.expr) -> Iterator[tuple[str, ast.expr]]:
    """The changes of one expression, as (kind, what stands there instead)."""
    match node:
        case ast.Compare(left, [operator, *rest], comparators):
            yield (
                "flipped comparison",
                ast.Compare(left, [COMPARISONS[type(operator)](), *rest], comparators),
            )
        case ast.Constant(value) if type(value) is int and value < 1000:
            yield "off by one", ast.Constant(value + 1)
        case ast.BinOp(
            left, ast.Add() | ast.Sub() | ast.Mult() | ast.FloorDiv() | ast.Mod() | ast.Pow(), _
        ) if not _text(node):
            yield "dropped term", left
            if isinstance(node.op, ast.Add | ast.Sub):
                yield (
                    "changed sign",
                    ast.BinOp(
                        left, ast.Sub() if isinstance(node.op, ast.Add) else ast.Add(), node.right
                    ),
                )
        case ast.UnaryOp(ast.Not() | ast.USub(), operand):
            yield "dropped sign", operand
        case ast.BoolOp(operator, [_, *_] as values):
            yield (
                "and for or",
                ast.BoolOp(ast.And() if isinstance(operator, ast.Or) else ast.Or(), values),
            )
            yield (
                "dropped condition",
                values[0] if len(values) == 2 else ast.BoolOp(operator, values[:-1]),
            )
        case ast.Call(function, [first, second, *rest], keywords) if not any(
            isinstance(a, ast.Starred) for a in (first, second)
        ):
            if (
                ast.dump(first) != ast.dump(second)
                and ast.unparse(function).rpartition(".")[2] not in UNORDERED
            ):
                yield "swapped arguments", ast.Call(function, [second, first, *rest], keywords)
            if isinstance(function, ast.Name) and function.id in ("min", "max"):
                yield (
                    "min for max",
                    ast.Call(
                        ast.Name("max" if function.id == "min" else "min"), node.args, keywords
                    ),
                )
        case ast.IfExp(test, body, orelse):
            yield "swapped branches", ast.IfExp(test, orelse, body)
        case _:
            return


def _text(node: ast.AST) -> bool:
    """Whether an expression builds a string: no result depends on it but messages."""
    return any(
        isinstance(n, ast.JoinedStr) or (isinstance(n, ast.Constant) and isinstance(n.value, str))
        for n in ast.walk(node)
    )


class _Sites(ast.NodeVisitor):
    """Every place of a file where a change can be made, by function; not in annotations,
    messages of errors or text.
    """

    def __init__(self) -> None:
        self.function: list[str] = []
        self.owner: ast.stmt = ast.Pass()
        """The innermost function around, or statement of a class."""
        self.found: list[tuple[str, ast.stmt, ast.expr]] = []

    def visit_FunctionDef(self, node: ast.FunctionDef) -> None:
        around, self.owner = self.owner, node
        self.function.append(node.name)
        for statement in node.body:
            self.visit(statement)
        self.function.pop()
        self.owner = around

    def visit_ClassDef(self, node: ast.ClassDef) -> None:
        around = self.owner
        self.function.append(node.name)
        for statement in node.body:
            self.owner = statement
            self.visit(statement)
        self.function.pop()
        self.owner = around

    def visit_AnnAssign(self, node: ast.AnnAssign) -> None:
        if node.value is not None:
            self.visit(node.value)

    def visit_Raise(self, node: ast.Raise) -> None: ...

    def visit_Assert(self, node: ast.Assert) -> None: ...

    def visit_JoinedStr(self, node: ast.JoinedStr) -> None: ...

    def visit_Subscript(self, node: ast.Subscript) -> None:
        if isinstance(node.value, ast.Name) and node.value.id in (
            "Literal",
            "Annotated",
            "ClassVar",
            "Callable",
            "tuple",
            "dict",
            "list",
        ):
            return
        self.generic_visit(node)

    def generic_visit(self, node: ast.AST) -> None:
        if (
            isinstance(node, ast.If)
            and isinstance(node.test, ast.Name)
            and node.test.id == "TYPE_CHECKING"
        ):
            return
        if (
            isinstance(node, ast.expr)
            and self.function
            and any(c.islower() for c in self.function[-1])
        ):
            self.found.append((".".join(self.function), self.owner, node))
        super().generic_visit(node)


def mutants_of(path: Path, root: Path) -> Iterator[Mutant]:
    source = path.read_bytes()
    starts = [0]
    for line in source.splitlines(keepends=True):
        starts.append(starts[-1] + len(line))
    sites = _Sites()
    sites.visit(ast.parse(source))
    owners = {id(owner): owner for _, owner, _ in sites.found}
    bodies = {known: body_of(owner) for known, owner in owners.items()}
    counted: Counter[int] = Counter()
    for function, owner, node in sites.found:
        counted[id(owner)] += 1
        start = starts[node.lineno - 1] + node.col_offset
        end = starts[(node.end_lineno or node.lineno) - 1] + (node.end_col_offset or 0)
        for kind, changed in changes(node):
            new = f"({ast.unparse(ast.fix_missing_locations(changed))})"
            old = source[start:end].decode()
            yield Mutant(
                path.relative_to(root).as_posix(),
                function,
                bodies[id(owner)],
                counted[id(owner)],
                kind,
                node.lineno,
                node.end_lineno or node.lineno,
                start,
                end,
                old,
                new,
            )


def room_of(file: str) -> str:
    """The room of a file of src/separatrix; the package's own files are doors, as `cli` is."""
    first, *inside = file.split("/")[2:]
    return first if inside else "cli"


def every_mutant(root: Path) -> Iterator[Mutant]:
    """Each change that can be made; of two functions that are equal, in one of them."""
    met: set[str] = set()
    for path in sorted((root / "src" / "separatrix").rglob("*.py")):
        if any(part in path.as_posix() for part in WITHOUT):
            continue
        for mutant in mutants_of(path, root):
            if mutant.key not in met:
                met.add(mutant.key)
                yield mutant


def chosen(mutants: Iterable[Mutant], seed: int, shares: Mapping[str, int]) -> list[Mutant]:
    """For each room as many changes as its share, at most one a function, every kind of change
    as often as the others.
    """
    rooms: dict[str, list[tuple[str, Mutant]]] = defaultdict(list)
    for mutant in mutants:
        name = f"{seed} {mutant.key}"
        rooms[room_of(mutant.file)].append((hashlib.sha256(name.encode()).hexdigest(), mutant))
    return [
        mutant
        for room, share in shares.items()
        for mutant in _spread(sorted(rooms[room], key=lambda pair: pair[0]), share)
    ]


def _spread(ranked: Sequence[tuple[str, Mutant]], share: int) -> list[Mutant]:
    taken: list[Mutant] = []
    functions: set[tuple[str, str]] = set()
    files: Counter[str] = Counter()
    kinds: Counter[str] = Counter()
    while len(taken) < share:
        free = [m for _, m in ranked if (m.function, m.body) not in functions]
        if not free:
            break
        # the first of the ranking among the rarest
        best = min(free, key=lambda m: files[_name(m)] + kinds[m.kind])
        taken.append(best)
        functions.add((best.function, best.body))
        files[_name(best)] += 1
        kinds[best.kind] += 1
    return taken


def _name(mutant: Mutant) -> str:
    """The name of its file, which a move keeps."""
    return mutant.file.rpartition("/")[2]


# ---- the tests that run a line


class Recorder:
    """A pytest plugin: which test executes which lines, and how long it takes. One file of lines
    for each process, in `folder`.
    """

    def __init__(self, folder: Path, source: Path) -> None:
        import coverage

        self.folder = folder
        self.coverage = coverage.Coverage(
            data_file=str(folder / f"lines.{os.getpid()}"),
            source=[str(source)],
            config_file=False,
            messages=False,
        )
        self.coverage.start()
        self.seconds: dict[str, float] = {}
        self.failed: list[str] = []

    @pytest.hookimpl(hookwrapper=True)
    def pytest_runtest_protocol(self, item: pytest.Item) -> Iterator[None]:
        self.coverage.switch_context(item.nodeid)
        begun = time.monotonic()
        yield
        self.seconds[item.nodeid] = time.monotonic() - begun
        self.coverage.switch_context("")

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if report.failed:
            self.failed.append(report.nodeid)

    def pytest_sessionfinish(self) -> None:
        self.coverage.stop()
        self.coverage.save()
        found = {"seconds": self.seconds, "failed": self.failed}
        (self.folder / f"tests.{os.getpid()}.json").write_text(json.dumps(found))


@dataclass(frozen=True)
class Recorded:
    """What the run without a change has shown."""

    lines: dict[str, dict[int, list[str]]]
    """Tests by file and line; the empty name stands for import."""
    seconds: dict[str, float]
    hints: dict[str, str]
    """By key of a change: the test that caught it in an earlier run."""

    def tests(self, mutant: Mutant) -> list[str]:
        """The tests to run for a change: those that execute one of its lines, quick ones first."""
        of_file = self.lines.get(mutant.file, {})
        lines = range(mutant.line, mutant.last_line + 1)
        direct = {test for line in lines for test in of_file.get(line, ()) if test}
        if not direct:
            direct = {test for tests in of_file.values() for test in tests if test}
        known = self.hints.get(mutant.key)
        return sorted(
            (test for test in direct if test in self.seconds),
            key=lambda test: (test != known, self.seconds[test]),
        )


def record(copy: Path, jobs: int, hints: dict[str, str], tests: Sequence[str]) -> Recorded:
    """Runs these folders or files of the suite once without a change."""
    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(scratch)
        given = [copy / "tests" / name for name in tests]
        files = [p for one in given for p in ([one] if one.is_file() else _tests_in(one))]
        parts = _split(files, jobs)
        running = [_forked(_record_some, copy, folder, files) for files in parts]
        for process in running:
            process.join()
        return _read(folder, copy, hints)


def _tests_in(folder: Path) -> list[Path]:
    return sorted(folder.rglob("test_*.py"))


def _split(files: Sequence[Path], jobs: int) -> list[list[Path]]:
    return [list(files[i::jobs]) for i in range(jobs)]


def _record_some(copy: Path, folder: Path, files: Sequence[Path]) -> None:
    _enter(copy)
    _log_to(folder / f"log.{os.getpid()}")
    recorder = Recorder(folder, copy / "src" / "separatrix")
    pytest.main(
        ["-q", "-p", "no:cacheprovider", *FEW, *(str(p.relative_to(copy)) for p in files)],
        plugins=[recorder],
    )


def _read(folder: Path, copy: Path, hints: dict[str, str]) -> Recorded:
    import coverage

    lines: dict[str, dict[int, list[str]]] = {}
    for path in folder.glob("lines.*"):
        data = coverage.CoverageData(str(path))
        data.read()
        for file in data.measured_files():
            mine = lines.setdefault(Path(file).relative_to(copy).as_posix(), {})
            for line, tests in data.contexts_by_lineno(file).items():
                mine.setdefault(line, []).extend(tests)
    found = [json.loads(path.read_text()) for path in folder.glob("tests.*.json")]
    failed = {test for part in found for test in part["failed"]}
    if failed:
        print(
            f"{len(failed)} tests fail without a change and are left out:"
            f" {', '.join(sorted(failed)[:5])}",
            file=sys.stderr,
        )
    seconds = {
        test: took for part in found for test, took in part["seconds"].items() if test not in failed
    }
    if not seconds:
        logs = "\n".join(path.read_text()[-2000:] for path in folder.glob("log.*"))
        raise SystemExit(f"{logs}\nerror: no test ran; does `make test` work here?")
    return Recorded(lines, seconds, hints)


# ---- judging a change


class Chosen:
    """A pytest plugin: only these tests, in this order."""

    def __init__(self, tests: Sequence[str], seconds: Mapping[str, float], answer: Path) -> None:
        self.place = {test: place for place, test in enumerate(tests)}
        self.seconds = seconds
        self.answer = answer
        self.caught_by = ""

    def write(self) -> None:
        self.answer.write_text(json.dumps({"caught_by": self.caught_by, "tests": len(self.place)}))

    @pytest.hookimpl(hookwrapper=True)
    def pytest_runtest_protocol(self, item: pytest.Item) -> Iterator[None]:
        def late(*_: object) -> None:
            self.caught_by = f"{item.nodeid} (time)"
            self.write()
            os._exit(1)

        signal.signal(signal.SIGALRM, late)
        signal.setitimer(signal.ITIMER_REAL, GRACE + 10 * self.seconds[item.nodeid])
        yield
        signal.setitimer(signal.ITIMER_REAL, 0)

    @pytest.hookimpl(trylast=True)
    def pytest_collection_modifyitems(self, items: list[pytest.Item]) -> None:
        items[:] = sorted(
            (item for item in items if item.nodeid in self.place),
            key=lambda item: self.place[item.nodeid],
        )

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if report.failed:
            self.caught_by = report.nodeid


def judge(copy: Path, mutant: Mutant, recorded: Recorded, answer: Path) -> None:
    """In a process of its own: writes the name of the test that catches the change, or an empty
    text.
    """
    tests = recorded.tests(mutant)
    if not tests:
        answer.write_text(json.dumps({"caught_by": "", "tests": 0}))
        return
    _enter(copy)
    plugin = Chosen(tests, recorded.seconds, answer)
    files = list(dict.fromkeys(test.partition("::")[0] for test in tests))
    _log_to(copy / "log")
    code = pytest.main(["-q", "-x", "-p", "no:cacheprovider", *FEW, *files], plugins=[plugin])
    plugin.caught_by = plugin.caught_by or ("" if code in (0, 5) else "collection of tests")
    plugin.write()


def _enter(copy: Path) -> None:
    os.chdir(copy)
    os.environ["PYTHONPATH"] = str(copy / "src")
    sys.path[:0] = [str(copy / "src")]
    sys.dont_write_bytecode = True
    os.environ["PYTHONDONTWRITEBYTECODE"] = "1"


def _log_to(path: Path) -> None:
    """Everything that this process prints goes to a file."""
    log = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
    os.dup2(log, 1)
    os.dup2(log, 2)


def _forked(work: Any, *arguments: Any) -> Any:
    process = multiprocessing.get_context("fork").Process(target=_alone, args=(work, *arguments))
    process.start()
    return process


def _alone(work: Any, *arguments: Any) -> None:
    # so that what a test starts can be ended with it
    os.setsid()
    # a shell that runs this in the background has it ignored
    signal.signal(signal.SIGINT, signal.default_int_handler)
    # processes that a test spawns shall not import this script
    del sys.modules["__main__"].__file__
    work(*arguments)


def copied(root: Path, suite: Path, folder: Path) -> Path:
    """A checkout with the sources of `root` and the tests of `suite`."""
    folder.mkdir(parents=True)
    if (ROOT.parent / "shared").is_dir():
        (folder.parent / "shared").symlink_to(ROOT.parent / "shared")
    for name in COPIED:
        of = root if name == "src" else suite
        if (of / name).is_dir():
            shutil.copytree(of / name, folder / name, ignore=shutil.ignore_patterns("__pycache__"))
        elif (of / name).exists():
            shutil.copy2(of / name, folder / name)
    return folder


def _limit(mutant: Mutant, recorded: Recorded) -> float:
    return GRACE + 4 * sum(recorded.seconds[test] for test in recorded.tests(mutant))


def run(
    mutants: Sequence[Mutant], recorded: Recorded, copies: Sequence[Path], progress: Any
) -> list[dict[str, Any]]:
    """Every change judged, as many at a time as there are copies."""
    waiting = list(mutants)
    results = []
    busy: dict[Path, tuple[Any, Mutant, float, bytes]] = {}
    while waiting or busy:
        for copy in copies:
            if copy in busy:
                process, mutant, until, before = busy[copy]
                if process.is_alive() and time.monotonic() < until:
                    continue
                late = process.is_alive()
                _end(process)
                (copy / mutant.file).write_bytes(before)
                answer = copy / "answer.json"
                found = (
                    json.loads(answer.read_text())
                    if answer.exists()
                    else {"caught_by": "time" if late else "a dead test process"}
                )
                answer.unlink(missing_ok=True)
                results.append({**asdict(mutant), **found})
                del busy[copy]
                progress(results[-1], len(results), len(mutants))
            if waiting:
                mutant = waiting.pop(0)
                before = (copy / mutant.file).read_bytes()
                (copy / mutant.file).write_bytes(mutant.apply(before))
                process = _forked(judge, copy, mutant, recorded, copy / "answer.json")
                busy[copy] = (process, mutant, time.monotonic() + _limit(mutant, recorded), before)
        time.sleep(0.05)
    return results


def _end(process: Any) -> None:
    with suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
    process.join()


def _preload() -> None:
    """Imports what most tests need, once, before processes are forked: never the package itself."""
    import beartype  # noqa: F401
    import flint  # noqa: F401
    import networkx  # noqa: F401
    import rich.console  # noqa: F401
    import torch
    import typer  # noqa: F401

    torch.set_num_threads(1)
    assert "separatrix" not in sys.modules


def main() -> None:
    parser = argparse.ArgumentParser(
        description="How much the tests catch: small changes of the sources, one at a time."
    )
    parser.add_argument(
        "--suite",
        type=Path,
        default=ROOT,
        help="the checkout whose tests are tried (default: this one)",
    )
    parser.add_argument(
        "--only", choices=list(SHARES), metavar="ROOM", help=f"one of {', '.join(SHARES)}"
    )
    parser.add_argument(
        "--count",
        "--per-room",
        type=int,
        help=f"how many changes of each room (default: {sum(SHARES.values())} in all)",
    )
    parser.add_argument(
        "--tests",
        nargs="+",
        default=FOLDERS,
        metavar="PATH",
        help=f"folders or files below tests that judge (default: {', '.join(FOLDERS)})",
    )
    parser.add_argument("--seed", type=int, default=0, help="another seed, other changes")
    parser.add_argument("--jobs", type=int, default=2, help="processes")
    parser.add_argument("--list", action="store_true", help="print the changes and stop")
    parser.add_argument(
        "--again",
        type=Path,
        help="results of an earlier run: only what was caught then, by the same test first;"
        " changes of functions that have changed since are passed over",
    )
    parser.add_argument(
        "--recording",
        type=Path,
        help="the run without a change: read from this file if it is there, else written to it",
    )
    parser.add_argument("--out", type=Path, help="results as JSON")
    parser.add_argument(
        "--report", type=Path, nargs="+", metavar="FILE", help="a table of results by room"
    )
    arguments = parser.parse_args()
    if arguments.report:
        print(report([_results(file) for file in arguments.report]))
        return
    shares = {
        room: arguments.count or share
        for room, share in SHARES.items()
        if arguments.only in (None, room)
    }
    if arguments.again:
        caught = {key for key, test in _hints(arguments.again).items() if test}
        found = [mutant for mutant in every_mutant(ROOT) if mutant.key in caught]
        mutants = [mutant for mutant in found if room_of(mutant.file) in shares]
        print(f"{len(caught) - len(found)} of {len(caught)} changes: gone", file=sys.stderr)
    else:
        mutants = chosen(every_mutant(ROOT), arguments.seed, shares)
    if arguments.list:
        print("\n".join(f"{mutant.kind:20} {mutant.title}" for mutant in mutants))
        return
    os.environ.setdefault("OMP_NUM_THREADS", "1")
    _preload()
    with tempfile.TemporaryDirectory() as scratch:
        copies = [
            copied(ROOT, arguments.suite.resolve(), Path(scratch) / str(number) / "checkout")
            for number in range(arguments.jobs)
        ]
        begun = time.monotonic()
        recorded = _recorded(
            arguments.recording,
            copies[0],
            arguments.jobs,
            _hints(arguments.again),
            arguments.tests,
        )
        print(
            f"{len(recorded.seconds)} tests recorded in {time.monotonic() - begun:.0f} s;"
            f" {len(mutants)} changes, {estimated(mutants, recorded, arguments.jobs)}",
            file=sys.stderr,
            flush=True,
        )
        results = run(mutants, recorded, copies, Said(time.monotonic()))
    print(report([results]))
    if arguments.out:
        arguments.out.write_text(
            json.dumps(sorted(results, key=lambda r: (r["file"], r["line"])), indent=1) + "\n"
        )


def _recorded(
    file: Path | None, copy: Path, jobs: int, hints: dict[str, str], tests: Sequence[str]
) -> Recorded:
    if file is not None and file.exists():
        found = json.loads(file.read_text())
        lines = {
            name: {int(line): tests for line, tests in mine.items()}
            for name, mine in found["lines"].items()
        }
        return Recorded(lines, found["seconds"], hints)
    recorded = record(copy, jobs, hints, tests)
    if file is not None:
        file.write_text(json.dumps({"lines": recorded.lines, "seconds": recorded.seconds}))
    return recorded


def _results(file: Path) -> list[dict[str, Any]]:
    results = json.loads(file.read_text())
    if any("body" not in result for result in results):
        raise SystemExit(
            f"error: {file} was written when changes were known by their files; run it anew"
        )
    return results


def _hints(file: Path | None) -> dict[str, str]:
    if file is None:
        return {}
    return {_mutant(result).key: result["caught_by"] for result in _results(file)}


def _mutant(result: dict[str, Any]) -> Mutant:
    return Mutant(**{field.name: result[field.name] for field in fields(Mutant)})


def estimated(mutants: Sequence[Mutant], recorded: Recorded, jobs: int) -> str:
    """How long it takes: if the first test catches each change, and if none does."""
    tests = [[recorded.seconds[test] for test in recorded.tests(mutant)] for mutant in mutants]
    least, most = (sum(START + sum(part[:few]) for part in tests) / jobs / 60 for few in (1, None))
    return f"{least:.0f} minutes if each is caught at once, {most:.0f} if none is"


class Said:
    """Tells each change that survives, and now and then how far the run is."""

    def __init__(self, begun: float) -> None:
        self.begun = begun

    def __call__(self, result: dict[str, Any], done: int, total: int) -> None:
        if not result["caught_by"]:
            title = _mutant(result).title
            print(f"{done}/{total} survived  {result['kind']:18} {title}", flush=True)
        elif done % 10 == 0:
            left = (time.monotonic() - self.begun) / done * (total - done) / 60
            print(f"{done}/{total}, about {left:.0f} minutes left", file=sys.stderr, flush=True)


def report(runs: Sequence[Sequence[dict[str, Any]]]) -> str:
    """A table of how many changes were caught in each room, a column for each run."""
    lines = ["| room |" + " caught |" * len(runs), "| --- |" + " --- |" * len(runs)]
    for room in (*SHARES, "together"):
        cells = []
        for results in runs:
            mine = [r for r in results if room in ("together", room_of(r["file"]))]
            caught = sum(bool(result["caught_by"]) for result in mine)
            cells.append(f" {caught} of {len(mine)} |" if mine else " |")
        if any(cell != " |" for cell in cells):
            lines.append(f"| {room} |{''.join(cells)}")
    return "\n".join(lines)


if __name__ == "__main__":
    main()
