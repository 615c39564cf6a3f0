"""The main job on two small cells: evidence in each, equal hashes on a second run, resumption, and no edit that survives `verify`."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

import separatrix.reproduce as reproduce
from separatrix.errors import OutputError, SeparatrixError
from separatrix.evidence import bundle_envelope, canonical, from_envelope, sha256
from separatrix.reproduce import Settings, reproduce_table
from separatrix.reproduce.cells import CELLS, COLUMNS, ROWS
from separatrix.reproduce.jobs import Job, perform, stored
from separatrix.verify import verify_path

TINY = {"steps": 20, "batch": 32, "tested": 64}


@pytest.fixture
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    """Two cells with twenty steps of training, one real model."""
    cells = tuple(cell for cell in CELLS if (cell.row, cell.column) in {("linear", "twosum"), ("sparse", "twosum")})
    monkeypatch.setattr(reproduce, "CELLS", cells)
    monkeypatch.setattr(reproduce, "ROWS", {key: ROWS[key] for key in ("linear", "sparse")})
    monkeypatch.setattr(reproduce, "COLUMNS", {"twosum": COLUMNS["twosum"]})
    monkeypatch.setattr(reproduce, "DEFAULT_MODELS", ("recurrentgemma-2b",))
    monkeypatch.setattr(Settings, "training", lambda self, column: dict(TINY))


def test_the_table_is_whole() -> None:
    assert {(cell.row, cell.column) for cell in CELLS} == {(row, column) for row in ROWS for column in COLUMNS}
    assert len(CELLS) == 15


@pytest.mark.usefixtures("small")
def test_twice_the_same_hashes_and_resumption(tmp_path: Path) -> None:
    first = reproduce_table(Settings(quick=True), tmp_path / "a", show=False)
    again = reproduce_table(Settings(quick=True), tmp_path / "b", show=False)
    assert (tmp_path / "a" / "evidence.json").read_bytes() == (tmp_path / "b" / "evidence.json").read_bytes()
    assert first == again
    results = sorted((tmp_path / "a" / ".saved").glob("*.json"))
    results[0].write_text(results[0].read_text()[:-10])  # cut off: done again
    marked = results[1].stat().st_mtime_ns
    assert reproduce_table(Settings(quick=True), tmp_path / "a", show=False) == first
    assert results[1].stat().st_mtime_ns == marked  # whole: not done again
    kinds = {record["kind"] for record in first["records"].values()}
    assert kinds == {"verdict", "certificate", "measurement"}
    assert verify_path(tmp_path / "a")


@pytest.mark.usefixtures("small")
def test_no_edit_of_a_record_or_of_the_table_survives(tmp_path: Path) -> None:
    reproduce_table(Settings(quick=True), tmp_path, show=False)
    whole = json.loads((tmp_path / "evidence.json").read_text())
    file = tmp_path / "edited.json"
    for edited in _edits(whole):
        file.write_text(canonical(edited))
        with pytest.raises(SeparatrixError):
            verify_path(file)


def _edits(whole: dict[str, Any]):
    """Edits with hashes left alone, and edits of the table with its hash made to fit."""
    for digest in whole["body"]["records"]:
        for name in ("status", "statement", "inputs", "answers", "output", "correct", "interval", "chance", "task", "architecture"):
            edited = json.loads(json.dumps(whole))
            body = edited["body"]["records"][digest]["body"]
            if name in body:
                body[name] = _changed(body[name])
                yield edited
                yield bundle_envelope(edited["body"])
    for name, value in (("status", "OPEN"), ("headline", "it is so"), ("records", []), ("number", "n >= 3"), ("bound", {"n": []})):
        edited = json.loads(json.dumps(whole))
        edited["body"]["cells"][0][name] = value
        yield bundle_envelope(edited["body"])
    for field in ("cells", "models"):
        for name in whole["body"][field][0]:
            edited = json.loads(json.dumps(whole))
            if name not in ("story", "paper", "name"):  # prose, covered by the hash
                del edited["body"][field][0][name]
                yield bundle_envelope(edited["body"])
    for name, value in (("spec", "full"), ("pattern", "f"), ("context", 7), ("memory", []), ("vocabulary", 2), ("assumptions", [])):
        edited = json.loads(json.dumps(whole))
        edited["body"]["models"][0][name] = value
        yield bundle_envelope(edited["body"])
    for name, value in (("status", "SOLVABLE"), ("n", "3"), ("text", "never"), ("theorem", "II"), ("record", None)):
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


def test_saved_results_belong_to_their_job_and_code(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    job = Job(do="train", task="eva:n=4,V=4", architecture="full @ heads=1, head_dim=4", training=tuple(TINY.items()))
    result = perform(job, tmp_path)
    assert stored(job, tmp_path) == result
    assert (
        stored(Job(do="train", task="eva:n=4,V=4", architecture="full @ heads=1, head_dim=4", training=job.training, seed=1), tmp_path)
        is None
    )
    monkeypatch.setattr("separatrix.reproduce.jobs.code_digest", lambda: sha256("other code"))
    assert stored(job, tmp_path) is None


def test_a_folder_that_cannot_be_written(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("in the way")
    with pytest.raises(OutputError, match="cannot be written"):
        reproduce_table(Settings(quick=True), tmp_path / "file", show=False)


def test_a_record_alone_is_evidence_too(tmp_path: Path) -> None:
    job = Job(do="refute", task="eva:n=8,V=8", architecture="linear @ heads=1, head_dim=2, p3")
    (envelope,) = perform(job, tmp_path)["records"]
    assert from_envelope(envelope).digest == envelope["sha256"]
    (tmp_path / "certificate.json").write_text(canonical(envelope))
    assert verify_path(tmp_path)
