"""Outcomes that were changed on the disk: named, and never used; stores of an earlier version."""

from __future__ import annotations

import json
import sqlite3
from pathlib import Path

import numpy as np
import pytest
from support.toy_runs import outcome, pack, update

from separatrix.cli.main import run as command
from separatrix.core.errors import StoreError
from separatrix.training.sweeps.database import UPGRADES
from separatrix.training.sweeps.schema import VERSION, seals
from separatrix.training.sweeps.store import Store

BOTH = pack(0, 1)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """A store of two runs that are done, 2,000 of 2,048 answers right."""
    made = tmp_path / "runs.db"
    with Store.create(made, version="1") as store:
        store.add("a", BOTH.runs)
        store.take_up(BOTH.keys, "me")
        store.tell(BOTH, update(BOTH, 40, finished=BOTH.runs, checkpoint=None), "me")
    return made


def changed(path: Path, found: bytes, instead: bytes, places: int = 1) -> None:
    """The file with some bytes of it changed, as a disk might."""
    data = path.read_bytes()
    assert data.count(found) >= places, data.count(found)
    path.write_bytes(data.replace(found, instead, places))


def statuses(path: Path) -> list[str]:
    with Store.read(path) as store:
        found = [row.status for row in store.rows("a")]
        assert [json.loads(text)["status"] for text in store.objects("a")] == found
        assert [store.run(row.key).status for row in store.rows()] == found
        assert sum(store.counts("a").values()) == 2
        for status in found:
            assert store.counts()[status] == found.count(status) == len(store.rows(status=status))
    return found


@pytest.mark.parametrize(
    ("found", "instead"),
    [
        # the first is the last that was written
        (b'"correct":2000', b'"correct":2001'),
        (b'"seconds":1.5', b'"seconds":1.7'),
        (b'"seed":1,"status"', b'"seed":3,"status"'),
        (b'"parameters":900', b'"parameters":901'),
        (b'{"bits":', b'["bits":'),
    ],
)
def test_a_changed_outcome_is_named_and_not_used(path: Path, found: bytes, instead: bytes) -> None:
    assert statuses(path) == ["done", "done"]
    changed(path, found, instead)
    assert sorted(statuses(path)) == ["damaged", "done"]
    with Store.read(path) as store:
        (damaged,) = store.rows(status="damaged")
        assert damaged.outcome is None
        assert "hash is another" in damaged.error
        assert json.loads(store.objects(status="damaged")[0])["outcome"] is None


@pytest.mark.parametrize("column", ["specification", "status", "version"])
def test_what_an_outcome_belongs_to_is_hashed_with_it(path: Path, column: str) -> None:
    values = {
        "specification": "replace(specification, '\"steps\":1000', '\"steps\":1001')",
        "status": "'diverged'",
        "version": "'2'",
    }
    with sqlite3.connect(path) as connection:
        (trigger,) = connection.execute(
            "SELECT sql FROM sqlite_master WHERE name = 'ended_stays'"
        ).fetchone()
        connection.execute("DROP TRIGGER ended_stays")
        connection.execute(f"UPDATE runs SET {column} = {values[column]} WHERE id = 1")
        connection.execute(trigger)
    connection.close()
    assert statuses(path) == ["damaged", "done"]
    with Store.open(path, version="1") as store:
        # tried again, it is what its sweep says, not what stood there
        assert store.retry(BOTH.keys) == 1
        assert store.add("a", BOTH.runs) == 0
        assert [row.run for row in store.rows("a")] == [one.canonical() for one in BOTH.runs]
        assert [row.status for row in store.rows("a")] == ["waiting", "done"]


@pytest.mark.parametrize("instead", [b'"correct":1999', b'"correct",2000'])
def test_a_damaged_run_is_trained_again_when_asked(path: Path, instead: bytes) -> None:
    changed(path, b'"correct":2000', instead)
    with Store.open(path, version="1") as store:
        (key,) = (row.key for row in store.rows(status="damaged"))
        # by itself nothing happens to it
        assert store.take_up(BOTH.keys, "me")[0] == []
        assert store.retry(BOTH.keys) == 1
        assert store.retry(BOTH.keys) == 0
        assert store.take_up(BOTH.keys, "me")[0] == [key]
        (one,) = (one for one in BOTH.runs if one.key == key)
        alone = pack(one.seed)
        store.tell(alone, update(alone, 40, finished=[one], checkpoint=None), "me")
        assert [row.status for row in store.rows("a")] == ["done", "done"]
        assert [row.outcome for row in store.rows("a")] == [outcome(each) for each in BOTH.runs]
        # what was damaged is kept, and still not used
        kept = store.rows(where="replaced = 1 AND key = ?", values=(key,))
        assert [(row.status, row.outcome) for row in kept] == [("damaged", None)]


def test_commands_name_what_is_damaged(path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    changed(path, b'"correct":2000', b'"correct":1999')
    with Store.read(path) as store:
        (row,) = store.rows(status="damaged")
    assert command(["runs", "list", "--store", str(path)]) == 0
    assert "1 done, 1 damaged" in capsys.readouterr().out
    assert command(["runs", "show", row.key[:16], "--store", str(path)]) == 0
    assert "hash is another" in " ".join(capsys.readouterr().out.split())
    assert command(["runs", "summary", "--store", str(path)]) == 0
    out = " ".join(capsys.readouterr().out.split())
    assert "0 of 1" in out
    assert f"is another: {row.key[:12]}" in out


def test_what_summaries_are_made_of_is_sealed(path: Path) -> None:
    """A number that was changed in the index alone, where no text is looked at."""
    from separatrix.training.sweeps.statistics import summary

    assert summary("a", path).count("done") == 2
    begin, end = page_of(path, "shown")
    data = path.read_bytes()
    # the number 2,000 as the index holds it: two bytes
    at = data.index((2000).to_bytes(2), begin, end)
    path.write_bytes(data[:at] + (1999).to_bytes(2) + data[at + 2 :])
    found = summary("a", path)
    assert (found.count("done"), found.count("damaged"), len(found.damaged)) == (1, 1, 1)


def test_the_text_of_a_cell_is_checked(path: Path) -> None:
    from separatrix.training.sweeps.statistics import summary

    with sqlite3.connect(path) as connection:
        connection.execute("UPDATE cells SET specification = replace(specification, 'n=4', 'n=5')")
    connection.close()
    with pytest.raises(StoreError, match="cell is another"):
        summary("a", path)


def test_a_seal_sees_every_change_of_one_number() -> None:
    rng = np.random.default_rng(0)
    columns = [rng.integers(-(2**63), 2**63 - 1, 1000) for _ in range(9)]
    before = seals(columns)
    for place in range(9):
        for bit in range(64):
            other = [*columns]
            other[place] = (columns[place].view(np.uint64) ^ np.uint64(1 << bit)).view(np.int64)
            assert (seals(other) != before).all()


def test_a_store_of_an_earlier_version_is_named(path: Path) -> None:
    """With what brings it over; nothing of it is read or changed."""
    for version in (1, VERSION - 1):
        with sqlite3.connect(path) as connection:
            connection.execute(f"PRAGMA user_version = {version}")
        connection.close()
        before = path.read_bytes()
        for opened in (Store.read, Store.open, Store.create):
            with pytest.raises(StoreError, match=".*".join(UPGRADES)):
                opened(path)
        assert path.read_bytes() == before


def page_of(path: Path, name: str) -> tuple[int, int]:
    """Where the first page of a table or an index begins in the file, and ends."""
    with sqlite3.connect(path) as connection:
        page, size = connection.execute(
            "SELECT rootpage, (SELECT page_size FROM pragma_page_size) FROM sqlite_master"
            " WHERE name = ?",
            (name,),
        ).fetchone()
    connection.close()
    return (page - 1) * size, page * size


def test_a_key_that_its_index_still_has_is_hashed_as_the_row_has_it(path: Path) -> None:
    key = BOTH.keys[0]
    wrong = ("0" if key[0] != "0" else "1") + key[1:]
    begin, end = page_of(path, "runs")
    data = path.read_bytes()
    at = data.index(key.encode(), begin, end)
    path.write_bytes(data[:at] + wrong.encode() + data[at + len(key) :])
    with Store.read(path) as store:
        found = {row.key: row.status for row in store.rows("a")}
        assert found == {wrong: "damaged", BOTH.keys[1]: "done"}
        assert store.counts("a") == {"done": 1, "damaged": 1}


def test_an_index_that_holds_no_numbers_is_named(path: Path) -> None:
    """Types of numbers of two bytes, each in turn made that of a text of as many."""
    begin, end = page_of(path, "shown")
    data, said = path.read_bytes(), list[str]()
    for at in range(begin, end):
        if data[at] == 2:
            path.write_bytes(data[:at] + bytes([13 + 2 * 2]) + data[at + 1 :])
            try:
                with Store.read(path) as store:
                    store.shown("a")
            except StoreError as error:
                said.append(str(error))
    assert any("index holds" in text for text in said)


def test_a_sweep_without_runs_shows_none(path: Path) -> None:
    with Store.read(path) as store:
        assert store.shown("b") == ([], set())


def test_a_store_cut_off_within_its_last_page_is_named(path: Path) -> None:
    path.write_bytes(path.read_bytes()[:-1000])
    with pytest.raises(StoreError, match="cut off"):
        Store.read(path)
