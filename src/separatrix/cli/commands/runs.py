"""`separatrix runs list`, `show`, `export` and `upgrade`: what the store of training runs holds."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from separatrix.cli.options import STORE, Imports, StoreFile
from separatrix.cli.printing import JsonFlag, print_json, print_rows, print_text, width
from separatrix.core.errors import SpecError

if TYPE_CHECKING:
    from separatrix.training.sweeps.statistics import Summary
    from separatrix.training.sweeps.store import Store

runs_app = typer.Typer(no_args_is_help=True, rich_markup_mode=None)
FIRST = 50
"""Runs that a list shows to people unless --limit says otherwise."""

Sweep = Annotated[str | None, typer.Option("--sweep", help="Only the runs of this sweep.")]
Status = Annotated[
    str | None,
    typer.Option("--status", help="Only waiting, running, done, diverged, failed or damaged."),
]


def opened(path: Path, sweep: str | None = None) -> Store:
    """The store, to look at it; what is strange about its file is said. Raises StoreError, and
    UnknownNameError for a sweep that it does not have.
    """
    from separatrix.core.errors import UnknownNameError
    from separatrix.training.sweeps.store import Store

    store = Store.read(path)
    if store.note:
        print(f"note: {store.note}", file=sys.stderr)
    if sweep is not None and sweep not in (known := store.sweeps()):
        store.close()
        raise UnknownNameError.of("sweep", sweep, known, where=f" in {path}")
    return store


@runs_app.command("list")
def runs_list(
    store: StoreFile = STORE,
    sweep: Sweep = None,
    status: Status = None,
    sort: Annotated[
        str,
        typer.Option(
            "--sort",
            help="accuracy, seconds, learning_rate, task, ...; -accuracy: the best first.",
        ),
    ] = "",
    limit: Annotated[
        int | None,
        typer.Option(
            "--limit", min=0, help=f"Most runs shown; 0: all (default: {FIRST}, with --json all)."
        ),
    ] = None,
    as_json: JsonFlag = False,
) -> None:
    """The runs of a store, in the order in which they came."""
    with opened(store, sweep) as kept:
        if as_json:
            rows = kept.objects(sweep, status, sort=sort, limit=limit or 0)
            # a line each: of 100,000 runs it is quick, too
            typer.echo("[\n" + ",\n".join(rows) + "\n]" if rows else "[]")
            return
        from separatrix.cli.report.runs import counted, listing

        most = FIRST if limit is None else limit
        listed = kept.listed(sweep, status, sort=sort, limit=most)
        counts = kept.counts(sweep)
        wanted = counts.get(status, 0) if status else sum(counts.values())
        if listed:
            print_lines([*listing(listed, width()), ""])
        more = f"; {len(listed):,} shown, --limit 0 shows all" if len(listed) < wanted else ""
        typer.echo(f"{counted(counts)}{more}")


def print_lines(lines: list[str]) -> None:
    """Lines that fit the terminal already; of a stranger's texts, what does not print is
    escaped.
    """
    from separatrix.core.errors import printable

    typer.echo("\n".join(map(printable, lines)))


@runs_app.command("show")
def runs_show(
    key: Annotated[str, typer.Argument(help="A run's key, or its first letters.")],
    store: StoreFile = STORE,
    imports: Imports = None,
    as_json: JsonFlag = False,
) -> None:
    """One run: what was trained, its curve, what came of it and what is proved beside it."""
    with opened(store) as kept:
        row = kept.run(key.strip().lower())
        metrics = kept.metrics(row.key)
        earlier = kept.earlier(row.key)
    from separatrix.cli.report.run import description, plain

    if as_json:
        print_json(plain(row, metrics, earlier))
        return
    print_text("\n".join(description(row, metrics, earlier, width())))


@runs_app.command("export")
def runs_export(
    out: Annotated[Path, typer.Argument(help="The file to write: OUT.csv or OUT.parquet.")],
    store: StoreFile = STORE,
    sweep: Sweep = None,
    status: Status = None,
    metrics: Annotated[
        Path | None,
        typer.Option(help="A second file, .csv or .parquet, for the metrics over time."),
    ] = None,
) -> None:
    """All runs as one table, a row each, with typed columns; parquet needs the extra "export"."""
    from separatrix.training.sweeps.exporting import check_outputs, write_metrics, write_runs

    check_outputs(store, out, metrics)
    with opened(store, sweep) as kept:
        rows = kept.rows(sweep, status)
        if not rows:
            raise SpecError(f"{store} has no such runs; `separatrix runs list` shows what there is")
        told = [] if metrics is None else kept.all_metrics(sweep, status)
    write_runs(out, rows)
    typer.echo(f"{len(rows):,} runs written to {out}")
    if metrics is not None:
        write_metrics(metrics, told)
        typer.echo(f"{len(told):,} metrics written to {metrics}")


@runs_app.command("upgrade")
def runs_upgrade(
    old: Annotated[Path, typer.Argument(help="A store of an earlier version.")],
    new: Annotated[Path, typer.Argument(help="The new store to write.")],
) -> None:
    """A store of an earlier version, written anew with a hash for each outcome."""
    from separatrix.training.sweeps.upgrading import upgrade

    count, damaged = upgrade(old, new)
    left = f"; left out, for they are damaged: {', '.join(damaged)}" if damaged else ""
    print_text(f"{count:,} runs written to {new}, and {old} is as it was{left}")


@runs_app.command("summary")
def runs_summary(
    store: StoreFile = STORE,
    sweep: Sweep = None,
    markdown: Annotated[
        bool, typer.Option("--markdown", help="Print a section of a page.")
    ] = False,
    imports: Imports = None,
    as_json: JsonFlag = False,
) -> None:
    """What a sweep shows: the best learning rate of each cell and every seed, with intervals,
    chance and what is proved.
    """
    if markdown and as_json:
        raise SpecError("--markdown and --json are two forms of the same tables; give one")
    with opened(store, sweep) as kept:
        name = sweep if sweep is not None else _only_sweep(kept)
    from separatrix.cli.report import sweeps as tables
    from separatrix.training.sweeps.statistics import stored_summary

    found = stored_summary(name, store)
    if markdown:
        typer.echo(tables.markdown(found), nl=False)
    else:
        print_summary(found, as_json)


def print_summary(found: Summary, as_json: bool) -> None:
    """What a sweep shows, as data or as tables with the notes that belong to them."""
    from separatrix.cli.report import sweeps as tables

    if as_json:
        print_json(tables.data(found))
        return
    print_rows(tables.best_rows(found), False)
    typer.echo()
    if rows := tables.seed_rows(found):
        print_rows(rows, False)
        typer.echo()
    print_text("\n".join(tables.notes(found)))


def _only_sweep(kept: Store) -> str:
    names = list(kept.sweeps())
    if len(names) != 1:
        known = f"has the sweeps {', '.join(names)}; name one with --sweep" if names else "is empty"
        raise SpecError(f"{kept.path} {known}")
    return names[0]
