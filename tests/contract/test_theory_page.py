"""docs/theory.md against the program: a section for every theorem, formulas that render, and tables
whose numbers are derived again.
"""

from __future__ import annotations

import re
from typing import Any

import pytest
from support.depth_sizes import closed_form
from support.each import each
from support.latex import faults, formulas
from support.theory_page import PAGE, PARTS, SECTIONS, Section, section

from separatrix.core.numbers.accuracy import highest_accuracy, percent, stored_accuracy
from separatrix.core.numbers.counts import Power
from separatrix.stacks.architecture import Architecture
from separatrix.stacks.architecture.resolve import preset
from separatrix.tasks import parse_task
from separatrix.theory import THEOREMS, judge
from separatrix.theory.words import KNOWN


def test_every_theorem_has_a_section() -> None:
    told = [key for section in SECTIONS for key in section.keys]
    assert sorted(told) == sorted({*THEOREMS, "lifting"} - {"none"})
    assert [key for key in KNOWN if f"`{key}`" not in PAGE] == []


@pytest.mark.parametrize("told", SECTIONS, ids=lambda section: section.keys[0])
def test_a_section_has_its_six_parts(told: Section) -> None:
    assert tuple(re.findall(r"^\*\*(\w+)\.\*\*", told.text, re.MULTILINE)) == PARTS
    assert all(told.part(name) for name in PARTS)
    steps = re.findall(r"^(\d+)\. \S", told.part("Proof"), re.MULTILINE)
    assert steps == [str(number) for number in range(1, len(steps) + 1)]
    assert len(steps) >= 2
    # formulas may hold full stops
    words = " ".join(re.sub(r"\$[^$]*\$", "x", told.part("Intuition")).split())
    assert len(re.findall(r"[.?!](?= [A-Z$]|$)", words)) == 3, words


def test_formulas_render() -> None:
    assert faults(PAGE) == []
    assert sum(1 for _ in formulas(PAGE)) > 1_000


@each(
    "text, fault",
    [
        (r"$\frac{1}{2$", "nothing closes"),
        (r"$a}$", "closes nothing"),
        (r"$\lamda$", "no command"),
        (r"$\{a\}$", "does not reach MathJax"),
        (r"$\left( a$", "nothing closes"),
        (r"$a_$", "nothing stands behind _"),
        (r"$a <b$", "a tag of HTML"),
        ("$a$s", "'s' stands behind"),
        ("the$a$", "'e' stands before"),
        ("costs $5", "opens or closes nothing"),
        ("$$a\n\n    b", "opens or closes nothing"),
        (r"$\begin{cases} a & b \end{aligned}$", "of no environment"),
        ("`$a_$` and $b_1$, `$` and $x^{2}$.", None),
    ],
)
def test_formulas_that_do_not_render_are_found(text: str, fault: str | None) -> None:
    found = faults(text)
    assert [fault in one for one in found] == [True] * len(found) if fault else found == []
    assert bool(found) == bool(fault)


VERDICTS = [
    (section.keys, *row[:4])
    for section in SECTIONS
    if "| stack | task | verdict | n |" in section.text
    for row in section.rows("stack")
]
SEARCHED = [row for row in VERDICTS if "at most" in row[4] and "full*3 @" not in row[1]]
"""Of a third of a second each; one of them is quick enough."""


def is_the_programs(keys: tuple[str, ...], stack: str, task: str, status: str, n: str) -> None:
    model, asked = Architecture.parse(stack.strip("`")), parse_task(task.strip("`"))
    # what the section's own theorem says counts first
    found = judge(model, asked, among=lambda theorem: theorem.key in keys) or judge(model, asked)
    assert found[0].status == status
    if n.startswith("at most "):
        assert found[0].n is not None
        assert found[0].n <= float(n.removeprefix("at most "))
    else:
        assert n == ("-" if found[0].n is None else f"{found[0].n:,}")


def test_verdicts_are_those_of_the_program() -> None:
    for row in VERDICTS:
        if row not in SEARCHED:
            is_the_programs(*row)


@pytest.mark.slow
@pytest.mark.parametrize("row", SEARCHED, ids=lambda row: row[1])
def test_searched_verdicts_are_those_of_the_program(row: tuple[Any, ...]) -> None:
    is_the_programs(*row)


def test_the_table_of_the_closed_form() -> None:
    rows = section("VII").rows("h")
    assert {int(h) for h, _ in rows} >= {1, 40, 272}
    for h, n in rows:
        assert f"{closed_form(int(h)).length():,}" == n


def test_the_table_of_theorem_a() -> None:
    rows = section("A").rows("C")
    assert len(rows) >= 4
    for row in rows:
        C, N, V = (int(cell) for cell in row[:3])
        highest = percent(highest_accuracy(Power(V, N), N, V, C))
        assert row[3:] == [highest, percent(stored_accuracy(N, V, C), up=False)]


def test_the_table_of_theorem_r() -> None:
    rows = section("R").rows("model")
    assert len(rows) == 4
    for name, facts, reach, bits, n in rows:
        task = parse_task(facts.strip("`"))
        (found,) = judge(preset(name), task, among=lambda theorem: theorem.key == "R")
        assert (found.status, f"{found.n:,}") == ("FAILS", n)
        assert f"{found.numbers['reach']:,}" == reach
        assert f"{found.numbers['state_bits']:,}" == bits


def test_the_table_of_theorem_p() -> None:
    """A layer of p bits per number without convolution: c = 2^p - 1, T = 1 + c, n = 2T + 1."""
    for row in section("P").rows("bits of a state's number"):
        p, T, n = (int(cell.replace(",", "")) for cell in row)
        assert (T, n) == (1 + 2**p - 1, 2 * T + 1)
