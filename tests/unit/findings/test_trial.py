"""Trials: rules that are printed, rates, hours, and what the rows do not show."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path

import pytest
from support.each import each
from support.engines import InPlace
from support.practice_tables import row
from support.practice_tables import trial as seed
from support.toy_experiment import table

from separatrix.core.errors import SeparatrixError, SpecError
from separatrix.core.evidence.outcome import Outcome
from separatrix.findings.page import contrasts, proved
from separatrix.findings.results import of_table
from separatrix.findings.running import runs_of, with_curves
from separatrix.findings.trial import Trial, chosen
from separatrix.findings.trial import trial as made
from separatrix.stacks.architecture import Architecture
from separatrix.training.sweeps.planning import Plan
from separatrix.training.work import work


def trial(*texts: str, task: str = "recall", seeds: int = 8, steps: int = 0) -> Trial:
    own = {text: Architecture.parse(text) for text in texts or ("gdn", "full")}
    return made(own, task, seeds=seeds, steps=steps)


def test_long_prompts_are_scaled_and_verdicts_asked_twice() -> None:
    """A state of 4 x 4 numbers loses 131,072 facts, and may hold 16."""
    found = trial(task="eva:n=64,V=4")
    assert found.asked == found.task
    name = "gdn @ heads=1, head_dim=8"
    found = trial(name, "full", task="recall:n=131072,K=131072,V=64,form=independent")
    assert found.asked.length > 10**5
    assert found.task.length == 48
    said = "\n".join(found.rules())
    (lost,) = [line for line in said.splitlines() if "scaling did not keep" in line]
    assert lost.startswith(f"{name}, ")
    assert "own size, OPEN" in lost
    assert f"{proved(found.own['full'], found.asked)} at both" in said
    assert "recall:n=131072" in found.rules()[0]
    deeper = trial(task="seqcomp:L=3,m=999,n_1=2,n_2=2")
    assert (deeper.task.sizes()["L"], deeper.steps) == (3, 6000)


def test_vocabularies_that_differ_are_said_not_to_be_kept() -> None:
    own = {
        name: replace(Architecture.parse(name), vocabulary=many)
        for name, many in (("gdn", 151_936), ("full", 128_256))
    }
    told = [line for line in made(own, "recall", seeds=8, steps=0).rules() if "151,936" in line]
    assert len(told) == 1
    assert "128,256" in told[0]
    alike = {name: replace(one, vocabulary=32_000) for name, one in own.items()}
    assert "32,000" not in "\n".join(made(alike, "recall", seeds=8, steps=0).rules())


@each(
    "layout, bare",
    [
        ("gdn(conv=4)*3 + full", "1 of 4"),
        ("gdn(conv=4)*3 + full(conv=2)", ""),
        ("gdn*3 + full", ""),
        ("full*2 + gdn(conv=4)", "2 of 3"),
    ],
)
def test_a_place_that_may_be_a_convolution_is_said(layout: str, bare: str) -> None:
    told = [line for line in trial(layout, "full*8").rules() if "convolution" in line]
    assert [line.startswith(f"{layout}: {bare} layers") for line in told] == [True] * bool(bare)


@each("steps, warmup", [(3000, 50), (100, 25), (2, 1)])
def test_the_rate_rises_over_a_quarter_of_few_steps(steps: int, warmup: int) -> None:
    found = trial(steps=steps).compared({"gdn": 6e-3, "full": 3e-3})
    assert {run.warmup for run in runs_of(found.cells())} == {warmup}


def test_its_runs_are_paired_and_rates_have_seeds_of_their_own() -> None:
    found = trial()
    search = runs_of(found.search().cells())
    compared = runs_of(found.compared({"gdn": 6e-3, "full": 3e-3}).cells())
    assert {run.seed for run in search} == {100, 101}
    assert {run.steps for run in search} == {1500}
    assert sorted((run.seed, run.learning_rate) for run in compared) == sorted(
        (number, rate) for number in range(8) for rate in (3e-3, 6e-3)
    )
    assert {run.steps for run in compared} == {3000}
    three = trial("gdn", "full", "mamba2").compared(dict.fromkeys(("gdn", "full", "mamba2"), 3e-3))
    assert [(x.one, x.other) for x in three.contrasts] == [
        ("gdn", "full"),
        ("gdn", "mamba2"),
        ("full", "mamba2"),
    ]


@each(
    "texts, task, told",
    [
        (("gdn",), "recall", "a trial compares layouts: give"),
        # Holm over ten contrasts of eight seeds shows nothing, and no four curves are told apart
        (("gdn", "full", "rwkv", "mamba2"), "recall", "two or three"),
        (("gdn", "full"), "twosum:n=4096,M=9999", "4,0.*"),
        (("gdn", "full"), "seqcomp:L=4,m=99,n_1=2,n_2=2,n_3=2", "small size is known"),
        (("gdn", "full"), "rec", "rec"),
    ],
)
def test_what_makes_no_trial(texts: tuple[str, ...], task: str, told: str) -> None:
    with pytest.raises(SeparatrixError, match=told):
        trial(*texts, task=task)


def test_the_rate_solved_most_seeds_then_soonest() -> None:
    def at(*steps: int | None) -> list[Outcome]:
        return [
            seed(n, 998 if x else 400, steps_done=x or 1500, stopped="solved" if x else "steps")
            for n, x in enumerate(steps)
        ]

    rates = {1e-3: at(100, None), 3e-3: at(400, 500), 6e-3: at(300, 500)}
    one = row({"layout": "a"}, rates, stop_at=0.995)
    assert chosen("a", [one]) == 6e-3
    none = row({"layout": "a"}, {1e-3: [seed(0, 300)], 3e-3: [seed(0, 301)]})
    assert chosen("a", [none]) == 3e-3
    with pytest.raises(SpecError, match="no run of b ended"):
        chosen("b", [one])


def plan(seconds: float, ended: int = 0) -> Plan:
    return Plan(
        name="trial",
        runs=28,
        ended=ended,
        packs=4,
        members=(6, 8),
        parameters=(5000, 9000),
        workers=2,
        device="cpu",
        seconds=seconds,
    )


def test_hours_that_do_not_suffice_are_told_before_anything_is_trained() -> None:
    """Rates cost as much as 3 of 8 seeds: of 11 hours, 1 is a seed's."""
    found = trial()
    assert found.short(plan(11 * 3600), 11) == ""
    assert found.short(plan(11 * 3600, ended=1), 1) == ""

    def told(seconds: int, hours: float) -> list[str]:
        """Hours; seeds and what they take; seeds that fit, one at least, and what they take."""
        return re.findall(r"[0-9]+\.?[0-9]*", found.short(plan(seconds), hours))[:5]

    assert told(11 * 3600, 3.9) == ["3.9", "8", "11", "1", "4"]
    assert told(11 * 3600, 5.5) == ["5.5", "8", "11", "2", "5"]
    # rounded up: what it names suffices
    assert told(1001, 0.05) == ["0.05", "8", "0.28", "1", "0.11"]
    assert found.short(plan(1001), 0.28) == ""


def test_memory_grows_with_packs_and_workers() -> None:
    found = trial()
    one = found.memory(replace(plan(1), workers=1))
    assert found.memory(plan(1)) == 2 * one
    assert found.memory(replace(plan(1), members=(6, 16))) > 2 * one


def test_what_the_rows_do_not_show_is_said() -> None:
    found = trial(steps=4000)
    rows = table({"gdn": (1100, None) * 4, "full": (100,) * 8})
    for one in rows.rows:
        one.labels["layout"] = one.labels["cell"]
    said = found.remarks(rows, of_table(rows))
    assert "--steps 4400" in said[0]
    assert "depth 1" in said[-1]
    assert "code" not in "".join(said)
    mixed = replace(rows, provenance=replace(rows.provenance, version="0.1.0+a, 0.1.0+b"))
    none = table({"gdn": (None,) * 8, "full": (None,) * 8})
    assert "--steps" in found.remarks(none, of_table(none))[0]
    (told,) = {*found.remarks(mixed, of_table(rows))} - {*said}
    assert "(0.1.0+a, 0.1.0+b)" in told


@pytest.mark.slow
def test_a_store_of_other_settings_gives_no_row(tmp_path: Path) -> None:
    """Another trial of the same layouts and seeds stands there: fewer steps, and so worse."""

    def train(steps: int, store: str) -> list[object]:
        found = trial(task="eva:n=2,V=2", seeds=2, steps=steps)
        _, table = found.train(store=tmp_path / store, engine=InPlace(work, 1), show=False)
        assert {row.run["steps"] for row in table.rows} == {steps}
        every = [one for row in table.rows for one in row.every]
        return [replace(one, seconds=0.0) for one in every]

    shorter = train(4, "shared.sqlite")
    alone = train(20, "alone.sqlite")
    assert train(20, "shared.sqlite") == alone != shorter
    assert train(4, "shared.sqlite") == shorter


def test_interrupted_and_resumed_it_gives_the_same_rows(tmp_path: Path) -> None:
    found = trial(task="eva:n=2,V=2", seeds=2, steps=6)

    def train(store: str) -> list[object]:
        engine = InPlace(work, 1)
        experiment, table = found.train(store=tmp_path / store, engine=engine, show=False)
        assert table.provenance.command.removeprefix("separatrix trial ").startswith(
            "gdn full --task eva:n=2,V=2"
        )
        assert contrasts(experiment.contrasts, of_table(table))[0].said.startswith("open: ")
        drawn = with_curves(experiment, of_table(table), tmp_path / store)
        curves = [curve for one in drawn.cells.values() for curve in one.curves.values()]
        assert [curve[-1][0] for curve in curves] == [6] * 4
        rows = [replace(one, rates=()) for one in table.rows]
        return [rows, [(x.seed, x.right, x.steps_done) for one in table.rows for x in one.every]]

    whole = train("a.sqlite")
    # only the rates were chosen when it stopped
    from separatrix.findings.running import run

    run(found.search(), store=tmp_path / "b.sqlite", engine=InPlace(work, 1), show=False)
    assert train("b.sqlite") == whole
    assert train("b.sqlite") == whole
