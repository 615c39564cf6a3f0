"""Measures what rules that do not solve a task reach, at every size of its grid and every shift:
src/separatrix/tasks/levels.json. Names those that are beyond the level that their task says.

.venv/bin/python tools/levels.py FILE [TASK...] [--seed N]

FILE keeps what is measured, and the same command goes on from it.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from separatrix.core.errors import EvidenceError, SeparatrixError
from separatrix.core.evidence.folder import write_atomic
from separatrix.core.progress import Advance, bar
from separatrix.tasks import PLAIN, TASKS, parse_any_task
from separatrix.tasks.audits import BOUND, accuracies
from separatrix.tasks.audits.run import standard_error
from separatrix.tasks.measured import measured, stated
from separatrix.tasks.text import TEXT_TASKS

_BEYOND = 0.03
"""What a rule may be above its level where that is printed as one."""
Measured = dict[str, Any]
"""On how many instances a size was judged, and how often each rule was right."""


def measure(texts: Sequence[str], out: Path, seed: int, advance: Advance) -> dict[str, Measured]:
    """What `accuracies` finds, as levels.json, kept in `out`. Raises EvidenceError for a file of
    another kind or seed.
    """
    found = _measured_before(out, seed) if out.exists() else {}
    for done, text in enumerate(texts):
        advance(done, len(texts))
        if text in found:
            continue
        judged, rules = accuracies(text, seed=seed)
        rounded = {rule: round(share, 4) for rule, share in rules.items()}
        found[text] = {"judged": judged, "rules": rounded}
        lines = (f"  {json.dumps(spec)}: {json.dumps(one)}" for spec, one in found.items())
        write_atomic(out, f'{{"seed": {seed}, "sizes": {{\n' + ",\n".join(lines) + "\n}}\n")
    return {text: found[text] for text in texts}


def beyond(text: str, found: Measured) -> tuple[str, ...]:
    """Rules more than three points and standard errors above their level; none under a shift."""
    task = parse_any_task(text)
    if getattr(task, "shift", PLAIN) != PLAIN:
        return ()
    levels = {rule: stated(task, rule) for rule in found["rules"]}
    return tuple(
        rule
        for rule, share in found["rules"].items()
        if (may := levels[rule]) is not None
        and share > may + max(_BEYOND, BOUND * standard_error(may, found["judged"]))
    )


def _measured_before(file: Path, seed: int) -> dict[str, Measured]:
    try:
        held = json.loads(file.read_text("utf-8"))
        sizes = {
            text: {"judged": one["judged"], "rules": {**one["rules"]}}
            for text, one in held["sizes"].items()
        }
        same = held["seed"] == seed
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        same, sizes = False, {}
    if not same:
        raise EvidenceError(f"{file}: holds no levels that were measured with seed {seed}")
    return sizes


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n\n")[0])
    parser.add_argument("file", type=Path)
    parser.add_argument("tasks", nargs="*", default=[*TASKS, *TEXT_TASKS])
    parser.add_argument("--seed", type=int, default=0)
    asked = parser.parse_args(arguments)
    try:
        texts = [text for name in asked.tasks for text in measured(name)]
        with bar("measuring", unit=" sizes") as advance:
            found = measure(texts, asked.file, asked.seed, advance)
    except SeparatrixError as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    above = {text: rules for text, one in found.items() if (rules := beyond(text, one))}
    for text, rules in above.items():
        print(f"{text}: {', '.join(rules)}")
    return int(bool(above))


if __name__ == "__main__":
    sys.exit(main())
