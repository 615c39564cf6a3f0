"""Evidence as people read it."""

from __future__ import annotations

from support.each import each

from separatrix.cli.report.evidence import verdict_parts
from separatrix.core.document import Document
from separatrix.stacks.architecture import Architecture
from separatrix.tasks import parse_task
from separatrix.theory import judge


@each("before", [0, 3])
def test_layers_of_a_verdict_are_counted_from_one(before: int) -> None:
    """As `--why` and sentences count them; the record counts from 0."""
    stack = Architecture.parse(f"gdn*{before} + full" if before else "full")
    verdict = judge(stack, parse_task("twosum:n=64,M=65536,form=query"))[0]
    assert (verdict.status, verdict.numbers["layer"]) == ("SOLVABLE", before)
    said = Document(*verdict_parts(verdict)).text(100)
    assert f"layer {before + 1}" in said
    assert f"layer {before}" not in said
