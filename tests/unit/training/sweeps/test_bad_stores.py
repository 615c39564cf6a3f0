"""Stores that are locked, damaged, foreign, full or read-only: one line that says so, and nothing
deleted or overwritten.
"""

from __future__ import annotations

import errno
import os
import random
import shutil
import sqlite3
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest
from support.each import each
from support.toy_runs import pack, run, update

from separatrix.cli.main import run as command
from separatrix.core.errors import StoreError
from separatrix.core.evidence.canonical import sha256
from separatrix.training.sweeps.store import Store


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """A store with a run that has ended and one that waits."""
    made = tmp_path / "runs.db"
    both = pack(0, 1)
    with Store.create(made, version="1") as store:
        store.add("a", both.runs)
        store.take_up(both.keys, "me")
        store.tell(both, update(both, 10, finished=both.runs[:1]), "me")
    return made


def written(folder: Path) -> dict[str, bytes]:
    return {file.name: file.read_bytes() if file.is_file() else b"" for file in folder.iterdir()}


def not_sqlite(path: Path) -> None:
    path.write_text("loss,accuracy\n0.1,0.9\n")


def empty(path: Path) -> None:
    path.write_bytes(b"")


def a_folder(path: Path) -> None:
    path.unlink()
    path.mkdir()


def cut_off(path: Path) -> None:
    data = path.read_bytes()
    path.write_bytes(data[: len(data) // 2])


def cut_in_the_header(path: Path) -> None:
    path.write_bytes(path.read_bytes()[:50])


def a_page_overwritten(path: Path) -> None:
    data = bytearray(path.read_bytes())
    with sqlite3.connect(path) as connection:
        page = connection.execute(
            "SELECT rootpage FROM sqlite_master WHERE name = 'runs'"
        ).fetchone()[0]
    connection.close()
    size = int.from_bytes(data[16:18])
    data[(page - 1) * size : page * size] = bytes(range(256)) * (size // 256)
    path.write_bytes(data)


def another_program(path: Path) -> None:
    path.unlink()
    with sqlite3.connect(path) as connection:
        connection.execute("CREATE TABLE runs (name TEXT)")
    connection.close()


def pragma(text: str) -> Callable[[Path], None]:
    def change(path: Path) -> None:
        with sqlite3.connect(path) as connection:
            connection.execute(f"PRAGMA {text}")
        connection.close()

    return change


def a_table_dropped(path: Path) -> None:
    with sqlite3.connect(path) as connection:
        connection.execute("DROP TABLE metrics")
    connection.close()


@pytest.mark.parametrize(
    ("damage", "said"),
    [
        (not_sqlite, "runs (no SQLite file)"),
        (empty, "it is empty"),
        (a_folder, "a folder; a store is"),
        (cut_off, "store is damaged"),
        (cut_in_the_header, "cut off"),
        (a_page_overwritten, "store is damaged"),
        (another_program, "of another program"),
        (pragma("user_version = 7"), "version 7"),
        (pragma("user_version = 0"), "store version 0"),
        (a_table_dropped, "lacks the table"),
    ],
)
def test_what_is_no_sound_store(path: Path, damage: Callable[[Path], None], said: str) -> None:
    damage(path)
    before = written(path.parent)
    for open_store in (Store.open, Store.create, Store.read):
        with pytest.raises(StoreError) as raised, open_store(path) as store:
            # what a reader does not look at may be damaged without its knowing
            store.rows()
        assert said in str(raised.value)
        assert "\n" not in str(raised.value)
        assert str(path) in str(raised.value)
        assert written(path.parent) == before


def spoilt(data: bytes, rng: random.Random) -> bytes:
    """Some bytes overwritten, inserted or cut off."""
    found = bytearray(data)
    at = rng.randrange(len(found))
    some = rng.randbytes(rng.choice([1, 4, 64, 4096]))
    if rng.random() < 0.2:
        return bytes(found[:at])
    end = at if rng.random() < 0.2 else at + len(some)
    found[at:end] = some[: len(found) - at]
    return bytes(found)


@pytest.mark.parametrize("number", [40, pytest.param(600, marks=pytest.mark.slow)])
def test_stores_spoilt_anywhere(path: Path, number: int) -> None:
    """Whatever was spoilt is told as a StoreError, or is nothing that a command looks at."""
    rng = random.Random(number)
    data = path.read_bytes()
    told: list[str] = []
    for _ in range(number):
        path.write_bytes(spoilt(data, rng))
        for open_store in (Store.open, Store.read):
            try:
                with open_store(path) as store:
                    store.objects()
                    store.sweeps()
                    for row in store.rows():
                        _ = row.run, row.outcome, store.metrics(row.key)
            except StoreError as error:
                told.append(str(error))
        for end in ("-wal", "-shm"):
            path.with_name(path.name + end).unlink(missing_ok=True)
    assert len(told) > number // 2
    assert not any("\n" in text for text in told)


def test_no_store(tmp_path: Path) -> None:
    for open_store in (Store.open, Store.read):
        with pytest.raises(StoreError, match=r"no store at .*none\.db"):
            open_store(tmp_path / "none.db")
    assert list(tmp_path.iterdir()) == []


def test_places_where_none_can_be_made(tmp_path: Path) -> None:
    file = tmp_path / "file"
    file.write_text("")
    with pytest.raises(StoreError, match="file is no folder"):
        Store.create(file / "runs.db")
    with pytest.raises(StoreError, match="File name too long"):
        Store.create(tmp_path / ("x" * 300))
    assert list(tmp_path.iterdir()) == [file]


HOLDER = """
import sqlite3, sys
connection = sqlite3.connect(sys.argv[1], isolation_level=None)
connection.execute("BEGIN IMMEDIATE")
print("held", flush=True)
sys.stdin.read()
"""


@contextmanager
def held(path: Path) -> Iterator[None]:
    """Another program holds the store's lock."""
    with subprocess.Popen(
        [sys.executable, "-c", HOLDER, str(path)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as other:
        assert other.stdout is not None
        assert other.stdin is not None
        assert other.stdout.readline() == "held\n"
        yield
        other.stdin.close()


def test_a_locked_store(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("separatrix.training.sweeps.database.WAIT", 0.1)
    with Store.open(path, version="1") as store:
        with held(path), pytest.raises(StoreError, match=r"is locked by .*waited 0 s"):
            store.add("b", [run(5)])
        # readers need not wait, and the other gone, all is well
        assert store.counts() == {"waiting": 1, "done": 1}
        assert store.add("b", [run(5)]) == 1


def test_a_full_disk(path: Path) -> None:
    with Store.open(path, version="1") as store:
        store.take_up([run(1).key], "me")
        connection = store._database._connection
        pages = connection.execute("PRAGMA page_count").fetchone()[0]
        connection.execute(f"PRAGMA max_page_count = {pages}")
        alone = pack(1)
        with pytest.raises(StoreError, match="disk is full"):
            store.tell(alone, update(alone, 20, checkpoint=bytes(1 << 20)), "me")
        assert store.metrics(alone.keys[0])[-1].step == 10
        connection.execute("PRAGMA max_page_count = 100000")
        store.tell(alone, update(alone, 20, checkpoint=bytes(1 << 20)), "me")
        assert store.metrics(alone.keys[0])[-1].step == 20


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A disk of 1 MiB, where this user may mount one."""
    folder = tmp_path / "disk"
    folder.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", "size=1m", "tmpfs", str(folder)]
    if shutil.which("mount") is None or subprocess.run(mount, capture_output=True).returncode:
        pytest.skip("only who may mount a small disk can fill it")
    yield folder
    subprocess.run(["umount", str(folder)], check=True)


def test_a_disk_that_is_really_full(small_disk: Path) -> None:
    path = small_disk / "runs.db"
    alone = pack(1)
    with Store.create(path, version="1") as store:
        store.add("a", alone.runs)
        store.take_up(alone.keys, "me")
        store.tell(alone, update(alone, 10), "me")
        (small_disk / "filler").write_bytes(bytes(700_000))
        with pytest.raises(StoreError, match="is lost"):
            store.tell(alone, update(alone, 20, checkpoint=bytes(1 << 20)), "me")
        (small_disk / "filler").unlink()
        store.tell(alone, update(alone, 20, checkpoint=bytes(1000)), "me")
    with Store.open(path, version="1") as again:
        assert [metric.step for metric in again.metrics(alone.keys[0])] == [10, 20]


def test_no_room_for_a_new_store(small_disk: Path) -> None:
    (small_disk / "filler").write_bytes(bytes(1_000_000))
    with pytest.raises(StoreError, match=r"disk is full|No space left"):
        Store.create(small_disk / "runs.db")
    assert [file.name for file in small_disk.iterdir()] == ["filler"]


@pytest.fixture
def read_only(path: Path) -> Iterator[Path]:
    """The folder of the store where nobody may write, root included."""
    folder = str(path.parent)
    bind = ["mount", "--bind", folder, folder]
    if shutil.which("mount") is None or subprocess.run(bind, capture_output=True).returncode:
        path.parent.chmod(0o500)
        if os.access(folder, os.W_OK):
            pytest.skip("nothing is read-only to this user")
        yield path
        path.parent.chmod(0o700)
        return
    subprocess.run(["mount", "-o", "remount,ro,bind", folder], check=True)
    yield path
    subprocess.run(["umount", folder], check=True)


def test_a_read_only_folder(read_only: Path) -> None:
    with Store.read(read_only) as store:
        assert store.counts() == {"waiting": 1, "done": 1}
    with pytest.raises(StoreError, match="cannot be written"):
        Store.open(read_only)
    with pytest.raises(StoreError, match="Read-only"):
        Store.create(read_only.parent / "other.db")


def test_a_store_copied_without_what_stands_beside_it(path: Path) -> None:
    copy = path.with_name("copy.db")
    alone = pack(1)
    with Store.open(path, version="1") as store:
        store.take_up(alone.keys, "me")
        store.tell(alone, update(alone, 20), "me")
        shutil.copy(path, copy)
    with Store.open(copy, version="1") as copied:
        # whoever lives works on the store that this is a copy of
        assert copied.take_up(alone.keys, "you")[0] == list(alone.keys)
        assert [metric.step for metric in copied.metrics(alone.keys[0])] == [10]


def test_a_store_moved_while_it_is_used(path: Path) -> None:
    alone = pack(1)
    with Store.open(path, version="1") as store:
        store.take_up(alone.keys, "me")
        moved = path.rename(path.with_name("moved.db"))
        with pytest.raises(StoreError, match="removed or replaced"):
            store.tell(alone, update(alone, 20), "me")
        moved.rename(path)
        store.tell(alone, update(alone, 20), "me")
        # alone, the run does not go on from where its pack stood: this is the start of its curve
        assert [metric.step for metric in store.metrics(alone.keys[0])] == [20]


def test_a_link_to_a_store(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = path.parent / "elsewhere"
    folder.mkdir()
    link = folder / "link.db"
    link.symlink_to(path)
    monkeypatch.chdir(folder)
    with Store.open("link.db", version="1") as store:
        store.take_up([run(1).key], "me")
        monkeypatch.chdir(path.parent)
        # the log stands beside the file itself
        with Store.open(link, version="1") as other:
            assert other.take_up([run(1).key], "you")[0] == []
        store.release("me")
    assert [file.name for file in folder.iterdir()] == ["link.db"]


def test_a_store_with_two_names(path: Path) -> None:
    """Of 60 results that two processes wrote so, 27 were lost."""
    other = path.with_name("other.db")
    # as a process leaves it that is killed while it makes a store
    half_made = path.with_name(f".{path.name}.0123abcd")
    for link in (other, half_made):
        link.hardlink_to(path)
    for name in (path, other):
        with pytest.raises(StoreError, match="second name"):
            Store.open(name)
        assert Store.read(name).counts() == {"waiting": 1, "done": 1}
    assert not half_made.exists()
    other.unlink()
    half_made.hardlink_to(path)
    Store.open(path).close()


def test_where_no_file_can_be_locked_nothing_is_claimed(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: object) -> None:
        raise OSError(errno.ENOLCK, os.strerror(errno.ENOLCK))

    with Store.open(path, version="1") as store:
        with monkeypatch.context() as patch:
            patch.setattr("fcntl.flock", refuse)
            with pytest.raises(StoreError, match=os.strerror(errno.ENOLCK)):
                store.take_up([run(1).key], "me")
        assert store.counts() == {"waiting": 1, "done": 1}
        assert store.take_up([run(1).key], "me")[0] == [run(1).key]
    # closed, it leaves nothing beside it
    assert [file.name for file in path.parent.iterdir()] == [path.name]


def test_a_pipe(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(StoreError, match="is no ordinary file"):
        Store.read(tmp_path / "pipe")


def test_a_run_that_this_version_cannot_read(path: Path) -> None:
    with sqlite3.connect(path) as connection:
        connection.create_function("sha256", 1, sha256)
        connection.execute(
            "UPDATE runs SET specification = json_set(specification, '$.colour', 'red')"
            " WHERE status = 'waiting'"
        )
        connection.execute("UPDATE runs SET key = sha256(specification) WHERE status = 'waiting'")
    connection.close()
    with Store.read(path) as store:
        with pytest.raises(StoreError, match="'colour'"):
            _ = store.rows(status="waiting")[0].run
        assert store.rows(status="done")[0].run == run(0).canonical()


ODD = ("'x'", "'[1]'", "-1", "9e999", "x'ff00'", "CAST(x'ff' AS TEXT)")
READ = ("list --sort -accuracy", "list --json", "summary --json", "export r.csv m.csv")


@each(
    "column",
    [
        *("runs.specification", "runs.created", "runs.seconds"),
        *("metrics.loss", "members.run", "checkpoints.members"),
    ],
)
def test_what_somebody_has_written_into_a_store_by_hand(
    column: str, path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whatever a column holds, each command prints, or says in one line what is wrong."""
    monkeypatch.chdir(path.parent)
    before, (table, name) = path.read_bytes(), column.split(".")
    for value in ODD:
        path.write_bytes(before)
        with sqlite3.connect(path) as connection:
            asked = "SELECT sql FROM sqlite_master WHERE name = 'ended_stays'"
            (trigger,) = connection.execute(asked).fetchone()
            connection.execute("DROP TRIGGER ended_stays")
            connection.execute(f"UPDATE OR REPLACE {table} SET {name} = {value}")
            connection.execute(trigger)
        connection.close()
        for words in (*READ, f"show {run(0).key}"):
            for file in path.parent.glob("*.csv"):
                file.unlink()
            assert command(["runs", *words.split(), "--store", path.name]) in (0, 2), (value, words)
        with suppress(StoreError), Store.open(path, version="1") as store:
            store.add("a", [run(1)])
            store.take_up([run(1).key], "you")


def test_a_run_that_waits_with_another_text_is_damaged_until_its_sweep_goes_on(path: Path) -> None:
    with sqlite3.connect(path) as connection:
        connection.execute(
            "UPDATE runs SET specification = replace(specification, '\"seed\":1', '\"seed\":7')"
            " WHERE status = 'waiting'"
        )
    connection.close()
    with Store.open(path, version="1") as store:
        assert store.run(run(1).key).status == "damaged"
        assert store.add("a", [run(0), run(1)]) == 0
        assert store.run(run(1).key).status == "waiting"
        assert store.run(run(1).key).run == run(1).canonical()


def test_whoever_may_write_files_of_the_folder_may_write_the_store(tmp_path: Path) -> None:
    """A group that shares a folder has an umask of 2, and nothing of the making stays behind."""
    before = os.umask(0o002)
    try:
        Store.create(tmp_path / "runs.db").close()
    finally:
        os.umask(before)
    (file,) = tmp_path.iterdir()
    assert file.stat().st_mode & 0o777 == 0o664
