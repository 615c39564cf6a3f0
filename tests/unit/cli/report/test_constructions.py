"""The recorded table of constructions, derived again."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from support.console import ROOT
from support.tools import loaded

from separatrix.cli.main import run
from separatrix.cli.options import PROVED
from separatrix.cli.report.constructions import FILE, recorded
from separatrix.constructions import CONSTRUCTIONS
from separatrix.constructions.precision import FAMILIES
from separatrix.core.errors import EvidenceError
from separatrix.tasks import parse_task

PAGE = ROOT / "docs" / "constructions.md"
SCRIPT = ROOT / "tools" / "constructions.py"
pytestmark = pytest.mark.skipif(not SCRIPT.exists(), reason="belongs to a checkout")
derived: Any = loaded("constructions") if SCRIPT.exists() else None
ROWS = {row.name: row for row in derived.read_recorded().rows} if SCRIPT.exists() else {}
LONG = ("automaton", "cgram", "encoder", "khop")
"""Whose proofs take longest."""


def test_every_construction_has_a_family_and_a_row() -> None:
    assert set(FAMILIES) == set(CONSTRUCTIONS), "a line of FAMILIES in precision.py is missing"
    assert list(ROWS) == list(CONSTRUCTIONS), "run `make constructions ARGS='--only NAME'`"


def test_the_page_holds_what_is_recorded() -> None:
    assert derived.recorded_table() in PAGE.read_text(encoding="utf-8")


@pytest.mark.parametrize(
    "name",
    [pytest.param(name, marks=[pytest.mark.slow] * (name in LONG)) for name in ROWS],
)
def test_a_stack_is_as_recorded(name: str) -> None:
    row = ROWS[name]
    again = derived.described_row(name, parse_task(row.task))
    assert again == replace(row, exhaustive="", inputs=0, proved={})


@pytest.mark.parametrize("name", ["equality", "parity"])
def test_a_row_is_derived_again_in_small(name: str) -> None:
    for one, found in ROWS[name].proved.items():
        again = derived.limit(name, FAMILIES[name], one, most=16, seconds=60)
        assert again.size == (None if found.size is None else min(found.size, 16))
        assert again.capped == ((found.size or 0) >= 16)


@pytest.mark.slow
@pytest.mark.parametrize("name", ROWS)
def test_a_row_is_derived_again(name: str) -> None:
    row = ROWS[name]
    assert set(row.proved) == set(PROVED)
    for one, found in row.proved.items():
        if found.size is not None:
            # sizes whose proof takes seconds have tests of their own
            assert derived.proved_at(name, FAMILIES[name], min(found.size, 1 << 12), one)
        if not found.capped:
            beyond = FAMILIES[name].least if found.size is None else found.size + 1
            assert not derived.proved_at(name, FAMILIES[name], beyond, one)


@pytest.mark.slow
@pytest.mark.parametrize("name", [n for n in ROWS if 0 < ROWS[n].inputs <= 1 << 15])
def test_every_input_is_run_again(name: str) -> None:
    row = ROWS[name]
    assert derived.every_input(name, FAMILIES[name]) == (row.exhaustive, row.inputs)


def test_all_inputs_are_each_there_once() -> None:
    task = parse_task("equality:n=3")
    rows = [
        tuple(row) for tokens in derived.all_inputs("equality", task) for row in tokens.tolist()
    ]
    # two strings of three bits
    assert len(rows) == len(set(rows)) == 64


def test_the_command_lists_them(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["list", "constructions", "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert [one["construction"] for one in found] == list(CONSTRUCTIONS)
    assert found[0]["recorded"]["layers"] == 1
    assert run(["list", "constructions"]) == 0
    assert "every input" in capsys.readouterr().out.lower()


def test_an_edited_record_is_refused(tmp_path: Path) -> None:
    text = FILE.read_text(encoding="utf-8")
    assert text == derived.text_of(derived.read_recorded())
    path = tmp_path / "recorded.json"
    path.write_text(text.replace('"inputs":', '"inputs": 1'), encoding="utf-8")
    with pytest.raises(EvidenceError, match="make constructions"):
        recorded(path)
