"""Experiments about hybrids: their stacks are what their labels say, and what they conclude of
tables written by hand.
"""

from __future__ import annotations

from dataclasses import replace

import pytest
from support.practice_tables import row, trial
from support.practice_tables import table as made

from separatrix.architecture import Architecture
from separatrix.experiments.base import Cell
from separatrix.experiments.cot import ChainOfThought
from separatrix.experiments.depth import Depth
from separatrix.experiments.placement import Placement
from separatrix.experiments.recurrence_ablation import RecurrenceAblation, window_of
from separatrix.practice.shape import Shape
from separatrix.practice.table import Row, Scale, Table

SCALES: tuple[Scale, ...] = ("smoke", "laptop", "gpu")
PAIRS = "seqcomp:L=2,m=4,n_1=3,queries=all,split=1"
FULL = "full(heads=2,head_dim=16)"
GDN = "gdn(heads=2,head_dim=16,conv=4)"


def shape(cell: Cell) -> Shape:
    found = Shape.of_text(cell.runs[0].architecture)
    assert found is not None
    return found


@pytest.mark.parametrize("scale", SCALES)
def test_depth_has_the_layers_that_its_labels_say(scale: Scale) -> None:
    for cell in Depth().cells(scale):
        found = shape(cell)
        assert found.full == cell.labels["full"]
        assert found.bounded == cell.labels["recurrent"]
        assert found.beside == cell.labels["where"]
        cell.runs[0].check()
        # accuracy is of the last answers: i_1 is no longer asked in the end
        assert "stages" not in cell.runs[0].task


@pytest.mark.parametrize("scale", SCALES)
def test_every_stack_has_the_same_rates_and_seeds(scale: Scale) -> None:
    for experiment in (Depth(), ChainOfThought(), RecurrenceAblation()):
        tried = {
            tuple((run.seed, run.learning_rate, run.steps) for run in cell.runs)
            for cell in experiment.cells(scale)
        }
        assert len(tried) == 1


def test_a_window_carries_exactly_what_the_recurrence_does() -> None:
    """Two heads of 8 x 8 numbers, and two heads' keys and values of 8 numbers for 4 tokens; both
    with the same convolution.
    """
    (layer,) = Architecture.parse("gdn(heads=2,head_dim=8,conv=2)").layers[0]
    (window,) = Architecture.parse(window_of(layer)).layers[0]
    assert window.sizes()["size"] == 4
    assert window.cache_bits(1000) == layer.cache_bits(1000)
    for question in ("parity", "3 facts", "12 facts", "composition"):
        cells = [
            cell
            for cell in RecurrenceAblation().cells("laptop")
            if cell.labels["question"] == question and cell.labels["layer"] != "full"
        ]
        one, other = (cell.runs[0].stack.cache_bits(1000) for cell in cells)
        assert one == other


@pytest.mark.parametrize("scale", SCALES)
def test_places_are_what_their_labels_say_and_cost_the_same(scale: Scale) -> None:
    costs: dict[object, set[object]] = {}
    for cell in Placement().cells(scale):
        found = shape(cell)
        assert (found.full, found.place) == (cell.labels["full"], cell.labels["where"])
        assert found.layers == cell.labels["layers"]
        run = cell.runs[0]
        run.check()
        same = (cell.labels["task"], cell.labels["full"])
        costs.setdefault(same, set()).add((run.stack.cache_bits(run.length), run.steps))
    assert all(len(each) == 1 for each in costs.values())


def placement_table(first: list[int], last: list[int]) -> Table:
    return made(
        "placement",
        *(
            row(
                {"task": "recall", "full": 1, "where": where, "layers": 3, "mechanism": "gdn"},
                {1e-2: [trial(seed, right) for seed, right in enumerate(rights)]},
                task="recall:n=12,K=16,V=8,form=independent,queries=all",
            )
            for where, rights in (("first", first), ("last", last))
        ),
    )


def test_placement_says_first_what_contradicts_expectation() -> None:
    against = Placement().findings(placement_table([900, 900, 900], [500, 500, 899]))
    assert against[0].startswith("Against expectation")
    found = Placement().findings(placement_table([300, 300, 310], [990, 1000, 1000]))
    assert found[0].startswith("Recall, 1 full layer of 3: medians first 30.0 %, last 100.0 %.")
    assert "Every seed of last is above every seed of first" in found[0]
    (alike,) = Placement().findings(placement_table([300, 300, 990], [980, 1000, 1000]))
    assert "do not tell the places apart" in alike


def depth_row(full: int, recurrent: int, where: str, rights: list[int]) -> Row:
    layers = [FULL] * full
    layers.insert({"before": 0, "between": 1}.get(where, full), GDN)
    stack = " + ".join(layers) if recurrent else f"{FULL}*{full}"
    labels = {"full": full, "recurrent": recurrent, "where": where, "steps": 2}
    return row(
        {**labels, "mechanism": "gdn" if recurrent else "none", "stack": stack},
        {1e-2: [trial(seed, right) for seed, right in enumerate(rights)]},
        architecture=stack,
        task=PAIRS,
    )


def depth_table(*rights: list[int]) -> Table:
    shapes = ((2, 0, "none"), (3, 0, "none"), (2, 1, "before"), (2, 1, "between"), (2, 1, "after"))
    return made(
        "depth", *(depth_row(*one, right) for one, right in zip(shapes, rights, strict=True))
    )


def test_depth_says_first_what_contradicts_the_picture() -> None:
    """A recurrence after the last full layer is no construction, a third full layer is one."""
    table = depth_table([500] * 3, [500, 700, 1000], [1000] * 3, [1000] * 3, [990, 995, 1000])
    found = Depth().findings(table)
    assert found[0].startswith("Against the picture")
    assert "1 gdn after learned L = 2 (3 of 3 seeds" in found[0]
    assert "3 full layers; training found such in 1 of 3 seeds" in found[1]
    assert "no sign that they cannot" in found[1]
    assert "two full layers reach 50.0 %" in found[2]
    assert "third full layer takes them to 70.0 %" in found[2]


def test_depth_says_where_one_more_function_costs_accuracy() -> None:
    two = depth_row(2, 0, "none", [500, 510, 520])
    for easier, dropped in (([1000, 990, 530], True), ([1000, 990, 515], False)):
        one = depth_row(2, 0, "none", easier)
        one = replace(one, labels={**one.labels, "steps": 1})
        found = Depth().findings(made("depth", one, two))
        said = "2 full layers: from L = 1 to L = 2 the median drops from 99.0 % to 51.0 %"
        assert any(sentence.startswith(said) for sentence in found) is dropped


def test_depth_claims_nothing_from_two_seeds() -> None:
    assert Depth().findings(depth_table(*([1000, 1000] for _ in range(5)))) == ()


def test_depth_draws_what_is_right_without_the_start() -> None:
    """Four entries of a row of 12 values are left to whoever knows w: at least a quarter."""
    table = depth_table(*([1000] * 3 for _ in range(5)))
    line = Depth().lines(table)[-1]
    ((steps, height),) = line.points
    assert steps == 2
    assert 0.25 < height < 0.6


def ablation_table(recurrence: list[int], window: list[int]) -> Table:
    stacks = {
        "recurrence": "gdn(heads=2,head_dim=8)",
        "window": "window(heads=2,head_dim=8,size=4)",
    }
    return made(
        "recurrence-ablation",
        *(
            row(
                {"question": "parity", "layer": layer, "mechanism": "x", "bits": 4096},
                {1e-2: [trial(seed, right) for seed, right in enumerate(rights)]},
                architecture=stacks[layer],
                task="parity:n=16,queries=all",
            )
            for layer, rights in (("recurrence", recurrence), ("window", window))
        ),
    )


def test_the_ablation_tells_structure_from_capacity() -> None:
    (ahead,) = RecurrenceAblation().findings(ablation_table([900, 950, 1000], [600, 650, 700]))
    assert "the structure counts" in ahead
    assert "4,096 bits" in ahead
    (behind,) = RecurrenceAblation().findings(ablation_table([500, 500, 500], [600, 650, 700]))
    assert behind.startswith("Against expectation")
    (alike,) = RecurrenceAblation().findings(ablation_table([500, 650, 900], [600, 650, 700]))
    assert "cannot be told apart" in alike


def cot_table(plain: list[int], written: list[int]) -> Table:
    size = "seqcomp:L=2,m=6,n_1=1"
    return made(
        "cot",
        *(
            row(
                {"full": 1, "recurrent": 1, "steps": 2, "thought": form, "mechanism": "gdn"},
                {1e-2: [trial(seed, 1000, correct=right) for seed, right in enumerate(rights)]},
                architecture=f"{GDN} + {FULL}",
                task=size if form == "none" else f"{size},thought={form}",
            )
            for form, rights in (("none", plain), ("values", written))
        ),
    )


def test_chains_count_only_whole() -> None:
    """Of 250 prompts, those of which every value is right."""
    better = ChainOfThought().findings(cot_table([50, 50, 50], [250, 250, 250]))
    assert "20.0 % of prompts right at once, 100.0 % with the chain written" in better[0]
    worse = ChainOfThought().findings(cot_table([250, 250, 250], [50, 50, 50]))
    assert worse[0].startswith("Against expectation")
