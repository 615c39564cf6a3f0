"""`separatrix trial`: layouts of one's own, scaled down and trained beside each other."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from separatrix.cli.commands.experiment import print_seeds
from separatrix.cli.options import (
    STORE,
    Device,
    DryRun,
    Engine,
    StoreFile,
    Where,
    Workers,
    stopped,
)
from separatrix.cli.printing import JsonFlag, print_json, print_text
from separatrix.core.errors import SizeError
from separatrix.core.progress import bar


def trial(
    layouts: Annotated[
        list[str], typer.Argument(metavar="A B...", help="Presets, files or specs, two or more.")
    ],
    task: Annotated[str, typer.Option(help="A task, such as recall or seqcomp:L=2,m=4,n_1=3.")],
    hours: Annotated[float, typer.Option(min=0.0, help="Most hours that it may take here.")] = 2.0,
    seeds: Annotated[int, typer.Option(min=1, max=100, help="Seeds of each layout.")] = 8,
    steps: Annotated[
        int, typer.Option(min=0, max=10**9, help="Most steps of a run (default: the task's).")
    ] = 0,
    store: StoreFile = STORE,
    engine: Engine = "local",
    workers: Workers = None,
    device: Device = "cpu",
    dry_run: DryRun = False,
    out: Annotated[
        Path | None, typer.Option(help="New folder for the page, its pictures and the rows.")
    ] = None,
    as_json: JsonFlag = False,
) -> None:
    """Scales layouts down by rules that are printed, trains them to the end with paired seeds, and
    says who solves the task. Interrupted, the same command goes on. Example: trial '(gdn*3 +
    full)*2' 'gdn*7 + full' --task recall --hours 2
    """
    from separatrix.core.document.cells import duration
    from separatrix.core.evidence.folder import check_new
    from separatrix.core.numbers.amounts import format_bytes
    from separatrix.findings.page import data
    from separatrix.findings.picture import write_out
    from separatrix.findings.results import of_table
    from separatrix.findings.running import with_curves
    from separatrix.findings.trial import trial as scaled
    from separatrix.stacks.architecture.resolve import resolve

    if out is not None:
        # both are told before hours of training
        check_new(out)
    where = Where.of(store, engine, workers, device, dry_run)
    own = {name: resolve(name) for name in layouts}
    found = scaled(own, task, seeds=seeds, steps=steps)
    with bar("trying some steps", shown=not as_json):
        plan = found.plan(store=store, workers=workers, device=device)
    memory = found.memory(plan)
    if not as_json:
        for rule in found.rules():
            print_text(f"- {rule}")
        time = "not measured" if plan.seconds is None else f"at most about {duration(plan.seconds)}"
        runs = f"{plan.runs:,} runs, {plan.ended:,} of which have ended before"
        print_text(f"- {runs}; {time}, about {format_bytes(8 * memory)} of memory")
    short = found.short(plan, hours)
    if dry_run:
        if as_json:
            said = {"rules": found.rules(), "plan": plan.to_json(), "memory": memory}
            print_json({**said, "short": short})
        elif short:
            print_text(f"- {short}")
        return
    if short:
        raise SizeError(short)
    try:
        experiment, table = found.train(show=not as_json, **where.engine_options())
    except KeyboardInterrupt:
        raise stopped(store) from None
    results = of_table(table)
    if out is not None:
        write_out(experiment, table, with_curves(experiment, results, store), out)
    if as_json:
        said = {"rules": found.rules(), "remarks": found.remarks(table, results)}
        print_json({**data(experiment, table, results), **said})
        return
    print_seeds(experiment, results, found.remarks(table, results))
