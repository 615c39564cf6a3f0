"""Prints the audit of every task, tasks x probes, after a run that made it."""

from __future__ import annotations

import json
from typing import Any


def pytest_terminal_summary(terminalreporter: Any) -> None:
    audits = [
        json.loads(value)
        for outcome in ("passed", "failed")
        for report in terminalreporter.stats.get(outcome, [])
        for name, value in getattr(report, "user_properties", ())
        if name == "audit"
    ]
    if not audits:
        return
    widest = max(len(audit["task"]) for audit in audits)
    terminalreporter.section(
        "tasks and the shortcuts tried on them: standard errors above the level (! a leak)"
    )
    names = list(dict.fromkeys(name for audit in audits for name, _, _ in audit["rows"]))
    terminalreporter.write_line(" " * widest + "".join(f"  {name:>12}" for name in names))
    for audit in sorted(audits, key=lambda audit: audit["task"]):
        cells = {
            name: f"{z:+.1f}{'!' if verdict == 'leak' else ''}"
            for name, z, verdict in audit["rows"]
        }
        terminalreporter.write_line(
            f"{audit['task']:{widest}}" + "".join(f"  {cells.get(name, ''):>12}" for name in names)
        )
