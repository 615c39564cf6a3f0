"""The readers of experiments: rows by what their stacks are like, nothing where nobody measured."""

from __future__ import annotations

from fractions import Fraction
from pathlib import Path

import pytest
from support.found_tables import SAMPLES, install, placement, ratio, seeds
from support.practice_tables import row, table

from separatrix.practice.depth import composed
from separatrix.practice.lookups import rows_of
from separatrix.practice.nearest import by_place, by_ratio, layers_of
from separatrix.practice.placement import placed
from separatrix.practice.ratio import ratios
from separatrix.practice.shape import Shape
from separatrix.practice.tracking import tracked


def test_a_package_without_results_has_no_rows(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    install(monkeypatch, tmp_path / "none")
    assert rows_of("depth") == []
    assert composed(2, "before", "gdn") == {}
    assert ratios("gdn", "recall") == placed("gdn", "recall") == tracked("gdn", "parity") == {}


def test_rows_are_found_by_what_a_stack_is_like(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    install(monkeypatch, tmp_path / "results", *(make() for make in SAMPLES))
    assert {steps: found.median for steps, found in composed(2, "before", "gdn").items()} == {
        2: Fraction(998, 1000),
        3: Fraction(65, 1000),
    }
    assert composed(3, "none", None)[2].median == Fraction(999, 1000)
    assert composed(2, "before", "mamba2") == {}
    assert sorted(ratios("gdn", "recall")) == [-1, 1, 3, 7]
    assert placed("gdn", "recall")[2, "first"].median == Fraction(7, 10)
    assert tracked("gdn(negative=true)", "S5")[32].median == 1
    assert tracked("rglru", "S5") == {}


def test_of_rows_that_were_trained_otherwise_the_best_is_shown(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    alike = {"full": 1, "recurrent": 1, "where": "before", "steps": 2, "mechanism": "gdn"}
    install(
        monkeypatch,
        tmp_path / "results",
        table(
            "depth",
            row(alike | {"optimiser": "adamw"}, seeds(300, 300, 300)),
            row(alike | {"optimiser": "muon"}, seeds(500, 500, 500)),
            # fewer recurrent layers stand behind
            row(alike | {"recurrent": 0}, seeds(900, 900, 900)),
        ),
    )
    assert composed(1, "before", "gdn")[2].median == Fraction(1, 2)


def test_the_nearest_ratios_stand_on_either_side() -> None:
    rows = {int(one.labels["ratio"]): one for one in ratio().where(task="recall")}
    assert list(by_ratio(rows, Fraction(3))) == [3]
    assert list(by_ratio(rows, Fraction(9, 2))) == [3, 7]
    assert list(by_ratio(rows, Fraction(10))) == [7]
    assert list(by_ratio(rows, None)) == [-1]
    assert by_ratio({1: rows[1]}, None) == {}


def test_places_are_compared_at_the_nearest_share_of_full_layers() -> None:
    rows = {(2, str(one.labels["where"])): one for one in placement().rows}
    eighth = row({"where": "spread"}, seeds(500, 500, 500), architecture="gdn*7 + full")
    shape = Shape.of_text("(gdn*3 + full)*4")
    assert shape is not None
    found = by_place(rows | {(1, "spread"): eighth}, shape)
    assert list(found) == ["first", "middle", "last", "spread"]
    assert {layers_of(one) for one in found.values()} == {8}
    other = Shape.of_text("full + gdn*6 + full*2")
    assert other is not None
    assert by_place(rows, other) == {}


def test_stacks_with_more_full_layers_stand_for_none_with_fewer() -> None:
    """One full layer of 48 has a share nearest to two of eight, which compose a step more."""
    rows = {(2, str(one.labels["where"])): one for one in placement().rows}
    one, two = (Shape.of_text(text) for text in ("gdn*47 + full", "gdn*46 + full*2"))
    assert one is not None
    assert two is not None
    assert by_place(rows, one) == {}
    assert list(by_place(rows, two)) == ["first", "middle", "last", "spread"]
