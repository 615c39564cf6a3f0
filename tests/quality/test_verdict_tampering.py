"""A verdict whose content was changed is refused, even with a fresh content hash."""

from __future__ import annotations

from dataclasses import replace

import pytest
from support.paper_sizes import paper_sizes

from separatrix.core.errors import SeparatrixError
from separatrix.core.evidence.records import Verdict
from separatrix.stacks.architecture import Architecture
from separatrix.tasks import parse_task
from separatrix.theory import judge, recheck

CASES = [
    ("linear @ heads=1, head_dim=1", "eva:n=32,V=32"),
    (f"full @ {paper_sizes(1, 4, 8)}", "seqcomp:L=2,m=12,n_1=1"),
    ("sparse @ block=16, head_dim=1, heads=1, topk=1", "twosum:n=64,M=256,form=query"),
    ("full*3 @ head_dim=32, heads=1", "seqcomp:L=2,m=16,n_1=2"),
]


def _verdicts() -> list[Verdict]:
    return [v for spec, task in CASES for v in judge(Architecture.parse(spec), parse_task(task))]


def _edits(verdict: Verdict):
    other = {"FAILS": "OPEN", "OPEN": "FAILS", "SOLVABLE": "OPEN"}[verdict.status]
    yield replace(verdict, status=other)
    yield replace(
        verdict,
        statement=(
            verdict.statement.replace("1", "2", 1)
            if "1" in verdict.statement
            else verdict.statement + "!"
        ),
    )
    yield replace(verdict, n=(verdict.n or 0) + 1)
    yield replace(verdict, theorem="V" if verdict.theorem != "V" else "I")
    yield replace(verdict, source=verdict.source + " ")
    yield replace(verdict, premises=verdict.premises[:-1] if verdict.premises else ("none",))
    yield replace(verdict, slack=verdict.slack + "1")
    if verdict.status != "SOLVABLE":  # more heads leave that claim true
        yield replace(
            verdict,
            architecture=(
                verdict.architecture + "0"
                if verdict.architecture[-1].isdigit()
                else verdict.architecture + "x"
            ),
        )
    for name, value in verdict.numbers.items():
        yield replace(verdict, numbers=verdict.numbers | {name: value + 1})
    if verdict.assumptions:
        yield replace(verdict, assumptions=verdict.assumptions[1:])


def test_each_edit_is_refused() -> None:
    count = 0
    for verdict in _verdicts():
        recheck(verdict)
        for edited in _edits(verdict):
            count += 1
            with pytest.raises(SeparatrixError):
                recheck(edited)
    assert count > 60
