"""An experiment's results as people read them: every seed, contrasts, the text with its claims."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from fractions import Fraction
from math import ceil, floor
from statistics import median
from typing import Any, NamedTuple

from separatrix.cards.measured.table import Table
from separatrix.core.document.cells import duration
from separatrix.core.document.markdown import plain
from separatrix.findings.base import LEAST_SEEDS, Contrast, Experiment, Picture
from separatrix.findings.claims import CLAIM, Claims
from separatrix.findings.exact import fisher, holm, interval, sign_flips
from separatrix.findings.own import one_question
from separatrix.findings.results import Cell, Results, shown
from separatrix.stacks.architecture import Architecture
from separatrix.tasks import Task, parse_task
from separatrix.theory import judge

SHOWN = Fraction(1, 20)
"""A contrast is shown where its p after Holm is at most this."""
MOST_NAMED = 4
"""Cells of the verdict that most have; more are counted."""
COLUMNS: tuple[str, ...] = ("cell", "solved by", "in steps", "every seed", "accuracy", "rate")
_GREY = '<span style="color:gray">'


class Found(NamedTuple):
    """What came of a contrast."""

    contrast: Contrast
    p: Fraction | None
    """After Holm over all contrasts that the page names; None where it is open."""
    said: str


def line(cell: Cell, grey: str) -> tuple[str, ...]:
    """A cell as a line of the table."""
    many = f"{cell.solved} of {len(cell.seeds)}"
    low, high = interval(cell.solved, len(cell.seeds))
    answers = shown(Fraction(median(cell.accuracies)))
    if len(cell.seeds) > 1:
        answers += f" ({shown(min(cell.accuracies))} to {shown(max(cell.accuracies))})"
    return (
        cell.name,
        f"not solved in {cell.steps:,} steps ({many})"
        if grey
        else f"{many} seeds ({floor(100 * low)} to {ceil(100 * high)} %)",
        "" if grey else cell.spread,
        ", ".join(cell.ends),
        answers,
        f"{cell.rate:g}",
    )


def lines(results: Results) -> list[tuple[tuple[str, ...], str]]:
    """Each cell's line, and why it is grey ("" where it is not); runs that choose a rate only are
    left out where others have seeds enough.
    """
    found = [(cell, results.grey(cell)) for cell in _kept(results)]
    return [(line(cell, grey), grey) for cell, grey in found]


def _kept(results: Results) -> list[Cell]:
    most = max((len(cell.seeds) for cell in results.cells.values()), default=0)
    least = LEAST_SEEDS if most >= LEAST_SEEDS else 0
    return [cell for cell in results.cells.values() if len(cell.seeds) >= least]


def markdown(results: Results) -> str:
    """The table, what is grey in grey."""
    rows: list[tuple[str, ...]] = [COLUMNS, ("---",) * len(COLUMNS)]
    for cells, grey in lines(results):
        said = map(plain, cells)
        rows.append(tuple(f"{_GREY}{one}</span>" if grey and one else one for one in said))
    return "\n".join(f"| {' | '.join(row)} |" for row in rows)


def contrasts(named: Sequence[Contrast], results: Results) -> list[Found]:
    """What came of contrasts: an exact test each, Holm over all that are named."""
    tested = [_tested(one, results) for one in named]
    adjusted = iter(holm([of[0] for of in tested if not isinstance(of, str)], len(named)))
    found: list[Found] = []
    for one, of in zip(named, tested, strict=True):
        if isinstance(of, str):
            found.append(Found(one, None, f"open: {of}"))
            continue
        after, told = next(adjusted), "no difference shown"
        if after <= SHOWN:
            told = f"shown: {one.one if of[1] else one.other} is ahead"
        found.append(Found(one, after, f"{told} (p = {probability(after)})"))
    return found


def _tested(one: Contrast, results: Results) -> tuple[Fraction, bool] | str:
    """The p of one contrast alone, and whether its first cell is ahead; or why it is open."""
    cells: list[Cell] = []
    for name in (one.one, one.other):
        if name not in results.cells:
            return f"{name} is not trained yet"
        cells.append(results.cells[name])
    if cells[0].comparison != cells[1].comparison:
        return "the two were trained under different settings"
    # what a contrast compares is its two cells
    pair = Results.of(cells)
    if reasons := [f"{cell.name}: {why}" for cell in cells if (why := pair.grey(cell))]:
        return reasons[0]
    first, second = (
        dict(zip((seed.seed for seed in cell.seeds), cell.to_solve, strict=True)) for cell in cells
    )
    if min(len(first), len(second)) < LEAST_SEEDS:
        return f"fewer than {LEAST_SEEDS} seeds"
    if one.test == "solved":
        solved = [cell.solved for cell in cells]
        p = fisher(solved[0], len(first), solved[1], len(second))
        return p, solved[0] * len(second) > solved[1] * len(first)
    if first.keys() != second.keys():
        return "the two have different seeds"
    return sign_flips([(steps, second[seed]) for seed, steps in first.items()])


def probability(p: Fraction) -> str:
    """Three decimals, rounded up: nothing looks rarer than it is."""
    return f"{ceil(p * 1000) / 1000:.3f}"


def text(experiment: Experiment, results: Results, parts: Mapping[str, str]) -> str:
    """The page's text, its claims computed. Raises what `Claims.fill` raises."""
    found = contrasts(experiment.contrasts, results)
    said = "\n".join(
        f"- {plain(two.one)} against {plain(two.other)}: {plain(told)}" for two, _, told in found
    )
    tested = {(one.contrast.one, one.contrast.other): one.p for one in found}
    claims = Claims(results, tested, f"{experiment.name}.md")
    drawn = dict.fromkeys(pictures(experiment), "")
    known = {"table": markdown(results), "contrasts": said, **drawn}
    return claims.fill(experiment.text, {**known, **parts}, experiment.first)


def section(
    experiment: Experiment, results: Results, notes: Sequence[str], *, folder: str, heading: str
) -> str:
    """What stands about an experiment on a page whose pictures are in a folder ("images/"). Raises
    what `text` raises.
    """
    images = {
        name: f"![{alternative(one)}]({folder}{file})"
        for name, (file, one) in pictures(experiment).items()
    }
    parts = [f"{heading} `{experiment.name}`: {experiment.title}", plain(experiment.question)]
    named = {words.strip() for words in CLAIM.findall(experiment.text)}
    if "table" not in named:
        parts.append(markdown(results))
    parts += [image for name, image in images.items() if name not in named]
    parts.append(text(experiment, results, images))
    parts.append("\n".join(f"- {plain(note)}" for note in notes))
    return "\n\n".join(part for part in parts if part) + "\n"


def pictures(experiment: Experiment) -> dict[str, tuple[str, Picture]]:
    """What stands for it in the text -> file and picture; one of all cells where none is named."""
    named = experiment.pictures or {"": Picture(f"{experiment.title}. {experiment.question}")}
    return {
        f"picture {name}".strip(): (f"experiment-{experiment.name}-{name}".strip("-") + ".svg", one)
        for name, one in named.items()
    }


def alternative(one: Picture) -> str:
    """What a picture shows, for readers who do not see it."""
    told = "Steps until each seed solved the task; a triangle where it did not."
    if one.curves:
        told = f"Running accuracy by step, a line a seed: {' and '.join(one.cells)}."
    return f"{one.title}. {told}".replace("..", ".").replace("[", "(").replace("]", ")")


def made(table: Table) -> str:
    """Where a table comes from, in one sentence."""
    one = table.provenance
    many = f"{one.cores} processes" if one.cores > 1 else "one process"
    return (
        f"Made by {one.command} at commit {one.commit[:10]} (version {one.version}) on {one.date}:"
        f" {duration(one.seconds)} of training in all, by {many} on {one.device}."
    )


def notes(results: Results) -> list[str]:
    """How to read the table, one sentence each."""
    told = lines(results)
    grey = sum(bool(grey) for _, grey in told)
    found = [
        "Solved: a running accuracy of 99.5 % and then 99 % on fresh prompts. In brackets: the"
        " exact 95 % interval over seeds; the least and the most.",
    ]
    if grey:
        found.append(
            f"Grey, {grey} of {len(told)}: not trained to the end, so that nothing"
            " follows. Not solved is a finding about training, never about weights."
        )
    return [*found, *_commits(results), *filter(None, [_proved(results)])]


def _commits(results: Results) -> list[str]:
    """Which cells of one comparison other code has trained."""
    of: dict[str, dict[str, list[str]]] = {}
    for cell in _kept(results):
        for commit in cell.commits:
            of.setdefault(cell.comparison, {}).setdefault(commit[:10], []).append(cell.name)
    said: list[str] = []
    for cells in (cells for cells in of.values() if len(cells) > 1):
        told = (f"{commit} trained {', '.join(names)}" for commit, names in cells.items())
        said.append(f"Compared, and of {len(cells)} commits: {'; '.join(told)}.")
    return said


def proved(stack: Architecture, task: Task) -> str:
    """The strongest verdict on a task of which one question is asked."""
    found = judge(stack, one_question(task))[0]
    return found.status if found.status == "OPEN" else f"{found.status} ({found.theorem})"


def _proved(results: Results) -> str:
    """What theorems say of these stacks on these tasks, beside what training found."""
    found: dict[str, list[str]] = {}
    for cell in _kept(results):
        said = proved(Architecture.parse(cell.stack), parse_task(cell.task))
        found.setdefault(said, []).append(cell.name)
    most = max(found, key=lambda said: len(found[said]), default="")
    named = [said for said in found if said != most or len(found[said]) <= MOST_NAMED]
    told = [f"{said} for {', '.join(found[said])}" for said in named]
    if len(named) < len(found):
        told.append(f"{most} for the other {len(found[most])}")
    return f"Proved of these stacks, one question asked: {'; '.join(told)}." if told else ""


def data(experiment: Experiment, table: Table, results: Results) -> dict[str, Any]:
    """A table as its file holds it, and what is derived from it."""
    found = [
        {**one._asdict(), "p": None if p is None else float(p), "said": said}
        for one, p, said in contrasts(experiment.contrasts, results)
    ]
    more = {"question": experiment.question, "contrasts": found, "cells": cells_data(results)}
    return {**table.to_json()["body"], **more}


def cells_data(results: Results) -> list[dict[str, Any]]:
    """Cells as JSON has them, with why they are grey and every seed."""
    return [{**cell.to_json(), "grey": results.grey(cell)} for cell in results.cells.values()]
