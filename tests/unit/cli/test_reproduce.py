"""What the main job tells of its progress: nothing where JSON is wanted."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from separatrix.cli.main import run
from separatrix.core.document import Document


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
