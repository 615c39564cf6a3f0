"""The page of a bundle is the same to the byte, whoever renders it."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from support.report_bundle import fake_bundle

from separatrix.cli.report.html import render_html
from separatrix.core.evidence.canonical import canonical

RENDER = """
import hashlib, json, pathlib, sys
from separatrix.cli.report.html import render_html
body = json.loads(pathlib.Path(sys.argv[1]).read_text())
print(hashlib.sha256(render_html(body).encode()).hexdigest())
"""


def rendered(file: Path, seed: str) -> str:
    """The hash of the page, rendered by a process of its own."""
    done = subprocess.run(
        [sys.executable, "-c", RENDER, str(file)],
        env=os.environ | {"PYTHONHASHSEED": seed},
        capture_output=True,
        text=True,
        check=True,
    )
    return done.stdout


def _one_cell() -> dict[str, object]:
    body = fake_bundle()
    body["rows"] = body["rows"][1:2]
    body["columns"] = body["columns"][:1]
    body["cells"] = [c for c in body["cells"] if (c["row"], c["column"]) == ("linear", "eva")]
    return body


def test_a_body_read_from_a_file_gives_the_page_of_the_body_in_memory() -> None:
    """Records keep the order of their fields in memory and lose it in a file."""
    body = _one_cell()
    assert render_html(json.loads(canonical(body))) == render_html(body)


@pytest.mark.slow  # three processes
def test_processes_agree(tmp_path: Path) -> None:
    file = tmp_path / "body.json"
    file.write_text(canonical(_one_cell()))
    other = tmp_path / "elsewhere" / "body.json"
    other.parent.mkdir()
    other.write_text(json.dumps(_one_cell(), indent=2))
    assert len({rendered(file, "1"), rendered(file, "2"), rendered(other, "3")}) == 1
