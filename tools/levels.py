"""Measures what every rule reaches on every task, size of its grid and shift, and writes it into
src/separatrix/tasks/levels.json: `make levels`, or of some tasks, or some rules,

    .venv/bin/python tools/levels.py equality dyck --rules products
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import Any

from separatrix.tasks import TASKS
from separatrix.tasks.audits import accuracies
from separatrix.tasks.measured import measured
from separatrix.tasks.text import TEXT_TASKS

FILE = Path(__file__).parents[1] / "src" / "separatrix" / "tasks" / "levels.json"
SEED = 0


def written(found: dict[str, Any]) -> str:
    """One line a size."""
    lines = [f"  {json.dumps(spec)}: {json.dumps(found[spec])}" for spec in found]
    return "\n".join([f'{{"seed": {SEED}, "sizes": {{', ",\n".join(lines), "}}", ""])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("tasks", nargs="*", help="names; all unless told")
    parser.add_argument("--rules", nargs="*", help="these alone; the others keep what they have")
    parser.add_argument("--missing", action="store_true", help="sizes alone that have none")
    asked = parser.parse_args()
    kept = json.loads(FILE.read_text("utf-8"))["sizes"]
    found: dict[str, Any] = {}
    for name in TASKS | TEXT_TASKS:
        for spec in measured(name):
            found[spec] = kept.get(spec, {"judged": 0, "rules": {}})
    for name in asked.tasks or TASKS | TEXT_TASKS:
        for spec in measured(name):
            if asked.missing and found[spec]["rules"]:
                continue
            judged, rules = accuracies(spec, seed=SEED, rules=asked.rules)
            if not rules:
                continue
            before = found[spec]["rules"] if asked.rules else {}
            rounded = {rule: round(share, 4) for rule, share in rules.items()}
            found[spec] = {"judged": judged, "rules": before | rounded}
            print(spec, rounded, flush=True)
            FILE.write_text(written(found), "utf-8")
    FILE.write_text(written(found), "utf-8")


if __name__ == "__main__":
    main()
