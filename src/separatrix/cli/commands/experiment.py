"""Experiments, what training finds beside what is proved: listed, shown and trained."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from separatrix.cli.options import Asked, Where, planned, stopped
from separatrix.cli.printing import Told, rows_table
from separatrix.core.document import Document, Heading, Line, Part
from separatrix.core.errors import CheckFailed, SeparatrixError, SpecError, UnknownNameError
from separatrix.core.evidence.folder import check_new
from separatrix.core.progress import bar

if TYPE_CHECKING:
    from separatrix.cards.measured.table import Table
    from separatrix.findings.base import Experiment
    from separatrix.findings.results import Results


def show(name: str, asked: Asked) -> Told:
    """What is recorded of an experiment, or stands in a file of `rows`: every seed, and what was
    contrasted; fails where a claim of its page does not hold.
    """
    from separatrix.findings import experiment
    from separatrix.findings.results import of_lines

    wanted = experiment(name)
    rows, out = asked.rows, asked.out
    if sum((rows is not None, asked.check, out is not None)) > 1:
        raise SpecError("--rows, --check and --out ask for different things; give one")
    if asked.seed is not None and not asked.check:
        raise SpecError("--seed says which run --check draws; give both, or neither")
    if rows is None:
        table = _recorded(wanted)
        return _check(wanted, table, asked) if asked.check else _told(wanted, table, out)
    from separatrix.findings.page import cells_data

    results = of_lines(rows)
    more = [f"From {rows}, every line checked by its hash."]
    data = {"experiment": wanted.name, "cells": cells_data(results)}
    return _shown(wanted, results, more, data, growing=True)


def train_experiment(name: str, where: Where, out: Path | None, as_json: bool) -> Told:
    """Trains what an experiment asks for and the store does not have, and shows every seed."""
    from separatrix.findings import experiment
    from separatrix.findings.running import plan, run

    wanted = experiment(name)
    if where.dry_run:
        with bar("trying some steps", shown=not as_json):
            found = plan(wanted, store=where.store, workers=where.workers, device=where.device)
        return planned(wanted.question, found)
    if out is not None:
        # told before hours of training
        check_new(out)
    try:
        table = run(wanted, show=not as_json, **where.engine_options())
    except KeyboardInterrupt:
        raise stopped(where.store) from None
    return _told(wanted, table, out)


def _check(wanted: Experiment, table: Table, asked: Asked) -> Told:
    from separatrix.findings.checking import check, said

    with bar(f"training a run of {wanted.name} again", shown=not asked.as_json) as told:
        found = check(table, seed=asked.seed, device="cpu", told=told)
    text = said(found)
    if found.found == "differs":
        raise CheckFailed(text)
    data = {"found": found.found, "labels": found.row.labels, "said": text}
    return Told(data, Document(Line(text)))


def _recorded(wanted: Experiment) -> Table:
    from separatrix.cards.measured.table import read

    table = read(wanted.name)
    if table is None:
        raise SpecError(
            f"the package holds no results of {wanted.name}; `separatrix train {wanted.name}` makes"
            " them"
        )
    return table


def _told(wanted: Experiment, table: Table, out: Path | None) -> Told:
    from separatrix.findings.page import data, made
    from separatrix.findings.picture import write_out
    from separatrix.findings.results import of_table

    results = of_table(table)
    more = [made(table)]
    if out is not None:
        write_out(wanted, table, results, out)
        more.append(f"written to {out}")
    return _shown(wanted, results, more, data(wanted, table, results))


def _shown(
    wanted: Experiment, results: Results, more: list[str], data: Any, *, growing: bool = False
) -> Told:
    """Every cell and what was contrasted; then a claim that these results do not bear, which fails
    the command.
    """
    from separatrix.findings.page import text

    wrong: list[SeparatrixError] = []
    try:
        text(wanted, results, {})
    except SeparatrixError as error:
        # rows of a plan that is still trained: what they bear is said, and what not
        if growing and isinstance(error, UnknownNameError):
            more = [*more, f"The page's sentences are not checked on these rows: {error}"]
        else:
            wrong.append(error)
    shown = Document(Line(f"{wanted.title}. {wanted.question}"), *seeds(wanted, results, more))

    def fail() -> None:
        for error in wrong:
            raise error

    # last, so that it hides nothing
    return Told(data, shown, after=fail)


def seeds(wanted: Experiment, results: Results, more: Iterable[str]) -> list[Part]:
    """Every seed, what was contrasted, and notes."""
    from separatrix.findings.page import COLUMNS, contrasts, lines, notes

    rows = [dict(zip(COLUMNS, cells, strict=True)) for cells, _ in lines(results)]
    said = (
        f"- {one.contrast.one} against {one.contrast.other}: {one.said}"
        for one in contrasts(wanted.contrasts, results)
    )
    table = [rows_table(rows)] if rows else []
    return [Heading(), *table, Heading(), *map(Line, [*said, *notes(results), *more])]
