"""What the main job tells of its progress: time left, by hand, and nothing where JSON is wanted."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from support.each import each

from separatrix.cli.main import run
from separatrix.cli.reproduce import _eta
from separatrix.core.document import Document


@each(
    "done, spent, left",
    [
        (10, 5, "about 0:45 left"),  # half a second for each that was expected: 90 more
        (50, 200, "about 3:20 left"),
        (100, 90, "about 0:00 left"),
        (0, 0, "about 0:50 left"),  # two workers for 100 seconds of work
        (1, 20, "about 0:30 left"),  # too early for a pace of its own
        (1, 80, "about 0:00 left"),
    ],
)
def test_time_left(done: float, spent: float, left: str) -> None:
    assert _eta(done, 100, spent, 2) == left


@pytest.mark.parametrize("as_json", [True, False])
def test_json_is_printed_without_progress(
    as_json: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: dict[str, Any] = {}

    def table(settings: object, out: Path, **options: Any) -> dict[str, Any]:
        asked.update(options)
        return {"cells": []}

    monkeypatch.setattr("separatrix.cli.reproduce.reproduce_table", table)
    monkeypatch.setattr(
        "separatrix.cli.commands.reproduce.results_document", lambda *_, **__: Document()
    )
    assert run(["reproduce", "--out", str(tmp_path), *(["--json"] if as_json else [])]) == 0
    assert asked["show"] is not as_json
