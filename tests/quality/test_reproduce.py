"""The main job on two small cells: evidence in each, equal hashes on a second run, resumption,
and no edit that survives `verify`.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest

import separatrix.checks.verify
from separatrix.cards.table.body import Settings, table_cells
from separatrix.cards.table.plan import KINDS, Kind, Witness
from separatrix.checks.verify import Checked, verify
from separatrix.cli import reproduce
from separatrix.cli.report.html import verify_path
from separatrix.cli.reproduce import reproduce_table
from separatrix.core.errors import CheckFailed, EngineError, OutputError, SeparatrixError
from separatrix.core.evidence.bundles import bundle_envelope
from separatrix.core.evidence.canonical import canonical
from separatrix.core.evidence.records import Evidence, from_envelope
from separatrix.models.stored.run import Run
from separatrix.training.sweeps.store import Store
from separatrix.training.sweeps.sweep import sweep

RUN = Run(
    task="eva:n=4,V=4",
    architecture="full @ heads=1, head_dim=4",
    seed=0,
    steps=20,
    batch=32,
    tested=64,
)
"""What a witness of a trained model would train."""


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
def _made(small: pytest.MonkeyPatch, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of a run."""
    out = tmp_path_factory.mktemp("made")
    reproduce_table(small_settings(), out, show=False)
    return out


@pytest.mark.slow
@pytest.mark.usefixtures("small")
def test_what_is_trained_is_not_trained_again_and_gives_the_same_hashes(
    made: Path, tmp_path: Path
) -> None:
    """Of the trainings those of the first cell have ended: the others are done, and every byte is
    as it was.
    """
    (whole,) = (made / ".saved").glob("*.sqlite")
    out = tmp_path / "again"
    file = out / ".saved" / whole.name
    cell, *_ = table_cells(small_settings())
    first = reproduce._runs(cell, cell.sizes[0], 0)
    sweep(first, store=file, name=reproduce.NAME, workers=1, show=False)

    def ended() -> dict[str, float | None]:
        with Store.read(file) as kept:
            return {row.key: row.ended for row in kept.rows(reproduce.NAME)}

    before = ended()
    body = reproduce_table(small_settings(), out, workers=1, show=False)
    assert before.keys() == {run.key for run in first}
    assert before.items() < ended().items()
    assert (out / "evidence.json").read_bytes() == (made / "evidence.json").read_bytes()
    kinds = {record["kind"] for record in body["records"].values()}
    assert kinds == {"verdict", "certificate", "measurement"}
    assert verify_path(out)
    page = out / "report.html"
    page.write_text(page.read_text().replace("FAILS", "SOLVABLE", 1))
    with pytest.raises(CheckFailed):
        verify_path(out)


@pytest.mark.usefixtures("small")
@pytest.mark.parametrize("afresh", [False, pytest.param(True, marks=pytest.mark.slow)])
@pytest.mark.slow
def test_no_edit_of_a_record_or_of_the_table_survives(
    made: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, afresh: bool
) -> None:
    """Not `afresh`: a record that no edit has touched, by its hash, is checked once and not once
    for every edit.
    """
    whole = json.loads((made / "evidence.json").read_text())
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


def test_a_folder_that_cannot_be_written(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("in the way")
    with pytest.raises(OutputError, match="cannot be written"):
        reproduce_table(Settings(kind="quick"), tmp_path / "file", show=False)


@pytest.mark.usefixtures("small")
def test_a_training_that_failed_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def failing(runs: Sequence[Run], store: Path, **options: Any) -> None:
        with Store.create(store) as kept:
            kept.add(options["name"], runs)
            kept.take_up([run.key for run in runs], "me")
            kept.fail([runs[0].key], "out of luck", "me")

    monkeypatch.setattr(reproduce, "sweep", failing)
    with pytest.raises(EngineError, match="out of luck"):
        reproduce_table(small_settings(), tmp_path, show=False)


@pytest.mark.parametrize(
    "wanted",
    [
        Witness("collision", "linear @ heads=1, head_dim=2, p3", "eva:n=8,V=8", "p3"),
        Witness("wrong_answer", RUN.architecture, "eva:n=4,V=4"),
    ],
)
def test_a_failure_alone_is_evidence_too(wanted: Witness, tmp_path: Path) -> None:
    envelope = reproduce._failure(wanted, RUN, 0).envelope()
    assert from_envelope(envelope).digest == envelope["sha256"]
    assert envelope["body"]["form"] == wanted.form
    (tmp_path / "certificate.json").write_text(canonical(envelope))
    assert verify_path(tmp_path)
