"""From what a store has to a table: rows, trials, provenance."""

from __future__ import annotations

import json
import subprocess
from dataclasses import replace
from pathlib import Path

import pytest
from support.toy_experiment import toy

from separatrix.cards.measured.table import Table, parse
from separatrix.core.errors import UnknownNameError
from separatrix.core.evidence.canonical import canonical, code_version
from separatrix.core.evidence.outcome import Outcome
from separatrix.findings import EXPERIMENTS, experiment
from separatrix.findings.base import Experiment, recorded_run
from separatrix.findings.running import UNKNOWN, commit, runs_of, tabled
from separatrix.models.stored.run import Run
from separatrix.stacks.architecture import Architecture
from separatrix.training.sweeps.reading import Stored

PARAMETERS = 2_000


def outcome(run: Run, right: int = 40, **changed: object) -> Outcome:
    given = {
        "seed": run.seed,
        "correct": right,
        "tested": run.tested,
        "right": right,
        "due": run.tested,
        "bits": 1.25,
        "bits_squares": 2.0,
        "steps_done": run.steps,
        "parameters": PARAMETERS,
        "seconds": 0.5,
    }
    return Outcome(**given | changed)  # pyright: ignore[reportArgumentType]


def stored(run: Run, came: Outcome | None) -> Stored:
    return Stored(
        key=run.key,
        sweep="toy-smoke",
        specification=canonical(run.canonical().to_json()),
        status="failed" if came is None else "done",
        result=None if came is None else json.dumps(came.to_json()),
        error="",
        version=code_version(),
        created=0.0,
        ended=1.0,
        seconds=0.5,
        completions=1,
        step=3,
        owner=None,
        host="here",
    )


@pytest.fixture
def small(tmp_path: Path) -> Experiment:
    return toy(tmp_path)


@pytest.fixture
def trained(small: Experiment) -> tuple[dict[str, Stored], Table]:
    cells = small.cells()
    rows = {run.key: stored(run, outcome(run)) for run in runs_of(cells)}
    return rows, tabled(small, cells, rows, cores=2, device="cpu")


def test_a_row_for_each_cell_with_all_its_rates(trained: tuple[dict[str, Stored], Table]) -> None:
    _, found = trained
    assert [row.labels["layout"] for row in found.rows] == ["full", "full", "linear", "linear"]
    first = found.rows[0]
    assert [rate.learning_rate for rate in first.rates] == [1e-3, 3e-3]
    assert "seed" not in first.run
    assert first.every[0].right == 40
    # 3 tokens of a prompt behind the start token
    stack = Architecture.parse(first.run["architecture"])
    assert first.cache_bits == stack.cache_bits(4)


def test_rows_of_other_settings_are_no_part_of_a_table(
    small: Experiment, trained: tuple[dict[str, Stored], Table]
) -> None:
    """Of a store that other trials share: neither their rows nor the code that trained them."""
    rows, found = trained
    cells = small.cells()
    other = replace(runs_of(cells)[0], steps=5)
    foreign = replace(stored(other, outcome(other, right=1)), version="0.0.1+other")
    every = {other.key: foreign, **rows}
    assert tabled(small, cells, every, cores=2, device="cpu") == found


def test_a_recorded_run_is_the_run_that_was_trained(
    trained: tuple[dict[str, Stored], Table],
) -> None:
    rows, found = trained
    for row in found.rows:
        for rate in row.rates:
            for one in rate.trials:
                assert recorded_run(row, rate.learning_rate, one.seed).key in rows


def test_runs_that_failed_are_missing_and_cells_without_any_are_left_out(
    small: Experiment,
) -> None:
    cells = small.cells()
    runs = runs_of(cells)
    rows = {run.key: stored(run, outcome(run)) for run in runs}
    for gone in (cells[0].runs[0], *cells[1].runs):
        rows[gone.key] = stored(gone, None)
    found = tabled(small, cells, rows, cores=1, device="cpu")
    assert len(found.rows) == 3
    assert len(found.rows[0].every) == 1


def test_tables_go_through_files(trained: tuple[dict[str, Stored], Table]) -> None:
    _, found = trained
    assert parse(found.text()) == found


def test_runs_of_other_code_have_no_commit(
    small: Experiment, trained: tuple[dict[str, Stored], Table]
) -> None:
    rows = {key: replace(row, version="0.0+11111111") for key, row in trained[0].items()}
    made = tabled(small, small.cells(), rows, cores=1, device="cpu").provenance
    assert (made.commit, made.version) == (UNKNOWN, "0.0+11111111")


def git(folder: Path, *words: str) -> None:
    subprocess.run(
        ["git", "-C", str(folder), "-c", "user.name=a", "-c", "user.email=a@b", *words],
        check=True,
        capture_output=True,
    )


def test_the_commit_of_a_clean_checkout(tmp_path: Path) -> None:
    """Changed sources have none, nor has a package inside of another project's checkout; recorded
    results may change.
    """
    package = tmp_path.resolve() / "src" / "separatrix"
    results = package / "cards" / "measured" / "results"
    results.mkdir(parents=True)
    (package / "a.py").write_text("1\n")
    assert commit(package) == UNKNOWN
    git(tmp_path, "init", "-q")
    git(tmp_path, "add", ".")
    git(tmp_path, "commit", "-qm", "one")
    clean = commit(package)
    assert len(clean) == 40
    (results / "toy.json").write_text("{}")
    (tmp_path / "notes.txt").write_text("anything")
    assert commit(package) == clean
    (package / "b.py").write_text("2\n")
    assert commit(package) == UNKNOWN
    (package / "b.py").unlink()
    (package / "a.py").write_text("3\n")
    assert commit(package) == UNKNOWN
    other = tmp_path.resolve() / "venv" / "site" / "src" / "separatrix"
    other.mkdir(parents=True)
    assert commit(other) == UNKNOWN


def test_a_misspelt_experiment_gets_the_nearest_one() -> None:
    with pytest.raises(UnknownNameError, match="'shift'"):
        experiment("shfit")
    assert experiment("shift") is EXPERIMENTS["shift"]
