"""Statistics of sweeps: numbers by hand, and what choosing a learning rate does to them, by all
cases.
"""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import pytest
from support.outcomes import singly

from separatrix.cli.report import sweeps as tables
from separatrix.core.evidence.canonical import canonical, sha256
from separatrix.core.evidence.outcome import Outcome
from separatrix.core.numbers.seeds import Spread, best_rate
from separatrix.models.stored.run import Run
from separatrix.training.sweeps import statistics
from separatrix.training.sweeps.reading import Stored
from separatrix.training.sweeps.schema import ADD_CELL, FIND_CELL
from separatrix.training.sweeps.statistics import WORDS, Counts, Measured, Rate, Summary
from separatrix.training.sweeps.store import Store

RUN = Run(architecture="full", task="eva:n=64,V=128", seed=0, tested=100)
PARAMETERS = 60_000
Given = int | str
"""Right answers of 100, or a status."""


def stored(run: Run, given: Given, longer: tuple[int, ...] = (), **more: Any) -> Stored:
    """What a run gave; `more` fields of its outcome."""
    outcome = None
    status = given if isinstance(given, str) else "done"
    if status in ("done", "diverged"):
        diverged = status == "diverged"
        outcome = singly(
            seed=run.seed,
            status="diverged" if diverged else "done",
            stopped="diverged" if diverged else "steps",
            correct=given if isinstance(given, int) else 0,
            tested=0 if diverged else run.tested,
            longer=longer,
            steps_done=7 if diverged else run.steps,
            parameters=PARAMETERS,
        )
        outcome = singly(outcome, **more)
    return Stored(
        key=run.key,
        sweep="s",
        specification=canonical(run.canonical().to_json()),
        status=status,  # type: ignore[arg-type]
        result=None if outcome is None else canonical(outcome.to_json()),
        error="",
        version="1",
        created=0.0,
        ended=None,
        seconds=0.0,
        completions=0,
        step=0,
        owner=None,
        host="",
    )


def summary(name: str, rows: Sequence[Stored]) -> Summary:
    """Of a store with these rows."""
    with TemporaryDirectory() as folder:
        path = Path(folder, "runs.db")
        with Store.create(path) as store, store._database.transaction() as connection:
            for place, row in enumerate(rows):
                steps = 0 if row.outcome is None else row.outcome.steps_done
                key = sha256(row.specification)
                values = (key, row.specification, row.status, row.result, row.version, name, steps)
                connection.execute(ADD_CELL, values[:2])
                connection.execute(INSERT, values)
                connection.execute("INSERT INTO members VALUES (?, ?, ?)", (name, place + 1, place))
        found = statistics.summary(name, path, [sha256(row.specification) for row in rows])
        later = statistics.summary(name, path)
        assert tables.data(later) == tables.data(found)
        assert not found.damaged
    return found


INSERT = (
    "INSERT INTO runs (key, specification, status, outcome, version, sweep, step, created, cell,"
    " digest, seal) SELECT ?1, ?2, ?3, ?4, ?5, ?6, ?7, 0, cell,"
    " iif(?4 IS NULL, NULL, digest(?1, ?2, ?3, ?5, ?4)),"
    " iif(?4 IS NULL, NULL, seal(cell, json_extract(?2, '$.learning_rate'),"
    f" json_extract(?2, '$.seed'), ?3, ?4)) FROM (SELECT {FIND_CELL} AS cell)"
)


def rate_of(learning_rate: float, own: Sequence[Stored]) -> Rate:
    """Of runs in the order of their seeds."""
    rows: list[tuple[int, ...]] = []
    for one in own:
        o = one.outcome
        counts = (o.steps_done, o.correct, o.tested, o.right, o.due) if o else (0,) * 5
        rows.append((one.run.seed, WORDS.index(one.status), *counts))
    return Rate(
        learning_rate=learning_rate,
        counts=Counts(*np.array(rows, np.int64).reshape(-1, len(Counts._fields)).T),
        load=lambda places: [own[place] for place in places],
    )


def one(grid: Mapping[float, tuple[Given, ...]], run: Run = RUN) -> list[Stored]:
    """A cell: for each learning rate what seeds 0, 1, ... gave."""
    return [
        stored(replace(run, seed=seed, learning_rate=rate), given)
        for rate, seeds in grid.items()
        for seed, given in enumerate(seeds)
    ]


def only(rows: list[Stored]) -> Measured:
    (cell,) = summary("s", rows).cells
    return cell


def hundredths(spread: Spread | None) -> tuple[Fraction, Fraction, Fraction]:
    assert spread is not None
    return 100 * spread.median, 100 * spread.least, 100 * spread.most


def test_by_hand() -> None:
    cell = only(one({1e-3: (90, 80, 10), 1e-2: (70, 95, 85)}))
    assert [rate.learning_rate for rate in cell.rates] == [1e-3, 1e-2]
    assert cell.best is cell.rates[1]
    assert hundredths(cell.rates[0].accuracy) == (80, 10, 90)
    assert hundredths(cell.rates[1].accuracy) == (85, 70, 95)
    assert cell.chance == Fraction(1, 128)
    # Wilson for 90 of 100, from the formula with z = 1.96: 0.8256 to 0.9448
    (first, *_) = ended(cell.rates[0]).values()
    low, high = map(float, first.interval or ())
    assert (low, high) == (pytest.approx(0.8256, abs=1e-4), pytest.approx(0.9448, abs=1e-4))


def test_seeds_that_diverged_failed_or_wait() -> None:
    cell = only(one({1e-3: (100, "diverged", 99, 98, "failed"), 1e-2: ("waiting", "running")}))
    (low, high) = cell.rates
    # a diverged seed is right about nothing: 0, 98, 99, 100
    assert hundredths(low.accuracy) == (Fraction(197, 2), 0, 100)
    assert (low.solved, low.seeds, low.count("failed")) == (2, 4, 1)
    assert ended(low)[1].interval is None
    assert (high.accuracy, high.solved_interval, high.unfinished) == (None, None, 2)
    assert cell.best is low


def test_how_many_seeds_solve_it() -> None:
    cell = only(one({1e-3: (99, 100, 100, 99, 98)}))
    assert cell.rates[0].solved == 4
    # Wilson for 4 of 5: 0.3755 to 0.9638
    low, high = map(float, cell.rates[0].solved_interval or ())
    assert (low, high) == (pytest.approx(0.3755, abs=1e-4), pytest.approx(0.9638, abs=1e-4))
    # of one seed there is no share of seeds
    alone = only(one({1e-3: (100,)})).rates[0]
    assert (alone.solved, alone.seeds, alone.solved_interval) == (1, 1, None)


def test_equal_medians_are_told_apart_by_the_mean_and_then_by_the_rate() -> None:
    assert only(one({1e-3: (50, 60, 70), 1e-2: (50, 60, 80)})).best.learning_rate == 1e-2  # type: ignore[union-attr]
    assert only(one({1e-3: (50, 60, 70), 1e-2: (70, 60, 50)})).best.learning_rate == 1e-3  # type: ignore[union-attr]


def of_answers(seed: int, rng: random.Random) -> Stored:
    """Of 0 to 4 answers in 4, or in 6; now and then diverged or failed."""
    due = rng.choice((4, 6))
    status = rng.choice(("done",) * 6 + ("diverged", "failed"))
    correct = rng.randint(0, 4)
    right = rng.randint(0, due)
    run = replace(RUN, seed=seed)
    if status != "done":
        return stored(run, status)
    return stored(run, correct, tested=4, right=right, due=due)


def test_medians_and_the_best_rate_by_definition() -> None:
    """Draws with few answers: many ties of medians and of means, and seeds that are missing."""
    rng = random.Random(0)
    for _ in range(400):
        rates = tuple(
            rate_of(
                rate,
                [of_answers(s, rng) for s in range(rng.randint(1, 6)) if rng.random() < 0.9],
            )
            for rate in (1e-3, 3e-3, 1e-2)[: rng.randint(2, 3)]
        )
        cell = Measured(label="", run=RUN, rates=rates, proved=None, repeats="")
        for rate in rates:
            own = ended(rate).values()
            assert rate.accuracy == Spread.of([o.accuracy for o in own])
            assert rate.whole == Spread.of([Fraction(o.correct, max(o.tested, 1)) for o in own])
            assert rate.solved == sum(o.accuracy >= Fraction(99, 100) for o in own)
        values = {r.learning_rate: [o.accuracy for o in ended(r).values()] for r in rates}
        assert (cell.best and cell.best.learning_rate) == best_rate(values)


def test_the_rule_of_stopping_asks_for_steps() -> None:
    """The slowest seed that is solved took 300 of 1,000 steps: four times that is more."""
    run = replace(RUN, rule="study", warmup=10)
    rows = [
        replace(row, result=canonical(outcome.to_json() | {"steps_done": steps}))
        for row, steps in zip(one({1e-3: (100, 99, 40)}, run), (200, 300, 1000), strict=True)
        if (outcome := row.outcome) is not None
    ]
    found = summary("s", rows)
    assert found.cells[0].needed == 1200
    assert any("asks for 1,200" in note for note in tables.notes(found))
    solved = summary("s", rows[:2])
    assert solved.cells[0].needed == 0
    assert only(one({1e-3: (100, 99, 40)})).needed == 0


def ended(rate: Rate) -> dict[int, Outcome]:
    return {one.run.seed: one.outcome for one in rate.runs if one.outcome is not None}


def test_longer_sizes_stand_apart() -> None:
    run = replace(RUN, longer=("n=96", "n=128"))
    rows = [
        stored(replace(run, seed=seed), correct, longer)
        for seed, (correct, longer) in enumerate([(100, (50, 10)), (90, (70, 20)), (80, (30, 60))])
    ]
    cell = only([*rows, stored(replace(run, seed=3), "diverged", (0, 0))])
    assert hundredths(cell.rates[0].longer(0)) == (40, 0, 70)
    assert hundredths(cell.rates[0].longer(1)) == (15, 0, 60)
    row = tables.best_rows(summary("s", rows))[0]
    assert (row["at n=96"], row["at n=128"]) == ("50.0 %", "20.0 %")


@pytest.fixture(scope="module")
def both() -> Summary:
    """Two stacks, of which the second has twice the steps."""
    small = replace(RUN, architecture="linear @ heads=1, head_dim=2", steps=2000)
    grid = {1e-3: (20, "diverged"), 1e-2: (30, "failed")}
    return summary("s", [*one({1e-3: (99, 100), 1e-2: (90, 91)}), *one(grid, small)])


def test_parameters_stand_where_they_differ(both: Summary) -> None:
    assert all("parameters" not in row for row in tables.best_rows(both))
    wide = stored(replace(RUN, width=64), 80, parameters=2 * PARAMETERS)
    begun = stored(replace(RUN, width=48), "running")
    rows = tables.best_rows(summary("s", [stored(RUN, 90), wide, begun]))
    assert [row["parameters"] for row in rows] == ["60,000", "120,000", "-"]


def test_a_mixer_that_is_not_imported_here() -> None:
    """Its runs are shown all the same: what is measured needs no mixer."""
    rows = [
        replace(row, specification=row.specification.replace('"full"', '"mine*2 @ width=8"'))
        for row in one({1e-3: (90, 80, 10), 1e-2: (70, 95, 85)})
    ]
    cell = only(rows)
    assert cell.best is not None
    assert hundredths(cell.best.accuracy) == (85, 70, 95)
    assert cell.proved is None


def test_what_is_proved_stands_beside(both: Summary) -> None:
    first, second = both.cells
    assert first.proved is not None
    assert second.proved is not None
    assert (first.proved.status, first.proved.ceiling) == ("SOLVABLE", None)
    # a state of 2 x 2 numbers cannot hold 64 facts
    assert second.proved.status == "FAILS"
    assert second.proved.ceiling is not None
    assert Fraction(30, 100) < Fraction(second.proved.ceiling, 10**6) < 1


def test_tables(both: Summary) -> None:
    first, second = tables.best_rows(both)
    assert first["rate"] == "0.001"
    assert first["seeds"] == "99.0 to 100.0 % (2 of 2)"
    assert first["median"] == "99.5 %"
    # Wilson for 2 of 2: 2 / (2 + 3.8415) = 0.3423 to 1
    assert first["solved"] == "2 of 2 (34.2-100.0)"
    assert (first["at most"], first["proved"]) == ("-", "SOLVABLE (construction: retrieval)")
    assert second["seeds"] == "30.0 % (1 of 2)"
    assert second["proved"] == "FAILS (Theorem I)"
    assert second["at most"].endswith(" %")
    (alone,) = tables.best_rows(replace(both, cells=both.cells[:1]))
    assert "at most" not in alone
    rows = tables.seed_rows(both)
    assert [(row["cell"], row["rate"]) for row in rows] == [
        ("full, steps 1000", "0.001*"),
        ("", "0.01"),
        ("linear @ head_dim=2, heads=1, steps 2000", "0.001"),
        ("", "0.01*"),
    ]
    # Wilson for 91 of 100: (0.91 + 0.0192) / 1.0384 = 0.8948, half width 0.0571
    assert [row["seed 1"] for row in rows[1:]] == [
        "91.0 % (83.7-95.2)",
        "diverged at 7",
        "failed",
    ]


def test_notes(both: Summary) -> None:
    said = "\n".join(tables.notes(both))
    for words in (
        "the best of its cell by the median over the same seeds, which flatters it",
        "1 diverged, 1 failed. A diverged seed counts as 0 %",
    ):
        assert words in said
    assert "different code" not in said


def test_tables_and_data(both: Summary) -> None:
    assert "0.001*" in tables.document(both).text(200)
    data = tables.data(both)
    # JSON has no NaN and no fractions
    assert canonical(data)
    second = data["cells"][1]
    assert second["best"]["chosen_from"] == [1e-3, 1e-2]
    assert [rate["failed"] for rate in second["rates"]] == [0, 1]
    assert [rate["diverged"] for rate in second["rates"]] == [1, 0]
    assert second["rates"][0]["seeds"][1]["accuracy"] == 0.0
