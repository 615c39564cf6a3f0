"""Wall time of whole commands, interleaved with a bare interpreter in one run: median seconds and
ratio to the bare start.
"""

from __future__ import annotations

import statistics
import subprocess
import sys
import time
from pathlib import Path

ROUNDS = 15
COMMANDS = {
    "python -c pass": ["-c", "pass"],
    "separatrix --help": ["-m", "separatrix", "--help"],
    "separatrix analyze qwen3-next-80b": ["-m", "separatrix", "analyze", "qwen3-next-80b"],
    "separatrix analyze recurrentgemma-2b": ["-m", "separatrix", "analyze", "recurrentgemma-2b"],
    "separatrix analyze 'full + gdn*24'": ["-m", "separatrix", "analyze", "full + gdn*24"],
    "separatrix analyze 'full*2 + gdn*24'": ["-m", "separatrix", "analyze", "full*2 + gdn*24"],
}


def main() -> None:
    times: dict[str, list[float]] = {name: [] for name in COMMANDS}
    for _ in range(ROUNDS):
        for name, arguments in COMMANDS.items():
            start = time.perf_counter()
            subprocess.run(
                [sys.executable, *arguments], check=True, stdout=subprocess.DEVNULL, cwd=Path.home()
            )
            times[name].append(time.perf_counter() - start)
    bare = statistics.median(times["python -c pass"])
    for name, values in times.items():
        print(
            f"{name:42} {statistics.median(values):6.3f} s  "
            f" {statistics.median(values) / bare:5.1f} x bare start"
        )


if __name__ == "__main__":
    main()
