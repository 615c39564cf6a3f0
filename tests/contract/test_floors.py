"""Imports point down only, and what `analyze` needs never imports torch (design.md, floors)."""

from __future__ import annotations

import ast
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

import separatrix

ROOT = Path(next(iter(separatrix.__path__)))
FLOORS = {
    "ground": {"errors", "progress", "numbers"},
    "records": {"evidence", "proofs"},
    "declarations": {"mechanisms", "tasks"},
    "stacks": {"architecture", "practice"},
    "theory, layers": {"theory", "mixers"},
    "cards, models": {"cards", "design", "laws", "model", "table"},
    "extensions": {"caches", "derivations", "hf", "plugins", "stock", "stored"},
    "makers": {
        "audits",
        "checks",
        "constructions",
        "exports",
        "protocols",
        "searches",
        "training",
    },
    "faces": {"experiments", "precision", "report", "sweeps"},
    "doors": {"reproduce", "cli", "separatrix", "__main__"},
}
"""Rooms by floor, the lowest first. tools/floors.py draws them; docs/architecture.md explains."""
FLOOR = {room: floor for floor, rooms in enumerate(FLOORS.values()) for room in rooms}
DECIDERS = {"theory", "cards", "design", "table"}
MACHINERY = {
    "mixers",
    "laws",
    "model",
    "caches",
    "derivations",
    "hf",
    "plugins",
    "stock",
    "stored",
}
"""Neither of these two groups imports the other."""
MAKERS = FLOOR["constructions"]
"""The floor on which no room imports another."""
TORCH_FREE = {
    "errors",
    "progress",
    "numbers",
    "evidence",
    "proofs",
    "mechanisms",
    "tasks",
    "architecture",
    "practice",
    "exports",
}
"""Rooms that never import torch, beside the deciders."""
NO_TORCH = TORCH_FREE | DECIDERS


def imported(source: str) -> Iterator[str]:
    """Dotted names a source imports anywhere in it, 'torch' and 'separatrix.x' alike."""
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, "relative imports hide their floor"
            module = node.module or ""
            yield from (
                (f"separatrix.{alias.name}" for alias in node.names)
                if module == "separatrix"
                else (module,)
            )


def violations(part: str, source: str) -> list[str]:
    """Imports of a part of the package that do not point down."""
    found = []
    for name in imported(source):
        top, _, rest = name.partition(".")
        if top == "torch" and part in NO_TORCH:
            found.append(f"{part} imports torch")
        if top != "separatrix" or (target := rest.split(".")[0]) == part:
            continue
        # what is no room is a name that the package root loads lazily
        target = target if target in FLOOR else "separatrix"
        up = FLOOR[target] > FLOOR[part]
        across = FLOOR[target] == FLOOR[part] == MAKERS
        apart = (part in MACHINERY and target in DECIDERS) or (
            part in DECIDERS and target in MACHINERY
        )
        if up or across or apart:
            found.append(f"{part} imports {target}")
    return found


def _sources() -> dict[str, str]:
    return {str(path.relative_to(ROOT)): path.read_text() for path in sorted(ROOT.rglob("*.py"))}


def _part(path: str) -> str:
    top = Path(path).parts[0].removesuffix(".py")
    return "separatrix" if top == "__init__" else top


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


def test_imports_point_down() -> None:
    assert [
        f"{path}: {bad}"
        for path, source in _sources().items()
        for bad in violations(_part(path), source)
    ] == []


@pytest.mark.parametrize(
    ("part", "source", "expected"),
    [
        ("evidence", "from separatrix.numbers.wilson import wilson", []),
        ("evidence", "from separatrix.tasks import parse_task", ["evidence imports tasks"]),
        ("tasks", "def f():\n    import torch.nn", ["tasks imports torch"]),
        ("theory", "from separatrix.mixers.full import FullMixer", ["theory imports mixers"]),
        ("mixers", "from separatrix import theory", ["mixers imports theory"]),
        ("model", "import separatrix.mixers", []),
        (
            "checks",
            "def f():\n    from separatrix.searches import refute",
            ["checks imports searches"],
        ),
        ("checks", "from separatrix.model import Model", []),
        ("model", "import separatrix", ["model imports separatrix"]),
        ("training", "from separatrix import construct", ["training imports separatrix"]),
        ("cli", "from separatrix import construct", []),
    ],
)
def test_the_checker_catches_violations(part: str, source: str, expected: list[str]) -> None:
    assert violations(part, source) == expected


def test_floors_below_the_machinery_never_load_torch() -> None:
    modules = [
        "separatrix",
        *(
            f"separatrix.{part}"
            for part in sorted(NO_TORCH)
            if any(_part(path) == part for path in _sources())
        ),
    ]
    code = f"import sys, {', '.join(modules)}; sys.exit('torch' in sys.modules)"
    environment = {
        **os.environ,
        "PYTHONPATH": os.pathsep.join([str(ROOT.parent), os.environ.get("PYTHONPATH", "")]),
    }
    assert subprocess.run([sys.executable, "-c", code], env=environment, timeout=60).returncode == 0
