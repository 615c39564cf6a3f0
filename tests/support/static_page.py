"""The explorer's page as `make site` has built it, and its theory in Node."""

from __future__ import annotations

import json
import shutil
import subprocess
from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from support.console import ROOT
from support.tools import loaded

BUILT = ROOT / "build" / "explore"
SPECS = (
    "full",
    "full*4 @ heads=4, head_dim=64, rope_base=10000",
    "(gdn*3 + full)*12 @ heads=16, head_dim=256",
    "(gdn*7 + full)*6",
    "mamba2*48",
    "window(size=4096)*32",
    "linear + full @ heads=1, head_dim=8",
    "gla*4 + sparse*2",
    "loglinear*6",
    "(kda*3 + full)*4",
    "deltaproduct*2 + full",
    "rwkv*4",
    "full*2 + window(size=512)*6 @ heads=8, rope_base=10000",
)
CONTEXTS = (4_096, 131_072)


@cache
def built() -> Path:
    """The folder. Skips where it has not been built, or not of these sources."""
    tool = loaded("explorer")
    if not (BUILT / "start.json").exists():
        pytest.skip("the explorer's page has not been built: make site")
    about = json.loads((BUILT / "start.json").read_text())
    if about["digest"] != tool.digest():
        pytest.skip("the explorer's page is of other sources: make site")
    if about["lacks"]:
        pytest.skip(f"the explorer's page was built without its engine: {about['lacks']}")
    return BUILT


def in_node(questions: Sequence[dict[str, Any]]) -> list[str]:
    """Each question's answer by the page's theory in Node, as JSON."""
    if shutil.which("node") is None:
        pytest.skip("there is no Node on this machine")
    asked = "".join(f"{json.dumps(question)}\n" for question in questions)
    done = subprocess.run(
        ["node", ROOT / "docs" / "site" / "explore" / "ask.mjs", built()],
        input=asked,
        capture_output=True,
        text=True,
        check=True,
    )
    return done.stdout.splitlines()
