"""The explorer's page for the site: what is fetched must be what was expected, or is missing."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from types import ModuleType

import pytest
from support.tools import loaded


@pytest.fixture
def tool(tmp_path: Path) -> ModuleType:
    found = loaded("explorer")
    vars(found)["DOWNLOADS"] = tmp_path / "downloads"
    return found


def test_a_download_is_compared_with_its_hash(tool: ModuleType) -> None:
    right = hashlib.sha256(b"right").hexdigest()
    write = ("sh", "-c", "printf right > file")
    path = tool.Download("file", right, write).path()
    assert path.read_bytes() == b"right"
    assert tool.Download("file", right, ("false",)).path() == path  # fetched once
    path.write_bytes(b"wrong")
    with pytest.raises(tool.Missing, match="hash"):
        tool.Download("file", right, ("true",)).path()


@pytest.mark.parametrize("command", [("false",), ("no-such-program-here",)])
def test_a_download_that_fails_is_missing(tool: ModuleType, command: tuple[str, ...]) -> None:
    with pytest.raises(tool.Missing, match="not be fetched"):
        tool.Download("file", "0" * 64, command).path()


def test_without_downloads_the_page_is_built_and_says_so(tool: ModuleType, tmp_path: Path) -> None:
    never = tool.Download("engine.tgz", "0" * 64, ("false",))
    vars(tool).update(PYODIDE=never, PRESETS=("recurrentgemma-2b",))
    lacks = tool.build(tmp_path / "out")
    assert "engine.tgz could not" in lacks
    about = json.loads((tmp_path / "out" / "start.json").read_text())
    assert about["lacks"] == lacks
    assert not (tmp_path / "out" / "pyodide").exists()
    assert (tmp_path / "out" / "cards.bin").stat().st_size > 1_000


def test_the_page_is_the_served_one_with_links_to_the_site(tool: ModuleType) -> None:
    served = (tool.PAGE / "page.html").read_text()
    page = tool.page()
    assert '<a href="../lesson.html">' in page
    assert all(line in page for line in served.splitlines() if "id=" in line)
