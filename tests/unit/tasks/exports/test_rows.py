"""Exports: which rows, in which split, and that a folder appears whole or not at all."""

from __future__ import annotations

import collections
import errno
import hashlib
import json
import math
import os
import shutil
import subprocess
import sys
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest
from support.memory import PEAK

from separatrix.core.errors import (
    MissingExtraError,
    OutputError,
    SeparatrixError,
    SizeError,
    UnknownNameError,
)
from separatrix.tasks import Eva, parse_task
from separatrix.tasks.exports import FORMATS, Exported, export
from separatrix.tasks.exports.job import Distinct, Exhausted
from separatrix.tasks.exports.source import Drawn

SMALL = {"train": 4, "validation": 2, "test": 3}


def write(out: Path, task: Any = None, format: str = "jsonl", **options: Any) -> Exported:
    return export(
        task or Eva(n=6), format=format, out=out, splits=options.pop("splits", SMALL), **options
    )


def rows(folder: Path, split: str) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (folder / f"{split}.jsonl").read_text().splitlines()]


def tokens(folder: Path, *splits: str) -> list[tuple[int, ...]]:
    return [tuple(row["tokens"]) for split in splits for row in rows(folder, split)]


def content(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in folder.rglob("*") if path.is_file()}


@pytest.mark.parametrize("format", FORMATS)
def test_the_same_seed_gives_the_same_bytes(tmp_path: Path, format: str) -> None:
    first, again, other = (
        write(tmp_path / name, format=format, seed=seed)
        for name, seed in (("a", 1), ("b", 1), ("c", 2))
    )
    assert content(tmp_path / "a") == content(tmp_path / "b")
    assert first.sha256 == again.sha256 != other.sha256


@pytest.mark.parametrize("format", FORMATS)
def test_checksums_are_those_of_the_files(tmp_path: Path, format: str) -> None:
    made = write(tmp_path / "a", format=format)
    listed = json.loads((tmp_path / "a" / "metadata.json").read_text())["files"]
    found = {
        path.relative_to(tmp_path / "a").as_posix(): path.read_bytes()
        for path in (tmp_path / "a").rglob("*")
        if path.is_file()
    }
    assert set(made.paths) == {tmp_path / "a" / name for name in found}
    assert {
        name: {"sha256": hashlib.sha256(data).hexdigest(), "bytes": len(data)}
        for name, data in found.items()
    } == listed | {
        "metadata.json": {
            "sha256": hashlib.sha256(found["metadata.json"]).hexdigest(),
            "bytes": len(found["metadata.json"]),
        }
    }
    lines = "".join(
        f"{hashlib.sha256(data).hexdigest()}  {name}\n" for name, data in sorted(found.items())
    )
    assert made.sha256 == hashlib.sha256(lines.encode()).hexdigest()


@pytest.mark.parametrize(
    ("text", "instances"),
    [("eva:n=3,V=2", 24), ("eva:n=1,V=2", 2), ("seqcomp:L=1,m=2", 8), ("index:n=1,V=400", 400)],
)
def test_all_instances_there_are_and_no_more(tmp_path: Path, text: str, instances: int) -> None:
    """Functions and arguments are free: V^n n instances, all of them given out once, and one
    more refused.
    """
    task = parse_task(text)
    with pytest.raises(
        SizeError,
        match=rf"{text}.* {instances + 1} rows .* {instances} there",
    ):
        write(tmp_path / "a", task, splits={"train": instances, "validation": 0, "test": 1})
    assert list(tmp_path.iterdir()) == []
    write(tmp_path / "a", task, splits={"train": instances - 1, "validation": 0, "test": 1})
    assert len(set(tokens(tmp_path / "a", "train", "test"))) == instances


def test_too_many_rows_are_refused_and_a_fifth_of_them_can_be_had(tmp_path: Path) -> None:
    splits = {"train": 300, "validation": 100, "test": 100}
    with pytest.raises(SizeError, match="500 rows"):
        write(tmp_path / "a", parse_task("equality:n=6"), splits=splits)
    fewer = {name: rows // 5 for name, rows in splits.items()}
    assert write(tmp_path / "a", parse_task("equality:n=6"), splits=fewer).rows == fewer


def test_answers_stay_as_frequent_as_they_are_drawn(tmp_path: Path) -> None:
    """Of the 2^18 pairs of strings of 9 bits 2^9 are equal at most, but half of all draws: a
    repeated one gives way to another equal pair.
    """
    write(
        tmp_path / "a",
        parse_task("equality:n=9"),
        splits={"train": 300, "validation": 50, "test": 50},
    )
    labels = [row["target"] for split in SMALL for row in rows(tmp_path / "a", split)]
    assert len(set(tokens(tmp_path / "a", *SMALL))) == 400
    assert 140 < sum(labels) < 260  # six standard deviations of 400 fair coins


def test_an_answer_without_instances_left_is_made_up_for_by_all_others(tmp_path: Path) -> None:
    """One string of 20 bits is all ones, though every count is drawn equally often: no other
    count then stands out by much.
    """
    write(
        tmp_path / "a",
        parse_task("counting:n=20"),
        splits={"train": 2000, "validation": 0, "test": 100},
    )
    labels = collections.Counter(row["target"] for row in rows(tmp_path / "a", "train"))
    assert labels[0] + labels[20] <= 2
    assert labels[1] <= 20
    mean = 2000 / 21
    deviation = math.sqrt(2000 / 21 * 20 / 21)
    assert (
        max(labels.values()) <= mean + 5 * deviation
    )  # of the draws themselves, the largest of 21 may pass 3 deviations


def test_drawing_alone_would_not_do() -> None:
    """Six rows of answers 0, 0, 1 by turns, where 1 has one instance: 0 may stand in for it, but
    not beyond its share.
    """
    draws = [((bytes([n]),), 0) if n % 3 else ((b"one",), 1) for n in range(200)]
    drawn = Drawn([key for key, _ in draws], [answer for _, answer in draws], lambda rows: {})
    # at most 4 + 3 sqrt(4/3) = 7.46 of the answer 0
    [(_, rows)] = Distinct().chosen([drawn], 6, Fraction(2, 3))
    assert [drawn.answers[row] for row in rows] == [1, 0, 0, 0, 0, 0]
    with pytest.raises(Exhausted):
        collections.deque(Distinct().chosen([drawn] * 100, 300, Fraction(1, 2)), maxlen=0)


def test_rows_and_questions_differ_where_one_place_of_several_is_asked_about(
    tmp_path: Path,
) -> None:
    """The question about a short prefix says little of its row: no row twice, and no question
    twice.
    """
    write(
        tmp_path / "a",
        parse_task("mqar:vocab_size=8,input_seq_len=8,num_kv_pairs=2"),
        splits={"train": 400, "validation": 50, "test": 50},
    )
    drawn = tokens(tmp_path / "a", "train", "validation", "test")
    prompts = [row["prompt"] for split in SMALL for row in rows(tmp_path / "a", split)]
    assert len(drawn) == len(set(drawn)) == len(set(prompts)) == 500


def test_what_is_tested_does_not_depend_on_how_much_is_trained_on(tmp_path: Path) -> None:
    write(tmp_path / "a", splits={"train": 0, "validation": 0, "test": 5})
    write(tmp_path / "b", splits={"train": 300, "validation": 7, "test": 5})
    assert (tmp_path / "a" / "test.jsonl").read_bytes() == (
        tmp_path / "b" / "test.jsonl"
    ).read_bytes()
    assert not (tmp_path / "a" / "train.jsonl").exists()


def test_a_split_that_is_not_named_has_the_usual_rows(tmp_path: Path) -> None:
    assert write(tmp_path / "a", splits={"train": 1}).rows == {
        "train": 1,
        "validation": 1000,
        "test": 1000,
    }
    assert write(tmp_path / "b", format="lm-eval", splits={"test": 2}).rows == {
        "train": 100,
        "test": 2,
    }


def test_progress_ends_with_all_rows(tmp_path: Path) -> None:
    seen: list[tuple[int, int]] = []
    write(tmp_path / "a", progress=lambda done, total: seen.append((done, total)))
    assert seen[-1] == (9, 9)
    assert seen == sorted(seen)


@pytest.mark.parametrize(
    ("options", "error", "message"),
    [
        (
            {"format": "json"},
            UnknownNameError,
            "unknown format 'json'",
        ),
        ({"splits": {"tset": 1}}, UnknownNameError, "unknown split 'tset'."),
        ({"splits": {"train": -1}}, SizeError, "--rows train is -1"),
        ({"splits": {"train": True}}, SizeError, "train is True"),
        (
            {"splits": {"train": 0, "validation": 0, "test": 0}},
            SizeError,
            "--rows test=N",
        ),
        (
            {"splits": {"test": 0}, "format": "lm-eval"},
            SizeError,
            "--rows test=N",
        ),
        ({"seed": -1}, SizeError, "seed is -1"),
        ({"seed": 2**64}, SizeError, "seed is"),
        (
            {"task": Eva(n=10**9)},
            SizeError,
            "eva:n=1000000000,V=1000000000",
        ),
        (
            {"task": parse_task("seqcomp:L=3,m=" + "9" * 90 + ",n_1=1,n_2=1")},
            SizeError,
            r"more than 2\^24",
        ),
        (
            {"task": Eva(n=9999), "splits": {"train": 10**6}},
            SizeError,
            "1,002,000 rows of 10,000",
        ),
    ],
)
def test_bad_input(
    tmp_path: Path, options: dict[str, Any], error: type[SeparatrixError], message: str
) -> None:
    with pytest.raises(error, match=message) as caught:
        write(tmp_path / "a", **options)
    assert "\n" not in str(caught.value)
    assert list(tmp_path.iterdir()) == []


def test_without_pyarrow(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys.modules["separatrix.tasks.exports"], "find_spec", lambda name: None)
    with pytest.raises(
        MissingExtraError,
        match="'export'",
    ):
        write(tmp_path / "a", format="hf")
    write(tmp_path / "b", format="jsonl")
    write(tmp_path / "c", format="lm-eval")


@pytest.mark.parametrize("kind", ["folder", "file", "link to nowhere"])
def test_an_output_that_exists(tmp_path: Path, kind: str) -> None:
    out = tmp_path / "a"
    {"folder": out.mkdir, "file": out.touch, "link to nowhere": lambda: out.symlink_to("nowhere")}[
        kind
    ]()
    with pytest.raises(OutputError, match="a: exists already"):
        write(out)
    assert list(tmp_path.iterdir()) == [out]


def test_an_output_that_cannot_be_written(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(OutputError, match=r"a: cannot be .*a file"):
        write(tmp_path / "file" / "a")


@pytest.mark.parametrize("format", FORMATS)
def test_an_interrupt_leaves_nothing(tmp_path: Path, format: str) -> None:
    def interrupt(done: int, total: int) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        write(tmp_path / "a", format=format, progress=interrupt)
    assert list(tmp_path.iterdir()) == []


def test_an_interrupt_leaves_no_folder_above_but_those_that_were_there(tmp_path: Path) -> None:
    def interrupt(done: int, total: int) -> None:
        raise KeyboardInterrupt

    (tmp_path / "old").mkdir()
    for out in (
        tmp_path / "new" / "newer" / "a",
        tmp_path / "old" / "new" / "a",
        tmp_path / "old" / "a",
    ):
        with pytest.raises(KeyboardInterrupt):
            write(out, progress=interrupt)
        assert list(tmp_path.rglob("*")) == [tmp_path / "old"]

    def other(done: int, total: int) -> None:
        (tmp_path / "new" / "other").touch()
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        write(tmp_path / "new" / "newer" / "a", progress=other)
    assert set(tmp_path.rglob("*")) == {
        tmp_path / "old",
        tmp_path / "new",
        tmp_path / "new" / "other",
    }


@pytest.mark.parametrize("format", FORMATS)
def test_a_full_disk_leaves_nothing(
    tmp_path: Path, format: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(_: int) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(OutputError, match=r"a: .*No space left"):
        write(tmp_path / "a", format=format)
    assert list(tmp_path.iterdir()) == []


def test_files_are_readable_as_the_users_others(tmp_path: Path) -> None:
    (tmp_path / "plain").mkdir()
    (tmp_path / "file").touch()
    write(tmp_path / "a", format="hf")
    assert (
        (tmp_path / "a").stat().st_mode
        == (tmp_path / "a" / "data").stat().st_mode
        == (tmp_path / "plain").stat().st_mode
    )
    assert {path.stat().st_mode for path in (tmp_path / "a").rglob("*.*")} == {
        (tmp_path / "file").stat().st_mode
    }


@pytest.mark.slow
@pytest.mark.parametrize("format", ["hf", "jsonl"])
def test_ten_thousand_long_rows_in_bounded_memory(tmp_path: Path, format: str) -> None:
    """48 million tokens, some 400 MB as text: in less than 400 MB of memory, most of it the
    libraries'.
    """
    program = (
        f"{PEAK}from pathlib import Path; from separatrix.tasks.exports import export; from"
        " separatrix.tasks import parse_task\nexport(parse_task('seqcomp:L=3,n=4096'),"
        f" format='{format}', out=Path('a'))\nprint(peak())"
    )
    done = subprocess.run(
        [sys.executable, "-c", program],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=True,
        timeout=300,
    )
    shutil.rmtree(tmp_path / "a")
    assert int(done.stdout) < 400 * 1024
