"""Rows by seed, the rule of stopping, and lines whose hash is wrong."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable
from fractions import Fraction
from math import inf
from pathlib import Path
from typing import Any

import pytest
from support import practice_tables as practice
from support.practice_tables import diverged, row
from support.practice_tables import table as made
from support.toy_experiment import table

from separatrix.core.errors import SpecError
from separatrix.findings.results import Results, checked_lines, of_lines, of_table

SOLVED = (100, 110, 120)


def grey(results: Results) -> dict[str, bool]:
    return {name: bool(results.grey(cell)) for name, cell in results.cells.items()}


def test_every_seed_is_read() -> None:
    found = of_table(table({"full": (100, None)})).cells["full"]
    assert found.to_solve == (100, inf)
    assert found.accuracies == (Fraction(998, 1000), Fraction(2, 5))
    assert (found.solved, found.steps, found.rate) == (1, 4000, 3e-3)


def test_a_plateau_is_no_end() -> None:
    """4,000 steps are four times 1,000, and less than four times 1,001."""
    assert grey(of_table(table({"a": (100, 1000), "b": (None, 90)}))) == {"a": False, "b": False}
    assert grey(of_table(table({"a": (100, 1001), "b": (None, 90)}))) == {"a": False, "b": True}
    assert grey(of_table(table({"a": (None, None)}))) == {"a": True}


def test_another_rule_is_grey() -> None:
    assert grey(of_table(table({"a": SOLVED}, stop_at=0.99))) == {"a": True}
    assert grey(of_table(table({"a": SOLVED}))) == {"a": False}


def test_what_stopped_and_fails_on_fresh_prompts_is_not_solved() -> None:
    one = table({"a": (100,)}).rows[0]
    (trial,) = one.every
    weak = row(
        {"cell": "a"},
        {3e-3: [trial.__class__(**{**vars(trial), "right": 989})]},
        stop_at=0.995,
    )
    assert of_table(made("toy", weak)).cells["a"].solved == 0


def test_what_diverged_is_unsolved() -> None:
    found = of_table(made("toy", row({"n": 2}, {1e-3: [diverged(0)]}, architecture="full")))
    assert found.cells["n 2"].to_solve == (inf,)


def test_cells_without_a_name_are_called_by_their_labels() -> None:
    rows = [row({"kind": "a", "n": n, "stack": "x"}, {1e-3: [diverged(0)]}) for n in (1, 2000)]
    assert list(of_table(made("toy", *rows)).cells) == ["kind a, n 1", "kind a, n 2000"]


def line(seed: int, rate: float = 3e-3, **changed: Any) -> str:
    kept: dict[str, Any] = {
        "cell": "recall",
        "run": {
            "architecture": "full",
            "task": "eva:n=4,V=4",
            "steps": 3000,
            "stop_at": 0.995,
            "seed": seed,
            "learning_rate": rate,
        },
        "outcome": practice.trial(
            seed, 64, due=64, stopped="solved", steps_done=100 + seed
        ).to_json(),
    } | changed
    return hashed(kept)


def hashed(row: dict[str, Any]) -> str:
    digest = hashlib.sha256(json.dumps(row, sort_keys=True).encode()).hexdigest()
    return json.dumps(row | {"sha256": digest}, sort_keys=True)


def written(folder: Path, *lines: str) -> Path:
    path = folder / "rows.jsonl"
    path.write_text("\n".join(lines) + "\n")
    return path


def test_lines_are_cells(tmp_path: Path) -> None:
    path = written(
        tmp_path, line(1), line(0), line(0, 6e-3, cell="other"), line(1, 3e-3, cell="other")
    )
    found = of_lines(checked_lines(path)).cells
    assert list(found) == ["recall", "other at 0.006", "other at 0.003"]
    assert found["recall"].to_solve == (100, 101)
    assert list(of_lines(checked_lines(path, 2)).cells) == ["recall"]


@pytest.mark.parametrize(
    ("change", "told"),
    [
        (lambda text: text.replace('"right": 64', '"right": 63'), "line 2"),
        (lambda text: text[:-20], "line 2: "),
        (lambda text: "[]", "line 2"),
        (lambda text: '{"cell": "a"}', "line 2"),
        (lambda text: hashed({"cell": "a"}), "line 2: no run"),
        (lambda text: line(0), "has a seed twice"),
        (
            lambda text: line(1, run=json.loads(line(1))["run"] | {"task": "eva:n=5,V=4"}),
            "seed and learning rate",
        ),
    ],
)
def test_wrong_lines_are_told(change: Callable[[str], str], told: str, tmp_path: Path) -> None:
    with pytest.raises(SpecError, match=told):
        of_lines(checked_lines(written(tmp_path, line(0), change(line(1)))))


def test_no_file_is_told(tmp_path: Path) -> None:
    with pytest.raises(SpecError, match="cannot be read"):
        of_lines(checked_lines(tmp_path / "none.jsonl"))
