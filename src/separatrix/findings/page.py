"""An experiment's results as people read them: every seed, contrasts, the text with its claims."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from fnmatch import fnmatch
from fractions import Fraction
from math import ceil, floor
from statistics import median
from typing import Any, NamedTuple

from separatrix.cards.measured.table import Table
from separatrix.core.document.cells import duration
from separatrix.core.document.markdown import plain
from separatrix.findings.base import LEAST_SEEDS, Contrast, Experiment, Picture
from separatrix.findings.claims import Claims
from separatrix.findings.exact import fisher, holm, interval, sign_flips
from separatrix.findings.own import one_question
from separatrix.findings.results import Cell, Results, shown
from separatrix.stacks.architecture import Architecture
from separatrix.tasks import Task, parse_task
from separatrix.theory import judge

SHOWN = Fraction(1, 20)
"""A contrast is shown where its p after Holm is at most this."""
ALIKE = 1.02
"""Parameters that differ by less are called equal."""
COLUMNS = ("cell", "solved by", "in steps", "every seed", "accuracy", "rate", "proved")


class Found(NamedTuple):
    """What came of a contrast."""

    contrast: Contrast
    p: Fraction | None
    """After Holm over all contrasts of its question; None where it is open."""
    said: str
    ahead: str = ""
    """The cell that is; "" where it is open."""

    @property
    def told(self) -> str:
        one, other, test, _ = self.contrast
        at = "" if test == "steps" else f" ({test})"
        return f"{one} against {other}{at}: {self.said}"


def line(cell: Cell, grey: str) -> tuple[str, ...]:
    """A cell as a line of the table."""
    many = f"{cell.solved} of {len(cell.seeds)}"
    low, high = interval(cell.solved, len(cell.seeds))
    half, least, most = (f(cell.accuracies) for f in (median, min, max))
    longest = cell.at_longest.values()
    beyond = f"; {shown(median(longest))} at the longest size" if longest else ""
    return (
        cell.name,
        f"not solved in {cell.steps:,} steps ({many})"
        if grey
        else f"{many} seeds ({floor(100 * low)} to {ceil(100 * high)} %)",
        "" if grey else cell.spread,
        ", ".join(cell.ends),
        f"{shown(half)} ({shown(least)} to {shown(most)}){beyond}",
        f"{cell.rate:g}",
        proved(Architecture.parse(cell.stack), parse_task(cell.task)),
    )


def lines(results: Results, named: Sequence[str] = ()) -> list[tuple[tuple[str, ...], str]]:
    """Each cell's line, and why it is grey ("" where it is not); of the cells named, `*` for any
    letters, or, behind `!`, of all others. Runs that choose a rate only are left out where others
    have seeds enough.
    """
    without = [one[1:] for one in named if one.startswith("!")]
    of = [one for one in named if not one.startswith("!")] or ["*"]
    least = min(LEAST_SEEDS, max((len(cell.seeds) for cell in results.cells.values()), default=0))
    kept = [
        cell
        for cell in results.cells.values()
        if len(cell.seeds) >= least and _any(cell.name, of) and not _any(cell.name, without)
    ]
    return [(line(cell, grey := results.grey(cell)), grey) for cell in kept]


def markdown(results: Results, named: Sequence[str] = ()) -> str:
    """The table of `lines`, what is grey in italics."""
    rows: list[tuple[str, ...]] = [COLUMNS, ("---",) * len(COLUMNS)]
    for cells, grey in lines(results, named):
        said = map(plain, cells)
        rows.append(tuple(f"<i>{one}</i>" if grey and one else one for one in said))
    return "\n".join(f"| {' | '.join(row)} |" for row in rows)


def _any(name: str, of: Iterable[str]) -> bool:
    return any(fnmatch(name, one) for one in of)


def contrasts(named: Sequence[Contrast], results: Results) -> list[Found]:
    """What came of contrasts: an exact test each, Holm over all that a question names."""
    tested = [_tested(one, results) for one in named]
    adjusted: dict[Contrast, Fraction] = {}
    for question in {one.question for one in named}:
        # one that is open counts as well
        of = {
            one: Fraction(1) if p is None else p
            for one, (p, _) in zip(named, tested, strict=True)
            if one.question == question
        }
        adjusted |= zip(of, holm([*of.values()]), strict=True)
    found: list[Found] = []
    for one, (p, said) in zip(named, tested, strict=True):
        after = adjusted[one]
        if p is None:
            found.append(Found(one, None, f"open: {said}"))
            continue
        told = f"shown: {said} is ahead" if after <= SHOWN else "no difference shown"
        a, b = (results.cells[name].seeds[0].parameters for name in one[:2])
        sizes = f"; {a:,} and {b:,} parameters" if max(a, b) > ALIKE * min(a, b) else ""
        # rounded up: nothing looks rarer than it is
        told = f"{told} (p = {ceil(after * 1000) / 1000:.3f}{sizes})"
        found.append(Found(one, after, told, said))
    return found


def _tested(named: Contrast, results: Results) -> tuple[Fraction | None, str]:
    """The p of one contrast alone, and the cell that is ahead; None, and why it is open."""
    names = (named.one, named.other)
    if lacking := [name for name in names if name not in results.cells]:
        return None, f"{lacking[0]} is not trained yet"
    # what a contrast compares is its two cells
    pair = Results.of(results.cells[name] for name in names)
    one, other = pair.cells.values()
    many = [len(cell.seeds) for cell in (one, other)]
    if one.comparison != other.comparison:
        return None, "the two were trained under different settings"
    if reasons := [f"{cell.name}: {why}" for cell in (one, other) if (why := pair.grey(cell))]:
        return None, reasons[0]
    if min(many) < LEAST_SEEDS:
        return None, f"fewer than {LEAST_SEEDS} seeds"
    if named.test == "solved":
        first = one.solved * many[1] > other.solved * many[0]
        return fisher(one.solved, many[0], other.solved, many[1]), names[not first]
    if [seed.seed for seed in one.seeds] != [seed.seed for seed in other.seeds]:
        return None, "the two have different seeds"
    if named.test == "steps":
        p, first = sign_flips([*zip(one.to_solve, other.to_solve, strict=True)])
        return p, names[not first]
    a, b = one.at_longest, other.at_longest
    # the larger share is ahead
    pairs = [(-float(a[seed]), -float(b[seed])) for seed in a.keys() & b.keys()]
    if len(pairs) < LEAST_SEEDS:
        return None, f"{len(pairs)} seeds solved both"
    p, first = sign_flips(pairs)
    return p, names[not first]


def text(experiment: Experiment, results: Results, parts: Mapping[str, str]) -> str:
    """The page's text, its claims computed. Raises what `Claims.fill` raises."""
    found = contrasts(experiment.contrasts, results)
    known: dict[str, str] = {}
    for question in ("", *{x.contrast.question: None for x in found}):
        of = (x for x in found if question in ("", x.contrast.question))
        known[f"contrasts {question}".strip()] = "\n".join(f"- {plain(x.told)}" for x in of)
    for words in re.findall(r"{{(table\b.*?)}}", experiment.text):
        known[words] = markdown(results, words.split()[1:])
    tested = {frozenset(x.contrast[:2]): (x.p, x.ahead) for x in found if x.p is not None}
    claims = Claims(results, tested, f"{experiment.name}.md")
    known |= dict.fromkeys(pictures(experiment), "")
    return claims.fill(experiment.text, {**known, **parts})


def section(experiment: Experiment, results: Results, *said: str, folder: str, heading: str) -> str:
    """What stands about an experiment on a page whose pictures are in a folder ("images/"); `said`
    closes it. Raises what `text` raises.
    """
    images = {
        name: f"![{alternative(one)}]({folder}{file})"
        for name, (file, one) in pictures(experiment).items()
    }
    parts = [f"{heading} `{experiment.name}`: {experiment.title}", plain(experiment.question)]
    parts.append(text(experiment, results, images))
    parts.append("\n".join(f"- {plain(note)}" for note in (*notes(results), *said)))
    return "\n\n".join(filter(None, parts)) + "\n"


def pictures(experiment: Experiment) -> dict[str, tuple[str, Picture]]:
    """What stands for it in the text -> file and picture."""
    return {
        f"picture {name}".strip(): (f"experiment-{experiment.name}-{name}".strip("-") + ".svg", one)
        for name, one in experiment.pictures.items()
    }


def alternative(one: Picture) -> str:
    """What a picture shows, for readers who do not see it."""
    told = "Steps until each seed solved the task; a triangle where it did not."
    if one.curves:
        told = "Running accuracy by step, a line a seed."
    return f"{one.title}. {told}"


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
    grey = [bool(grey) for _, grey in lines(results)]
    found = [
        "Solved: a running accuracy of 99.5 % and then 99 % on fresh prompts. In brackets: the"
        " exact 95 % interval over seeds; the least and the most. Proved: of the stack, when one"
        " question is asked.",
    ]
    if any(grey):
        found.append(
            f"Grey, {sum(grey)} of {len(grey)}: not trained to the end, so that nothing"
            " follows. Not solved is a finding about training, never about weights."
        )
    return found


def proved(stack: Architecture, task: Task) -> str:
    """The strongest verdict on a task of which one question is asked."""
    found = judge(stack, one_question(task))[0]
    return found.status if found.status == "OPEN" else f"{found.status} ({found.theorem})"


def data(experiment: Experiment, table: Table, results: Results) -> dict[str, Any]:
    """A table as its file holds it, and what is derived from it."""
    found = [
        {**x.contrast._asdict(), "p": None if x.p is None else float(x.p), "said": x.said}
        for x in contrasts(experiment.contrasts, results)
    ]
    cells = [{**cell.to_json(), "grey": results.grey(cell)} for cell in results.cells.values()]
    more = {"question": experiment.question, "contrasts": found, "cells": cells}
    return {**table.to_json()["body"], **more}
