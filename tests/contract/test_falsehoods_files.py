"""False records that an earlier checker accepted, each with a fitting content hash: verdicts,
measurements, certificates. All are refused now.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from separatrix.checks.verify import verify
from separatrix.core.errors import CannotCheck, CheckFailed
from separatrix.core.evidence.records import Verdict
from separatrix.stacks.architecture import Architecture
from separatrix.stacks.architecture.resolve import preset
from separatrix.tasks import parse_task
from separatrix.theory import judge
from separatrix.theory.base import Theorem
from separatrix.theory.nothing import NothingKnown

STACK = Architecture.parse("full(running_max=false) + linear @ heads=1, head_dim=1")
FAILING = parse_task("seqcomp:L=2,m=14,n_1=19")
SHORT = parse_task("seqcomp:L=2,m=14,n_1=1")


def first(architecture: Architecture, task: str, theorem: str) -> Verdict:
    found = judge(architecture, parse_task(task))
    return next(verdict for verdict in found if verdict.theorem == theorem)


def refused(record: Verdict) -> str:
    with pytest.raises(CheckFailed, match="does not hold") as caught:
        verify(record, folder=Path())
    return str(caught.value)


def known_now(record: Verdict) -> str:
    """What is said of an OPEN record that claims nothing, where more is known."""
    assert record.status == "OPEN"
    return "; ".join(verify(record, folder=Path()).checks)


def test_nothing_known_by_an_earlier_version_where_a_theorem_says_fails() -> None:
    assert first(STACK, FAILING.spec, "III").status == "FAILS"
    opened = NothingKnown().judge(STACK, FAILING)
    assert "III says FAILS" in known_now(opened)
    # what it does not say it may not claim
    refused(replace(opened, status="FAILS"))
    refused(replace(opened, status="SOLVABLE"))
    refused(replace(opened, n=5))


def test_nothing_known_by_an_earlier_version_where_a_theorem_names_a_failing_size() -> None:
    assert first(STACK, SHORT.spec, "III").status == "OPEN"
    assert "III says OPEN" in known_now(NothingKnown().judge(STACK, SHORT))


def test_nothing_known_where_nothing_is() -> None:
    (only,) = judge(Architecture.parse("full*2"), parse_task("istree:n=9"))
    assert only.theorem == NothingKnown.key
    assert "no theorem decides" in known_now(only)


def test_open_by_a_theorem_that_fails_with_its_numbers_left_out() -> None:
    """What remains names a failing size elsewhere, and says that none is shown here."""
    fails = first(STACK, FAILING.spec, "III")
    elsewhere = {name: n for name, n in fails.numbers.items() if name.startswith("from_")}
    assert elsewhere
    assert elsewhere != fails.numbers
    lesser = _again(fails, elsewhere)
    assert lesser.status == "OPEN"
    assert "III says FAILS" in known_now(lesser)
    refused(replace(lesser, status="FAILS"))


def test_fails_without_a_failing_size_as_short() -> None:
    fails = first(STACK, FAILING.spec, "III")
    here = {name: n for name, n in fails.numbers.items() if not name.startswith("from_")}
    assert "no failing size" in refused(replace(fails, numbers=here))


def test_another_failing_size_is_never_the_shortest() -> None:
    """Parameters of a longer prompt show failure as well; a record with them is true as long as
    it says no more than that.
    """
    opened = first(STACK, SHORT.spec, "III")
    assert opened.n is not None
    longer = _again(opened, opened.numbers | {"from_n_1": 1434})
    assert longer.n is not None
    assert (opened.n, longer.n) == (282, 14 + 14 * 1434 + 2)
    verify(longer, folder=Path())
    assert f"a failing size: n = {longer.n:,} tokens" in longer.statement
    for verdict in (opened, longer):
        assert "shortest" not in verdict.statement
    # the n alone, or the words of another size
    refused(replace(opened, n=longer.n))
    refused(replace(longer, n=opened.n))
    # words alone may be an earlier version's: it is not called false, and does not hold either
    said = longer.statement.replace("a failing size: n", "the shortest prompts shown to fail: n")
    for words in (opened.statement, said):
        with pytest.raises(CannotCheck, match="edited, or another version"):
            verify(replace(longer, statement=words), folder=Path())
    with pytest.raises(CannotCheck, match="edited, or another version"):
        verify(replace(longer, assumptions=longer.assumptions[:-1]), folder=Path())
    # where a proof stands may move; what a FAILS verdict says and assumes is its claim
    failing = first(Architecture.parse("linear @ heads=1, head_dim=4"), "eva:n=4096,V=4096", "I")
    assert failing.status == "FAILS"
    with pytest.raises(CannotCheck, match="edited, or another version"):
        verify(replace(failing, source="[CPW]"), folder=Path())
    refused(replace(failing, assumptions=failing.assumptions[:-1]))


def test_open_by_an_asymptotic_bound_where_the_task_fails() -> None:
    from separatrix.theory import THEOREMS

    spec = "full @ accumulator=p8, running_max=false, format=p8, head_dim=4, heads=1"
    stack = Architecture.parse(spec)
    vacuous = THEOREMS["CPW-1.1"].judge(stack, FAILING)
    assert vacuous is not None
    assert vacuous.status == "OPEN"
    assert "decided now: theorem" in known_now(vacuous)
    # an earlier version said it in other words: what is known now is told nevertheless
    with pytest.raises(CannotCheck, match="decided now: theorem"):
        verify(replace(vacuous, statement="nobody knows"), folder=Path())
    refused(replace(vacuous, status="FAILS"))
    assert {verdict.status for verdict in judge(stack, FAILING)} == {"FAILS"}


def test_a_chain_of_thought_solves_the_task_with_the_chain() -> None:
    """At once, the same stack fails the same composition."""
    stack = Architecture.parse("full @ format=p24, head_dim=16, heads=1")
    task = parse_task("seqcomp:L=2,m=1000,n_1=1")
    assert {verdict.status for verdict in judge(stack, task)} == {"FAILS"}
    wide = Architecture.parse("full @ head_dim=16, heads=1")
    short = parse_task("seqcomp:L=2,m=32,n_1=1")
    (written,) = judge(wide, short, among=Theorem.solves_after_thought)
    assert (written.status, written.task) == ("SOLVABLE", "seqcomp:L=2,m=32,n_1=1,thought=pairs")
    verify(written, folder=Path())
    assert "another task" in refused(replace(written, task=short.spec))
    assert "says nothing" in refused(replace(written, task=f"{short.spec},thought=values"))
    assert judge(wide, parse_task(written.task)) == [written]


@pytest.mark.parametrize("name", ["recurrentgemma-2b", "qwen3-next-80b"])
def test_assumptions_are_those_of_the_spec(name: str) -> None:
    model = preset(name)
    task = parse_task("eva:n=8,V=8")
    verdict = judge(model, task)[0]
    assert verdict.assumptions == judge(Architecture.parse(model.spec), task)[0].assumptions
    assert set(verdict.assumptions) >= set(Architecture.parse(model.spec).assumptions)
    said = verify(verdict, folder=Path()).checks
    for note in verdict.notes:
        assert any("not checked" in line and note in line for line in said)
    assert verdict.notes == model.notes
    more = (*verdict.assumptions, "the weights are those of the paper")
    assert "another assumptions" in refused(replace(verdict, assumptions=more))
    if verdict.assumptions:
        fewer = verdict.assumptions[1:]
        assert "another assumptions" in refused(replace(verdict, assumptions=fewer))
        edited = (verdict.assumptions[0] + ".", *verdict.assumptions[1:])
        assert "another assumptions" in refused(replace(verdict, assumptions=edited))


def _again(verdict: Verdict, numbers: dict[str, int]) -> Verdict:
    """The theorem's own verdict with other numbers."""
    from separatrix.theory import THEOREMS

    architecture = Architecture.parse(verdict.architecture)
    again = THEOREMS[verdict.theorem].again(architecture, parse_task(verdict.task), numbers)
    assert again is not None
    return again
