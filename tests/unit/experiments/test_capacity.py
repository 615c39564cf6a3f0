"""What the experiment `capacity` trains, and what it says of tables whose law is known."""

from __future__ import annotations

import json
import re
from math import log2

import pytest
from support.practice_tables import row, table, trial

from separatrix.architecture import Architecture
from separatrix.experiments.bits import law, said
from separatrix.experiments.capacity import Capacity
from separatrix.mechanisms import MECHANISMS
from separatrix.practice.capacity import facts, numbers
from separatrix.practice.table import Rounded, Row


def learned(side: int, number: int, values: int, per_number: float, **labels: str) -> Row:
    """A row of three seeds that learned so many bits per number, and less."""
    most = number * log2(values)
    trials = []
    for seed, share in enumerate((0.5, 1.0, 0.75)):
        bits = (most - share * per_number * side * side) / number
        half = Rounded(format="bf16", correct=0, right=0, due=100, bits=bits + 0.01)
        trials.append(trial(seed, 500, bits=bits, bits_squares=bits**2, formats=(half,)))
    of: dict[str, str | int] = {
        "mechanism": "gdn",
        "numbers": side * side,
        "facts": number,
        "values": values,
        "by": "place",
        "optimiser": "muon",
    }
    return row(
        of | labels,
        {0.01: trials},
        architecture=f"gdn @ heads=1, head_dim={side}",
        task=f"eva:n={number},V={values}",
    )


def test_every_bounded_state_that_trains_is_trained() -> None:
    cells = Capacity().cells("laptop")
    trained = {cell.labels["mechanism"] for cell in cells}
    wanted = {
        name
        for name, kind in MECHANISMS.items()
        # the rules of an automaton are a table, which nothing trains
        if kind.group == "recurrent" and not kind.declared_only and name != "automaton"
    }
    assert trained == wanted | {"window"}
    by_numbers = {cell.labels["numbers"] for cell in cells if cell.labels["mechanism"] == "gdn"}
    assert by_numbers == {16, 64}


@pytest.mark.parametrize("scale", ["smoke", "laptop", "gpu"])
def test_cells_are_measured_alike(scale: str) -> None:
    cells = Capacity().cells(scale)  # type: ignore[arg-type]
    assert len({str(sorted(cell.labels.items())) for cell in cells}) == len(cells)
    assert len({frozenset(run.learning_rate for run in cell.runs) for cell in cells}) == 1
    for cell in cells:
        run = cell.runs[0]
        run.check()
        shown = row(cell.labels, {0.01: []}, architecture=run.architecture, task=run.task)
        # the bound can be told of every row, from the numbers that its label says
        assert numbers(shown) == cell.labels["numbers"]
        assert facts(shown).number == cell.labels["facts"]
        assert len(Architecture.parse(run.architecture)) == 1
        assert run.formats == ("bf16",)


def test_a_table_that_follows_the_law() -> None:
    rows = [learned(4, 12, 16, 1.5), learned(4, 24, 4, 1.5), learned(8, 20, 64, 1.5)]
    found = law(rows)
    assert found is not None
    assert found.c == pytest.approx(1.5)
    assert found.factor == pytest.approx(1.0)
    sentences = said(rows)
    assert "fits 3 sizes: with c = 1.50 they are off by a factor of up to 1.00" in sentences[0]
    # seeds hold a half, all and three quarters
    assert any("the least holds 50% of the best one's bits" in sentence for sentence in sentences)
    assert any("in 0 of 3 rows less than 10%" in sentence for sentence in sentences)
    # 32/1.5
    assert any("21 to 21 times" in sentence for sentence in sentences)


def test_a_table_that_breaks_the_law_names_where() -> None:
    # one size in three holds eight times less: geometric mean 1/2 of the others
    rows = [learned(4, 12, 16, 1.6), learned(4, 24, 4, 0.2), learned(8, 20, 64, 1.6)]
    found = law(rows)
    assert found is not None
    assert found.c == pytest.approx(0.8)
    assert found.factor == pytest.approx(4.0)
    sentence = said(rows)[0]
    assert "does not fit 3 sizes: with c = 0.80" in sentence
    assert "at 16 numbers and V = 4 (0.25 times the fitted bits)" in sentence
    assert "not every size" not in sentence
    more = said([*rows, learned(4, 12, 16, 1.7, optimiser="adamw")])[0]
    assert "not every size was trained with each" in more


def test_mechanisms_are_compared_where_they_were_asked_alike() -> None:
    rows = [
        learned(4, 12, 16, share, mechanism=name)
        for name, share in (("gdn", 1.0), ("linear", 1.5), ("mamba2", 0.5), ("kda", 0.0))
    ]
    sentences = said([*rows, learned(4, 12, 16, 2.0, mechanism="gdn", optimiser="adamw")])
    (order,) = [sentence for sentence in sentences if sentence.startswith("Bits per number")]
    assert "of 12 facts of 16 by place, muon: linear 1.50, gdn 1.00, mamba2 0.50" in order
    assert "kda failed to train, which is no limit" in order


def test_optimisers_and_formats_are_compared() -> None:
    sentences = said([learned(4, 12, 16, 1.0), learned(4, 12, 16, 1.5, optimiser="adamw")])
    assert any("more for gdn (1.50 times); less for none" in sentence for sentence in sentences)
    # 12 facts lose a hundredth of a bit each, of 16 and of 24 bits
    assert any("keep 99.4% of their bits" in sentence for sentence in sentences)


def test_nothing_is_said_from_fewer_than_three_seeds() -> None:
    few = learned(4, 12, 16, 1.5)
    assert said([row(few.labels, {0.01: few.trials[:2]}, task="eva:n=12,V=16")]) == ()


def test_the_table_shows_every_seed_and_the_allowance() -> None:
    shown = Capacity().tables(table("capacity", learned(4, 12, 16, 1.5)))[0]
    cells = dict(zip(shown.columns, shown.rows[0], strict=True))
    assert cells["bits of each seed at the best rate"] == "12.0 24.0 18.0"
    assert cells["learned at least, best of all"] == "24.0 [24.0, 24.0]"
    assert cells["per number"] == "1.50"
    assert cells["in bf16"] == "23.9"
    assert cells["Theorem A allows"] == "512 bits"


def test_figures_show_bits_of_every_seed_and_what_theorem_a_allows() -> None:
    found = Capacity().figures(table("capacity", learned(4, 12, 16, 1.5), learned(8, 20, 64, 1.0)))
    text = json.dumps(found[""])
    # three seeds a row: 0.5, 1.5 and 1.125 bits per number; 0.5, 1 and 0.75
    heights = {round(float(each), 6) for each in re.findall(r'"height": ([0-9.]+), "low"', text)}
    assert heights == {0.75, 1.5, 1.125, 0.5, 1.0}
    assert "Theorem A allows 32 bits per number" in text
    assert '"chance"' in json.dumps(found["accuracy"])
