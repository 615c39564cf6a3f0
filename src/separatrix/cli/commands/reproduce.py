"""`separatrix reproduce`: the main job."""

from __future__ import annotations

import typer

from separatrix.cli.options import Asked, command
from separatrix.cli.printing import console, print_json, show


@command
def reproduce(asked: Asked) -> None:
    """The paper's table of results with evidence in every cell: report.html and evidence.json.
    Interrupted, the same command goes on; a new --out begins anew.
    """
    from separatrix.cards.table.body import Settings
    from separatrix.cards.table.models import DEFAULT_MODELS, source
    from separatrix.cli.reproduce import reproduce_table

    models = tuple(source(text) for text in asked.config) if asked.config else DEFAULT_MODELS
    out = asked.out
    body = reproduce_table(
        Settings(kind="quick" if asked.quick else "full", seed=asked.seed, models=models),
        out,
        workers=asked.workers,
        show=not asked.as_json,
    )
    report = out / "report.html"
    evidence = out / "evidence.json"
    if asked.as_json:
        print_json({"report": str(report), "evidence": str(evidence), "cells": body["cells"]})
        return
    from separatrix.cli.report.terminal import results_document

    show(results_document(body, ascii_only=console().options.ascii_only))
    typer.echo(f"report    {report}")
    typer.echo(f"evidence  {evidence}")
    typer.echo(f"check it  separatrix verify {evidence}")
