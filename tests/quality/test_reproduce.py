"""The main job on two small cells: evidence in each, equal hashes on a second run, resumption,
and no edit that survives `verify`.
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest

import separatrix.checks.verify
import separatrix.cli.reproduce as reproduce
from separatrix.cards.table.body import Settings
from separatrix.cards.table.plan import KINDS, Kind
from separatrix.checks.verify import Checked, verify
from separatrix.cli.report.html import verify_path
from separatrix.cli.reproduce import Job, perform, reproduce_table, runs_of, stored
from separatrix.core.errors import CheckFailed, OutputError, SeparatrixError
from separatrix.core.evidence.bundles import bundle_envelope
from separatrix.core.evidence.canonical import canonical, sha256
from separatrix.core.evidence.records import Evidence, from_envelope
from separatrix.training.engine import Trainer
from separatrix.training.packs import Pack

TINY = {"steps": 20, "batch": 32, "tested": 64}


def small_settings() -> Settings:
    return Settings(kind="small", models=("recurrentgemma-2b",))


@pytest.fixture(scope="module", name="small")
def _small() -> Iterator[pytest.MonkeyPatch]:
    """Two cells with twenty steps of training."""
    kind = Kind(
        rows=("linear", "sparse"),
        columns=("twosum",),
        trained={"twosum": (4,)},
        steps={"twosum": 20},
        seeds=2,
        tested=64,
        beside=False,
    )
    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(KINDS, "small", kind)
        yield patch


@pytest.fixture(scope="module", name="made")
def _made(
    small: pytest.MonkeyPatch, tmp_path_factory: pytest.TempPathFactory
) -> tuple[Path, list[Job]]:
    """The folder of a run whose jobs were done here, one after the other, and these jobs: starting
    workers takes longer than the work.

    Its pages and charts are left to the run that resumes.
    """
    out = tmp_path_factory.mktemp("made")
    done = []

    def one_by_one(
        jobs: Sequence[Job], store: Path, *, workers: int, show: bool
    ) -> dict[Job, list[dict[str, Any]]]:
        done.extend(dict.fromkeys(jobs))
        return {job: perform(job, store) for job in done}

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(reproduce, "run_jobs", one_by_one)
        patch.setattr("separatrix.cli.report.html.write_report", lambda body, path: None)
        reproduce_table(small_settings(), out, show=False)
    return out, done


def saved_or_done_here(
    jobs: Sequence[Job], store: Path, *, workers: int, show: bool
) -> dict[Job, list[dict[str, Any]]]:
    """`run_jobs` without workers."""
    return {job: stored(job, store) or perform(job, store) for job in jobs}


@pytest.mark.usefixtures("small")
@pytest.mark.slow
@pytest.mark.parametrize("worker", [False, True])
def test_resumption_does_what_is_missing_and_gives_the_same_hashes(
    worker: bool, made: tuple[Path, list[Job]], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of the results of a run here, one is cut off and one removed: these two are done again,
    and every byte is as it was.
    """
    folder, jobs = made
    if not worker:
        monkeypatch.setattr(reproduce, "run_jobs", saved_or_done_here)
    out = tmp_path / "again"
    shutil.copytree(folder / ".saved", out / ".saved")
    files = {job: out / ".saved" / f"{job.key}.json" for job in jobs}
    assert set(files.values()) == set((out / ".saved").glob("*.json"))
    cut, gone = [job for job in jobs if job.do == "train"]
    files[cut].write_text(files[cut].read_text()[:-10])
    files[gone].unlink()
    whole = {path: path.stat().st_mtime_ns for job, path in files.items() if job not in (cut, gone)}
    body = reproduce_table(small_settings(), out, workers=1, show=False)
    assert (out / "evidence.json").read_bytes() == (folder / "evidence.json").read_bytes()
    assert (out / "report.html").is_file()
    assert {path: path.stat().st_mtime_ns for path in whole} == whole  # not done again
    assert [files[job].read_bytes() for job in jobs] == [
        (folder / ".saved" / files[job].name).read_bytes() for job in jobs
    ]
    assert {record["kind"] for record in body["records"].values()} == {
        "verdict",
        "certificate",
        "measurement",
    }
    assert verify_path(out)
    page = out / "report.html"
    page.write_text(page.read_text().replace("FAILS", "SOLVABLE", 1))
    with pytest.raises(CheckFailed):
        verify_path(out)


@pytest.mark.slow
@pytest.mark.usefixtures("small")
def test_twice_the_same_hashes_and_resumption(tmp_path: Path) -> None:
    """All jobs in workers, twice. The fast test has them done by this process, and two of them
    again.
    """
    first = reproduce_table(small_settings(), tmp_path / "a", show=False)
    again = reproduce_table(small_settings(), tmp_path / "b", show=False)
    assert (tmp_path / "a" / "evidence.json").read_bytes() == (
        tmp_path / "b" / "evidence.json"
    ).read_bytes()
    assert first == again
    results = sorted((tmp_path / "a" / ".saved").glob("*.json"))
    results[0].write_text(results[0].read_text()[:-10])  # cut off: done again
    marked = results[1].stat().st_mtime_ns
    assert reproduce_table(small_settings(), tmp_path / "a", show=False) == first
    assert results[1].stat().st_mtime_ns == marked  # whole: not done again
    kinds = {record["kind"] for record in first["records"].values()}
    assert kinds == {"verdict", "certificate", "measurement"}
    assert verify_path(tmp_path / "a")


@pytest.mark.usefixtures("small")
@pytest.mark.parametrize("afresh", [False, pytest.param(True, marks=pytest.mark.slow)])
@pytest.mark.slow
def test_no_edit_of_a_record_or_of_the_table_survives(
    made: tuple[Path, list[Job]], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, afresh: bool
) -> None:
    """Not `afresh`: a record that no edit has touched, by its hash, is checked once and not once
    for every edit.
    """
    whole = json.loads((made[0] / "evidence.json").read_text())
    checked: dict[str, Checked] = {}

    def once(record: Evidence, *, folder: Path) -> Checked:
        if record.digest not in checked:
            checked[record.digest] = verify(record, folder=folder)
        return checked[record.digest]

    if not afresh:
        monkeypatch.setattr(separatrix.checks.verify, "verify", once)
    file = tmp_path / "edited.json"
    file.write_text(canonical(whole))
    assert verify_path(file)
    for edited in _edits(whole):
        file.write_text(canonical(edited))
        with pytest.raises(SeparatrixError):
            verify_path(file)


def _edits(whole: dict[str, Any]):
    """Edits with hashes left alone, and edits of the table with its hash made to fit."""
    for digest in whole["body"]["records"]:
        for name in (
            "status",
            "statement",
            "inputs",
            "answers",
            "output",
            "correct",
            "intervals",
            "chance",
            "task",
            "architecture",
        ):
            edited = json.loads(json.dumps(whole))
            body = edited["body"]["records"][digest]["body"]
            if name in body:
                body[name] = _changed(body[name])
                yield edited
                yield bundle_envelope(edited["body"])
    for name, value in (
        ("status", "OPEN"),
        ("headline", "it is so"),
        ("records", []),
        ("number", "n >= 3"),
    ):
        edited = json.loads(json.dumps(whole))
        edited["body"]["cells"][0][name] = value
        yield bundle_envelope(edited["body"])
    for field in ("cells", "models"):
        for name in whole["body"][field][0]:
            edited = json.loads(json.dumps(whole))
            del edited["body"][field][0][name]
            yield bundle_envelope(edited["body"])
    for name, value in (
        ("spec", "full"),
        ("context", 7),
        ("vocabulary", 2),
        ("assumptions", []),
    ):
        edited = json.loads(json.dumps(whole))
        edited["body"]["models"][0][name] = value
        yield bundle_envelope(edited["body"])
    for name, value in (
        ("status", "SOLVABLE"),
        ("n", "3"),
        ("text", "never"),
        ("theorem", "II"),
        ("record", None),
    ):
        edited = json.loads(json.dumps(whole))
        edited["body"]["models"][0]["lines"][0][name] = value
        yield bundle_envelope(edited["body"])
    edited = json.loads(json.dumps(whole))
    edited["body"]["cells"][0]["records"].pop()
    yield bundle_envelope(edited["body"])


def _changed(value: Any) -> Any:
    if isinstance(value, list):
        return [_changed(value[0]), *value[1:]]
    return value + 1 if isinstance(value, int) else value + "0"


def test_saved_results_belong_to_their_job_and_code(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    job = Job(
        do="train",
        task="eva:n=4,V=4",
        architecture="full @ heads=1, head_dim=4",
        seeds=(0, 1),
        training=tuple(TINY.items()),
    )
    result = perform(job, tmp_path)
    assert stored(job, tmp_path) == result
    assert (
        stored(
            Job(
                do="train",
                task="eva:n=4,V=4",
                architecture="full @ heads=1, head_dim=4",
                training=job.training,
                seeds=(0, 2),
            ),
            tmp_path,
        )
        is None
    )
    monkeypatch.setattr("separatrix.cli.reproduce.code_digest", lambda: sha256("other code"))
    assert stored(job, tmp_path) is None


def test_a_pack_that_was_stopped_goes_on_where_it_was(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A pack's checkpoint is picked up, gives what an uninterrupted one gives, and is removed."""
    job = Job(
        do="train",
        task="eva:n=4,V=4",
        architecture="full @ heads=1, head_dim=4",
        seeds=(0, 1),
        training=tuple(TINY.items()),
    )
    trainer = Trainer(Pack(runs_of(job)))
    trainer.advance(7)
    (tmp_path / "stopped").mkdir()
    (tmp_path / "stopped" / f"{job.key}.checkpoint").write_bytes(trainer.checkpoint())
    begun: list[int] = []
    resumed = Trainer.resumed

    def noted(pack: Pack, data: bytes, **options: Any) -> Trainer:
        begun.append(resumed(pack, data).step)
        return resumed(pack, data, **options)

    monkeypatch.setattr(Trainer, "resumed", noted)
    assert perform(job, tmp_path / "stopped") == perform(job, tmp_path / "whole")
    assert begun == [7]
    assert [path.suffix for path in (tmp_path / "stopped").iterdir()] == [".json"]


def test_a_folder_that_cannot_be_written(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("in the way")
    with pytest.raises(OutputError, match="cannot be written"):
        reproduce_table(Settings(kind="quick"), tmp_path / "file", show=False)


def test_a_record_alone_is_evidence_too(tmp_path: Path) -> None:
    job = Job(do="refute", task="eva:n=8,V=8", architecture="linear @ heads=1, head_dim=2, p3")
    (envelope,) = perform(job, tmp_path)
    assert from_envelope(envelope).digest == envelope["sha256"]
    (tmp_path / "certificate.json").write_text(canonical(envelope))
    assert verify_path(tmp_path)
