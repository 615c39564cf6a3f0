"""docs/theory.md against the program: a section for every theorem, formulas that render, and tables
whose numbers are derived again.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import pytest
from support.bounds import holds
from support.console import ROOT
from support.depth_sizes import five, four, three
from support.each import each
from support.latex import faults, formulas

from separatrix.core.numbers.accuracy import highest_accuracy, percent, stored_accuracy
from separatrix.core.numbers.counts import Power
from separatrix.stacks.architecture import Architecture
from separatrix.stacks.architecture.resolve import preset
from separatrix.tasks import parse_task
from separatrix.theory import THEOREMS, judge
from separatrix.theory.arguments import Numbers, Sizes
from separatrix.theory.base import at_most
from separatrix.theory.fails import iii_one_reading_layer as iii
from separatrix.theory.fails import iv_two_reading_layers as iv
from separatrix.theory.fails import v_three_steps as v
from separatrix.theory.fails.many_layers import closed_form
from separatrix.theory.fails.many_proof import Parameters, conditions
from separatrix.theory.words import KNOWN

PAGE = (ROOT / "docs" / "theory.md").read_text(encoding="utf-8")
PARTS = ("Statement", "Intuition", "Proof", "Numbers", "Assumed", "Open")


@dataclass(frozen=True)
class Section:
    """What stands below one heading, and the keys of the theorems that it is about."""

    heading: str
    keys: tuple[str, ...]
    text: str

    def part(self, name: str) -> str:
        """What stands behind **name.**"""
        found = re.search(
            rf"^\*\*{name}\.\*\*(.*?)(?=^\*\*(?:{'|'.join(PARTS)})\.\*\*|\Z)",
            self.text,
            re.DOTALL | re.MULTILINE,
        )
        assert found is not None, f"{self.heading}: no {name}"
        return found[1].strip()

    def rows(self, first: str) -> list[list[str]]:
        """The cells of the table whose head begins so, without head."""
        lines = self.text.split("\n")
        start = next(at for at, line in enumerate(lines) if line.startswith(f"| {first} |"))
        table = []
        for line in lines[start + 2 :]:
            if not line.startswith("|"):
                break
            table.append([cell.strip() for cell in line.strip("|").split("|")])
        return table


def sections(page: str) -> Iterator[Section]:
    for block in re.split(r"(?m)^(?=#{2,3} )", page)[1:]:
        heading, _, text = block.partition("\n")
        yield Section(heading.lstrip("# "), tuple(re.findall(r"\(`([^`]+)`\)", heading)), text)


SECTIONS = [section for section in sections(PAGE) if section.keys]


def section(key: str) -> Section:
    (found,) = (section for section in SECTIONS if key in section.keys)
    return found


def integers(cell: str) -> list[int]:
    return [int(number) for number in re.findall(r"\d+", cell)]


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


def shape(cell: str) -> tuple[int, int]:
    """h and the bits of a recurrent layer, or bounded head, as wide."""
    heads, d, p = integers(cell)
    return heads * (d + 1) * p, heads * d * (d + 1) * p


def shown(parameters: Any) -> str:
    """The size that a search has found, as it is printed."""
    return at_most(parameters.length(), found=True).removeprefix("at most ")


def test_the_table_of_theorem_iii() -> None:
    rows = section("III").rows("H,d,p")
    assert len(rows) == 7
    for hdp, groups, n, chosen in rows:
        h, state = shape(hdp)
        before, after = (layers * state for layers in integers(groups))
        m, r, t, n_1 = integers(chosen)
        parameters = iii.Parameters(m=m, n_1=n_1, r=r, t=t)
        assert holds(iii.TheoremIII(), parameters, three(h=h, sigma_0=before, sigma_1=after))
        assert shown(parameters) == n


def test_the_table_of_theorem_iv() -> None:
    rows = section("IV").rows("H,d,p")
    assert len(rows) == 4
    for hdp, heads, n, chosen in rows:
        h, state = shape(hdp)
        inside = int(heads) * state
        m, n_1, r, q, t, g = integers(chosen)
        parameters = iv.Parameters(m=m, n_1=n_1, r=r, q=q, t=t, g=g)
        sizes = four(h_1=h, h_2=h, sigma_1=inside, sigma_2=inside)
        assert holds(iv.TheoremIV(), parameters, sizes)
        assert shown(parameters) == n


def test_the_table_of_theorem_v() -> None:
    rows = section("V").rows("H,d,p")
    assert len(rows) == 2
    for hdp, groups, n, chosen in rows:
        h, state = shape(hdp)
        sigma = [layers * state for layers in integers(groups)]
        m, n_1, n_2, X, t, beta, q, r, g = integers(chosen)
        sizes = five(h_1=h, h_2=h, sigma_0=sigma[0], sigma_1=sigma[1], sigma_2=sigma[2])
        x = Numbers(u_0=0, N_1=n_1 * m, q=q, sigma_0=sigma[0])
        u_0 = v.TheoremV().poor_places(x).certified_places() if sigma[0] else 1
        assert u_0 is not None
        named: dict[str, Any] = {"m": m, "n_1": n_1, "n_2": n_2, "X": X, "t": t, "beta": beta}
        parameters = v.Parameters(**named, q=q, r=r, g=g, u_0=u_0 - 1)
        assert holds(v.TheoremV(), parameters, sizes)
        assert shown(parameters) == n


def test_the_table_of_theorems_vi_and_vii() -> None:
    rows = section("VII").rows("H,d,p")
    assert len(rows) == 16
    for hdp, model, steps, n, shared, further, contents, hit, flags in rows:
        h, state = shape(hdp)
        ahead = int("VII" in model)
        readers = integers(model)[0]
        assert int(steps) == readers + 1 - ahead
        part, G, g, t, x, n_1 = integers(shared)
        parameters = Parameters(
            m=G * part,
            n=(n_1, g * G, *integers(further)),
            part=part,
            G=G,
            g=g,
            t=t,
            x=x,
            contents=tuple(integers(contents)),
            y_1=integers(hit)[0],
            hit=tuple(integers(hit)[1:]),
            flags=(*integers(flags), 0),
        )
        sizes = Sizes((h,) * readers, tuple(groups(model, readers, state)), (0,) * readers)
        needed = conditions(ahead, sizes, parameters).values()
        assert all(one.sign().positive for one in needed), model
        assert shown(parameters) == n


def groups(model: str, readers: int, state: int) -> list[int]:
    """The bits of the groups that a row's words tell of."""
    if "pure" in model:
        return [0] * (readers + 1)
    if "everywhere" in model:
        return [(2 if "two layers" in model else 1) * state] * (readers + 1)
    if "bounded after last" in model:
        return [0] * readers + [state]
    assert "head in 1st, layers after 2nd and last" in model
    return [0, state, state, state]


def test_the_table_of_the_closed_form() -> None:
    rows = section("VII'").rows("h")
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
