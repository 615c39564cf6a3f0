"""`separatrix experiment`: what training finds, beside what is proved."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from separatrix.cli import complete
from separatrix.cli.options import STORE, Device, DryRun, StoreFile, Workers
from separatrix.cli.printing import JsonFlag, print_json, print_rows, print_text
from separatrix.core.errors import CheckFailed, SpecError
from separatrix.core.progress import bar

if TYPE_CHECKING:
    from separatrix.cards.measured.table import Table
    from separatrix.findings.base import Experiment
    from separatrix.findings.results import Results


def experiment(
    name: Annotated[
        str | None,
        typer.Argument(
            metavar="[NAME]",
            help="Which one; without it all are listed.",
            autocompletion=complete.experiments,
        ),
    ] = None,
    scale: Annotated[
        str, typer.Option(help="laptop, the only one left; other sizes: `separatrix sweep FILE`.")
    ] = "laptop",
    rows: Annotated[
        Path | None,
        typer.Option(help="A file with a run a line, as the study keeps them: shown, not trained."),
    ] = None,
    store: StoreFile = STORE,
    workers: Workers = None,
    device: Device = "cpu",
    dry_run: DryRun = False,
    recorded: Annotated[
        bool,
        typer.Option("--recorded", help="Show the results in the package; nothing is trained."),
    ] = False,
    check: Annotated[
        bool,
        typer.Option("--check", help="Train one recorded run again, at random, and compare."),
    ] = False,
    seed: Annotated[
        int | None, typer.Option(min=0, help="Which run --check draws (default: another each time)")
    ] = None,
    out: Annotated[
        Path | None, typer.Option(help="New folder for figures, page and table.")
    ] = None,
    record: Annotated[
        bool,
        typer.Option("--record", help="Keep the table in the package: from a clean checkout."),
    ] = False,
    as_json: JsonFlag = False,
) -> None:
    """Trains what an experiment asks for, and shows every seed and what was contrasted; fails where
    a claim of its page does not hold. Interrupted, the same command goes on.
    """
    from separatrix.findings import experiment as named

    _one_of(
        ("--dry-run", dry_run),
        ("--recorded", recorded),
        ("--check", check),
        ("--rows", rows is not None),
    )
    if name is None:
        if out is not None or rows is not None or record or dry_run or recorded or check:
            raise SpecError("name an experiment; `separatrix experiment` lists them")
        _list(as_json)
        return
    wanted = named(name)
    _check_scale(scale)
    if seed is not None and not check:
        raise SpecError("--seed says which run --check draws; give both, or neither")
    if (record or out is not None) and (dry_run or check or rows is not None):
        raise SpecError(
            "--dry-run, --check and --rows make no table; leave --out and --record out with them"
        )
    if rows is not None:
        _show_lines(wanted, rows, as_json)
    elif dry_run:
        _say_plan(wanted, store, workers, device, as_json)
    elif check:
        _check(wanted, seed, device, as_json)
    else:
        _show(wanted, store, workers, device, recorded, out, record, as_json)


def _one_of(*flags: tuple[str, bool]) -> None:
    given = [name for name, set_ in flags if set_]
    if len(given) > 1:
        raise SpecError(f"{' and '.join(given)} ask for different things; give one")


def _check_scale(text: str) -> None:
    from separatrix.cards.measured.table import scale_named
    from separatrix.core.errors import UnknownNameError
    from separatrix.findings.base import SCALE

    if scale_named(text) is None:
        raise UnknownNameError.of("scale", text[:60], (SCALE,))
    if text != SCALE:
        raise SpecError(
            f"--scale {text} is gone, with grids of which nothing was recorded; `separatrix sweep"
            " FILE` trains a grid of any size"
        )


def _list(as_json: bool) -> None:
    """All experiments, and what the package holds of them."""
    from separatrix.cards.measured.table import read
    from separatrix.findings import EXPERIMENTS

    rows: list[dict[str, Any]] = []
    for name, one in EXPERIMENTS.items():
        table = read(name)
        trained = 0 if table is None else sum(len(row.every) for row in table.rows)
        held = "-" if table is None else f"{trained:,} trainings, {table.provenance.date}"
        rows.append({"experiment": name, "question": one.question, "recorded": held})
    print_rows(rows, as_json)


def _say_plan(
    wanted: Experiment, store: Path, workers: int | None, device: str, as_json: bool
) -> None:
    from separatrix.findings.running import plan

    with bar("trying some steps", shown=not as_json):
        found = plan(wanted, store=store, workers=workers, device=device)
    if as_json:
        print_json(found.to_json())
        return
    print_text(wanted.question)
    for name, said in found.rows():
        print_text(f"  {name:<10}  {said}")


def _check(wanted: Experiment, seed: int | None, device: str, as_json: bool) -> None:
    from separatrix.findings.checking import check, said

    table = _recorded(wanted)
    with bar(f"training a run of {wanted.name} again", shown=not as_json) as told:
        found = check(table, seed=seed, device=device, told=told)
    text = said(found)
    if found.found == "differs":
        raise CheckFailed(text)
    if as_json:
        print_json({"found": found.found, "labels": found.row.labels, "said": text})
    else:
        print_text(text)


def _recorded(wanted: Experiment) -> Table:
    from separatrix.cards.measured.table import read

    table = read(wanted.name)
    if table is None:
        how = " --rows FILE` shows them" if wanted.lines else "` makes them"
        raise SpecError(
            f"the package holds no results of {wanted.name}; `separatrix experiment"
            f" {wanted.name}{how}"
        )
    return table


def _show_lines(wanted: Experiment, rows: Path, as_json: bool) -> None:
    from separatrix.findings.page import cells_data
    from separatrix.findings.results import of_lines

    results = of_lines(rows)
    if as_json:
        print_json({"experiment": wanted.name, "cells": cells_data(results)})
    else:
        _print(wanted, results, f"From {rows}, every line checked by its hash.")


def _show(
    wanted: Experiment,
    store: Path,
    workers: int | None,
    device: str,
    recorded: bool,
    out: Path | None,
    record: bool,
    as_json: bool,
) -> None:
    from separatrix.core.errors import Stopped
    from separatrix.core.evidence.folder import check_new
    from separatrix.findings.page import data, made
    from separatrix.findings.provenance import check_clean
    from separatrix.findings.results import of_table
    from separatrix.findings.running import run

    if record and recorded:
        raise SpecError("--recorded results are in the package already; leave --record out")
    if out is not None:
        from separatrix.core.document.drawing import libraries

        # both are told before hours of training
        libraries()
        check_new(out)
    if recorded:
        table = _recorded(wanted)
    else:
        if record:
            check_clean()
        try:
            table = run(wanted, store=store, workers=workers, device=device, show=not as_json)
        except KeyboardInterrupt:
            kept = f"ended runs and checkpoints are in {store}, and the same command goes on"
            raise Stopped(f"stopped; {kept}") from None
    if record:
        _record(wanted, table)
    results = of_table(table)
    if out is not None:
        from separatrix.findings.picture import write_out

        write_out(wanted, table, results, out)
    if as_json:
        print_json(data(wanted, table, results))
        return
    if out is not None:
        print_text(f"written to {out}")
    _print(wanted, results, made(table))


def _record(wanted: Experiment, table: Table) -> None:
    from separatrix.cards.measured.table import result_file
    from separatrix.core.evidence.atomic import write_atomic
    from separatrix.findings.provenance import check_recordable

    check_recordable(table, wanted.cells())
    write_atomic(result_file(table.experiment, table.scale), table.text())


def _print(wanted: Experiment, results: Results, source: str) -> None:
    """Every cell and what was contrasted; then the claims, which fail the command."""
    from separatrix.findings.page import COLUMNS, contrasts, lines, notes, text

    print_text(f"{wanted.title}. {wanted.question}")
    typer.echo()
    if rows := [dict(zip(COLUMNS, cells, strict=True)) for cells, _ in lines(results)]:
        print_rows(rows, False)
    typer.echo()
    for one in contrasts(wanted.contrasts, results):
        print_text(f"- {one.contrast.one} against {one.contrast.other}: {one.said}")
    print_text("\n".join([*notes(results), source]))
    # last, so that a claim which these rows do not bear hides nothing
    text(wanted, results, {})
