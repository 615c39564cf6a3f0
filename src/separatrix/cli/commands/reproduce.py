"""`separatrix reproduce`: the main job."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from separatrix.cli import complete
from separatrix.cli.printing import JsonFlag, console, print_json, show


def reproduce(
    out: Annotated[Path, typer.Option(help="Folder for report.html and evidence.json.")] = Path(
        "report"
    ),
    quick: Annotated[
        bool, typer.Option("--quick", help="Smaller sizes: about 2 minutes on 2 cores.")
    ] = False,
    config: Annotated[
        list[str] | None,
        typer.Option(
            help="Real models to add: config.json files or presets (default: three presets).",
            autocompletion=complete.models,
        ),
    ] = None,
    seed: Annotated[int, typer.Option(min=0, help="Seed of everything random.")] = 0,
    workers: Annotated[int, typer.Option(min=1, max=256, help="Processes.")] = 2,
    as_json: JsonFlag = False,
) -> None:
    """The paper's table of results with evidence in every cell: report.html and evidence.json.
    Interrupted, the same command goes on; a new --out begins anew.
    """
    from separatrix.cards.table.body import Settings
    from separatrix.cards.table.models import DEFAULT_MODELS, source
    from separatrix.cli.reproduce import reproduce_table

    models = tuple(source(text) for text in config) if config else DEFAULT_MODELS
    body = reproduce_table(
        Settings(kind="quick" if quick else "full", seed=seed, models=models),
        out,
        workers=workers,
        show=not as_json,
    )
    report = out / "report.html"
    evidence = out / "evidence.json"
    if as_json:
        print_json({"report": str(report), "evidence": str(evidence), "cells": body["cells"]})
        return
    from separatrix.cli.report.terminal import results_document

    show(results_document(body, ascii_only=console().options.ascii_only))
    typer.echo(f"report    {report}")
    typer.echo(f"evidence  {evidence}")
    typer.echo(f"check it  separatrix verify {evidence}")
