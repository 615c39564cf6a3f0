"""Every script that is run by hand still begins: what it imports is there."""

from __future__ import annotations

import runpy
import sys

import pytest
from support.console import ROOT

SCRIPTS = sorted(
    path.relative_to(ROOT).as_posix()
    for folder in ("benchmarks", "tools", "research")
    for path in (ROOT / folder).rglob("*.py")
    if "__main__" in path.read_text("utf-8")
)


@pytest.mark.slow
@pytest.mark.parametrize("script", SCRIPTS)
def test_it_begins(script: str, monkeypatch: pytest.MonkeyPatch) -> None:
    for folder in ((ROOT / script).parent, ROOT / "benchmarks"):
        monkeypatch.syspath_prepend(folder)
    monkeypatch.setattr(sys, "argv", [script])
    assert "__doc__" in runpy.run_path(str(ROOT / script), run_name="read")
