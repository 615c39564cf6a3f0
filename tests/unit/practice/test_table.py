"""Tables of results: what is derived from counts, and files that were damaged."""

from __future__ import annotations

import json
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest
from support.practice_tables import diverged, row, table, trial

from separatrix.errors import EvidenceError, SpecError
from separatrix.evidence.records import enveloped
from separatrix.numbers.wilson import wilson
from separatrix.practice import table as tables
from separatrix.practice.table import Longer, Rounded, Table, names, parse, read, read_file


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
                        longer=(Longer("n=64", 3, 40, 160),),
                        formats=(Rounded("bf16", 10, 390, 1000, 2.5),),
                    )
                ]
            },
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
    assert first.best_rate == 3e-3
    assert [one.seed for one in first.trials] == [0, 1, 2]
    assert (first.least, first.median, first.most) == (0, Fraction(1, 2), Fraction(995, 1000))
    assert first.solved == 1
    assert len(first.every) == 6


def test_an_interval_counts_prompts_and_not_answers() -> None:
    """400 of 1,000 answers in 250 prompts: as wide as 100 of 250."""
    low, high = wilson(100, 250)
    (one,) = example().rows[1].trials
    assert one.interval == (Fraction(low), Fraction(high))
    assert diverged(0).interval == (0, 1)


def test_what_was_measured_beside() -> None:
    (one,) = example().rows[1].trials
    at = one.at("n=64")
    rounded = one.rounded("bf16")
    assert at is not None
    assert rounded is not None
    assert (at.accuracy, rounded.accuracy) == (Fraction(1, 4), Fraction(39, 100))
    assert one.at("n=128") is None
    assert one.rounded("fp16") is None


def test_rows_are_found_by_their_labels() -> None:
    found = example()
    assert found.where(n=8) == [found.rows[0], found.rows[2]]
    assert found.one(mechanism="full") == found.rows[2]
    assert found.one(mechanism="mamba2") is None
    assert found.values("n") == [8, 16]
    with pytest.raises(SpecError, match="2 rows have the labels"):
        found.one(n=8)


def test_chance_is_the_tasks_own() -> None:
    assert example().rows[0].chance == Fraction(1, 16)


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ('"right":500', '"right":501'),
        ('"n":16', '"n":17'),
        ('"laptop"', '"gpu"'),
        ('"rows":[', '"row":['),
        ("toy", "\\udc00"),
    ],
)
def test_what_was_edited_is_refused(old: str, new: str, tmp_path: Path) -> None:
    path = tmp_path / "toy.json"
    text = example().text()
    assert old in text
    path.write_text(text.replace(old, new, 1))
    with pytest.raises(SpecError) as caught:
        read_file(path)
    assert str(path) in str(caught.value)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    "text", ["", "{}", "[1]", '{"body": {"rows": 3}}', example().text()[:-40], "\x00\xff"]
)
def test_what_is_no_table_is_refused(text: str, tmp_path: Path) -> None:
    path = tmp_path / "toy.json"
    path.write_text(text)
    with pytest.raises(SpecError):
        read_file(path)


def test_a_folder_and_bytes_are_refused(tmp_path: Path) -> None:
    with pytest.raises(SpecError, match="cannot be read"):
        read_file(tmp_path)
    path = tmp_path / "toy.json"
    path.write_bytes(b"\xff\xfe{")
    with pytest.raises(SpecError, match="not a text file"):
        read_file(path)


def _rehashed(change: Any) -> str:
    """The example changed, with a content hash that fits."""
    body = json.loads(example().text())["body"]
    change(body)
    return json.dumps(enveloped("practice", body))


def _trial(body: Any) -> Any:
    return body["rows"][0]["rates"][0]["trials"][0]


def _beside(body: Any) -> Any:
    return body["rows"][1]["rates"][0]["trials"][0]


def _longer(body: Any) -> Any:
    return _beside(body)["longer"][0]


def _rounded(body: Any) -> Any:
    return _beside(body)["formats"][0]


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (lambda body: _trial(body).update(right=1001), "impossible counts"),
        (lambda body: _trial(body).update(tested=0), "impossible counts"),
        (lambda body: _trial(body).update(bits=-1.0), "impossible counts"),
        (lambda body: _trial(body).update(bits_squares=-1.0), "impossible counts"),
        (lambda body: _longer(body).__setitem__(2, 161), "impossible counts"),
        (lambda body: _rounded(body).__setitem__(2, 1001), "impossible counts"),
        (lambda body: _trial(body).update(seed=1), "a seed twice"),
        (lambda body: body["rows"][0]["rates"][0].update(learning_rate=3e-3), "rate twice"),
        (lambda body: body["rows"][0]["run"].pop("architecture"), "of no stack"),
        (lambda body: _trial(body).update(right="9"), "right"),
        (lambda body: _trial(body).pop("bits"), "missing or unknown: bits"),
        (lambda body: body.update(scale="huge"), "scale"),
        (lambda body: body["rows"].append(body["rows"][0]), "two rows"),
        (lambda body: body["rows"][0]["run"].update(task="nothing"), "no known task"),
        (lambda body: body["rows"][0]["labels"].update(n=None), "labels"),
    ],
)
def test_what_no_training_gives_is_refused(change: Any, said: str) -> None:
    with pytest.raises(EvidenceError, match=said):
        parse(_rehashed(change))


def test_the_package_holds_readable_tables() -> None:
    for name in names():
        found = read(name)
        assert found is not None
        assert (found.experiment, found.scale) == (name, "laptop")
        assert len(found.provenance.commit) == 40


def test_what_the_package_does_not_hold() -> None:
    assert read("nothing-of-this-name") is None
    assert read("../results/capacity") is None
    assert read("") is None


def test_a_file_under_another_name_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tables, "RESULTS", tmp_path)
    (tmp_path / "depth-of-toys.json").write_text(example().text())
    with pytest.raises(SpecError, match="results of 'toy' at scale laptop, not of"):
        read("depth-of-toys")
