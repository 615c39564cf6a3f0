"""Imports point down only, and what `analyze` needs never imports torch (design.md, floors)."""

from __future__ import annotations

import ast
import json
import os
import subprocess
import sys
from collections.abc import Container, Iterator
from functools import cache
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

import pytest
from support.each import each
from support.tools import loaded

import separatrix

ROOT = Path(next(iter(separatrix.__path__)))
FLOORS = {
    "ground": {"core"},
    "declarations": {"stacks", "tasks"},
    "theory, layers": {"theory", "mixers"},
    "cards, models": {"cards", "models", "protocols"},
    "proofs": {"proofs"},
    "makers": {"checks", "constructions", "training"},
    "findings": {"findings"},
    "doors": {"cli", "separatrix", "__main__"},
}
"""Rooms by floor, the lowest first. tools/floors.py draws them; docs/architecture.md explains."""
FLOOR = {room: floor for floor, rooms in enumerate(FLOORS.values()) for room in rooms}
DECIDERS = {"theory", "cards"}
MACHINERY = {"mixers", "models", "proofs"}
"""Neither of these two groups imports the other."""
MAKERS = FLOOR["constructions"]
"""The floor on which no room imports another."""
TORCH_FREE = {"core", "stacks", "tasks"}
"""Rooms that never load torch, beside the deciders."""
NO_TORCH = TORCH_FREE | DECIDERS
TORCH_LATE = {"tasks/audits"}
"""Folders of theirs that compute with it; the rooms themselves do not load them."""
NUMPY_LATE = {"core/numbers"}
"""The folder of these rooms that may import it: `lazy`, which loads it when something is drawn."""
SEALED = {"checks/verify": "checks/refute", "checks/refute": "checks/verify"}
"""What checks a certificate shares no code with what found it: folders of one room."""


@cache
def parsed(source: str) -> list[ast.Import | ast.ImportFrom]:
    """What a source imports, anywhere in it."""
    nodes = ast.walk(ast.parse(source))
    return [node for node in nodes if isinstance(node, (ast.Import, ast.ImportFrom))]


def imported(source: str) -> Iterator[str]:
    """Dotted names a source imports anywhere in it, 'torch' and 'separatrix.x' alike."""
    for node in parsed(source):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        else:
            assert node.level == 0, "relative imports hide their floor"
            yield from (f"{node.module}.{alias.name}" for alias in node.names)


def violations(path: str, source: str) -> list[str]:
    """Imports of a file of the package that do not point down."""
    part, folder = _part(path), _folder(path)
    found = []
    for name in imported(source):
        top, _, rest = name.partition(".")
        if top == "torch" and part in NO_TORCH and folder not in TORCH_LATE:
            found.append(f"{part} imports torch")
        if top == "numpy" and part in NO_TORCH and folder not in NUMPY_LATE:
            found.append(f"{part} imports numpy")
        if top != "separatrix":
            continue
        target, *inside = rest.split(".")
        if inside and f"{target}/{inside[0]}" == SEALED.get(folder):
            found.append(f"{folder} imports {SEALED[folder]}")
        # what is no room is a name that the package root loads lazily
        target = target if target in FLOOR else "separatrix"
        up = FLOOR[target] > FLOOR[part]
        across = FLOOR[target] == FLOOR[part] == MAKERS and target != part
        apart = (part in MACHINERY and target in DECIDERS) or (
            part in DECIDERS and target in MACHINERY
        )
        if up or across or apart:
            found.append(f"{part} imports {target}")
    return found


@cache
def _sources() -> dict[str, str]:
    return {str(path.relative_to(ROOT)): path.read_text() for path in sorted(ROOT.rglob("*.py"))}


def _part(path: str) -> str:
    """The room of a file, named from the package's folder."""
    top = Path(path).parts[0].removesuffix(".py")
    return "separatrix" if top == "__init__" else top


def _module(path: str) -> str:
    """How it is imported."""
    return ".".join(("separatrix", *Path(path).with_suffix("").parts)).removesuffix(".__init__")


def _folder(path: str) -> str:
    """Its room and the folder in it: "checks/verify"."""
    return "/".join(Path(path).parts[:-1][:2])


def test_every_part_has_a_floor() -> None:
    assert {_part(path) for path in _sources()} <= set(FLOOR)


def test_unit_tests_mirror_the_sources() -> None:
    tests = Path(__file__).parents[1] / "unit"
    folders = {path.parent.relative_to(tests) for path in tests.rglob("test_*.py")}
    assert [
        str(folder)
        for folder in sorted(folders)
        if not (ROOT / folder).is_dir() and str(folder) != "tools"
    ] == []


def _files_imported(source: str, files: Container[str]) -> set[str]:
    """Modules of the package that a source imports, at its start, later, or for types alone."""
    found: set[str] = set()
    for node in parsed(source):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        else:
            names = [f"{node.module}.{alias.name}" for alias in node.names]
            found |= {full if full in files else node.module or "" for full in names}
    return {name for name in found if name in files}


def test_no_files_import_one_another_in_a_circle() -> None:
    """The package's own file, which loads names on first use, is left out."""
    files = {_module(path): text for path, text in _sources().items() if path != "__init__.py"}
    graph = {name: _files_imported(text, files) - {name} for name, text in files.items()}
    TopologicalSorter(graph).prepare()  # raises CycleError, which names them
    with pytest.raises(CycleError, match=r"separatrix\.core\.errors"):
        TopologicalSorter(graph | {"separatrix.core.errors": {"separatrix.models.model"}}).prepare()


def test_imports_point_down() -> None:
    assert [
        f"{path}: {bad}" for path, source in _sources().items() for bad in violations(path, source)
    ] == []


@each(
    "path, source, expected",
    [
        ("core/evidence/a.py", "from separatrix.core.numbers.wilson import wilson", []),
        ("core/a.py", "from separatrix.tasks import parse_task", ["core imports tasks"]),
        ("tasks/a.py", "def f():\n    import torch.nn", ["tasks imports torch"]),
        ("tasks/audits/a.py", "def f():\n    import torch.nn", []),
        ("theory/a.py", "import numpy as np", ["theory imports numpy"]),
        ("tasks/audits/a.py", "from numpy.typing import NDArray", ["tasks imports numpy"]),
        ("theory/a.py", "from separatrix.mixers.full import F", ["theory imports mixers"]),
        ("mixers/a.py", "from separatrix import theory", ["mixers imports theory"]),
        ("models/a.py", "import separatrix.mixers", []),
        (
            "checks/verify/a.py",
            "def f():\n    from separatrix.checks.refute import refute",
            ["checks/verify imports checks/refute"],
        ),
        (
            "checks/verify/a.py",
            "from separatrix.checks import refute",
            ["checks/verify imports checks/refute"],
        ),
        (
            "checks/refute/a.py",
            "from separatrix.checks.verify.measurement import a",
            ["checks/refute imports checks/verify"],
        ),
        ("checks/a.py", "from separatrix.constructions import c", ["checks imports constructions"]),
        ("checks/a.py", "from separatrix.checks.verify import verify", []),
        ("checks/verify/a.py", "from separatrix.models.model import Model", []),
        ("models/a.py", "import separatrix", ["models imports separatrix"]),
        ("training/a.py", "from separatrix import construct", ["training imports separatrix"]),
        ("cli/a.py", "from separatrix import construct", []),
    ],
)
def test_the_checker_catches_violations(path: str, source: str, expected: list[str]) -> None:
    assert violations(path, source) == expected


def test_no_file_below_the_machinery_loads_torch_or_numpy() -> None:
    names = {_module(path) for path in _sources() if _part(path) in NO_TORCH}
    assert {f"separatrix.{late}" for late in ("tasks.audits.run", "tasks.exports.job")} <= names
    imports = f"import {', '.join(sorted(names))}"
    assert not loads("torch", imports)
    assert not loads("numpy", imports)


def test_what_a_task_says_of_itself_never_loads_numpy() -> None:
    code = """
import separatrix.tasks
from separatrix.tasks.text import TEXT_TASKS, parse_text_task

for name, kind in separatrix.tasks.TASKS.items():
    for sizes in kind.grid:
        task = separatrix.tasks.parse_task(f"{name}:{sizes}")
        task.prefix_classes(), task.facts(), task.prompts(), task.first_part(), task.two_runs()
        task.chance, task.family(), task.told_apart, task.token_ids, task.answer_ids, task.reply
        [task.level(probe) for probe in (*separatrix.tasks.PROBES, *task.shortcuts)]
for name, kind in TEXT_TASKS.items():
    for sizes in kind.grid:
        parse_text_task(f"{name}:{sizes}").chance
"""
    assert not loads("numpy", code)
    assert loads("numpy", code + "import numpy")


def test_the_theory_in_the_browser_loads_only_what_the_page_brings() -> None:
    code = """
from separatrix.cli.explore.answers import Question, answers, start

start()
list(answers(Question(("qwen3-next-80b", "(gdn*3 + full)*2"), "65536", ())))
"""
    found = modules(code)
    foreign = {name.partition(".")[0] for name in found} - set(sys.stdlib_module_names)
    assert "flint" in foreign
    assert not foreign & {"click", "rich", "torch", "typer"}  # numpy is faster and not needed
    brought = {str(path) for path in loaded("explorer").sources()}
    files = {path for name, path in found.items() if name.startswith("separatrix.")}
    assert len(files) > 100
    assert files <= brought


def loads(package: str, code: str) -> bool:
    """Whether code, in a process of its own, loads a package."""
    return package in modules(code)


def modules(code: str) -> dict[str, str]:
    """The modules that code, in a process of its own, loads, and the file of each."""
    environment = {
        **os.environ,
        "PYTHONPATH": os.pathsep.join([str(ROOT.parent), os.environ.get("PYTHONPATH", "")]),
    }
    told = f"""{code}
import json, sys
print(json.dumps({{k: getattr(v, "__file__", None) or "" for k, v in sys.modules.items()}}))"""
    ran = subprocess.run(
        [sys.executable, "-c", told], env=environment, timeout=600, check=True, capture_output=True
    )
    return json.loads(ran.stdout.splitlines()[-1])
