"""What a card says of practice: measured and extrapolated with the distance, nothing where nobody
measured, and never a part of a verdict.
"""

from __future__ import annotations

import json
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest
from support.found_tables import SAMPLES, install, seeds
from support.practice_tables import row, table, trial

from separatrix.architecture import Architecture
from separatrix.architecture.presets import preset
from separatrix.cards import CardLine, card, card_facts
from separatrix.cards.practice import Finding, practice
from separatrix.cli.main import run
from separatrix.practice.table import Longer


@pytest.fixture(autouse=True)
def samples(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    install(monkeypatch, tmp_path / "results", *(make() for make in SAMPLES))


QUESTIONS = (
    "recall of one of n facts (vocabulary 50,000)",
    "recall with chain of thought",
    "composition, L <= 2 steps",
    "composition, 3 steps",
    "composition with chain of thought, L <= 5",
    "parity of bits",
    "permutation tracking (S_5)",
)
"""As a card asks them."""


def found(spec: str, context: int = 4096) -> dict[str, Finding]:
    """The findings of a card by experiment and the first word of the question."""
    asked = [CardLine(question, "OPEN", None, "", "none") for question in QUESTIONS]
    findings = practice(Architecture.parse(spec), context, asked)
    return {f"{one.experiment} {one.question.split()[0]}": one for one in findings}


def test_bits_per_number_become_facts() -> None:
    """Two layers of two heads of 16 x 16 numbers keep 1.2 x 1,024 bits: 78 facts of log2 50,000 =
    15.61 bits.
    """
    finding = found("gdn*2 @ heads=2, head_dim=16")["capacity recall"]
    assert finding.measured.startswith(
        "trained Gated DeltaNet layers learned at least 1.2 [1.1, 1.3] bits per number of state"
    )
    assert finding.numbers["facts"] == 78
    assert finding.distances == {"numbers": Fraction(16), "values": Fraction(3125)}
    assert finding.extrapolated.startswith("16 x in numbers, 3,100 x in values: 78 facts")


def test_kinds_are_summed_and_windows_hold_a_fact_a_token() -> None:
    """RG-LRU: 18 x 2,560 numbers at 0.5 bits, 1,282 facts of log2 256,000 bits. All windows see
    the same last 2,048 tokens: as many facts, though their numbers would take more.
    """
    facts = card_facts(preset("recurrentgemma-2b"), 8192)
    (finding,) = facts.practice
    assert finding.numbers["facts"] == 1282 + 2048
    assert finding.numbers["rglru.numbers"] == 18 * 2560
    assert finding.numbers["window.numbers"] == 2048 * 2 * 256
    # 1,290 and 2,048 facts at the high end: rounded up, as an interval's end is
    assert ": 3,300 [3,300, 3,400] facts" in finding.extrapolated


def test_no_more_facts_than_a_theorem_allows() -> None:
    """128 numbers of one bit hold 8 facts of 15.61 bits, not the 9 of 1.2 bits a number."""
    finding = found("gdn*2 @ heads=1, head_dim=8, p1")["capacity recall"]
    assert finding.numbers["facts"] == 8


def test_a_context_that_is_short_says_so() -> None:
    finding = found("gdn*2 @ heads=2, head_dim=16", 64)["capacity recall"]
    assert finding.extrapolated.endswith("facts, more than the 63 of this context")


@pytest.mark.parametrize(
    "spec", ["gdn + mamba2", "mamba2*4", "mla*4", "gdn|window", "mlp", "gdn(negative=true)"]
)
def test_what_was_not_measured_gets_no_line_on_recall(spec: str) -> None:
    assert "capacity recall" not in found(spec)


def test_what_reads_is_not_told_how_much_its_states_hold() -> None:
    assert "capacity recall" not in found("gdn + full")


def test_steps_are_those_of_the_nearest_shape() -> None:
    finding = found("(gdn*2 + full)*4 @ head_dim=64")["depth composition,"]
    assert finding.measured.startswith(
        "trained stacks of 2 full layers behind Gated DeltaNet composed 2 steps 0.998 [0.98, 1.00]"
        " (3 of 3 seeds solved, chance 0.12, a shortcut 0.61), 3 steps 0.06"
    )
    # a prompt of two steps has 8 + 4 + 2 tokens
    assert finding.distances == {
        "full layers": Fraction(2),
        "layers": Fraction(4),
        "tokens": Fraction(4096, 14),
    }
    assert finding.extrapolated == (
        "2 x in full layers, 4 x in layers, 290 x in tokens: at least 2 steps"
    )


def test_what_failed_to_train_is_not_carried_on() -> None:
    finding = found("full*2 + gdn @ head_dim=64")["depth composition,"]
    assert "2 steps 0.34" in finding.measured
    assert (finding.extrapolated, finding.distances) == ("", {})
    assert "cannot be learned" in finding.caution
    alone = found("gdn*2")["state-tracking parity"]
    assert (alone.extrapolated, alone.distances) == ("", {})


def test_ratios_between_two_that_were_measured_show_both() -> None:
    finding = found("(gdn*5 + full)*2 @ head_dim=64")["ratio recall"]
    assert list(finding.numbers) == ["accuracy, ratio 3", "accuracy, ratio 7"]
    assert "with 3 Gated DeltaNet per full layer 0.99" in finding.measured
    assert "with 7 Gated DeltaNet per full layer 0.93" in finding.measured


def test_places_stand_beside_the_stacks_own() -> None:
    finding = found("(gdn*3 + full)*4 @ head_dim=64")["placement recall"]
    assert "with full layers spread 0.98 [0.95, 1.00] as here" in finding.measured
    assert "at the start 0.70" in finding.measured
    assert finding.distances["layers"] == 2
    other = found("(full + gdn*3)*4 @ head_dim=64")["placement recall"]
    assert "spread 0.98 [0.95, 1.00] as here but for the first layer" in other.measured
    assert "placement recall" not in found("full + gdn*6 + full*2 @ head_dim=64")


def test_tracking_names_each_kind_and_how_far_it_went() -> None:
    one = found("gdn(negative=true)*3 + full @ head_dim=64")["state-tracking parity"]
    assert (
        "Gated DeltaNet (negative=true) alone 1.00 [0.98, 1.00], 1.00 at 64 tokens" in one.measured
    )
    assert "full attention alone 0.50" in one.measured
    # solved up to twice its 32 tokens
    assert one.distances == {"tokens": Fraction(64)}
    assert one.extrapolated == "64 x in tokens: followed by Gated DeltaNet (negative=true)"
    assert "state-tracking parity" not in found("gdn + rglru")


def test_what_is_lost_on_longer_prompts_is_not_carried_on(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """Solved as trained and at 32 tokens, lost at 64: then not followed at 4,096 either."""
    longer = (Longer("n=32", 0, 1000, 1000), Longer("n=64", 0, 870, 1000))
    kept = row(
        {"mechanism": "gdn", "group": "parity", "length": 16},
        {3e-3: [trial(number, 1000, longer=longer) for number in range(3)]},
        architecture="gdn*2",
        task="parity:n=16",
    )
    install(monkeypatch, tmp_path / "lost", table("state-tracking", kept))
    one = found("gdn*4")["state-tracking parity"]
    assert "0.87 at 64 tokens" in one.measured
    assert (one.extrapolated, one.distances) == ("", {})


def test_two_seeds_are_no_claim(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    labels: dict[str, str | int] = {"mechanism": "gdn", "ratio": 1, "layers": 2, "task": "recall"}
    few = row(labels, seeds(900, 900), architecture="gdn + full")
    install(monkeypatch, tmp_path / "few", table("ratio", few))
    assert found("gdn + full") == {}


def test_verdicts_are_the_same_without_any_result(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    model = preset("qwen3-next-80b")
    with_results = card(model, 8192)
    assert card_facts(model, 8192).practice
    install(monkeypatch, tmp_path / "none")
    assert card(model, 8192) == with_results
    assert card_facts(model, 8192).practice == ()


def test_a_card_in_print_and_as_data(capsys: pytest.CaptureFixture[str]) -> None:
    spec = "gdn*2 @ heads=2, head_dim=16"
    assert run(["analyze", spec]) == 0
    text = " ".join(capsys.readouterr().out.split())
    assert "measured: trained Gated DeltaNet layers learned at least 1.2" in text
    assert "; extrapolated 16 x in numbers, 3,100 x in values: 78" in text
    assert "do not conclude that such layers hold no more" in text
    assert "lower bound" not in text
    assert run(["analyze", spec, "--explain"]) == 0
    assert "lower bound" in " ".join(capsys.readouterr().out.split())
    assert run(["analyze", spec, "--json"]) == 0
    data: Any = json.loads(capsys.readouterr().out)
    one = data["practice"][0]
    assert one["experiment"] == "capacity"
    assert one["numbers"]["facts"] == 78
    assert one["times_beyond"]["numbers"] == 16
    assert one["question"] == data["verdicts"][0]["question"]
    assert not any("measured" in verdict for verdict in data["verdicts"])


def test_cards_side_by_side(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["compare", "gdn*2", "mamba2", "--json"]) == 0
    data: Any = json.loads(capsys.readouterr().out)
    rows = {
        one["row"]: one["cells"] for one in data["rows"] if one["part"] == "What training found"
    }
    recalled, nothing = rows["recall of one of n facts (capacity)"]
    assert recalled.startswith("measured: 1.2 [1.1, 1.3] bits per number; extrapolated ")
    assert nothing == "-"
