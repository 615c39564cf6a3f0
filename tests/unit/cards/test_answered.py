"""Results of folders beside what is proved: read, refused, shown."""

from __future__ import annotations

import json
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest

from separatrix.cards.answered import OWN, Answered, document, drawing, read_results, sealed
from separatrix.core.document import Line
from separatrix.core.document.plot import Dot
from separatrix.core.errors import EvidenceError
from separatrix.core.evidence.canonical import canonical
from separatrix.core.numbers.wilson import wilson
from separatrix.stacks.architecture.resolve import resolve
from separatrix.tasks import parse_any_task

SMALL = "linear @ heads=1, head_dim=2, p3"


def harness(folder: Path, **changed: Any) -> Path:
    """Results as lm-evaluation-harness writes them."""
    data: dict[str, Any] = {
        "results": {"separatrix_eva": {"acc,none": 0.35, "alias": "x"}, "other": {"acc,none": 1.0}},
        "configs": {
            "separatrix_eva": {"metadata": {"spec": "eva:n=6,V=6"}, "num_fewshot": 2},
            "other": {"metadata": {"version": 1}},
        },
        "n-samples": {"separatrix_eva": {"original": 20, "effective": 20}},
        "config": {"model_args": "pretrained=somewhere,dtype=auto"},
    } | changed
    (folder / "results_1.json").write_text(json.dumps(data))
    return folder


def own(folder: Path, **changed: Any) -> Path:
    """A record of `evaluate --out`."""
    data: dict[str, Any] = {
        "task": "eva:n=8,V=8",
        "model": "m",
        "manner": "asked",
        "total": 100,
        "seed": 0,
        "config": SMALL,
        "right": 40,
        "log_probability": -1.5,
    }
    (folder / OWN).write_text(canonical({**sealed(data), **changed}))
    return folder


def test_harness_results_are_counted(tmp_path: Path) -> None:
    (found,) = read_results(harness(tmp_path))
    assert (found.task.spec, found.right, found.total) == ("eva:n=6,V=6", 7, 20)
    assert (found.model, found.architecture) == ("somewhere", None)
    row = found.to_json()
    # of eva at n = V = 6 a third of a third and more is reached by rules: levels.json
    assert row["above_level"] == pytest.approx(0.35 - float(Fraction(row["level"])))
    assert row["interval"] == list(wilson(7, 20))
    assert row["proved"] is None


def test_a_model_that_fails_is_said_to(tmp_path: Path) -> None:
    (found,) = read_results(own(tmp_path))
    row = found.to_json()
    # one head of 2 x 2 numbers and 3 bits holds far less than 8 values of 3 bits
    assert row["proved"]["status"] == "FAILS"
    shown = document([row])
    assert "FAILS" in shown.text(100)
    assert row["proved"]["statement"] in " ".join(shown.text(10_000).split("\n"))


def test_the_ceiling_stands_beside_the_accuracy() -> None:
    made = Answered(parse_any_task("eva:n=400,V=16"), "m", resolve(SMALL), "asked", 9, 100)
    most = made.to_json()["proved"]["ceiling_millionths"]
    assert 62_500 <= most < 200_000  # above chance, far below all
    drawn = drawing([made.to_json()])
    assert drawn is not None
    dots = [mark for mark in drawn.marks if isinstance(mark, Dot)]
    heights = [dot.y for dot in dots if dot.shape == "cross"]
    assert most / 10**6 in heights


@pytest.mark.parametrize(
    "changed",
    [
        {"n-samples": {}},
        {"n-samples": {"separatrix_eva": {"effective": 0}}},
        {"results": {"separatrix_eva": {}}},
        {"results": {"separatrix_eva": {"acc,none": 0.333}}},
        {"results": {"separatrix_eva": {"acc,none": 1.2}}},
        {"results": {"separatrix_eva": {"acc,none": 1e308}}},
        {"n-samples": {"separatrix_eva": {"effective": 10**400}}},
        {"results": {}},
    ],
)
def test_results_that_cannot_be_counted_are_refused(tmp_path: Path, changed: Any) -> None:
    with pytest.raises(EvidenceError, match=r"results_1\.json|no results"):
        read_results(harness(tmp_path, **changed))
    with pytest.raises(EvidenceError, match="none: no such folder"):
        read_results(tmp_path / "none")


@pytest.mark.parametrize("changed", [{"right": 41}, {"sha256": "0"}, {"config": None}])
def test_an_edited_record_is_refused(tmp_path: Path, changed: Any) -> None:
    with pytest.raises(EvidenceError, match="hash"):
        read_results(own(tmp_path, **changed))


@pytest.mark.parametrize("text", ["", "[]", '{"a": 1, "a": 2}', "{" * 100])
def test_a_file_that_is_no_record_is_refused(tmp_path: Path, text: str) -> None:
    (tmp_path / "results_2.json").write_text(text)
    with pytest.raises(EvidenceError, match=r"results_2\.json"):
        read_results(tmp_path)


def test_tasks_in_words_have_no_place_on_the_axis() -> None:
    words = Answered(parse_any_task("multihop:k=1,n=24"), "m", resolve(SMALL), "asked", 1, 3)
    assert words.proved() is None
    assert drawing([words.to_json()]) is None


def test_a_name_from_a_file_writes_no_line_of_its_own(tmp_path: Path) -> None:
    (row,) = read_results(harness(tmp_path, config={"model_args": "pretrained=a\nFAILS"}))
    head = document([row.to_json()]).parts[0]
    assert isinstance(head, Line)
    assert head.text.endswith("a FAILS")


def test_columns_with_nothing_in_them_are_neither_shown_nor_explained() -> None:
    """No level is known of the task, and neither credit nor log-probability was asked for."""
    row = Answered(parse_any_task("eva:n=8,V=16"), "m", None, "asked", 1, 3).to_json()
    shown = document([row]).text(200)
    assert not [name for name in ("proved", "level", "above", "credit", "log p") if name in shown]


def weighed(**scores: Any) -> dict[str, Any]:
    """Results of NAME and of NAME_logprob beside each other."""
    names = ("separatrix_eva", "separatrix_eva_logprob")
    own = {"metadata": {"spec": "eva:n=6,V=6"}, "num_fewshot": 2}
    return {
        "results": {names[0]: {"exact_match,answer": 0.5, "credit,answer": 0.75}, names[1]: scores},
        "configs": dict.fromkeys(names, own),
        "n-samples": {name: {"effective": 20} for name in names},
    }


def test_the_log_probability_stands_beside_the_answers(tmp_path: Path) -> None:
    scores = {"acc,none": 0.4, "log_probability,none": -3.0}
    (found,) = read_results(harness(tmp_path, **weighed(**scores)))
    assert (found.right, found.credit) == (10, 0.75)
    assert found.log_probability == -3
    shown = document([found.to_json()]).text(100)
    assert "-3.00" in shown
    assert "credit: " in shown
    assert "0.750" in shown


def test_a_log_probability_alone_is_a_row(tmp_path: Path) -> None:
    data = weighed(**{"acc,none": 0.4, "log_probability,none": -800.5})
    # behind another number of solved questions: not the same question
    one, other = data["configs"]
    data["configs"] = {
        one: data["configs"][one],
        other: {**data["configs"][other], "num_fewshot": 0},
    }
    rows = read_results(harness(tmp_path, **data))
    assert [row.right for row in rows] == [10, 8]
    assert [row.log_probability for row in rows] == [None, -800.5]
