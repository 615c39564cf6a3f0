"""`design` at sizes of real models, one core: layouts, how many had to be judged, median seconds of
three runs.
"""

from __future__ import annotations

import statistics
import time

from separatrix.cards.design.search import design
from separatrix.cards.design.space import Choices, space_of, task_for_context
from separatrix.stacks.architecture.resolve import resolve

ROUNDS = 3
CASES = {
    "qwen3-next-80b varied": (
        "qwen3-next-80b",
        Choices(states=tuple(range(8, 264, 8))),
        ("seqcomp:L=3", "eva:V=50000", "twosum:M=50"),
    ),
    "recurrentgemma-2b varied": (
        "recurrentgemma-2b",
        Choices(windows=tuple(range(64, 4097, 64)), layers=(18, 26, 38)),
        ("eva:V=256000", "seqcomp:L=4"),
    ),
    "free choice of 24 to 48 layers": (
        None,
        Choices(
            layers=(24, 36, 48),
            reading=("full", "sparse"),
            states=(16, 32, 64, 128),
            windows=(128, 512, 2048, 8192),
        ),
        ("seqcomp:L=2,n_1=64", "eva:V=50000"),
    ),
    "excluded by Theorem III": (
        None,
        Choices(
            layers=(24, 48),
            reading=(
                "full(heads=1, head_dim=1, format=p8)",
                "full(heads=1, head_dim=2, format=p8)",
                "full(heads=2, head_dim=4, format=p8)",
            ),
            bounded=(
                "gdn(heads=1, format=p8, value_dim=2)",
                "window(heads=1, head_dim=1, format=p8)",
            ),
            states=tuple(range(1, 20)),
            windows=tuple(range(1, 20)),
        ),
        ("seqcomp:L=2,n_1=16",),
    ),
}
CONTEXT = 32_768
BUDGET = 8 << 31


def main() -> None:
    for name, (base, choices, tasks) in CASES.items():
        times, found = [], None
        for _ in range(ROUNDS):
            start = time.perf_counter()
            space = space_of(choices, None if base is None else resolve(base))
            found = design(
                [task_for_context(task, CONTEXT) for task in tasks],
                context=CONTEXT,
                cache_bits=BUDGET,
                space=space,
            )
            times.append(time.perf_counter() - start)
        assert found is not None
        front = f"{len(found.proved)} proved, {len(found.not_excluded)} not excluded"
        print(
            f"{name:32} {found.layouts:>9,} layouts  {found.judged:>9,} judged "
            f" {statistics.median(times):6.2f} s   {front}"
        )


if __name__ == "__main__":
    main()
