"""What CONTRIBUTING.md names is there: files, tables and tests; so are the files that docs/ and
tests/README.md name. The hooks run tools that exist.
"""

from __future__ import annotations

import ast
import re
import shlex
from pathlib import Path

import pytest
import yaml
from support.console import ROOT
from support.each import each
from support.named import spans

TEXT = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
HOOKS = ROOT / ".pre-commit-config.yaml"
PAGES = (ROOT / "tests" / "README.md", *sorted((ROOT / "docs").glob("*.md")))
PLACES = (ROOT, ROOT / "src" / "separatrix", ROOT / "tests")
"""Where the paths of documents begin."""
TABLE = re.compile(r"`(?P<table>[A-Z]+)`\s+of\s+`(?P<path>src/[^`]+)`")
KINDS = (
    "A mechanism",
    "A mixer",
    "A task",
    "A theorem",
    "A construction",
    "A family of released models",
    "An experiment",
    "A command",
)


def missing(code: str) -> str | None:
    """What a span of code names that is not there; NAME stands for the name of any file."""
    name, _, test = code.partition("::")
    if " " in name or "/" not in name or name.startswith((".venv", "http")):
        return None
    found = [path for place in PLACES for path in place.glob(name.replace("NAME", "*"))]
    if not found:
        return f"there is no {name}"
    if test and test not in functions(found[0]):
        return f"{name} has no {test}"
    return None


def is_path(code: str) -> bool:
    """Whether a span is surely meant as a file of the repository, and not as a model's name, an
    address or a folder of the reader's own.
    """
    head = code.partition("/")[0]
    return code.endswith(".py") or any((place / head).is_dir() for place in PLACES)


def functions(path: Path) -> set[str]:
    tree = ast.parse(path.read_text(encoding="utf-8"))
    return {node.name for node in ast.walk(tree) if isinstance(node, ast.FunctionDef)}


def tables(path: Path) -> set[str]:
    """The names that a file gives values."""
    targets = [
        target
        for node in ast.parse(path.read_text(encoding="utf-8")).body
        if isinstance(node, ast.Assign | ast.AnnAssign)
        for target in (node.targets if isinstance(node, ast.Assign) else [node.target])
    ]
    return {target.id for target in targets if isinstance(target, ast.Name)}


def test_every_file_and_test_that_is_named_is_there() -> None:
    assert [f"line {line}: {fault}" for line, code in spans(TEXT) if (fault := missing(code))] == []


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_every_file_that_a_page_names_is_there(page: Path) -> None:
    named = [(line, code) for line, code in spans(page.read_text("utf-8")) if is_path(code)]
    assert [f"line {line}: {fault}" for line, code in named if (fault := missing(code))] == []


def test_names_that_are_no_paths_are_left_alone() -> None:
    assert not any(map(is_path, ("Qwen/Qwen3-Next-80B-A3B-Instruct", "ray://", "model/")))
    assert all(map(is_path, ("docs/theory.md", "unit/numbers/test_wilson.py", "cards/table/")))


def test_every_table_that_is_named_is_there() -> None:
    named = [(found["table"], ROOT / found["path"]) for found in TABLE.finditer(TEXT)]
    assert len(named) >= 4
    assert [table for table, path in named if table not in tables(path)] == []


def test_every_kind_has_its_steps() -> None:
    parts = dict(re.findall(r"^### (.+)\n((?:(?!^#).*\n)+)", TEXT, re.MULTILINE))
    assert tuple(parts) == KINDS
    for kind, part in parts.items():
        assert len(re.findall(r"^\d\. ", part, re.MULTILINE)) >= 2, kind
        assert "`tests/" in part, kind


@each(
    "code, fault",
    [
        ("src/separatrix/tasks/NAME.py", None),
        ("tests/contract/test_contributing.py::functions", None),
        ("make test", None),
        ("src/separatrix/tusks/NAME.py", "there is no src/separatrix/tusks/NAME.py"),
        ("tests/contract/test_floors.py::test_no", "tests/contract/test_floors.py has no test_no"),
    ],
)
def test_what_is_not_there_is_found(code: str, fault: str | None) -> None:
    assert missing(code) == fault


def test_hooks_run_the_tools_of_the_environment() -> None:
    """As `make lint` does, and without fetching anything."""
    (repository,) = yaml.safe_load(HOOKS.read_text(encoding="utf-8"))["repos"]
    assert repository["repo"] == "local"
    hooks = {hook["id"]: hook for hook in repository["hooks"]}
    assert list(hooks) == ["ruff-check", "ruff-format", "pyright", "map"]
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    for name, hook in hooks.items():
        assert hook["language"] == "system"
        python, *words = shlex.split(hook["entry"])
        assert python == ".venv/bin/python"
        if name == "map":
            assert (ROOT / words[0]).exists()
            assert re.match(hook["files"], "src/separatrix/models/model.py")
        else:
            tool = " ".join(word for word in words if not word.startswith("--"))
            assert f"$(BIN)/python {tool}" in makefile
