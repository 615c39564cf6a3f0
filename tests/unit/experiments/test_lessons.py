"""What a designer should take from the experiments: read from tables, silent without them."""

from __future__ import annotations

from pathlib import Path

import pytest
from support.found_tables import SAMPLES, depth, install, seeds
from support.practice_tables import row, table

from separatrix.experiments import lessons as page
from separatrix.practice.table import Row


@pytest.fixture(autouse=True)
def samples(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    install(monkeypatch, tmp_path / "results", *(make() for make in SAMPLES))


def said(experiment: str) -> str:
    found = [lesson.found for lesson in page.lessons() if lesson.experiment == experiment]
    return " ".join(sentence for sentences in found for sentence in sentences)


def test_every_number_is_one_of_a_table() -> None:
    assert "3: 0.999 [0.98, 1.00]): of these, 3 were the fewest that solved it" in said("depth")
    assert "3 steps by full layers alone (3: 0.06" in said("depth")
    assert "none of them solved it in this budget" in said("depth")
    assert "3:1 0.99 [0.96, 1.00], 7:1 0.93 [0.89, 0.96]" in said("ratio")
    # 7:1 lies below 1:1 with all of its interval, 3:1 does not
    assert "up to 3:1 nothing was lost that all seeds show" in said("ratio")
    assert "spread was better than at the start and in the middle" in said("placement")
    # states of different sizes are not set in one order
    assert "of states of 16 numbers: RG-LRU 0.50" in said("capacity")
    assert "of states of 64 numbers: Gated DeltaNet 1.2 [1.1, 1.3]" in said("capacity")
    assert "solved by Gated DeltaNet (negative=true) (1.00 at 64 tokens)" in said("state-tracking")
    asked = "State tracking, learned at 18 tokens and asked at 72: gdn(negative=true)"
    assert said("length") == f"{asked} 0.64 [0.57, 0.70]."


def test_what_stands_beside_full_layers_is_compared_with_them_alone(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    labels = {"full": 2, "recurrent": 0, "where": "none", "steps": 2, "mechanism": "none"}
    alone = row(labels, seeds(310, 510, 320), architecture="full*2", task="seqcomp:L=2,m=4,n_1=2")
    install(monkeypatch, tmp_path / "more", table("depth", *depth().rows, alone))
    text = said("depth")
    assert "2 full layers (0.32 [0.26, 0.39]), Gated DeltaNet" in text
    assert "a recurrent layer before them 0.998 [0.98, 1.00] (better)" in text
    assert "a recurrent layer after them 0.34 [0.28, 0.41] (not told apart)" in text


def test_places_whose_seeds_overlap_are_not_told_apart(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """Medians with intervals far apart, of seeds that may as well have come the other way round."""

    def at(where: str, stack: str, *right: int) -> Row:
        labels = {"mechanism": "gdn", "layers": 3, "full": 1, "where": where, "task": "recall"}
        return row(labels, seeds(*right), architecture=stack)

    rows = (
        at("middle", "gdn + full + gdn", 550, 350, 997),
        at("last", "gdn*2 + full", 998, 420, 995),
    )
    install(monkeypatch, tmp_path / "apart", table("placement", *rows))
    assert said("placement").endswith("; not told apart.")


def test_a_loss_of_the_median_seed_alone_is_said_to_be_that(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    labels: dict[str, str | int] = {"mechanism": "gdn", "layers": 4, "task": "recall"}
    rows = (
        row({**labels, "ratio": 1}, seeds(999, 998, 730)),
        row({**labels, "ratio": 3}, seeds(197, 994, 261)),
    )
    install(monkeypatch, tmp_path / "median", table("ratio", *rows))
    assert said("ratio").endswith("the median seed lost some at 3:1, and the seeds overlap.")


def test_nothing_recorded_is_said_to_be_nothing(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    install(monkeypatch, tmp_path / "none")
    assert page.lessons() == ()
    assert page.section("##") == f"## {page.HEADING}\n\nNothing is recorded yet.\n"


def test_too_few_seeds_are_no_lesson(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    labels: dict[str, str | int] = {"mechanism": "gdn", "ratio": 1, "layers": 2, "task": "recall"}
    install(monkeypatch, tmp_path / "few", table("ratio", row(labels, seeds(900, 900))))
    assert page.lessons() == ()


def test_the_page_says_what_not_to_conclude() -> None:
    text = page.section("##")
    assert text.startswith(f"## {page.HEADING}\n")
    assert all(caution in text for caution in page.CAUTIONS)
    assert text.count("*Proved, whatever was measured:*") == 6
