"""`separatrix sweep`: many training runs from one file."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

import typer

from separatrix.cli.options import STORE, Imports, StoreFile
from separatrix.cli.printing import JsonFlag, print_json, print_text
from separatrix.cli.runs import print_summary
from separatrix.progress import bar


def sweep(
    file: Annotated[
        Path, typer.Argument(metavar="FILE", help="YAML with `baseline:` and `grid:`.")
    ],
    store: StoreFile = STORE,
    engine: Annotated[
        str, typer.Option(help="local: processes of this machine; ray: a Ray cluster.")
    ] = "local",
    workers: Annotated[
        int | None, typer.Option(min=1, max=1024, help="Processes (default: one per core or GPU).")
    ] = None,
    device: Annotated[str, typer.Option(help="cpu, cuda or cuda:N.")] = "cpu",
    address: Annotated[
        str, typer.Option(help="The head of the Ray cluster, host:port (default: found by Ray).")
    ] = "",
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Only say what would be trained, and how long.")
    ] = False,
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
    from separatrix.sweeps.sweep import sweep as train_all

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
        raise _stopped(store) from None
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
    from separatrix.sweeps.sweep import planned

    with bar("trying some steps", shown=not as_json):
        found = planned(file, store=store, workers=workers, device=device)
    if as_json:
        print_json(found.to_json())
        return
    print_text(found.name)
    for name, said in found.rows():
        print_text(f"  {name:<10}  {said}")


def _stopped(store: Path) -> Exception:
    """How to go on, in one line."""
    from separatrix.errors import Stopped

    return Stopped(
        f"stopped; ended runs and checkpoints are in {store}, and the same command goes on"
    )
