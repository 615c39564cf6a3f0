"""A prompt follows from task and seed: whatever instructions the processor has, it is the same."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from hashlib import sha256
from pathlib import Path

import numpy as np

import separatrix
from separatrix.tasks import TASKS, parse_task
from separatrix.tasks.text import TEXT_TASKS, parse_text_task

ROOT = Path(next(iter(separatrix.__path__))).parent
ROWS = 64


def digests() -> dict[str, str]:
    """Of samples of every task at its smaller sizes and under its shifts."""
    drawn = {text: parse_task(text).sample(ROWS, np.random.default_rng(0)) for text in texts()}
    found = {
        text: sha256(batch.tokens.tobytes() + batch.targets.tobytes()).hexdigest()
        for text, batch in drawn.items()
    }
    for name, kind in TEXT_TASKS.items():
        items = parse_text_task(f"{name}:{kind.grid[0]}").sample(ROWS, np.random.default_rng(0))
        found[name] = sha256(repr(items).encode()).hexdigest()
    return found


def texts() -> Iterator[str]:
    for name, kind in TASKS.items():
        yield from (f"{name}:{sizes}" for sizes in kind.grid[:5])
        for shift in kind.shifts:
            # the first size that has this shift: some are of one form only
            sizes = next(each for each in kind.grid if _has(f"{name}:{each},shift={shift}"))
            yield f"{name}:{sizes},shift={shift}"


def _has(text: str) -> bool:
    try:
        parse_task(text).sample(1, np.random.default_rng(0))
    except separatrix.SeparatrixError:
        return False
    return True


def test_samples_without_the_newer_instructions_of_the_processor() -> None:
    extensions = np.show_config(mode="dicts")["SIMD Extensions"]
    environment = {
        **os.environ,
        "PYTHONPATH": os.pathsep.join([str(ROOT), os.environ.get("PYTHONPATH", "")]),
        "NPY_DISABLE_CPU_FEATURES": " ".join(extensions.get("found", [])),
        "OPENBLAS_CORETYPE": "Prescott",
    }
    command = [sys.executable, "-W", "ignore", __file__]
    ran = subprocess.run(command, env=environment, timeout=600, check=True, capture_output=True)
    assert json.loads(ran.stdout) == digests()


if __name__ == "__main__":
    print(json.dumps(digests()))
