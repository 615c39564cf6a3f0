"""What a summary of very many runs takes, of processor time: nothing is trained.

    python benchmarks/summary.py [--cells 25] [--rates 20] [--seeds 2000]

A store of so many runs that are done is written row by row, each with its hash and seal as
`Store.tell` makes them; then `runs summary` is computed and laid out as tables.
"""

from __future__ import annotations

import argparse
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from separatrix.cli.report import sweeps as tables
from separatrix.core.evidence.canonical import canonical, sha256
from separatrix.core.evidence.outcome import Outcome
from separatrix.models.stored.run import Run
from separatrix.training.sweeps.schema import ADD_CELL, FIND_CELL, STATUSES, digest, seals
from separatrix.training.sweeps.statistics import summary
from separatrix.training.sweeps.store import Store

COLUMNS = "key, specification, cell, sweep, status, outcome, step, seconds, version, host, created"
STEPS, TESTED = 1000, 2048


def rows(cell: int, place: int, rate: float, seeds: int) -> Iterator[tuple[Any, ...]]:
    """Of one cell and rate, with right answers drawn at random."""
    right = np.random.default_rng([place, int(rate * 1e6)]).integers(1500, TESTED, seeds)
    same = [np.full(seeds, number) for number in (STEPS, TESTED, STATUSES.index("done"), cell)]
    steps, tested, status, cells = same
    rates = np.full(seeds, rate).view(np.int64)
    sealed = seals([cells, rates, np.arange(seeds), status, steps, right, tested, right, tested])
    run = Run(
        architecture="full", task="eva:n=16,V=16", seed=0, width=8 + place, learning_rate=rate
    )
    specification = run.canonical().to_json()
    outcome = Outcome(
        seed=0, correct=0, due=TESTED, steps_done=STEPS, parameters=25_000 + place
    ).to_json()
    for seed, reached in enumerate(right.tolist()):
        own = {"seed": seed, "correct": reached, "right": reached}
        text, ended = canonical(specification | {"seed": seed}), canonical(outcome | own)
        key = sha256(text)
        hashed = digest(key, text, "done", "1", ended)
        kept = (key, text, cell, "s", "done", ended, STEPS, 1.0, "1", "here", 0.0)
        yield (*kept, hashed, int(sealed[seed]))


def fill(path: Path, cells: int, rates: int, seeds: int) -> None:
    with Store.create(path) as store, store._database.transaction() as connection:
        for place in range(cells):
            run = Run(architecture="full", task="eva:n=16,V=16", seed=0, width=8 + place)
            text = canonical(run.canonical().to_json())
            connection.execute(ADD_CELL, ("", text))
            (cell,) = connection.execute(f"SELECT {FIND_CELL}", ("", text)).fetchone()
            for rate in range(1, rates + 1):
                connection.executemany(
                    f"INSERT INTO runs ({COLUMNS}, digest, seal) VALUES ({', '.join('?' * 13)})",
                    rows(cell, place, rate * 1e-3, seeds),
                )
        connection.execute("INSERT INTO members SELECT 's', id, id FROM runs")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    for name, number in (("cells", 25), ("rates", 20), ("seeds", 2000)):
        parser.add_argument(f"--{name}", type=int, default=number)
    chosen = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "runs.sqlite")
        fill(path, chosen.cells, chosen.rates, chosen.seeds)
        start = time.process_time()
        found = summary("s", path)
        summed = time.process_time()
        best = tables.best_rows(found)
        tables.notes(found)
        laid = time.process_time()
    print(f"{found.count('done'):,} runs in {len(best)} cells, seconds of processor:")
    print(f"read and summed {summed - start:.2f}, laid out {laid - summed:.2f}")


if __name__ == "__main__":
    main()
