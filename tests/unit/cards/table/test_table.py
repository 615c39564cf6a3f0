"""The table compares stacks of one size, trained alike, and tells of each what its records say."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest
from support.each import each
from support.small_table import KIND, small_body, small_settings

from separatrix.cards.table.body import (
    MOST_APART,
    Settings,
    derive,
    model_entry,
    source,
    table_cells,
)
from separatrix.cards.table.plan import COLUMNS, KINDS, ROWS, WIDTH, Cell
from separatrix.core.errors import EvidenceError
from separatrix.core.evidence.records import from_envelope
from separatrix.models.model import build
from separatrix.stacks.architecture import Architecture
from separatrix.tasks import parse_task
from separatrix.tasks.base.task import Composition

EVERY = [cell for kind in KINDS for cell in table_cells(Settings(kind=kind))]


def parameters(cell: Cell, size: int) -> int:
    model = build(
        Architecture.parse(cell.stack),
        parse_task(cell.task_at(size)),
        width=WIDTH,
        hidden=cell.training()["hidden"],
        seed=0,
    )
    return sum(parameter.numel() for parameter in model.parameters())


@pytest.mark.parametrize("key", COLUMNS)
def test_the_stacks_of_a_column_have_one_size(key: str) -> None:
    cells = [cell for cell in table_cells(Settings()) if cell.column == key]
    assert [cell.row for cell in cells] == [*ROWS]
    column = COLUMNS[key]
    for cell in cells:
        stack = Architecture.parse(cell.stack)
        assert len(stack) == column.layers
        for layer in stack:
            assert sum(part.sizes()["heads"] for part in layer) == column.heads
            assert {part.sizes()["head_dim"] for part in layer} == {column.head_dim}
            assert {part.sizes()["format"] for part in layer} == {"fp32"}
    settings = [cell.training() | {"hidden": 0} for cell in cells]
    assert all(one == settings[0] for one in settings)
    for size in cells[0].sizes:
        counts = [parameters(cell, size) for cell in cells]
        assert (max(counts) - min(counts)) / max(counts) < min(0.01, MOST_APART)


def test_a_row_is_one_mechanism_and_the_hybrid_has_one_full_part() -> None:
    for cell in EVERY:
        names = [part.name for layer in Architecture.parse(cell.stack) for part in layer]
        if cell.row == "hybrid":
            assert sorted(set(names)) == ["full", "linear"]
            assert names.count("full") == 1
        else:
            assert set(names) == {cell.row}


def test_every_cell_has_three_seeds_and_evidence_of_its_own() -> None:
    for cell in EVERY:
        assert cell.kind.seeds >= 3
        main, *beside = cell.verdicts()
        assert main.architecture == cell.stack
        assert all(pair.architecture == cell.stack for pair in cell.built()[:1] if not beside)
        if main.status == "FAILS":
            assert len(cell.witnesses()) == 1
        if main.status == "SOLVABLE":
            assert cell.built()[0].architecture == cell.stack


def test_what_separates_composition_is_judged_beside() -> None:
    """L full layers fail where L + 1 of the same size solve."""
    (cell,) = [
        one for one in table_cells(Settings()) if (one.row, one.column) == ("full", "seqcomp")
    ]
    main, *beside = cell.verdicts()
    assert main.status == "SOLVABLE"
    fewer = [one for one in beside if one.status == "FAILS"]
    assert [len(Architecture.parse(one.architecture)) for one in fewer] == [1, 2]
    for one in fewer:
        task = parse_task(one.task)
        assert isinstance(task, Composition)
        (part,) = {part for layer in Architecture.parse(one.architecture) for part in layer}
        assert part.sizes()["head_dim"] == cell.of.head_dim


@pytest.fixture(name="small")
def _small(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(KINDS, "small", KIND)


@pytest.mark.usefixtures("small")
def test_a_cell_counts_the_seeds_that_solved_it_and_says_what_was_not_reached() -> None:
    body = small_body()
    # made up: 99, 98 and 97 of 100 right in the first cell, fewer in the others; 99 % is solved
    solved = [[one["solved"] for one in cell["trained"]] for cell in body["cells"]]
    assert solved == [[1, 1], [0, 0], [0, 0], [0, 0]]
    for cell in body["cells"]:
        assert [one["n"] for one in cell["trained"]] == [4, 8]
        assert "reached n = 8" in cell["reach"]
        assert cell["number"].removeprefix("n >= ") in cell["reach"]


@pytest.mark.usefixtures("small")
def test_a_record_that_belongs_nowhere_or_is_missing_is_refused() -> None:
    body = small_body()
    records = {digest: from_envelope(one) for digest, one in body["records"].items()}
    settings = small_settings()
    assert derive(settings, records) == body
    for digest, record in records.items():
        without = {key: one for key, one in records.items() if key != digest}
        if record.kind == "verdict":
            # verdicts are derived, so that the body is the same without them
            assert derive(settings, without) == body
        else:
            with pytest.raises(EvidenceError, match="not in the bundle"):
                derive(settings, without)
    with pytest.raises(EvidenceError, match="belongs to no cell"):
        derive(replace(settings, models=()), records)


def test_sources_of_models(tmp_path: Path) -> None:
    assert source("qwen3-8b") == "qwen3-8b"
    assert source("Qwen/Qwen3-8B") == "qwen3-8b"
    assert source(" full*2 ") == "full*2"
    file = tmp_path / "config.json"
    file.write_text(
        '{"model_type": "llama", "num_hidden_layers": 2, "hidden_size": 64, "vocab_size": 9,'
        ' "num_attention_heads": 4, "num_key_value_heads": 2, "torch_dtype": "bfloat16",'
        ' "max_position_embeddings": 99}'
    )
    read = source(str(file))
    assert str(tmp_path) not in read
    entry, _ = model_entry(read)
    assert (entry["name"], entry["context"], entry["vocabulary"]) == ("config.json (llama)", 99, 9)
    # a name in a file that nobody can check does not reach the report
    named = Architecture.parse("full*2").to_json() | {"name": "gpt-5", "notes": ["best of all"]}
    file.write_text(json.dumps(named))
    assert source(str(file)) == "full*2"


@each("text", ["", "f" * ((1 << 20) + 1)])
def test_a_source_of_another_length_is_refused(text: str) -> None:
    with pytest.raises(EvidenceError):
        Settings(models=(text,))
