"""`separatrix experiment`: what training finds, beside what is proved."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from separatrix.cli import complete
from separatrix.cli.options import STORE, StoreFile
from separatrix.cli.printing import JsonFlag, print_json, print_rows, print_text
from separatrix.errors import CheckFailed, SpecError
from separatrix.progress import bar

if TYPE_CHECKING:
    from separatrix.experiments.base import Experiment
    from separatrix.practice.table import Scale, Table


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
        str,
        typer.Option(
            help="smoke: under a minute; laptop: half an hour; gpu: an hour of a large one."
        ),
    ] = "laptop",
    store: StoreFile = STORE,
    workers: Annotated[
        int | None, typer.Option(min=1, max=1024, help="Processes (default: one per core or GPU).")
    ] = None,
    device: Annotated[str, typer.Option(help="cpu, cuda or cuda:N.")] = "cpu",
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Only say what would be trained, and how long.")
    ] = False,
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
    """Trains what an experiment asks for, and shows what came out beside what is proved.
    Interrupted, the same command goes on.
    """
    from separatrix.experiments import experiment as named

    _one_of(("--dry-run", dry_run), ("--recorded", recorded), ("--check", check))
    if name is None:
        _nameless(out, record, dry_run, recorded, check)
        _list(as_json)
        return
    wanted = named(name)
    size = _scale(scale)
    if seed is not None and not check:
        raise SpecError("--seed says which run --check draws; give both, or neither")
    if record and size == "smoke":
        raise SpecError("--record keeps results at laptop and gpu scale: smoke only tries the code")
    if (record or out is not None) and (dry_run or check):
        raise SpecError(
            "--dry-run and --check make no table; leave --out and --record out with them"
        )
    if dry_run:
        _say_plan(wanted, size, store, workers, device, as_json)
    elif check:
        _check(wanted, size, seed, device, as_json)
    else:
        _show(wanted, size, store, workers, device, recorded, out, record, as_json)


def _one_of(*flags: tuple[str, bool]) -> None:
    given = [name for name, set_ in flags if set_]
    if len(given) > 1:
        raise SpecError(f"{' and '.join(given)} ask for different things; give one")


def _nameless(out: Path | None, *flags: bool) -> None:
    if out is not None or any(flags):
        raise SpecError("name an experiment; `separatrix experiment` lists them")


def _scale(text: str) -> Scale:
    from separatrix.errors import UnknownNameError
    from separatrix.practice.table import scale_named

    found = scale_named(text)
    if found is None:
        raise UnknownNameError.of("scale", text[:60], ("smoke", "laptop", "gpu"))
    return found


def _list(as_json: bool) -> None:
    """All experiments, and what the package holds of them."""
    from separatrix.experiments import EXPERIMENTS
    from separatrix.practice.table import read

    rows: list[dict[str, Any]] = []
    for name, one in EXPERIMENTS.items():
        table = read(name)
        trained = 0 if table is None else sum(len(row.every) for row in table.rows)
        held = "-" if table is None else f"{trained:,} trainings, {table.provenance.date}"
        rows.append({"experiment": name, "question": one.question, "recorded": held})
    print_rows(rows, as_json)


def _say_plan(
    wanted: Experiment,
    scale: Scale,
    store: Path,
    workers: int | None,
    device: str,
    as_json: bool,
) -> None:
    from separatrix.experiments.running import plan

    with bar("trying some steps", shown=not as_json):
        found = plan(wanted, scale, store=store, workers=workers, device=device)
    if as_json:
        print_json(found.to_json())
        return
    print_text(wanted.question)
    for name, said in found.rows():
        print_text(f"  {name:<10}  {said}")


def _check(wanted: Experiment, scale: Scale, seed: int | None, device: str, as_json: bool) -> None:
    from separatrix.experiments.checking import check, said

    table = _recorded(wanted, scale)
    with bar(f"training a run of {wanted.name} again", shown=not as_json) as told:
        found = check(table, seed=seed, device=device, told=told)
    text = said(found)
    if found.found == "differs":
        raise CheckFailed(text)
    if as_json:
        print_json({"found": found.found, "labels": found.row.labels, "said": text})
    else:
        print_text(text)


def _recorded(wanted: Experiment, scale: Scale) -> Table:
    from separatrix.practice.table import read

    table = read(wanted.name, scale)
    if table is None:
        raise SpecError(
            f"the package holds no results of {wanted.name} at scale {scale};"
            f" `separatrix experiment {wanted.name} --scale {scale}` makes them"
        )
    return table


def _show(
    wanted: Experiment,
    scale: Scale,
    store: Path,
    workers: int | None,
    device: str,
    recorded: bool,
    out: Path | None,
    record: bool,
    as_json: bool,
) -> None:
    from separatrix.evidence.folder import check_new
    from separatrix.experiments.showing import data

    if record and recorded:
        raise SpecError("--recorded results are in the package already; leave --record out")
    if out is not None:
        from separatrix.report.drawing import libraries

        # both are told before hours of training
        libraries()
        check_new(out)
    if recorded:
        table = _recorded(wanted, scale)
    else:
        table = _trained(wanted, scale, store, workers, device, record, as_json)
    if record:
        _record(wanted, table)
    if out is not None:
        from separatrix.experiments.writing import write_out

        write_out(wanted, table, out)
    if as_json:
        print_json(data(wanted, table))
        return
    _print(wanted, table)
    if out is not None:
        print_text(f"written to {out}")


def _trained(
    wanted: Experiment,
    scale: Scale,
    store: Path,
    workers: int | None,
    device: str,
    record: bool,
    as_json: bool,
) -> Table:
    from separatrix.errors import Stopped
    from separatrix.experiments.provenance import check_clean
    from separatrix.experiments.running import run

    if record:
        check_clean()
    try:
        return run(wanted, scale, store=store, workers=workers, device=device, show=not as_json)
    except KeyboardInterrupt:
        raise Stopped(
            f"stopped; ended runs and checkpoints are in {store}, and the same command goes on"
        ) from None


def _record(wanted: Experiment, table: Table) -> None:
    from separatrix.evidence.atomic import write_atomic
    from separatrix.experiments.provenance import check_recordable
    from separatrix.practice.table import result_file

    check_recordable(table, wanted.cells(table.scale))
    write_atomic(result_file(table.experiment, table.scale), table.text())


def _print(wanted: Experiment, table: Table) -> None:
    from separatrix.experiments.showing import notes
    from separatrix.experiments.writing import made

    print_text(f"{wanted.title}. {wanted.question}")
    print_text(f"Proved: {wanted.says}")
    for shown in wanted.tables(table):
        typer.echo()
        print_text(shown.title)
        if shown.rows:
            print_rows([dict(zip(shown.columns, row, strict=True)) for row in shown.rows], False)
    typer.echo()
    found = wanted.findings(table)
    for sentence in found or ("Too little for a claim.",):
        print_text(f"- {sentence}")
    typer.echo()
    print_text("\n".join([*notes(table), made(table)]))
