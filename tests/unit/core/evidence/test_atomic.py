import errno
import os
from pathlib import Path

import pytest

from separatrix.core.errors import OutputError
from separatrix.core.evidence.folder import write_atomic


def test_writes_and_makes_folders(tmp_path: Path) -> None:
    write_atomic(tmp_path / "a" / "b.txt", "text")
    assert (tmp_path / "a" / "b.txt").read_text() == "text"


def test_a_file_in_the_way_of_a_folder(tmp_path: Path) -> None:
    (tmp_path / "a").write_text("in the way")
    with pytest.raises(OutputError, match="cannot be written"):
        write_atomic(tmp_path / "a" / "b.txt", "text")


def test_disk_full_leaves_the_old_file_and_no_debris(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    target = tmp_path / "x.json"
    target.write_text("old")

    def full(_: int) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(OutputError, match=r"x\.json: .*No space left"):
        write_atomic(target, "new")
    assert target.read_text() == "old"
    assert list(tmp_path.iterdir()) == [target]


def test_an_interrupt_while_writing_leaves_the_old_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    target = tmp_path / "x.json"
    target.write_text("old")

    def interrupt(_: int) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(os, "fsync", interrupt)
    with pytest.raises(KeyboardInterrupt):
        write_atomic(target, "new")
    assert target.read_text() == "old"
    assert list(tmp_path.iterdir()) == [target]
