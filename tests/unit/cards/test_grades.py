"""What cards and reports say of random questions: only where Theorem A speaks and bites."""

from __future__ import annotations

from separatrix.cards import card
from separatrix.cards.table.body import model_entry, source
from separatrix.core.evidence.records import Verdict
from separatrix.core.numbers.accuracy import highest_accuracy, percent
from separatrix.core.numbers.counts import Power
from separatrix.stacks.architecture import Architecture
from separatrix.stacks.architecture.resolve import preset
from separatrix.theory import recheck

CONTEXT = 20_000_000


def test_recall_and_composition_are_graded_at_the_context() -> None:
    model = preset("recurrentgemma-2b")
    graded = {line.key: line.grade for line in card(model, CONTEXT) if line.grade}
    # theory.md, section 12: what passes beyond the windows' reach
    bits, reach = 1_474_560, 16_430
    # all but the question are facts; two functions of one size and two tokens fill the context
    n, m = CONTEXT - 1, (CONTEXT - 2) // 2
    far, farther = n - reach, m - reach
    recalled = highest_accuracy(Power(256_000, far), far, 256_000, bits)
    recalled = -(-(reach * 10**6 + far * recalled) // n)
    composed = highest_accuracy(Power(m, farther), farther, m, bits)
    composed = -(-(reach * 10**6 + farther * composed) // m)
    found = {key: grade.ceiling for key, grade in graded.items()}
    assert (found["recall"], found["composition"]) == (recalled, composed)
    for grade in graded.values():
        recheck(grade.verdict)
        assert grade.why.split("16,430 tokens")[0].endswith("reach back ")
        assert grade.said.endswith(f" {percent(grade.ceiling)} of random questions")


def test_a_stack_with_little_cache_fails_both() -> None:
    model = Architecture.parse("gdn*2 @ heads=2, head_dim=16")
    lines = [line for line in card(model, 100_000) if line.grade]
    assert [line.key for line in lines] == ["recall", "recall-2", "needles", "composition"]
    assert all(line.status == "FAILS" for line in lines)
    assert lines[-1].grade is not None
    assert lines[-1].grade.said.startswith("with 49,999 entries")


def test_where_the_facts_fit_nothing_is_said() -> None:
    for model in (preset("recurrentgemma-2b"), preset("qwen3-next-80b")):
        assert not any(line.grade for line in card(model, 8192))


def test_a_report_has_it_as_a_line_with_its_record() -> None:
    entry, records = model_entry(source("gdn*2 @ heads=2, head_dim=16"))
    lines = entry["lines"]
    (added,) = [line for line in lines if line["question"] == "compose 2 steps"]
    behind = [records[one] for one in added["records"]]
    assert [one.theorem for one in behind if isinstance(one, Verdict)] == ["I", "A"]
    assert "% at best" in added["text"]
    assert all(one in records for line in lines for one in line["records"])
