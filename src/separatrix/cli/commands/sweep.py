"""`separatrix sweep`: many training runs from one file."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

import typer

from separatrix.cli.commands.runs import print_summary
from separatrix.cli.options import (
    STORE,
    Address,
    Device,
    DryRun,
    Engine,
    Imports,
    StoreFile,
    Workers,
)
from separatrix.cli.printing import JsonFlag, print_json, print_text
from separatrix.core.progress import bar


def sweep(
    file: Annotated[
        Path, typer.Argument(metavar="FILE", help="YAML with `baseline:` and `grid:`.")
    ],
    store: StoreFile = STORE,
    engine: Engine = "local",
    workers: Workers = None,
    device: Device = "cpu",
    address: Address = "",
    dry_run: DryRun = False,
    retry: Annotated[
        bool, typer.Option("--retry", help="Try the runs again that have failed.")
    ] = False,
    fresh: Annotated[
        bool, typer.Option("--fresh", help="Train again what another version has trained.")
    ] = False,
    compile: Annotated[bool, typer.Option("--compile", help="Use torch.compile.")] = False,
    imports: Imports = None,
    as_json: JsonFlag = False,
) -> None:
    """Trains every run of a file that the store does not have yet, and prints what came out.
    Interrupted, the same command goes on.
    """
    if dry_run:
        _say_plan(file, store, workers, device, as_json)
        return
    from separatrix.training.sweeps.sweep import sweep as train_all

    try:
        found = train_all(
            file,
            store=store,
            engine=engine,
            workers=workers,
            device=device,
            address=address,
            compile=compile,
            imports=imports or (),
            retry=retry,
            fresh=fresh,
            show=not as_json,
        )
    except KeyboardInterrupt:
        raise stopped(store) from None
    print_summary(found, as_json)
    if failed := found.count("failed"):
        where = "" if store == STORE else f" --store {store}"
        print(
            f"{failed:,} failed: `separatrix runs list --status failed{where}` shows them,"
            " `separatrix runs show` says why, and --retry tries them again",
            file=sys.stderr,
        )
        raise typer.Exit(1)


def _say_plan(file: Path, store: Path, workers: int | None, device: str, as_json: bool) -> None:
    from separatrix.training.sweeps.sweep import planned

    with bar("trying some steps", shown=not as_json):
        found = planned(file, store=store, workers=workers, device=device)
    if as_json:
        print_json(found.to_json())
        return
    print_text(found.name)
    for name, said in found.rows():
        print_text(f"  {name:<10}  {said}")


def stopped(store: Path) -> Exception:
    """How to go on, in one line."""
    from separatrix.core.errors import Stopped

    return Stopped(
        f"stopped; ended runs and checkpoints are in {store}, and the same command goes on"
    )
