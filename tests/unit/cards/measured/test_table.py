"""Tables of results: what is derived from counts, and files that were damaged."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from support.each import each
from support.practice_tables import diverged, row, table, trial

from separatrix.cards.measured import table as tables
from separatrix.cards.measured.table import Table, parse, read
from separatrix.core.errors import EvidenceError, SpecError
from separatrix.core.evidence.outcome import FormatOutcome
from separatrix.core.evidence.records import enveloped


def example() -> Table:
    return table(
        "toy",
        row(
            {"mechanism": "gdn", "n": 8},
            {
                1e-3: [trial(0, 100), trial(1, 200), trial(2, 1000)],
                3e-3: [trial(0, 500), trial(1, 995), diverged(2)],
            },
        ),
        row(
            {"mechanism": "gdn", "n": 16},
            {
                3e-3: [
                    trial(
                        0,
                        400,
                        longer=(3,),
                        longer_right=(40,),
                        longer_due=(160,),
                        formats=(
                            FormatOutcome(format="bf16", correct=10, right=390, due=1000, bits=2.5),
                        ),
                    )
                ]
            },
            longer=["n=64"],
        ),
        row({"mechanism": "full", "n": 8}, {3e-3: [trial(0, 1000)]}, architecture="full*2"),
    )


def test_a_file_gives_the_table_back() -> None:
    assert parse(example().text()) == example()


def test_a_file_has_a_line_for_each_row() -> None:
    lines = example().text().splitlines()
    assert sum(line.startswith('{"cache_bits"') for line in lines) == 3


def test_the_best_rate_is_the_one_with_the_highest_median() -> None:
    """200 against 500 of 1,000: the median of 0, 500 and 995."""
    first = example().rows[0]
    assert first.best is not None
    assert first.best.learning_rate == 3e-3
    assert len(first.every) == 6


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ('"right":500', '"right":501'),
        ('"n":16', '"n":17'),
        ('"cpu"', '"gpu"'),
        ('"rows":[', '"row":['),
        ("toy", "\\udc00"),
    ],
)
def test_what_was_edited_is_refused(
    old: str, new: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tables, "RESULTS", tmp_path)
    path = tmp_path / "edited.json"
    text = example().text()
    assert old in text
    path.write_text(text.replace(old, new, 1))
    with pytest.raises(SpecError) as caught:
        read("edited")
    assert str(path) in str(caught.value)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    "text", ["", "{}", "[1]", '{"body": {"rows": 3}}', example().text()[:-40], "\x00\xff"]
)
def test_what_is_no_table_is_refused(text: str) -> None:
    with pytest.raises(EvidenceError):
        parse(text)


def _rehashed(change: Any) -> str:
    """The example changed, with a content hash that fits."""
    body = json.loads(example().text())["body"]
    change(body)
    return json.dumps(enveloped("practice", body))


def _trial(body: Any) -> Any:
    return body["rows"][0]["rates"][0]["trials"][0]


def _beside(body: Any) -> Any:
    return body["rows"][1]["rates"][0]["trials"][0]


def _rounded(body: Any) -> Any:
    return _beside(body)["formats"][0]


@each(
    "change, said",
    [
        (lambda body: _rounded(body).pop("due"), "missing or unknown: due"),
        (lambda body: _trial(body).pop("steps_done"), "missing or unknown: steps_done"),
        (lambda body: body.update(rows={"a": 1}), "rows"),
        (lambda body: _trial(body).update(right="9"), "right"),
        (lambda body: _trial(body).pop("bits"), "missing or unknown: bits"),
        (lambda body: body.update(scale="huge"), "scale"),
        (lambda body: body["rows"][0]["labels"].update(n=None), "labels"),
    ],
)
def test_what_no_training_gives_is_refused(change: Any, said: str) -> None:
    with pytest.raises(EvidenceError, match=said):
        parse(_rehashed(change))


def test_the_package_holds_readable_tables() -> None:
    names = {path.stem for path in tables.RESULTS.glob("*.json")}
    assert "capacity" in names
    for name in names:
        found = read(name)
        assert found is not None
        assert found.experiment == name
        assert len(found.provenance.commit) == 40


def test_what_the_package_does_not_hold() -> None:
    assert read("nothing-of-this-name") is None
    assert read("") is None
