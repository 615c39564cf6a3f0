"""What every experiment keeps: runs that can be trained at every scale, one budget for all that is
compared, labels that are explained, and findings that claim nothing where rows are missing.
"""

from __future__ import annotations

import json
import re
import sys
from collections import defaultdict
from collections.abc import Callable
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import get_args

import pytest
from support.engines import InPlace
from support.pretended_tables import table

from separatrix.experiments import EXPERIMENTS
from separatrix.experiments import base as rooms
from separatrix.experiments.base import LEAST_SEEDS, Cell, Experiment
from separatrix.experiments.running import run, runs_of
from separatrix.practice.table import Row, Scale, Table, parse, read
from separatrix.sweeps.costs import cost
from separatrix.training.packs import packed
from separatrix.training.work import work

SCALES: tuple[Scale, ...] = get_args(Scale)
PER_SECOND = 2e11
"""Operations of a core, as `sweeps.costs` counts them: a step takes a millisecond at least."""
MOST_SECONDS = {"smoke": 60.0, "laptop": 2 * 1800.0}
"""Of one core."""
GPU_OPERATIONS = 3600 * 3e13
"""What a large card does in an hour at less than half its peak in float32, forward and back."""


ASKED = {
    "capacity",
    "cot",
    "depth",
    "head-wise",
    "length",
    "multi-layer-sparse",
    "placement",
    "ratio",
    "recurrence-ablation",
    "shift",
    "sparse-capacity",
    "state-tracking",
    "zoology",
}
"""Open questions that there is an experiment for; there may be more."""


@cache
def cells(name: str, scale: Scale) -> tuple[Cell, ...]:
    return EXPERIMENTS[name].cells(scale)


def everywhere(test: Callable[..., None]) -> Callable[..., None]:
    return pytest.mark.parametrize("name", EXPERIMENTS)(test)


def test_every_experiment_is_in_the_table() -> None:
    """A file that holds one, or a class that is one."""
    folder = Path(rooms.__file__).parent
    named = {
        match[1]
        for path in folder.glob("*.py")
        for match in re.finditer(r"^class (\w+)\(Experiment\)", path.read_text(), re.MULTILINE)
    }
    assert {type(one).__name__ for one in EXPERIMENTS.values()} == named
    assert all(one.name == name for name, one in EXPERIMENTS.items())
    assert set(EXPERIMENTS) >= ASKED


@everywhere
def test_it_says_what_it_is(name: str) -> None:
    one = EXPERIMENTS[name]
    assert re.fullmatch(r"[a-z]+(-[a-z]+)*", name)
    assert type(one).__doc__ or sys.modules[type(one).__module__].__doc__
    assert one.question.endswith("?")
    assert one.says.endswith(".")
    assert one.title
    if type(one).figures is Experiment.figures:
        assert {one.x, *one.series, *one.panels} <= {*one.labels, "stack"}
    assert all(one.labels.values())


@pytest.mark.parametrize(
    "scale", ["smoke", *(pytest.param(scale, marks=pytest.mark.slow) for scale in SCALES[1:])]
)
@everywhere
def test_its_runs_can_be_trained(name: str, scale: Scale) -> None:
    found = cells(name, scale)
    assert found
    for one in found:
        assert set(one.labels) <= {*EXPERIMENTS[name].labels, "stack"}
        assert len({run.seed for run in one.runs}) >= LEAST_SEEDS[scale]
        rates = {run.learning_rate for run in one.runs}
        assert len(one.runs) == len(rates) * len({run.seed for run in one.runs})
        one.runs[0].check()
    assert len({json.dumps(one.labels, sort_keys=True) for one in found}) == len(found)
    keys = [run.key for run in runs_of(found)]
    assert len(set(keys)) == len(keys)


@pytest.mark.slow
@pytest.mark.parametrize("scale", ["laptop", "gpu"])
@everywhere
def test_what_is_compared_has_one_budget(name: str, scale: Scale) -> None:
    """On one task every stack has the same steps, batch, and learning rates to choose from."""
    budgets: dict[str, set[object]] = defaultdict(set)
    for one in cells(name, scale):
        budgets[one.runs[0].task].add(
            (
                one.runs[0].steps,
                one.runs[0].batch,
                tuple(sorted({run.learning_rate for run in one.runs})),
                len(one.runs),
            )
        )
    assert [task for task, found in budgets.items() if len(found) > 1] == []


@pytest.mark.parametrize("scale", ["smoke", pytest.param("laptop", marks=pytest.mark.slow)])
@everywhere
def test_it_takes_no_longer_than_its_scale(name: str, scale: Scale) -> None:
    seconds = sum(cost(pack) for pack in packed(runs_of(cells(name, scale)))) / PER_SECOND
    assert seconds < MOST_SECONDS[scale]


@pytest.mark.slow
@everywhere
def test_gpu_scale_is_larger_and_fits_a_card(name: str) -> None:
    laptop, gpu = (
        sum(cost(pack) for pack in packed(runs_of(cells(name, scale)))) for scale in SCALES[1:]
    )
    assert laptop < gpu < GPU_OPERATIONS


@cache
def pretended(name: str) -> Table:
    return table(EXPERIMENTS[name], "laptop")


def without_some(found: Table) -> list[Table]:
    """The table with rows missing, with one seed, with one rate, and with nothing."""
    one_seed = [
        replace(row, rates=tuple(replace(rate, trials=rate.trials[:1]) for rate in row.rates))
        for row in found.rows
    ]
    return [
        replace(found, rows=found.rows[::2]),
        replace(found, rows=found.rows[1::2]),
        replace(found, rows=found.rows[:1]),
        replace(found, rows=tuple(one_seed)),
        replace(found, rows=()),
    ]


@pytest.mark.slow
@everywhere
def test_findings_are_sentences_and_rows_may_be_missing(name: str) -> None:
    one = EXPERIMENTS[name]
    for found in (pretended(name), *without_some(pretended(name))):
        for sentence in one.findings(found):
            assert sentence.strip().endswith("."), sentence
            assert "  " not in sentence
            assert "nan" not in sentence.split()


@everywhere
def test_nothing_is_claimed_from_one_seed(name: str) -> None:
    one = EXPERIMENTS[name]
    found = table(one, "smoke")
    assert {len(row.trials) for row in found.rows} == {1}
    assert one.findings(found) == ()
    assert one.findings(replace(found, rows=())) == ()


@pytest.mark.slow
@everywhere
def test_nothing_is_claimed_from_one_seed_of_every_row(name: str) -> None:
    *_, one_seed, empty = without_some(pretended(name))
    assert EXPERIMENTS[name].findings(one_seed) == ()
    assert EXPERIMENTS[name].findings(empty) == ()


@pytest.mark.slow
@everywhere
def test_findings_depend_on_what_was_measured(name: str) -> None:
    """A sentence that stands there whatever was trained is no finding."""
    one = EXPERIMENTS[name]
    most = one.findings(table(one, "laptop", lambda run: 1.0))
    least = one.findings(table(one, "laptop", lambda run: 0.0))
    assert most != least


@pytest.mark.slow
@everywhere
def test_figures_and_tables_of_every_row(name: str) -> None:
    pytest.importorskip("altair")
    one = EXPERIMENTS[name]
    whole = pretended(name)
    for found in (whole, *without_some(whole)[:3]):
        for shown in one.tables(found):
            assert all(len(row) == len(shown.columns) for row in shown.rows)
        figures = one.figures(found)
        assert figures
        for spec in figures.values():
            # every figure shows seeds, and what is no number cannot be drawn
            assert '"seed": ' in json.dumps(spec, allow_nan=False)


@pytest.mark.slow
@everywhere
def test_smoke(name: str, tmp_path: Path) -> None:
    """Everything from training to the page, at the scale that only tries the code."""
    one = EXPERIMENTS[name]
    found = run(one, "smoke", store=tmp_path / "store.sqlite", engine=InPlace(work, 1), show=False)
    assert len(found.rows) == len(cells(name, "smoke"))
    assert parse(found.text()) == found
    assert one.tables(found)
    assert one.findings(found) == ()


@pytest.mark.slow
@everywhere
def test_recorded_results_are_of_these_cells(name: str) -> None:
    """Whatever the package holds was trained as the experiment says, and can be trained again."""
    for scale in SCALES[1:]:
        found = read(name, scale)
        if found is None:
            continue
        wanted = {_text(row.labels): row for row in table(EXPERIMENTS[name], scale).rows}
        recorded = {_text(row.labels): row for row in found.rows}
        assert set(recorded) == set(wanted)
        for labels, row in recorded.items():
            assert row.run == wanted[labels].run
            assert _seeds(row) == _seeds(wanted[labels])


def _text(labels: object) -> str:
    return json.dumps(labels, sort_keys=True)


def _seeds(row: Row) -> list[tuple[float, int]]:
    return [(rate.learning_rate, one.seed) for rate in row.rates for one in rate.trials]
