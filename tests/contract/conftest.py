"""Prints the contract table, mechanisms x laws, after a run that tested it."""

from __future__ import annotations

import re
from typing import Any

_NODE = re.compile(
    r"test_mixers\.py::test_law(?:_at_its_own_sizes)?\[(?P<case>.+)-(?P<law>[^-\]]+)\]$"
)
_MARKS = {"passed": "ok", "failed": "FAIL", "error": "FAIL"}


def pytest_terminal_summary(terminalreporter: Any) -> None:
    cells: dict[str, dict[str, str]] = {}
    for outcome, mark in _MARKS.items():
        for report in terminalreporter.stats.get(outcome, []):
            match = _NODE.search(report.nodeid)
            if match is not None:
                cells.setdefault(match["case"], {})[match["law"]] = mark
    if not cells:
        return
    from separatrix.mixers.laws import LAWS

    widest = max(map(len, cells))
    terminalreporter.section("mixers and their laws")
    terminalreporter.write_line(" " * widest + "".join(f"  {law:>12}" for law in LAWS))
    for case in sorted(cells):
        terminalreporter.write_line(
            f"{case:{widest}}" + "".join(f"  {cells[case].get(law, '-'):>12}" for law in LAWS)
        )
